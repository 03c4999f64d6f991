"""Statements of other consoles: each row of HELP SWITCHING FROM … is typed, and what is proposed is typed, too."""

from __future__ import annotations

import re

import pytest
from dialect_cases import TRANSLATIONS

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.config.preferences import Preferences
from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault
from streamsql.language.dialects.statements import Habit, habits
from streamsql.language.lexical import cut_at_commands, trailing_command
from streamsql.language.parser import parse, parse_script, split_script
from streamsql.language.short_forms import SIGNS, expand
from streamsql.language.statements.spark import Spark
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.shell.editing import is_complete

DEFINED = """CREATE STREAM clicks (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute';
CREATE SINK out USING noop;
CREATE LIVE TABLE counts AS SELECT id, count(*) AS n FROM clicks GROUP BY id;
"""
SAMPLES = {
    "name2": "out", "name3": "counts", "text": "'clicks.sql'", "file": "'clicks.csv'", "number": "3", "path…": "clicks.sql",
    "columns…": "id", "names…": "id", "keys…": "id", "column…": "n", "value…": "max(n)", "more…": "STRICT",
    "options…": ", BUFFERS", "time…": "INTERVAL '1' MINUTE", "rest…": "SELECT id FROM clicks",
}  # fmt: skip
NAMES = [
    (r"CREATE SINK|^CREATE|INTO <name> FROM", "new"),
    (r"\b(STREAM|SOURCE)\b|INSERT INTO <name>", "clicks"),
    ("DELETE TOPIC", "counts"),
    (r"^(TRUNCATE|ANALYZE|SHOW CREATE VIEW|DROP (TEMPORARY )?(TABLE|VIEW))", "people"),
    ("format|mode", "csv"),
    ("df", "abs"),
    ("CONNECTOR", "out"),
    ("", "counts"),
]
"""A pattern of a row, and the name that is typed there; the first pattern that fits holds."""
RESTS = [
    ("BEGIN STATEMENT", "INSERT INTO out SELECT id FROM clicks"),
    ("help", "kafka"),
    ("^INSERT INTO <name> VALUES", "(1, now())"),
    ("^SELECT TOP", "id FROM clicks"),
    ("^INSERT", "(1)"),
    ("EXECUTE INSERT", "INTO out SELECT id FROM clicks"),
    ("INTO <name> FROM", "people"),
    (r"TABLE <name> \(<rest…>|TABLE <rest…>|MACRO", "new (id INT)"),
    ("^CREATE TABLE <name> AS", "SELECT id FROM people"),
]
"""The same for <rest…>."""
STATEMENTS = [h for h in habits() if not h.is_command and not h.of_spark]
OF_SPARK = [h for h in habits() if h.of_spark]
COMMANDS = [h for h in habits() if h.is_command]


def typed(habit: Habit, *, whole: bool) -> str:
    """A statement of a row. whole: with its optional parts."""
    text = re.sub(r"\[(.*?)\]", r"\1" if whole else "", habit.typed)
    first = lambda samples: next((sample for row, sample in samples if re.search(row, habit.typed)), None)  # noqa: E731
    rest = first(RESTS) or SAMPLES["rest…"]
    if "(<rest…>" in text:
        rest = "id INT"
    samples = {**SAMPLES, "name": first(NAMES) or "", "rest…": rest}
    return " ".join(re.sub(r"<([^>]+)>", lambda m: samples[m[1]], text).split())


def last_notes(script: str) -> list[str]:
    """The notes of --check for the last statement of a script. Raises its first error."""
    checker = Checker(Context(Catalog()))
    notes: list[str] = []
    for written in split_script(Source("a.sql", script)):
        statement = parse(written, {}, translation=checker.translation)
        notes = [str(note) for note in checker.check(statement)]
    return notes


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "short"])
@pytest.mark.parametrize("habit", STATEMENTS, ids=lambda h: h.typed)
def test_a_statement_of_another_console_runs_or_is_proposed(habit: Habit, whole: bool) -> None:
    statement = typed(habit, whole=whole)
    if habit.runs:
        if statement.startswith("DROP STREAM"):
            statement = f"DROP LIVE TABLE counts; {statement}"
        if statement.startswith("DROP SOURCE"):
            statement = f"DROP LIVE TABLE counts; {statement}"
        [note, *_] = last_notes(f"{DEFINED}{statement};")
        assert note.startswith("read as ")
        assert note.endswith(";")
        return
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{statement};")
    assert (caught.value.code, caught.value.message) == ("OTHER_CONSOLE", habit.fact)
    assert caught.value.detail == habit.refusal
    if habit.refusal:
        assert habit.fact.startswith("there is no ")
        last_notes(caught.value.hint.partition(";")[0] + ";")  # HELP switching from …
        return
    assert "…" in caught.value.proposal
    assert caught.value.hint == caught.value.proposal


