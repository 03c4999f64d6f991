"""The classes of the console in Spark's JVM: local files without processes, rules over plans."""

from __future__ import annotations

import json
import random
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from early_classes import LIST
from spark_classes_jar import contents

from streamsql.connectors.event_metrics import SHARES
from streamsql.errors import StreamsqlError
from streamsql.runtime.checkpoints.hadoop_files import names_in
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_classes import (
    CLOSED_WINDOWS,
    EMITTED_GROUPS,
    JAR,
    LOCAL_FILES,
    SHARING,
    SLIDES,
)


def test_the_jar_is_what_its_sources_compile_to(spark: Any) -> None:
    with zipfile.ZipFile(JAR) as jar:
        kept = {name: jar.read(name) for name in jar.namelist()}
    compiled = contents(spark.sparkContext._gateway)
    assert [name for name in kept | compiled if kept.get(name) != compiled.get(name)] == []


def test_the_classes_that_are_loaded_early_are_there(spark: Any) -> None:
    names = LIST.read_text().splitlines()
    loader = spark._jvm.java.lang.ClassLoader.getSystemClassLoader()
    shared = [
        name for name in names[::50] if loader.getResource(f"{name.replace('.', '/')}.class") is not None
    ]
    assert len(names) > 10_000 and len(shared) == len(names[::50])


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


def test_the_session_starts_without_the_functions_of_mllib(spark: Any) -> None:
    """Only MLlib's own API can call them, and to register them takes a sixth of the time until a first row."""
    registry = getattr(
        getattr(spark._jvm.org.apache.spark.sql.catalyst.analysis, "FunctionRegistry$"), "MODULE$"
    )
    functions = registry.internal().listFunction().mkString(" ").split()
    assert [name for name in functions if name.endswith((".vector_to_array", ".array_to_vector"))] == []
    assert any(name.endswith(".unwrap_udt") for name in functions)  # the registry is the right one


EPOCH = datetime(1970, 1, 1)
COLUMNS = "k STRING, v INT, d DECIMAL(9, 2), at TIMESTAMP"
BY_SLIDES = (
    "SELECT k, window.start AS since, window.end AS until, count(*) AS n, count(v) FILTER (WHERE v > 3) AS c, sum(v) AS s,"
    " min(v) AS least, max(at) AS newest, sum(d) AS ds"
    " FROM s GROUP BY k, window(at, '10 seconds', '2 seconds', '500 milliseconds')"
)


def write_rows(folder: Path, number: int) -> None:
    """A file with rows of two minutes around 1970, some without a key, value or time."""
    rng, lines = random.Random(number), []
    for _ in range(400):
        at = EPOCH + timedelta(microseconds=rng.randrange(-60_000_000, 60_000_000))
        row = {"k": rng.choice("ab"), "v": rng.randrange(9), "d": rng.randrange(9999) / 100}
        row["at"] = at.isoformat() + "Z"
        row.pop(rng.choice(["k", "v", "d", "at", "", "", ""]), None)
        lines.append(json.dumps(row) + "\n")
    part = folder.parent / f"{number}.part"
    part.write_text("".join(lines))
    part.rename(folder / f"{number}.json")


def test_windows_aggregated_by_slides_are_those_of_a_batch_and_resume_a_checkpoint_without(
    console: Any, spark: Any, tmp_path: Path
) -> None:
    (folder := tmp_path / "in").mkdir()
    both = f"{BY_SLIDES} UNION ALL " + BY_SLIDES.replace("'2 seconds'", "'3 seconds'")
    console.run(f"CREATE STREAM s ({COLUMNS}) USING json OPTIONS (path '{folder}'); SET {SLIDES} = off;")
    write_rows(folder, 0)
    console.run(f"CREATE LIVE TABLE t AS {both}; AWAIT QUERY t IDLE; STOP QUERY t; RESET {SLIDES};")
    write_rows(folder, 1)
    console.run("START QUERY t; AWAIT QUERY t IDLE;")
    plan = console.session.parts.queries.all["t"].handle._jsq.explainInternal(False)
    assert plan.count("AS slide#") == 1  # not of windows whose size is no multiple of their slide
    session = own_session(spark)
    session.read.schema(COLUMNS).json(str(folder)).createOrReplaceTempView("s")
    expected = map(repr, map(tuple, collect(session.sql(both)).rows))
    assert sorted(map(repr, console.rows("SELECT * FROM t;"))) == sorted(expected)


