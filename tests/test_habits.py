"""Statements of other consoles: each row of HELP SWITCHING FROM … is typed, and what is proposed is typed, too."""

from __future__ import annotations

import re

import pytest

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.config.preferences import Preferences
from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault
from streamsql.language.habits import Habit, habits
from streamsql.language.lexical import cut_at_commands, trailing_command
from streamsql.language.parser import parse_script
from streamsql.language.short_forms import SIGNS, expand
from streamsql.language.statements.spark import Spark
from streamsql.plan.context import Context
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
STATEMENTS = [h for h in habits() if not h.is_command]
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
    for statement in parse_script(Source("a.sql", script)):
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
        "CREATE TABLE a (id INT, name VARCHAR(20), d double precision, PRIMARY KEY (id) NOT ENFORCED)",
        "CREATE TABLE a (id INT, name VARCHAR(20), d DOUBLE);",
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
        "CREATE TABLE x (id INT, tags TEXT[], name VARCHAR)",
        "CREATE TABLE x (id INT, tags ARRAY<STRING>, name STRING);",
    ),
    (
        "INSERT INTO clicks SELECT id, ts FROM clicks EMIT CHANGES",
        "CREATE STREAM clicks_all AS SELECT * FROM clicks UNION ALL SELECT id, ts FROM clicks;",
    ),
    ("ALTER TABLE t ADD COLUMN email TEXT", "ALTER TABLE t ADD COLUMN email STRING;"),
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
        "ALTER STREAM clicks ADD COLUMN user TEXT, ADD page VARCHAR(20)",
        "CREATE OR REPLACE STREAM clicks (id INT, ts TIMESTAMP, user STRING, page VARCHAR(20))\n  USING values\n"
        "  WITH WATERMARK ts DELAY '1 minute';",
    ),
    (
        "ALTER TABLE clicks ADD (a INT, b ARRAY<INT>)",
        "CREATE OR REPLACE STREAM clicks (id INT, ts TIMESTAMP, a INT, b ARRAY<INT>)\n  USING values\n"
        "  WITH WATERMARK ts DELAY '1 minute';",
    ),
    (
        "ALTER SOURCE clicks DROP COLUMN id",
        "CREATE OR REPLACE STREAM clicks (ts TIMESTAMP)\n  USING values\n  WITH WATERMARK ts DELAY '1 minute';",
    ),
    (
        "ALTER STREAM clicks RENAME TO visits",
        "CREATE STREAM visits (id INT, ts TIMESTAMP)\n  USING values\n  WITH WATERMARK ts DELAY '1 minute';",
    ),
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
        "CREATE LIVE TABLE totals\n  AS SELECT id, count(*) AS n FROM clicks GROUP BY id;",
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


def test_rows_that_would_be_paired_in_silence_are_refused() -> None:
    with pytest.raises(StreamsqlError, match="Spark gives all pairs of their rows") as caught:
        last_notes(f"{DEFINED}SELECT unnest(array(1, 2)) AS a, id, unnest(array(3, 4)) AS b FROM clicks;")
    assert caught.value.hint == "write them one behind another: their rows then stand side by side"


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


def test_a_join_of_duckdb_is_not_read_as_an_alias() -> None:
    script = f"{DEFINED}SELECT * FROM counts POSITIONAL JOIN clicks;"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    assert caught.value.message == "Spark has no POSITIONAL JOIN"
    assert caught.value.span and script[caught.value.span.start :].startswith("POSITIONAL")


def test_asof_join_is_answered_with_a_join_of_which_the_newest_rows_are_kept() -> None:
    script = (
        f"{DEFINED}SELECT * FROM clicks ASOF JOIN counts c ON clicks.id = c.id AND clicks.ts >= c.n LIMIT 3;"
    )
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    assert caught.value.proposal == (
        "SELECT * FROM clicks JOIN counts c ON clicks.id = c.id AND clicks.ts >= c.n "
        "QUALIFY row_number() OVER (PARTITION BY clicks.id, clicks.ts ORDER BY c.n DESC) = 1 LIMIT 3;"
    )
    last_notes(DEFINED + caught.value.proposal)


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


