"""Live tables over live tables: refreshed after micro-batches of their inputs, from consistent snapshots."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Console
from data_files import put_whole
from pyspark.sql.types import LongType, StructType
from scripts import run_here
from test_explain import program, run_program, table, then

from streamsql.catalog import CurrentCatalog
from streamsql.definitions import Query
from streamsql.errors import QueryFault, Source, StreamsqlError
from streamsql.results import Live, Rows, Text
from streamsql.runtime.embedded.live_rows import LiveRows
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.live.refresh_scheduler import Refreshes
from streamsql.runtime.live.refresher import Refresher
from streamsql.runtime.queries import start_refresh
from streamsql.runtime.queries.start_refresh import computed

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

COUNTS = """
CREATE STREAM words (word STRING, n INT) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS c FROM words GROUP BY word;
"""
TOP = "CREATE LIVE TABLE top AS SELECT word, c FROM counts ORDER BY c DESC, word LIMIT 2;"


def of_live_table(console: Console, name: str) -> dict[str, Any]:
    """The row of SHOW LIVE TABLES."""
    shown = console.run("SHOW LIVE TABLES;")[0]
    assert isinstance(shown, Rows)
    return next(dict(zip(shown.columns, row, strict=True)) for row in shown.rows if row[0] == name)


def test_a_live_table_over_a_live_table_follows_it(console: Console) -> None:
    started = console.run(COUNTS + TOP)[-1]
    assert [str(note) for note in started.notes] == ["computed again after micro-batches of counts"]
    assert console.rows("SELECT * FROM top;") == []
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1), ('c', 1), ('b', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("b", 2), ("a", 1)]
    console.run("INSERT INTO words VALUES ('c', 1), ('c', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("c", 3), ("b", 2)]
    shown = of_live_table(console, "top")
    assert (shown["rows"], shown["inputs"], shown["behind"], shown["remark"]) == (2, "counts", 0, "")
    assert shown["refresh ms"] > 0
    described = dict(console.rows("DESCRIBE LIVE TABLE counts;"))
    assert described["read by"] == "top"
    created = console.run("SHOW CREATE LIVE TABLE top;")[0]
    assert isinstance(created, Text) and created.text.startswith("CREATE LIVE TABLE top\n  AS SELECT word, c")
    assert ("top", "running") in [row[:2] for row in console.rows("SHOW QUERIES;")]
    assert len(console.rows("SHOW PROGRESS top;")) == 3


@pytest.mark.slow
def test_a_new_one_has_its_rows_at_once_and_joins_static_tables_and_others(console: Console) -> None:
    console.run(f"{COUNTS} INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 1); AWAIT QUERY counts IDLE;")
    console.run(
        """CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'Anna'), ('z', 'Zoe') AS t(word, name);
        CREATE LIVE TABLE named AS
        SELECT name, c FROM names LEFT JOIN counts USING (word)
        WHERE name IN (SELECT name FROM names) ORDER BY name;
        CREATE LIVE TABLE best AS SELECT max(c) AS c FROM named;"""
    )
    assert console.rows("SELECT * FROM named;") == [("Anna", 2), ("Zoe", None)]
    assert console.rows("SELECT n.name FROM best JOIN named n USING (c);") == [("Anna",)]


# What Spark runs over tables and this console does not read, and its rows over ('a', 2), ('b', 1).
READ_BY_SPARK = {
    "SELECT * FROM counts PIVOT (sum(c) FOR word IN ('a', 'b'))": [(2, 1)],
    "SELECT * FROM counts UNPIVOT (v FOR k IN (c))": [("a", "c", 2), ("b", "c", 1)],
    "SELECT word, x FROM counts LATERAL VIEW explode(sequence(1, c)) AS x": [("a", 1), ("a", 2), ("b", 1)],
    "SELECT TRANSFORM(word) USING 'cat' AS (w STRING) FROM counts": [("a",), ("b",)],
    "TABLE counts": [("a", 2), ("b", 1)],
    "SELECT word, sum(c) OVER w AS s FROM counts WINDOW w AS (ORDER BY word)": [("a", 2), ("b", 3)],
    "FROM counts |> WHERE c > 1": [("a", 2)],
}


@pytest.mark.slow
def test_any_select_that_spark_runs_may_be_refreshed(console: Console) -> None:
    console.run(f"{COUNTS} INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 1); AWAIT QUERY counts IDLE;")
    for number, (query, rows) in enumerate(READ_BY_SPARK.items()):
        console.run(f"CREATE LIVE TABLE t{number} AS {query};")
        assert sorted(console.rows(f"SELECT * FROM t{number};")) == rows, query


@pytest.mark.slow
def test_a_diamond_is_always_seen_after_the_same_micro_batch(console: Console) -> None:
    console.run(
        f"""{COUNTS}
        CREATE LIVE TABLE total AS SELECT sum(c) AS t FROM counts;
        CREATE LIVE TABLE most AS SELECT max(c) AS m FROM counts;
        CREATE LIVE TABLE both AS SELECT t, m, (SELECT count(*) FROM counts) AS k FROM total, most;"""
    )
    live = console.run("WATCH both AS CHANGES;")[0]
    assert isinstance(live, Live)
    live.changes(100, 0, None)
    for _ in range(4):
        console.run("INSERT INTO words VALUES ('a', 1);")
    console.run("AWAIT QUERY both IDLE;")
    seen = [row[1:] for row in live.changes(100, 0, None).rows]
    live.close()
    assert seen[-1] == (4, 4, 1)
    assert all(t == m for t, m, _ in seen if t is not None)


def test_tables_that_one_query_feeds_are_read_after_the_same_micro_batch(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE SINK a USING memory; CREATE SINK b USING memory;
        EXECUTE STATEMENT SET AS QUERY ab BEGIN
        INSERT INTO a SELECT word FROM words; INSERT INTO b SELECT n FROM words; END;
        CREATE LIVE TABLE sizes AS SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b;"""
    )
    live = console.run("WATCH sizes AS CHANGES;")[0]
    assert isinstance(live, Live)
    live.changes(100, 0, None)
    for _ in range(3):
        console.run("INSERT INTO words VALUES ('x', 1), ('y', 2);")
    console.run("AWAIT QUERY ALL IDLE;")
    seen = [row[1:] for row in live.changes(100, 0, None).rows]
    live.close()
    assert seen[-1] == (6, 6)
    assert all(a == b for a, b in seen)


