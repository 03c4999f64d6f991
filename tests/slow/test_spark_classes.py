"""The classes of the console in Spark's JVM: local files without processes, rules over plans."""

from __future__ import annotations

import json
import random
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from spark_classes_jar import contents

from streamsql.runtime.checkpoints.hadoop_files import names_in
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.spark_classes import (
    JAR,
    LOCAL_FILES,
)

ROOMS = ("streamsql/runtime/engine/", "streamsql/plan/streaming/")


def test_the_jar_is_what_its_sources_compile_to(spark: Any) -> None:
    with zipfile.ZipFile(JAR) as jar:
        kept = {name: jar.read(name) for name in jar.namelist()}
    compiled = contents(spark.sparkContext._gateway)
    assert [name for name in kept | compiled if kept.get(name) != compiled.get(name)] == []


def file_system(spark: Any) -> Any:
    java = spark._jvm
    return java.org.apache.hadoop.fs.FileSystem.get(
        java.java.net.URI("file:///"), spark._jsc.hadoopConfiguration()
    )


def test_permissions_are_set_as_by_chmod(spark: Any, tmp_path: Path) -> None:
    files, java = file_system(spark), spark._jvm
    assert files.getClass().getName() == LOCAL_FILES
    for mode in (0o600, 0o644, 0o755, 0o440, 0o1777):
        file = tmp_path / f"{mode:o}"
        file.touch()
        files.setPermission(
            java.org.apache.hadoop.fs.Path(str(file)),
            java.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}"),
        )
        assert stat.S_IMODE(file.stat().st_mode) == mode


@contextmanager
def processes_started(spark: Any, file: Path) -> Iterator[list[str]]:
    """The programs that Spark's JVM starts meanwhile, as its flight recorder sees them."""
    jfr, path = spark._jvm.jdk.jfr, spark._jvm.java.io.File(str(file)).toPath()
    programs: list[str] = []
    recording = jfr.Recording()
    recording.enable("jdk.ProcessStart")
    recording.start()
    try:
        yield programs
        recording.stop()
        recording.dump(path)
    finally:
        recording.close()
    for event in jfr.consumer.RecordingFile.readAllEvents(path):
        command = event.getString("command").split()
        if (
            "/artifacts-" not in command[-1]
        ):  # of sessions of other tests, which Spark removes when they are gone
            programs.append(Path(command[0]).name)


def test_folders_are_listed_as_hadoop_lists_them(spark: Any, tmp_path: Path) -> None:
    jvm = spark._jvm
    folder = tmp_path / "a, b%20c" / "d"
    for name in ("plain", "2.compact", ".hidden", "k=1", "with space", "per%cent", "colon:x", "ümlaut", "+"):
        (folder / name).mkdir(parents=True) if name == "k=1" else folder.mkdir(parents=True, exist_ok=True)
        if name != "k=1":
            (folder / name).write_text(name)
    (folder / "plain").chmod(0o640)
    (folder / "link").symlink_to("plain")
    (folder / "broken").symlink_to("nothing")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    local = jvm.org.apache.hadoop.fs.Path(str(folder)).getFileSystem(conf).getRaw()
    assert local.getClass().getName() == f"{LOCAL_FILES}$Raw"
    hadoop = jvm.org.apache.hadoop.fs.RawLocalFileSystem()
    hadoop.initialize(jvm.java.net.URI("file:///"), conf)

    def listed(files: Any, path: str) -> list[tuple[Any, ...]]:
        statuses = files.listStatus(jvm.org.apache.hadoop.fs.Path(path))
        return sorted(
            (s.getPath().toString(), s.getPath().toUri().toString(), s.getLen(), s.isDirectory(), s.isFile(),
             s.getModificationTime(), s.getAccessTime(), s.getBlockSize(), s.getOwner(), s.getGroup(),
             s.getPermission().toString(), s.getReplication(), s.isSymlink())
            for s in statuses
        )  # fmt: skip

    assert len(listed(local, str(folder))) == 10
    for path in (str(folder), f"file://{folder}/../d", f"{folder}/plain", "/usr"):
        assert listed(local, path) == listed(hadoop, path)
    log = tmp_path / "checkpoint" / "offsets"
    for name in ("0", "11", "1.compact", ".2.tmp", "3"):
        (log / name).mkdir(parents=True) if name == "1.compact" else log.mkdir(parents=True, exist_ok=True)
        if name != "1.compact":
            (log / name).write_text(name)
    (log.parent / "metadata").touch()
    assert listed(local, str(log)) == listed(hadoop, str(log))
    (folder / "k=1").rmdir()
    assert listed(local, f"{folder}/link") == listed(hadoop, f"{folder}/link")
    for files in (local, hadoop):
        with pytest.raises(Exception, match="does not exist"):
            listed(files, f"{folder}/nothing")
    remote = SimpleNamespace(getUri=lambda: jvm.java.net.URI("s3a://b"), listStatus=hadoop.listStatus)
    for files in (local, remote):
        names = names_in(jvm, files, jvm.org.apache.hadoop.fs.Path(str(folder)))
        assert {*names, "broken"} == {each.name for each in folder.iterdir()}


