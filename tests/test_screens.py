"""The views of the console as golden screens: one console in a true terminal, resized between the views.

    UPDATE_SCREENS=1 pytest tests/test_screens.py

writes the screens anew. Times, rates, sizes and places differ from run to run: each such character is a #.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from screen_words import faults
from terminal import Terminal

from streamsql.errors import cells

ROOMS = ("streamsql/output/", "streamsql/shell/", "streamsql/runtime/")

pytestmark = [pytest.mark.usefixtures("processes"), pytest.mark.slow]

GOLDEN = Path(__file__).parent / "golden" / "screens.txt"
GOLDEN_WIDTH = 200
OTHER_WIDTHS = (40, 80)
LINES = 80

SETUP = """\
SET streamsql.pager = off;
CREATE STREAM clicks (user STRING, n INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '10 minutes';
CREATE LIVE TABLE counts AS SELECT window.start AS since, user, count(*) AS n, sum(n) / 10 AS share
FROM clicks GROUP BY window(ts, '10 minutes'), user;
CREATE SINK out USING noop;
INSERT INTO out SELECT user, n FROM clicks;
CREATE LIVE TABLE bad AS
SELECT user, assert_true(n < 100, concat('n is too large: ', n)) AS checked FROM clicks;
INSERT INTO clicks VALUES ('ann', 1, '1998-05-01 12:02:00'), ('bob', 2, '1998-05-01 12:07:00'),
('ann', 5, '1998-05-01 12:17:00');
AWAIT QUERY counts IDLE; AWAIT QUERY out IDLE; AWAIT QUERY bad IDLE;
INSERT INTO clicks VALUES ('bob', 500, '1998-05-01 12:40:00');
AWAIT QUERY counts IDLE; AWAIT QUERY out IDLE;
INSERT INTO clicks VALUES ('eve', 1, '1998-05-01 12:01:00');
AWAIT QUERY counts IDLE; AWAIT QUERY out IDLE; STOP QUERY out;
"""
VIEWS = {
    "queries": "SHOW QUERIES;",
    "extended": "SHOW QUERIES EXTENDED;",
    "query": "DESCRIBE QUERY counts;",
    "failed": "DESCRIBE QUERY bad;",
    "progress": "SHOW PROGRESS counts;",
    "batches": "SHOW BATCHES OF QUERY counts;",
    "tables": "SHOW TABLES;",
    "live_tables": "SHOW LIVE TABLES;",
    "stream": "DESCRIBE STREAM clicks;",
    "why": "WHY QUERY counts;",
    "summary": "SUMMARIZE counts;",
    "rows": "SELECT since, user, n, share FROM counts ORDER BY since, user;",
    "error": "SELECT * FROM cuonts;",
    "help": "HELP AWAIT QUERY;",
}
LIVE = {"watch": "WATCH counts;", "chart": "WATCH counts AS CHART (since, share);"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("console"), columns=110, lines=LINES, env={"TZ": "UTC"})
    try:
        terminal.prompt()
        terminal.type(f"\x1b[200~{SETUP}\x1b[201~\r")
        terminal.until_above(r"stopped: out\s+^sql>\s*$")
        yield terminal
    finally:
        terminal.kill()


def screen(console: Terminal, typed: str) -> str:
    """What a statement shows below itself, up to the next prompt or, of a live view, all."""
    console.clear()
    if typed.startswith("WATCH"):
        console.run(typed, r"counts:.*q leave")
        console.type("?")
        shown = console.until(r"f full screen")
        console.type("q")
        console.until(r"^sql>\s*$.*Spark ready")
    else:
        shown = console.run(typed, r"\Asql> .*^sql>\s*$.*Spark ready")
        shown = shown.rpartition("\nsql>")[0]
    return "\n".join(line for line in shown.split("\n")[1:] if not line.startswith("...."))


def blank(found: re.Match[str]) -> str:
    return "#".rjust(len(found[0]))


NAMED = (
    "checkpoint", "started", "uptime", "rows/s in", "rows/s done", "last rates", "lag", "state of groups", "durations",
    "failed",
)  # fmt: skip
PROPERTY = re.compile(rf"^  ({'|'.join(NAMED)})(  .*)?(\n    +.*)*$", re.MULTILINE)
MOMENT = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")
MEASURED = re.compile(r" *(\d[\d,]*\.\d+|[\d,]+ (s|min|days))(?= \|)|[▁-█]+")
MILLISECONDS = re.compile(r" +\d[\d,]{2,}(?= \|)")


def steady(name: str, shown: str) -> str:
    """A screen with # for what differs from run to run. The events are of 1998, all else is of today."""
    if name in LIVE:
        lines = shown.split("\n")
        at = next((n for n, line in enumerate(lines) if "counts: " in line), len(lines) - 1)
        parts = lines[at].split(" · ")
        lost = [part for part in parts[:1] if "late" in part]
        footer = " · ".join([*lost, *parts[len(lost) : len(lost) + 1], "…", *parts[-1:]])
        return "\n".join([*lines[:at], footer, *lines[at + 1 :]]).rstrip()
    shown = re.sub(r", [\d.]+ s\)", ", # s)", MOMENT.sub(lambda found: "#" * len(found[0]), shown))
    if name == "why":
        return shown.partition("\nSTOP QUERY")[0]  # the proposal has the rows in the order of files
    if name in ("queries", "progress", "batches"):
        shown = MILLISECONDS.sub(" #", MEASURED.sub(blank, shown))
    if name in ("progress", "batches"):
        return re.sub("-+", "-", re.sub(" +", " ", shown))
    return PROPERTY.sub(r"  \1 #", shown)


@pytest.fixture(scope="module")
def golden(console: Terminal) -> dict[str, str]:
    """All views at the golden width."""
    return views(console, GOLDEN_WIDTH)


def views(console: Terminal, width: int) -> dict[str, str]:
    """All views at a width, by their names, without what differs from run to run."""
    console.resize(width, LINES)
    return {name: steady(name, screen(console, typed)) for name, typed in (VIEWS | LIVE).items()}


def test_views_at_the_golden_width(golden: dict[str, str]) -> None:
    written = "".join(f"--- {name}\n{shown}\n" for name, shown in golden.items())
    if os.environ.get("UPDATE_SCREENS"):
        GOLDEN.write_text(written, "utf-8")
    assert written == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("width", OTHER_WIDTHS)
def test_every_view_fits_the_window(console: Terminal, golden: dict[str, str], width: int) -> None:
    for name, shown in views(console, width).items():
        if name in LIVE:  # a footer has fewer keys, and a chart fewer labels, where there is less room
            assert max(map(cells, shown.split("\n"))) <= width, name
        else:
            assert faults(shown, golden[name], width) == [], name


@pytest.mark.parametrize("width", (40, 80, 200))
def test_at_every_width_it_neither_lies_nor_loses(console: Terminal, width: int) -> None:
    console.resize(width, LINES)
    console.clear()
    console.type(
        "SELECT java_method('java.lang.Thread', 'sleep', 60000L) AS s FROM range(0, 1000000, 1, 1);\r"
    )
    console.until(r"; Ctrl-C cancels$")  # in one line, also where that is cut
    console.type("\x03")
    console.until(r"cancelling…|cancelled after", 1.0)
    shown = console.until(r"cancelled after \d.*^sql>\s*$")
    assert "stage" not in shown and "…; Ctrl-C" not in shown
    console.clear()
    console.run("DROP TABLE counts;", r"counts\s+is\s+a\s+live\s+table.*DROP LIVE TABLE\s+counts;.*^sql>\s*$")
    console.clear()
    console.run("DROP STREAM clicks;", r"clicks\s+is\s+read\s+by.*DROP STREAM clicks\s+CASCADE;.*^sql>\s*$")
    console.clear()
    shown = console.run("SHOW TABLES;", r"clicks.*counts.*\(3 rows.*^sql>\s*$")
    assert max(map(cells, shown.split("\n"))) <= width
