"""ALTER STREAM … ADD COLUMN: which queries take the new column up, which cannot, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from sql_cases import results_of
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import StreamsqlError
from streamsql.features.testing.sessions import SessionFactory
from streamsql.results import Done, Result
from streamsql.runtime.engine.settings import Settings

ROOMS = ("streamsql/features/alter_stream/", "streamsql/plan/streaming/")

CLICKS = """CREATE STREAM clicks (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute';
    INSERT INTO clicks VALUES (1, '2024-01-01');"""
NEW = "ALTER STREAM clicks ADD COLUMN page STRING;"
MORE = "INSERT INTO clicks VALUES (2, '2024-01-01', 'new'); AWAIT QUERY ALL IDLE;"


def altered(console: Console, statement: str = NEW) -> Result:
    """The result of ALTER STREAM; its notes in their order."""
    return console.run(statement)[-1]


def test_queries_without_the_column_in_their_state_go_on(console: Console) -> None:
    console.run(
        f"""{CLICKS} CREATE STREAM later AS SELECT * FROM clicks WHERE id > 0;
        CREATE LIVE TABLE every AS SELECT * FROM clicks;
        CREATE LIVE TABLE of_view AS SELECT * FROM later;
        CREATE LIVE TABLE of_table AS SELECT * FROM every WHERE id < 9;
        CREATE LIVE TABLE counts AS SELECT ts, count(*) AS n FROM clicks GROUP BY ts;
        CREATE LIVE TABLE pairs AS SELECT a.id FROM clicks AS a JOIN clicks AS b ON a.id = b.id;
        CREATE LIVE TABLE firsts AS SELECT DISTINCT ON (id) * FROM clicks;
        AWAIT QUERY ALL IDLE;"""
    )
    result = altered(console)
    assert isinstance(result, Done)
    assert result.message == "stream clicks altered: page STRING added"
    [note] = notes_of(result)
    assert note.endswith(" go on from the checkpoint: new columns are NULL in earlier rows")
    names = {"every", "of_view", "counts", "pairs", "firsts"}
    assert set(note.partition(" go on")[0].split(", ")) == names
    console.run(MORE)
    for table in ("every", "of_view", "of_table", "firsts"):
        assert console.rows(f"SELECT id, page FROM {table} ORDER BY id;") == [(1, None), (2, "new")]
    assert console.rows("SELECT n FROM counts;") == [(2,)]
    assert console.rows("SELECT id FROM pairs ORDER BY id;") == [(1,), (2,)]
    # What is started later goes on, too, with its state.
    console.run("INSERT INTO clicks VALUES (2, '2024-01-01', 'again'); AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT page FROM firsts ORDER BY id;") == [(None,), ("new",)]
    assert console.rows("SELECT n FROM counts;") == [(3,)]
    console.run(
        "STOP QUERY ALL; START QUERY every; START QUERY counts; START QUERY pairs; AWAIT QUERY ALL IDLE;"
    )
    assert console.rows("SELECT count(*) FROM every;") == [(3,)]


LEFT = {
    "CREATE LIVE TABLE t AS SELECT DISTINCT * FROM clicks;": "keys in the state of the aggregation",
    "CREATE LIVE TABLE t AS SELECT * FROM clicks AS a JOIN clicks AS b USING (id);": "page STRING added",
    "CREATE LIVE TABLE t AS SELECT id, upper('x') AS page FROM clicks;": "the query has that name already",
    "CREATE TEMPORARY VIEW pages AS SELECT 1 AS id, 'third' AS page, 'x' AS title;"
    "CREATE LIVE TABLE t AS SELECT title FROM clicks NATURAL JOIN pages;": "which NATURAL JOIN may compare",
}  # fmt: skip


@pytest.mark.parametrize(
    "query", [*list(LEFT)[:1], *(pytest.param(q, marks=pytest.mark.slow) for q in list(LEFT)[1:])]
)
def test_a_query_that_would_do_something_else_goes_on_as_before(console: Console, query: str) -> None:
    console.run(f"{CLICKS} {query} CREATE LIVE TABLE every AS SELECT * FROM clicks; AWAIT QUERY ALL IDLE;")
    before = console.rows("SELECT * FROM t;")
    taken_up, left = notes_of(altered(console))
    assert taken_up.startswith("every goes on from the checkpoint")
    assert left.startswith("t goes on with clicks as it was before: ") and LEFT[query] in left
    staged = "a staged change computes it anew with the new columns: COMPARE LIVE TABLE t; PROMOTE t;"
    assert left.endswith(staged)
    # It goes on with its rows; no row is lost.
    console.run(MORE)
    console.run("INSERT INTO clicks VALUES (1, '2024-01-01', 'third'); AWAIT QUERY ALL IDLE;")
    assert len(console.rows("SELECT * FROM t;")) >= len(before)
    assert console.rows("SELECT count(*) FROM every;") == [(3,)]
    console.run("STOP QUERY t;")
    with pytest.raises(StreamsqlError, match="the query t has changed since its checkpoint was created"):
        console.run("START QUERY t;")
    console.run("PROMOTE t; START QUERY t; AWAIT QUERY t IDLE;")
    promoted = sorted(console.rows("SELECT * FROM t;"), key=repr)
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(console.rows("SELECT * FROM t;"), key=repr) == promoted
    assert promoted


def test_what_cannot_be_staged_says_how_it_is_computed_anew(console: Console) -> None:
    staged = "CREATE OR REPLACE LIVE TABLE t STAGED AS SELECT DISTINCT id FROM clicks;"
    console.run(f"{CLICKS} {next(iter(LEFT))} {staged} AWAIT QUERY ALL IDLE;")
    _, left = notes_of(altered(console))
    assert left.endswith("STOP QUERY t; START QUERY t FROM BEGINNING; computes it anew with the new columns")
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert {row[-1] for row in console.rows("SELECT * FROM t;")} == {None}, "the new column"


REFUSED = {
    "ALTER STREAM clicsk ADD COLUMN a INT": ("clicsk", "there is no stream clicsk"),
    "ALTER STREAM clicks ADD COLUMN id STRING": ("id", "clicks has a column id already"),
    "ALTER STREAM clicks ADD COLUMNS (a INT, A STRING)": ("A", "column A is declared twice"),
    "ALTER STREAM clicks ADD b INT, ADD COLUMN B STRING": ("B", "clicks has a column B already"),
    "ALTER STREAM clicks DROP COLUMN id": (
        "clicks",
        "ALTER STREAM has ADD COLUMN, REFRESH SCHEMA and RENAME TO only",
    ),
    "ALTER STREAM clicks ADD COLUMN a TEXT": ("TEXT", "there is no type TEXT"),
    "ALTER STREAM clicks ADD COLUMN a INT NOT NULL": ("a", "the new column a cannot be NOT NULL"),
    "ALTER STREAM timed ADD COLUMN at STRING": (
        "at",
        "at is the event time that the watermark of timed computes",
    ),
    "ALTER STREAM view ADD COLUMN a INT": ("ADD COLUMN a INT", "the columns of view are those of its query"),
    "ALTER STREAM ticks ADD COLUMN a INT": (
        "ADD COLUMN a INT",
        "the columns of ticks are fixed: timestamp TIMESTAMP, value BIGINT",
    ),
    "ALTER STREAM raw ADD COLUMN a INT": ("ADD COLUMN a INT", "the columns of raw are fixed"),
    "ALTER STREAM messages ADD COLUMN _key STRING": ("_key", "_key is a field of the message itself"),
    "ALTER STREAM clicks ADD": ("", "the statement ends too early: expected COLUMN"),
    "ALTER STREAM clicks REFRESH SCHEMA": (
        "REFRESH SCHEMA",
        "the columns of clicks are declared: there is no schema to read again",
    ),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused_at_its_place(console: Console, statement: str) -> None:
    console.run(
        f"""{CLICKS} CREATE STREAM view AS SELECT * FROM clicks; CREATE STREAM ticks USING rate;
        CREATE STREAM raw USING kafka OPTIONS (servers 'h:1', topic 't');
        CREATE STREAM messages (a INT) USING kafka FORMAT json OPTIONS (servers 'h:1', topic 't');
        CREATE STREAM timed (s STRING) USING values WITH WATERMARK to_timestamp(s) AS at DELAY '1 minute';"""
    )
    before = console.session.catalog
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"{statement};")
    place, message = REFUSED[statement]
    assert caught.value.message.startswith(message)
    span = caught.value.span
    assert span and (not place or f"{statement};"[span.start : span.end] == place)
    assert console.session.catalog is before


def test_if_not_exists_adds_what_is_missing(console: Console) -> None:
    console.run(CLICKS)
    added = """ALTER STREAM clicks ADD COLUMNS IF NOT EXISTS (id INT, a INT COMMENT 'new'),
        ADD COLUMN IF NOT EXISTS `b c` STRING;"""
    result = altered(console, added)
    assert isinstance(result, Done)
    assert result.message == "stream clicks altered: a INT added, b c STRING added"
    again = altered(console, added)
    assert isinstance(again, Done)
    assert again.message == "clicks has these columns already"
    assert (
        "(id INT, ts TIMESTAMP, a INT COMMENT 'new', `b c` STRING)"
        in console.session.catalog.streams["clicks"].sql()
    )


def test_a_query_that_has_failed_is_started_and_a_stopped_one_is_not(
    console: Console, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\n1,x\n")
    console.run(
        f"""CREATE STREAM s (a INT, b STRING) USING csv OPTIONS (path '{folder}', header 'true');
        CREATE LIVE TABLE t AS SELECT * FROM s; CREATE LIVE TABLE u AS SELECT * FROM s;
        AWAIT QUERY ALL IDLE; STOP QUERY u;"""
    )
    put_whole(folder / "2.csv", "a,b,c\n2,y,5\n")
    with pytest.raises(StreamsqlError) as caught:
        console.run("AWAIT QUERY t IDLE;")
    assert caught.value.code == "HEADER_MISMATCH"
    assert caught.value.hint.startswith(
        "ALTER STREAM name REFRESH SCHEMA takes new columns behind those of before"
    )
    headers, taken_up = notes_of(altered(console, "ALTER STREAM s ADD COLUMN c INT;"))
    assert headers == f"{folder}/1.csv has the header a, b: a query that has still to read it fails"
    assert taken_up == "t goes on from the checkpoint: new columns are NULL in earlier rows"
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY a;") == [(1, "x", None), (2, "y", 5)]
    console.run("START QUERY u; AWAIT QUERY u IDLE;")
    assert console.rows("SELECT * FROM u ORDER BY a;") == [(1, "x", None), (2, "y", 5)]


def test_a_console_that_ends_before_its_queries_are_started_goes_on(opened: Open) -> None:  # noqa: F811
    first = opened()
    first.run(
        f"""{CLICKS} CREATE LIVE TABLE every AS SELECT * FROM clicks;
        CREATE LIVE TABLE counts AS SELECT ts, count(*) AS n FROM clicks GROUP BY ts; AWAIT QUERY ALL IDLE;
        STOP QUERY every; STOP QUERY counts; {NEW}"""
    )
    again = opened()
    again.run(f"START QUERY every; START QUERY counts; {MORE}")
    assert again.rows("SELECT id, page FROM every ORDER BY id;") == [(1, None), (2, "new")]
    assert again.rows("SELECT n FROM counts;") == [(2,)]
    assert "page STRING" in again.text("SHOW CREATE STREAM clicks;")


TESTS = """
TEST 'streams that are altered' BEGIN
  CREATE STREAM files (a INT) USING json OPTIONS (path 'nowhere');
  CREATE STREAM messages (a INT) USING kafka FORMAT json OPTIONS (servers 'nowhere:9092', topic 't');
  ALTER STREAM files ADD COLUMN b STRING;
  ALTER STREAM messages ADD COLUMN b STRING;
  ALTER STREAM messages REFRESH SCHEMA;
  CREATE LIVE TABLE of_files AS SELECT a, b FROM files;
  CREATE LIVE TABLE of_messages AS SELECT a, b FROM messages;
  GIVEN files VALUES (1, 'x');
  GIVEN messages VALUES (1, 'x');
  EXPECT of_files VALUES (1, 'x');
  EXPECT of_messages VALUES (1, 'x');
END TEST;

TEST 'a column that comes later' BEGIN
  CREATE STREAM files (a INT) USING json OPTIONS (path 'nowhere');
  CREATE LIVE TABLE t AS SELECT * FROM files;
  GIVEN files VALUES (1);
  EXPECT t VALUES (1);
  ALTER STREAM files ADD COLUMN b STRING;
  GIVEN files VALUES (2, 'x');
  EXPECT t VALUES (1, NULL), (2, 'x');
END TEST;
"""


@pytest.mark.slow
def test_streams_are_altered_in_a_test(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("altered.test.sql").write_text(TESTS)
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    try:
        assert set(results_of(["altered.test.sql"], factory).values()) == {""}
    finally:
        factory.close()