def test_the_parser_of_an_extension_may_know_what_sparks_own_refuses() -> None:
    optimize = parse(split_script(Source("a.sql", "OPTIMIZE t ZORDER BY (id);"))[0])
    with pytest.raises(SyntaxFault, match="there is no OPTIMIZE here"):
        Checker(Context(Catalog())).check(optimize)
    Checker(Context(Catalog()), settings={"spark.sql.extensions": "io.delta.sql.Extension"}).check(optimize)
    assert plan(optimize, Context(Catalog(), extended=True)).fault is None


@pytest.mark.parametrize("habit", COMMANDS, ids=lambda h: h.typed)
def test_a_command_of_another_prompt_is_a_statement(habit: Habit) -> None:
    line = typed(habit, whole=True)
    assert is_complete(line)  # Enter runs it: it does not wait for `;`
    if not habit.runs:
        with pytest.raises(StreamsqlError) as caught:
            expand(line, Preferences())
        assert bool(caught.value.proposal) != bool(caught.value.detail == habit.refusal != "")
        return
    own = expand(line, Preferences()) or ""
    if own.startswith("\\"):  # a short form of the console
        assert is_complete(own)
        assert expand(own, Preferences())
        return
    [statement] = parse_script(Source("line", own))
    assert not statement.read_as


def test_commands_that_are_not_there_do_not_wait_for_more() -> None:
    for line in (".nosuch", "\\nosuch", ".5"):
        assert is_complete(line)
        with pytest.raises(StreamsqlError) as caught:
            expand(line, Preferences())
        assert "there is no" in caught.value.message
    assert expand("?", Preferences()) == expand("\\?", Preferences())


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        (r"\copy counts to /tmp/a.csv csv header", "COPY counts to '/tmp/a.csv' csv header;"),
        (
            r"\copy (select id from counts) TO a.csv with csv header delimiter ';'",
            "COPY (select id from counts) TO 'a.csv' with csv header delimiter ';';",
        ),
        (r"\copy t FROM 'a.csv' (HEADER)", "COPY t FROM 'a.csv' (HEADER);"),
    ],
)
def test_copy_of_psql_takes_a_file_name_without_quotes(line: str, statement: str) -> None:
    written = expand(line, Preferences())
    assert written == statement
    [read] = parse_script(Source("line", written))
    assert type(read).__name__.startswith("Copy")


