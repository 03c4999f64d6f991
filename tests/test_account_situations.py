"""Situations of a query × places: the same figures, the right sentence, and what is proposed helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from scripts import run_here
from test_accounts import agree, places, put
from test_reopened import Open, opened  # noqa: F401
from test_server import Host

from streamsql.errors import Source
from streamsql.results import Why

ROOMS = (
    "streamsql/query_facts.py",
    "streamsql/runtime/queries/",
    "streamsql/features/why/",
    "streamsql/runtime/evidence/",
    "streamsql/runtime/handlers/",
    "streamsql/runtime/checkpoints/batch_history.py",
)
MARK = "WITH WATERMARK at DELAY OF INTERVAL 1 MINUTES"
WINDOW = "window(at, '5 minutes')"


@dataclass(frozen=True)
class Situation:
    """files: those that a query reads, one after the other, as lines of csv; figures: its rows in, late and malformed
    rows; out: the rows given to its sink; fates: what else became of the rows, of the properties of DESCRIBE and WHY;
    verdict: how the sentence of WHY begins; after: the rows of the live table once the proposal was typed, None where
    none is proposed.
    """

    select: str
    files: tuple[str, ...]
    figures: tuple[str, str, str]
    out: int | None
    verdict: str
    code: str
    fates: dict[str, str] | None = None
    columns: str = "k STRING, n INT, at TIMESTAMP"
    more: str = MARK
    mode: str = ""
    proposal: str = ""


ROWS = "a,1,2024-05-01 12:00:00\nb,2,2024-05-01 12:01:00\na,3,2024-05-01 12:02:00\n"
NEXT = "c,4,2024-05-01 15:00:00\n"
BAD = "x,many,2024-05-01 15:01:00\n"
LATE = "a,5,2024-05-01 10:00:00\nb,6,2024-05-01 10:00:00\n"
SITUATIONS = {
    "filter": Situation(
        "SELECT k FROM {s} WHERE n > 1", (ROWS,), ("3", "", ""), 2, "nothing is wrong: 2 rows came out", "NOTHING_WRONG",
        {"filtered": "at least 1"}, more="",
    ),
    "all": Situation(
        "SELECT k FROM {s}", (ROWS, NEXT), ("4", "", ""), 4, "nothing is wrong: 4 rows came out", "NOTHING_WRONG", {}, more="",
    ),
    "nothing passes": Situation(
        "SELECT k FROM {s} WHERE upper(k) = 'Z'", (ROWS,), ("3", "", ""), 0, "the filter", "FILTERED_OUT", {"filtered": "at least 3"},
        more="",
    ),
    "groups": Situation(
        "SELECT k, count(*) AS n FROM {s} GROUP BY k", (ROWS, NEXT), ("4", "", ""), 3, "nothing is wrong: 3 rows came out",
        "NOTHING_WRONG", {"merged into groups": "4", "rows out are": "one for each change of a group"}, more="", mode="UPDATE",
    ),
    "groups of some": Situation(
        "SELECT k, count(*) AS n FROM {s} WHERE n > 1 GROUP BY k", (ROWS,), ("3", "", ""), 2, "nothing is wrong", "NOTHING_WRONG",
        {"merged into groups or filtered": "3"}, more="", mode="UPDATE",
    ),
    "complete": Situation(
        "SELECT k, count(*) AS n FROM {s} GROUP BY k", (ROWS, NEXT), ("4", "", ""), 5, "nothing is wrong: 5 rows came out",
        "NOTHING_WRONG", {"merged into groups": "4", "rows out are": "all groups after each micro-batch"}, more="",
        mode="COMPLETE",
    ),
    "open windows": Situation(
        f"SELECT {WINDOW}.end AS e, count(*) AS n FROM {{s}} GROUP BY {WINDOW}", (ROWS, NEXT), ("4", "", ""), 1,
        "1 group is still open: the next window, which ends at 2024-05-01 15:05:00", "WINDOW_NOT_CLOSED",
        {"merged into groups": "4", "groups still open": "1"}, mode="APPEND",
    ),
    "repeated": Situation(
        "SELECT DISTINCT ON (k) k, n FROM {s}", (ROWS, NEXT), ("4", "", ""), 3, "nothing is wrong: 3 rows came out", "NOTHING_WRONG",
        {"repeated": "1"}, more="",
    ),
    "malformed": Situation(
        "SELECT k FROM {s}", (ROWS + BAD,), ("4", "", "1"), 3, "1 row of {s} cannot be read as declared", "ROWS_UNREADABLE", {},
        more="ON MALFORMED SKIP", proposal="x,many,2024-05-01 15:01:00",
    ),
    "late": Situation(
        f"SELECT {WINDOW}.end AS e, count(*) AS n FROM {{s}} GROUP BY {WINDOW}", (ROWS + NEXT, LATE + NEXT), ("7", "at least 1", ""),
        3, "at least 1 row came behind the watermark", "ROWS_LATE", {"merged into groups": "at most 6"}, mode="UPDATE",
        proposal="datetime.datetime(2024, 5, 1, 10, 0)",
    ),
    "late and malformed": Situation(
        f"SELECT {WINDOW}.end AS e, count(*) AS n FROM {{s}} GROUP BY {WINDOW}", (ROWS + NEXT, LATE + NEXT + BAD),
        ("8", "at least 1", "1"), 3, "at least 1 row came behind the watermark", "ROWS_LATE",
        {"merged into groups": "at most 6"}, mode="UPDATE", more=f"ON MALFORMED SKIP {MARK}", proposal="datetime.datetime(2024, 5, 1, 10, 0)",
    ),
    "no data": Situation("SELECT k FROM {s}", (), ("", "", ""), 0, "no data: the folder", "NO_DATA", {}, more=""),
}  # fmt: skip


def fed(console: Any, folder: Path, name: str, situation: Situation) -> None:
    """The stream and the live table of a situation, after all of its files were read, one in each micro-batch."""
    folder.mkdir()
    console.run(
        f"""CREATE STREAM s_{name} ({situation.columns}) USING csv OPTIONS (path '{folder}') {situation.more};
        CREATE LIVE TABLE {name} {f"OUTPUT MODE {situation.mode}" * bool(situation.mode)} AS
          {situation.select.format(s=f"s_{name}")};"""
    )
    for number, rows in enumerate(situation.files):
        put(folder / f"{number}.csv", rows)
        console.run(f"AWAIT QUERY {name} IDLE;")


@pytest.mark.slow
def test_each_place_has_the_same_figures_and_the_right_sentence(console: Console, tmp_path: Path) -> None:
    named = {f"q{number}": situation for number, situation in enumerate(SITUATIONS.values())}
    for name, situation in named.items():
        fed(console, tmp_path / name, name, situation)
    for (name, situation), title in zip(named.items(), SITUATIONS, strict=True):
        told = places(console, name, f"s_{name}")
        if situation.figures[0]:
            agree(told, *situation.figures)
        assert told.why.code == situation.code, (title, told.why)
        assert told.why.verdict.startswith(situation.verdict.format(s=f"s_{name}")), (title, told.why.verdict)
        if situation.out is not None:
            assert told.shown["rows out"] in (situation.out, None), (title, told.shown)
        for fate, amount in (situation.fates or {}).items():
            assert str(told.described[fate]) == amount, (title, told.described)
            if told.why.code == "NOTHING_WRONG":
                assert str(dict(told.why.rows)[fate]) == amount, (title, told.why.rows)
        if situation.proposal:
            assert situation.proposal in str(console.rows(told.why.proposal)), (title, told.why.proposal)
        elif told.why.code in ("NOTHING_WRONG", "WINDOW_NOT_CLOSED"):
            assert "DROP" not in told.why.proposal and "FROM BEGINNING" not in told.why.proposal, title


@pytest.mark.slow
def test_a_join_of_streams_keeps_rows_for_a_partner(console: Console, tmp_path: Path) -> None:
    for name in ("l", "r"):
        (tmp_path / name).mkdir()
        console.run(f"CREATE STREAM {name} (k STRING, n INT) USING csv OPTIONS (path '{tmp_path / name}');")
        put(tmp_path / name / "1.csv", "a,1\nb,2\n" if name == "l" else "a,3\n")
    console.run("CREATE LIVE TABLE j AS SELECT l.k, r.n FROM l JOIN r ON l.k = r.k; AWAIT QUERY j IDLE;")
    told = places(console, "j", "l")
    agree(told, "3", "", "")
    assert told.why.verdict.startswith("nothing is wrong: 1 row came out")
    for shown in (told.described, dict(told.why.rows)):
        assert str(shown["kept for a partner"]) == "3"
        assert shown["without a partner"].startswith("not known: Spark does not count")


@pytest.mark.slow
def test_late_and_malformed_rows_before_and_after_a_restart(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    console, situation = opened(), SITUATIONS["late and malformed"]
    fed(console, tmp_path / "in", "u", situation)
    before = places(console, "u", "s_u")
    agree(before, *situation.figures)
    assert "1 row of s_u cannot be read as declared" in dict(before.why.rows)["also"]
    console = opened()

    def told() -> tuple[Any, ...]:
        shown = console.run("SHOW QUERIES;")[0]
        row = dict(zip(shown.columns, shown.rows[0], strict=True))  # type: ignore[attr-defined]
        described = dict(console.rows("DESCRIBE QUERY u;"))
        names = ("rows in", "late rows", "malformed")
        return (*(str(row[name]) for name in names), *(str(described[name]) for name in names))

    assert told() == situation.figures * 2  # while it is stopped
    why = console.run("WHY u;")[0]
    assert isinstance(why, Why) and why.verdict.startswith("u does not run in this console")
    console.run(f"{why.proposal} AWAIT QUERY u IDLE;")
    assert told() == situation.figures * 2
    after = places(console, "u", "s_u")
    agree(after, *situation.figures)
    assert (before.why.code, after.why.code) == ("ROWS_LATE", "ALL_READ_BEFORE")
    also = [str(value) for name, value in after.why.rows if name == "also"]
    assert [text.partition(" of s_u")[0].partition(" behind")[0] for text in also] == [
        "at least 1 row came",
        "1 row",
    ]


def test_the_last_line_of_a_script_has_the_account(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "1.csv", ROWS + BAD)
    script = f"""CREATE STREAM s (k STRING, n INT, at TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/in') ON MALFORMED SKIP;
        CREATE LIVE TABLE u TRIGGER AVAILABLE NOW AS SELECT k FROM s WHERE n > 1; AWAIT QUERY u;"""
    outcome = run_here(spark, tmp_path, Source("a.sql", script))
    assert outcome.code == 0
    assert "note: u: 1 malformed, 4 rows in, 2 rows out" in outcome.err.splitlines()[-1]


@pytest.fixture
def host(spark: Any, tmp_path: Path) -> Iterator[Host]:
    running = Host(tmp_path / "workspace", spark)
    yield running
    running.close()


class Attached:
    """A client of a server, with the methods of a console that `fed` needs."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def run(self, script: str) -> list[Any]:
        from test_server import run

        return [run(self.session, script)]


@pytest.mark.slow
def test_a_client_of_a_server_is_told_the_same(host: Host, tmp_path: Path) -> None:
    client, situation = Attached(host.attach(interactive=True)), SITUATIONS["late and malformed"]
    fed(client, tmp_path / "in", "u", situation)
    [shown], [described] = client.run("SHOW QUERIES;"), client.run("DESCRIBE QUERY u;")
    row, pairs = dict(zip(shown.columns, shown.rows[0], strict=True)), dict(described.rows)
    for name, figure in zip(("rows in", "late rows", "malformed"), situation.figures, strict=True):
        assert (str(row[name]), str(pairs[name])) == (figure, figure)
    [why] = client.run("WHY u;")
    assert isinstance(why, Why) and (why.code, why.proposal) == (
        "ROWS_LATE",
        "SELECT * FROM LATE ROWS OF QUERY u;",
    )
    [live] = client.run("WATCH u;")
    assert str(live.status().account.late) == "at least 1" and str(live.status().account.malformed) == "1"
    live.close()
    assert not notes_of(shown)
    client.run("DROP LIVE TABLE u;")
