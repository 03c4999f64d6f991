"""Functions written in Python: scalar, aggregate, table functions, and the errors at CREATE."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Console
from scripts import run_process

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/runtime/", "streamsql/plan/", "streamsql/language/")

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_running_queries_that_call_a_replaced_or_dropped_function_are_named(functions: Console) -> None:
    functions.run(WORDS + SHOUT + create("letters", "words.Letters", "TABLE (letter STRING, place INT)"))
    functions.run("CREATE LIVE TABLE loud AS SELECT shout(word) AS word FROM words;")
    functions.run("CREATE LIVE TABLE spelled AS SELECT letter FROM words, LATERAL letters(word);")
    [note] = functions.run(SHOUT)[-1].notes
    assert (note.code, note.text) == (
        "OLD_DEFINITION",
        "loud still runs with the function shout as it was before: "
        "STOP QUERY loud; START QUERY loud; starts with the new one",
    )
    [note] = functions.run("DROP FUNCTION letters;")[-1].notes
    assert (note.code, note.text) == (
        "OLD_DEFINITION",
        "spelled still calls letters, and cannot be started again without it",
    )


@pytest.mark.slow
def test_functions_over_series(functions: Console) -> None:
    functions.run(WORDS)
    for name, returns in (("plus_one", "INT"), ("twice", "INT"), ("spread", "DOUBLE"), ("largest", "INT")):
        functions.run(create(name, f"series.{name}", returns))
    assert functions.rows("SELECT plus_one(x), twice(x) FROM VALUES (1), (5) AS t(x) ORDER BY x;") == [
        (2, 2),
        (6, 10),
    ]
    groups = "SELECT k, {}(x) FROM VALUES ('a', 1), ('a', 5), ('b', 2) AS t(k, x) GROUP BY k ORDER BY k;"
    assert functions.rows(groups.format("spread")) == [("a", 4.0), ("b", 0.0)]
    assert functions.rows(groups.format("largest")) == [("a", 5), ("b", 2)]
    functions.run("CREATE LIVE TABLE t AS SELECT plus_one(n) AS p, twice(n) AS d FROM words;")
    functions.run("INSERT INTO words VALUES ('a', 4); AWAIT QUERY t IDLE;")
    assert functions.rows("SELECT p, d, largest(p) OVER () FROM t;") == [(5, 8, 5)]
    kinds = {r[0]: r[1] for r in functions.rows("SHOW PYTHON FUNCTIONS;")}
    assert kinds["twice"] == "function"
    assert kinds["spread"] == "aggregate function"


@pytest.mark.slow
def test_an_aggregate_function_on_a_stream_is_refused_with_what_to_write_instead(functions: Console) -> None:
    functions.run(WORDS + create("largest", "series.largest", "INT") + create("total", "words.total", "INT"))
    statement = (
        "CREATE LIVE TABLE t OUTPUT MODE UPDATE AS SELECT word, largest(n) AS m FROM words GROUP BY word;"
    )
    with pytest.raises(
        StreamsqlError, match="largest is written in Python, which is not supported on a stream"
    ) as caught:
        functions.run(statement)
    assert caught.value.span
    assert statement[caught.value.span.start : caught.value.span.end] == "largest"
    assert "collect_list(x)" in caught.value.hint
    functions.run(
        """CREATE LIVE TABLE t AS SELECT word, total(collect_list(n)) AS n FROM words GROUP BY word;
        INSERT INTO words VALUES ('a', 4), ('a', 5); AWAIT QUERY t IDLE;"""
    )
    assert functions.rows("SELECT * FROM t;") == [("a", 9)]


def test_a_table_function_parted_by_a_key_on_a_stream_is_refused(functions: Console) -> None:
    functions.run(WORDS + create("letters", "words.Letters", "TABLE (letter STRING, place INT)"))
    with pytest.raises(
        StreamsqlError, match="cannot be called with PARTITION BY or ORDER BY on a stream"
    ) as caught:
        functions.run("CREATE LIVE TABLE t AS SELECT * FROM letters(TABLE(words) PARTITION BY word);")
    assert "handleInputRows" in caught.value.hint


def test_a_function_is_listed_described_given_back_and_dropped(functions: Console) -> None:
    functions.run(SHOUT + create("letters", "words.Letters", "TABLE (letter STRING, place INT)"))
    listed = functions.rows("SHOW PYTHON FUNCTIONS;")
    assert [r[:4] for r in listed] == [
        ("shout", "function", "words.shout", "STRING"),
        ("letters", "table function", "words.Letters", "letter STRING, place INT"),
    ]
    described = dict(functions.rows("DESCRIBE FUNCTION shout;"))
    assert (described["python"], described["folder"]) == ("words.shout", str(FOLDER))
    shown = functions.run("SHOW CREATE FUNCTION letters;")[0]
    assert shown.text == (  # type: ignore[attr-defined]
        "CREATE FUNCTION letters AS 'words.Letters' LANGUAGE PYTHON RETURNS TABLE (letter STRING, place INT);"
    )
    assert functions.rows("SELECT shout('a');") == [("A!",)]
    functions.run("DROP FUNCTION shout; DROP FUNCTION IF EXISTS shout;")
    with pytest.raises(StreamsqlError, match="there is no function shout"):
        functions.run("SELECT shout('a');")


@pytest.mark.slow
def test_in_an_insert_into_a_table_of_spark(functions: Console) -> None:
    functions.run(SHOUT + create("counter", "counting.Counter", "TABLE (word STRING, n BIGINT)"))
    functions.run("CREATE TEMPORARY VIEW v AS SELECT * FROM VALUES ('a'), ('b'), ('a') AS t(word);")
    functions.run("CREATE TABLE loud (word STRING, n BIGINT) USING parquet;")
    functions.run("INSERT INTO loud SELECT shout(word), n FROM counter(TABLE(v) PARTITION BY word);")
    assert functions.rows("SELECT * FROM loud ORDER BY n;") == [("B!", 1), ("A!", 2)]


def test_sparks_own_functions_stay_sparks(functions: Console) -> None:
    functions.run("CREATE TEMPORARY FUNCTION plus(x INT) RETURNS INT RETURN x + 1;")
    assert functions.rows("SELECT plus(1);") == [(2,)]
    assert "plus" in functions.run("DESCRIBE FUNCTION plus;")[-1].text
    functions.run("DROP TEMPORARY FUNCTION plus;")
    with pytest.raises(StreamsqlError, match="(?i)class"):
        functions.run("CREATE TEMPORARY FUNCTION j AS 'no.such.Class'; SELECT j(1);")
    assert "upper" in functions.run("DESCRIBE FUNCTION upper;")[-1].text


def test_a_changed_module_counts_once_it_is_created_again(console: Console, tmp_path: Path) -> None:
    console.session.variables["here"] = str(tmp_path)
    (tmp_path / "fresh.py").write_text("def f(x):\n    return x + 1\n")
    assert console.rows(create("f", "fresh.f", "INT") + "SELECT f(1);") == [(2,)]
    (tmp_path / "fresh.py").write_text("def f(x):\n    return x + 2\n")
    assert console.rows("SELECT f(1);") == [(2,)]
    assert console.rows(create("f", "fresh.f", "INT") + "SELECT f(1);") == [(3,)]


def test_two_modules_of_one_name_are_told_apart(console: Console, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(f"def f():\n    return '{folder}'\n")
    console.session.variables["here"] = str(tmp_path / "one")
    assert console.rows(create("f", "same.f", "STRING") + "SELECT f();") == [("one",)]
    console.session.variables["here"] = str(tmp_path / "two")
    with pytest.raises(StreamsqlError, match="f uses another module same, of .*one") as caught:
        console.run(create("g", "same.f", "STRING"))
    assert "DROP FUNCTION f;" in caught.value.hint
    assert console.rows(create("f", "same.f", "STRING") + "SELECT f();") == [("two",)]


def test_a_function_that_fails_says_what_it_raised(functions: Console) -> None:
    functions.run(WORDS + create("bad", "words.bad", "INT"))
    with pytest.raises(StreamsqlError, match="^a Python function failed: ZeroDivisionError: ") as caught:
        functions.run("SELECT bad(0);")
    assert "words.py, line" in caught.value.detail
    functions.run("CREATE LIVE TABLE t AS SELECT bad(n) AS b FROM words; INSERT INTO words VALUES ('a', 0);")
    with pytest.raises(StreamsqlError, match="^query t failed: ZeroDivisionError: "):
        functions.run("AWAIT QUERY t IDLE;")


MODULES = {
    "syntax.py": "def f(:\n",
    "raises.py": "x = 1\ny = x / 0\n",
    "needs.py": "import no_such_package_at_all\ndef f(): pass\n",
    "needs_pandas.py": "import pandas.no_such_part\n",
    "from_missing.py": "from math import no_such_thing\n",
    "json.py": "def f(x): return x\n",
    "plain.py": """
