"""EXPORT QUERY: a folder with which spark-submit runs a query as the console did, without streamsql."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Console, notes_of
from data_files import put_whole

from streamsql.definitions import Query
from streamsql.errors import StartFault, StreamsqlError
from streamsql.features.export.plan import Export
from streamsql.features.export.run import PLANS
from streamsql.language.statements.base import Name
from streamsql.plan.planner import start_plan
from streamsql.results import Done
from streamsql.runtime.engine.java import find_java, spark_home

ROOMS = ("streamsql/features/export/", "streamsql/runtime/", "streamsql/plan/")

FIRST = [("a", "10:01"), ("b", "10:02"), ("a", "10:11")]
SECOND = [("a", "10:12"), ("b", "10:13"), ("c", "10:45")]
CLICKS = "CREATE STREAM clicks (word STRING, at TIMESTAMP) USING csv OPTIONS (path '{0}/in') WITH WATERMARK at DELAY '1 minute';"


def feed(folder: Path, name: str, rows: list[tuple[str, str]]) -> None:
    (folder / "in").mkdir(exist_ok=True)
    put_whole(folder / "in" / name, "".join(f"{word},2024-05-01 {at}:00\n" for word, at in rows))


def spark_submit(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an exported program as its README says, in another folder."""
    try:
        java = find_java("system")
    except StartFault as error:
        pytest.skip(f"spark-submit needs a full Java: {error.message}")
    home = spark_home()
    env = {
        **os.environ,
        "JAVA_HOME": str(java.path.resolve().parent.parent),
        "PYSPARK_PYTHON": sys.executable,
    }
    flags = (
        "--master",
        "local[1]",
        "--conf",
        "spark.ui.enabled=false",
        "--conf",
        "spark.driver.host=localhost",
    )
    command = [str(home / "bin" / "spark-submit"), *flags, str(folder / program), *arguments]
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    return subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, timeout=200)


def run_here(spark: Any, program: Path, *arguments: str) -> None:
    """Run an exported program on the shared Spark."""
    before = sys.argv
    sys.argv = [str(program), *arguments]
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        sys.argv = before


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_spark_submit_continues_from_the_checkpoint_of_the_console(console: Console, tmp_path: Path) -> None:
    feed(tmp_path, "1.csv", FIRST)
    (tmp_path / "shouting.py").write_text("def up(word: str) -> str:\n    return word.upper()\n")
    console.session.variables["here"] = str(tmp_path)
    console.run(
        CLICKS.format(tmp_path)
        + "CREATE FUNCTION up AS 'shouting.up' LANGUAGE PYTHON RETURNS STRING;"
        + f"CREATE SINK o USING json OPTIONS (path '{tmp_path}/out');"
        + "INSERT INTO o AS QUERY copy TRIGGER AVAILABLE NOW SELECT up(word) AS word, minute(window.start) AS m, count(*) AS n"
        + " FROM clicks GROUP BY word, window(at, '10 minutes'); AWAIT QUERY copy;"
        + f"EXPORT QUERY copy TO '{tmp_path}/jobs';"
    )
    folder = tmp_path / "jobs"
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "modules",
        "query_copy.py",
        "requirements.txt",
    ]
    assert "import streamsql" not in (folder / "query_copy.py").read_text()
    assert "pyspark==" in (folder / "requirements.txt").read_text()
    checkpoint = os.path.realpath(console.session.parts.places.checkpoint("copy"))
    assert f"spark-submit query_copy.py --checkpoint {checkpoint}\n" in (folder / "README.md").read_text()
    (tmp_path / "shouting.py").unlink()  # the folder has it
    feed(tmp_path, "2.csv", SECOND)
    done = spark_submit(folder, "query_copy.py", "--checkpoint", checkpoint)
    assert done.returncode == 0, done.stderr[-3000:]
    # Each closed window once; that of 10:10 has rows of both runs. The window of 10:40 is still open.
    rows = console.rows(f"SELECT word, m, n FROM json.`{tmp_path}/out` ORDER BY m, word;")
    assert rows == [("A", 0, 1), ("B", 0, 1), ("A", 10, 2), ("B", 10, 1)]


