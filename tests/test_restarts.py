"""RESTART n TIMES EVERY interval, and what is kept of failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import Console
from scripts import command, run_here
from terminal import jvm_of
from test_queries import status
from test_reopened import Open, opened  # noqa: F401  the fixture
from test_scripts import wait_until

from streamsql.errors import Cancelled, QueryFault, RuleFault, Source, SyntaxFault, TimeFault
from streamsql.results import Text
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import recurs
from streamsql.runtime.queries import run

ROOMS = ("streamsql/runtime/",)

WORDS = "CREATE STREAM words (word STRING, n INT) USING values;\n"
SINK = """
import os

def write(batch, batch_id):
    with open("FOLDER/calls", "a") as calls:
        calls.write(f"{batch_id}\\n")
    if os.path.exists("FOLDER/broken") or not os.path.exists(f"FOLDER/fails-no-more-{batch_id}"):
        open(f"FOLDER/fails-no-more-{batch_id}", "w").close()
        raise RuntimeError("the cellar is flooded")
    with open("FOLDER/rows", "a") as rows:
        rows.writelines(f"{row.n}\\n" for row in batch.collect())
"""


class Cellar:
    """A sink `out` whose write fails once for each micro-batch, and always while it is broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "cellar.py").write_text(SINK.replace("FOLDER", str(folder)))
        self.sink = (
            f"CREATE SINK out USING foreach_batch OPTIONS (function 'cellar.write', folder '{folder}');\n"
        )

    def breaks(self) -> None:
        (self.folder / "broken").touch()

    def works(self) -> None:
        (self.folder / "broken").unlink()

    def lines(self, name: str) -> list[int]:
        file = self.folder / name
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def cellar(tmp_path: Path) -> Cellar:
    return Cellar(tmp_path)


@pytest.mark.slow
def test_a_query_that_fails_is_started_again_and_a_finished_micro_batch_begins_the_count_anew(
    console: Console, cellar: Cellar
) -> None:
    console.run(WORDS + cellar.sink + "CREATE LIVE TABLE good AS SELECT n FROM words;")
    console.run("INSERT INTO out AS QUERY q RESTART 1 TIMES EVERY '0.1 seconds' SELECT n FROM words;")
    for number in (1, 2, 3):  # each micro-batch fails once
        console.run(f"INSERT INTO words VALUES ('a', {number}); AWAIT QUERY q IDLE;")
    assert cellar.lines("rows") == [1, 2, 3]
    assert cellar.lines("calls") == [0, 0, 1, 1, 2, 2]
    assert status(console, "q")["status"] == "running"
    console.run("AWAIT QUERY good IDLE;")
    assert status(console, "good")["status"] == "running"
    assert console.rows("SELECT * FROM good;") == [(1,), (2,), (3,)]
    described = console.rows("DESCRIBE QUERY q;")
    assert ("restart", "1 TIMES EVERY '0.1 seconds'") in described
    failures = [(name[-8:], text) for name, text in described if name.startswith("failed ")]
    said = "RuntimeError: the cellar is flooded"
    assert failures == [(" batch 2", said), (" batch 1", said), (" batch 0", said)]


def test_it_is_given_up_after_so_many_times_in_a_row(console: Console, cellar: Cellar) -> None:
    cellar.breaks()
    console.run(WORDS + cellar.sink + "INSERT INTO words VALUES ('a', 1);")
    console.run("INSERT INTO out AS QUERY q RESTART 2 TIMES EVERY '0.1 seconds' SELECT n FROM words;")
    with pytest.raises(QueryFault, match="the cellar is flooded"):
        console.run("AWAIT QUERY q;")
    assert status(console, "q")["status"] == "FAILED"
    assert cellar.lines("calls") == [0, 0, 0]
    cellar.works()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")  # the checkpoint is whole
    assert cellar.lines("rows") == [1]