ORDERS = "(id BIGINT, ts TIMESTAMP(3), tags ARRAY<STRING>, price DECIMAL(10, 2), name VARCHAR(20) NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
OWN_ORDERS = "(id BIGINT, ts TIMESTAMP, tags ARRAY<STRING>, price DECIMAL(10, 2), name STRING)"
DEFINITIONS = [
    (
        "CREATE TABLE gen (id BIGINT, name STRING, price DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen', 'rows-per-second' = '5', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '1', 'fields.id.end' = '9', 'fields.price.min' = '1', 'fields.price.max' = '9', "
        "'fields.name.length' = '5')",
        "CREATE STREAM gen (id BIGINT, name STRING, price DOUBLE, ts TIMESTAMP) USING datagen "
        "OPTIONS (rowsPerSecond '5', fields.id 'sequence from 1', fields.price 'random 1 to 9') "
        "WITH WATERMARK ts DELAY OF INTERVAL 0 SECONDS;",
    ),
    (
        "CREATE STREAM a (id TEXT PRIMARY KEY, n BIGINT UNSIGNED, at TIMESTAMPTZ) USING values",
        "CREATE STREAM a (id STRING, n DECIMAL(20), at TIMESTAMP) USING values;",
    ),
    (
        f"CREATE TABLE orders {ORDERS}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', "
        "'topic' = 'orders', 'properties.bootstrap.servers' = 'h:9092', 'format' = 'json', "
        "'scan.startup.mode' = 'earliest-offset')",
        f"CREATE STREAM orders {OWN_ORDERS} USING kafka FORMAT json OPTIONS (topic 'orders', servers 'h:9092', "
        "startingOffsets 'earliest') WITH WATERMARK ts DELAY OF INTERVAL '5' SECOND;",
    ),
    (
        "CREATE TEMPORARY TABLE files (at STRING, ts AS TO_TIMESTAMP(at), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv')",
        "CREATE STREAM files (at STRING) USING csv OPTIONS (path '/in') "
        "WITH WATERMARK TO_TIMESTAMP(at) AS ts DELAY OF INTERVAL 0 SECONDS;",
    ),
    (
        "CREATE STREAM live (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) USING values",
        "CREATE STREAM live (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF INTERVAL '5' SECOND;",
    ),
    (
        "CREATE SINK x FROM counts WITH (connector = 'jdbc', jdbc.url = 'jdbc:postgresql://h/d', table.name = 't', "
        "primary_key = 'id')",
        "CREATE SINK x USING jdbc KEY (id) OPTIONS (url 'jdbc:postgresql://h/d', table 't'); "
        "INSERT INTO x SELECT * FROM counts;",
    ),
    (
        "CREATE TABLE x WITH ('connector' = 'kafka', 'topic' = 'y', 'format' = 'json') AS SELECT id FROM clicks",
        "CREATE SINK x USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'y'); "
        "INSERT INTO x SELECT id FROM clicks;",
    ),
    (
        "CREATE SOURCE x (id INT) WITH (connector = 'datagen', datagen.rows.per.second = '10') FORMAT PLAIN ENCODE JSON",
        "CREATE STREAM x (id INT) USING datagen OPTIONS (rowsPerSecond '10');",
    ),
    (
        "CREATE STREAM x (id INT, h BYTES HEADER('a')) WITH (kafka_topic = 'y', value_format = 'JSON')",
        "CREATE STREAM x_source (id INT) USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'y'); "
        "CREATE STREAM x AS SELECT *, get(filter(_headers, h -> h.key = 'a'), 0).value AS h FROM x_source;",
    ),
    (  # fields of the message are columns of a stream over the source; messages have no leader epoch here
        "CREATE TABLE x (id INT, at TIMESTAMP(3) METADATA FROM 'timestamp', `offset` BIGINT METADATA VIRTUAL, "
        "day AS CAST(at AS DATE), e INT METADATA FROM 'leader-epoch') "
        "WITH ('connector' = 'kafka', 'topic' = 'y', 'format' = 'json')",
        "CREATE STREAM x_source (id INT) USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'y'); "
        "CREATE STREAM x AS SELECT *, _timestamp AS at, _offset AS offset, CAST(at AS DATE) AS day FROM x_source;",
    ),
    (
        "CREATE SOURCE x (id INT) INCLUDE KEY AS k INCLUDE timestamp INCLUDE HEADER 'a' AS h INCLUDE OFFSET AS o "
        "WITH (connector = 'kafka', topic = 'y') FORMAT PLAIN ENCODE JSON",
        "CREATE STREAM x_source (id INT) USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'y'); "
        "CREATE STREAM x AS SELECT *, _key AS k, _timestamp AS _rw_kafka_timestamp, "
        "get(filter(_headers, h -> h.key = 'a'), 0).value AS h, _offset AS o FROM x_source;",
    ),
    (
        "INSERT INTO clicks SELECT id, ts FROM clicks EMIT CHANGES",
        "CREATE STREAM clicks_all AS SELECT * FROM clicks UNION ALL SELECT id, ts FROM clicks;",
    ),
    (  # what is computed is a stream over the source
        "CREATE TABLE sold (price DOUBLE, qty INT, total AS price * qty, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen')",
        "CREATE STREAM sold_source (price DOUBLE, qty INT, ts TIMESTAMP) USING datagen WITH WATERMARK ts DELAY OF "
        "INTERVAL 0 SECONDS; CREATE STREAM sold AS SELECT *, price * qty AS total FROM sold_source;",
    ),
    (  # the event time is a field of the message
        "CREATE TABLE hits (url STRING, ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts "
        "- INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'hits', 'format' = 'json')",
        "CREATE STREAM hits (url STRING) USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'hits') "
        "WITH WATERMARK _timestamp AS ts DELAY OF INTERVAL '5' SECOND;",
    ),
    (
        "CREATE STREAM live (id INT, ts TIMESTAMP) USING values WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
        "CREATE STREAM live (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF INTERVAL '5' SECOND;",
    ),
    (
        "CREATE STREAM live (id INT, ts TIMESTAMP) USING values WITH WATERMARK FOR ts AS ts COMMENT 'x'",
        "CREATE STREAM live (id INT, ts TIMESTAMP) USING values COMMENT 'x' WITH WATERMARK ts DELAY OF "
        "INTERVAL 0 SECONDS;",
    ),
    ("CREATE TABLE shown (id INT) WITH ('connector' = 'print')", "CREATE SINK shown (id INT) USING console;"),
    ("CREATE TABLE lost (id INT) WITH ('connector' = 'blackhole')", "CREATE SINK lost (id INT) USING noop;"),
    (
        "CREATE TABLE db (id INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 't', "
        "'username' = 'me', 'password' = 'hunter2')",
        "CREATE SINK db (id INT) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', table 't', user 'me', "
        "password '${env:PASSWORD}');",
    ),
    (
        "CREATE STREAM views (id INT KEY, page VARCHAR, at BIGINT) "
        "WITH (kafka_topic = 'views', value_format = 'JSON', timestamp = 'at')",
        "CREATE STREAM views (id INT, page STRING, at BIGINT) USING kafka FORMAT json "
        "OPTIONS (servers 'localhost:9092', topic 'views') "
        "WITH WATERMARK timestamp_millis(at) AS at_time DELAY OF INTERVAL 0 SECONDS;",
    ),
    (
        "CREATE TABLE totals WITH (kafka_topic = 't') AS SELECT id, count(*) AS n FROM clicks GROUP BY id",
        "CREATE LIVE TABLE totals AS SELECT id, count(*) AS n FROM clicks GROUP BY id;",
    ),
    (
        "CREATE STREAM x WITH (kafka_topic = 'y', value_format = 'DELIMITED') AS SELECT id FROM clicks EMIT CHANGES",
        "CREATE STREAM x AS SELECT id FROM clicks; CREATE SINK x_topic USING kafka FORMAT csv OPTIONS (servers "
        "'localhost:9092', topic 'y'); INSERT INTO x_topic SELECT * FROM x;",
    ),
    (
        "CREATE SINK x FROM counts WITH (connector = 'kafka', topic = 'y', properties.bootstrap.server = 'h:9092', "
        "scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON",
        "CREATE SINK x USING kafka FORMAT json OPTIONS (topic 'y', servers 'h:9092'); "
        "INSERT INTO x SELECT * FROM counts;",
    ),
    (
        "CREATE SOURCE x (id INT) WITH (connector = 'kafka', topic = 'y') FORMAT PLAIN ENCODE JSON",
        "CREATE STREAM x (id INT) USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'y');",
    ),
    ("CREATE VIEW v AS SELECT id FROM clicks", "CREATE STREAM v AS SELECT id FROM clicks;"),
    (
        "CREATE TABLE totals AS SELECT id, count(*) AS n FROM clicks GROUP BY id",
        "CREATE LIVE TABLE totals AS SELECT id, count(*) AS n FROM clicks GROUP BY id;",
    ),
    (
        "ALTER SOURCE clicks ADD COLUMN user TEXT, ADD page VARCHAR(20)",
        "ALTER STREAM clicks ADD COLUMNS (user STRING, page STRING);",
    ),
    (
        "ALTER TABLE clicks ADD (a INT, b ARRAY<INT>)",
        "ALTER STREAM clicks ADD COLUMNS (a INT, b ARRAY<INT>);",
    ),
    (
        "ALTER SOURCE clicks DROP COLUMN id",
        "CREATE OR REPLACE STREAM clicks (ts TIMESTAMP)\n  USING values\n  WITH WATERMARK ts DELAY '1 minute';",
    ),
    ("ALTER SOURCE clicks RENAME TO visits", "ALTER STREAM clicks RENAME TO visits;"),
    ("ALTER SINK out SET (snapshot = false)", "CREATE OR REPLACE SINK out\n  USING noop;"),
    (
        "CREATE SINK db (id INT) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', table 't', user 'me', "
        "password 'hunter2'); ALTER SINK db ADD COLUMN n INT",
        "CREATE OR REPLACE SINK db (id INT, n INT)\n  USING jdbc\n  OPTIONS (url 'jdbc:postgresql://h/d', "
        "table 't', user 'me', password '${env:PASSWORD}');",
    ),
    (
        "ALTER LIVE TABLE counts ADD COLUMN user STRING",
        "CREATE OR REPLACE LIVE TABLE counts\n  AS SELECT id, count(*) AS n FROM clicks GROUP BY id;",
    ),
    (
        "ALTER MATERIALIZED VIEW counts RENAME TO totals",
        "ALTER LIVE TABLE counts RENAME TO totals;",
    ),
    ("DROP TABLE counts", "DROP LIVE TABLE counts;"),
    ("DROP VIEW IF EXISTS counts", "DROP LIVE TABLE counts;"),
    ("DROP TABLE out", "DROP SINK out;"),
    ("SHOW CREATE TABLE clicks", "SHOW CREATE STREAM clicks;"),
    ("SHOW PARTITIONS clicks", "DESCRIBE STREAM clicks;"),
    ("MSCK REPAIR TABLE counts", "DESCRIBE LIVE TABLE counts;"),
]