def test_event_times_are_counted_by_the_watermark_as_spark_would(console: Any, tmp_path: Path) -> None:
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
    percentiles = metrics.pop("percentiles")
    assert metrics == {
        "read": 12_302, "times": 12_301, "oldest": -1, "newest": newest, "sampled": 4_096 + 301
    }  # fmt: skip
    for share, time in zip(SHARES, percentiles, strict=True):
        rank = sum(each <= time for each in times) / len(times)
        assert abs(rank - share) < 0.004 + 0.04 * share, (share, rank)


def test_equal_windows_of_a_stream_read_it_once_close_and_resume_a_checkpoint_without(
    console: Any, spark: Any, tmp_path: Path
) -> None:
    """With Spark's own rule for equal exchanges, the second windows would lose their watermark and never close."""
    rows = own_session(spark).range(100).selectExpr("id", "timestamp_seconds(id * 5) AS at")
    rows.where("id < 50").write.parquet(str(tmp_path / "in"))
    slides = (
        "(SELECT window.start AS since, count(*) AS n FROM s WHERE id < 98"
        " GROUP BY window(at, '20 seconds', '10 seconds'))"
    )
    console.run(
        f"CREATE STREAM s (id BIGINT, at TIMESTAMP) USING parquet OPTIONS (path '{tmp_path}/in')"
        " WITH WATERMARK at DELAY OF 1 SECOND;"
        f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path}/out'); SET {SHARING} = off;"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW"
        f" SELECT a.since, a.n, b.n AS m FROM {slides} a JOIN {slides} b ON a.since = b.since;"
        f"AWAIT QUERY q; RESET {SHARING};"
    )
    query = console.session.parts.queries.all["q"]
    assert "Shared" not in query.handle._jsq.explainInternal(False) and query.reports.rows_in == 2 * 50
    rows.where("id >= 50").write.mode("append").parquet(str(tmp_path / "in"))
    console.run("START QUERY q; AWAIT QUERY q;")
    query = console.session.parts.queries.all["q"]
    plan = query.handle._jsq.explainInternal(False)
    assert plan.count("Shared") == 2 and plan.count("AS slide#") == 2 and query.reports.rows_in == 50
    # The watermark is 08:04: the windows that end at 00:10 to 08:00 are closed.
    assert console.rows(
        f"SELECT count(*), min(since), max(since), sum(n), sum(m) FROM parquet.`{tmp_path}/out`;"
    ) == [(48, EPOCH - timedelta(seconds=10), EPOCH + timedelta(seconds=460), 2 + 47 * 4, 2 + 47 * 4)]
    assert dict(console.rows("DESCRIBE STREAM s;"))[
        "event times in q"
    ] == (  # of the run; filters first, as without metrics
        "48 rows in 1 micro-batch: 1970-01-01 00:04:10 to 1970-01-01 00:08:05"
    )


