"""EXPLAIN PYSPARK: programs that run by themselves and give the rows that the statement gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, cases_of

from streamsql.results import Rows, Text

ROOMS = ("streamsql/plan/", "streamsql/calls.py")

SETUP = """
CREATE STREAM v (word STRING, n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY '10 minutes';
INSERT INTO v VALUES ('a', 1, '2024-01-01 10:00:00'), ('b', 2, '2024-01-01 10:05:00'), ('a', 3, '2024-01-01 10:20:00');
CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'Anna'), ('b', 'Bert') AS t(word, name);
CREATE LIVE TABLE counts AS SELECT word, count(*) AS c FROM v GROUP BY word;
AWAIT QUERY counts IDLE;
"""
QUERIES = [
    "SELECT word, sum(n) AS s FROM v GROUP BY word",
    "SELECT window.start AS s, word, count(*) AS c FROM v GROUP BY window(at, '10 minutes'), word",
    "SELECT v.word, x.name FROM v LEFT JOIN names x ON v.word = x.word WHERE v.n > 1",
    "SELECT DISTINCT ON (word) word FROM v",
    "FROM v |> WHERE n = 3 |> SELECT word",
    "SELECT c.word, c.c FROM counts c WHERE c.c > 1",
    "SELECT sum(n) AS s FROM v GROUP BY word HAVING count(*) > 1",
    "SELECT word, count FROM STATE OF QUERY counts AT BATCH 0",
    "WITH big AS (SELECT * FROM v WHERE n > 1) SELECT max(n) AS m FROM big",
    "SELECT 'it''s', \"dq\", 'a\\\\b', '\u00e9' AS x",
]


def program(console: Console, statement: str) -> str:
    result = console.run(f"EXPLAIN PYSPARK {statement};")[0]
    assert isinstance(result, Text)
    return result.text


def then(text: str, line: str) -> str:
    """A program with helpers that runs one more line at the end of its main()."""
    main, returns, rest = text.partition("\n    return ")
    assert returns
    return f"{main}\n    {line}{returns}{rest}"


def run_program(text: str, **known: Any) -> str:
    """What a program shows, run in this process: its getOrCreate() finds the session that is there."""
    return pasted(text, known)


def pasted(text: str, known: dict[str, Any]) -> str:
    """What a program shows that is pasted into a Python with these names, which then has its names, too."""
    import contextlib
    import io

    from pyspark.sql import SparkSession

    from streamsql.plan.lowering.stateful_calls import STATE_PROVIDER

    spark = SparkSession.active()
    before = spark.conf.get(STATE_PROVIDER)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "program.py", "exec"), known)
    spark.conf.set(STATE_PROVIDER, before)
    return out.getvalue()


def table(shown: str) -> list[list[str]]:
    """The cells of the last table that DataFrame.show printed."""
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("query", cases_of({query: query for query in QUERIES}, 3))
def test_a_program_gives_the_rows_of_its_statement(console: Console, query: str) -> None:
    console.run(SETUP)
    direct = console.run(f"{query};")[0]
    assert isinstance(direct, Rows)
    text = program(console, query)
    console.run("STOP QUERY ALL;")  # a name is one query's at a time, in a program too
    shown = table(pasted(text, names := {}))
    assert shown[0] == list(direct.columns)
    assert sorted(shown[1:]) == sorted([[str(v) for v in row] for row in direct.rows])
    assert sorted(map(tuple, names["result"].collect())) == sorted(map(tuple, direct.rows))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("INSERT INTO out TRIGGER AVAILABLE NOW SELECT word FROM v", "query = main()\nquery.awaitTermination()\n"),
        ("INSERT INTO out TRIGGER AVAILABLE NOW ON LATE INTO late SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM v", "query = main()\n"),
        ("INSERT INTO out SELECT word FROM counts", "refreshing = main()\n"),
        ("CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS SELECT n FROM v", "query, t_rows = main()\nquery.awaitTermination()\n"),
        ("CREATE LIVE TABLE t AS SELECT sum(c) AS n FROM counts", "result = main()\n"),
    ],
)  # fmt: skip
def test_a_pasted_program_leaves_what_there_is_to_see(console: Console, statement: str, left: str) -> None:
    console.run(SETUP + "CREATE SINK out USING noop; CREATE SINK late USING noop;")
    text = program(console, statement).replace(".start()", ".trigger(availableNow=True).start()")
    console.run("STOP QUERY ALL;")
    assert text.endswith(f"\n\n\n{left}")
    pasted(text, names := {})
    if "query" in names:
        assert not names["query"].isActive and names["query"].lastProgress is not None
    if "t_rows" in names:
        session = console.session.spark
        assert sorted(row.n for row in names["t_rows"].frame(session).collect()) == [1, 2, 3]
    if "result" in names:
        assert [row.n for row in names["result"].collect()] == [3]


def test_a_program_begins_with_what_was_asked_for(console: Console) -> None:
    console.run("CREATE STREAM s (k STRING) USING values;")
    text = program(console, "SELECT k, 'two\n  lines' AS x, count(*) AS c FROM s GROUP BY k")
    before, _, after = text.partition("\n\ndef main():\n")
    assert all(line.startswith(("import ", "from ")) for line in before.splitlines())
    main, _, helpers = after.partition("\n\n# The helpers of main()\n")
    assert "    s = (\n        spark.readStream" in main and '"""\'two\n  lines\'' in main
    assert "class LiveRows:" in helpers and helpers.endswith("\nresult = main()\n")
    static = program(console, "SELECT 1 AS a")
    assert "main" not in static and static.startswith("from pyspark")