LIMIT = 3
def f(x): return x
class NoMethods: pass
class Half:
    def handleInputRows(self, key, rows, timerValues): pass
from pyspark.sql.streaming import StatefulProcessor
class Abstract(StatefulProcessor):
    def init(self, handle): pass
class Wants(Abstract):
    def __init__(self, size): pass
    def handleInputRows(self, key, rows, timerValues): pass
from pyspark.sql.functions import udf
@udf('int')
def made(x): return x
""",
}


@pytest.mark.parametrize(
    ("target", "returns", "message", "hint"),
    [
        ("palin.f", "INT", "there is no Python module palin", "did you mean plain?"),
        ("plain.g", "INT", "the module plain has no g", "it has f, "),
        ("plain.ff", "INT", "the module plain has no ff", "did you mean f?"),
        ("plain.LIMIT", "INT", "plain.LIMIT is neither a function nor a class", ""),
        ("plain.NoMethods", "INT", "plain.NoMethods is a class", "RETURNS TABLE"),
        ("plain.f", "TABLE (a INT)", "plain.f is not a class", "RETURNS a type"),
        ("plain.NoMethods", "TABLE (a INT)", "the class plain.NoMethods has neither eval nor", "eval(self"),
        ("plain.Half", "TABLE (a INT)", "plain.Half is not a StatefulProcessor", "import StatefulProcessor"),
        ("plain.Abstract", "TABLE (a INT)", "the class plain.Abstract has no method handleInputRows", ""),
        ("plain.Wants", "TABLE (a INT)", "the class plain.Wants needs size", ""),
        ("plain.made", "INT", "plain.made is a user-defined function already", "decorator"),
        ("syntax.f", "INT", "the module syntax is not Python: ", ""),
        ("raises.f", "INT", "the module raises fails while it is imported: ZeroDivisionError", ""),
        (
            "needs.f",
            "INT",
            "the module needs needs the package no_such_package_at_all",
            "pip install no_such",
        ),
        ("from_missing.f", "INT", "the module from_missing cannot be imported: ", ""),
        ("json.f", "INT", "the module json cannot be imported: there is another module json: ", ""),
        ("f", "INT", "'f' is not a Python function", "write 'module.function'"),
        ("my module.f", "INT", "'my module.f' is not a Python function", "write 'module.function'"),
    ],
)
def test_what_is_missing_is_said_at_create(
    console: Console, tmp_path: Path, target: str, returns: str, message: str, hint: str
) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    console.session.variables["here"] = str(tmp_path)
    statement = create("f", target, returns)
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement)
    error = caught.value
    assert error.message.startswith(message), error.message
    assert hint in error.hint
    assert error.span
    assert statement[error.span.start : error.span.end] == f"'{target}'"


@pytest.mark.parametrize(
    ("statement", "at", "message"),
    [
        (
            "CREATE FUNCTION upper AS 'words.shout' LANGUAGE PYTHON RETURNS STRING",
            "upper",
            "is a function of Spark",
        ),
        (
            "CREATE FUNCTION shout AS 'words.shout' LANGUAGE PYTHON RETURNS STRING",
            "shout",
            "there is already a function",
        ),
        (
            "CREATE FUNCTION f AS 'words.shout' LANGUAGE PYTHON RETURNS STRNG",
            "STRNG",
            "there is no type STRNG",
        ),
        ("CREATE FUNCTION f AS 'words.shout' LANGUAGE PYTHON RETURN INT", "RETURN", "expected RETURNS"),
        ("SHOW CREATE FUNCTION shot", "shot", "there is no function shot"),
    ],
)
def test_statements_that_cannot_be(functions: Console, statement: str, at: str, message: str) -> None:
    functions.run(SHOUT)
    with pytest.raises(StreamsqlError) as caught:
        functions.run(statement + ";")
    error = caught.value
    assert message in error.message
    assert error.span
    assert statement[error.span.start : error.span.end] == at


def test_a_missing_package_of_the_console_is_named(
    functions: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    statement = create("counter", "counting.Counter", "TABLE (word STRING, n BIGINT)")
    with pytest.raises(StreamsqlError, match="needs the package protobuf") as caught:
        functions.run(statement)
    assert caught.value.hint == "pip install 'protobuf>=6.33.5,<7'"


@pytest.mark.usefixtures("processes")
def test_a_whole_script_is_checked_without_the_modules(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE FUNCTION counter AS 'not_there.Counter' LANGUAGE PYTHON RETURNS TABLE (word STRING, n BIGINT);
        CREATE FUNCTION shout AS 'not_there.shout' LANGUAGE PYTHON RETURNS STRING;
        CREATE LIVE TABLE t AS SELECT shout(word), n FROM counter(TABLE(words) PARTITION BY word);
        DROP FUNCTION shout;"""
    )
    outcome = run_process("--check", str(script))
    assert (outcome.code, outcome.err) == (0, "5 statements checked\n")


@pytest.mark.slow
def test_the_list_of_functions_tells_what_they_take_and_do(functions: Console) -> None:
    functions.run(SHOUT + "SELECT shout('a');")
    rows = functions.rows("SHOW FUNCTIONS;")
    names = [name for name, *_ in rows]
    assert names[0] == "abs" and names.index("xxhash64") < names.index("!=")  # operators stand last
    told = {name: tuple(more) for name, *more in rows}
    assert told["abs"] == ("(expr)", "Returns the absolute value of the numeric or interval value")
    assert told["shout"] == ("(…)", "function, written in Python")
    assert [name for name, *_ in functions.rows("SHOW FUNCTIONS LIKE 'array_a*';")] == [
        "array_agg", "array_append",
    ]  # fmt: skip