@pytest.mark.usefixtures("processes")
def test_a_query_starts_no_process_for_its_checkpoint(console: Any, spark: Any, tmp_path: Path) -> None:
    # Spark itself runs `getconf`, once, ten seconds after its start.
    spark._jvm.org.apache.spark.executor.ProcfsMetricsGetter.pTreeInfo()
    with processes_started(spark, tmp_path / "started.jfr") as programs:
        console.run(
            "CREATE STREAM s (n INT) USING values;"
            "CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS SELECT n, count(*) AS c FROM s GROUP BY n;"
            "AWAIT QUERY t;"
        )
        java = spark._jvm.java
        java.lang.ProcessBuilder(java.util.List.of("/bin/true")).start().waitFor()
    logs = list(tmp_path.glob("console*/**/offsets")) + list(tmp_path.glob("console*/**/commits"))
    assert logs and all(stat.S_IMODE(folder.stat().st_mode) == 0o755 for folder in logs)
    assert programs == ["true"]  # which shows that the others would be seen


def test_a_function_of_the_user_can_use_mllib_s_column_functions(console: Any, tmp_path: Path) -> None:
    (tmp_path / "vectors.py").write_text(
        "from pyspark.ml.functions import array_to_vector, vector_to_array\n"
        "from pyspark.sql.functions import array, col\n"
        "def keep(batch, number):\n"
        "    vectors = batch.select(array_to_vector(array(col('n').cast('double'))).alias('v'))\n"
        "    vectors.select(vector_to_array('v').alias('a')).write.mode('append').json(FOLDER)\n"
        f"FOLDER = {str(tmp_path / 'out')!r}\n"
    )
    console.session.variables["here"] = str(tmp_path)
    console.run(
        "CREATE STREAM s (n INT) USING values;"
        "CREATE SINK out USING foreach_batch OPTIONS (function 'vectors.keep');"
        "INSERT INTO s VALUES (7);"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW SELECT n FROM s; AWAIT QUERY q;"
    )
    assert console.rows(f"SELECT a FROM json.`{tmp_path}/out`;") == [([7.0],)]


EPOCH = datetime(1970, 1, 1)