COUNTS = (
    "(SELECT k, window AS w, count(*) AS n FROM s GROUP BY k, window(at, '10 seconds', '{slide} seconds'))"
)
TOTALS = "(SELECT window AS w, sum(v) AS total FROM s WHERE v > 2 GROUP BY window(at, '10 seconds', '{slide} seconds'))"
MOST = (
    f"SELECT c.k, c.w.end AS until, c.n FROM {COUNTS} c"
    f" JOIN (SELECT w, max(n) AS most FROM {COUNTS} GROUP BY w) m ON c.w = m.w AND c.n >= m.most"
)
SHARES_OF = f"SELECT c.k, c.w.end AS until, c.n, t.total FROM {COUNTS} c JOIN {TOTALS} t ON t.w = c.w"
PAIRS = (
    f"SELECT a.k, a.w.end AS until, a.n, b.n AS m FROM {COUNTS} a JOIN {COUNTS} b ON a.k = b.k AND a.w = b.w"
)
EARLY = (
    f"SELECT c.k, c.w.end AS until, c.n, e.v FROM {COUNTS} c"
    " JOIN (SELECT k, window AS w, max(v) AS v FROM s WHERE v > 5 AND at < TIMESTAMP '1970-01-01 00:01:00'"
    " GROUP BY k, window(at, '10 seconds', '{slide} seconds')) e ON c.k = e.k AND c.w = e.w"
)
"""Later, no rows come from one side."""


def write_late_rows(folder: Path, number: int) -> None:
    """A file with rows of about half a minute after those of the file before; some are late, or without a time."""
    rng, lines = random.Random(number), []
    for _ in range(150):
        at = EPOCH + timedelta(seconds=number * 20 + rng.randrange(30) - rng.choice([0, 0, 0, 60]))
        row = {"k": rng.choice("abc"), "v": rng.randrange(9), "at": at.isoformat() + "Z"}
        row.pop(rng.choice(["k", "v", "at", *"......."]), None)
        lines.append(json.dumps(row) + "\n")
    part = folder.parent / f"{number}.part"
    part.write_text("".join(lines))
    part.rename(folder / f"{number:02}.json")


@pytest.mark.parametrize(
    ("text", "shared", "slide"),
    [(MOST, True, 2), (PAIRS, True, 2), (SHARES_OF, False, 2), (EARLY, False, 2), (MOST, True, 10)],
    ids=["most", "pairs", "shares", "early", "most, no slides"],
)
def test_joins_of_closed_windows_and_shared_states_give_the_rows_of_spark_s_own_plan(
    console: Any, tmp_path: Path, text: str, shared: bool, slide: int
) -> None:
    """One query with Spark's own plan; another begun with it, and resumed with the changed one twice."""
    (folder := tmp_path / "in").mkdir()
    both = (SHARING, CLOSED_WINDOWS)
    off = "".join(f"SET {setting} = off;" for setting in both)
    on = "".join(f"RESET {setting};" for setting in both)
    select = text.replace("{slide}", str(slide))
    script = "CREATE STREAM s (k STRING, v INT, at TIMESTAMP) USING json"
    script += f" OPTIONS (path '{folder}', maxFilesPerTrigger 1) WITH WATERMARK at DELAY OF 5 SECONDS; {off}"
    for name in ("own", "other"):
        script += f"CREATE SINK {name}_out USING parquet OPTIONS (path '{tmp_path}/{name}');"
        script += (
            f"INSERT INTO {name}_out AS QUERY {name} TRIGGER AVAILABLE NOW {select}; AWAIT QUERY {name};"
        )
    for number in range(2):
        write_late_rows(folder, number)
    console.run(script)
    plan = console.session.parts.queries.all["other"].handle._jsq.explainInternal(False)
    assert "OfAnother" not in plan and "AtOnce" not in plan
    for settings, numbers in ((on, range(2, 4)), (off, range(4, 6))):
        for number in numbers:
            write_late_rows(folder, number)
        results = console.run(
            f"{off} START QUERY own; AWAIT QUERY own; {settings} START QUERY other; AWAIT QUERY other;"
        )
        assert "none written" not in str(
            results
        )  # though the join comes last, whose rows Spark does not count
        running = console.session.parts.queries.all["other"]
        plan = running.handle._jsq.explainInternal(False)
        # The second time the states are off, but there is only one since the first time.
        assert ("OfAnother" in plan) == shared and ("AtOnce" in plan) == (settings == on)
        assert all(r["stateOperators"][0]["numRowsTotal"] == 0 for r in running.reports.newest())
    console.run(on)
    own, other = (
        sorted(map(repr, console.rows(f"SELECT * FROM parquet.`{tmp_path}/{name}`;")))
        for name in ("own", "other")
    )
    assert own == other and len(own) >= 15


