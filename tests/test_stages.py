"""Queries that Spark refuses on streams run in stages: hidden live tables, and a live table over them."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_explain import program, run_program, table, then
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import QueryFault, StreamsqlError
from streamsql.results import Rows, Text, Why
from streamsql.runtime.background_news import BackgroundNews

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

WORDS = "CREATE STREAM words (word STRING, n INT) USING values;"
RANKED = """CREATE LIVE TABLE ranked AS
SELECT word, n FROM (SELECT *, row_number() OVER (PARTITION BY word ORDER BY n DESC) AS rn FROM words WHERE n > 0)
WHERE rn <= 2;"""
AVERAGE = """CREATE LIVE TABLE average AS
SELECT avg(c) AS a FROM (SELECT word, count(*) AS c FROM words GROUP BY word);"""


@pytest.mark.slow
def test_an_aggregate_over_an_aggregate_keeps_the_groups_only(console: Console) -> None:
    started = console.run(WORDS + AVERAGE)[-1]
    assert [str(n) for n in started.notes] == [
        "runs in 2 stages: average$1 keeps one row for each group; SHOW STAGES OF average; lists them"
    ]
    for values, average in (("('a', 1), ('b', 1), ('a', 1)", 1.5), ("('b', 1), ('b', 1), ('c', 1)", 2.0)):
        console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY average IDLE;")
        assert console.rows("SELECT * FROM average;") == [(average,)]
    shown = console.run("SHOW STAGES OF average;")[0]
    assert isinstance(shown, Rows)
    assert shown.rows == [
        (
            "average$1",
            "running",
            3,
            None,
            "update",
            "word",
            "SELECT word, count(*) AS c FROM words GROUP BY word",
        )
    ]
    assert [row[0] for row in console.rows("SHOW LIVE TABLES;")] == ["average"]
    assert [row[:2] for row in console.rows("SHOW QUERIES;")] == [("average", "running")]
    console.run("STOP QUERY average; INSERT INTO words VALUES ('d', 1);")
    assert console.rows("SHOW STAGES OF average;")[0][1] == "stopped"
    console.run("START QUERY average; AWAIT QUERY average IDLE;")
    assert console.rows("SELECT * FROM average;") == [(1.75,)]
    console.run("DROP LIVE TABLE average;")
    assert console.session.catalog.sinks == {}
    assert console.session.catalog.queries == {}


@pytest.mark.slow
def test_rows_that_have_to_be_kept_are_limited_and_the_limit_fails_the_query(console: Console) -> None:
    started = console.run(WORDS + RANKED.replace("AS\nSELECT word, n", "RETAIN 4 ROWS AS SELECT word, n", 1))[
        -1
    ]
    assert "ranked$1 keeps rows, at most 4" in str(started.notes[0])
    console.run("INSERT INTO words VALUES ('a', 1), ('a', 3), ('a', 2), ('b', -1); AWAIT QUERY ranked IDLE;")
    assert sorted(console.rows("SELECT * FROM ranked;")) == [("a", 2), ("a", 3)]
    told, heard = list[str](), threading.Event()
    news = BackgroundNews(console.session.parts, lambda line: (told.append(line), heard.set()), shared=True)
    with pytest.raises(QueryFault) as caught:
        console.run("INSERT INTO words VALUES ('c', 1), ('c', 2); AWAIT QUERY ranked IDLE;")
    assert heard.wait(60)
    news.close()
    assert [line.partition(" failed")[0] for line in told] == ["query ranked"]  # not that of its stage
    assert caught.value.message == "query ranked failed: more than 4 rows of a stream have to be kept"
    assert caught.value.code == "LIMIT_REACHED"
    assert caught.value.hint == "START QUERY ranked RETAIN 40 ROWS;"
    assert [row[:2] for row in console.rows("SHOW QUERIES;")] == [("ranked", "FAILED")]
    assert sorted(console.rows("SELECT * FROM ranked;")) == [("a", 2), ("a", 3)]
    explained = console.run("WHY LIVE TABLE ranked;")[0]
    assert isinstance(explained, Why) and explained.proposal == caught.value.hint
    console.run(caught.value.hint + "AWAIT QUERY ranked IDLE;")
    assert len(console.rows("SELECT * FROM ranked;")) == 4


@pytest.mark.slow
def test_an_insert_in_stages_goes_on_with_a_higher_limit(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    one = opened()
    one.run(
        f"""{WORDS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');
        INSERT INTO f AS QUERY q RETAIN 2 ROWS {RANKS}; INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY q IDLE;"""
    )
    with pytest.raises(QueryFault) as caught:
        one.run("INSERT INTO words VALUES ('c', 1); AWAIT QUERY q IDLE;")
    assert (caught.value.code, caught.value.hint) == ("LIMIT_REACHED", "START QUERY q RETAIN 20 ROWS;")
    one.run(f"{caught.value.hint} AWAIT QUERY q IDLE;")
    two = opened()
    two.run("START QUERY q; INSERT INTO words VALUES ('d', 1); AWAIT QUERY q IDLE;")
    assert changes(tmp_path / "f") == [["+I", word, 1, 1] for word in "abcd"]
    assert two.rows("SHOW STAGES OF q;")[0][:4] == ("q$1", "running", 4, 20)
    two.run(f"CREATE SINK g USING json OPTIONS (path '{tmp_path}/g');")
    for statement in (
        "INSERT INTO g RETAIN 5 ROWS SELECT * FROM words;",
        "EXECUTE STATEMENT SET RETAIN 5 ROWS BEGIN INSERT INTO g SELECT * FROM words; END;",
        "INSERT INTO g SELECT * FROM words; STOP QUERY g; START QUERY g RETAIN 5 ROWS;",
    ):
        with pytest.raises(StreamsqlError, match="RETAIN") as refused:
            two.run(statement)
        assert refused.value.code == "CLAUSE_NOT_SUPPORTED"


def test_a_select_over_streams_runs_in_stages_too(console: Console) -> None:
    console.run(f"{WORDS} INSERT INTO words VALUES ('a', 1), ('b', 2), ('a', 3);")
    assert console.rows("SELECT word FROM words ORDER BY n DESC LIMIT 2;") == [("a",), ("b",)]
    assert console.rows(
        "SELECT count(DISTINCT word) AS d, sum(n) AS n FROM words WHERE n IN (SELECT max(n) FROM words);"
    ) == [(1, 3)]
    assert console.session.parts.queries.all == {}


@pytest.mark.slow
def test_stages_are_off(console: Console) -> None:
    console.run(f"{WORDS} SET streamsql.stages = off;")
    with pytest.raises(StreamsqlError) as caught:
        console.run(AVERAGE)
    _, _, statements = caught.value.hint.partition("SET streamsql.stages = on; or:\n")
    console.run(statements)
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 1); AWAIT QUERY average IDLE;")
    assert console.rows("SELECT * FROM average;") == [(1.5,)]
    piped = "FROM {} |> AGGREGATE count(*) AS c GROUP BY word |> AGGREGATE avg(c) AS a;"
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE LIVE TABLE p AS {piped.format('words')}")
    assert caught.value.hint.endswith(
        "or: SET streamsql.stages = on; or:\nCREATE LIVE TABLE p_1 AS SELECT * FROM words;\n"
        f"CREATE LIVE TABLE p AS WITH words AS (SELECT * FROM p_1) {piped.format('words')}"
    )
    console.run(caught.value.hint.rpartition("; or:")[2] + "AWAIT QUERY p IDLE;")
    assert console.rows("SELECT * FROM p;") == [(1.5,)]


@pytest.mark.parametrize(
    "statement",
    [
        AVERAGE.replace("AS\n", "OUTPUT MODE UPDATE AS ", 1),
        RANKED.replace("AS\n", "OUTPUT MODE APPEND AS ", 1),
        "CREATE LIVE TABLE t OUTPUT MODE COMPLETE AS SELECT word FROM words ORDER BY word;",
    ],
)
def test_a_written_output_mode_is_sparks_own_query(console: Console, statement: str) -> None:
    with pytest.raises(StreamsqlError):
        console.run(WORDS + statement)
    assert console.session.catalog.sinks == {}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("mode", "query", "why", "rows"),
    [
        (
            "COMPLETE",
            "FROM words |> AGGREGATE sum(n) AS s |> UNION ALL (SELECT min(n) FROM words)",
            "several aggregations without GROUP BY are not supported",
            [(1,), (6,)],
        ),
        (
            "APPEND",
            "FROM words a |> JOIN words b ON a.n < b.n |> SELECT a.n",
            "a join of two streams needs an equality",
            [(1,), (1,), (2,)],
        ),
    ],
)
def test_a_written_output_mode_of_a_query_that_only_spark_reads(
    console: Console, mode: str, query: str, why: str, rows: list[object]
) -> None:
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"{WORDS} CREATE LIVE TABLE t OUTPUT MODE {mode} AS {query};")
    assert why in caught.value.message
    assert caught.value.hint.endswith("leave OUTPUT MODE out: then it runs in stages")
    console.run(f"CREATE LIVE TABLE t AS {query};")
    for values in ("('a', 1)", "('b', 2), ('c', 3)"):
        console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY t IDLE;")
    assert sorted(console.rows("SELECT * FROM t;")) == rows


def test_the_program_of_stages_runs_by_itself(console: Console, tmp_path: Path) -> None:
    console.run(f"{WORDS} INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 1);")
    text = program(console, AVERAGE.rstrip(";")).replace(".start()", ".trigger(availableNow=True).start()")
    shown = run_program(then(text, "average_rows.frame(spark).show(truncate=False)"))
    assert table(shown)[1:] == [["1.5"]]
    console.run(f"CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');")
    text = program(console, INTO_FILES.rstrip(";"))
    run_program(text.replace(".start()", ".trigger(availableNow=True).start()"))
    assert changes(tmp_path / "f")[-1] == ["+I", 1.5]


def test_stages_are_resumed(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    one = opened()
    one.run(
        f"""{WORDS} {AVERAGE} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f'); {INTO_FILES}
        CREATE LIVE TABLE p AS FROM words |> AGGREGATE count(*) AS c GROUP BY word |> AGGREGATE avg(c) AS a;
        INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 1); AWAIT QUERY ALL IDLE;"""
    )
    two = opened()
    assert (two.warnings, two.rows("SELECT * FROM average;")) == ([], [(1.5,)])
    remark = two.rows("SHOW LIVE TABLES;")[0][-1]
    assert remark == "it is stopped; START QUERY average; refreshes it again"
    assert two.text("SHOW CREATE LIVE TABLE average;").startswith(
        "CREATE LIVE TABLE average\n  AS SELECT avg(c)"
    )
    two.run("SET streamsql.stages = off; START QUERY ALL;")
    two.run("INSERT INTO words VALUES ('b', 1), ('b', 1); AWAIT QUERY ALL IDLE;")
    assert two.rows("SELECT * FROM average;") == two.rows("SELECT * FROM p;") == [(2.5,)]
    assert changes(tmp_path / "f")[-3:] == [["+I", 1.5], ["-D", 1.5], ["+I", 2.5]]
    assert two.rows("SHOW STAGES OF average;")[0][2:4] == (2, None)
    two.run(
        """STOP QUERY ALL;
        CREATE OR REPLACE STREAM words (word STRING, more INT, n INT) USING values;"""
    )
    with pytest.raises(StreamsqlError) as caught:
        two.run("START QUERY q;")
    assert caught.value.message == "the query q has changed since its checkpoint was created"
    assert two.rows("SHOW STAGES OF q;")[0][:3] == ("q$1", "stopped", 2)
    accepted = notes_of(two.run("START QUERY q ACCEPT CHANGES;")[0])
    assert accepted == (
        "changed since the checkpoint was created, and accepted: columns of words: more INT added",
    )


RANKS = "SELECT *, row_number() OVER (PARTITION BY word ORDER BY n) AS r FROM words"


@pytest.mark.slow
def test_rows_that_stages_keep_get_the_columns_of_a_changed_stream(
    opened: Open,  # noqa: F811
    tmp_path: Path,
) -> None:
    one = opened()
    one.run(
        f"""{WORDS} CREATE LIVE TABLE ranks AS {RANKS}; CREATE LIVE TABLE words_kept AS SELECT * FROM words;
        CREATE SINK f USING json OPTIONS (path '{tmp_path}/f'); INSERT INTO f AS QUERY q {RANKS};
        CREATE SINK g USING json OPTIONS (path '{tmp_path}/g');
        INSERT INTO g AS QUERY over SELECT * FROM words_kept;
        INSERT INTO words VALUES ('a', 1); AWAIT QUERY ALL IDLE; STOP QUERY ALL;
        CREATE OR REPLACE STREAM words (more STRUCT<x INT>, word STRING, n BIGINT) USING values;"""
    )
    two = opened()
    two.run("START QUERY words_kept ACCEPT CHANGES;")
    with pytest.raises(StreamsqlError) as caught:
        two.run("START QUERY over;")
    ways = [line.split()[:2] for line in (caught.value.hint or "").splitlines()]
    assert ways == [["START", "QUERY"], ["FROM", "BEGINNING"], ["FROM", "NOW"], ["ACCEPT", "CHANGES"]]
    for query in ("ranks", "q", "over"):
        two.run(f"START QUERY {query} ACCEPT CHANGES;")
    assert two.rows("SELECT * FROM ranks;") == [(None, "a", 1, 1)]  # before a row of the new columns
    two.run("INSERT INTO words VALUES (named_struct('x', 7), 'a', 5000000000); AWAIT QUERY ALL IDLE;")
    three = opened()
    three.run("START QUERY ALL; AWAIT QUERY ALL IDLE;")
    for console in (two, three):
        assert console.rows("SELECT more.x, n, word FROM words_kept ORDER BY n;") == [
            (None, 1, "a"),
            (7, 5000000000, "a"),
        ]
        assert sorted(console.rows("SELECT r, n, more.x FROM ranks;")) == [(1, 1, None), (2, 5000000000, 7)]
    later = ["+I", {"x": 7}, "a", 5000000000]
    assert changes(tmp_path / "g") == [["+I", "a", 1], later]
    assert changes(tmp_path / "f") == [["+I", "a", 1, 1], [*later, 2]]


@pytest.mark.slow
def test_rows_that_a_changed_query_cannot_go_on_with(opened: Open) -> None:  # noqa: F811
    one = opened()
    one.run(
        f"""{WORDS} CREATE LIVE TABLE ranks AS {RANKS}; INSERT INTO words VALUES ('a', 1);
        AWAIT QUERY ALL IDLE; STOP QUERY ALL;
        CREATE OR REPLACE STREAM words (word INT, n INT) USING values; INSERT INTO words VALUES (1, 1);"""
    )
    with pytest.raises(StreamsqlError) as caught:
        one.run("START QUERY ranks ACCEPT CHANGES;")
    fault = caught.value
    assert (fault.code, fault.message) == (
        "CHECKPOINT_CHANGED",
        "the changed query cannot go on with the rows of ranks$1",
    )
    assert (fault.detail, fault.span is not None) == ("its column word has other values now", True)
    assert one.rows("SELECT word, n FROM ranks;") == [("a", 1)]
    one.run("START QUERY ranks FROM BEGINNING; AWAIT QUERY ranks IDLE;")
    assert one.rows("SELECT word, n FROM ranks;") == [(1, 1)]


def test_the_plan_of_spark_shows_each_stage(console: Console) -> None:
    shown = console.run(f"{WORDS} EXPLAIN {RANKED}")[-1]
    assert isinstance(shown, Text)
    heads = [line for line in shown.text.splitlines() if line.startswith("-- ")]
    assert heads == ["-- stage ranked$1", "-- ranked"]
    assert "Window" in shown.text.partition("-- ranked\n")[2]
    assert console.session.parts.queries.all == {}


@pytest.mark.slow
def test_a_replaced_table_stays_when_the_new_one_cannot_run(console: Console) -> None:
    console.run(f"{WORDS} {AVERAGE} INSERT INTO words VALUES ('a', 1); AWAIT QUERY average IDLE;")
    again = AVERAGE.replace("CREATE", "CREATE OR REPLACE")
    for wrong in (again.replace("avg(c)", "avg(d)"), again.replace("count(*)", "summe(n)")):
        with pytest.raises(StreamsqlError):
            console.run(wrong)
    assert console.rows("SELECT * FROM average;") == [(1.0,)]
    assert [row[:2] for row in console.rows("SHOW STAGES OF average;")] == [("average$1", "running")]
    console.run(again.replace("count(*)", "sum(n) * 10") + "AWAIT QUERY average IDLE;")
    assert console.rows("SELECT * FROM average;") == [(10.0,)]


INTO_FILES = (
    "INSERT INTO f AS QUERY q SELECT avg(c) AS a FROM (SELECT word, count(*) AS c FROM words GROUP BY word);"
)


def changes(folder: Path) -> list[list[object]]:
    """The changes in a folder of JSON files, in their order."""
    files = sorted(folder.glob("batch=*/*.json"), key=lambda f: int(f.parent.name.rpartition("-")[2]))
    return [list(json.loads(line).values()) for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_an_insert_runs_in_stages_and_writes_the_changes(console: Console, tmp_path: Path) -> None:
    started = console.run(f"{WORDS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f'); {INTO_FILES}")[-1]
    assert notes_of(started) == (
        "runs in 2 stages: q$1 keeps one row for each group; SHOW STAGES OF q; lists them",
        "f gets the changes (column _op) after micro-batches of its stages",
    )
    console.run(
        "AWAIT QUERY q IDLE; INSERT INTO words VALUES ('a', 1), ('a', 1), ('b', 1); AWAIT QUERY q IDLE;"
    )
    assert changes(tmp_path / "f") == [["+I", 1.5]]  # no row of the average of nothing
    assert [row[:4] for row in console.rows("SHOW QUERIES;")] == [("q", "running", "f", "changes")]
    assert console.rows("SHOW LIVE TABLES;") == []
    assert [row[:3] for row in console.rows("SHOW STAGES OF q;")] == [("q$1", "running", 2)]
    described = dict(console.rows("DESCRIBE QUERY q;"))
    assert (described["inputs"], described["stage q$1"][:11]) == ("q$1", "SELECT word")
    console.run("STOP QUERY q; INSERT INTO words VALUES ('b', 1);")
    assert console.rows("SHOW STAGES OF q;")[0][1] == "stopped"
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    assert changes(tmp_path / "f")[-2:] == [["-D", 1.5], ["+I", 2.0]]
    console.run("STOP QUERY q; START QUERY q FROM BEGINNING; AWAIT QUERY q IDLE;")
    assert changes(tmp_path / "f")[-1] == ["+I", 2.0]
    with pytest.raises(StreamsqlError) as caught:
        console.run("DROP STREAM words;")
    assert caught.value.message == "words is read by q"
    console.run("DROP QUERY q; DROP SINK f;")
    assert (console.session.catalog.sinks, console.session.catalog.queries) == ({}, {})


@pytest.mark.slow
def test_a_database_follows_what_spark_emits_in_no_mode_that_it_takes(
    console: Console, tmp_path: Path
) -> None:
    best = f"USING jdbc KEY (word) OPTIONS (url 'jdbc:sqlite:{tmp_path}/db', table "
    console.run(
        f"""{WORDS} CREATE SINK top {best} 'top'); CREATE SINK many {best} 'many');
        INSERT INTO top SELECT word, sum(n) AS n FROM words GROUP BY word ORDER BY n DESC LIMIT 1;
        INSERT INTO many SELECT word, count(*) AS n FROM words GROUP BY word HAVING sum(n) > 2;"""
    )

    def rows(table: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(tmp_path / "db") as database:
            return database.execute(f"SELECT word, n FROM {table}").fetchall()

    console.run("INSERT INTO words VALUES ('a', 2), ('b', 3); AWAIT QUERY ALL IDLE;")
    assert (rows("top"), rows("many")) == ([("b", 3)], [("b", 1)])
    console.run("INSERT INTO words VALUES ('a', 2), ('b', -1); AWAIT QUERY ALL IDLE;")
    assert (rows("top"), rows("many")) == ([("a", 4)], [("a", 2)])


@pytest.mark.slow
def test_an_insert_in_stages_may_filter_their_groups_by_other_queries(console: Console) -> None:
    console.run(
        f"""{WORDS} CREATE SINK f USING memory; INSERT INTO f SELECT word, n FROM
        (SELECT word, sum(n) AS n FROM words GROUP BY word)
        WHERE word NOT IN (SELECT word FROM words WHERE n > 2) AND n >= (SELECT avg(n) FROM words);"""
    )
    console.run("INSERT INTO words VALUES ('a', 2), ('b', 3), ('c', 1); AWAIT QUERY f IDLE;")

    def result() -> list[tuple[Any, ...]]:
        """The changes, applied one after the other. A stage may be a micro-batch ahead of another meanwhile."""
        rows: list[tuple[Any, ...]] = []
        for kind, *row in console.rows("SELECT * FROM f;"):
            rows.append(tuple(row)) if kind in ("+I", "+U") else rows.remove(tuple(row))
        return sorted(rows)

    assert result() == [("a", 2)]
    console.run("INSERT INTO words VALUES ('c', 2), ('a', 3); AWAIT QUERY f IDLE;")
    assert result() == [("c", 3)]


@pytest.mark.slow
def test_a_stream_may_be_a_query_that_runs_in_stages(console: Console) -> None:
    defined = console.run(
        f"{WORDS} CREATE STREAM others AS SELECT * FROM words WHERE n NOT IN (SELECT max(n) FROM words);"
    )
    assert [str(note) for note in defined[-1].notes] == [
        "queries that read others run in stages: HELP stages;"
    ]
    console.run("CREATE LIVE TABLE counted AS SELECT word, count(*) AS n FROM others GROUP BY word;")
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 2), ('a', 1); AWAIT QUERY counted IDLE;")
    assert console.rows("SELECT * FROM counted;") == [("a", 2)]
    console.run("INSERT INTO words VALUES ('c', 3); AWAIT QUERY counted IDLE;")
    assert sorted(console.rows("SELECT * FROM counted;")) == [("a", 2), ("b", 1)]
    assert sorted(console.rows("SELECT word, n FROM others;")) == [("a", 1), ("a", 1), ("b", 2)]
    assert ("columns", "word, n") in console.rows("DESCRIBE others;")


@pytest.mark.slow
def test_an_insert_that_does_not_run_in_stages_names_another_way(console: Console, tmp_path: Path) -> None:
    query = "SELECT word FROM words WHERE n IN (SELECT max(n) FROM words)"
    groups = "SELECT word, count(*) AS n FROM words GROUP BY word"
    console.run(
        f"""{WORDS} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f'); CREATE SINK g USING console;
        CREATE SINK e USING foreach OPTIONS (function 'builtins.print');"""
    )

    def hint(statement: str) -> str:
        with pytest.raises(StreamsqlError) as caught:
            console.run(statement)
        return caught.value.hint

    # Spark runs it for another sink, which this one is not.
    assert hint(f"INSERT INTO f {groups};").endswith(
        f"or, in stages: CREATE LIVE TABLE f_rows AS {groups}; INSERT INTO f SELECT * FROM f_rows;"
    )
    rows = f"CREATE LIVE TABLE f_g_rows AS {query};"
    assert hint(f"INSERT INTO f, g {query};").endswith(
        f"or, in stages: {rows} INSERT INTO f SELECT * FROM f_g_rows; INSERT INTO g SELECT * FROM f_g_rows;"
    )
    assert hint(f"INSERT INTO e {query};").endswith(
        f"CREATE LIVE TABLE e_rows AS {query}; INSERT INTO a sink that takes its changes: "
        "csv, json, parquet, orc, text, xml, avro, kafka, memory, console, jdbc, foreach_batch, noop"
    )
    assert "stages" not in hint(f"INSERT INTO f OUTPUT MODE APPEND {query};")
    console.run("SET streamsql.stages = off;")
    refused = hint(f"INSERT INTO f (word) AS QUERY q TRIGGER AVAILABLE NOW {query};")
    statements = refused.partition("SET streamsql.stages = on; or:\n")[2]
    assert statements.splitlines()[-1] == (
        "INSERT INTO f (word) AS QUERY q SELECT word FROM q_1 AS words WHERE n IN (SELECT * FROM q_2);"
    )
    console.run(f"INSERT INTO words VALUES ('a', 1), ('b', 2); {statements} AWAIT QUERY q IDLE;")
    assert changes(tmp_path / "f") == [["+I", "b"]]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT word, count(DISTINCT n) AS n FROM words GROUP BY word HAVING count(DISTINCT n) > 1",
            [("a", 2)],
        ),
        (
            "SELECT word, percentile(n, 0.5) AS p FROM words GROUP BY word HAVING count(DISTINCT n) > 1",
            [("a", 1.5)],
        ),
        ("SELECT word FROM (SELECT DISTINCT word FROM words) ORDER BY word DESC LIMIT 1", [("b",)]),
    ],
)
def test_what_spark_alone_would_refuse_runs_in_stages(
    console: Console, query: str, rows: list[object]
) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE t AS {query};")
    console.run("INSERT INTO words VALUES ('a', 1), ('a', 2), ('b', 1), ('b', 1); AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == rows


@pytest.mark.slow
def test_a_union_of_rows_and_of_groups_keeps_all_rows(console: Console) -> None:
    # In output mode complete Spark gives all groups, and the rows of the newest micro-batch only.
    groups = "SELECT word, count(*) AS n FROM words GROUP BY word"
    console.run(
        f"""{WORDS} CREATE LIVE TABLE both AS SELECT word, n FROM words UNION ALL {groups};
        CREATE LIVE TABLE piped AS FROM words |> SELECT word, n |> UNION ALL ({groups});
        INSERT INTO words VALUES ('a', 5); AWAIT QUERY ALL IDLE;
        INSERT INTO words VALUES ('b', 6); AWAIT QUERY ALL IDLE;"""
    )
    expected = [("a", 1), ("a", 5), ("b", 1), ("b", 6)]
    assert sorted(console.rows("SELECT * FROM both;")) == expected
    assert sorted(console.rows("SELECT * FROM piped;")) == expected
    assert sorted(console.rows(f"SELECT word, n FROM words UNION ALL {groups};")) == expected


SIZES = "(SELECT word AS w, count(*) AS size, max(n) AS m FROM words GROUP BY word)"
# Live tables of queries with clauses that only Spark reads, and their rows.
READ_BY_SPARK = {
    f"SELECT s, max(t) FROM {SIZES} AS x(a, s, t) GROUP BY s": [(1, 2), (2, 3)],
    "FROM words |> AGGREGATE count(*) AS c GROUP BY word |> AGGREGATE count(*) AS k GROUP BY c": [
        (1, 1),
        (2, 2),
    ],
    "SELECT * FROM words PIVOT (sum(n) FOR word IN ('a', 'c'))": [(4, 3)],
    f"FROM {SIZES} AS words |> JOIN words w ON words.w = w.word |> WHERE w.n = words.m |> SELECT words.size": [
        (1,),
        (2,),
        (2,),
    ],
    "WITH words AS (SELECT * FROM words WHERE n > 1) FROM words |> AGGREGATE count(*) AS c GROUP BY word "
    "|> AGGREGATE count(*) AS c": [(3,)],
    "FROM (SELECT words.n, (SELECT max(words.m) FROM (SELECT n AS m FROM words) words) AS m FROM words) "
    "|> ORDER BY n DESC |> LIMIT 1": [(3, 3)],
    "SELECT a.word FROM words a, LATERAL (SELECT max(b.n) AS m FROM words b WHERE b.word = a.word) "
    "WHERE a.n = m": [("a",), ("b",), ("c",)],
}


@pytest.mark.slow
def test_clauses_that_only_spark_reads_run_in_stages_too(console: Console) -> None:
    console.run(WORDS)
    tables = {f"t{n}": query for n, query in enumerate(READ_BY_SPARK)}
    for name, query in tables.items():
        started = console.run(f"CREATE LIVE TABLE {name} AS {query};")[0]
        assert any(note.text.startswith("runs in ") for note in started.notes), query
    renamed = f"SELECT size AS z, avg(m) AS m FROM {SIZES} GROUP BY size HAVING sum(m) > 2"
    console.run(
        "INSERT INTO words VALUES ('a', 1), ('b', 2), ('a', 3), ('c', 1), ('c', 2); AWAIT QUERY ALL IDLE;"
    )
    for name, query in tables.items():
        assert sorted(console.rows(f"SELECT * FROM {name};")) == READ_BY_SPARK[query]
    assert console.rows(f"{renamed};") == [(2, 2.5)]
    explained = console.run(f"EXPLAIN {renamed};")[0]
    assert isinstance(explained, Text) and "-- stage select$1" in explained.text
    text = program(console, f"CREATE LIVE TABLE renamed AS {renamed}")
    ending = text.replace(".start()", ".trigger(availableNow=True).start()")
    shown = run_program(then(ending, "renamed_rows.frame(spark).show()"))
    assert ("# if Spark refuses" not in text, table(shown)[1:]) == (True, [["2", "2.5"]])
    console.run("STOP QUERY t1; START QUERY t1; INSERT INTO words VALUES ('b', 7); AWAIT QUERY t1 IDLE;")
    assert console.rows("SELECT * FROM t1;") == [(2, 3)]
