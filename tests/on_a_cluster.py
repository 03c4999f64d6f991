"""Tests for the Spark of a cluster with two workers, which they kill: tests/slow/test_cluster.py runs this file."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from conftest import MASTER, ROOT, Console, notes_of
from data_files import put_whole
from scripts import run_here

from streamsql.output.script_runner import read_file
from streamsql.runtime.engine.cluster import ClusterWatch

PIDS = json.loads(os.environ.get("STREAMSQL_TESTS_PIDS", "{}"))
"""The processes of the cluster, by name."""
SLOW = """
import os, time
def slow(word: str) -> str:
    here = "{0}/began/" + os.getcwd().replace("/", "_")
    open(here, "w").close()
    while not os.path.exists("{0}/go"):
        time.sleep(0.05)  # the micro-batch is under way until the test says so
    return word.upper()
def fails_once(batch, batch_id):
    rows = [row.word for row in batch.collect()]
    if not os.path.exists("{0}/failed"):
        open("{0}/failed", "w").close()
        raise ConnectionError("the database is away")
    with open("{0}/received", "a") as out:
        out.writelines(word + "\\n" for word in sorted(rows))
"""


def feed(folder: Path, name: str, *words: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    put_whole(folder / "in" / name, "".join(f"{word}\n" for word in words))


def test_state_stop_start_drain_and_the_partitions_of_a_new_checkpoint(
    console: Console, tmp_path: Path
) -> None:
    feed(tmp_path, "1.csv", "a", "b", "a")
    started = console.run(
        f"CREATE STREAM words (word STRING) USING csv OPTIONS (path '{tmp_path}/in')"
        " WITH WATERMARK timestamp_seconds(ascii(word)) AS at DELAY OF INTERVAL 1 HOUR;"
        "CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word; AWAIT QUERY counts IDLE;"
    )
    assert not any("partitions" in note for note in notes_of(started[1]))
    assert dict(console.rows("DESCRIBE STREAM words;"))["event times in counts"] == (  # counted by executors
        "3 rows in 1 micro-batch: 1970-01-01 00:01:37 to 1970-01-01 00:01:38"
    )
    properties = dict(console.rows("DESCRIBE CHECKPOINT OF QUERY counts;"))
    assert properties["shuffle partitions"] == "4"  # two for each core of two workers
    assert ("spark.sql.shuffle.partitions", "4", "streamsql") in console.rows("SET;")
    console.run("STOP QUERY counts;")
    feed(tmp_path, "2.csv", "b", "c")
    console.run("START QUERY counts; AWAIT QUERY counts IDLE;")
    feed(tmp_path, "3.csv", "c")
    console.run("STOP QUERY counts WITH DRAIN;")
    result = [("a", 2), ("b", 2), ("c", 2)]
    assert console.rows("SELECT * FROM counts ORDER BY word;") == result
    assert console.rows("SELECT word, count FROM STATE OF QUERY counts ORDER BY word;") == result
    console.run("SET spark.sql.shuffle.partitions = 3;")
    assert ("spark.sql.shuffle.partitions", "3", "SET") in console.rows("SET;")


def test_a_failed_function_of_foreach_batch_and_restart(
    console: Console, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    feed(tmp_path, "1.csv", "a", "b")
    (tmp_path / "sinking.py").write_text(SLOW.format(tmp_path))
    console.session.variables["here"] = str(tmp_path)
    console.run(
        f"CREATE STREAM words (word STRING) USING csv OPTIONS (path '{tmp_path}/in');"
        "CREATE SINK received USING foreach_batch OPTIONS (function 'sinking.fails_once');"
        "INSERT INTO received RESTART 3 TIMES EVERY '100 milliseconds' SELECT word FROM words;"
    )
    eventually((tmp_path / "received").exists)
    console.run("AWAIT QUERY received IDLE;")
    assert (tmp_path / "received").read_text() == "a\nb\n"


def test_the_example_of_a_processor(spark: Any, tmp_path: Path) -> None:
    """With one partition: each starts Python on a worker."""
    script = read_file(str(ROOT / "examples" / "sessions.sql"))
    one = replace(script, text=f"SET spark.sql.shuffle.partitions = 1;\n{script.text}")
    outcome = run_here(spark, tmp_path, one)
    golden = ROOT / "tests" / "golden" / "examples" / "sessions.txt"
    assert (outcome.code, outcome.out) == (0, golden.read_text()), outcome.err


def test_a_worker_killed_in_a_micro_batch_then_the_master(
    console: Console, spark: Any, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    news, lost = list[str](), list[str]()
    ClusterWatch(spark, MASTER, news.append, lost.append)
    feed(tmp_path, "1.csv", "a", "b")
    feed(tmp_path, "2.csv", "a")
    (tmp_path / "began").mkdir()
    (tmp_path / "slowness.py").write_text(SLOW.format(tmp_path))
    console.session.variables["here"] = str(tmp_path)
    console.run(
        "SET spark.sql.files.openCostInBytes = 134217728;"  # a task for each file, on each worker one
        f"CREATE STREAM words (word STRING) USING csv OPTIONS (path '{tmp_path}/in');"
        "CREATE FUNCTION slow AS 'slowness.slow' LANGUAGE PYTHON RETURNS STRING;"
        f"CREATE SINK copies USING json OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO copies SELECT slow(word) AS word FROM words;"
    )
    eventually(lambda: any("_Worker1_" in p.name for p in (tmp_path / "began").iterdir()))
    os.killpg(PIDS["Worker1"], signal.SIGKILL)
    (tmp_path / "go").touch()
    console.run("AWAIT QUERY copies IDLE;")
    select = f"SELECT word, count(*) AS n FROM json.`{tmp_path}/out` GROUP BY word ORDER BY word;"
    assert console.rows(select) == [("A", 2), ("B", 1)]
    os.killpg(PIDS["Master"], signal.SIGKILL)
    eventually(lambda: bool(news))
    assert news == [f"the master {MASTER} is lost; queries keep running on the remaining workers"]
    feed(tmp_path, "3.csv", "c")
    console.run("AWAIT QUERY copies IDLE;")
    assert console.rows(select) == [("A", 2), ("B", 1), ("C", 1)]
    assert not lost