def test_a_function_of_the_user_is_not_read_as_one_of_spark() -> None:
    own = "CREATE FUNCTION today AS 'string.capwords' LANGUAGE PYTHON RETURNS STRING; SELECT today() AS t;"
    assert last_notes(f"{DEFINED}SELECT today() AS t;") == ["today() is read as current_date()"]
    assert not last_notes(own)


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


@pytest.mark.parametrize(
    ("typed", "own"),
    [
        (
            "SELECT id, WINDOWSTART, count(*) AS n FROM clicks WINDOW TUMBLING (SIZE 10 MINUTES) WHERE id > 1 "
            "GROUP BY id EMIT CHANGES",
            "SELECT id, TUMBLE_START(INTERVAL '10' MINUTES) AS WINDOWSTART, count(*) AS n FROM clicks "
            "WHERE id > 1 GROUP BY id, TUMBLE(INTERVAL '10' MINUTES);",
        ),
        (
            "CREATE TABLE t AS SELECT id, count(*) AS n FROM clicks WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 1 "
            "MINUTE) GROUP BY id EMIT CHANGES",
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM clicks "
            "GROUP BY id, HOP(INTERVAL '1' MINUTE, INTERVAL '10' MINUTES);",
        ),
        (
            "SELECT id, count(*) AS n FROM clicks WINDOW SESSION (30 SECONDS) GROUP BY id EMIT CHANGES LIMIT 2",
            "SELECT id, count(*) AS n FROM clicks GROUP BY id, SESSION(INTERVAL '30' SECONDS) LIMIT 2;",
        ),
        (
            "SELECT (regexp_match('ab1', '([a-z]+)([0-9]+)'))[2] AS m, id::text FROM counts",
            "SELECT regexp_extract('ab1', '([a-z]+)([0-9]+)', 2) AS m, id::STRING FROM counts;",
        ),
        (
            "CREATE FUNCTION next(x INT) RETURNS INT LANGUAGE SQL AS $$ SELECT x + 1 $$",
            "CREATE FUNCTION next(x INT) RETURNS INT RETURN x + 1;",
        ),
        (
            "SELECT * REPLACE (id + 1 AS id, ts AS ts) FROM clicks",
            "SELECT * EXCEPT (id, ts), id + 1 AS id, ts AS ts FROM clicks;",
        ),
        ("SELECT c.* RENAME (id AS n) FROM clicks c", "SELECT c.* EXCEPT (id), id AS n FROM clicks c;"),
        (
            "SELECT {'a': 1, b: [{'c': 'x'}]} AS s, MAP {'k': 2} AS m, struct_pack(n := 1) AS p FROM clicks",
            "SELECT named_struct('a', 1, 'b', array(named_struct('c', 'x'))) AS s, map('k', 2) AS m, "
            "named_struct('n', 1) AS p FROM clicks;",
        ),
        (
            "SELECT [x * 2 FOR x IN [1, 2] IF x > 1] AS a, 7//2 AS b, id ** 2 AS c, 1_000 AS d, count() AS n FROM counts "
            "GROUP BY ALL",
            "SELECT transform(filter(array(1, 2), x -> x > 1), x -> x * 2) AS a, 7 div 2 AS b, power(id, 2) AS c, "
            "1000 AS d, count(*) AS n FROM counts GROUP BY ALL;",
        ),
        ("SELECT id FROM counts FETCH FIRST 2 ROWS ONLY", "SELECT id FROM counts LIMIT 2;"),
        (
            "SELECT DISTINCT a: 1, \"b c\": upper('x') || 'y', c: CASE WHEN true THEN 1 END, d: [1, 2] FROM e: counts JOIN "
            "f: (SELECT g: -1) ON true",
            "SELECT DISTINCT 1 AS a, upper('x') || 'y' AS `b c`, CASE WHEN true THEN 1 END AS c, array(1, 2) AS d "
            "FROM counts AS e JOIN (SELECT -1 AS g) AS f ON true;",
        ),
        (
            "SELECT COLUMNS(*), COLUMNS(c.* EXCLUDE (n)), COLUMNS(['n', 'id']) FROM counts c ORDER BY #1, #2 DESC",
            "SELECT *, c.* EXCEPT (n), n, id FROM counts c ORDER BY 1, 2 DESC;",
        ),
        (
            "SELECT 5! + id! AS a, NOT !true AS b, id != 1 AS c FROM counts WHERE !false",
            "SELECT factorial(5) + factorial(id) AS a, NOT !true AS b, id != 1 AS c FROM counts WHERE !false;",
        ),
        (
            "SELECT id FROM counts ORDER BY id OFFSET 2 ROWS FETCH NEXT ROW ONLY",
            "SELECT id FROM counts ORDER BY id LIMIT 1 OFFSET 2;",
        ),
        ("SELECT id FROM counts OFFSET 3 LIMIT 2", "SELECT id FROM counts LIMIT 2 OFFSET 3;"),
        ("SELECT id FROM counts OFFSET 3 ROWS", "SELECT id FROM counts OFFSET 3;"),
        ('DESCRIBE "clicks"', "DESCRIBE clicks;"),
        ('SHOW CREATE STREAM "clicks"', "SHOW CREATE STREAM clicks;"),
        (
            "SUMMARIZE 'a.csv'",
            "SUMMARIZE SELECT * FROM csv.`a.csv` WITH (header = true, inferSchema = true);",
        ),
        ('DROP LIVE TABLE IF EXISTS "counts"', "DROP LIVE TABLE IF EXISTS counts;"),
        (
            "SELECT localtimestamp AS l, ts::timestamp(3) AS t FROM clicks WHERE ts > now() - '1 hour'",
            "SELECT localtimestamp() AS l, ts::TIMESTAMP AS t FROM clicks WHERE ts > now() - INTERVAL '1 hour';",
        ),
        (
            "WITH c AS NOT MATERIALIZED (SELECT count(*) FILTER (id > 1) AS n FROM counts) SELECT n FROM c FOR UPDATE",
            "WITH c AS (SELECT count(*) FILTER (WHERE id > 1) AS n FROM counts) SELECT n FROM c;",
        ),
        (
            "SELECT [3, 4, 5][2:3] AS s, transform([1], lambda x, i: x + i) AS l FROM counts ORDER BY s COLLATE NOCASE",
            "SELECT slice(array(3, 4, 5), 2, 2) AS s, transform(array(1), (x, i) -> x + i) AS l FROM counts "
            "ORDER BY s COLLATE UTF8_LCASE;",
        ),
        (
            "SELECT (array(3, 4, 5))[2:3] AS s FROM counts",
            "SELECT slice((array(3, 4, 5)), 2, 2) AS s FROM counts;",
        ),
        ("SELECT e FROM UNNEST(array(1)) AS e", "SELECT e FROM explode(array(1)) AS e(e);"),
        (
            "SELECT e FROM counts c, unnest(array(c.id)) AS e WHERE e > 1",
            "SELECT e FROM counts c LATERAL VIEW explode(array(c.id)) e AS e WHERE e > 1;",
        ),
        (
            "SELECT e FROM counts LEFT JOIN UNNEST(array(id)) AS u (e) ON TRUE",
            "SELECT e FROM counts LATERAL VIEW OUTER explode(array(id)) u AS e;",
        ),
        ("FROM 'a/b.json' LIMIT 3", "FROM json.`a/b.json` LIMIT 3;"),
        ("SELECT * FROM read_parquet('b.parquet') p", "SELECT * FROM parquet.`b.parquet` p;"),
        (
            "SELECT * FROM read_csv('a/*.csv', delim = '|') c JOIN 'b.tsv' ON a = b",
            "SELECT * FROM csv.`a/*.csv` WITH (header = true, inferSchema = true, sep = '|') c "
            "JOIN csv.`b.tsv` WITH (header = true, inferSchema = true, sep = '\\t') ON a = b;",
        ),
        (
            "SELECT * FROM read_json(['a.json', 'b.json'])",
            "SELECT * FROM (SELECT * FROM json.`a.json` UNION ALL SELECT * FROM json.`b.json`);",
        ),
        (
            "SELECT id, w FROM clicks, LATERAL TABLE(explode(array(1, 2))) AS t(w)",
            "SELECT id, w FROM clicks, LATERAL explode(array(1, 2)) AS t(w);",
        ),
        (
            "FROM counts USING SAMPLE 10%; SELECT * FROM counts TABLESAMPLE SYSTEM (5)",
            "SELECT * FROM counts TABLESAMPLE (5 PERCENT);",
        ),
        (
            "SELECT '{1,\"b,c\",NULL}'::text[] AS a, CAST('{}' AS int[]) AS b, $$x y$$ AS c, $t$z$t$ AS d",
            "SELECT array('1', 'b,c', NULL)::ARRAY<STRING> AS a, CAST(array() AS ARRAY<int>) AS b, 'x y' AS c, 'z' AS d;",
        ),
        (
            "SELECT window.start AS w, count(*) AS n FROM clicks GROUP BY window(ts, INTERVAL 10 MINUTES, interval '5 minutes')",
            "SELECT window.start AS w, count(*) AS n FROM clicks GROUP BY window(ts, '10 minutes', '5 minutes');",
        ),
        (  # side by side, not all pairs
            "SELECT id, unnest(ARRAY[1, 2]) AS a, unnest([3]) b, generate_series(1, 3) FROM counts",
            "SELECT id, inline(arrays_zip(array(1, 2), array(3), sequence(1, 3))) AS (a, b, generate_series) FROM counts;",
        ),
        (
            "SELECT MAP['a', 1, 'b', 2] AS m, JSON_OBJECT('k' VALUE id, KEY 'l' VALUE 2) AS o FROM counts",
            "SELECT MAP('a', 1, 'b', 2) AS m, to_json(named_struct('k', id, 'l', 2)) AS o FROM counts;",
        ),
        (
            "SELECT d->id, concat('a', d -> id), transform(array(d), x -> x->id), reduce(array(1), 0, (s, x) => s + x), "
            "filter(array(1), x => x > 0) FROM (SELECT struct(id) AS d FROM counts)",
            "SELECT d.id, concat('a', d.id), transform(array(d), x -> x.id), reduce(array(1), 0, (s, x) -> s + x), "
            "filter(array(1), x -> x > 0) FROM (SELECT struct(id) AS d FROM counts);",
        ),
        (
            "SELECT ts + interval '1 month 2 days' - '1 year 3 hours'::interval AS t FROM clicks",
            "SELECT ts + make_interval(0, 1, 0, 2) - make_interval(1, 0, 0, 0, 3) AS t FROM clicks;",
        ),
        (
            "SELECT ARRAY[1, 2] && '{2,3}' AS a, [id] <@ ARRAY[1] AS b, '{1}'::int[] @> array(1) AS c, 1 + |/ 16 AS d, "
            "||/ 27 AS e FROM counts",
            "SELECT arrays_overlap(array(1, 2), array(2, 3)) AS a, (size(array_except(array(id), array(1))) = 0) AS b, "
            "(size(array_except(array(1), array('1')::ARRAY<int>)) = 0) AS c, 1 + sqrt(16) AS d, cbrt(27) AS e FROM counts;",
        ),
        (
            "SELECT '{}' ? 'k' AS a, '{}' ?| ARRAY['k'] AS b, '{}' IS NOT JSON AS c, 'x' ^@ 'y' AS d, 'x' !~~* 'y' AS e",
            "SELECT array_contains(json_object_keys('{}'), 'k') AS a, "
            "arrays_overlap(json_object_keys('{}'), array('k')) AS b, "
            "('{}' IS NOT NULL AND try_parse_json('{}') IS NULL) AS c, startswith('x', 'y') AS d, 'x' NOT ILIKE 'y' AS e;",
        ),
        (
            "SELECT ARRAY(SELECT id FROM counts) AS a, $$it's; \"one$$ AS b, $t$'$$'$t$ AS c",
            "SELECT (SELECT collect_list(value) RESPECT NULLS FROM (SELECT id FROM counts) AS list(value)) AS a, "
            "'it\\'s; \"one' AS b, '\\'$$\\'' AS c;",
        ),
        (
            "SELECT MAP {'k': 1}['k'] AS a, {'a': 1}['a'] AS b, [1, 2][:1] AS c, [1, 2][2:] AS d, [1, 2][-1] AS e",
            "SELECT map('k', 1)['k'] AS a, named_struct('a', 1)['a'] AS b, slice(array(1, 2), 1, 1) AS c, "
            "slice(array(1, 2), 2, size(array(1, 2))) AS d, element_at(array(1, 2), -1) AS e;",
        ),
        (
            "SELECT current_schema AS a, INTERVAL (3) DAYS AS b FROM counts FOR UPDATE SKIP LOCKED",
            "SELECT current_schema() AS a, INTERVAL 3 DAYS AS b FROM counts;",
        ),
        ("FROM counts USING SAMPLE reservoir(5 ROWS)", "FROM counts TABLESAMPLE (5 ROWS);"),
        (
            "SELECT now() - '5 min'::interval AS a, interval '1h 30m' AS b, '01:30'::interval AS c, id::varchar AS d, "
            "CAST(ts AS TIMESTAMP WITH TIME ZONE) AS e FROM clicks",
            "SELECT now() - INTERVAL '5 minutes' AS a, INTERVAL '1 hours 30 minutes' AS b, "
            "INTERVAL '01:30:00' HOUR TO SECOND AS c, id::STRING AS d, CAST(ts AS TIMESTAMP) AS e FROM clicks;",
        ),
        (
            'SELECT id AS "Id", "clicks".ts FROM "clicks" WHERE id = ANY(ARRAY[1, 2]) AND id <> ALL (\'{3,4}\') '
            "AND 'a' ILIKE ANY (ARRAY['A%']) AND 'a' SIMILAR TO '(a|b)%' AND E'x' = 'x'",
            "SELECT id AS Id, clicks.ts FROM clicks WHERE id IN (1, 2) AND id NOT IN (3, 4) "
            "AND 'a' ILIKE ANY ('A%') AND 'a' RLIKE '^(?:(a|b).*)$' AND 'x' = 'x';",
        ),
        (
            "SELECT d FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-02', '1 hour') AS d",
            "SELECT d FROM explode(sequence(timestamp '2024-01-01', timestamp '2024-01-02', INTERVAL '1 hour')) AS d(d);",
        ),
        (
            "CREATE STREAM k AS SELECT id FROM clicks PARTITION BY id EMIT CHANGES",
            "CREATE STREAM k AS SELECT id FROM clicks;",
        ),
        (
            "SELECT TIMESTAMPTOSTRING(WINDOWSTART, 'HH:mm') AS w, count(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 HOUR) "
            "GROUP BY id EMIT CHANGES",
            "SELECT TIMESTAMPTOSTRING(TUMBLE_START(INTERVAL '1' HOUR), 'HH:mm') AS w, count(*) AS n FROM clicks "
            "GROUP BY id, TUMBLE(INTERVAL '1' HOUR);",
        ),
        (
            "SELECT 'a' ~ 'b' AS a, ts !~* 'c' AS b, ~ id FROM clicks",
            "SELECT 'a' RLIKE 'b' AS a, ts NOT RLIKE '(?i)c' AS b, ~ id FROM clicks;",
        ),
        (
            "SELECT [1, 2][0] AS a, ARRAY[[1], [2]] AS b FROM generate_series(1, 5)",
            "SELECT array(1, 2)[0] AS a, array(array(1), array(2)) AS b "
            "FROM range(1, 5 + 1) AS series(generate_series);",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_query_with_words_of_another_console_runs(typed: str, own: str) -> None:
    assert f"read as {own}" in last_notes(f"{DEFINED}{typed};")
    last_notes(DEFINED + own)


def test_places_stay_behind_words_of_another_console() -> None:
    script = f"{DEFINED}SELECT id::text FROM clicks WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY idd EMIT CHANGES;"
    notes = last_notes(script.replace("idd", "id"))
    assert "a grace period" not in str(notes)
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script.replace("clicks WINDOW", "clicsk WINDOW"))
    span = caught.value.span
    assert span and script.replace("clicks WINDOW", "clicsk WINDOW")[span.start : span.end] == "clicsk"
    graced = script.replace("(SIZE 1 HOUR)", "(SIZE 1 HOUR, GRACE PERIOD 1 MINUTE)").replace("idd", "id")
    assert "DELAY OF INTERVAL '1' MINUTE" in last_notes(graced)[0]


COLUMN_PATTERNS = [
    ("SELECT COLUMNS('^t') FROM clicks", "ts", "SELECT ts FROM clicks;"),
    ("SELECT 1 AS a, max(COLUMNS(*)) FROM clicks", "max(id), max(ts)", "SELECT 1 AS a, max(id), max(ts) FROM clicks;"),
    ("SELECT max(COLUMNS(* EXCLUDE (ts))) FROM clicks", "max(id)", "SELECT max(id) FROM clicks;"),
    ("SELECT COLUMNS(c -> c LIKE '_d')::STRING AS s FROM clicks", "id::STRING AS s", "SELECT id::STRING AS s FROM clicks;"),
    ("SELECT COLUMNS(['ts', 'id']) + INTERVAL 1 DAY FROM clicks WHERE id > 1", "id + INTERVAL 1 DAY, ts + INTERVAL 1 DAY",
     "SELECT id + INTERVAL 1 DAY, ts + INTERVAL 1 DAY FROM clicks WHERE id > 1;"),
    ("SELECT * LIKE 'i%' FROM clicks", "id", "SELECT id FROM clicks;"),
    ("SELECT COLUMNS('t.*') FROM people", "`t.*` behind SET spark.sql.parser.quotedRegexColumnNames = true;",
     "SET spark.sql.parser.quotedRegexColumnNames = true; SELECT `t.*` FROM people;"),
    ("SELECT max(COLUMNS('t.*')) FROM people", "DESCRIBE people; lists the columns", ""),
    ("SELECT * ILIKE 't%' FROM people", "DESCRIBE people; lists the columns", ""),
    ("SELECT id, #2 FROM clicks", "ts", "SELECT id, ts FROM clicks;"),
    ("SELECT #3, id FROM clicks", "DESCRIBE clicks; lists the columns", ""),
    ("SELECT id FROM people WHERE #1 > 2", "DESCRIBE people; lists the columns", ""),
]  # fmt: skip


@pytest.mark.parametrize(("query", "hint", "own"), COLUMN_PATTERNS)
def test_columns_by_a_pattern_or_their_place_are_answered_with_their_names(
    query: str, hint: str, own: str
) -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{query};")
    fault = caught.value
    assert (fault.code, fault.hint) == ("OTHER_CONSOLE", hint)
    fault.source = Source("line", f"{query};")
    fault.span = fault.span and fault.span.shift(-len(DEFINED))
    assert fault.corrected() == own
    last_notes(f"{DEFINED}{own or 'SHOW STREAMS;'}")


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


def test_exclude_is_except_and_places_stay() -> None:
    for columns in ("(id)", "id"):
        assert last_notes(f"{DEFINED}SELECT * EXCLUDE {columns} FROM clicks;")[0] == (
            "read as SELECT * EXCEPT (id) FROM clicks;"
        )
    script = f"{DEFINED}SELECT * EXCLUDE (id) FROM clicsk;"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    span = caught.value.span
    assert span and script[span.start : span.end] == "clicsk"


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
    assert last_notes(f"{DEFINED}{query};")[-1].endswith(f"; did you mean {clause}?")


def test_unsigned_types_are_named_and_what_they_are_here() -> None:
    script = "CREATE STREAM s (id bigint unsigned, n INT) USING values;"
    with pytest.raises(StreamsqlError) as caught:
        last_notes(script)
    assert caught.value.hint == "BIGINT UNSIGNED of other systems is DECIMAL(20) here"
    span = caught.value.span
    assert span and script[span.start : span.end] == "bigint unsigned"
    last_notes(script.replace("bigint unsigned", "DECIMAL(20)"))


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
    with pytest.raises(StreamsqlError) as caught:
        last_notes(query)
    assert caught.value.hint == f"'{own}'"
    last_notes(query.replace(pattern, own))


def test_parts_of_a_date_pattern_that_mean_something_else_are_told() -> None:
    for pattern, own in (("yyyy-mm-DD", "dd"), ("yyyy-mm-dd", "MM"), ("HH:MM", "mm"), ("HH:mm:SS", "ss")):
        notes = last_notes(f"{DEFINED}SELECT to_char(ts, '{pattern}') AS d FROM clicks;")
        assert any(f"{own} " in note and " in Spark, and " in note for note in notes), pattern
    for pattern in ("yyyy-MM-dd HH:mm:ss.SS", "yyyyDDD", "dd.MM.yyyy", "HH:mm:ss"):
        assert "Spark" not in str(last_notes(f"{DEFINED}SELECT to_char(ts, '{pattern}') AS d FROM clicks;"))


@pytest.mark.parametrize(
    ("statement", "own"),
    [
        (
            "SELECT ROWTIME, id FROM clicks c WHERE c.ROWTIME > now()",
            "SELECT ts, id FROM clicks c WHERE c.ts > now()",
        ),
        (
            "CREATE STREAM j AS SELECT a.id FROM clicks a JOIN clicks AS b WITHIN 7 DAYS ON a.id = b.id WHERE a.id > 1",
            "CREATE STREAM j AS SELECT a.id FROM clicks a JOIN clicks AS b ON a.id = b.id "
            "AND b.ts BETWEEN a.ts - INTERVAL 7 DAYS AND a.ts + INTERVAL 7 DAYS WHERE a.id > 1",
        ),
        (
            "SELECT * FROM read_csv('a/*.csv', skip = 1)",
            "CREATE OR REPLACE TEMPORARY VIEW files USING csv OPTIONS (path 'a/*.csv', header true, inferSchema true); "
            "SELECT * FROM files",
        ),
        (
            "SELECT ts AT TIME ZONE 'UTC' AS t FROM clicks",
            "SELECT convert_timezone('UTC', ts) AS t FROM clicks",
        ),
        (
            'SELECT \'{}\'::jsonb @> \'{"a": "x", "b": 2}\' AS x',
            "SELECT get_json_object('{}'::jsonb, '$.a') = 'x' AND get_json_object('{}'::jsonb, '$.b') = '2' AS x",
        ),
        ("SELECT '{}'::jsonb ->> 'a' AS x", "SELECT get_json_object('{}'::STRING, '$.a') AS x"),
        (
            "SELECT * FROM clicks c JOIN counts FOR SYSTEM_TIME AS OF PROCTIME() AS p ON p.id = c.id",
            "SELECT * FROM clicks c JOIN counts AS p ON p.id = c.id",
        ),
        ("SELECT '{}' -> 'a' ->> 'b' AS x", "SELECT get_json_object('{}', '$.a.b') AS x"),
        ("SELECT '{}' ->> '$.a' AS x", "SELECT get_json_object('{}', '$.a') AS x"),
        ("SELECT '{}' #>> '{a, 0}' AS x", "SELECT get_json_object('{}', '$.a[0]') AS x"),
        (
            "SELECT count(*) FROM TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' "
            "HOUR)) GROUP BY window_start, window_end",
            "SELECT count(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1 hour') GROUP BY window_start, "
            "window_end",
        ),
        ("SELECT to_char(ts, 'YYYY-MM-DD') FROM counts", "SELECT to_char(ts, 'yyyy-MM-dd') FROM counts"),
    ],
)
def test_words_of_other_dialects_are_corrected_in_place(statement: str, own: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{statement};")
    error = caught.value
    assert error.span is not None
    error.source, start = Source("sql", f"{statement};"), len(DEFINED)
    error.span = Span(error.span.start - start, error.span.end - start)
    assert error.corrected() == f"{own};"


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
