"""ON LATE INTO: the rows that the watermark has dropped are in another sink, each once."""

from __future__ import annotations

import importlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from broker import Broker
from conftest import Console
from test_advance import refusal
from test_explain import program, run_program

from streamsql.errors import QueryFault, RuleFault
from streamsql.runtime.embedded.late_rows_writer import LateRowsWriter
from streamsql.runtime.engine.events import Events
from streamsql.runtime.queries.late_rows_thread import LateWrites
from streamsql.runtime.queries.progress_reports import QueryReported, Reports
from streamsql.runtime.session import Session

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"
STREAM = f"CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};"
COUNTS = "SELECT window.end AS until, count(*) AS n FROM s GROUP BY window(at, '5 minutes')"


def put(console: Console, *events: tuple[int, str]) -> None:
    listed = ", ".join(f"({n}, '2024-05-01 {at}')" for n, at in events)
    console.run(f"INSERT INTO s VALUES {listed}; AWAIT QUERY ALL IDLE;")


def test_late_rows_are_in_a_live_table_and_stay_after_a_restart(console: Console) -> None:
    console.run(
        f"""{STREAM} CREATE SINK too_late USING memory;
        CREATE LIVE TABLE t OUTPUT MODE UPDATE ON LATE INTO too_late AS {COUNTS};"""
    )
    put(console, (1, "12:00"), (2, "13:00"))
    shown = console.run("WHY LIVE TABLE too_late;")[0]
    assert shown.verdict == (
        "nothing is wrong: too_late takes the rows of t that come late, and none has come late so far"
    )
    put(console, (3, "12:44"), (4, "12:50"))
    late = "SELECT n, _batch, _late_by_seconds FROM too_late ORDER BY n;"
    # The window of 12:44 ends before the watermark, 12:50; that of 12:00 was there before it.
    batch = console.rows("SELECT max(_batch) FROM LATE ROWS OF QUERY t;")[0][0]
    assert console.rows(late) == [(3, batch, 300.0)]
    [kept] = console.rows("SHOW LIVE TABLES;")[:1]
    assert kept[:2] == ("too_late", 1) and kept[6] == "t"
    console.run("STOP QUERY t;")
    put(console, (5, "12:20"), (6, "14:00"))
    console.run("START QUERY t; AWAIT QUERY t IDLE;")
    put(console, (7, "13:10"))
    console.run("STOP QUERY t WITH DRAIN;")
    assert [row[0] for row in console.rows(late)] == [3, 5, 7]
    assert console.rows(late) == console.rows(late.replace("too_late", "LATE ROWS OF QUERY t"))
    described = dict(console.rows("DESCRIBE QUERY t;"))
    assert described["late rows into"].startswith("too_late, up to micro-batch ")
    assert "ON LATE INTO too_late" in console.run("SHOW CREATE LIVE TABLE t;")[-1].text
    with pytest.raises(Exception, match="the query t writes to too_late"):
        console.run("DROP SINK too_late;")


