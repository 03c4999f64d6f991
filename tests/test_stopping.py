"""STOP QUERY lets the micro-batch finish; WITH DRAIN processes first what is there."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console, notes_of
from test_queries import status

from streamsql.errors import Cancelled, NameFault, TimeFault
from streamsql.results import Done
from streamsql.runtime.engine.cancel import CancelToken

ROOMS = ("streamsql/runtime/",)

WORDS = "CREATE STREAM words (word STRING, n INT) USING values;\n"

GATE = """
import os, time

def until_open(value: int) -> int:
    open({begun!r}, "w").close()
    while not os.path.exists({gate!r}):
        time.sleep(0.02)
    return value
"""


class Gate:
    """A function `slow` in SQL whose micro-batch is under way until the gate is opened."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.begun, self.gate = folder / "begun", folder / "gate"
        (folder / "slowness.py").write_text(GATE.format(begun=str(self.begun), gate=str(self.gate)))
        console.session.variables["here"] = str(folder)
        console.run("CREATE FUNCTION slow AS 'slowness.until_open' LANGUAGE PYTHON RETURNS INT;")

    def open(self) -> None:
        self.gate.touch()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def gate(console: Console, tmp_path: Path, eventually: Callable[..., None]) -> Gate:
    """A query q in the midst of its first micro-batch; a second one would have rows to read."""
    made = Gate(console, tmp_path)
    console.run(
        WORDS + f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO words VALUES ('a', 1), ('b', 2);"
        "INSERT INTO out AS QUERY q SELECT slow(n) AS n FROM words;"
    )
    eventually(made.begun.exists)
    console.run("INSERT INTO words VALUES ('c', 3);")
    return made


def numbers(folder: Path) -> list[int]:
    """The column n of the files that Spark's log of the sink holds: a task that was broken off may leave others."""
    logs = [p for p in folder.glob("_spark_metadata/[0-9]*") if p.name.isdigit()]
    entries = [json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]]
    files = [Path(entry["path"].removeprefix("file://")) for entry in entries]
    return sorted(json.loads(line)["n"] for file in files for line in file.read_text().splitlines())


def commits(console: Console, query: str) -> list[str]:
    folder = Path(console.session.parts.places.checkpoint(query))
    return sorted(p.name for part in ("offsets", "commits") for p in (folder / part).glob("[0-9]*"))