def test_a_shared_state_is_told_and_the_state_of_the_other_refused(console: Any, tmp_path: Path) -> None:
    """A live table: Spark examines there whether the state of each operation was committed."""
    (folder := tmp_path / "in").mkdir()
    for number in range(3):
        write_late_rows(folder, number)
    console.run(
        f"CREATE STREAM s (k STRING, v INT, at TIMESTAMP) USING json OPTIONS (path '{folder}')"
        " WITH WATERMARK at DELAY OF 5 SECONDS;"
        f"CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS {MOST.replace('{slide}', '2')}; AWAIT QUERY t;"
    )
    assert console.rows("SELECT count(*) > 5 FROM t;") == [(True,)]
    told = console.rows("DESCRIBE QUERY t;")
    [own] = console.rows("SELECT count(*) FROM STATE OF QUERY t OPERATOR 1;")
    kept = [value.partition(",")[0] for name, value in told if name == "state of groups"]
    assert own[0] > 3 and kept == [f"{own[0]} rows", "0 rows"]
    with pytest.raises(StreamsqlError) as fault:
        console.run("VERIFY QUERY t;")
    assert "0 too many" in fault.value.message and "neither" not in str(fault.value.detail)
    checkpoint = dict(console.rows("DESCRIBE CHECKPOINT OF QUERY t;"))
    assert checkpoint["state 3"] == "stateStoreSave, kept by state 1"
    with pytest.raises(StreamsqlError) as fault:
        console.run("SELECT * FROM STATE OF QUERY t OPERATOR 3;")
    assert fault.value.message.startswith("operator 3 has no state of its own: operator 1 aggregates")
    assert fault.value.hint == "read OPERATOR 1"


def test_split_part_by_a_character_is_spark_s_own(spark: Any) -> None:
    session = own_session(spark)
    texts = session.createDataFrame(
        [(each,) for each in ("a/b/c", "/", "", None, "//x", "a.b|c\\d")], "u STRING"
    )
    for delimiter in ("/", ".", "|", "\\\\", "b", "/b"):
        parts = [f"split_part(u, '{delimiter}', {n})" for n in (1, 2, -1)]
        split = texts.selectExpr("u", *parts)
        plan = split._jdf.queryExecution().executedPlan().toString()
        assert ("stringsplitsql" in plan) == (delimiter == "/b")
        separator = delimiter.replace("\\\\", "\\")
        for text, *found in collect(split).rows:
            words = (text or "").split(separator)
            expected = [words[n] if -len(words) <= n < len(words) else "" for n in (0, 1, -1)]
            assert found == (expected if text is not None else [None] * 3), (text, delimiter)


