"""Records examples/live_view.svg, the moving picture of the README, from a true run in a terminal.

    python tests/record_view.py

Types a session into a real console, keeps what its screen shows, and writes the screens as one SVG
file that plays them (CSS only, so it moves wherever pictures of a page do).
"""

from __future__ import annotations

import html
import tempfile
import time
from itertools import groupby
from pathlib import Path

from terminal import Terminal

COLUMNS, LINES = 92, 24
CELL, LINE = 8.4, 18.0
PICTURE = Path(__file__).resolve().parents[1] / "examples" / "live_view.svg"
COLORS = {
    "default": "#d8dee9", "black": "#4c566a", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9", "brightblack": "#7f8899",
}  # fmt: skip


class Film:
    """Screens and how long each stood."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.frames: list[tuple[str, float]] = []

    def watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            while time.monotonic() < min(began + 0.2, until):
                self.terminal.read(0.05)
            self.add(time.monotonic() - began)

    def add(self, seconds: float) -> None:
        drawn = draw(self.terminal)
        if self.frames and self.frames[-1][0] == drawn:
            seconds += self.frames.pop()[1]
        self.frames.append((drawn, seconds))

    def type(self, text: str) -> None:
        for at in range(0, len(text), 6):
            self.terminal.type(text[at : at + 6])
            self.watch(0.2)
        self.watch(0.5)

    def svg(self) -> str:
        total = sum(seconds for _, seconds in self.frames)
        height, width = LINES * LINE + 20, COLUMNS * CELL + 20
        at, steps, groups = 0.0, [], []
        for number, (drawn, seconds) in enumerate(self.frames):
            steps.append(f"{at / total:.4%}{{transform:translateY({-number * height:.0f}px)}}")
            groups.append(f'<g transform="translate(10,{number * height + 22:.0f})">{drawn}</g>')
            at += seconds
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}"><style>text{{font:14px ui-monospace,Menlo,Consolas,'
            f"monospace;white-space:pre}}#film{{animation:roll {total:.1f}s steps(1,end) "
            f"infinite}}@keyframes roll{{{''.join(steps)}}}</style>"
            f'<rect width="100%" height="100%" rx="8" fill="#1e222a"/><g id="film" fill="{COLORS["default"]}">{"".join(groups)}</g></svg>\n'
        )


def draw(terminal: Terminal) -> str:
    """The screen as lines of SVG text, in its colours."""
    parts = []
    for y in range(LINES):
        row = [terminal.screen.buffer[y][x] for x in range(COLUMNS)]
        x = 0
        for (color, back, bold, turned), run in groupby(row, key=lambda c: (c.fg, c.bg, c.bold, c.reverse)):
            text = "".join(c.data for c in run)
            width, left = len(text) * CELL, x * CELL
            x += len(text)
            front = COLORS.get(color, "#" + color)
            ground = "" if back == "default" else COLORS.get(back, "#" + back)
            if turned:
                front, ground = ground or "#1e222a", front
            if ground:
                place = f'x="{left:.0f}" y="{y * LINE - 14:.0f}" width="{width:.0f}" height="{LINE:.0f}"'
                parts.append(f'<rect {place} fill="{ground}"/>')
            if text.strip():
                # Fonts differ in the width of dots and lines: the place of each run is fixed.
                look = f' fill="{front}"' if front != COLORS["default"] else ""
                look += ' font-weight="bold"' if bold else ""
                place = f'x="{left:.0f}" y="{y * LINE:.0f}" textLength="{width:.0f}"'
                parts.append(f"<text {place}{look}>{html.escape(text)}</text>")
    return "".join(parts)


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        terminal = Terminal(Path(folder), columns=COLUMNS, lines=LINES)
        try:
            terminal.prompt()
            film = Film(terminal)
            film.type("CREATE STREAM clicks USING rate OPTIONS (rowsPerSecond 25);\r")
            film.type(
                "CREATE LIVE TABLE per_second AS\rSELECT window.start AS second, value % 2 AS page, count(*) AS n "
                "FROM clicks\rWHERE hash(value) % 3 = 0 GROUP BY window(timestamp, '1 second'), value % 2;\r"
            )
            terminal.until("live table per_second started")
            film.watch(6)
            film.type("WATCH per_second;\r")
            film.watch(6)
            film.type("q")
            film.watch(1)
            film.type("\x0c")
            film.type("WATCH per_second AS CHART (second, n, page);\r")
            film.watch(9)
            film.type("q")
            film.watch(1)
            film.type("\x0c")
            film.type("SHOW QUERIES;\r")
            film.watch(3)
        finally:
            terminal.kill()
    PICTURE.write_text(film.svg(), "utf-8")
    print(f"{PICTURE.name}: {len(film.frames)} screens, {PICTURE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