def test_event_times_of_a_stream_that_is_read_twice_are_counted_once(console: Any, tmp_path: Path) -> None:
    """A stream that is read twice; a task of many rows and one of few, which are late, before 1970 and NULL."""
    (folder := tmp_path / "in").mkdir()
    rng = random.Random(7)
    many = [1_700_000_000_000 + rng.randrange(600_000) for _ in range(12_000)]
    few: list[int | None] = [-1, None, *(1_699_999_000_000 + second * 1_000 for second in range(300))]
    for name, times in (("many", many), ("few", few)):
        lines = (json.dumps({"id": n, "ms": time}) for n, time in enumerate(times))
        (folder / f"{name}.json").write_text("\n".join(lines))
    counted = "(SELECT window.start AS since, {} AS n FROM s {} GROUP BY window(at, '10 seconds'))"
    console.run(
        "SET spark.sql.files.openCostInBytes = 134217728;"  # a task for each file
        f"CREATE STREAM s (id INT, ms BIGINT) USING json OPTIONS (path '{folder}')"
        " WITH WATERMARK timestamp_millis(ms) AS at DELAY OF INTERVAL 1 MINUTE;"
        f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW SELECT a.since, a.n, b.n AS ids"
        f" FROM {counted.format('count(*)', '')} a"
        f" JOIN {counted.format('sum(id)', 'WHERE id % 2 = 0')} b ON a.since = b.since;"
        "AWAIT QUERY q; RESET spark.sql.files.openCostInBytes;"
    )
    newest, times = max(many), sorted(time for time in (*many, *few) if time is not None)
    # The first watermark is 1970: a window before it is late.
    closed = {time // 10_000 for time in times if 0 < (time // 10_000 + 1) * 10_000 <= newest - 60_000}
    assert console.rows(f"SELECT count(*), sum(n) FROM parquet.`{tmp_path}/out`;") == [
        (len(closed), sum(time // 10_000 in closed for time in times))
    ]
    reports = console.session.parts.queries.all["q"].reports.newest()
    [metrics] = [m for r in reports if (m := r["observedMetrics"]["event time s"])["read"]]
    assert metrics == {"read": 12_302, "times": 12_301, "oldest": -1, "newest": newest}


def test_two_equal_windows_of_a_stream_joined_close(console: Any, spark: Any, tmp_path: Path) -> None:
    """With a reused exchange, which the console switches off, Spark's second windows would never close."""
    rows = own_session(spark).range(100).selectExpr("id", "timestamp_seconds(id * 5) AS at")
    rows.where("id < 50").write.parquet(str(tmp_path / "in"))
    counts = (
        "(SELECT window.start AS since, count(*) AS n FROM s WHERE id < 98"
        " GROUP BY window(at, '20 seconds', '10 seconds'))"
    )
    console.run(
        f"CREATE STREAM s (id BIGINT, at TIMESTAMP) USING parquet OPTIONS (path '{tmp_path}/in')"
        " WITH WATERMARK at DELAY OF 1 SECOND;"
        f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path}/out');"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW"
        f" SELECT a.since, a.n, b.n AS m FROM {counts} a JOIN {counts} b ON a.since = b.since;"
        "AWAIT QUERY q;"
    )
    rows.where("id >= 50").write.mode("append").parquet(str(tmp_path / "in"))
    console.run("START QUERY q; AWAIT QUERY q;")
    # The watermark is 08:04: the windows that end at 00:10 to 08:00 are closed.
    assert console.rows(
        f"SELECT count(*), min(since), max(since), sum(n), sum(m) FROM parquet.`{tmp_path}/out`;"
    ) == [(48, EPOCH - timedelta(seconds=10), EPOCH + timedelta(seconds=460), 2 + 47 * 4, 2 + 47 * 4)]


def test_a_function_that_takes_the_first_groups_only_loses_no_state(spark: Any, tmp_path: Path) -> None:
    """Spark itself groups what a state emits again, and so reads it to its end."""
    rows = own_session(spark).range(1000).selectExpr("id % 100 AS k", "timestamp_seconds(id) AS at")
    rows.write.parquet(str(tmp_path / "in"))
    stream = rows.sparkSession.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    taken: list[int] = []
    writer = stream.groupBy("k").count().writeStream.outputMode("update")
    writer = writer.foreachBatch(lambda batch, _: taken.append(len(batch.limit(3).collect())))
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert taken == [3]


TUMBLE = (
    "(SELECT k, window_end AS e, window_time AS w, count(*) AS n"
    " FROM TUMBLE(TABLE {0}, DESCRIPTOR(at), INTERVAL 1 MINUTE) GROUP BY k, window_start, window_end)"
)
WINDOW = "(SELECT k, window AS w, window.end AS e, count(*) AS n FROM {0} GROUP BY k, window(at, '1 minute'))"


@pytest.mark.parametrize("side", [TUMBLE, WINDOW], ids=["window table", "window"])
def test_joins_of_closed_windows_by_what_the_advice_names_keep_no_rows(console: Any, side: str) -> None:
    """The advice for a join by the ends of windows: the windows themselves, or window_time, as a key."""
    for name in "ab":
        console.run(
            f"CREATE STREAM {name} (k INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF 1 MINUTE;"
        )
    for name, key in (("kept", "e"), ("bounded", "w")):
        joined = f"{side.format('a')} x JOIN {side.format('b')} y ON x.k = y.k AND x.{key} = y.{key}"
        [result] = console.run(f"CREATE LIVE TABLE {name} AS SELECT x.k, x.e, x.n, y.n AS m FROM {joined};")
        assert ("the state is unbounded" in str(result.notes)) == (key == "e")
    moments = [(1, "00:00:10"), (1, "00:01:59.999999"), (3, "00:20:00")]
    for number, (k, at) in enumerate(moments):
        more = ", (2, TIMESTAMP '2024-01-01 00:00:30')" if not number else ""
        console.run(f"""INSERT INTO a VALUES ({k}, TIMESTAMP '2024-01-01 {at}');
            INSERT INTO b VALUES ({k}, TIMESTAMP '2024-01-01 {at}'){more}; AWAIT QUERY ALL IDLE;""")
    for name, keeps in (("kept", True), ("bounded", False)):
        rows = console.rows(f"SELECT k, date_format(e, 'HH:mm:ss'), n, m FROM {name} ORDER BY k, e;")
        assert rows == [(1, "00:01:00", 1, 1), (1, "00:02:00", 1, 1)], name
        last = console.session.parts.queries.all[name].progress(1)[-1]
        [join] = [s for s in last["stateOperators"] if s["operatorName"] == "symmetricHashJoin"]
        assert (join["numRowsTotal"] > 0) == keeps, name
    console.run("STOP QUERY ALL;")