@pytest.mark.parametrize(("statement", "own"), DEFINITIONS, ids=lambda text: text[:40])
def test_what_is_proposed_for_a_statement_is_typed(
    statement: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "x")
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{statement};")
    assert caught.value.proposal == own
    assert "hunter2" not in caught.value.hint
    last_notes(DEFINED + own)


def test_variables_of_psql_are_answered_with_those_of_the_console() -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}SELECT id FROM clicks WHERE id = :id AND 'a' = :'name' AND id > :id;")
    assert (
        caught.value.message == "the variable :id is not defined"
    )  # with :'name', which Spark does not read
    assert caught.value.proposal == (
        "DEFINE id = '…'; DEFINE name = '…'; "
        "SELECT id FROM clicks WHERE id = ${id} AND 'a' = '${name}' AND id > ${id};"
    )


def test_variables_of_psql_that_are_defined_have_their_values() -> None:
    query = "SELECT :'day' AS d, :'who' AS w, id AS :\"a\", j:n AS p FROM clicks WHERE id > :n"
    own = "SELECT '${day}' AS d, 'O\\'Brien' AS w, id AS `${a}`, j:n AS p FROM clicks WHERE id > ${n}"
    values = {"day": "2026-01-01", "who": "O'Brien", "n": "3", "a": "b c"}
    [statement] = parse_script(Source("a.sql", f"{query};"), values)
    assert statement.read_as == own
    assert statement.text == (
        "SELECT '2026-01-01' AS d, 'O\\'Brien' AS w, id AS `b c`, j:n AS p FROM clicks WHERE id > 3"
    )
    with pytest.raises(StreamsqlError) as caught:
        list(parse_script(Source("a.sql", "SELECT :'day' AS d, ${n} AS n, :'nosuch' AS e;"), values))
    assert caught.value.proposal == "DEFINE nosuch = '…'; SELECT '2026-01-01' AS d, 3 AS n, '${nosuch}' AS e;"
    assert caught.value.span == Span(31, 40)
    with pytest.raises(StreamsqlError, match="values are not substituted again"):
        list(parse_script(Source("a.sql", "SELECT :'x';"), {"x": "${day}"}))