@pytest.mark.parametrize("generated", [True, False])
def test_the_current_time_of_a_micro_batch_compiles_no_code(
    console: Any, spark: Any, tmp_path: Path, generated: bool
) -> None:
    source, copies = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    console.run(f"""
      CREATE STREAM s (n BIGINT) USING csv OPTIONS (path '{source}');
      CREATE SINK out USING json OPTIONS (path '{copies}');
    """)
    compiled, began = [], datetime.now(UTC) - timedelta(milliseconds=1)
    for number in range(4):
        (source / f"{number}.csv").write_text(f"{number}\n")
        before = metrics.METRIC_COMPILATION_TIME().getCount()
        if number:
            console.run("START QUERY q; AWAIT QUERY q;")
        else:
            console.run(f"""
              SET spark.sql.codegen.wholeStage = {generated};
              SET spark.sql.codegen.factoryMode = {"FALLBACK" if generated else "NO_CODEGEN"};
              INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW
              SELECT n, now() AS at, unix_micros(now() - INTERVAL 1 DAY) AS before FROM s
              WHERE now() > TIMESTAMP '2020-01-01 00:00:00' AND n >= 0;
              AWAIT QUERY q;
            """)
        compiled.append(metrics.METRIC_COMPILATION_TIME().getCount() - before)
    assert (compiled[0] > 0) == generated and compiled[-1] == 0
    rows = [json.loads(line) for file in copies.glob("*.json") for line in file.read_text().splitlines()]
    rows.sort(key=lambda row: int(row["n"]))
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    times = [datetime.fromisoformat(row["at"]) for row in rows]
    assert began <= times[0] < times[1] < times[2] < times[3] <= datetime.now(UTC)
    assert [datetime.fromtimestamp(row["before"] / 1e6, UTC) for row in rows] == [
        pytest.approx(at - timedelta(days=1), abs=timedelta(milliseconds=1)) for at in times
    ]