@pytest.mark.slow
def test_a_failure_is_that_of_one_table_and_start_resumes(console: Console) -> None:
    console.run(
        f"{COUNTS} CREATE LIVE TABLE shares AS SELECT 10 / (2 - max(c)) AS s FROM counts;"
        "CREATE LIVE TABLE doubled AS SELECT s * 2 AS d FROM shares;"
        "CREATE LIVE TABLE most AS SELECT max(c) AS m FROM counts;"
        "INSERT INTO words VALUES ('a', 1); AWAIT QUERY ALL IDLE;"
    )
    with pytest.raises(QueryFault, match="query shares failed: division by zero"):
        console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY shares IDLE;")
    console.run("AWAIT QUERY most IDLE; AWAIT QUERY doubled IDLE;")
    assert console.rows("SELECT * FROM most;") == [(2,)]
    assert console.rows("SELECT s, d FROM shares, doubled;") == [(10.0, 20.0)]
    states = {row[0]: row[1] for row in console.rows("SHOW QUERIES;")}
    assert states == {"counts": "running", "shares": "FAILED", "doubled": "running", "most": "running"}
    assert "START QUERY shares;" in of_live_table(console, "shares")["remark"]
    assert "query shares failed: division by zero" in of_live_table(console, "doubled")["remark"]
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY counts IDLE;")
    console.run("START QUERY shares; AWAIT QUERY doubled IDLE;")
    assert console.rows("SELECT s, d FROM shares, doubled;") == [(-10.0, -20.0)]