@pytest.mark.slow
def test_a_live_table_continues_with_its_rows_and_the_view_that_it_joins(
    console: Console, spark: Any, tmp_path: Path
) -> None:
    feed(tmp_path, "1.csv", FIRST)
    (tmp_path / "names.csv").write_text("a,Anna\nb,Bert\nc,Cleo\n")
    console.run(
        CLICKS.format(tmp_path)
        + f"CREATE TEMPORARY VIEW names (word STRING, name STRING) USING csv OPTIONS (path '{tmp_path}/names.csv');"
        + "CREATE LIVE TABLE counts TRIGGER AVAILABLE NOW AS SELECT name, count(*) AS n FROM clicks JOIN names USING (word) GROUP BY name;"
        + f"AWAIT QUERY counts; EXPORT QUERY ALL TO '{tmp_path}/jobs';"
    )
    places = console.session.parts.places
    program = tmp_path / "jobs" / "query_counts.py"
    with pytest.raises(SystemExit):  # a program without its checkpoint would begin anew by mistake
        run_here(spark, program)
    feed(tmp_path, "2.csv", SECOND)
    (tmp_path / "more").mkdir()
    shutil.move(tmp_path / "names.csv", tmp_path / "more" / "names.csv")
    spark.catalog.dropTempView("names")
    rows = tmp_path / "rows"
    taken = ("--checkpoint", places.checkpoint("counts"), "--rows-of-counts", str(rows))
    run_here(spark, program, *taken, "--names-path", str(tmp_path / "more"))
    # Only changed groups are in the files of this run: all of them, as each got a row.
    (newest,) = rows.glob("*.new")
    with pa.memory_map(str(newest)) as source:
        table = pa.ipc.open_file(source).read_all()
    assert sorted(zip(*(table[c].to_pylist() for c in ("name", "n")), strict=True)) == [
        ("Anna", 3), ("Bert", 2), ("Cleo", 1),
    ]  # fmt: skip


@pytest.mark.usefixtures("processes")
def test_secrets_and_their_absence(console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(tmp_path, "1.csv", FIRST)
    console.run(
        CLICKS.format(tmp_path)
        + "CREATE SINK a USING jdbc OPTIONS (url 'jdbc:postgresql://db/shop', table 't', user 'me', password 'hunter2');"
        + "CREATE SINK b USING jdbc OPTIONS (url 'jdbc:postgresql://db/shop', table 'u', user 'me', password '${env:PG}');"
        + "SET spark.hadoop.fs.s3a.secret.key = 'hunter3'; SET spark.sql.session.timeZone = 'UTC';"
    )

    queries = [Query(f"to_{s}", (s,), "SELECT word FROM clicks") for s in "ab"]
    console.session.parts.define(*queries)
    runs = tuple(start_plan(query, console.session.parts.context()) for query in queries)
    PLANS[Export](console.session.parts, Export(runs, Name(str(tmp_path / "jobs"))), None)
    for file in (tmp_path / "jobs").iterdir():
        assert "hunter" not in file.read_text()
    readme = (tmp_path / "jobs" / "README.md").read_text()
    assert "environment of the driver: `PASSWORD`." in readme and "environment of the driver: `PG`." in readme
    assert "spark.hadoop.fs.s3a.secret.key" in readme and "org.postgresql:postgresql:" in readme
    monkeypatch.delenv("PG", raising=False)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "jobs" / "query_to_b.py"), "--checkpoint", "c"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "query_to_b.py: error: the environment has no variable PG",
    )


def test_mistakes(console: Console, tmp_path: Path) -> None:
    feed(tmp_path, "1.csv", FIRST)
    console.run(
        CLICKS.format(tmp_path)
        + "CREATE SINK o USING noop; INSERT INTO o AS QUERY q SELECT word FROM clicks;"
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    for statement, code, words in (
        ("EXPORT QUERY p TO 'x'", "UNKNOWN_QUERY", "there is no query p"),
        (f"EXPORT QUERY q TO '{tmp_path}/full'", "FOLDER_IN_USE", "exists and is not empty"),
        (f"EXPORT QUERY q TO '{tmp_path}/full/x'", "FOLDER_IN_USE", "is not a folder"),
        (f"EXPORT QUERY q TO '{tmp_path}/no/x'", "MISSING_PATH", "there is no folder"),
    ):
        with pytest.raises(StreamsqlError, match=words) as raised:
            console.run(f"{statement};")
        assert raised.value.code == code
    (done,) = console.run(f"EXPORT QUERY q TO '{tmp_path}/jobs';")
    assert isinstance(done, Done) and done.message.endswith("jobs: q")
    assert notes_of(done) == ("q runs here: STOP QUERY q; before a program takes over its checkpoint",)
    assert not list(tmp_path.glob(".*"))
