"""The engine's books: micro-batches, checkpoints and state, of running, stopped and other people's queries."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import Note, Source, StreamsqlError
from streamsql.language.parser import parse_script
from streamsql.plan.context import Context
from streamsql.plan.lowering.stateful_calls import ROCKSDB
from streamsql.query_facts import Account
from streamsql.results import Rows
from streamsql.runtime.checkpoints.batch_history import RETAINED_BATCHES, BatchHistory
from streamsql.runtime.checkpoints.checkpoint_files import LocalFiles
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.checkpoints.hadoop_files import HadoopFiles
from streamsql.runtime.checkpoints.offsets import kind_of, step
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

ROOMS = ("streamsql/runtime/",)

WORDS = (
    "CREATE STREAM words (word STRING, n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY '1 minute';"
)
WINDOWS = """CREATE LIVE TABLE t AS SELECT window.start AS since, word, sum(n) AS a, sum(n + 1) AS b FROM words
  GROUP BY window(at, '5 minutes'), word;"""


def put(console: Console, query: str, *rows: str) -> None:
    """One micro-batch of words, each `word n minute`, and wait for the query."""
    split = (row.split() for row in rows)
    values = ", ".join(f"('{w}', {n}, timestamp'2024-05-01 12:{m}:00')" for w, n, m in split)
    console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY {query} IDLE;")


def answer(console: Console, script: str) -> Rows:
    result = console.run(script)[-1]
    assert isinstance(result, Rows), result
    return result


def fault(console: Console, statement: str) -> tuple[StreamsqlError, str]:
    """The error of a statement, and the text that it points at."""
    with pytest.raises(StreamsqlError) as raised:
        console.run(statement)
    span = raised.value.span
    return raised.value, statement[span.start : span.end] if span else ""


@pytest.fixture
def windows(console: Console) -> Console:
    """A windowed aggregation that has run over two inserts, each followed by a batch without data."""
    console.run(WORDS + WINDOWS)
    put(console, "t", "cat 1 00", "dog 2 30")
    put(console, "t", "cat 3 31")
    return console


@pytest.fixture(scope="module")
def plain(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that PySpark alone wrote, of a join and a deduplication before it: three micro-batches."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "in").mkdir()
    for n in range(3):
        (folder / "in" / f"{n}.json").write_text(
            f'{{"k": "a", "v": {n}, "ts": "2024-05-01 12:0{n}:00"}}\n'
            f'{{"k": "b", "v": {n}, "ts": "2024-05-01 12:0{n}:30"}}\n'
        )
    rows = spark.readStream.schema("k string, v int, ts timestamp").option("maxFilesPerTrigger", 1)
    left = rows.json(f"{folder}/in").withWatermark("ts", "1 hour").dropDuplicatesWithinWatermark(["k", "v"])
    right = rows.json(f"{folder}/in").withWatermark("ts", "1 hour").withColumnsRenamed({"k": "k2", "v": "v2"})
    joined = left.join(right.withColumnRenamed("ts", "ts2"), left.k == right.k2)
    made = joined.writeStream.format("noop").option("checkpointLocation", f"{folder}/ck")
    query = made.trigger(availableNow=True).start()
    query.awaitTermination()
    # Whether a batch without data comes behind the last one does not matter here.
    for name in ("offsets", "commits"):
        (folder / "ck" / name / "3").unlink(missing_ok=True)
    return folder / "ck"


# ---- micro-batches ------------------------------------------------------------------------------


@pytest.mark.slow
def test_batches_of_a_running_query_and_of_a_stopped_one(windows: Console) -> None:
    shown = answer(windows, "SHOW BATCHES OF QUERY t;")
    assert shown.columns == ("batch", "status", "planned at", "watermark", "offsets", "rows in", "ms")
    assert [(b, s, w, o, rows) for b, s, _, w, o, rows, _ in shown.rows] == [
        (0, "committed", "", "file batch -> 0", 2),
        (1, "committed", "2024-05-01 12:29:00", "file batch 0", 0),
        (2, "committed", "2024-05-01 12:29:00", "file batch 0 -> 1", 1),
        (3, "committed", "2024-05-01 12:30:00", "file batch 1", 0),
    ]
    assert all(isinstance(row[6], int) and row[6] > 0 for row in shown.rows)
    assert all(str(row[2]).startswith("20") for row in shown.rows)
    assert notes_of(shown) == ("4 micro-batches are in the log: 0 to 3",)
    windows.run("STOP QUERY t;")
    assert answer(windows, "SHOW BATCHES OF QUERY t;").rows == shown.rows
    assert answer(windows, "SHOW BATCHES OF QUERY t LAST 2;").rows == shown.rows[2:]


def test_batches_of_a_query_that_has_read_nothing_yet(console: Console) -> None:
    console.run(WORDS + WINDOWS + "AWAIT QUERY t IDLE;")
    shown = answer(console, "SHOW BATCHES OF QUERY t;")
    assert (shown.rows, notes_of(shown)) == ([], ("no micro-batch has been planned yet",))


def test_a_batch_that_is_planned_and_not_done(console: Console, plain: Path, tmp_path: Path) -> None:
    there = shutil.copytree(plain, tmp_path / "ck")
    (there / "commits" / "2").unlink()
    (there / "offsets" / "0").unlink()
    (there / "commits" / "0").unlink()
    shown = answer(console, f"SHOW BATCHES OF CHECKPOINT '{there}';")
    assert [(r[0], r[1], *r[4:]) for r in shown.rows] == [
        (1, "committed", "0: file batch -> 1; 1: file batch -> 1", None, None),
        (2, "planned", "0: file batch 1 -> 2; 1: file batch 1 -> 2", None, None),
    ]
    [said] = notes_of(shown)
    assert said.startswith("2 micro-batches are in the log: 1 to 2; Spark keeps the newest 100")
    (there / "offsets" / "2").write_text("v1\n{")
    shown = answer(console, f"SHOW BATCHES OF CHECKPOINT '{there}';")
    assert [r[1] for r in shown.rows] == ["committed", "damaged"]
    assert notes_of(shown)[-1] == "micro-batch 2: offsets/2 is incomplete"


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        ('{"logOffset":3}', '{"logOffset":4}', "files", "file batch 3 -> 4"),
        ("3", "3", "rate, socket or another with a counter", "3"),
        (None, "3", "rate, socket or another with a counter", "-> 3"),
        (
            '{"offset":5,"timestamp":1000}',
            '{"offset":10,"timestamp":2000}',
            "rate-micro-batch",
            "offset 5 -> 10",
        ),
        (
            '{"clicks":{"0":3,"1":7}}',
            '{"clicks":{"0":12,"1":7},"ads":{"0":1}}',
            "kafka",
            "clicks[0] 3 -> 12, clicks[1] 7, ads[0] -> 1",
        ),
        (
            '{"clicks":{' + ",".join(f'"{p}":1' for p in range(9)) + "}}",
            '{"clicks":{' + ",".join(f'"{p}":{p + 1}' for p in range(9)) + "}}",
            "kafka",
            "clicks 9 partitions, +36 messages",
        ),
        (
            '{"0":{"value":1,"runTimeMs":5}}',
            '{"0":{"value":4,"runTimeMs":9}}',
            "rate, continuous",
            "partition 0 1 -> 4",
        ),
        (None, '{"page":"a","at":{"line":2}}', "", "page -> a, at.line -> 2"),
        (None, "whatever", "", "whatever"),
        ("3", None, "", "none yet"),
    ],
)
def test_offsets_in_short(before: str | None, after: str | None, kind: str, said: str) -> None:
    assert (kind_of(after), step(before, after)) == (kind, said)


def test_what_is_kept_of_batches_has_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "batches.jsonl"
    kept = BatchHistory(file)
    for number in range(2 * RETAINED_BATCHES + 10):
        report = {"id": "q", "batchId": number, "numInputRows": number, "durationMs": {"triggerExecution": 5}}
        kept.write(kept.add(report, Account()))
    repeated = {
        "id": "q",
        "batchId": 2 * RETAINED_BATCHES,
        "numInputRows": 0,
        "durationMs": {"triggerExecution": 7},
    }
    kept.write(kept.add(repeated, Account()))
    assert len(file.read_text().splitlines()) == RETAINED_BATCHES + 10
    with file.open("a") as out:
        out.write('{"id": "q", "bat')  # the console was killed
    again = BatchHistory(file)
    assert len(again.done) == RETAINED_BATCHES
    assert again.done["q", 2 * RETAINED_BATCHES] == (0, 7)
    assert ("q", RETAINED_BATCHES) not in again.done


# ---- checkpoints --------------------------------------------------------------------------------


def described(console: Console, of: str) -> dict[str, Any]:
    return {str(k): v for k, v in answer(console, f"DESCRIBE CHECKPOINT {of};").rows}


def test_a_checkpoint_of_the_console(windows: Console) -> None:
    shown = described(windows, "OF QUERY t")
    assert shown["query"] == "t (streamsql)"
    assert shown["statement"].startswith("SELECT window.start AS since")
    assert (shown["micro-batches"], shown["last committed"]) == ("4 in the log: 0 to 3", 3)
    assert shown["watermark"] == "2024-05-01 12:30:00"
    assert shown["source 0"].startswith("files such as file:/")
    assert shown["state 0"] == "stateStoreSave"
    assert shown["state 0 store"] == "default, 1 partition"
    assert shown["state 0 default"] == (
        "key (window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, word STRING), value (sum BIGINT, sum BIGINT)"
    )


def test_a_checkpoint_of_plain_pyspark(console: Console, plain: Path, tmp_path: Path) -> None:
    """The log is read by the console itself, without starting Spark; the columns of states by Spark."""
    shown = described(console, f"'{plain}'")
    assert "query" not in shown
    assert shown["query id"] == Checkpoint(str(plain)).id
    assert shown["shuffle partitions"] == "1"
    assert shown["state store"].startswith("HDFS-backed")
    assert "planned, not committed" not in shown
    operators = {v for k, v in shown.items() if k in ("state 0", "state 1")}
    assert operators == {"dedupeWithinWatermark", "symmetricHashJoin"}
    states = {v for k, v in shown.items() if k.endswith((" default", " left-keyToNumValues"))}
    assert states == {
        "key (k STRING, v INT), value (expiresAtMicros BIGINT)",
        "key (field0 STRING), value (value BIGINT)",
    }
    assert shown["versions"] == "offset log 1, commit log 1, state checkpoint 1"
    assert shown["size"].endswith("files")
    assert shown["spark.sql.streaming.multipleWatermarkPolicy"] == "min"
    config = Config(Settings.make("local[2]", {}), tmp_path / "c", tmp_path / "log", tmp_path)
    without_spark = Console(Session(config))
    shown_batches = answer(without_spark, f"SHOW BATCHES OF CHECKPOINT 'file://{plain}';")
    assert [r[1] for r in shown_batches.rows] == ["committed"] * 3
    assert not without_spark.session.parts.engine.started
    assert not without_spark.session.parts.engine.starting


def test_a_half_written_checkpoint_is_described_with_what_is_wrong(
    console: Console, plain: Path, tmp_path: Path
) -> None:
    there = shutil.copytree(plain, tmp_path / "ck")
    (there / "metadata").unlink()
    (there / "commits" / "2").unlink()
    (there / "offsets" / "2").write_text("")
    (there / "offsets" / ".3.5f0e.tmp").write_text("v1")
    shown = described(console, f"'{there}'")
    assert shown["query id"].startswith("not known")
    assert (shown["last committed"], shown["damaged"]) == (1, "2")
    assert shown["unfinished files"] == "offsets/.3.5f0e.tmp"
    error, at = fault(console, f"DESCRIBE CHECKPOINT '{tmp_path}/kc';")
    assert (error.message, at) == (f"there is no folder {tmp_path}/kc", f"'{tmp_path}/kc'")
    error, _ = fault(console, f"DESCRIBE CHECKPOINT '{there}/state';")
    assert error.message.endswith("state is not a checkpoint")


def test_hadoops_file_system_gives_the_same(spark: Any, plain: Path, tmp_path: Path) -> None:
    local, hadoop = Checkpoint(str(plain)), Checkpoint(f"file://{plain}", HadoopFiles(spark))
    assert hadoop.id == local.id
    assert hadoop.batches() == local.batches()
    assert hadoop.operators() == local.operators()
    assert hadoop.size()[0] <= local.size()[0]  # Hadoop's local file system hides its checksums
    assert hadoop.last_written() == pytest.approx(local.last_written(), abs=1)
    for wrong in ("nowhere", "metadata"):
        errors = []
        for files in (LocalFiles(), HadoopFiles(spark)):
            with pytest.raises(StreamsqlError) as raised:
                Checkpoint(f"{plain}/{wrong}", files)
            errors.append(raised.value.message)
        assert errors[0] == errors[1]


# ---- state --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_state_of_a_windowed_aggregation(windows: Console) -> None:
    """Where it runs and where it has stopped; as columns, as Spark has it, as it was, and as it changed."""
    state = "SELECT word, date_format(window.start, 'HH:mm') AS since, sum, sum_2 FROM STATE OF QUERY t"
    now = [("cat", "12:30", 3, 4), ("dog", "12:30", 2, 3)]
    assert windows.rows(f"{state} ORDER BY word;") == now
    assert windows.rows(f"{state} AT BATCH 0 ORDER BY word;") == [("cat", "12:00", 1, 2), now[1]]
    windows.run("STOP QUERY t;")
    assert windows.rows(f"{state} ORDER BY word;") == now
    assert windows.rows("SELECT key.word FROM STATE OF QUERY t OPERATOR 0 RAW s ORDER BY s.key.word;") == [
        ("cat",),
        ("dog",),
    ]
    changed = windows.rows("SELECT batch_id, change_type, word FROM STATE OF QUERY t CHANGES FROM BATCH 1;")
    assert sorted(changed) == [(1, "delete", "cat"), (2, "update", "cat")]
    assert windows.rows("SELECT operatorName, maxBatchId FROM STATE METADATA OF QUERY t;") == [
        ("stateStoreSave", 3)
    ]


@pytest.mark.slow
def test_state_stands_wherever_a_relation_stands(windows: Console) -> None:
    words = [("cat",), ("dog",)]
    for query in (
        "SELECT t_state.word FROM STATE OF QUERY t ORDER BY 1",
        "SELECT s.word FROM t JOIN STATE OF QUERY t AS s ON s.word = t.word AND s.sum = t.a ORDER BY 1",
        "SELECT word FROM (SELECT * FROM STATE OF QUERY t) WHERE sum > 0 ORDER BY word",
        "WITH s AS (SELECT * FROM STATE OF QUERY t) SELECT word FROM s ORDER BY word",
        "SELECT DISTINCT word FROM t WHERE word IN (SELECT word FROM STATE OF QUERY t) ORDER BY word",
        "SELECT a.word FROM STATE OF QUERY t a, STATE OF QUERY t AT BATCH 2 b WHERE a.word = b.word ORDER BY 1",
        "SELECT word FROM STATE OF QUERY t TABLESAMPLE (100 PERCENT) ORDER BY word",
    ):
        assert windows.rows(f"{query};") == words, query
    windows.run("CREATE TABLE kept USING parquet AS SELECT word FROM STATE OF QUERY t;")
    windows.run("INSERT INTO kept SELECT word FROM STATE OF QUERY t;")
    assert windows.rows("SELECT word, count(*) FROM kept GROUP BY word ORDER BY word;") == [
        ("cat", 2),
        ("dog", 2),
    ]
    windows.run("CREATE TEMPORARY VIEW v AS SELECT word FROM STATE OF QUERY t;")
    assert windows.rows("SELECT * FROM v ORDER BY word;") == words


def test_the_state_of_joins_and_deduplication_that_pyspark_wrote(console: Console, plain: Path) -> None:
    known = f"SELECT DISTINCT operatorName, operatorId FROM STATE METADATA OF CHECKPOINT '{plain}';"
    operators = dict(console.rows(known))
    of = f"SELECT {{}} FROM STATE OF CHECKPOINT '{plain}' OPERATOR"
    dedup = of.format("k, v") + f" {operators['dedupeWithinWatermark']}"
    assert console.rows(f"{dedup} ORDER BY k, v;") == [(k, v) for k in "ab" for v in range(3)]
    join = of.format("*") + f" {operators['symmetricHashJoin']}"
    side = answer(console, f"{join} SIDE RIGHT ORDER BY ts2;")
    assert side.columns == ("field0", "k2", "v2", "ts2", "partition_id")
    assert [r[2] for r in side.rows] == [0, 0, 1, 1, 2, 2]
    assert [r[:2] for r in console.rows(f"{join} STORE 'left-keyToNumValues' ORDER BY field0;")] == [
        ("a", 3),
        ("b", 3),
    ]
    error, _ = fault(console, f"{join};")
    assert error.hint == "SIDE LEFT or SIDE RIGHT"
    error, _ = fault(console, f"SELECT * FROM STATE OF CHECKPOINT '{plain}';")
    assert error.message.endswith("has 2 stateful operators")
    assert f"OPERATOR {operators['symmetricHashJoin']} (symmetricHashJoin)" in error.hint


PROCESSOR = """CREATE FUNCTION {name} AS 'counting.{name}' LANGUAGE PYTHON RETURNS TABLE ({columns});
CREATE LIVE TABLE p AS SELECT * FROM {name}(TABLE(words) PARTITION BY word, time_mode => '{mode}');"""


@pytest.mark.slow
def test_the_state_of_a_processor(console: Console) -> None:
    console.session.variables["here"] = str(Path(__file__).parent / "python_functions")
    console.run(WORDS + PROCESSOR.format(name="Counter", columns="word STRING, n BIGINT", mode="none"))
    put(console, "p", "cat 1 00", "dog 2 30", "cat 3 31")
    read = "SELECT word, n FROM STATE OF QUERY p"
    assert console.rows(f"{read} VARIABLE count ORDER BY word;") == [("cat", 2), ("dog", 1)]
    shown = described(console, "OF QUERY p")
    assert shown["state store"] == "RocksDB"
    assert shown["state 0 count"] == "ValueState, key (word STRING), value (n BIGINT)"
    for written, said, hint, at in (
        ("", "several state variables: name one", "VARIABLE count", "STATE OF QUERY p"),
        ("VARIABLE cont", "no state cont", "did you mean count?", "VARIABLE cont"),
        ("TIMERS", "no timers", "", "TIMERS"),
        ("STORE 'default'", "by VARIABLE, not by STORE", "VARIABLE count", "STORE 'default'"),
        ("VARIABLE count CHANGES FROM BATCH 0", "were not recorded", "changelog", "CHANGES FROM BATCH 0"),
    ):
        error, place = fault(console, f"{read} {written};")
        assert said in error.message
        assert hint in error.hint
        assert place == at
    assert "HDFSBacked" in console.session.spark.conf.get("spark.sql.streaming.stateStore.providerClass")


NOT_THERE = [
    ("OPERATOR 4", "no stateful operator 4", "there is OPERATOR 0 (stateStoreSave)", "OPERATOR 4"),
    ("AT BATCH 9", "micro-batch 9 does not exist", "0 to 3", "AT BATCH 9"),
    ("CHANGES FROM BATCH 2 TO 1", "in the wrong order", "", "CHANGES FROM BATCH 2 TO 1"),
    ("STORE 'defualt'", "no store defualt", "did you mean default?", "STORE 'defualt'"),
    ("SIDE LEFT", "SIDE is for joins", "", "SIDE LEFT"),
    ("TIMERS", "TIMERS is for stateful processors", "", "TIMERS"),
    ("SIDE UP", "expected LEFT or RIGHT, found UP", "", "UP"),
    ("AT BATCH x", "expected a number, found x", "", "x"),
    ("AT BATCH 1.5", "this takes a whole number", "", "1.5"),
    ("AT BATCH 1 AT BATCH 2", "BATCH is written twice", "", "AT BATCH 2"),
    ("STORE 'a' SIDE LEFT", "cannot be combined", "", "SIDE LEFT"),
]


def test_what_is_not_there_is_said_with_what_is(windows: Console) -> None:
    for written, said, hint, at in NOT_THERE:
        error, place = fault(windows, f"SELECT count(*) FROM STATE OF QUERY t {written};")
        assert said in error.message, written
        assert hint in error.hint, written
        assert place == at


def test_queries_without_state_and_states_in_queries(console: Console) -> None:
    console.run(WORDS + "CREATE LIVE TABLE m AS SELECT word FROM words;")
    error, at = fault(console, "SELECT * FROM STATE OF QUERY m;")
    assert error.message == "the query m has no state yet: no micro-batch has been committed"
    put(console, "m", "cat 1 00")
    error, at = fault(console, "SELECT * FROM STATE OF QUERY m;")
    assert (error.message, at) == ("the query m keeps no state", "STATE OF QUERY m")
    error, at = fault(console, "SELECT * FROM STATE OF QUERY mm;")
    assert (error.message, error.hint, at) == ("there is no query mm", "did you mean m?", "mm")
    for statement in (
        "SELECT words.word FROM words JOIN STATE OF QUERY m s ON s.word = words.word;",
        "CREATE LIVE TABLE j AS SELECT words.word FROM words JOIN STATE OF QUERY m s ON s.word = words.word;",
    ):
        error, at = fault(console, statement)
        assert error.message == "a streaming query cannot read the state or the late rows of another query"
        assert at == "STATE OF QUERY m"


@pytest.mark.slow
def test_state_of_format_2_is_read(spark: Any, console: Console, tmp_path: Path) -> None:
    """Real-time mode, among others, keeps its state in it; the session's own setting is as before."""
    own = "spark.sql.streaming.stateStore."
    chosen = {f"{own}checkpointFormatVersion": "2", f"{own}providerClass": ROCKSDB}
    before = {key: spark.conf.get(key) for key in chosen}
    try:
        for key, value in chosen.items():
            spark.conf.set(key, value)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
        counted = rows.withColumn("k", rows.value % 2).groupBy("k").count()
        made = counted.writeStream.format("noop").outputMode("update").trigger(once=True)
        made.option("checkpointLocation", f"{tmp_path}/ck").start().awaitTermination()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert "state checkpoint 2" in described(console, f"'{tmp_path}/ck'")["versions"]
    read = f"SELECT k, count FROM STATE OF CHECKPOINT '{tmp_path}/ck' ORDER BY k;"
    assert console.rows(read) == [(0, 2), (1, 2)]
    assert {key: spark.conf.get(key) for key in chosen} == before