def test_one_that_fails_at_once_is_not_there(console: Console) -> None:
    console.run(f"{COUNTS} INSERT INTO words VALUES ('a', 1); AWAIT QUERY counts IDLE;")
    with pytest.raises(QueryFault, match="division by zero"):
        console.run("CREATE LIVE TABLE bad AS SELECT 1 / (c - 1) AS x FROM counts;")
    with pytest.raises(StreamsqlError, match="there is no column d"):
        console.run("CREATE LIVE TABLE bad AS SELECT d FROM counts;")
    assert [row[0] for row in console.rows("SHOW LIVE TABLES;")] == ["counts"]


def test_more_rows_than_are_kept_fail_it(console: Console) -> None:
    console.run(f"{COUNTS} CREATE LIVE TABLE few RETAIN 1 ROWS AS SELECT word FROM counts;")
    with pytest.raises(QueryFault, match="more than 1 row") as caught:
        console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY few IDLE;")
    assert caught.value.code == "LIMIT_REACHED"
    assert caught.value.hint == "START QUERY few RETAIN 10 ROWS;"
    assert caught.value.hint[:-1] in of_live_table(console, "few")["remark"]
    console.run(f"{caught.value.hint} AWAIT QUERY few IDLE;")
    (definition,) = console.run("SHOW CREATE LIVE TABLE few;")
    assert isinstance(definition, Text)
    assert "RETAIN 10 ROWS" in definition.text
    with pytest.raises(QueryFault, match="more than 3 rows") as caught:
        console.run("CREATE LIVE TABLE pairs RETAIN 3 ROWS AS SELECT a.word FROM counts a, few b;")
    assert "it reads 2 of counts and 2 of few: a join without a key" in caught.value.detail.replace(
        "2 of few and 2 of counts", "2 of counts and 2 of few"
    )


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("CREATE OR REPLACE LIVE TABLE counts AS SELECT * FROM top;", "CIRCULAR_DEFINITION", "counts → top → counts"),
        ("CREATE OR REPLACE LIVE TABLE top AS SELECT * FROM top;", "CIRCULAR_DEFINITION", "top → top"),
        ("DROP LIVE TABLE counts;", "IN_USE", "counts is read by top"),
        ("DROP QUERY counts;", "IN_USE", "counts is read by top"),
        ("CREATE LIVE TABLE x OUTPUT MODE UPDATE AS SELECT * FROM top;", "OUTPUT_MODE_NOT_SUPPORTED", "update"),
        ("CREATE LIVE TABLE x TRIGGER AVAILABLE NOW AS SELECT * FROM top;", "TRIGGER_NOT_SUPPORTED", "TRIGGER"),
        ("CREATE LIVE TABLE x KEY (d) AS SELECT word FROM top;", "UNKNOWN_COLUMN", "the KEY of x, d"),
    ],
)  # fmt: skip
def test_what_is_refused(console: Console, statement: str, code: str, words: str) -> None:
    console.run(COUNTS + TOP)
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement)
    assert caught.value.code == code
    assert words in caught.value.message + caught.value.detail
    if code == "IN_USE":
        assert caught.value.hint == "DROP LIVE TABLE top; first"
        console.run("DROP LIVE TABLE top; " + statement)