def test_the_program_of_from_now_passes_over_what_is_there(console: Console, tmp_path: Path) -> None:
    console.run(SETUP + "CREATE SINK shown USING console;")
    text = program(console, "INSERT INTO shown FROM NOW TRIGGER AVAILABLE NOW SELECT word FROM v")
    # What comes between passing over and the start is all that is written.
    first, ended, after = text.partition("    query.awaitTermination()\n\n")
    again = f"{first}{ended}    more()\n{after}"
    more = "INSERT INTO v VALUES ('new', 9, '2024-01-01 10:30:00');"
    shown = run_program(again, more=lambda: console.run(more))
    assert [row for row in table(shown) if row != ["word"]] == [["new"]]


def test_the_program_of_an_insert_writes_what_the_insert_writes(console: Console, tmp_path: Path) -> None:
    console.run(SETUP + f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');")
    text = program(console, "INSERT INTO out TRIGGER AVAILABLE NOW SELECT word, n FROM v WHERE n < 3")
    assert ".trigger(availableNow=True)" in text
    run_program(text)
    assert sorted(console.rows(f"SELECT word, n FROM json.`{tmp_path}/out`;")) == [("a", 1), ("b", 2)]


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("java") or os.environ.get("JAVA_HOME")),
    reason="PySpark's own launcher needs a full Java on this machine; the console does not",
)
@pytest.mark.usefixtures("processes")
def test_a_program_runs_in_plain_python(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": "x"}\n{"k": "y"}\n{"k": "x"}\n')
    console.run(f"CREATE STREAM s (k STRING) USING json OPTIONS (path '{tmp_path}/in');")
    text = program(console, "SELECT k, count(*) AS c FROM s GROUP BY k")
    assert "streamsql" not in "\n".join(line for line in text.splitlines() if "import" in line)
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(table(done.stdout)[1:]) == [["x", "2"], ["y", "1"]]


def test_other_explains_show_sparks_plan(console: Console) -> None:
    console.run(SETUP)
    for mode in ("", "LOGICAL", "EXTENDED", "FORMATTED"):
        shown = console.run(f"EXPLAIN {mode} SELECT word FROM v WHERE n > 1;")[0]
        assert isinstance(shown, Text)
        assert "word" in shown.text
    assert "counts_rows" in program(console, "QUERY counts")


def test_secrets_are_hidden_in_programs(console: Console) -> None:
    from streamsql.definitions import Stream

    console.session.parts.define(Stream("s", "rate", options=(("my.password", "hush"),)))
    assert "hush" not in program(console, "SELECT * FROM s")


def test_a_program_is_python_whatever_the_names(console: Console, tmp_path: Any) -> None:
    console.run(
        "CREATE STREAM `class` (`for` INT) USING values; CREATE STREAM `result` (n INT) USING values;"
    )
    text = program(console, "SELECT a.`for`, b.n FROM `class` a JOIN `result` b ON a.`for` = b.n")
    compile(text, "program.py", "exec")
    run_program(text)


PYTHON = """
CREATE FUNCTION shout AS 'words.shout' LANGUAGE PYTHON RETURNS STRING;
CREATE FUNCTION area AS 'words.area' LANGUAGE PYTHON RETURNS INT;
CREATE FUNCTION letters AS 'words.Letters' LANGUAGE PYTHON RETURNS TABLE (letter STRING, place INT);
CREATE FUNCTION counter AS 'counting.Counter' LANGUAGE PYTHON RETURNS TABLE (word STRING, n BIGINT);
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT shout(word) AS w, area(n, 2) AS a FROM v",
        "SELECT w.word, l.letter FROM names w, LATERAL letters(w.word) l",
        "SELECT shout(word) AS w, n FROM counter(TABLE(v) PARTITION BY word) WHERE n > 1",
    ],
)
def test_a_program_brings_its_python_functions(
    console: Console, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The program runs in this process, and what it imports is gone with the test.
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name in ("words", "shapes", "counting"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    console.session.variables["here"] = str(Path(__file__).parent / "python_functions")
    console.run(SETUP + PYTHON)
    direct = console.run(f"{query};")[0]
    assert isinstance(direct, Rows)
    text = program(console, query)
    console.run("STOP QUERY ALL;")
    shown = table(run_program(text))
    assert shown[0] == list(direct.columns)
    assert sorted(shown[1:]) == sorted([[str(v) for v in row] for row in direct.rows])
    assert "_module = load_module('" in text
