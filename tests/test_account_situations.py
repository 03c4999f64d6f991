"""Situations of a query × moments × places: the same figures, the right sentence, and what WHY proposes helps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import drop_tables
from data_files import put_whole
from test_accounts import agree, lost_rows, places
from test_reopened import Open, opened  # noqa: F401
from test_server import Host
from test_server import rows_of as rows_on
from test_server import run as run_on

from streamsql.errors import QueryFault
from streamsql.results import Why
from streamsql.runtime.console_session import Summary

ROOMS = (
    "streamsql/query_facts.py",
    "streamsql/runtime/queries/",
    "streamsql/features/why/",
    "streamsql/runtime/evidence/",
    "streamsql/runtime/handlers/",
    "streamsql/runtime/checkpoints/batch_history.py",
)
Step = tuple[str, str] | str | Callable[[Path], object]


@dataclass(frozen=True)
class Situation:
    """The query is q. FOLDER in a text is a folder of the test, with the folders s, l and r.

    defined: statements that define it. steps: what happens then, the query being idle before each of them: a file
    (its path, its text), statements, or a function of the folder.
    figures: the rows in, late and malformed rows, as SHOW QUERIES has them; out: the rows given to the sink; fates:
    what else became of the rows. code, verdict: of WHY, and how its sentence begins; restarted: its code after a
    restart, "" for the same one.
    shown: what a proposal shows that only shows something; rows: the rows of q once the proposal was typed.
    """

    defined: str
    steps: tuple[Step, ...]
    figures: tuple[str, str, str]
    out: int | None
    code: str
    verdict: str
    restarted: str = ""
    fates: tuple[tuple[str, str], ...] = ()
    shown: str = ""
    rows: tuple[tuple[Any, ...], ...] | None = None


MARK = "WITH WATERMARK at DELAY OF INTERVAL 1 MINUTES"
WINDOW = "window(at, '5 minutes')"
COUNTED = f"SELECT CAST({WINDOW}.end AS STRING) AS e, count(*) AS n FROM s GROUP BY {WINDOW}"
JOINED = "SELECT l.k, r.n FROM l JOIN r ON l.k = r.k"


def csv(
    more: str = "", columns: str = "k STRING, n INT, at TIMESTAMP", name: str = "s", options: str = ""
) -> str:
    return f"CREATE STREAM {name} ({columns}) USING csv OPTIONS (path 'FOLDER/{name}'{options}) {more};"


def table(select: str, mode: str = "") -> str:
    return f"CREATE LIVE TABLE q {f'OUTPUT MODE {mode}' if mode else ''} AS {select};"


def file(number: int, *rows: str) -> Step:
    return f"s/{number}.csv", "".join(f"{row}\n" for row in rows)


def grow(folder: Path) -> None:
    with open(folder / "s" / "1.csv", "a") as written:
        written.write("z,9,2024-05-01 16:00:00\n")
    later(folder)


def rewrite(folder: Path) -> None:
    (folder / "s" / "1.csv").write_text("z,9,2024-05-01 16:00:00\n")
    later(folder)


def later(folder: Path) -> None:
    moment = os.stat(folder / "s" / "1.csv").st_mtime + 5
    os.utime(folder / "s" / "1.csv", (moment, moment))


def of_the_future(folder: Path) -> None:
    (folder / "new.csv").write_text("f,8,2024-05-01 12:00:00\n")
    os.utime(folder / "new.csv", (1_925_000_000, 1_925_000_000))  # in 2031
    (folder / "new.csv").rename(folder / "s" / "2.csv")


def move(folder: Path) -> None:
    (folder / "out").rename(folder / "moved")


A, B, C = "a,1,2024-05-01 12:00:00", "b,2,2024-05-01 12:01:00", "a,3,2024-05-01 12:02:00"
FIRST, NEXT = file(1, A, B, C), file(2, "c,4,2024-05-01 15:00:00")
LATE = file(3, "a,5,2024-05-01 10:00:00", "b,6,2024-05-01 10:00:00", "c,7,2024-05-01 15:00:00")
BAD = "x,many,2024-05-01 15:01:00"
WELL, NOTHING_NEW = "nothing is wrong: ", "ALL_READ_BEFORE"
MERGED = "merged into groups"
BY_WINDOW = tuple(
    sorted([("2024-05-01 10:05:00", 2), ("2024-05-01 12:05:00", 3), ("2024-05-01 15:05:00", 2)])
)

SITUATIONS = {
    # ---- nothing is lost
    "all rows come out": Situation(
        csv() + table("SELECT k FROM s"), (FIRST, NEXT), ("4", "", ""), 4, "NOTHING_WRONG",
        WELL + "4 rows came out", NOTHING_NEW,
    ),
    "a filter": Situation(
        csv() + table("SELECT k FROM s WHERE n > 1"), (FIRST,), ("3", "", ""), 2, "NOTHING_WRONG",
        WELL + "2 rows came out", NOTHING_NEW, (("filtered", "at least 1"),),
    ),
    "groups": Situation(
        csv() + table("SELECT k, count(*) AS n FROM s GROUP BY k", "UPDATE"), (FIRST, NEXT), ("4", "", ""), 3,
        "NOTHING_WRONG", WELL + "3 rows came out", NOTHING_NEW,
        ((MERGED, "4"), ("rows out are", "one for each change of a group")),
    ),
    "groups of some rows": Situation(
        csv() + table("SELECT k, count(*) AS n FROM s WHERE n > 1 GROUP BY k", "UPDATE"), (FIRST,), ("3", "", ""), 2,
        "NOTHING_WRONG", WELL, NOTHING_NEW, (("merged into groups or filtered", "3"),),
    ),
    "complete": Situation(
        csv() + table("SELECT k, count(*) AS n FROM s GROUP BY k", "COMPLETE"), (FIRST, NEXT), ("4", "", ""), 5,
        "NOTHING_WRONG", WELL, NOTHING_NEW,
        ((MERGED, "4"), ("rows out are", "all groups after each micro-batch")),
    ),
    "one row of each key": Situation(
        csv() + table("SELECT DISTINCT ON (k) k, n FROM s"), (FIRST, NEXT), ("4", "", ""), 3, "NOTHING_WRONG",
        WELL + "3 rows came out", NOTHING_NEW, (("repeated", "1"),),
    ),
    "a join of streams": Situation(
        csv(columns="k STRING, n INT", name="l") + csv(columns="k STRING, n INT", name="r") + table(JOINED),
        (("l/1.csv", "a,1\nb,2\n"), ("r/1.csv", "a,3\n")), ("3", "", ""), 1, "NOTHING_WRONG",
        WELL + "1 row came out", NOTHING_NEW,
        (("kept for a partner", "3"),
         ("without a partner", "not known: Spark does not count the rows that leave the state without one")),
    ),
    "one window is open": Situation(
        csv(MARK) + table(COUNTED, "APPEND"), (FIRST, NEXT), ("4", "", ""), 1, "WINDOW_NOT_CLOSED",
        "1 group is still open: the next window, which ends at 2024-05-01 15:05:00", "",
        ((MERGED, "4"), ("groups still open", "1")), shown="2024, 5, 1, 15, 0",
    ),
    "rows are in a folder": Situation(
        csv() + "CREATE SINK o USING json OPTIONS (path 'FOLDER/out'); INSERT INTO o AS QUERY q SELECT k FROM s;",
        (FIRST,), ("3", "", ""), None, "ROWS_WRITTEN", WELL + "the rows are in ", NOTHING_NEW,
        (("rows out", "not known: the sink does not report it"),), "a",
    ),
    # ---- late and malformed rows
    "late rows": Situation(
        csv(MARK) + table(COUNTED, "UPDATE"), (FIRST, NEXT, LATE), ("7", "at least 1", ""), 3, "ROWS_LATE",
        "at least 1 row came behind the watermark", "", ((MERGED, "at most 6"),), "2024, 5, 1, 10, 0",
    ),
    "malformed rows": Situation(
        csv("ON MALFORMED SKIP") + table("SELECT k FROM s"), (file(1, A, B, C, BAD),), ("4", "", "1"), 3,
        "ROWS_UNREADABLE", "1 row of s cannot be read as declared, and was skipped; 3 rows came out", "", (), BAD,
    ),
    "late and malformed rows": Situation(
        csv(f"ON MALFORMED SKIP {MARK}") + table(COUNTED, "UPDATE"), (FIRST, NEXT, LATE, file(4, BAD)),
        ("8", "at least 1", "1"), 3, "ROWS_LATE", "at least 1 row came behind the watermark", "",
        ((MERGED, "at most 6"), ("also", "1 row of s cannot be read as declared, and was skipped; 3 rows came out")),
        "2024, 5, 1, 10, 0",
    ),
    "malformed rows are written elsewhere": Situation(
        "CREATE SINK bad USING json OPTIONS (path 'FOLDER/bad');" + csv("ON MALFORMED INTO bad")
        + table("SELECT k FROM s"), (file(1, A, BAD),), ("2", "", "1"), 1, "ROWS_UNREADABLE",
        "1 row of s cannot be read as declared, and was written into bad; 1 row came out", "", (), BAD,
    ),
    "late rows of a deduplication": Situation(
        csv(MARK) + table("SELECT DISTINCT ON (k) WITHIN WATERMARK k FROM s"), (FIRST, NEXT, LATE), ("7", "2", ""), 3,
        "ROWS_LATE", "2 rows came behind the watermark", "", (), "2024, 5, 1, 10, 0",
    ),
    "a longer delay keeps late rows": Situation(
        csv(MARK) + table(COUNTED, "APPEND"), (file(1, "c,4,2024-05-01 15:00:00"), file(2, "a,5,2024-05-01 10:00:00")),
        ("2", "at least 1", ""), 0, "ROWS_LATE", "at least 1 row came behind the watermark", "",
        ((MERGED, "at most 1"), ("groups still open", "1")), rows=(),
    ),
    "no row can be read": Situation(
        csv("ON MALFORMED SKIP", "n INT") + table("SELECT n FROM s"), (file(1, "one", "two"),), ("2", "", "2"), 0,
        "ROWS_UNREADABLE", "none of the 2 rows of s can be read as declared", rows=(("one",), ("two",)),
    ),
    # ---- files that are not read
    "a file that grew": Situation(
        csv() + table("SELECT k FROM s"), (FIRST, grow), ("3", "", ""), 3, "FILES_CHANGED",
        "1 file of s changed after q had read it: 1.csv; a file is read once",
        rows=(("a",), ("a",), ("b",), ("z",)),
    ),
    "a rewritten file with a malformed row": Situation(
        csv("ON MALFORMED SKIP") + table("SELECT k FROM s"), (file(1, A, BAD), rewrite), ("2", "", "1"), 1,
        "FILES_CHANGED", "1 file of s changed after q had read it", "",
        (("also", "1 row of s cannot be read as declared, and was skipped; 1 row came out"),), rows=(("z",),),
    ),
    "a file of the future": Situation(
        csv() + table("SELECT k FROM s"), (FIRST, of_the_future, file(3, B)), ("4", "", ""), 4, "FILES_TOO_OLD",
        "1 file of s is never read: the newest file, 2.csv, is dated 2031-01-01", "",
        rows=(("a",), ("a",), ("b",), ("b",), ("f",)),
    ),
    "a moved folder of a file sink": Situation(
        csv(name="l") + "CREATE SINK o USING csv OPTIONS (path 'FOLDER/out');",
        (("l/1.csv", "a,1,\nb,2,\n"), "INSERT INTO o TRIGGER AVAILABLE NOW SELECT k FROM l; AWAIT QUERY o; DROP QUERY o;", move,
         "CREATE STREAM s (k STRING) USING csv OPTIONS (path 'FOLDER/moved');" + table("SELECT k FROM s")),
        ("", "", ""), 0, "FILES_HIDDEN", "1 file of s is not read: a file sink has written ", rows=(("a",), ("b",)),
    ),
    "an empty folder": Situation(
        csv() + table("SELECT k FROM s"), (), ("", "", ""), 0, "NO_DATA", "no data: the folder ", "",
        shown="[]",
    ),
    "a pattern that matches no file": Situation(
        csv(options=", pathGlobFilter '*.txt'") + table("SELECT k FROM s"), (FIRST,), ("", "", ""), 0, "NO_DATA",
        "no data: the folder ", rows=(("a",), ("a",), ("b",)),
    ),
    # ---- no row comes out
    "no row passes": Situation(
        csv() + table("SELECT k FROM s WHERE upper(k) = 'Z'"), (FIRST,), ("3", "", ""), 0, "FILTERED_OUT",
        "the filter drops all rows: 3 rows in, 0 out", "", (("filtered", "at least 3"),),
        rows=(("a",), ("a",), ("b",)),
    ),
    "no group passes": Situation(
        csv() + table("SELECT k, count(*) AS n FROM s GROUP BY k HAVING count(*) > 2", "UPDATE"), (FIRST,), ("3", "", ""),
        0, "FILTERED_OUT", "HAVING drops all rows: 2 groups, none with count(*) > 2", rows=(("a", 2), ("b", 1)),
    ),
    "event times that cannot be read": Situation(
        csv(MARK) + table(COUNTED, "UPDATE"), (file(1, "a,1,25/05/2024 12:00:00", "b,2,26/05/2024 12:00:00"),),
        ("2", "", "2"), 0, "EVENT_TIME_UNREADABLE", "the event time at of s is NULL in 2 of 2 rows", "",
        rows=(("2024-05-25 12:05:00", 1), ("2024-05-26 12:05:00", 1)),
    ),
    "an event time of the future": Situation(
        csv(MARK) + table(COUNTED, "UPDATE"), (file(1, "a,1,2091-05-01 12:00:00"), file(2, A, B)),
        ("3", "at least 1", ""), 1, "EVENT_TIME_WRONG", "1 row of 2091-05-01 12:00:00 has moved the watermark of s",
        rows=(("2024-05-01 12:05:00", 2),),
    ),
    "other columns than declared": Situation(
        "CREATE STREAM s (k STRING, n INT) USING json OPTIONS (path 'FOLDER/s');"
        + table("SELECT k FROM s WHERE k > ''"), (("s/1.json", '{"name": "a"}\n'),), ("1", "", ""), 0,
        "ROWS_UNREADABLE", "all columns of s are NULL in its only row", shown="name",
    ),
    "keys in another form": Situation(
        csv(columns="k STRING, n INT", name="l") + csv(columns="k STRING, n INT", name="r") + table(JOINED),
        (("l/1.csv", "a,1\n"), ("r/1.csv", "A,3\n")), ("2", "", ""), 0, "NO_JOIN_PARTNER",
        "the join finds no partner: no value of l.k is one of r.k", "",
        (("kept for a partner", "2"),), rows=(("a", 3),),
    ),
    "all windows are open": Situation(
        csv(MARK) + table(COUNTED, "APPEND"), (FIRST,), ("3", "", ""), 0, "WINDOW_NOT_CLOSED",
        "1 group is still open: the next window, which ends at 2024-05-01 12:05:00", "",
        ((MERGED, "3"), ("groups still open", "1")), rows=(("2024-05-01 12:05:00", 3),),
    ),
    "a window of a values stream is open": Situation(
        f"CREATE STREAM s (k STRING, at TIMESTAMP) USING values {MARK};" + table(COUNTED, "APPEND"),
        ("INSERT INTO s VALUES ('a', '2024-05-01 12:00:00');",), ("1", "", ""), 0, "WINDOW_NOT_CLOSED",
        "1 group is still open: ", "", ((MERGED, "1"), ("groups still open", "1")),
        rows=(("2024-05-01 12:05:00", 1),),
    ),
    "a session is open": Situation(
        f"CREATE STREAM s (k STRING, at TIMESTAMP) USING values {MARK};"
        + table("SELECT k, count(*) AS n FROM s GROUP BY k, session_window(at, '5 minutes')", "APPEND"),
        ("INSERT INTO s VALUES ('a', '2024-05-01 12:00:00');",), ("1", "", ""), 0, "SESSION_OPEN",
        "1 session is still open: ", "", ((MERGED, "1"), ("groups still open", "1")), rows=(("a", 1),),
    ),
    "an outer join waits": Situation(
        f"""CREATE STREAM l (k STRING, at TIMESTAMP) USING values {MARK};
        CREATE STREAM r (k STRING, bt TIMESTAMP) USING values {MARK.replace(" at ", " bt ")};"""
        + table("SELECT l.k, bt FROM l LEFT JOIN r ON l.k = r.k AND bt BETWEEN at AND at + INTERVAL 1 HOUR"),
        ("INSERT INTO l VALUES ('a', '2024-05-01 12:00:00'); INSERT INTO r VALUES ('b', '2024-05-01 12:00:00');",),
        ("2", "", ""), 0, "STATE_WAITS", "2 rows of the join wait in state", "", (("kept for a partner", "2"),),
        rows=(("a", None),),
    ),
    "one stream holds the watermark": Situation(
        f"""CREATE STREAM l (k STRING, at TIMESTAMP) USING values {MARK};
        CREATE STREAM r (k STRING, at TIMESTAMP) USING values {MARK};"""
        + table(COUNTED.replace("FROM s", "FROM (SELECT * FROM l UNION ALL SELECT * FROM r)"), "APPEND"),
        ("""INSERT INTO l VALUES ('a', '2024-05-01 12:00:00'), ('a', '2024-05-01 13:00:00');
        INSERT INTO r VALUES ('b', '2024-05-01 12:00:00');""",),
        ("3", "", ""), 0, "WATERMARK_HELD", "the watermark stands at ", "WINDOW_NOT_CLOSED", rows=(("2024-05-01 12:05:00", 2),),
    ),
    "all keys were seen before": Situation(
        csv() + table("SELECT DISTINCT ON (k) k FROM s"), (FIRST, file(2, A)), ("4", "", ""), 2, "ALL_SEEN_BEFORE",
        "the newest row has a key that came out before", NOTHING_NEW, (("repeated", "2"),), "a",
    ),
    # ---- it does not run
    "stopped": Situation(
        csv() + table("SELECT k FROM s"), (FIRST, "STOP QUERY q;"), ("3", "", ""), 3, "NOT_RUNNING", "q is stopped",
        NOTHING_NEW, rows=(("a",), ("a",), ("b",)),
    ),
    "failed": Situation(
        csv(columns="k STRING, n STRING, at STRING") + table("SELECT CAST(n AS INT) AS n FROM s"), (FIRST, file(2, "x,y,z")),
        ("3", "", ""), 3, "NOT_RUNNING", "query q failed", "", rows=((None,), (1,), (2,), (3,)),
    ),
    "nothing was read": Situation(
        "CREATE STREAM s (k STRING) USING values;" + table("SELECT k FROM s"), (), ("", "", ""), 0, "NO_DATA",
        "no data: nothing was inserted into s yet", rows=(("a",),),
    ),
}  # fmt: skip


class Client:
    """A client of a server, with the methods of a console."""

    def __init__(self, host: Host) -> None:
        self.client = host.attach()
        self.session = SimpleNamespace(parts=host.session.parts, summary=self.summary)

    def summary(self) -> Summary:
        self.client._ask_for_facts()  # as it does each second
        return self.client.summary()

    def run(self, script: str) -> list[Any]:
        return [run_on(self.client, script)]

    def rows(self, script: str) -> list[tuple[Any, ...]]:
        return rows_on(self.client, script)


@pytest.fixture
def host(spark: Any, tmp_path: Path) -> Iterator[Host]:
    running = Host(tmp_path / "w", spark)
    yield running
    running.close()
    drop_tables(spark)


def come_about(console: Any, folder: Path, situation: Situation) -> None:
    """Define the query, and take the steps."""

    def type_in(text: str) -> None:
        console.run(text.replace("FOLDER", str(folder)))

    for name in ("s", "l", "r"):
        (folder / name).mkdir()
    for step in (situation.defined, *situation.steps):
        if isinstance(step, str):
            type_in(step)
        elif isinstance(step, tuple):
            put_whole(folder / step[0], step[1])
        else:
            step(folder)
        idle(console)


def idle(console: Any) -> None:
    running = console.session.parts.queries.all.get("q")
    if running is not None and not running.over:
        with suppress(QueryFault):  # WHY tells of it
            console.run("AWAIT QUERY q IDLE;")


def check(console: Any, situation: Situation, code: str) -> Why:
    """Every place has the account of the situation, and WHY the sentence. Returns what WHY answers."""
    stream = "l" if "FROM l" in situation.defined else "s"
    told = places(console, "q", stream)
    agree(told, *situation.figures)
    assert told.why.code == code, told.why
    if code == situation.code:
        assert told.why.verdict.startswith(situation.verdict), told.why.verdict
    assert told.shown["rows out"] in (situation.out, None), told.shown
    for fate, amount in situation.fates:
        assert any(name == fate and str(value).startswith(amount) for name, value in told.why.rows), told.why
        if fate != "also":
            assert str(told.described[fate]) == amount, told.described
    if any(situation.figures[1:]):
        assert told.script.startswith(f"q: {', '.join(lost_rows(*situation.figures[1:]))}, "), told.script
    else:
        assert not told.script
    return told.why


def type_proposal(console: Any, situation: Situation, why: Why) -> None:
    """What WHY proposes helps: it shows what is asked for, or the situation is gone and the rows are right."""
    if situation.rows is None:
        assert bool(why.proposal) == bool(situation.shown), why.proposal
        if situation.shown:
            assert situation.shown in str(
                [(getattr(r, "columns", ""), getattr(r, "rows", r)) for r in console.run(why.proposal)]
            )
        return
    console.run(why.proposal)
    idle(console)
    assert sorted(console.rows("SELECT * FROM q;"), key=str) == sorted(situation.rows, key=str), why.proposal
    assert console.run("WHY q;")[0].verdict != why.verdict


NAMES = list(SITUATIONS)


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_console(opened: Open, tmp_path: Path, name: str) -> None:  # noqa: F811
    console, situation = opened(), SITUATIONS[name]
    come_about(console, tmp_path, situation)
    type_proposal(console, situation, check(console, situation, situation.code))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "failed"])
def test_after_a_restart(opened: Open, tmp_path: Path, name: str) -> None:  # noqa: F811
    console, situation = opened(), SITUATIONS[name]
    come_about(console, tmp_path, situation)
    console = opened()
    shown = console.run("SHOW QUERIES;")[0]
    row = dict(zip(shown.columns, shown.rows[0], strict=True))  # type: ignore[attr-defined]
    described = dict(console.rows("DESCRIBE QUERY q;"))
    for place in (row, described):  # while it is stopped
        figures = tuple(str(place.get(column) or "") for column in ("rows in", "late rows", "malformed"))
        assert figures == situation.figures
    why = console.run("WHY q;")[0]
    assert isinstance(why, Why) and why.code == "NOT_RUNNING" and why.proposal == "START QUERY q;"
    console.run(why.proposal)
    idle(console)
    code = situation.restarted or situation.code
    answered = check(console, situation, code)
    if code == NOTHING_NEW:
        assert not answered.proposal, answered
    else:
        type_proposal(console, situation, answered)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_client_of_a_server(host: Host, tmp_path: Path, name: str) -> None:
    client, situation = Client(host), SITUATIONS[name]
    come_about(client, tmp_path, situation)
    type_proposal(client, situation, check(client, situation, situation.code))