def test_what_a_proposal_leaves_out_is_told() -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(
            "CREATE TABLE gen (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen', "
            "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '9');"
        )
    assert caught.value.proposal == (
        "CREATE STREAM gen (id INT) USING datagen OPTIONS (fields.id 'sequence from 1');"
    )
    assert caught.value.detail.endswith(
        "; a stream has no key: (id) is left out; left out, for there is nothing like it here: fields.id.end"
    )


def test_a_key_of_ksqldb_is_not_in_the_value_of_its_message() -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(
            "CREATE TABLE x (id INT PRIMARY KEY, n INT) WITH (kafka_topic = 'x', value_format = 'JSON');"
        )
    assert caught.value.detail.endswith("; id is the key of a message, _key, and not in its value")


def test_a_misspelt_connector_of_another_console_is_named() -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes("CREATE TABLE x (id INT) WITH ('connector' = 'datgen');")
    assert caught.value.hint == "did you mean datagen?"


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM counts", "UPDATE counts SET n = 1", "ALTER TABLE counts ADD COLUMN x INT", "TRUNCATE TABLE counts",
     "MERGE INTO counts USING out ON true WHEN MATCHED THEN DELETE", "INSERT OVERWRITE counts SELECT 1, 2"],
)  # fmt: skip
def test_what_cannot_change_a_live_table_says_so_at_its_name(statement: str) -> None:
    script = f"{DEFINED}{statement};"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    error = caught.value
    assert error.message.startswith("counts is a live table: ")
    assert error.detail == "the rows of a live table are those of its query"
    assert error.span and script[error.span.start : error.span.end] == "counts"


def test_the_rows_of_a_stream_are_not_cached_or_analyzed() -> None:
    for statement, hint in (
        ("CACHE TABLE clicks", "CREATE LIVE TABLE … AS SELECT * FROM clicks; keeps its rows"),
        ("ANALYZE TABLE clicks COMPUTE STATISTICS", "SUMMARIZE clicks;"),
    ):
        with pytest.raises(StreamsqlError, match="clicks is a stream: ") as caught:
            last_notes(f"{DEFINED}{statement};")
        assert caught.value.hint == hint
    last_notes(f"{DEFINED}CACHE TABLE counts;")


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("ALTER STREAM clicsk ADD COLUMN x INT", "there is no stream clicsk", "did you mean clicks?"),
        ("ALTER SINK clicks2 SET (a = 1)", "there is no sink clicks2", "sinks: out"),
        ("ALTER LIVE TABLE coutns RENAME TO a", "there is no live table coutns", "did you mean counts?"),
    ],
)
def test_alter_of_what_is_not_there_names_what_is(statement: str, message: str, hint: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{statement};")
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_options_beside_a_table_are_not_read_as_a_comment() -> None:
    hint = "/*+ OPTIONS('scan.startup.mode'='earliest-offset') */"
    for behind in (f"{hint} AS c;", f"{hint};", hint):
        with pytest.raises(StreamsqlError) as caught:
            last_notes(f"{DEFINED}SELECT * FROM clicks {behind}")
        assert (
            caught.value.proposal == "CREATE OR REPLACE STREAM clicks … OPTIONS (startingOffsets 'earliest');"
        )
    last_notes(f"{DEFINED}SELECT /*+ BROADCAST(c) */ '{hint[:3]} OPTIONS(1) */' AS t FROM counts c;")


def test_a_hint_of_flink_beside_a_table_is_not_left_out_in_silence() -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}SELECT * FROM clicks /*+ STATE_TTL('clicks'='1d') */;")
    assert caught.value.message == "STATE_TTL is a hint of Flink, which Spark would not see"
    assert caught.value.detail.startswith("the watermark of a stream bounds the state")