@pytest.mark.slow
def test_late_rows_in_files_of_a_query_that_ends(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""{STREAM} CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        CREATE SINK too_late (n INT, _late_by_seconds DOUBLE) USING json OPTIONS (path '{tmp_path}/late');"""
    )
    put(console, (1, "13:00"))
    put(console, (2, "12:50"), (3, "12:51"))
    put(console, (4, "12:00"))
    console.run(
        """INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW ON LATE INTO too_late
          SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s; AWAIT QUERY q;"""
    )
    lines = [
        json.loads(x) for f in sorted(tmp_path.glob("late/*/*.json")) for x in f.read_text().splitlines()
    ]
    # The second micro-batch runs without a watermark: Spark learns it from the first one.
    assert lines == [{"n": 4, "_late_by_seconds": 3000.0}]
    program = console.run("EXPLAIN PYSPARK QUERY q;")[-1]
    assert "late_writer.follow(query)" in program.text


@pytest.mark.slow
def test_a_sink_that_fails_fails_the_query_and_gets_its_rows_at_the_next_start(
    console: Console, tmp_path: Path
) -> None:
    place = tmp_path / "late"
    place.write_text("a file, where the folder would be")
    console.run(
        f"""{STREAM} CREATE SINK out USING noop; CREATE SINK too_late USING json OPTIONS (path '{place}');
        INSERT INTO out AS QUERY q ON LATE INTO too_late SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s;"""
    )
    put(console, (1, "13:00"))
    with pytest.raises(Exception, match="query q failed: its late rows could not be written into too_late"):
        put(console, (2, "12:00"))
    place.unlink()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    [file] = place.glob("*/*.json")
    assert json.loads(file.read_text())["n"] == 2


@pytest.mark.slow
def test_late_rows_in_every_kind_of_sink(
    console: Console, kafka: Broker, packages: Callable[[str], None], tmp_path: Path
) -> None:
    packages("sqlite")
    (tmp_path / "late_function.py").write_text(
        "kept = []\ndef keep(batch, batch_id):\n    kept.append(sorted(r.n for r in batch.collect()))\n"
    )
    shown: list[Any] = []
    config = replace(console.session.parts.config, show_batch=lambda rows, batch: shown.append(rows.rows))
    console.session = Session(config, console.session.spark)
    topic = kafka.topic()
    sinks = {
        "to_base": f"USING jdbc OPTIONS (url 'jdbc:sqlite:{tmp_path}/base.db', table 'late')",
        "to_function": f"USING foreach_batch OPTIONS (function 'late_function.keep', folder '{tmp_path}')",
        "to_screen": "USING console",
        "to_topic": f"USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}')",
    }
    console.run(
        f"""{STREAM} CREATE SINK out USING noop; CREATE SINK out_2 USING noop;
        CREATE STREAM firsts AS SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s;"""
    )
    for events in ("(1, '2024-05-01 13:00')", "(2, '2024-05-01 12:51')"):
        console.run(f"INSERT INTO s VALUES {events};")
    console.run("INSERT INTO s VALUES (3, '2024-05-01 12:00'), (4, '2024-05-01 12:40');")
    notes = []
    for name, using in sinks.items():
        into = f"TRIGGER AVAILABLE NOW ON LATE INTO {name}"
        start = f"INSERT INTO out AS QUERY q_{name} {into} SELECT * FROM firsts;"
        if name == "to_topic":
            start = f"""EXECUTE STATEMENT SET AS QUERY two {into} BEGIN
              INSERT INTO out SELECT n FROM firsts; INSERT INTO out_2 SELECT at FROM firsts; END;"""
        started = console.run(f"CREATE SINK {name} (n INT) {using}; {start}")[-1]
        notes += [n.text for n in started.notes if n.code == "AT_LEAST_ONCE"]
        console.run("AWAIT QUERY ALL;")
    assert notes == [
        "late rows into to_screen: at least once: a micro-batch may be shown again after a failure",
        "late rows into to_topic: at least once: messages may be sent again after a failure",
    ]
    with sqlite3.connect(tmp_path / "base.db") as base:
        assert base.execute("SELECT n FROM late ORDER BY n").fetchall() == [(3,), (4,)]
    assert importlib.import_module("late_function").kept == [[3, 4]]
    assert [sorted(map(tuple, rows)) for rows in shown] == [[(3,), (4,)]]
    assert sorted(json.loads(m.value)["n"] for m in kafka.read(topic)) == [3, 4]
    console.session.close()


def test_no_log_is_listed_where_no_row_came_late() -> None:
    log = Mock()
    writer = LateRowsWriter(None, "", Mock(log=log), Mock())
    writer.write_new(frozenset({0, 1, 2}), 2)
    assert writer.written == 2 and not log.method_calls


class Log:
    """The log of a checkpoint with some micro-batches."""

    def __init__(self, *batches: int) -> None:
        self.batches = list(batches)
        self.notes: set[str] = set()

    def numbers(self, folder: str) -> list[int]:
        return list(self.batches)

    def names(self, folder: str) -> list[str]:
        return [name.partition("/")[2] for name in sorted(self.notes)]

    def put(self, name: str) -> None:
        self.notes.add(name)

    def remove(self, name: str) -> None:
        self.notes.discard(name)

    def read(self, name: str) -> str:
        return json.dumps({"id": "00000000-0000-0000-0000-000000000000"})


class LateBatches:
    """Reads the late rows of a log as the numbers of their micro-batches."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def empty(self) -> list[int]:
        return []

    def of_batches(self, numbers: list[int], there: list[int]) -> list[int]:
        return numbers


def report(batch: int, dropped: int) -> dict[str, Any]:
    return {"batchId": batch, "stateOperators": [{"numRowsDroppedByWatermark": dropped}]}


class Followed:
    """LateWrites of a query that has committed micro-batches 0 and 1 and begins to run again; it is the run,
    too.
    """

    name = "q"

    def __init__(self) -> None:
        self.log, self.reports, self.active = Log(0, 1), Reports(), True
        self.written: list[tuple[list[int], int]] = []
        self.faults: list[QueryFault] = []
        self.events = Events()
        self.log.put("late_rows/done-0")
        writer = LateRowsWriter(
            Mock(), "", LateBatches(self.log), lambda rows, last: self.written.append((rows, last))
        )
        writer.begin()
        self.late = LateWrites(cast(Any, self), "too_late", writer, lambda token: self.begun())

    def in_spark(self) -> bool:
        return self.active

    def catch_up(self) -> bool:
        return False

    def fail(self, fault: QueryFault) -> None:
        self.faults.append(fault)

    def begun(self) -> None:
        """The query commits a micro-batch before its thread for late rows has done anything."""
        self.log.batches.append(2)

    def report(self, batch: int, dropped: int) -> None:
        self.reports.add(report(batch, dropped))
        self.events.publish(QueryReported())

    def end(self) -> None:
        self.reports.ended = True
        self.events.publish(QueryReported())


def test_no_micro_batch_is_written_before_its_report_has_come() -> None:
    query = Followed()
    query.late.start(query.events)
    query.late.settle()
    assert query.written == [([1], 1)]  # what the run before has left, and not micro-batch 2
    query.report(2, dropped=0)
    query.log.batches += [3, 4]
    query.report(3, dropped=5)
    query.late.settle()
    assert query.written[1:] == [([3], 3)]
    # Spark calls the query ended before the report of its last micro-batch has come.
    query.active = False
    query.events.publish(QueryReported())
    query.log.batches.append(5)
    query.report(4, dropped=0)
    query.report(5, dropped=0)
    query.end()
    query.late.join(60)
    assert not query.late.busy and not query.faults
    assert query.late.written == 5 and query.written[2:] == []


def test_late_rows_of_a_query_that_ends_with_spark_are_left_to_its_next_start() -> None:
    query = Followed()
    query.late.start(query.events)
    query.active = False
    query.log.batches.append(3)  # whose report will never come
    query.late.abandon()
    query.late.join(60)
    assert not query.late.busy and not query.faults
    assert query.written in ([], [([1], 1)])


@pytest.mark.slow
def test_the_program_writes_the_late_rows(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""{STREAM} CREATE SINK out USING noop; CREATE SINK too_late USING json OPTIONS (path '{tmp_path}/late');
        """
    )
    for event in ((1, "13:00"), (2, "12:50"), (3, "12:00")):
        put(console, event)
    text = program(
        console,
        f"INSERT INTO out TRIGGER AVAILABLE NOW CHECKPOINT '{tmp_path}/checkpoint' ON LATE INTO too_late "
        "SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s",
    )
    run_program(text)
    assert console.rows(f"SELECT n, _late_by_seconds FROM json.`{tmp_path}/late`;") == [(3, 3000.0)]
    run_program(text)  # again, on the same checkpoint: nothing twice
    assert console.rows(f"SELECT n FROM json.`{tmp_path}/late`;") == [(3,)]


@pytest.mark.slow
def test_late_rows_behind_a_join_are_counted_and_said_not_to_be_listed(console: Console) -> None:
    mark = "WITH WATERMARK {} DELAY OF INTERVAL 10 MINUTES"
    console.run(
        f"""CREATE STREAM a (id INT, at TIMESTAMP) USING values {mark.format("at")};
        CREATE STREAM b (id INT, bt TIMESTAMP) USING values {mark.format("bt")}; CREATE SINK too_late USING memory;
        INSERT INTO a VALUES (1, '2024-05-01 12:00:00'), (2, '2024-05-01 14:00:00');
        INSERT INTO b VALUES (2, '2024-05-01 14:00:00'); INSERT INTO b VALUES (3, '2024-05-01 14:01:00');
        INSERT INTO b VALUES (1, '2024-05-01 14:01:00');"""
    )  # the last row makes a pair of 12:00, behind the watermark, though no row of it came late
    [started] = console.run(
        """CREATE LIVE TABLE t OUTPUT MODE APPEND ON LATE INTO too_late AS
        SELECT window.end AS until, count(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY window(at, '5 minutes');"""
    )
    assert [n.code for n in started.notes if "not among the late rows" in n.text] == ["LATE_ROWS_OF_JOIN"]
    console.run("AWAIT QUERY t IDLE;")
    assert console.session.parts.queries.all["t"].reports.run.late.number == 1
    with pytest.raises(RuleFault, match="the late rows of t cannot be read: they are rows that a join emits"):
        console.run("SELECT * FROM LATE ROWS OF QUERY t;")
    assert console.rows("SELECT * FROM too_late;") == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO out ON LATE INTO e SELECT DISTINCT * FROM s;", "a foreach sink takes no late rows"),
        ("INSERT INTO f ON LATE INTO f SELECT DISTINCT * FROM s;", "f is the sink of the query itself"),
        ("INSERT INTO out ON LATE INTO none SELECT DISTINCT * FROM s;", "there is no sink none"),
        ("INSERT INTO out ON LATE INTO f SELECT * FROM s;", "this query drops no late rows"),
        ("INSERT INTO out ON LATE INTO f SELECT DISTINCT * FROM plain;", "ON LATE INTO needs a watermark"),
        (
            "INSERT INTO out ON LATE INTO f SELECT value FROM c WATERMARK now() AS ts DELAY OF INTERVAL 1 SECOND "
            "GROUP BY window(ts, '1 minute'), value;",
            "the rows of c cannot be read again: its source is socket",
        ),
        ("CREATE LIVE TABLE u ON LATE INTO f AS SELECT count(*) AS n FROM t;", "needs a stream"),
        (
            "INSERT INTO out OUTPUT MODE COMPLETE ON LATE INTO f SELECT at, count(*) AS n FROM s GROUP BY at;",
            "ON LATE INTO is not supported in output mode complete",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(statement: str, said: str) -> None:
    fault = refusal(
        f"""{STREAM} CREATE STREAM plain (n INT) USING values;
        CREATE STREAM c USING socket OPTIONS (host 'localhost', port 9999);
        CREATE SINK out USING noop; CREATE SINK f USING json OPTIONS (path '/tmp/f');
        CREATE SINK e USING foreach OPTIONS (function 'json.dumps');
        CREATE LIVE TABLE t AS SELECT DISTINCT n FROM s;
        {statement}"""
    )
    assert said in fault.message
    assert "foreach" not in said or "CREATE SINK name USING foreach_batch" in fault.hint
