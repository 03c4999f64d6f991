"""Views of the console as golden screens, rendered from data without Spark; test_screens has those of a run.

UPDATE_GOLDEN=1 pytest writes them anew; read the difference.
"""

from __future__ import annotations

import datetime as dt
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from screen_words import faults

from streamsql.errors import Source, cells
from streamsql.language.parser import parse, split_script
from streamsql.language.topics import topics
from streamsql.output.live_frames import View, frame
from streamsql.output.printer import Printer
from streamsql.query_facts import Account, Amount, QueryFacts
from streamsql.results import Live, Result, Snapshot
from streamsql.runtime.handlers.help import DIRECT

GOLDEN = Path(__file__).parent / "golden" / "views.txt"
GOLDEN_WIDTH = 80
OTHER_WIDTHS = (40, 60, 110, 200)


def printed(result: Result, width: int) -> str:
    """What a window of that width shows of a result."""
    screen = io.StringIO()
    Printer("table", screen, screen, width=lambda: width, height=lambda: 1_000).show(result)
    return screen.getvalue()


def answer(text: str) -> Result:
    """The answer to a statement about the console itself."""
    statement = parse(split_script(Source("sql", text))[0])
    return DIRECT[type(statement)](None, statement)  # type: ignore[arg-type]


STATEMENTS = (
    "HELP preferences;", "SHOW CONNECTORS;", "DESCRIBE CONNECTOR rate;", "DESCRIBE CONNECTOR socket;",
)  # fmt: skip

NOON = dt.datetime(2024, 5, 1, 12)
PER_USER = [
    (NOON - dt.timedelta(days=2), "ann", 4, 0.5),  # far from the others
    *(
        (NOON + dt.timedelta(minutes=m), u, m * k % 7, 0.5)
        for m in range(12)
        for k, u in ((1, "ann"), (2, "bob"))
    ),
]
DENSE = [
    (NOON + dt.timedelta(minutes=m), u, (m * k) % 17, 0.5)
    for m in range(90)
    for k, u in ((1, "ann"), (3, "bob"), (5, "eve"))
]
"""Three lines of so many points that they would hide one another."""
STATUS = QueryFacts(
    "counts",
    account=Account(
        Amount(12_345), late=Amount(2, at_least=True), malformed=Amount(1), state=(("stateStoreSave", 1),)
    ),
    rows_per_second=25.4,
    watermark="2024-05-01 12:01:00",
)
FAILED = replace(STATUS, status="FAILED", error="query counts failed: the value 'x' of user is no INT")


def live(rows: list[tuple[Any, ...]], status: QueryFacts = STATUS, **more: Any) -> Live:
    """The result of WATCH counts."""

    def take(count: int, first: int | None, order: object) -> Snapshot:
        numeric = (False, False, True, True)
        at = max(0, len(rows) - count) if first is None else first
        return Snapshot(
            ("since", "user", "n", "share"), numeric, rows[at : at + count], len(rows), at, batch=7
        )

    def changes(count: int, first: int | None, order: object) -> Snapshot:
        told = [(op, *row) for op, row in zip(("+I", "-U", "+U", "-D"), rows, strict=False)]
        columns = ("op", "since", "user", "n", "share")
        return Snapshot(columns, (False, False, False, True, True), told, len(told), batch=7, changes=True)

    return Live((), "counts", take, changes, status=lambda: status, **more)


BY_WORD = [(None, f"{'long ' * 9}word {n}" if n == 5 else f"word {n}", n * n, n / 4 - 2) for n in range(30)]
FRAMES = {
    "WATCH counts;": (live(PER_USER), View(height=14)),
    "WATCH counts; p, s and right": (
        live(PER_USER[:6]), View(height=14, paused=True, column=1, order=("n", True), now="updated 12:00:01"),
    ),
    "WATCH counts AS CHANGES;": (live(PER_USER), View(height=14, mode="changes")),
    "WATCH counts; of a query that failed": (live(PER_USER[:3], FAILED), View(height=14)),
    "WATCH counts; without rows": (live([], QueryFacts("counts")), View(height=14)),
    "WATCH counts AS CHART (since, n, user);": (
        live(PER_USER, chart=("since", "n", "user")), View(height=20, mode="chart"),
    ),
    "WATCH counts AS CHART (since, n);": (
        live(PER_USER, chart=("since", "n")), View(height=18, mode="chart"),
    ),
    "WATCH counts AS CHART (since, n); of many rows": (
        live(DENSE, chart=("since", "n", "user")), View(height=20, mode="chart"),
    ),
    "WATCH counts AS CHART (user, share);": (
        live(BY_WORD, chart=("user", "share")), View(height=18, mode="chart"),
    ),
}  # fmt: skip
KEYS = ((0, "q leave"), (2, "? keys"))


def framed(live: Live, view: View) -> str:
    shown = frame(live, view, KEYS)
    assert len(shown.lines) + len(shown.footer) <= view.height
    return "".join(f"{line}\n" for line in (*shown.lines, *shown.footer))


def views(width: int) -> dict[str, str]:
    """All views at a width, by what was typed."""
    answers = {text: printed(answer(text), width) for text in STATEMENTS}
    frames = {text: framed(result, replace(view, width=width)) for text, (result, view) in FRAMES.items()}
    return answers | frames


def test_views_at_the_golden_width() -> None:
    shown = "".join(f"--- {text}\n{view}" for text, view in views(GOLDEN_WIDTH).items())
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(shown, "utf-8")
    assert shown == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("width", OTHER_WIDTHS)
def test_views_fit_their_window(width: int) -> None:
    golden = views(GOLDEN_WIDTH)
    for text, view in views(width).items():
        if text in FRAMES:  # a footer has fewer keys, and a chart fewer labels, where there is less room
            assert max(map(cells, view.split("\n"))) <= width, text
        else:
            assert faults(view, golden[text], width) == [], text


@pytest.mark.parametrize("width", OTHER_WIDTHS)
def test_rows_of_live_views_are_whole_at_any_width(width: int) -> None:
    for text, (result, view) in FRAMES.items():
        if view.mode == "chart":
            continue
        golden, shown = (frame(result, replace(view, width=w), KEYS).lines for w in (GOLDEN_WIDTH, width))
        assert faults("\n".join(shown), "\n".join(golden), width) == [], text


@pytest.mark.parametrize("width", (GOLDEN_WIDTH, *OTHER_WIDTHS))
def test_topics_fit_their_window(width: int) -> None:
    for topic in ("", *topics()):
        assert max(map(cells, printed(answer(f"HELP {topic};"), width).split("\n"))) <= width, topic