@pytest.mark.slow
def test_an_input_that_is_replaced_or_stopped(console: Console) -> None:
    console.run(f"{COUNTS} {TOP} INSERT INTO words VALUES ('a', 1); AWAIT QUERY top IDLE;")
    console.run("STOP QUERY counts; AWAIT QUERY top IDLE;")
    assert "the query counts is stopped; START QUERY counts;" in of_live_table(console, "top")["remark"]
    console.run(
        "CREATE OR REPLACE LIVE TABLE counts AS SELECT word, sum(n) * 10 AS c FROM words GROUP BY word;"
    )
    console.run("AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("a", 10)]
    assert "counts began anew" in of_live_table(console, "top")["remark"]
    console.run("CREATE OR REPLACE LIVE TABLE counts AS SELECT word, CAST(n AS STRING) AS c FROM words;")
    console.run("AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("a", "1")]
    console.run("STOP QUERY top; CREATE OR REPLACE LIVE TABLE counts AS SELECT n AS c FROM words;")
    with pytest.raises(StreamsqlError) as refused:
        console.run("START QUERY top;")
    assert refused.value.message == "top cannot be computed any more: there is no column word"
    assert "CREATE OR REPLACE LIVE TABLE top AS …" in refused.value.hint
    assert console.rows("SELECT * FROM top;") == [("a", "1")]
    assert of_live_table(console, "top")["remark"] == "it is stopped; START QUERY top; refreshes it again"


def test_a_live_table_keeps_nothing_of_readers_that_have_stopped(console: Console) -> None:
    console.run(COUNTS + TOP + "INSERT INTO words VALUES ('a', 1); AWAIT QUERY top IDLE;")
    counts = console.session.parts.live.loaded("counts")
    watchers = len(counts.watchers)
    for _ in range(3):
        console.run("STOP QUERY top; STOP QUERY counts; START QUERY counts; START QUERY top;")
        console.run("INSERT INTO words VALUES ('b', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("b", 3), ("a", 1)]
    assert len(counts.watchers) == watchers


@pytest.mark.slow
def test_a_bounded_script_ends_with_the_last_snapshot(spark: Any, tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        put_whole(tmp_path / "in" / f"{n}.csv", f"a,{n}\nb,{n}\n")
    script = f"""
        CREATE STREAM words (word STRING, n INT) USING csv OPTIONS (path '{tmp_path}/in', maxFilesPerTrigger 1);
        CREATE LIVE TABLE counts TRIGGER AVAILABLE NOW AS SELECT word, count(*) AS c FROM words GROUP BY word;
        {TOP}
        AWAIT QUERY ALL;
        SELECT * FROM top;
        WATCH top;
        STOP QUERY top; START QUERY counts; AWAIT QUERY counts; START QUERY top; AWAIT QUERY top;
        SELECT count(*) AS n FROM top;
        DROP LIVE TABLE top;"""
    outcome = run_here(spark, tmp_path, Source("bounded.sql", script), format="csv")
    assert (outcome.code, outcome.out) == (0, "word,c\na,3\nb,3\nword,c\na,3\nb,3\nn\n2\n"), outcome.err


@pytest.mark.slow
def test_the_program_of_a_live_table_over_live_tables_runs_by_itself(console: Console) -> None:
    console.run(f"{COUNTS} {TOP} INSERT INTO words VALUES ('b', 1), ('b', 1), ('a', 1);")
    console.run("AWAIT QUERY top IDLE;")
    reading = program(console, "SELECT word FROM top WHERE c > 1")
    # Over no rows, before the first micro-batch, it would fail.
    last = program(console, "CREATE LIVE TABLE last AS SELECT min(c) AS c, 100 / count(*) AS x FROM top")
    assert "computed again after micro-batches of counts" in reading
    console.run("STOP QUERY ALL;")
    assert table(run_program(reading))[1:] == [["b"]]
    for query in console.session.spark.streams.active:
        query.stop()
    ending = last.replace(".start()", ".trigger(availableNow=True).start()")
    shown = run_program(then(ending, "last_rows.frame(spark).show(truncate=False)"))
    assert table(shown)[1:] == [["1", "50.0"]]


def test_the_plan_of_spark_is_that_of_its_select(console: Console) -> None:
    console.run(COUNTS)
    shown = console.run(f"EXPLAIN {TOP}")[0]
    assert isinstance(shown, Text)
    assert "TakeOrderedAndProject" in shown.text


# ---- the scheduler, without Spark --------------------------------------------------------------


def rows_of(*values: int) -> pa.Table:
    return pa.table({"n": list(values)})


class Tables:
    """Live tables as the scheduler sees them: r, s and others that queries feed, and those over them."""

    def __init__(self) -> None:
        self.live = LiveTables(None, lambda name: True)
        self.current = CurrentCatalog()
        self.refreshes = Refreshes(self.live, self.current)

    def fed(self, query: str, *names: str) -> None:
        for name in names:
            self.live[name] = LiveRows(StructType().add("n", LongType()), "complete", None, 100)
        self.current.update(lambda catalog: catalog.having(Query(query, names, "")))

    def over(self, name: str, inputs: tuple[str, ...], compute: Callable[..., pa.Table]) -> Refresher:
        self.live[name] = rows = LiveRows(StructType().add("n", LongType()), "complete", None, 100)
        self.current.update(
            lambda catalog: catalog.having(Query(name, (name,), "", inputs=inputs, live_table=True))
        )

        def of_inputs(values: Any, cancel: Any) -> pa.Table:
            return compute(*(values[i].table for i in inputs))

        refresher = Refresher(name, inputs, rows, of_inputs, lambda report: None)
        self.refreshes.start(refresher)
        return refresher

    def settle(self, refresher: Refresher) -> list[int]:
        while not self.refreshes.settled(refresher):
            self.refreshes.wait(refresher, 0.05)  # what it waits for may have come before
        found: list[int] = refresher.rows.now().table["n"].to_pylist()
        return found


def test_snapshots_that_come_while_it_is_computed_are_skipped_and_counted() -> None:
    tables, entered, go_on = Tables(), threading.Semaphore(0), threading.Semaphore(0)
    tables.fed("q", "r")
    tables.live["r"].take(rows_of(0), 0)

    def slow(r: pa.Table) -> pa.Table:
        entered.release()
        assert go_on.acquire(timeout=30)
        return r

    one = tables.over("one", ("r",), slow)
    entered.acquire(timeout=30)
    for batch in (1, 2, 3):
        tables.live["r"].take(rows_of(batch), batch)
    assert one.behind == 4
    assert one.stale > 0
    go_on.release(2)
    assert tables.settle(one) == [3]
    assert (one.done, one.skipped, one.behind, one.stale, one.slow) == (2, 2, 0, 0.0, False)
    entered.acquire(timeout=30)
    tables.live["r"].take(rows_of(4), 4)
    entered.acquire(timeout=30)
    for batch in (5, 6):
        tables.live["r"].take(rows_of(batch), batch)
    go_on.release(2)
    assert tables.settle(one) == [6]
    assert (one.done, one.skipped, one.slow) == (4, 3, True)
    tables.refreshes.close()


@pytest.mark.parametrize("place", ["_round", "_due"])
def test_an_unexpected_exception_ends_one_table_and_the_others_are_refreshed(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tables = Tables()
    tables.fed("q", "r")
    tables.fed("p", "s")
    works = getattr(tables.refreshes, place)

    def sometimes(members: list[Refresher], at: Any) -> Any:
        if any(member.key.startswith("bad") for member in members):
            raise ZeroDivisionError("division by zero")
        return works(members, at)

    monkeypatch.setattr(tables.refreshes, place, sometimes)
    for number in range(5):  # more than there are workers
        tables.live["r"].take(rows_of(number), number)
        bad = tables.over(f"bad{number}", ("r",), lambda r: r)
        assert bad.awaitTermination(30)
        fault = bad.exception()
        assert isinstance(fault, StreamsqlError) and fault.code == "INTERNAL"
        assert fault.message == "ZeroDivisionError: division by zero"
    assert "[INTERNAL] a statement or a query fails: division by zero" in caplog.text
    tables.live["s"].take(rows_of(7), 0)
    good = tables.over("good", ("s",), lambda s: s)
    assert tables.settle(good) == [7]
    tables.refreshes.close()


def test_a_snapshot_that_is_counted_after_it_was_taken_leaves_nothing_behind() -> None:
    tables = Tables()
    tables.fed("q", "r")
    tables.live["r"].take(rows_of(1), 0)
    one = tables.over("one", ("r",), lambda r: r)
    two = tables.over("two", ("one",), lambda one: one)
    assert tables.settle(two) == [1]
    counted = (one._arrived, two._arrived)
    tables.refreshes._arrived("q")  # as on the thread that brings rows, when a round was faster
    assert (one._arrived, two._arrived) == (counted[0] + 1, counted[1] + 1)
    deadline = time.monotonic() + 30
    while one.behind or two.behind:
        assert time.monotonic() < deadline, (one.behind, two.behind)
        tables.refreshes.wait(one, 0.1)
    assert (one.stale, two.stale) == (0.0, 0.0)
    tables.refreshes.close()


def test_a_reader_waits_for_an_input_that_has_stayed_behind_another() -> None:
    tables = Tables()
    tables.fed("q", "r")
    tables.live["r"].take(rows_of(1), 0)
    one = tables.over("one", ("r",), lambda r: r)
    both = tables.over("both", ("one", "r"), lambda one, r: pa.concat_tables([one, r]))
    apart = tables.over("apart", ("one",), lambda one: one)
    assert (tables.settle(both), tables.settle(apart)) == ([1, 1], [1])
    one.stop()
    tables.live["r"].take(rows_of(2), 1)
    assert (tables.settle(both), both.waits_for, both.behind) == ([1, 1], "one", 1)
    assert (tables.settle(apart), apart.waits_for) == ([1], "")
    tables.over("one", ("r",), lambda r: r)
    assert (tables.settle(both), both.waits_for, both.behind) == ([2, 2], "", 0)
    tables.refreshes.close()


def test_tables_of_one_query_are_taken_when_all_have_the_micro_batch() -> None:
    tables = Tables()
    tables.fed("q", "r", "s")
    pairs = list[tuple[int, int]]()

    def pair(r: pa.Table, s: pa.Table) -> pa.Table:
        pairs.append((r["n"][0].as_py(), s["n"][0].as_py()))
        return r

    for name in ("r", "s"):
        tables.live[name].take(rows_of(0), 0)
    both = tables.over("both", ("r", "s"), pair)
    tables.settle(both)
    for batch in (1, 2, 3):
        for name in ("r", "s"):
            tables.live[name].take(rows_of(batch), batch)
            tables.settle(both)
    assert pairs == [(0, 0), (1, 1), (2, 2), (3, 3)]
    tables.refreshes.close()


def test_a_refresh_goes_on_with_its_snapshot_while_an_input_is_replaced(
    console: Console, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """CREATE OR REPLACE of the input has removed its rows, and not yet put new ones there."""
    live, one_at_a_time = console.session.parts.live, threading.Lock()

    def meanwhile(*arguments: Any) -> Any:
        with one_at_a_time:
            rows = live.pop("counts")
            try:
                return computed(*arguments)
            finally:
                live["counts"] = rows

    console.run(COUNTS + TOP + "CREATE SINK log USING memory; INSERT INTO log SELECT word, c FROM counts;")
    monkeypatch.setattr(start_refresh, "computed", meanwhile)
    console.run("INSERT INTO words VALUES ('cat', 1); AWAIT QUERY ALL IDLE;")
    # While its input is taken away, a query seems to be idle.
    eventually(lambda: console.rows("SELECT * FROM top;") == [("cat", 1)])
    eventually(lambda: console.rows("SELECT * FROM log;") == [("+I", "cat", 1)])


def test_a_replacement_that_cannot_be_computed_leaves_the_live_table_as_it_was(console: Console) -> None:
    console.run(f"{COUNTS} {TOP} INSERT INTO words VALUES ('a', 1); AWAIT QUERY top IDLE;")
    with pytest.raises(QueryFault, match="query top failed: a"):
        console.run("CREATE OR REPLACE LIVE TABLE top AS SELECT word, raise_error(word) AS c FROM counts;")
    console.run("INSERT INTO words VALUES ('b', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top ORDER BY word;") == [("a", 1), ("b", 1)]
    assert of_live_table(console, "top")["remark"] == ""