def in_background(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Does something on a thread; what it gives or raises is in the list once the thread has ended."""
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(act())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, outcome


def test_stop_lets_the_micro_batch_finish_and_begins_no_other(
    console: Console, gate: Gate, out: Path, eventually: Callable[..., None]
) -> None:
    stopping, outcome = in_background(lambda: console.run("STOP QUERY q;")[0])
    eventually(lambda: status(console, "q")["status"] == "stopping")
    assert stopping.is_alive()
    gate.open()
    stopping.join(60)
    assert outcome == [Done((), "stopped: q")]
    assert status(console, "q")["status"] == "stopped"
    assert numbers(out) == [1, 2]
    assert commits(console, "q") == ["0", "0"]  # planned and done; no other one was even planned
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert numbers(out) == [1, 2, 3]


@pytest.mark.slow
def test_a_micro_batch_that_takes_too_long_is_broken_off_and_done_over(
    console: Console, gate: Gate, out: Path
) -> None:
    done = console.run("STOP QUERY q TIMEOUT INTERVAL 1 SECOND;")[0]
    assert notes_of(done) == (
        "the micro-batch of q did not complete in time and was aborted: it is retried on restart",
    )
    assert status(console, "q")["status"] == "stopped"
    assert numbers(out) == []
    gate.open()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert numbers(out) == [1, 2, 3]


def test_giving_up_the_wait_does_not_break_the_micro_batch(
    console: Console, gate: Gate, out: Path, eventually: Callable[..., None]
) -> None:
    given_up = CancelToken()
    stopping, outcome = in_background(lambda: console.run("STOP QUERY q;", given_up))
    eventually(lambda: status(console, "q")["status"] == "stopping")
    given_up.cancel()  # as Ctrl-C does
    stopping.join(60)
    assert isinstance(outcome[0], Cancelled)
    assert outcome[0].message == "cancelled: q stops after its current micro-batch"
    with pytest.raises(NameFault, match="q is still stopping"):
        console.run("START QUERY q;")
    gate.open()
    console.run("AWAIT QUERY q;")
    assert status(console, "q")["status"] == "stopped"
    assert numbers(out) == [1, 2]


def test_a_query_that_waits_for_its_trigger_stops_at_once(console: Console) -> None:
    console.run(
        WORDS + "CREATE LIVE TABLE t TRIGGER EVERY INTERVAL 1 HOUR AS SELECT n FROM words;"
        "STOP QUERY t TIMEOUT INTERVAL 20 SECONDS;"
    )
    assert status(console, "t")["status"] == "stopped"


def test_drop_lets_the_micro_batch_finish_too(console: Console, gate: Gate, out: Path) -> None:
    dropping, outcome = in_background(lambda: console.run("DROP QUERY q;")[0])
    gate.open()
    dropping.join(60)
    assert outcome == [Done((), "query q dropped")]
    assert numbers(out) == [1, 2]


def test_drain_processes_what_is_there_whatever_the_trigger(
    console: Console, tmp_path: Path, out: Path
) -> None:
    console.run(
        WORDS + f"CREATE SINK out USING json OPTIONS (path '{out}');"
        "INSERT INTO out AS QUERY q TRIGGER EVERY INTERVAL 1 HOUR SELECT n FROM words;"
        "INSERT INTO words VALUES ('a', 1); INSERT INTO words VALUES ('a', 2);"
    )
    assert console.run("STOP QUERY q WITH DRAIN;")[0] == Done((), "stopped: q")
    assert numbers(out) == [1, 2]
    shown = status(console, "q")
    assert (shown["status"], shown["trigger"]) == ("stopped", "every 1 hour")
    console.run("INSERT INTO words VALUES ('a', 3); START QUERY q; STOP QUERY ALL WITH DRAIN;")
    assert numbers(out) == [1, 2, 3]


def test_drain_ends_though_the_source_never_does(console: Console) -> None:
    console.run(
        """CREATE STREAM r USING rate OPTIONS (rowsPerSecond '1000');
        CREATE LIVE TABLE t AS SELECT count(*) AS n FROM r; CREATE LIVE TABLE u AS SELECT value FROM r;
        STOP QUERY ALL WITH DRAIN TIMEOUT INTERVAL 1 MINUTE;"""
    )
    assert [status(console, n)["status"] for n in "tu"] == ["stopped", "stopped"]


@pytest.mark.slow
def test_drain_with_a_time_limit_stops_all_the_same(console: Console, gate: Gate, out: Path) -> None:
    with pytest.raises(TimeFault, match="q was stopped before all input was processed"):
        console.run("STOP QUERY q WITH DRAIN TIMEOUT INTERVAL 1 SECOND;")
    assert status(console, "q")["status"] == "stopped"
    gate.open()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert numbers(out) == [1, 2, 3]


def test_a_failure_in_the_last_micro_batch_is_said(console: Console, eventually: Callable[..., None]) -> None:
    console.run(
        WORDS + "CREATE SINK n USING noop;"
        "INSERT INTO n AS QUERY q TRIGGER EVERY INTERVAL 1 HOUR SELECT CAST(word AS INT) AS w FROM words;"
        "CREATE LIVE TABLE good AS SELECT n FROM words;"
        "AWAIT QUERY good IDLE; INSERT INTO words VALUES ('x', 1);"
    )
    with pytest.raises(Exception, match="query q failed: the value 'x'"):
        console.run("STOP QUERY q WITH DRAIN;")
    console.run("AWAIT QUERY good IDLE;")
    assert console.rows("SELECT * FROM good;") == [(1,)]
    assert status(console, "good")["status"] == "running"
