"""Functions written in Python: scalar, aggregate, table functions, and the errors at CREATE."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Console

FOLDER = Path(__file__).parent / "python_functions"
WORDS = "CREATE STREAM words (word STRING, n INT) USING values;"


@pytest.fixture
def functions(console: Console) -> Console:
    """A console whose script lies beside the modules of the tests."""
    console.session.variables["here"] = str(FOLDER)
    return console


def create(name: str, target: str, returns: str) -> str:
    return f"CREATE OR REPLACE FUNCTION {name} AS '{target}' LANGUAGE PYTHON RETURNS {returns};"


SHOUT = create("shout", "words.shout", "STRING")


def test_a_scalar_function_in_static_and_streaming_queries(functions: Console) -> None:
    functions.run(WORDS + SHOUT)
    assert functions.rows("SELECT shout('a') AS s;") == [("A!",)]
    functions.run(
        "CREATE LIVE TABLE loud AS SELECT shout(word) AS word, count(*) AS n FROM words GROUP BY shout(word);"
    )
    functions.run("INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 2); AWAIT QUERY loud IDLE;")
    assert functions.rows("SELECT * FROM loud ORDER BY word;") == [("A!", 2), ("B!", 1)]
    assert functions.rows("SELECT n FROM loud WHERE shout(lower(word)) = 'A!!';") == [(2,)]


def test_a_function_in_views_sub_queries_and_text_for_spark(functions: Console) -> None:
    functions.run(WORDS + SHOUT)
    functions.run("CREATE TEMPORARY VIEW v AS SELECT shout(x) AS s FROM VALUES ('a'), ('b') AS t(x);")
    assert functions.rows("SELECT * FROM v ORDER BY s;") == [("A!",), ("B!",)]
    assert functions.rows("SELECT 1 AS one WHERE 'A!' IN (SELECT shout('a'));") == [(1,)]
    assert functions.rows("SELECT shout(x) AS s FROM VALUES ('a') AS t(x);") == [("A!",)]


def test_a_module_brings_the_others_of_its_folder(functions: Console) -> None:
    assert functions.rows(create("area", "words.area", "INT") + "SELECT area(3, 4) AS a;") == [(12,)]


def test_a_table_function_on_tables_and_streams(functions: Console) -> None:
    functions.run(WORDS + create("letters", "words.Letters", "TABLE (letter STRING, place INT)"))
    assert functions.rows("SELECT * FROM letters('ab');") == [("a", 1), ("b", 2)]
    functions.run(
        """CREATE LIVE TABLE spelled AS
        SELECT w.word, l.letter FROM words w, LATERAL letters(w.word) l WHERE l.place > 1;
        INSERT INTO words VALUES ('abc', 1), ('d', 1); AWAIT QUERY spelled IDLE;"""
    )
    assert functions.rows("SELECT * FROM spelled ORDER BY letter;") == [("abc", "b"), ("abc", "c")]
