"""A query that writes into a sink is changed beside it, compared with it, and put in its place."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker import Broker
from conftest import Console, notes_of
from failing_disk import STEPS, Crash, Disk
from test_change import IDLE, ROWS, STREAM, crashing, refusal, said
from test_reopened import Open, opened  # noqa: F401  the fixture

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")

OLD = "SELECT k, sum(n) AS total FROM s GROUP BY k"
NEW = "SELECT k, sum(n) AS total FROM s WHERE n > 1 AND k <> 'b' GROUP BY k"


@pytest.fixture
def table(packages: Callable[[str], None], tmp_path: Path) -> Callable[[], list[tuple[Any, ...]]]:
    """The rows of the table of the sink `out`."""
    packages("sqlite")

    def rows() -> list[tuple[Any, ...]]:
        with sqlite3.connect(tmp_path / "x.db") as connection:
            return connection.execute("SELECT k, total FROM t ORDER BY k").fetchall()

    return rows


def keyed(folder: Path) -> str:
    return f"CREATE SINK out USING jdbc KEY (k) OPTIONS (url 'jdbc:sqlite:{folder}/x.db', table 't');"


def test_a_keyed_sink_gets_upserts_and_deletes(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    assert said_started(console, f"INSERT INTO out STAGED AS QUERY q {NEW};") == "staged change of q started"
    console.run(IDLE)
    assert table() == [("a", 4), ("b", 2)], "its sink is not touched"
    assert [row[:3] for row in console.rows("SHOW STAGED;")] == [("q", "query", "running")]
    assert [row[0] for row in console.rows("SHOW QUERIES;")] == ["q", "q$staged"]
    assert console.rows("SHOW LIVE TABLES;") == []
    compared = console.run("COMPARE QUERY q;")[-1]
    assert notes_of(compared) == ("2 rows before, 1 after: 1 only before, 1 changed",)
    assert compared.rows == [  # type: ignore[attr-defined]
        ("before", "total", "a", 4), ("after", "total", "a", 3), ("only before", "", "b", 2),
    ]  # fmt: skip
    assert said(console, "PROMOTE q;").startswith("q is promoted: generation 2 is in use; ")
    assert table() == [("a", 3)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('a', 10), ('b', 9), ('c', 7), ('d', 1);" + IDLE)
    assert table() == sorted(console.rows(f"{NEW};")), "it goes on from the checkpoint of the change"
    again = opened()
    assert again.warnings == [] and again.notes == []
    assert "n > 1" in again.rows("SHOW GENERATIONS OF q;")[0][-1]
    again.run("START QUERY ALL; INSERT INTO s VALUES ('c', 5);" + IDLE)
    assert table() == sorted(again.rows(f"{NEW};"))


def said_started(console: Any, text: str) -> str:
    return str(console.run(text)[-1].message)


def test_a_change_with_other_columns_and_a_key_that_comes_often(
    console: Console, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    """In output mode append the last row of a key counts, as in the table."""
    console.run(
        STREAM + keyed(tmp_path) + "INSERT INTO out AS QUERY q SELECT k, n AS total FROM s;" + ROWS + IDLE
    )
    assert table() == [("a", 3), ("b", 2)]
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, n * 10 AS total FROM s WHERE k <> 'b';" + IDLE)
    console.run("PROMOTE QUERY q;")
    assert table() == [("a", 30)]
    console.run("INSERT INTO s VALUES ('b', 8), ('a', 5);" + IDLE)
    assert table() == [("a", 50)]


def test_from_now_a_keyed_sink_keeps_what_was_written(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    console.run(
        "INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, max(n) AS total FROM s GROUP BY k;" + IDLE
    )
    console.run("INSERT INTO s VALUES ('c', 1);" + IDLE + "PROMOTE q;")
    assert table() == [("a", 4), ("b", 2), ("c", 1)]
    console.run("INSERT INTO s VALUES ('c', 5), ('b', 1);" + IDLE)
    assert table() == [("a", 4), ("b", 1), ("c", 5)]
    assert "brings generation" not in said(console, "ROLLBACK q;"), "the one before began FROM NOW"
    assert table() == sorted(console.rows(f"{OLD};")) == [("a", 4), ("b", 3), ("c", 6)]
    fault = refusal(console, "ROLLBACK q;")
    assert fault.message == "generation 2 of q cannot come back: it began FROM NOW"
    console.run(
        "INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, max(n) AS total FROM s GROUP BY k;"
        "PROMOTE q; INSERT INTO s VALUES ('c', 2);" + IDLE
    )
    assert table() == [("a", 4), ("b", 3), ("c", 2)]


def files(folder: Path) -> str:
    return f"CREATE SINK out USING json OPTIONS (path '{folder}/out');"


def written(console: Any, folder: Path) -> list[tuple[Any, ...]]:
    return sorted(console.rows(f"SELECT k, n FROM json.`{folder}/out`;"))


def test_files_from_now_have_each_row_once(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + files(tmp_path) + "INSERT INTO out AS QUERY q SELECT k, n FROM s;")
    for n in range(4):
        console.run(f"INSERT INTO s VALUES ('old', {n});" + IDLE)
    console.run("INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, -n AS n FROM s;" + IDLE)
    console.run("INSERT INTO s VALUES ('still old', 1);" + IDLE)
    console.run("STOP QUERY q$staged; INSERT INTO s VALUES ('still old', 2); START QUERY q$staged;")
    assert said(console, "PROMOTE q;").startswith("q is promoted: generation 2")
    console.run("INSERT INTO s VALUES ('new', 1);" + IDLE + "INSERT INTO s VALUES ('new', 2);" + IDLE)
    expected = [("new", -2), ("new", -1), *(("old", n) for n in range(4)), ("still old", 1), ("still old", 2)]
    assert written(console, tmp_path) == expected
    fault = refusal(console, "ROLLBACK q;")
    assert (fault.code, fault.hint) == ("ROWS_TWICE", "ROLLBACK q WITH DUPLICATES;")
    console.run(fault.hint + IDLE)
    again = [*expected, ("new", 1), ("new", 2)]
    assert written(console, tmp_path) == sorted(again), "what came since is there twice"
    third = opened()
    assert third.warnings == []
    third.run("START QUERY ALL; INSERT INTO s VALUES ('then', 1);" + IDLE)
    assert written(third, tmp_path) == sorted([*again, ("then", 1)])


def test_files_with_duplicates_have_all_rows_of_the_change(opened: Open, tmp_path: Path) -> None:
    console = opened()
    console.run(STREAM + files(tmp_path) + "INSERT INTO out AS QUERY q SELECT k, n FROM s;")
    for n in range(3):
        console.run(f"INSERT INTO s VALUES ('a', {n});" + IDLE)
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, n + 10 AS n FROM s WHERE n > 0;" + IDLE)
    fault = refusal(console, "PROMOTE q;")
    assert fault.code == "ROWS_TWICE"
    assert fault.hint.startswith("PROMOTE q WITH DUPLICATES;")
    assert written(console, tmp_path) == [("a", 0), ("a", 1), ("a", 2)]
    console.run("PROMOTE q WITH DUPLICATES;" + IDLE)
    assert written(console, tmp_path) == [("a", 0), ("a", 1), ("a", 2), ("a", 11), ("a", 12)]
    again = opened()
    assert again.warnings == []
    again.run("START QUERY ALL; INSERT INTO s VALUES ('a', 5);" + IDLE)
    assert written(again, tmp_path)[-1] == ("a", 15)
    assert len(written(again, tmp_path)) == 6


WINDOWS = "SELECT window.start AS w, count(*) AS n FROM s {} GROUP BY window(at, '10 minutes')"
TIMED = "CREATE STREAM s (k STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 0 MINUTES;"


def at(*minutes: int) -> str:
    rows = ", ".join(f"('k', TIMESTAMP '2024-05-01 12:{minute:02}:00')" for minute in minutes)
    return f"INSERT INTO s VALUES {rows};" + IDLE


def test_windows_go_on_with_their_state(
    opened: Open, packages: Callable[[str], None], tmp_path: Path
) -> None:
    """A window that is open at PROMOTE has its rows from before; each window is written once."""
    packages("sqlite")
    console = opened()
    console.run(
        TIMED + f"CREATE SINK out USING jdbc OPTIONS (url 'jdbc:sqlite:{tmp_path}/x.db', table 't');"
        f"INSERT INTO out AS QUERY q OUTPUT MODE APPEND {WINDOWS.format('')};"
    )
    staged = WINDOWS.format("WHERE minute(at) <> 12").replace("count(*)", "count(*) * 100")
    console.run(
        f"INSERT INTO out STAGED AS QUERY q FROM NOW OUTPUT MODE APPEND {staged};" + at(1, 2, 11, 12, 13)
    )
    console.run("PROMOTE q;")

    def windows() -> list[tuple[str, int]]:
        with sqlite3.connect(tmp_path / "x.db") as connection:
            return [(w[14:16], n) for w, n in connection.execute("SELECT strftime('%Y-%m-%d %H:%M', w / 1000,"
                    " 'unixepoch') AS w, n FROM t ORDER BY w")]  # fmt: skip

    assert windows() == [("00", 2)]
    console.run(at(15) + at(25) + at(40))
    assert windows() == [("00", 2), ("10", 300), ("20", 100)]
    again = opened()
    again.run("START QUERY ALL;" + at(55))
    assert windows() == [("00", 2), ("10", 300), ("20", 100), ("40", 100)]


def test_a_change_is_there_on_the_next_day(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + IDLE)
    again = opened()
    assert again.warnings == [] and again.notes == []
    assert [row[:3] for row in again.rows("SHOW STAGED;")] == [("q", "query", "stopped")]
    assert refusal(again, "PROMOTE q;").hint == "START QUERY `q$staged`;"
    again.run("START QUERY q$staged;")
    fault = refusal(again, "PROMOTE q;")
    assert fault.hint == "START QUERY `q$before$staged`;"
    again.run("START QUERY ALL; INSERT INTO s VALUES ('a', 5), ('z', 1);" + IDLE)
    assert table() == [("a", 9), ("b", 2), ("z", 1)]
    assert notes_of(again.run("COMPARE QUERY q KEY (k);")[-1])[-1].endswith("2 only before, 1 changed")
    again.run("PROMOTE q;")
    assert table() == [("a", 8)]
    third = opened()
    assert third.warnings == [] and third.notes == []
    assert third.rows("SHOW STAGED;") == []
    third.run("START QUERY ALL; INSERT INTO s VALUES ('a', 2);" + IDLE)
    assert table() == [("a", 10)]


def test_a_live_table_and_a_query_are_promoted_together(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(
        STREAM
        + ROWS
        + keyed(tmp_path)
        + f"INSERT INTO out AS QUERY q {OLD}; CREATE LIVE TABLE live AS {OLD};"
    )
    console.run(
        f"INSERT INTO out STAGED AS QUERY q {NEW}; CREATE OR REPLACE LIVE TABLE live STAGED AS {NEW};" + IDLE
    )
    assert said(console, "PROMOTE live, q;").startswith("live, q are promoted: generations 2, 2 are in use")
    assert table() == console.rows("SELECT * FROM live;") == [("a", 3)]


def test_dropped_and_staged_again(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console, folder = opened(), tmp_path / "w/run/queries"
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + IDLE)
    assert said(console, "DROP STAGED q;") == "staged change of q dropped"
    assert not (folder / "q/staged").is_symlink() and not (folder / "q%24before").exists()
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW}; INSERT INTO out STAGED AS QUERY q {OLD};" + IDLE)
    assert notes_of(console.run("COMPARE QUERY q;")[-1]) == ("2 rows before, 2 after: no difference",)
    console.run("DROP QUERY q;")
    assert console.rows("SHOW STAGED;") == console.rows("SHOW QUERIES;") == []
    assert opened().warnings == []


def test_a_keyed_sink_is_rolled_back_by_the_difference(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = opened()
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};")
    promoted = said(console, "PROMOTE q;")
    assert promoted == "q is promoted: generation 2 is in use; ROLLBACK q; brings generation 1 back"
    console.run("INSERT INTO s VALUES ('c', 1), ('d', 5), ('b', 7);" + IDLE)
    assert table() == [("a", 3), ("d", 5)]
    console = opened()
    console.run("START QUERY ALL;" + IDLE)
    back = said(console, "ROLLBACK q WITH DUPLICATES;")
    assert (
        back
        == "q is rolled back: generation 3 is in use; ROLLBACK q; brings generation 2 back; out gets the difference by key"
    )
    assert table() == sorted(console.rows(f"{OLD};")) == [("a", 4), ("b", 9), ("c", 1), ("d", 5)]
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO s VALUES ('c', 1), ('e', 1);" + IDLE)
    assert table() == sorted(console.rows(f"{OLD};"))
    again = opened()
    assert (again.warnings, again.notes) == ([], [])
    again.run("START QUERY ALL;" + IDLE + "ROLLBACK q;")
    assert table() == sorted(again.rows(f"{NEW};")) == [("a", 3), ("d", 5)]
    again.run("INSERT INTO s VALUES ('a', 4);" + IDLE + "ROLLBACK q TO GENERATION 3;")
    assert table() == sorted(again.rows(f"{OLD};"))
    again.run(f"INSERT INTO out STAGED AS QUERY q {NEW};")
    fault = refusal(again, "ROLLBACK q;")
    assert (fault.code, fault.hint) == ("IN_USE", "PROMOTE q; or DROP STAGED q; first")
    again.run("DROP STAGED q;")

    def failing(*arguments: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("streamsql.features.change.promote_query.keep_promoted_rows", failing)
    with pytest.raises((OSError, StreamsqlError)):
        again.run("ROLLBACK q;")
    assert again.rows("SHOW STAGED;") == []
    again.run("INSERT INTO s VALUES ('f', 1);" + IDLE)
    assert table() == sorted(again.rows(f"{OLD};")), "it is as it was"
    last = opened()
    assert (last.warnings, last.notes) == ([], [])
    assert not (tmp_path / "w/run/queries/q%24before").exists()


def test_preview_says_what_a_change_means(
    console: Console, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    answer = dict(console.rows(f"PREVIEW CHANGE INSERT INTO out AS QUERY q {NEW};"))
    assert answer["query"] == "q"
    assert "WHERE" in answer["change"]
    assert answer["read again"].startswith("s: 3 rows so far, 1 file, ")
    assert answer["writes into"] == "out: upserts and deletes of the difference"
    assert console.rows("SHOW STAGED;") == []


def test_what_cannot_be_staged_is_said(console: Console, tmp_path: Path) -> None:
    console.run(TIMED + f"CREATE SINK of_w USING json OPTIONS (path '{tmp_path}/w');"
                f"INSERT INTO of_w AS QUERY w OUTPUT MODE APPEND {WINDOWS.format('')};")  # fmt: skip
    console.run("DROP QUERY w; INSERT INTO of_w AS QUERY w SELECT at AS w, 1 AS n FROM s;")
    console.run(files(tmp_path) + "CREATE SINK m USING memory; CREATE SINK printed USING noop;"
                "CREATE LIVE TABLE t AS SELECT k, at FROM s; INSERT INTO out AS QUERY q SELECT k, at FROM s;"
                "INSERT INTO m AS QUERY of_m SELECT k FROM s;"
)  # fmt: skip
    cases = {
        "INSERT INTO out STAGED AS QUERY nothing SELECT k FROM s;": "UNKNOWN_QUERY",
        "INSERT INTO printed STAGED AS QUERY q SELECT k FROM s;": "OTHER_SINK",
        "INSERT INTO printed STAGED AS QUERY t SELECT k FROM s;": "WRONG_KIND",
        "INSERT INTO m STAGED AS QUERY of_m SELECT k FROM s;": "NOT_STAGEABLE",
        "INSERT INTO out STAGED AS QUERY q ON LATE INTO printed SELECT k, at FROM s;": "CLAUSE_CONFLICT",
        "INSERT INTO out STAGED AS QUERY q TRIGGER AVAILABLE NOW SELECT k, at FROM s;": "CLAUSE_CONFLICT",
        f"INSERT INTO out STAGED AS QUERY q CHECKPOINT '{tmp_path}/c' SELECT k, at FROM s;": "CLAUSE_CONFLICT",
        "INSERT INTO out STAGED AS QUERY q SELECT k, nothing FROM s;": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"INSERT INTO of_w STAGED AS QUERY w OUTPUT MODE APPEND {WINDOWS.format('')};": "NOT_STAGEABLE",
        "PROMOTE q;": "NOT_STAGED",
        "COMPARE QUERY q;": "NOT_STAGED",
        "DROP STAGED q;": "NOT_STAGED",
        "EXECUTE STATEMENT SET STAGED BEGIN INSERT INTO out SELECT k, at FROM s; END;": "SYNTAX_ERROR",
    }
    assert {text: refusal(console, text).code for text in cases} == cases
    assert (
        "AS QUERY q SELECT"
        in refusal(console, "INSERT INTO out STAGED AS QUERY nothing SELECT k FROM s;").hint
    )
    assert refusal(console, "PROMOTE q;").hint == "INSERT INTO out STAGED AS QUERY q SELECT …"
    assert console.rows("SHOW STAGED;") == []
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, at FROM s;")
    assert refusal(console, "COMPARE LIVE TABLE q;").code == "WRONG_KIND"


def test_a_query_that_has_failed_is_changed_and_its_sink_waits_for_the_start(
    opened: Open, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    console = opened()
    console.run(
        STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE + "STOP QUERY q;"
    )
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + "AWAIT QUERY q$staged IDLE;")
    promoted = console.run("PROMOTE q;")[-1]
    assert "q does not run: START QUERY q; gives its sink the difference, and goes on" in notes_of(promoted)
    assert table() == [("a", 4), ("b", 2)]
    for drop in ("DROP QUERY q;", "DROP QUERY ALL;"):
        fault = refusal(console, drop)
        assert fault.message == "out has not got the difference of the promoted change of q yet"
    again = opened()
    assert again.warnings == []
    again.run("START QUERY q;" + IDLE)
    assert table() == [("a", 3)]
    again.run("DROP QUERY q;")
    assert again.rows("SHOW QUERIES;") == []


def test_what_is_replaced_each_time_goes_on(console: Console) -> None:
    console.run(
        STREAM + ROWS + f"CREATE SINK out USING noop; INSERT INTO out AS QUERY q OUTPUT MODE COMPLETE {OLD};"
    )
    console.run(f"INSERT INTO out STAGED AS QUERY q OUTPUT MODE COMPLETE {NEW};" + IDLE + "PROMOTE q;")
    console.run("INSERT INTO s VALUES ('a', 9);" + IDLE)
    assert console.rows("SHOW QUERIES;")[0][:4] == ("q", "running", "out", "complete")


def test_more_rows_than_are_kept_are_not_promoted(
    console: Console, table: Callable[[], list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    """The table would lack those that are not kept."""
    select = "SELECT k, n AS total FROM s"
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {select};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q RETAIN 2 ROWS {select};")
    assert refusal(console, "AWAIT QUERY q$staged IDLE;").code == "LIMIT_REACHED"
    assert refusal(console, "PROMOTE q;").message == "the staged change of q has failed"
    console.run("INSERT INTO s VALUES ('a', 1); AWAIT QUERY q IDLE;")
    assert table() == [("a", 1), ("b", 2)], "it runs as before"
    for name in ("q$staged", "q$before$staged"):
        console.run(f"START QUERY `{name}` RETAIN 20 ROWS;")
    console.run(IDLE + "PROMOTE q;")
    assert table() == [("a", 1), ("b", 2)]


@pytest.mark.slow
def test_messages_from_now_are_there_once(kafka: Broker, opened: Open) -> None:
    topic, taken = kafka.topic(partitions=2), kafka.topic()
    server = f"kafka.bootstrap.servers '{kafka.servers}'"
    console = opened()
    console.run(
        f"CREATE STREAM s (k STRING, n INT) USING kafka FORMAT json OPTIONS ({server}, topic '{topic}');"
        f"CREATE SINK out USING kafka FORMAT json OPTIONS ({server}, topic '{taken}');"
        "INSERT INTO out AS QUERY q SELECT k, n FROM s;"
    )

    def produced(*numbers: int) -> None:
        kafka.produce(topic, [json.dumps({"k": f"k{n}", "n": n}) for n in numbers])

    produced(1, 2, 3)
    console.run(IDLE + "INSERT INTO out STAGED AS QUERY q FROM NOW SELECT k, -n AS n FROM s;" + IDLE)
    produced(4, 5)
    console.run(IDLE + "STOP QUERY q$staged;")
    produced(6)
    console.run("START QUERY q$staged; PROMOTE q;")
    produced(7, 8)
    console.run(IDLE)
    assert sorted(json.loads(m.value)["n"] for m in kafka.read(taken)) == [-8, -7, 1, 2, 3, 4, 5, 6]
    console.run("INSERT INTO out STAGED AS QUERY q SELECT k, n * 10 AS n FROM s;" + IDLE)
    assert refusal(console, "PROMOTE q;").code == "ROWS_TWICE"
    console.run("PROMOTE q WITH DUPLICATES;" + IDLE)
    numbers = sorted(json.loads(m.value)["n"] for m in kafka.read(taken))
    assert numbers == sorted([-8, -7, *range(1, 7), *range(10, 90, 10)])


# ---- crashes


class DiskOfSwap(Disk):
    """Fails at a step from when PROMOTE keeps what its sink is to get; before, nothing is in use."""

    begun = False

    def __getattr__(self, name: str) -> Any:
        step, real = super().__getattr__(name), getattr(os, name)
        if name not in STEPS or self.begun:
            return step

        def until_it_begins(*arguments: Any) -> Any:
            self.begun = self.begun or "to_write" in str(arguments[0])
            return (step if self.begun else real)(*arguments)

        return until_it_begins


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("statement", "disk", "by"), [("PROMOTE q;", DiskOfSwap, 3), ("ROLLBACK q;", Disk, 8)]
)
def test_a_crash_leaves_one_or_the_other_and_the_sink_follows(
    opened: Open,
    table: Callable[[], list[tuple[Any, ...]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    disk: type[Disk],
    by: int,
) -> None:
    """Whichever query is in use after a crash in PROMOTE or ROLLBACK, its sink has its rows once it runs."""
    console, promotes = opened(), statement.startswith("PROMOTE")
    console.run(STREAM + ROWS + keyed(tmp_path) + f"INSERT INTO out AS QUERY q {OLD};" + IDLE)
    console.run(f"INSERT INTO out STAGED AS QUERY q {NEW};" + IDLE + "PROMOTE q;" * (not promotes))
    console.session.close()
    shutil.copy(tmp_path / "x.db", tmp_path / "made.db")
    outcomes = []
    for console in crashing(
        tmp_path, opened, monkeypatch, statement, disk_at=lambda at: disk(at, Crash), by=by
    ):
        assert console.warnings == []
        generations = console.rows("SHOW GENERATIONS OF q;")
        (in_use,) = (row[-1] for row in generations if row[2] == "in use")
        promoted = "n > 1" in in_use
        staged = [row[0] for row in console.rows("SHOW STAGED;")]
        assert staged == (["q"] if promotes and not promoted else [])
        console.run("START QUERY ALL;" + IDLE)
        assert table() == ([("a", 3)] if promoted else [("a", 4), ("b", 2)])
        console.run("INSERT INTO s VALUES ('a', 10), ('b', 9);" + IDLE)
        assert table() == ([("a", 13)] if promoted else [("a", 14), ("b", 11)])
        outcomes.append(promoted)
        shutil.copy(tmp_path / "made.db", tmp_path / "x.db")
    assert set(outcomes) == {False, True}
