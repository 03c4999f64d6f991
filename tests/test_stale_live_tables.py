"""A live table over live tables that is not as its inputs are: what is said of it, where, and that what is
proposed, typed, ends it. The last good rows stay readable.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from conftest import Console
from pyspark.sql.types import LongType, StringType, StructField, StructType
from test_refreshes import COUNTS, TOP, of_live_table
from test_reopened import Open, opened  # noqa: F401  a fixture
from why_answers import why

from streamsql.errors import QueryFault, StreamsqlError
from streamsql.results import Live, Text
from streamsql.runtime import session_summary
from streamsql.runtime.handlers import refresh_remarks
from streamsql.runtime.live.kept_columns import Misfit, fitted
from streamsql.runtime.session_summary import stale_table

ROOMS = ("streamsql/runtime/",)

# Spark waits here, row by row, until the system property says that the gate is open.
GATE = """aggregate(sequence(1, 3000), false, (open, n) -> open OR
  reflect('java.lang.System', 'getProperty', 'gate') = 'open' OR reflect('java.lang.Thread', 'sleep', 20L) = '')"""


def footer(console: Console, name: str) -> str:
    live = console.run(f"WATCH {name};")[0]
    assert isinstance(live, Live)
    text = live.status().error
    live.close()
    return text


@pytest.mark.slow
def test_an_input_that_waits_for_another_and_one_whose_query_is_stopped(console: Console) -> None:
    console.run(
        f"""{COUNTS} CREATE LIVE TABLE total AS SELECT sum(c) AS t FROM counts;
        CREATE LIVE TABLE shares AS SELECT word, c / t AS s FROM counts, total;
        INSERT INTO words VALUES ('a', 1); AWAIT QUERY ALL IDLE; STOP QUERY total;
        INSERT INTO words VALUES ('b', 1); AWAIT QUERY counts IDLE; AWAIT QUERY shares IDLE;"""
    )
    assert console.rows("SELECT * FROM shares;") == [("a", 1.0)]
    shown = of_live_table(console, "shares")
    assert (shown["behind"], shown["stale"] > "") == (1, True)
    start = "the query total is stopped; START QUERY total;"
    assert "waits for total" in shown["remark"] and start in shown["remark"]
    assert start in footer(console, "shares")
    assert stale_table(console.session.parts) is None
    verdict, facts = why(console, "LIVE TABLE shares")
    assert (verdict.code, verdict.proposal) == ("BEHIND", "START QUERY total;")
    assert facts["rows of counts"] == 2
    console.run(f"{verdict.proposal} AWAIT QUERY shares IDLE;")
    assert sorted(console.rows("SELECT * FROM shares;")) == [("a", 0.5), ("b", 0.5)]
    verdict, _ = why(console, "LIVE TABLE shares")
    assert verdict.verdict.startswith("nothing is wrong: shares has 2 rows, computed ")


@pytest.mark.slow
def test_an_input_that_fails_and_one_that_begins_again(console: Console) -> None:
    console.run(
        f"""CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE counts AS SELECT word, sum(10 div n) AS c FROM words GROUP BY word; {TOP}
        INSERT INTO words VALUES ('a', 1); AWAIT QUERY top IDLE; INSERT INTO words VALUES ('a', 0);"""
    )
    with pytest.raises(QueryFault, match="query counts failed: division by zero"):
        console.run("AWAIT QUERY top IDLE;")
    fact = "an input stands still: query counts failed: division by zero"
    corrected = "CREATE OR REPLACE LIVE TABLE counts AS …; runs it with a corrected SELECT"
    assert of_live_table(console, "top")["remark"] == footer(console, "top") == f"{fact}; {corrected}"
    assert why(console, "LIVE TABLE top")[1]["to resolve it"] == corrected
    assert console.rows("SELECT * FROM top;") == [("a", 10)]
    console.run(
        corrected.partition(";")[0].replace("…", "SELECT word, count(*) AS c FROM words GROUP BY word")
    )
    console.run("AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("a", 2)]
    console.run("STOP QUERY counts; START QUERY counts FROM BEGINNING; AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("a", 2)]
    assert "counts began anew at " in of_live_table(console, "top")["remark"]


def test_an_input_that_is_dropped(console: Console) -> None:
    console.run(
        f"""{COUNTS} CREATE SINK kept USING memory; INSERT INTO kept SELECT word FROM words;
        CREATE LIVE TABLE sorted AS SELECT word FROM kept ORDER BY word;
        INSERT INTO words VALUES ('b', 1), ('a', 1); AWAIT QUERY ALL IDLE;"""
    )
    for statement in ("DROP LIVE TABLE kept;", "DROP SINK kept;"):
        with pytest.raises(StreamsqlError) as caught:
            console.run(statement)
        assert (caught.value.message, caught.value.code) == ("kept is read by sorted", "IN_USE")
    console.run("DROP QUERY kept; AWAIT QUERY sorted IDLE;")
    assert console.rows("SELECT * FROM sorted;") == [("a",), ("b",)]
    remark = of_live_table(console, "sorted")["remark"]
    assert remark == (
        "an input stands still: no query writes into kept any more; INSERT INTO kept SELECT …; starts one"
    )
    with pytest.raises(QueryFault, match="query kept failed"):
        console.run("INSERT INTO kept SELECT string(int(word)) AS word FROM words; AWAIT QUERY sorted IDLE;")
    remark = of_live_table(console, "sorted")["remark"]
    fact, statement, again, effect = remark.removeprefix("an input stands still: ").split("; ")[:4]
    assert fact.startswith("query kept failed: ") and effect == "runs it with NULL for such a value"
    console.run(f"{statement}; {again}; AWAIT QUERY sorted IDLE; RESET spark.sql.ansi.enabled;")
    assert console.rows("SELECT * FROM sorted;") == [(None,), (None,)]


@pytest.mark.slow
def test_a_join_that_multiplies_and_a_condition_that_keeps_nothing(console: Console) -> None:
    console.run(
        f"""{COUNTS} CREATE LIVE TABLE pairs RETAIN 2 ROWS AS SELECT a.word, b.c FROM counts a, counts b;
        CREATE LIVE TABLE often AS SELECT word FROM counts WHERE c > 5;
        INSERT INTO words VALUES ('a', 1); AWAIT QUERY ALL IDLE;"""
    )
    with pytest.raises(QueryFault, match="its result has more than 2 rows") as caught:
        console.run("INSERT INTO words VALUES ('b', 1); AWAIT QUERY pairs IDLE;")
    assert console.rows("SELECT * FROM pairs;") == [("a", 1)]
    typed = of_live_table(console, "pairs")["remark"].partition("; ")[2]
    assert caught.value.hint and " ".join(caught.value.hint.split()) == typed
    console.run(f"{typed} AWAIT QUERY pairs IDLE;")
    assert sorted(console.rows("SELECT * FROM pairs;")) == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]
    verdict, facts = why(console, "LIVE TABLE often")
    assert (verdict.code, facts["kept by c > 5"]) == ("ROWS_HIDDEN", "0 of 2")
    assert sorted(console.rows(verdict.proposal)) == [("a",), ("b",)]


def test_a_changed_definition_on_a_resumed_workspace(opened: Open) -> None:  # noqa: F811
    first = opened()
    first.run(f"{COUNTS} {TOP} INSERT INTO words VALUES ('a', 1); AWAIT QUERY top IDLE; STOP QUERY ALL;")
    first.run(
        "CREATE OR REPLACE LIVE TABLE counts AS SELECT word AS w, count(*) AS c FROM words GROUP BY word;"
    )
    second = opened()
    second.run("START QUERY counts;")
    with pytest.raises(StreamsqlError) as caught:
        second.run("START QUERY top;")
    assert caught.value.message == "top cannot be computed any more: there is no column word"
    again = caught.value.hint.splitlines()[-1]
    assert again == "CREATE OR REPLACE LIVE TABLE top AS …; its last rows can be read until then"
    assert second.rows("SELECT * FROM top;") == [("a", 1)]
    remark = second.rows("SHOW LIVE TABLES;")[1][-1]
    assert remark == "it is stopped; START QUERY top; refreshes it again"
    second.run(again.partition(";")[0].replace("…", "SELECT w, c FROM counts") + "; AWAIT QUERY top IDLE;")
    assert second.rows("SELECT * FROM top;") == [("a", 1)]


@pytest.mark.slow
def test_a_refresh_slower_than_its_inputs(
    console: Console,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., None],
) -> None:
    gate = console.session.spark._jvm.System.setProperty
    gate("gate", "open")
    console.run(
        f"""{COUNTS} CREATE LIVE TABLE slow AS SELECT word, c FROM counts WHERE {GATE};
        INSERT INTO words VALUES ('a', 1); AWAIT QUERY slow IDLE;"""
    )
    gate("gate", "closed")
    monkeypatch.setattr(refresh_remarks, "LONG", 0.0)
    monkeypatch.setattr(session_summary, "BEHIND", 0.0)
    console.run("INSERT INTO words VALUES ('a', 1);")
    eventually(lambda: "STOP QUERY slow; cancels it" in of_live_table(console, "slow")["remark"])
    for _ in range(2):
        console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY counts IDLE;")
    assert console.rows("SELECT * FROM slow;") == [("a", 1)]
    shown = of_live_table(console, "slow")
    assert (shown["behind"], shown["stale"] > "") == (3, True)
    assert "STOP QUERY slow; cancels it" in footer(console, "slow")
    name, seconds = stale_table(console.session.parts) or ("", 0.0)
    assert (name, seconds > 0) == ("slow", True)
    gate("gate", "open")
    console.run("AWAIT QUERY slow IDLE;")
    assert console.rows("SELECT * FROM slow;") == [("a", 4)]
    remark = of_live_table(console, "slow")["remark"]
    assert "its inputs change faster: 1 snapshot was skipped; TRIGGER EVERY INTERVAL" in remark
    every = remark.partition("; ")[2].partition(" for counts")[0]
    assert why(console, "LIVE TABLE slow")[1]["to resolve it"].startswith(every)
    console.run(f"CREATE OR REPLACE LIVE TABLE counts {every} AS {COUNTS.partition('counts AS ')[2]}")
    shown = console.run("SHOW CREATE LIVE TABLE counts;")[0]
    assert isinstance(shown, Text) and "TRIGGER EVERY '" in shown.text


def test_kept_rows_with_long_offsets_are_the_same_rows() -> None:
    texts = pa.table({"s": pa.array(["a"], pa.large_string())})
    read = fitted(texts, StructType([StructField("s", StringType())]), keys=("s",))
    assert read.to_pydict() == {"s": ["a"]}
    with pytest.raises(Misfit):
        fitted(texts, StructType([StructField("s", LongType())]))
