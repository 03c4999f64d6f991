"""Completion: what is offered at a cursor, `|` in the texts below, and in which order."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from streamsql.catalog import Catalog
from streamsql.connectors.csv import Csv
from streamsql.connectors.files import TEXT_CODECS
from streamsql.connectors.orc import Orc
from streamsql.connectors.parquet import Parquet
from streamsql.definitions import Query, Sink, Stream, Table
from streamsql.language import reference
from streamsql.language.statements.base import Column, Fragment, Name, Watermark
from streamsql.language.tokens import scan, tokenize
from streamsql.language.unfinished.cursor import statement_at
from streamsql.shell.completion.complete import MOST, Candidate, complete

ROOMS = ("streamsql/language/", "pyproject.toml")

CLICKS = (
    Column("user", "STRING"),
    Column("page id", "STRING"),
    Column("ts", "TIMESTAMP"),
    Column("event_time", "TIMESTAMP"),
    Column("place", "STRUCT<city: STRING, spot: STRUCT<x: INT, y: INT>>"),
)
CATALOG = Catalog(
    streams={
        "clicks": Stream("clicks", "json", columns=CLICKS),
        "busy": Stream(
            "busy",
            query="SELECT user, count(*) AS n, window FROM clicks GROUP BY window(ts, '1 minute'), user",
        ),
        "lines": Stream(
            "lines", "text", watermark=Watermark(Name("at"), "1 minute", Fragment("to_timestamp(value)"))
        ),
        "ticks": Stream("ticks", "rate"),
    },
    sinks={
        "out": Sink("out", "parquet", columns=(Column("a", "INT"), Column("b", "STRING"))),
        "counts": Sink("counts", "memory"),
        "seen": Sink("seen", "memory"),
    },
    queries={
        "counts": Query(
            "counts", ("counts",), "SELECT user, count(*) AS n FROM clicks GROUP BY user", live_table=True
        ),
        "q1": Query("q1", ("out",), "SELECT 1"),
    },
    tables={"dim": Table("dim"), "db.t": Table("db.t")},
)
STATE = "org.apache.spark.sql.execution.streaming.state."


def columns(name: str) -> list[tuple[str, str]]:
    """What a session knows beside the catalog."""
    return {
        "dim": [("id", "INT"), ("user", "STRING")],
        "seen": [("at", "date"), ("span", "struct<start:timestamp,end:timestamp>")],
    }.get(name.casefold(), [])


def found(marked: str) -> list[Candidate]:
    """The candidates at the `|` of a text."""
    position = marked.index("|")
    return complete(marked[:position] + marked[position + 1 :], position, CATALOG, columns)


def texts(marked: str) -> list[str]:
    return [c.text for c in found(marked)]


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        # relations
        ("SELECT * FROM |", ["clicks", "busy", "lines", "ticks", "counts", "seen", "dim", "db.t"]),
        ("SELECT * FROM clicks JOIN di|", ["dim"]),
        ("SELECT * FROM clicks, |", ["clicks"]),
        ("SELECT * FROM STREAM(cl|", ["clicks"]),
        ("SELECT * FROM STREAM |", ["clicks"]),
        ("SELECT * FROM clicks JOIN (SELECT * FROM bu|", ["busy"]),
        ("WITH a AS (SELECT 1) SELECT * FROM |", ["a", "clicks"]),
        ("INSERT INTO out SELECT * FROM cl|", ["clicks"]),
        ("CREATE STREAM x AS SELECT * FROM cl|", ["clicks"]),
        ("SELECT * FROM ran|", ["range("]),
        ("DROP TABLE |", ["dim", "db.t"]),
        ("SELECT * FROM sta|", ["state of query", "state of checkpoint"]),
        ("SELECT * FROM STATE OF |", ["QUERY", "CHECKPOINT"]),
        ("SELECT * FROM STATE OF QUERY |", ["counts", "q1"]),
        ("SELECT * FROM clicks c JOIN STATE METADATA OF QUERY q|", ["q1"]),
        ("SELECT * FROM STATE OF QUERY q1 OPER|", ["OPERATOR"]),
        ("SELECT * FROM STATE OF QUERY q1 AT |", ["BATCH"]),
        ("SELECT * FROM STATE OF QUERY q1 WH|", ["WHERE"]),
        ("SHOW BATCHES OF |", ["QUERY", "CHECKPOINT"]),
        ("SHOW BATCHES OF QUERY |", ["counts", "q1"]),
        ("DESCRIBE CHECKPOINT OF QUERY q|", ["q1"]),
        # columns of what is read
        ("SELECT * FROM clicks WHERE |", ["user", "`page id`", "ts", "event_time", "place"]),
        ("SELECT | FROM clicks", ["user", "`page id`", "ts", "event_time", "place"]),
        ("SELECT us| FROM clicks", ["user", "user()"]),
        ("SELECT ts, | FROM clicks", ["user"]),
        ("SELECT count(DISTINCT us| FROM clicks", ["user"]),
        ("SELECT upper(trim(|) FROM clicks", ["user"]),
        ("SELECT upper(trim(| FROM clicks WHERE user > ''", ["user"]),
        ("SELECT upper(trim( FROM clicks WHERE us|", ["user"]),
        ("SELECT upper(trim(BOTH ' ' FROM us| FROM clicks", ["user"]),
        ("SELECT count(us FROM clicks GROUP BY us|", ["user"]),
        ("SELECT upper(user FROM cl|", ["clicks"]),
        ("SELECT max(abs(n FROM busy WHERE n > (SELECT max(id FROM dim WHERE us|", ["user"]),
        ("SELECT sum(n) FILTER (WHERE us| FROM busy", ["user"]),
        ("SELECT extract(YEAR FROM ev|) FROM clicks", ["event_time"]),
        ("SELECT row_number() OVER (PARTITION BY us| FROM clicks", ["user"]),
        ("SELECT * FROM busy WHERE |", ["user", "n", "window"]),
        ("SELECT * FROM lines WHERE |", ["value", "at"]),
        ("SELECT * FROM ticks WHERE |", ["timestamp", "value"]),
        ("SELECT * FROM counts WHERE |", ["user", "n"]),
        ("SELECT counts.|", ["user", "n"]),
        ("SELECT dim.us|", ["user"]),
        ("SELECT * FROM seen WHERE |", ["at"]),
        ("SELECT * FROM dim WHERE |", ["id", "user"]),
        ("SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b) WHERE |", ["a", "b"]),
        ("SELECT * FROM clicks LATERAL VIEW explode(split(user, ',')) e AS word WHERE w|", ["word"]),
        ("SELECT * FROM (SELECT user AS who FROM clicks WHERE us|) WHERE who > ''", ["user"]),
        ("SELECT * FROM (SELECT user AS who, ts FROM clicks) WHERE |", ["who", "ts"]),
        (
            "SELECT * FROM (SELECT * EXCEPT (ts, place) FROM clicks) WHERE |",
            ["user", "`page id`", "event_time"],
        ),
        ("WITH a AS (SELECT user u, ts FROM clicks), b AS (SELECT * FROM a) SELECT | FROM b", ["u", "ts"]),
        ("WITH clicks AS (SELECT ts FROM clicks) SELECT | FROM clicks", ["ts"]),
        ("SELECT 1 FROM clicks UNION ALL SELECT | FROM dim", ["id", "user"]),
        ("SELECT DISTINCT ON (us|) user, ts FROM clicks", ["user"]),
        ("SELECT * FROM dim WHERE EXISTS (SELECT 1 FROM ticks WHERE value = i|", ["dim.id"]),
        ("WITH a AS (SELECT user FROM clicks WHERE |", ["user", "`page id`", "ts"]),
        ("WITH a(k) AS (SELECT user FROM clicks), b AS (SELECT |", []),
        ("WITH a(k) AS (SELECT user FROM clicks), b AS (SELECT | FROM a)", ["k"]),
        (
            "SELECT * FROM (clicks c JOIN dim d ON c.user = d.user) JOIN ticks ON ticks.value = d.|",
            ["user", "id"],
        ),
        ("SELECT l.| FROM clicks c, LATERAL (SELECT c.user AS one) l", ["one"]),
        ("SELECT map(, 1), | FROM dim", ["id", "user"]),
        ("SELECT nope nope nope, | FROM dim WHERE id frob 3", ["id", "user"]),
        ("SELECT id FROM dim WHERE id NOT |", ["id", "user"]),
        ("SELECT CASE WHEN id > 1 THEN | FROM dim", ["id", "user"]),
        ("SELECT * FROM TUMBLE(TABLE cl|", ["clicks"]),
        (
            "SELECT | FROM TUMBLE(TABLE dim, DESCRIPTOR(at), INTERVAL 1 MINUTE)",
            ["id", "user", "window_start"],
        ),
        ("SELECT * FROM clicks WATERMARK |", ["ts", "event_time", "user"]),
        ("SELECT * FROM clicks WATERMARK ts DELAY OF INTERVAL 10 MINUTES c WHERE c.u|", ["user"]),
        ("SELECT user, count(*) AS n FROM clicks GROUP BY |", ["user"]),
        ("SELECT user, count(*) AS n FROM clicks GROUP BY user ORDER BY |", ["n", "user"]),
        # behind a dot
        ("SELECT * FROM clicks c WHERE c.|", ["user", "`page id`", "ts", "event_time", "place"]),
        ("SELECT c.| FROM clicks c JOIN dim d ON c.user = d.user", ["user", "`page id`"]),
        ("SELECT d.| FROM clicks c JOIN dim AS d ON c.user = d.user", ["id", "user"]),
        ("SELECT clicks.u| FROM clicks", ["user"]),
        ("SELECT x.| FROM (SELECT user AS who FROM clicks) x", ["who"]),
        ("WITH a AS (SELECT user AS who FROM clicks) SELECT a.| FROM a", ["who"]),
        ("SELECT place.| FROM clicks", ["city", "spot"]),
        ("SELECT place.spot.| FROM clicks", ["x", "y"]),
        ("SELECT span.| FROM seen", ["start", "end"]),
        ("SELECT window.| FROM clicks GROUP BY window(ts, '1 minute')", ["start", "end"]),
        ("SELECT (SELECT max(c.|) FROM dim) FROM clicks c", ["user"]),
        # keys of a join
        ("SELECT * FROM clicks c JOIN dim d ON |", ["c.user = d.user", "c.user", "`page id`"]),
        ("SELECT * FROM clicks JOIN dim ON us|", ["clicks.user = dim.user", "clicks.user", "dim.user"]),
        ("SELECT * FROM clicks c JOIN dim d ON c.user = d.user AND |", ["c.user"]),
        ("SELECT * FROM clicks c JOIN dim d ON c.user = |", ["d.user"]),
        ("SELECT * FROM clicks c JOIN dim d ON d.|", ["user", "id"]),
        ("SELECT * FROM clicks JOIN dim USING (|", ["user"]),
        # functions and keywords; columns come first, what has it inside last
        ("SELECT eve| FROM clicks", ["event_time", "every("]),
        ("SELECT stamp|", ["current_timestamp("]),
        ("SELECT e| FROM clicks", ["event_time", "e()", "element_at("]),
        ("SELECT COUN|", ["COUNT("]),
        ("SELECT to_timesta|(x)", ["to_timestamp"]),
        ("SELECT cas|", ["cast(", "case"]),
        ("SELECT user F|", ["FROM"]),
        ("select user f|", ["from"]),
        ("select * from clicks w|", ["where", "watermark"]),
        ("SELECT * FROM clicks LE|", ["LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]),
        ("SELECT * FROM clicks GROUP |", ["BY"]),
        ("select * from clicks order |", ["by"]),
        ("SELECT CASE WHEN user > '' TH|", ["THEN"]),
        ("SELECT sum(n) OV|", ["OVER"]),
        ("SELECT CAST(ts AS ST|", ["STRING"]),
        ("SELECT ts::b|", ["bigint", "binary", "boolean", "byte"]),
        ("SELECT * FROM clicks WATERMARK ts DELAY OF INTERVAL 10 M|", ["MINUTES", "MILLISECONDS", "MINUTE"]),
        # statements
        ("cr|", ["create"]),
        ("CREATE |", ["STREAM", "LIVE", "SINK", "TABLE"]),
        ("EXPLAIN PY|", ["PYSPARK"]),
        ("EXPLAIN PYSPARK STOP |", ["QUERY"]),
        ("STOP QUERY |", ["counts", "q1"]),
        ("STOP QUERY q1 WITH |", ["DRAIN"]),
        ("STOP QUERY q1 WITH DRAIN |", ["TIMEOUT"]),
        ("INSERT INTO s RESTART 3 |", ["TIMES"]),
        ("stop query a|", ["all"]),
        ("CREATE OR REPLACE LIVE |", ["TABLE"]),
        ("SHOW CREATE STREAM cl|", ["clicks"]),
        ("SHOW PROGRESS q|", ["q1"]),
        ("INSERT INTO out AS QUERY q TRIGGER |", ["AVAILABLE", "ONCE", "EVERY"]),
        ("INSERT INTO out A|", ["AS"]),
        ("SET spark.sql.streaming.stateStore.providerClass = |", [STATE + "HDFSBackedStateStoreProvider"]),
        ("DROP LIVE TABLE |", ["counts", "seen"]),
        ("INSERT INTO |", ["out", "counts", "seen", "clicks"]),
        ("INSERT INTO out (|", ["a", "b"]),
        ("INSERT INTO out OUTPUT MODE |", ["APPEND", "UPDATE", "COMPLETE"]),
        ("CREATE SINK x (user STRING, at TIMESTAMP) USING memory KEY (|", ["user", "at"]),
        (
            "CREATE STREAM x (u STRING, d DECIMAL(10, 2), at TIMESTAMP) USING json WITH WATERMARK |",
            ["at", "u"],
        ),
        ("CREATE STREAM x USING rate WITH WATERMARK |", ["timestamp", "value"]),
        (
            "CREATE LIVE TABLE x KEY (|) AS SELECT user, count(*) AS n FROM clicks GROUP BY user",
            ["user", "n"],
        ),
        ("WATCH counts AS CHART (|", ["user", "n"]),
        ("DESCRIBE FUNCTION to_timestamp_n|", ["to_timestamp_ntz"]),
        ("HELP cre|", ["create"]),
        ("BEGIN STOP QUERY |", ["counts"]),
        # connectors and options
        ("CREATE STREAM x USING pa|", ["parquet"]),
        ("CREATE STREAM x USING rate-m|", ["rate-micro-batch"]),
        ("SHOW CONNECTORS no|", ["noop"]),
        ("DESCRIBE CONNECTOR no|", ["noop"]),
        ("PRE|", ["PREVIEW"]),
        ("PREVIEW |", ["clicks", "busy", "lines", "ticks", "CHANGE", "USING"]),
        ("PREVIEW STREAM bu|", ["busy"]),
        ("PREVIEW USING |", ["csv"]),
        ("PREVIEW USING pa|", ["parquet"]),
        ("PREVIEW USING csv |", ["FORMAT", "OPTIONS", "LIMIT"]),
        ("PREVIEW USING csv OPTIONS (path 'a', hea|", ["header"]),
        ("PREVIEW USING csv OPTIONS (header |", ["'true'", "'false'"]),
        ("SHOW TO|", ["TOPICS"]),
        ("SHOW TOPICS |", ["FROM"]),
        ("SHOW TOPICS FROM clicks |", ["LIKE", "OPTIONS"]),
        ("SHOW TOPICS FROM 'h:1' OPTIONS (kafka.sec|", ["kafka.security.protocol"]),
        ("SHOW TOPICS FROM 'h:1' OPTIONS (kafka.security.protocol |", ["'PLAINTEXT'", "'SSL'"]),
        ("PREVIEW USING kafka OPTIONS (top|", ["topic"]),
        ("PREVIEW USING kafka FORMAT |", ["json", "csv"]),
        ("DESCRIBE CONNECTOR ka|", ["kafka"]),
        ("PREVIEW USING socket FORMAT |", ["text", "raw", "json", "csv"]),
        ("CREATE STREAM x USING socket FORMAT |", ["text", "raw", "json", "csv"]),
        ("CREATE STREAM x USING csv OPTIONS (path 'a', hea|", ["header"]),
        ("CREATE STREAM x USING rate-micro-batch OPTIONS (|", ["rowsPerBatch"]),
        ("CREATE STREAM x (u STRING, n INT) USING datagen OPTIONS (fields.|", ["fields.u", "fields.n"]),
        ("CREATE STREAM x USING csv OPTIONS (header |", ["'true'", "'false'"]),
        ("CREATE STREAM x USING csv OPTIONS (header = fa|", ["'false'"]),
        ("CREATE STREAM x USING csv OPTIONS (mode 'd|", ["DROPMALFORMED'"]),
        ("CREATE STREAM x USING csv OPTIONS (mode 'd|')", ["DROPMALFORMED"]),
        ("CREATE STREAM x USING json OPTIONS (cleanSource |", ["'archive'", "'delete'", "'off'"]),
        ("CREATE STREAM x USING json OPTIONS (maxFileAge |", ["'7d'"]),
        ("CREATE SINK x USING orc OPTIONS (compression zs|", ["'zstd'"]),
        # settings
        ("SET spark.sql.shuffle.p|", ["spark.sql.shuffle.partitions"]),
        ("SET multipleW|", ["spark.sql.streaming.multipleWatermarkPolicy"]),
        ("RESET streamsql.fo|", ["streamsql.format"]),
        ("SET spark.sql.streaming.multipleWatermarkPolicy = |", ["min", "max"]),
        ("SET spark.sql.ansi.enabled = |", ["true", "false"]),
        ("SET spark.sql.ansi.enabled = f|", ["false"]),
        ("SET streamsql.format = json|", ["jsonl"]),
        # short forms
        ("\\sto|", ["stop"]),
        ("\\stop q|", ["q1"]),
        ("\\set form|", ["format"]),
        # the statement under the cursor only
        ("SELECT 1; STOP QUERY |; SELECT * FROM dim", ["counts", "q1"]),
        ("SELECT * FROM clicks; SELECT id FROM |", ["clicks"]),
    ],
)
def test_offered_first(marked: str, first: list[str]) -> None:
    assert texts(marked)[: len(first)] == first


@pytest.mark.parametrize(
    ("marked", "unwanted"),
    [
        ("CREATE STREAM x USING |", {"console", "memory"}),
        ("CREATE SINK x USING |", {"rate", "socket"}),
        ("CREATE STREAM x USING csv OPTIONS (path 'a', |", {"path"}),
        ("SELECT * FROM |", {"out", "SELECT"}),
        ("SELECT user | FROM clicks", {"ts", "event_time"}),
        ("SELECT user u| FROM clicks", {"user", "upper("}),
        ("SELECT vi|", {"division"}),
        ("SELECT us| FROM clicks", {"current_user("}),
        ("SELECT * FROM clicks; SELECT | FROM dim", {"ts"}),
        ("SELECT * FROM clicks c JOIN dim d ON c.user = d.user AND |", {"c.user = d.user"}),
        ("DROP SINK |", {"clicks"}),
        ("SET spark.sql.ansi.enabled |", {"true"}),
        ("SELECT cou|", {"COUNT("}),
    ],
)
def test_not_offered(marked: str, unwanted: set[str]) -> None:
    assert not set(texts(marked)) & unwanted


@pytest.mark.parametrize(
    "marked",
    [
        "|",
        "   |",
        "SELECT 'us|",
        "SELECT 'us| FROM clicks",
        'SELECT "us|',
        "SELECT * FROM clicks WHERE user = '|'",
        "SELECT 1 -- us|",
        "SELECT /* us| */ user FROM clicks",
        "SELECT 1 /* FROM |",
        "CREATE STREAM x USING csv COMMENT 'te|",
        "SELECT user AS | FROM clicks",
        "SELECT * FROM clicks LIMIT |",
        "CREATE STREAM |x",
        "DEFINE |",
        "SELECT 1;|",
        "SELECT nowhere.| FROM clicks",
        "STOP QUERY nonsense and more |",
        ") ) ( FROM |)",
        "\\nothing |",
        "SELECT " + "(" * 2000 + "|",
    ],
)
def test_nothing_is_offered(marked: str) -> None:
    assert texts(marked) in ([], ["IF"])


@pytest.mark.parametrize(
    ("marked", "candidate"),
    [
        ("SELECT * FROM cli|", Candidate("clicks", "stream", 3)),
        ("SELECT * FROM coun|", Candidate("counts", "live table", 4)),
        ("SELECT * FROM di|", Candidate("dim", "table", 2)),
        ("SELECT page| FROM clicks", Candidate("`page id`", "STRING", 4)),
        ("SELECT `pa| FROM clicks", Candidate("`page id`", "STRING", 3)),
        ("SELECT tim| FROM ticks", Candidate("timestamp", "TIMESTAMP", 3)),
        ("SELECT session_w|", Candidate("session_window(", "session_window(time_column, gap_duration)", 9)),
        ("SELECT count_i|", Candidate("count_if(", "count_if(expr)", 7)),
        ("SELECT row_num|", Candidate("row_number()", "row_number()", 7)),
        ("CREATE STREAM x USING or|", Candidate("orc", "directories of ORC files", 2)),
        ("CREATE STREAM x USING csv OPTIONS (sep|", Candidate("lineSep", "line separator", 3)),
        ("CREATE STREAM x USING csv OPTIONS (se|", Candidate("sep", "separator between fields (,)", 2)),
        ("CREATE STREAM x USING csv OPTIONS (mode |", Candidate("'PERMISSIVE'", "default", 0)),
        ("SET streamsql.ti|", Candidate("streamsql.timing", "[on] show the duration below a result", 12)),
        (
            "SET spark.sql.streaming.stopT|",
            Candidate(
                "spark.sql.streaming.stopTimeout",
                "[0] How long to wait in milliseconds for the streaming execution thread to stop when calling the…",
                25,
            ),
        ),
        ("select * fr|", Candidate("from", "keyword", 2)),
        ("\\stop coun|", Candidate("counts", "query", 4)),
    ],
)
def test_candidate(marked: str, candidate: Candidate) -> None:
    assert next(iter(found(marked)), None) == candidate


def test_paths_in_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("data/in", "data/inner", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("script.sql", "data/it's.csv"):
        (tmp_path / name).write_text("")
    assert found("SOURCE '|") == [Candidate("data/", "folder", 0), Candidate("script.sql", "file", 0)]
    assert found("SOURCE 'data/in|") == [Candidate("in/", "folder", 2), Candidate("inner/", "folder", 2)]
    assert texts("SOURCE '.h|") == [".hidden/"]
    assert texts("SOURCE '~|") == ["~/"]
    assert texts("SOURCE '~/sc|") == ["script.sql"]
    assert texts(f"SOURCE '{tmp_path}/da|") == ["data/"]
    assert texts("SOURCE 'data/it|") == ["it\\'s.csv"]
    assert texts("SOURCE 'no/such/|") == []
    assert texts("SOURCE 'data/|' -- more") == ["in/", "inner/", "it\\'s.csv"]
    for before in (
        "CREATE STREAM x USING json OPTIONS (maxFilesPerTrigger 1, path ",
        "CREATE STREAM x USING json OPTIONS (path = ",
        "CREATE STREAM x USING json OPTIONS ('path' ",
        "CREATE SINK x USING parquet OPTIONS (path ",
        "CREATE STREAM x USING json OPTIONS (sourceArchiveDir ",
        "CREATE TABLE x USING json OPTIONS (path ",
        "CREATE TABLE x (a INT) USING csv LOCATION ",
        "INSERT INTO out CHECKPOINT ",
    ):
        assert texts(before + "'da|") == ["data/"], before
    assert texts("CREATE STREAM x USING json OPTIONS (pathGlobFilter 'da|") == []
    assert texts("\\i scr|") == ["script.sql"]


def test_an_earlier_statement_is_read_again_when_it_changes() -> None:
    """What stands before the cursor's statement is remembered from key to key."""
    assert texts("SELECT 1; SELECT | FROM dim")[0] == "id"
    assert texts("SELECT '; SELECT | FROM dim") == []
    assert texts("SELECT 1; SELECT | FROM clicks")[0] == "user"
    assert texts("SELECT | FROM dim; SELECT 1; SELECT 2")[0] == "id"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.user, count(*) AS n FROM clicks c GROUP BY window(ts, '1 minute'), user ORDER BY n NULLS FIRST",
        "CREATE STREAM x (a ARRAY<INT>) USING csv OPTIONS (path 'a; b', kafka.security.protocol \"x\") -- end",
        "SELECT `a ``b`, 'it\\'s', 1.5e3, a->b, a::int /* FROM ' */ FROM db.t; SELECT 1 FROM dim WHERE x >= 2",
    ],
)
def test_a_text_is_read_key_by_key_as_it_is_at_once(text: str) -> None:
    statement_at("", 0)
    typed = [statement_at(text[:end], end) for end in range(len(text) + 1)]
    for end, statement in enumerate(typed):
        statement_at("", 0)
        assert statement == statement_at(text[:end], end)


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("WITH a(k, l) AS (SELECT user, ts FROM clicks) SELECT * FROM a", {"k": "STRING", "l": "TIMESTAMP"}),
        ("SELECT * FROM (SELECT user AS who FROM clicks) x(name)", {"name": "STRING"}),
        ("(SELECT ts FROM clicks) UNION ALL SELECT at FROM lines", {"ts": "TIMESTAMP"}),
        (
            "SELECT CAST(user AS STRUCT<n: INT, `m`: MAP<STRING, INT>>) s FROM clicks",
            {"s": "STRUCT<n: INT, `m`: MAP<STRING, INT>>"},
        ),
        (
            "SELECT c.* EXCEPT (place), to_timestamp(user) AS at FROM clicks c JOIN (dim d CROSS JOIN ticks) ON c.user = d.user",
            {
                "user": "STRING",
                "page id": "STRING",
                "ts": "TIMESTAMP",
                "event_time": "TIMESTAMP",
                "at": "TIMESTAMP",
            },
        ),
        (
            "SELECT l.one, w FROM clicks, LATERAL (SELECT user AS one) l LATERAL VIEW explode(x) e AS w",
            {"one": "column", "w": "column"},
        ),
        (
            "SELECT user FROM clicks WATERMARK ts DELAY OF INTERVAL 1 MINUTE QUALIFY row_number() OVER (ORDER BY ts) = 1",
            {"user": "STRING"},
        ),
        ("FROM clicks |> WHERE user > 'a'", {c.name: c.type for c in CLICKS}),
        ("SELECT user, FROM clicks WHERE (", {"user": "STRING"}),
    ],
)
def test_columns_of_a_stream_that_is_a_query(query: str, given: dict[str, str]) -> None:
    catalog = CATALOG.having(Stream("derived", query=query))
    text = "SELECT * FROM derived WHERE "
    offered = {c.text.strip("`"): c.kind for c in complete(text, len(text), catalog, columns)}
    assert offered == given