def test_words_that_spark_has_stay() -> None:
    for statement in (
        "SELECT INTERVAL '10:30' HOUR TO MINUTE AS a, INTERVAL '5' SECOND AS b FROM clicks",
        "SELECT id FROM counts TABLESAMPLE (10 PERCENT)",
        'SELECT id[0], "id" AS t, sum(id) OVER (PARTITION BY id) FROM counts',
        "SHOW USER FUNCTIONS",
        "SHOW PROCEDURES",
        'COPY counts TO "a.csv"',
    ):
        notes = " ".join(last_notes(f"{DEFINED}{statement};"))
        assert "INTERVAL" not in notes and "TABLESAMPLE" not in notes and "`" not in notes.replace("`id`", "")


def test_emit_changes_is_left_out_and_places_stay() -> None:
    assert last_notes(f"{DEFINED}SELECT id FROM clicks EMIT CHANGES;")[0] == "read as SELECT id FROM clicks;"
    script = f"{DEFINED}CREATE LIVE TABLE t AS SELECT id FROM clicsk EMIT CHANGES;"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    span = caught.value.span
    assert span and script[span.start : span.end] == "clicsk"


def test_a_stream_that_is_read_is_dropped_with_its_readers_or_not() -> None:
    chain = (
        "CREATE STREAM a AS SELECT id FROM clicks; CREATE LIVE TABLE most AS SELECT max(n) AS m FROM counts;"
    )
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{chain} DROP STREAM clicks;")
    assert caught.value.message == "clicks is read by counts, a"
    assert caught.value.hint == "DROP STREAM clicks CASCADE; drops them, too"
    checker = Checker(Context(Catalog()))
    for statement in parse_script(Source("a.sql", f"{DEFINED}{chain} DROP STREAM clicks CASCADE;")):
        checker.check(statement)
    left = checker.context.catalog
    assert [*left.streams, *left.sinks, *left.queries] == ["out"]
    # A name that only occurs in the text of a query is not what it reads.
    last_notes(f"{DEFINED}CREATE STREAM n (id INT) USING values; DROP STREAM n;")


def test_a_command_behind_a_statement_ends_it() -> None:
    assert trailing_command("SELECT 1 AS a \\gx") == ("SELECT 1 AS a", "\\gx")
    assert trailing_command("SELECT 1\n\\g /tmp/a.txt") == ("SELECT 1", "\\g /tmp/a.txt")
    for text in ("SELECT 'a \\gx", "SELECT 'a \\gx'", "SELECT 1 -- \\gx", "\\gx", "SELECT 1"):
        assert trailing_command(text) is None, text
    assert is_complete("SELECT 1 \\gx")
    assert not is_complete("SELECT 'a \\gx")


