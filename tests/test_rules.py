"""The console's rules over Spark's plans: their switch, their version, their failures, and their rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark
import pytest

from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.spark_classes import RULES, SPARK_VERSION

ROOMS = ("streamsql/runtime/engine/",)

FORMAT = "streamsql.JsonLines$Format"


def format_of(frame: Any) -> str:
    """The class that reads the files of a frame."""
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    return str(leaf.relation().fileFormat().getClass().getName())


def test_the_jar_is_built_for_the_spark_of_the_project(spark: Any) -> None:
    assert pyspark.__version__ == SPARK_VERSION == spark.version
    assert java_class(spark, RULES).warning() == ""


def test_set_switches_the_rules_off_and_on(console: Any, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"n": 1}\n')
    ours = []
    for statement in (
        "",
        "SET streamsql.rules = off;",
        "SET streamsql.rules = on;",
        "SET streamsql.rules = off;",
        "RESET streamsql.rules;",
    ):
        if statement:
            console.run(statement)
        frame = own_session(console.session.parts.spark).read.schema("n INT").json(str(tmp_path))
        ours.append(format_of(frame) == FORMAT)
    assert ours == [True, False, True, False, True]
    assert console.rows("SET streamsql.rules;") == [("streamsql.rules", "on", "streamsql")]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_rules_of_another_spark_are_not_active_and_that_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "first" / "streamsql").mkdir(parents=True)
    (tmp_path / "first" / "streamsql" / "spark-version").write_text("4.2.9\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"n": 1}\n')
    done = subprocess.run(
        [sys.executable, "-m", "streamsql", "-q", "--format", "csv", "--no-config", 
         "--conf", f"spark.driver.extraClassPath={tmp_path}/first", "-e",
         f"SELECT n FROM json.`{tmp_path}/in`; SELECT n + 1 AS m FROM json.`{tmp_path}/in`;"],
        capture_output=True, text=True, timeout=120, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    said = (
        f"the rules of streamsql are not active: they are built for Spark 4.2.9, and this is {SPARK_VERSION}"
    )
    assert done.returncode == 0 and done.stdout.split() == ["n", "1", "m", "2"], done.stderr
    [log] = (tmp_path / "cache").rglob("spark.log")
    assert log.read_text().count(said) == 1


def test_a_rule_that_fails_leaves_the_plan_to_spark_and_is_counted(spark: Any) -> None:
    """A rule for optimized plans is given a physical one."""
    before = java_class(spark, RULES).fallbacks()
    physical = spark.range(1)._jdf.queryExecution().executedPlan()
    left = java_class(spark, "streamsql.JsonLines")().apply(physical)
    assert left.equals(physical)
    assert java_class(spark, RULES).fallbacks() == before + 1


TEXTS = ["", "é", "zz", "q", "plain", "z" * 40]


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("mode", ["complete", pytest.param("append", marks=pytest.mark.slow)])
def test_a_sort_merge_join_above_the_largest_text_of_a_group(
    console: Any, tmp_path: Path, mode: str, partitions: int
) -> None:
    """Report 6. A function takes the rows, and all of the state is committed."""
    rng, (source, names, out) = random.Random(6), (tmp_path / name for name in ("in", "dim", "out"))
    source.mkdir()
    names.mkdir()
    (names / "1.json").write_text("\n".join(json.dumps({"k": k, "name": f"n{k}"}) for k in range(300)))
    first = datetime(2024, 1, 1)
    for number in range(3):
        rows = (
            {"k": rng.randrange(250), "txt": rng.choice(TEXTS), "at": (first + timedelta(minutes=number * 10, seconds=rng.randrange(9))).isoformat() + "Z"}
            for _ in range(300)
        )  # fmt: skip
        (source / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    (source / "9.json").write_text('{"k": 999, "txt": "", "at": "2024-01-02T00:00:00Z"}')
    (tmp_path / "keep.py").write_text(
        f"def rows(batch, number):\n    batch.write.mode('overwrite').json('{out}/%03d' % number)\n"
    )
    console.session.variables["here"] = str(tmp_path)
    group = "k" if mode == "complete" else "k, at"
    groups = f"(SELECT {group}, max(txt) AS m FROM {{}} GROUP BY {group})"
    select = f"SELECT CAST(a.k AS STRING) AS k, d.name, a.m FROM {groups} a JOIN dim d ON a.k = d.k"
    console.run(f"""
      SET spark.sql.autoBroadcastJoinThreshold = -1; SET spark.sql.adaptive.enabled = false;
      SET spark.sql.shuffle.partitions = {partitions};
      CREATE STREAM s (k INT, txt STRING, at TIMESTAMP) USING json OPTIONS (path '{source}', maxFilesPerTrigger 1)
        WITH WATERMARK at DELAY OF 1 MINUTE;
      CREATE TEMPORARY VIEW dim AS SELECT * FROM json.`{names}`;
      CREATE SINK received USING foreach_batch OPTIONS (function 'keep.rows');
      INSERT INTO received AS QUERY q OUTPUT MODE {mode} TRIGGER AVAILABLE NOW {select.format("s")};
      AWAIT QUERY q; START QUERY q; AWAIT QUERY q;
    """)
    session = own_session(console.session.parts.spark)
    session.read.schema("k INT, txt STRING, at TIMESTAMP").json(str(source)).createOrReplaceTempView("rows")
    right = sorted(map(tuple, session.sql(select.format("rows")).collect()))
    batches = sorted(folder for folder in out.iterdir())
    kept = batches if mode == "append" else batches[-1:]
    lines = (line for folder in kept for file in folder.glob("*.json") for line in file.open())
    assert sorted((row["k"], row["name"], row["m"]) for row in map(json.loads, lines)) == right
    assert len(right) > 200
    console.run("RESET;")


@pytest.mark.slow
def test_a_self_join_of_a_windowed_count_while_files_land(console: Any, tmp_path: Path) -> None:
    """Report 7. A query reads a stream twice, by two listings, between which a file may land."""
    (folder := tmp_path / "in").mkdir()
    count = "(SELECT k, w, n FROM (SELECT k, window AS w, count(*) AS n FROM {} GROUP BY k, window(at, '10 seconds')))"
    joined = "SELECT a.k, a.w.end AS until, a.n, b.n AS m FROM {0} a JOIN {0} b ON a.k = b.k AND a.w = b.w"

    def write(number: int, second: int) -> None:
        at = (datetime(2024, 1, 1) + timedelta(seconds=second)).isoformat() + "Z"
        (tmp_path / "part").write_text("".join(json.dumps({"k": k, "at": at}) + "\n" for k in "aab"))
        (tmp_path / "part").rename(folder / f"{number:03}.json")

    def land() -> None:
        pause = threading.Event()
        for number in range(1, 60):
            write(number, number * 2)
            pause.wait(0.03)

    write(0, 0)
    console.run(f"""
      CREATE STREAM s (k STRING, at TIMESTAMP) USING json OPTIONS (path '{folder}') WITH WATERMARK at DELAY OF 1 MINUTE;
      CREATE LIVE TABLE t AS {joined.format(count.format("s"))};""")
    landing = threading.Thread(target=land)
    landing.start()
    landing.join()
    console.run("AWAIT QUERY t IDLE; STOP QUERY t; START QUERY t;")
    write(60, 10_000)
    console.run("AWAIT QUERY t IDLE;")
    session = own_session(console.session.parts.spark)
    session.read.schema("k STRING, at TIMESTAMP").json(str(folder)).createOrReplaceTempView("rows")
    right = session.sql(joined.format(count.format("rows"))).where("until < TIMESTAMP '2024-01-01 01:00:00'")
    rows = console.rows("SELECT k, CAST(until AS STRING), n, m FROM t;")
    expected = [tuple(row) for row in right.selectExpr("k", "CAST(until AS STRING)", "n", "m").collect()]
    assert sorted(rows) == sorted(expected) and len(rows) == 24
    console.run("STOP QUERY t;")