@pytest.mark.slow
def test_while_it_waits_it_can_be_stopped_started_and_dropped(
    console: Console, cellar: Cellar, eventually: Callable[..., None]
) -> None:
    cellar.breaks()
    console.run(WORDS + cellar.sink + "INSERT INTO words VALUES ('a', 1);")
    console.run("INSERT INTO out AS QUERY q RESTART 3 TIMES EVERY INTERVAL 1 HOUR SELECT n FROM words;")
    eventually(lambda: status(console, "q")["status"] == "restarting")
    described = dict(console.rows("DESCRIBE QUERY q;"))
    assert described["restarts"].startswith("it restarts at ")
    assert described["restarts"].endswith(" (attempt 1 of 3)")
    assert described["error"] == "RuntimeError: the cellar is flooded"
    with pytest.raises(TimeFault, match="the query q is still waiting for its restart"):
        console.run("AWAIT QUERY q TIMEOUT INTERVAL 1 SECOND;")
    console.run("STOP QUERY q;")
    assert status(console, "q")["status"] == "stopped"
    console.run("START QUERY q;")
    eventually(lambda: status(console, "q")["status"] == "restarting")
    cellar.works()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert cellar.lines("rows") == [1]
    cellar.breaks()
    console.run("INSERT INTO words VALUES ('a', 2);")
    eventually(lambda: status(console, "q")["status"] == "restarting")
    console.run("DROP QUERY q;")
    assert console.rows("SHOW QUERIES;") == []
    assert cellar.lines("rows") == [1]


def test_a_statement_that_is_cancelled_keeps_no_query_from_its_restart(
    console: Console, cellar: Cellar, eventually: Callable[..., None]
) -> None:
    cellar.breaks()
    console.run(WORDS + cellar.sink + "INSERT INTO words VALUES ('a', 1);")
    console.run("INSERT INTO out AS QUERY q RESTART 9 TIMES EVERY '0.5 seconds' SELECT n FROM words;")
    eventually(lambda: status(console, "q")["status"] == "restarting")
    given_up = CancelToken()
    given_up.cancel()
    with pytest.raises(Cancelled):
        console.run("AWAIT QUERY q;", given_up)
    cellar.works()
    eventually(lambda: cellar.lines("rows") == [1])  # nobody has typed anything since


def test_which_faults_come_again_for_certain(spark: Any, console: Console, cellar: Cellar) -> None:
    from pyspark.sql import functions as F

    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    refused = (
        ticks.withWatermark("timestamp", "1 second")
        .groupBy(F.session_window("timestamp", "1 second"))
        .count()
    )
    for frame, again in ((refused, True), (ticks.select(F.raise_error("no")), False)):
        handle = frame.writeStream.format("noop").start()  # Spark finds it out in the first micro-batch
        with pytest.raises(Exception, match="STREAM_FAILED"):
            handle.awaitTermination(60)
        assert recurs(handle.exception()) is again


def test_a_restart_that_cannot_be_made_is_a_failure_too(
    console: Console, cellar: Cellar, eventually: Callable[..., None]
) -> None:
    cellar.breaks()
    console.run(WORDS + cellar.sink + "INSERT INTO words VALUES ('a', 1);")
    console.run("INSERT INTO out AS QUERY q RESTART 2 TIMES EVERY INTERVAL 1 SECOND SELECT n FROM words;")
    eventually(lambda: status(console, "q")["status"] == "restarting")
    console.session.parts.current.update(lambda catalog: catalog.without("streams", "words"))
    eventually(lambda: status(console, "q")["status"] == "FAILED")
    assert "there is no stream words" in status(console, "q")["last error"]


def test_the_clause_is_shown_and_read_again(console: Console, cellar: Cellar) -> None:
    console.run(WORDS + "CREATE LIVE TABLE t RESTART 5 TIMES EVERY INTERVAL 1 MINUTE AS SELECT n FROM words;")
    shown = console.run("SHOW CREATE LIVE TABLE t;")[0]
    assert isinstance(shown, Text)
    assert "  RESTART 5 TIMES EVERY '1 minute'\n" in shown.text
    console.run("DROP LIVE TABLE t;" + shown.text)
    assert console.run("SHOW CREATE LIVE TABLE t;")[0] == shown
    console.run("CREATE SINK a USING noop; CREATE SINK b USING noop;")
    console.run(
        "EXECUTE STATEMENT SET AS QUERY s RESTART 2 TIMES EVERY '5 s' BEGIN "
        "INSERT INTO a SELECT n FROM words; INSERT INTO b SELECT word FROM words; END;"
    )
    assert "RESTART 2 TIMES EVERY '5 seconds'" in dict(console.rows("DESCRIBE QUERY s;"))["statement"]
    for wrong, error in (("1.5 TIMES EVERY '1 s'", SyntaxFault), ("2 TIMES EVERY '0 s'", RuleFault)):
        with pytest.raises(error):
            console.run(f"INSERT INTO a AS QUERY w RESTART {wrong} SELECT n FROM words;")


