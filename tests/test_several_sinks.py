"""One query with several sinks: INSERT INTO a, b and EXECUTE STATEMENT SET; the source is read once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from test_explain import program, run_program
from test_queries import status

from streamsql.errors import QueryFault, StreamsqlError
from streamsql.output.error_text import format_error
from streamsql.results import Rows, Started, Text

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

STREAM = "CREATE STREAM s (word STRING, n INT, at TIMESTAMP) USING values;\n"
ROWS = (
    "INSERT INTO s VALUES ('a', 1, '2024-01-01 10:00:00'), ('b', 2, '2024-01-01 10:01:00'), ('c', 3, NULL);\n"
)
MORE = "INSERT INTO s VALUES ('d', 4, '2024-01-01 10:00:00');\n"
TABLES = "CREATE SINK big USING memory; CREATE SINK words USING memory;\n"
SET = """EXECUTE STATEMENT SET BEGIN
  INSERT INTO big SELECT n * 10 AS n FROM s WHERE n > 1;
  INSERT INTO words SELECT upper(word) AS w FROM s;
END;
"""


def files(console: Console, folder: Path) -> list[tuple[Any, ...]]:
    return sorted(console.rows(f"SELECT * EXCEPT (batch) FROM json.`{folder}`;"))


def read_once(console: Console, name: str, rows: int) -> None:
    """What SHOW QUERIES and SHOW PROGRESS count is what the source gave, once."""
    assert status(console, name)["rows in"] == rows
    shown = console.run(f"SHOW PROGRESS {name};")[0]
    assert isinstance(shown, Rows)
    assert sum(r[2] for r in shown.rows) == rows


def test_one_result_goes_into_several_sinks_and_its_source_is_read_once(
    console: Console, tmp_path: Path
) -> None:
    started = console.run(
        STREAM + f"CREATE SINK j USING json OPTIONS (path '{tmp_path}/j'); CREATE SINK m USING memory;"
        f"CREATE SINK p (number BIGINT) USING parquet OPTIONS (path '{tmp_path}/p');"
        "INSERT INTO j, m, p SELECT n FROM s WHERE n > 1;"
    )[-1]
    assert isinstance(started, Started)
    assert (started.queries[0], started.durable) == ("j_m_p", True)
    console.run(ROWS + "AWAIT QUERY j_m_p IDLE;" + MORE + "AWAIT QUERY j_m_p IDLE;")
    assert files(console, tmp_path / "j") == [(2,), (3,), (4,)]
    assert console.rows("SELECT * FROM m;") == [(2,), (3,), (4,)]
    assert console.rows(f"SELECT number FROM parquet.`{tmp_path}/p` ORDER BY 1;") == [(2,), (3,), (4,)]
    read_once(console, "j_m_p", 4)
    assert status(console, "j_m_p")["sink"] == "j, m, p"


def test_groups_go_into_several_sinks(console: Console, tmp_path: Path) -> None:
    console.run(
        "CREATE STREAM t (word STRING) USING values; CREATE SINK m USING memory; CREATE SINK c USING console;"
        "CREATE SINK m2 USING memory;"
        "INSERT INTO m, m2, c AS QUERY q SELECT word, count(*) AS c FROM t GROUP BY word;"
        "INSERT INTO t VALUES ('a'), ('b'); AWAIT QUERY q IDLE; INSERT INTO t VALUES ('a'); AWAIT QUERY q IDLE;"
    )
    for table in ("m", "m2"):
        assert sorted(console.rows(f"SELECT * FROM {table};")) == [("a", 2), ("b", 1)]
    read_once(console, "q", 3)
    with pytest.raises(StreamsqlError, match="the sink j does not support output mode update"):
        console.run(
            f"CREATE SINK j USING json OPTIONS (path '{tmp_path}/j'); CREATE SINK m3 USING memory;"
            "INSERT INTO j, m3 OUTPUT MODE UPDATE SELECT word, count(*) AS c FROM t GROUP BY word;"
        )


def test_a_statement_set_is_one_query_that_reads_its_stream_once(console: Console) -> None:
    started = console.run(STREAM + TABLES + SET)[-1]
    assert isinstance(started, Started)
    assert started.queries[0] == "big_words"
    console.run(ROWS + "AWAIT QUERY big_words IDLE;" + MORE + "AWAIT QUERY big_words IDLE;")
    assert console.rows("SELECT * FROM big;") == [(20,), (30,), (40,)]
    assert console.rows("SELECT * FROM words;") == [("A",), ("B",), ("C",), ("D",)]
    read_once(console, "big_words", 4)
    assert len(console.rows("SHOW QUERIES;")) == 1


def test_a_set_stops_starts_drops_and_shows_as_one_query(console: Console) -> None:
    console.run(
        STREAM + TABLES + SET.replace("SET BEGIN", "SET AS QUERY q TRIGGER EVERY '100 milliseconds' BEGIN")
    )
    console.run(ROWS + "AWAIT QUERY q IDLE; STOP QUERY q;" + MORE)
    assert len(console.rows("SELECT * FROM words;")) == 3
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert console.rows("SELECT * FROM words;") == [("A",), ("B",), ("C",), ("D",)]
    described = dict(console.rows("DESCRIBE QUERY q;"))
    assert described["sink"] == "big, words"
    assert described["statement"] == (
        "EXECUTE STATEMENT SET\n  AS QUERY q\n  TRIGGER EVERY '100 milliseconds'\nBEGIN\n"
        "  INSERT INTO big SELECT n * 10 AS n FROM s WHERE n > 1;\n"
        "  INSERT INTO words SELECT upper(word) AS w FROM s;\nEND;"
    )
    with pytest.raises(StreamsqlError, match="the query q writes to big, words") as caught:
        console.run("DROP LIVE TABLE big;")
    assert caught.value.hint == "DROP QUERY q;"
    console.run("DROP QUERY q;")
    again = console.run(described["statement"])[0]
    assert isinstance(again, Started)
    console.run("AWAIT QUERY q IDLE;")
    assert len(console.rows("SELECT * FROM words;")) == 4


@pytest.mark.slow
def test_a_micro_batch_that_comes_again_is_in_the_files_once(console: Console, tmp_path: Path) -> None:
    """One sink has written when the other one fails: after the restart the batch comes again."""
    (tmp_path / "sinks.py").write_text(
        f"import pathlib\ndef f(batch, batch_id):\n"
        f"    if pathlib.Path('{tmp_path}/fail').exists():\n        raise OSError('no network')\n"
    )
    console.session.variables["here"] = str(tmp_path)
    console.run(
        STREAM + f"CREATE SINK j USING json PARTITIONED BY (word) OPTIONS (path '{tmp_path}/j');"
        "CREATE SINK m USING memory; CREATE SINK f USING foreach_batch OPTIONS (function 'sinks.f');"
        "INSERT INTO j, m, f AS QUERY q SELECT n, word FROM s;" + ROWS + "AWAIT QUERY q IDLE;"
    )
    (tmp_path / "fail").touch()
    console.run(MORE)
    with pytest.raises(QueryFault, match="query q failed: OSError: no network"):
        console.run("AWAIT QUERY q;")
    everything = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert files(console, tmp_path / "j") == everything  # written before the failure
    (tmp_path / "fail").unlink()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert files(console, tmp_path / "j") == everything
    assert sorted(console.rows("SELECT * FROM m;")) == everything
    # A new query begins with batch 0 again and leaves alone what the first one wrote.
    console.run("STOP QUERY q; DROP QUERY q; INSERT INTO j, m, f AS QUERY q SELECT n, word FROM s;")
    console.run("AWAIT QUERY q IDLE;")
    assert files(console, tmp_path / "j") == sorted(everything * 2)


def test_a_set_over_a_derived_stream_with_tables_and_files(console: Console, tmp_path: Path) -> None:
    console.run(
        STREAM
        + "CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'Anna'), ('b', 'Bert') AS t(word, name);"
        "CREATE STREAM known AS SELECT s.word, n, name FROM s JOIN names ON s.word = names.word;"
        f"CREATE SINK j (who STRING, n BIGINT) USING json OPTIONS (path '{tmp_path}/j');"
        "CREATE SINK m USING memory; CREATE SINK all_words USING memory;"
        """EXECUTE STATEMENT SET AS QUERY q BEGIN
          INSERT INTO j SELECT name, n FROM known WHERE n < 10;
          INSERT INTO m WITH x AS (SELECT * FROM known) SELECT explode(array(x.n, -x.n)) AS n FROM x;
          INSERT INTO all_words SELECT s.word, names.name FROM s LEFT JOIN names ON s.word = names.word;
        END;""" + ROWS + "AWAIT QUERY q IDLE;"
    )
    assert sorted(console.rows(f"SELECT who, n FROM json.`{tmp_path}/j`;")) == [("Anna", 1), ("Bert", 2)]
    assert sorted(console.rows("SELECT * FROM m;")) == [(-2,), (-1,), (1,), (2,)]
    assert sorted(console.rows("SELECT * FROM all_words;")) == [("a", "Anna"), ("b", "Bert"), ("c", None)]
    read_once(console, "q", 3)


def test_a_set_over_a_stream_that_groups(console: Console) -> None:
    """What remembers rows is done once, in the stream that all INSERTs read."""
    console.run(
        STREAM + "CREATE STREAM counts AS SELECT word, count(*) AS c FROM s GROUP BY word;"
        "CREATE SINK low USING memory KEY (word); CREATE SINK high USING memory KEY (word);"
        """EXECUTE STATEMENT SET AS QUERY q BEGIN
          INSERT INTO low SELECT word, c FROM counts WHERE c = 1;
          INSERT INTO high SELECT word, c FROM counts WHERE c > 1;
        END;""" + ROWS + "AWAIT QUERY q IDLE; INSERT INTO s VALUES ('a', 1, NULL); AWAIT QUERY q IDLE;"
    )
    assert sorted(console.rows("SELECT * FROM high;")) == [("a", 2)]
    assert ("b", 1) in console.rows("SELECT * FROM low;")
    read_once(console, "q", 4)


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (
            "INSERT INTO words SELECT word, count(*) AS c FROM s GROUP BY word;",
            "an aggregation is not supported in a statement set",
        ),
        ("INSERT INTO words SELECT DISTINCT word FROM s;", " is not supported in a statement set"),
        ("INSERT INTO words SELECT DISTINCT ON (word) word FROM s;", "DISTINCT ON is not supported in"),
        ("INSERT INTO words SELECT word FROM s LIMIT 3;", "LIMIT is not supported in a statement set"),
        (
            "INSERT INTO words SELECT a.word FROM s a JOIN s b ON a.word = b.word;",
            "a join of two streams is not supported in a statement set",
        ),
        (
            "INSERT INTO words SELECT word FROM s WHERE word IN (SELECT word FROM s);",
            "IN (SELECT …) over a stream is not supported",
        ),
        ("INSERT INTO words FROM s |> SELECT word;", "this SELECT is not supported in a statement set"),
        ("INSERT INTO words SELECT word FROM other;", "and this one does not read s"),
        (
            "INSERT INTO words SELECT word FROM s UNION ALL SELECT word FROM other;",
            "this INSERT of the set reads other as well as s",
        ),
        ("INSERT INTO words SELECT 1 AS one;", "this INSERT of the set reads no stream"),
        ("INSERT INTO words SELECT wrod FROM s;", "there is no column wrod"),
        ("INSERT INTO big SELECT word FROM s;", "the sink big is named twice in the set"),
        ("INSERT INTO nowhere SELECT word FROM s;", "there is no sink nowhere"),
        ("INSERT INTO words AS QUERY x SELECT word FROM s;", "or a query, found AS"),
        ("INSERT INTO rows SELECT word FROM s;", "a foreach sink cannot be one of several"),
        ("INSERT INTO words SELECT word FROM s", "expected ';'"),
    ],
)
def test_what_a_set_cannot_hold_is_said_before_it_starts(
    console: Console, tmp_path: Path, second: str, says: str
) -> None:
    (tmp_path / "rows.py").write_text("def f(row): pass\n")
    console.session.variables["here"] = str(tmp_path)
    console.run(
        STREAM + TABLES + "CREATE STREAM other (word STRING) USING values;"
        "CREATE SINK rows USING foreach OPTIONS (function 'rows.f');"
    )
    first = "EXECUTE STATEMENT SET BEGIN INSERT INTO big SELECT n FROM s;\n"
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"{first}{second}\nEND;")
    shown = format_error(caught.value)
    assert says in shown
    assert shown.startswith(("test.sql:2:", "test.sql:3:"))
    assert console.rows("SHOW QUERIES;") == []


def test_the_program_of_a_set_runs_by_itself(console: Console, tmp_path: Path) -> None:
    console.run(
        STREAM + ROWS + f"CREATE SINK j USING json OPTIONS (path '{tmp_path}/j');"
        f"CREATE SINK k (w STRING) USING json OPTIONS (path '{tmp_path}/k');"
        "CREATE TEMPORARY VIEW names AS SELECT 'a' AS word, 'Anna' AS name;"
    )
    text = program(
        console,
        "EXECUTE STATEMENT SET AS QUERY q TRIGGER AVAILABLE NOW BEGIN INSERT INTO j SELECT n,\n 'x\n y' AS t"
        " FROM s WHERE n > 1; INSERT INTO k SELECT name FROM s JOIN names ON s.word = names.word; END",
    )
    assert "    def rows_for_j(s):\n        return s.where(" in text
    assert "    def rows_for_k(s):\n        spark = s.sparkSession\n" in text
    assert "streamsql" not in "\n".join(line for line in text.splitlines() if "import" in line)
    run_program(text)
    assert files(console, tmp_path / "j") == [(2, "x\n y"), (3, "x\n y")]
    assert files(console, tmp_path / "k") == [("Anna",)]


def test_the_other_explains_and_help(console: Console) -> None:
    console.run(STREAM + TABLES)
    shown = console.run("EXPLAIN " + SET)[0]
    assert isinstance(shown, Text)
    assert "-- big\n" in shown.text and "-- words\n" in shown.text
    helped = console.run("HELP EXECUTE STATEMENT SET;")[0]
    assert isinstance(helped, Text)
    assert (
        "\nEXECUTE STATEMENT SET [<insert clause> …] BEGIN INSERT INTO target [, …] query ; … END\n"
        in helped.text
    )


def test_a_static_select_is_written_into_all_sinks(console: Console, tmp_path: Path) -> None:
    console.run(
        f"CREATE SINK j USING json OPTIONS (path '{tmp_path}/j');"
        f"CREATE SINK k (w STRING) USING json OPTIONS (path '{tmp_path}/k');"
        "INSERT INTO j, k SELECT 5 AS n;"
    )
    for name, row in (("j", {"n": 5}), ("k", {"w": "5"})):
        (file,) = (tmp_path / name).glob("*.json")
        assert json.loads(file.read_text()) == row


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ("m, nothing", "there is no sink nothing"),
        ("m, s", "s is a stream and cannot be one of several sinks"),
        ("m, M", "the sink m is named twice"),
        ("m, fed", "the query q already feeds fed"),
    ],
)
def test_targets_that_cannot_be(console: Console, targets: str, says: str) -> None:
    console.run(STREAM + "CREATE SINK m USING memory; CREATE SINK fed USING memory;")
    console.run("INSERT INTO fed AS QUERY q SELECT n FROM s;")
    with pytest.raises(StreamsqlError, match=says) as caught:
        console.run(f"INSERT INTO {targets} SELECT n FROM s;")
    assert caught.value.span and caught.value.span.start == len("INSERT INTO m, ")
