"""Stateful processors written in Python, called over a stream step by step."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Console

from streamsql.errors import StreamsqlError

FOLDER = Path(__file__).parent / "python_functions"
WORDS = "CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY '0 seconds';"


@pytest.fixture
def functions(console: Console) -> Console:
    """A console whose script lies beside the modules of the tests."""
    console.session.variables["here"] = str(FOLDER)
    return console


def create(name: str, target: str, columns: str = "word STRING, n BIGINT") -> str:
    return f"CREATE FUNCTION {name} AS 'counting.{target}' LANGUAGE PYTHON RETURNS TABLE ({columns});"


COUNTER = create("counter", "Counter")


def insert(console: Console, query: str, *words: str) -> None:
    """One micro-batch of words, each `word` or `word minutes`, and wait for the query."""
    rows = [w.split() for w in words]
    values = ", ".join(
        f"('{r[0]}', timestamp'2024-01-01 00:{r[1] if len(r) > 1 else '00'}:00')" for r in rows
    )
    console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY {query} IDLE;")


def test_value_state_is_kept_from_batch_to_batch(functions: Console) -> None:
    started = functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )[-1]
    assert "RocksDB" in started.notes[-1]
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]
    assert "HDFSBacked" in functions.session.spark.conf.get("spark.sql.streaming.stateStore.providerClass")


def test_in_output_mode_update_a_live_table_keeps_the_newest_row_of_a_key(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS
        SELECT n, word AS w FROM counter(TABLE(words) PARTITION BY word, output_mode => 'update');"""
    )
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY w;") == [(3, "a"), (1, "b")]


def test_a_stopped_query_goes_on_with_its_state(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {COUNTER}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a", "b", "a")
    functions.run("STOP QUERY t; INSERT INTO words VALUES ('a', NULL); START QUERY t; AWAIT QUERY t IDLE;")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]


def test_pandas_frames(functions: Console) -> None:
    functions.run(
        f"""{WORDS} {create("counter", "PandasCounter")}
        CREATE LIVE TABLE t AS SELECT * FROM counter(TABLE(words) PARTITION BY word);"""
    )
    insert(functions, "t", "a", "b", "a")
    insert(functions, "t", "a")
    assert functions.rows("SELECT * FROM t ORDER BY word, n;") == [("a", 2), ("a", 3), ("b", 1)]


def test_over_a_table_and_a_query(functions: Console) -> None:
    functions.run(COUNTER + "CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES ('a'), ('b'), ('a') AS t(word);")
    assert functions.rows("SELECT * FROM counter(TABLE(v) PARTITION BY word) ORDER BY word;") == [
        ("a", 2),
        ("b", 1),
    ]
    query = (
        "SELECT c.n FROM counter(TABLE(SELECT upper(word) AS u FROM v) PARTITION BY u) c WHERE c.word = 'A';"
    )
    assert functions.rows(query) == [(2,)]