def test_a_script_waits_for_the_restart_and_tells_how_it_ended(spark: Any, cellar: Cellar) -> None:
    script = (
        WORDS + cellar.sink + "INSERT INTO words VALUES ('a', 1);\n"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW RESTART 1 TIMES EVERY '0.1 seconds'\nSELECT n FROM words;"
    )
    outcome = run_here(spark, cellar.folder / "one", Source("run.sql", script))
    assert outcome.code == 0, outcome.err
    assert "warning: query q failed: RuntimeError: the cellar is flooded; it restarts at " in outcome.err
    assert cellar.lines("rows") == [1]
    cellar.breaks()
    outcome = run_here(spark, cellar.folder / "two", Source("run.sql", script))
    assert outcome.code == 5
    assert outcome.err.count("warning: query q failed") == 1
    assert (
        "run.sql:4:1: error[QUERY_FAILED]: query q failed: RuntimeError: the cellar is flooded" in outcome.err
    )


def test_a_failure_is_kept_at_once_and_survives_the_console(
    opened: Open,  # noqa: F811
    cellar: Cellar,
    tmp_path: Path,
    eventually: Callable[..., None],
) -> None:
    console = opened()
    console.run(WORDS + cellar.sink)
    console.run(
        "CREATE LIVE TABLE good AS SELECT n FROM words; INSERT INTO out AS QUERY q SELECT n FROM words;"
    )
    console.run("INSERT INTO words VALUES ('a', 1);")
    [file] = tmp_path.rglob("status.json")

    def kept() -> dict[str, Any]:
        return json.loads(file.read_text())["queries"]  # type: ignore[no-any-return]

    eventually(lambda: kept()["q"]["status"] == "FAILED")  # no statement was needed
    assert kept()["good"]["status"] == "running"
    assert kept()["q"]["failures"][0]["batch"] == 0
    again = opened(started=False)
    described = dict(again.rows("DESCRIBE QUERY q;"))
    assert described["status"] == "FAILED"
    assert described["error"] == "RuntimeError: the cellar is flooded"
    assert described["failed"].endswith(", batch 0")


@pytest.mark.slow
@pytest.mark.usefixtures("cold_start")
def test_when_its_jvm_dies_spark_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "run.sql").write_text(
        """CREATE STREAM ticks USING rate-micro-batch OPTIONS (rowsPerBatch '1');
        CREATE SINK copy USING json OPTIONS (path 'out');
        INSERT INTO copy CHECKPOINT 'ck' TRIGGER EVERY '200 ms' RESTART 2 TIMES EVERY '0.1 seconds'
        SELECT value FROM ticks;"""
    )
    process = subprocess.Popen(
        command("run.sql"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    commits = tmp_path / "ck" / "commits"
    wait_until((commits / "0").exists, process, "a commit")
    os.kill(jvm_of(process.pid), signal.SIGKILL)
    done = max(int(p.name) for p in commits.glob("[0-9]*"))
    wait_until((commits / str(done + 2)).exists, process, "a commit of the next Spark")
    process.send_signal(signal.SIGTERM)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 0, words
    assert "warning: query copy ended with Spark: its JVM " in words


def test_a_restart_is_not_late_when_summer_time_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is measured by a clock that nobody sets; the time that is shown is that of the clock then."""
    moment = datetime(2026, 10, 25, 0, 59, 30, tzinfo=UTC).timestamp()  # 02:59:30, a minute later 02:00:30
    clock = Mock(time=lambda: moment, monotonic=lambda: 1000.0)
    monkeypatch.setattr(run, "time", clock)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        rule = Mock(times=3, every="1 minute")
        failed = Mock(stopped=False, certain=False, tries=0, plan=Mock(query=Mock(restart=rule)))
        failed.again_at = run.Running.next_start(failed, worked=True)
        assert failed.again_at == 1060.0
        assert run.Running.when_again(failed) == "it restarts at 02:00:30 (attempt 1 of 3)"
    finally:
        monkeypatch.undo()
        time.tzset()