def test_event_times_of_rows_that_several_jobs_compute_count_once(console: Any, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    (folder / "1.json").write_text("\n".join(json.dumps({"ms": second * 1_000}) for second in range(100)))
    (tmp_path / "several_jobs.py").write_text(
        "def take(batch, number):\n    batch.take(1)\n    batch.count()\n    batch.collect()\n    batch.take(1)\n"
    )
    console.session.variables["here"] = str(tmp_path)
    console.run(
        f"CREATE STREAM s (ms BIGINT) USING json OPTIONS (path '{folder}')"
        " WITH WATERMARK timestamp_millis(ms) AS at DELAY OF 1 MINUTE;"
        "CREATE SINK out USING foreach_batch OPTIONS (function 'several_jobs.take');"
        "INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW SELECT at FROM s; AWAIT QUERY q;"
    )
    assert dict(console.rows("DESCRIBE STREAM s;"))["event times in q"] == (
        "100 rows in 1 micro-batch: 1970-01-01 00:00:00 to 1970-01-01 00:01:39"
    )


AGGREGATES = (
    "count(*) AS n, count(v) FILTER (WHERE v > 3) AS c, sum(v) AS s, avg(v) AS a, stddev(x) AS dev, corr(v, x) AS r,"
    " min(t) AS least, max(t) AS most, max_by(k, x) AS by, first(v, true) AS one, sum(d) AS ds, avg(x) AS ax,"
    " bool_or(v > 7) AS any_high, regr_slope(x, v) AS slope"
)


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_emitted_groups_have_the_results_of_spark_s_own_plan(spark: Any, tmp_path: Path, mode: str) -> None:
    """Into a sink that reads all rows, with PySpark; Spark's own plan gives the same to the last bit."""
    (folder := tmp_path / "in").mkdir()
    rng = random.Random(3)
    for number in range(4):
        lines = []
        for _ in range(200):
            row = {"k": rng.choice("abc"), "v": rng.randrange(9), "x": rng.random(), "d": rng.random() * 100}
            row["t"] = rng.choice(["", "é", "zz", "q"])
            row["at"] = (EPOCH + timedelta(seconds=number * 20 + rng.randrange(20))).isoformat() + "Z"
            row.pop(rng.choice(["k", "v", "x", "d", "t", *"......."]), None)
            lines.append(json.dumps(row) + "\n")
        (folder / f"{number}.json").write_text("".join(lines))
    session = own_session(spark)
    reader = session.readStream.schema("k STRING, v INT, x DOUBLE, t STRING, d DECIMAL(9, 2), at TIMESTAMP")
    stream = reader.option("maxFilesPerTrigger", 1).json(str(folder)).withWatermark("at", "5 seconds")
    stream.createOrReplaceTempView("emitted")
    rows, plans = {}, {}
    for setting in ("on", "off"):
        session.conf.set(EMITTED_GROUPS, setting)
        groups = session.sql(
            f"SELECT window.start AS since, k, {AGGREGATES} FROM emitted GROUP BY window(at, '10 seconds'), k"
        )
        writer = groups.writeStream.format("memory").queryName(f"emitted_{mode}_{setting}").outputMode(mode)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        plan = query._jsq.explainInternal(False)
        plans[setting] = "Aggregate" in plan[: plan.index("StateStoreSave")]
        rows[setting] = sorted(map(repr, session.table(f"emitted_{mode}_{setting}").collect()))
    assert plans == {"on": False, "off": True}
    assert rows["on"] == rows["off"] and len(rows["on"]) >= 24


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


TABLE = "(SELECT k, window_end AS e, count(*) AS n FROM {call} GROUP BY k, window_start, window_end)"
TUMBLE = TABLE.format(call="TUMBLE(TABLE {0}, DESCRIPTOR(at), INTERVAL 1 MINUTE)")
HOP = TABLE.format(call="HOP(TABLE {0}, DESCRIPTOR(at), INTERVAL 30 SECONDS, INTERVAL 1 MINUTE)")
WINDOW = "(SELECT k, window.end AS e, count(*) AS n FROM {0} GROUP BY k, window(at, '1 minute'))"


@pytest.mark.parametrize(
    ("provider", "sides"),
    [
        ("HDFSBacked", {"ends": (WINDOW, WINDOW), "hops": (HOP, HOP), "mixed": (TUMBLE, WINDOW)}),
        ("RocksDB", {"mixed": (TUMBLE, WINDOW)}),
    ],
    ids=["in memory", "RocksDB"],
)
def test_joins_by_the_ends_of_windows_keep_no_state(
    console: Any, provider: str, sides: dict[str, tuple[str, str]]
) -> None:
    """The watermark stops a microsecond before the end of the first window, when only a window table emits it."""
    key = "spark.sql.streaming.stateStore.providerClass"
    console.run(f"SET {key} = org.apache.spark.sql.execution.streaming.state.{provider}StateStoreProvider;")
    for name in "ab":
        console.run(
            f"CREATE STREAM {name} (k INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF 1 MINUTE;"
        )
    for name, (left, right) in sides.items():
        joined = f"{left.format('a')} x JOIN {right.format('b')} y ON x.k = y.k AND x.e = y.e"
        [result] = console.run(f"CREATE LIVE TABLE {name} AS SELECT x.k, x.e, x.n, y.n AS m FROM {joined};")
        assert "unbounded" not in str(result.notes)
        assert len(set(result.notes)) == len(result.notes)  # a window table of both sides is told once
    moments = [(1, "00:00:10"), (1, "00:01:59.999999"), (3, "00:20:00")]
    for number, (k, at) in enumerate(moments):
        more = ", (2, TIMESTAMP '2024-01-01 00:00:30')" if not number else ""
        console.run(f"""INSERT INTO a VALUES ({k}, TIMESTAMP '2024-01-01 {at}');
            INSERT INTO b VALUES ({k}, TIMESTAMP '2024-01-01 {at}'){more}; AWAIT QUERY ALL IDLE;""")
    tumbling = [(1, "00:01:00"), (1, "00:02:00")]
    for name in sides:
        ends = tumbling
        if name == "hops":
            ends = sorted([*tumbling, (1, "00:00:30"), (1, "00:02:30")])
        rows = console.rows(f"SELECT k, date_format(e, 'HH:mm:ss'), n, m FROM {name} ORDER BY k, e;")
        assert rows == [(k, e, 1, 1) for k, e in ends], name
        last = console.session.queries.all[name].progress(1)[-1]
        joins = [s for s in last["stateOperators"] if s["operatorName"] == "symmetricHashJoin"]
        assert [s["numRowsTotal"] for s in joins] == [0], name
    console.run(f"STOP QUERY ALL; RESET {key};")