def test_streams_that_read_each_other_end() -> None:
    circle = Catalog(streams={n: Stream(n, query=f"SELECT * FROM {m}") for n, m in (("a", "b"), ("b", "a"))})
    assert complete("SELECT * FROM a WHERE ", 22, circle) == []


def test_no_more_than_can_be_looked_at() -> None:
    many = Catalog(streams={f"s{i}": Stream(f"s{i}", "rate") for i in range(2 * MOST)})
    assert len(complete("SELECT * FROM ", 14, many)) == MOST


@pytest.mark.parametrize(
    ("text", "opened", "at"),
    [
        ("SELECT 'a", "'", 7),
        ("SELECT 'a'", "", 10),
        ('x "a', '"', 2),
        ("x `a", "`", 2),
        ("x /* a /* b */", "/*", 2),
        ("x -- a", "--", 2),
        ("x -- a\n", "", 7),
        ("r'a", "'", 1),
    ],
)
def test_what_is_open_at_the_end(text: str, opened: str, at: int) -> None:
    assert scan(text)[1:] == (opened, at)
    assert scan(text)[0] == tokenize(text, strict=False)


def _made() -> Any:
    """The module that writes the reference."""
    path = Path(__file__).with_name("make_reference.py")
    spec = importlib.util.spec_from_file_location("make_reference", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_short() -> None:
    made = _made()
    assert len(reference.functions()) > 500
    assert len(reference.settings()) > 300
    for function in reference.functions().values():
        assert len(function.signature) <= made.SIGNATURE and len(function.meaning) <= made.MEANING
        assert function.signature.startswith(function.name + "(")
    for setting in reference.settings().values():
        assert len(setting.meaning) <= made.MEANING and len(setting.default) <= made.DEFAULT
    for name in ("window", "session_window", "window_time", "explode", "count", "to_timestamp"):
        assert name in reference.functions()


@pytest.mark.slow
def test_the_reference_agrees_with_spark(spark: Any) -> None:
    made = _made()
    assert json.loads(made.REFERENCE.read_text("utf-8")) == json.loads(made.write(made.reference(spark)))


def test_choices_agree_with_spark(spark: Any) -> None:
    jvm = spark._jvm.org.apache.spark.sql

    def names(values: Any) -> set[str]:
        return {v.toString().lower() for v in values}

    assert set(TEXT_CODECS) == names(jvm.catalyst.util.HadoopCompressionCodec.values())
    assert set(Orc.codecs) == names(jvm.execution.datasources.orc.OrcCompressionCodec.values())
    parquet = names(jvm.execution.datasources.parquet.ParquetCompressionCodec.values())
    assert set(Parquet.codecs) == parquet
    for setting in reference.settings().values():
        for choice in setting.choices:
            if choice.startswith("org."):
                assert spark._jvm.java.lang.Class.forName(choice)
    quotes = spark._jvm.com.univocity.parsers.csv.UnescapedQuoteHandling.values()
    options = {s.name: s for s in Csv.own}
    assert {c.lower() for c in options["unescapedQuoteHandling"].choices} == names(quotes)


def test_topics_are_those_of_what_is_kafkas() -> None:
    catalog = CATALOG.having(Stream("orders", "kafka"), Sink("shipped", "kafka"))
    text = "SHOW TOPICS FROM "
    assert [c.text for c in complete(text, len(text), catalog, columns)] == ["orders", "shipped"]


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("SHOW |", ["QUERIES", "TABLES", "STREAMS", "LIVE", "SINKS"]),
        ("DROP |", ["QUERY", "STREAM", "LIVE", "SINK", "TABLE"]),
        ("s|", ["select", "show"]),
        ("SHOW CREATE |", ["STREAM", "LIVE", "SINK", "FUNCTION", "TABLES"]),
    ],
)
def test_keywords_that_are_used_most_stand_first(marked: str, first: list[str]) -> None:
    assert texts(marked)[: len(first)] == first


def test_start_offers_queries_that_are_stopped_first_and_others_those_that_run() -> None:
    states = {"counts": "stopped query", "q1": "running query"}.__getitem__
    for text, order in (
        ("STOP QUERY ", ["q1", "counts"]),
        ("\\stop ", ["q1", "counts"]),
        ("DESCRIBE QUERY ", ["q1", "counts"]),
        ("START QUERY ", ["counts", "q1"]),
    ):
        offered = complete(text, len(text), CATALOG, columns, states)
        assert [(c.text, c.kind) for c in offered][:2] == [(name, states(name)) for name in order]