def test_a_script_that_reads_the_books_is_checked_without_spark() -> None:
    checker = Checker(Context(Catalog()))

    def check(script: str) -> list[Note]:
        statements = parse_script(Source("books.sql", script))
        return [note for statement in statements for note in checker.check(statement)]

    read = "FROM STATE OF QUERY t CHANGES FROM BATCH 1 TO 2"
    notes = check(
        WORDS + WINDOWS + f"SHOW BATCHES OF QUERY t; SELECT word {read}; SELECT 1 {read} WINDOW w AS ();"
    )
    assert [n for n in notes if n.code == "ASSUMED_TABLE"] == []
    for script in (
        "SHOW BATCHES OF QUERY tt;",
        "DESCRIBE CHECKPOINT OF QUERY tt;",
        "SELECT 1 FROM STATE OF QUERY tt;",
    ):
        with pytest.raises(StreamsqlError, match="there is no query tt"):
            check(script)


def test_a_checkpoint_of_many_micro_batches_is_described_by_the_newest(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    (tmp_path / "metadata").write_text('{"id": "x"}')
    for number in range(2_500):
        known = f'{{"batchWatermarkMs": {number}, "batchTimestampMs": {number}, "conf": {{}}}}'
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{known}\n{{"logOffset": {number}}}')
        if number not in (7, 2_499):
            (tmp_path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs": 1}')
    read: list[str] = []
    original = LocalFiles.read
    monkeypatch.setattr(LocalFiles, "read", lambda self, path: read.append(path) or original(self, path))
    told = dict(answer(console, f"DESCRIBE CHECKPOINT '{tmp_path}'").rows)
    assert told["micro-batches"] == "2500 in the log: 0 to 2499"
    assert (told["last committed"], told["planned, not committed"]) == (2_498, "7, 2499")
    assert told["source 0"] == "files: up to file batch 2499"
    assert len(read) < 2_010
    assert len(answer(console, f"SHOW BATCHES OF CHECKPOINT '{tmp_path}' LAST 3").rows) == 3