def test_a_command_on_a_line_of_its_own_follows_the_statements_before_it() -> None:
    for text, parts in (
        ("SELECT 1;\n\\d\n.tables\nSELECT 2;", ["SELECT 1;\n", "\\d\n", ".tables\n", "SELECT 2;"]),
        ("\\timing\n  ? WATCH\n", ["\\timing\n", "  ? WATCH\n"]),
        ("SELECT 'a;\n\\d'\n, .5;\n-- b;\n\\x", ["SELECT 'a;\n\\d'\n, .5;\n-- b;\n", "\\x"]),
        ("SELECT a\n.b;", ["SELECT a\n.b;"]),
    ):
        assert cut_at_commands(text, SIGNS) == parts
    for text in ("SELECT 1;\n.tables", "SELECT 1;\n\\d", "\\x\nSELECT 1;"):
        assert is_complete(text), text
    for text in ("SELECT 1;\nSELECT", "\\timing\nSELECT 1", "SELECT 'a;\n.tables"):
        assert not is_complete(text), text


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("\\d", "SHOW TABLES;"),
        (".tables", "SHOW TABLES;"),
        ("\\i a.sql", "SOURCE 'a.sql';"),
        ("\\gx", "leave it out"),
        ("\\o rows.csv", "leave it out"),
    ],
)
def test_a_command_of_the_prompt_in_a_script_is_answered_with_the_statement(line: str, hint: str) -> None:
    with pytest.raises(SyntaxFault, match="is a command of the prompt") as caught:
        list(parse_script(Source("a.sql", f"SELECT 1;\n{line}\nSELECT 2;")))
    assert caught.value.hint == hint
    assert caught.value.span
    assert Source("a.sql", f"SELECT 1;\n{line}").line_column(caught.value.span.start) == (2, 1)


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("SHOW STREAM;", "expected STREAMS, found STREAM", "did you mean STREAMS?"),
        ("watermarks;", "there is no statement watermarks", "HELP watermarks; is a topic"),
        (
            "SWITCHING FROM duckdb;",
            "there is no statement SWITCHING",
            "HELP switching from duckdb; is a topic",
        ),
        ("switching from Flink;", "there is no statement switching", "HELP switching from flink; is a topic"),
        ("SWITCHING FROM psql;", "there is no statement SWITCHING", "HELP switching from psql; is a topic"),
        (
            "SWITCHING FROM ksqlDB;",
            "there is no statement SWITCHING",
            "HELP switching from ksqldb; is a topic",
        ),
        ("SWITCHING FROM mysql;", "there is no statement SWITCHING", "HELP switching from psql; are topics"),
    ],
)
def test_nearly_a_statement(statement: str, message: str, hint: str) -> None:
    fault = what_is_wrong(statement)
    assert fault.message == message
    assert hint in fault.hint
    if hint.endswith("; is a topic"):
        assert fault.proposal == hint.removesuffix(" is a topic")
        list(parse_script(Source("sql", fault.proposal)))


def what_is_wrong(statement: str) -> SyntaxFault:
    """The error of a statement: at once, or when Spark's parser does not take it."""
    try:
        (read,) = parse_script(Source("sql", statement))
    except SyntaxFault as fault:
        return fault
    assert isinstance(read, Spark) and read.doubt
    return read.doubt


def test_show_with_the_name_of_a_relation_describes_it() -> None:
    table = "CREATE TABLE people (id INT);"
    for name, own in (
        ("people", "TABLE people"),
        ("clicks", "STREAM clicks"),
        ("counts", "LIVE TABLE counts"),
    ):
        assert last_notes(f"{DEFINED}{table}SHOW {name};") == [f"read as DESCRIBE {own};"]
    with pytest.raises(StreamsqlError, match="there is no statement SHOW SETTINGS") as caught:
        last_notes(f"{DEFINED}SHOW SETTINGS;")
    assert "SET; shows the settings" in caught.value.hint
    for typed, meant in (("GRAHP", "GRAPH"), ("QUERYS", "QUERIES"), ("TABELS", "TABLES")):
        with pytest.raises(StreamsqlError) as caught:
            last_notes(f"{DEFINED}SHOW {typed};")
        assert caught.value.hint == f"did you mean {meant}?"


@pytest.mark.parametrize(("dialect", "typed", "own"), TRANSLATIONS, ids=lambda text: text[:40])
def test_a_statement_of_the_dialect_that_is_chosen_is_translated_beforehand(
    dialect: str, typed: str, own: str
) -> None:
    assert f"read as {own};" in last_notes(f"{DEFINED}SET streamsql.dialect = {dialect};{typed};")
    last_notes(DEFINED + own)


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "postgres", "flink", "ksqldb"])
def test_the_clauses_of_this_console_stay_in_each_dialect(dialect: str) -> None:
    for statement in (
        "CREATE OR REPLACE STREAM new (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE",
        "SELECT id, count(*) AS n FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE) GROUP BY id, window_start",
        "SELECT DISTINCT ON (id) id, ts FROM clicks",
        "SELECT DISTINCT ON (id) WITHIN WATERMARK id, ts FROM clicks",
        "CREATE LIVE TABLE first OUTPUT MODE APPEND AS SELECT id, ts FROM clicks "
        "QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1",
        "INSERT INTO out SELECT id FROM clicks",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO out SELECT id FROM clicks; END",
    ):
        notes = last_notes(f"{DEFINED}SET streamsql.dialect = {dialect};{statement};")
        assert not any(note.startswith("read as") for note in notes), statement


def test_places_of_errors_stay_in_a_statement_that_is_translated() -> None:
    for typed in ("SELECT [id] AS a FROM clicks WHERE idd = 1", "SELECT id::text, idd FROM clicks"):
        script = f"{DEFINED}SET streamsql.dialect = duckdb;{typed};"
        with pytest.raises(StreamsqlError) as caught:
            last_notes(script)
        span = caught.value.span
        assert span and script[span.start : span.end] == "idd"


def test_the_users_own_function_is_called_in_each_dialect() -> None:
    own = "CREATE FUNCTION today AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING;"
    for defined, notes in ((own, []), ("", ["read as SELECT current_date() AS t FROM people;"])):
        script = f"CREATE TABLE people (id INT);{defined}SET streamsql.dialect = duckdb;SELECT today() AS t FROM people;"
        assert last_notes(script) == notes


def test_a_type_of_another_system_is_named_and_taken() -> None:
    for name, own in (
        ("TEXT", "STRING"),
        ("timestamptz", "TIMESTAMP"),
        ("BOOL", "BOOLEAN"),
        ("INT8", "BIGINT"),
        ("UBIGINT", "DECIMAL(20)"),
    ):
        with pytest.raises(StreamsqlError) as caught:
            last_notes(f"CREATE STREAM s (a {name}) USING values;")
        assert caught.value.hint == f"{name} of other systems is {own} here"
        assert caught.value.proposal == f"CREATE STREAM s (a {own}) USING values;"
        last_notes(f"CREATE STREAM s (a {own}) USING values;")


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("SELECT * FORM clicks", "FROM"),
        ("SELECT id FRM clicks", "FROM"),
        ("SELECT id FROM clicks LIMT 3", "LIMIT"),
    ],
)
def test_a_misspelt_clause_is_named(query: str, clause: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{query};")
    assert caught.value.hint == f"did you mean {clause}?"


def test_unsigned_types_are_named_and_what_they_are_here() -> None:
    script = "CREATE STREAM s (id bigint unsigned, n INT) USING values;"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    assert caught.value.proposal == script.replace("bigint unsigned", "DECIMAL(20)")
    span = caught.value.span
    assert span and script[span.start : span.end] == "unsigned"
    last_notes(caught.value.proposal)


@pytest.mark.parametrize(
    ("pattern", "own"),
    [
        ("YYYY-MM-DD HH24:MI:SS", "yyyy-MM-dd HH:mm:ss"),
        ("DD.MM.YY HH12:MI AM", "dd.MM.yy hh:mm a"),
        ("HH24:MI", "HH:mm"),
        ("Mon DD", "MMM dd"),
        ("FMDay, DD.MM.YYYY", "EEEE, dd.MM.yyyy"),
        ("Dy", "E"),
    ],
)
def test_date_patterns_of_postgres_are_answered_with_those_of_spark(pattern: str, own: str) -> None:
    query = f"{DEFINED}SELECT date_format(ts, '{pattern}') AS d FROM clicks;"
    [note, *_] = last_notes(query)
    assert note.startswith("Spark re") and note.endswith(f": '{own}'")
    assert not any("Spark re" in note for note in last_notes(query.replace(pattern, own)))


def test_parts_of_a_date_pattern_that_mean_something_else_are_told() -> None:
    for pattern, own in (("yyyy-mm-DD", "dd"), ("yyyy-mm-dd", "MM"), ("HH:MM", "mm"), ("HH:mm:SS", "ss")):
        notes = last_notes(f"{DEFINED}SELECT to_char(ts, '{pattern}') AS d FROM clicks;")
        assert any(f"{own} " in note and " in Spark, and " in note for note in notes), pattern
    for pattern in ("yyyy-MM-dd HH:mm:ss.SS", "yyyyDDD", "dd.MM.yyyy", "HH:mm:ss"):
        assert "Spark" not in str(last_notes(f"{DEFINED}SELECT to_char(ts, '{pattern}') AS d FROM clicks;"))


@pytest.mark.parametrize(
    ("statement", "note"),
    [
        (
            "CREATE TABLE f AS SELECT id, count(*) AS n FROM clicks GROUP BY id, window(ts, '1 hour') EMIT FINAL",
            "CREATE LIVE TABLE f OUTPUT MODE APPEND AS SELECT id, count(*) AS n FROM clicks "
            "GROUP BY id, window(ts, '1 hour')",
        ),
        ("SET search_path TO public, pg_catalog", "USE default"),
        (
            "CREATE SINK two USING noop; BEGIN STATEMENT SET; INSERT INTO out SELECT id FROM clicks; -- both\nINSERT INTO two SELECT 1 AS id FROM clicks; END",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO out SELECT id FROM clicks; -- both\n"
            "INSERT INTO two SELECT 1 AS id FROM clicks; END",
        ),
        ("USE CATALOG default_catalog", "SET CATALOG spark_catalog"),
        (
            "CREATE FUNCTION f(x INT) RETURNS INT AS $$ SELECT x + 1; $$ LANGUAGE SQL",
            "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1",
        ),
    ],
)
def test_statements_of_other_dialects_run(statement: str, note: str) -> None:
    assert f"read as {note};" in last_notes(f"{DEFINED}{statement};")
