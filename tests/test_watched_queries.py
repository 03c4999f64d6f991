"""WATCH of a SELECT over live tables, charts of aggregates, and PIVOT without IN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, drop_tables
from scripts import run_here
from test_server import Host, run
from test_server import rows_of as rows_on

from streamsql.errors import RuleFault, Source, StreamsqlError
from streamsql.output.live_frames import View, frame
from streamsql.results import Live
from streamsql.server.client import RemoteSession

ROOMS = (
    "streamsql/runtime/handlers/live_results.py",
    "streamsql/runtime/handlers/staged_select.py",
    "streamsql/plan/lowering/own_relations.py",
    "streamsql/runtime/embedded/pivots.py",
)

SALES = """CREATE STREAM sales (hour INT, class STRING, city STRING, n INT) USING values;
CREATE LIVE TABLE per AS SELECT hour, class, city, sum(n) AS n FROM sales GROUP BY hour, class, city;
INSERT INTO sales VALUES (1, 'x', 'Rome', 2), (1, 'x', 'Oslo', 3), (2, 'y', 'Rome', 4), (1, 'y', 'Oslo', 7);
AWAIT QUERY per IDLE;
"""


def watched(console: Console, statement: str) -> Live:
    live = console.run(statement)[0]
    assert isinstance(live, Live)
    return live


def rows_of(live: Live) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, live.take(100, 0, None).rows))


@pytest.mark.slow
def test_a_select_over_live_tables_is_watched_while_its_inputs_change(
    console: Console, eventually: Callable[..., None]
) -> None:
    console.run(SALES)
    console.run(
        "CREATE TEMPORARY VIEW names AS SELECT * FROM VALUES ('x', 'first'), ('y', 'second') AS t(class, name);"
    )
    query = "SELECT name, sum(n) AS n FROM per JOIN names USING (class) GROUP BY name"
    live = watched(console, f"WATCH {query};")
    eventually(lambda: rows_of(live) == sorted(console.rows(f"{query};")))
    assert rows_of(live) == [("first", 5), ("second", 11)]
    assert "SELECT: 2 rows · running" in frame(live, View(width=100)).footer[0]
    # No query of the workspace: it is there as long as it is shown.
    assert [row[0] for row in console.rows("SHOW QUERIES;")] == ["per"]
    console.run("INSERT INTO sales VALUES (3, 'x', 'Rome', 100); AWAIT QUERY per IDLE;")
    eventually(lambda: rows_of(live) == [("first", 105), ("second", 11)])

    drawn = watched(
        console, "WATCH (SELECT hour, class, n FROM per WHERE n < 100) AS CHART (hour, sum(n), class);"
    )
    eventually(lambda: len(rows_of(drawn)) == 4)
    assert (drawn.mode, drawn.chart, drawn.combine) == ("chart", ("hour", "n", "class"), "sum")
    changes = watched(console, "WATCH (SELECT max(hour) AS m FROM per) EVERY INTERVAL 1 SECOND AS CHANGES;")
    assert (changes.mode, changes.every) == ("changes", 1.0)
    for shown in (live, drawn, changes):
        shown.close()
        assert shown.said() == ""
    assert list(console.session.parts.queries.all) == ["per"]
    console.run("DROP LIVE TABLE per;")


@pytest.mark.slow
def test_the_rows_of_a_live_table_whose_query_failed_are_told_to_stand(
    console: Console, eventually: Callable[..., None]
) -> None:
    console.run(
        "CREATE STREAM numbers (v INT) USING values; CREATE LIVE TABLE inverse AS SELECT v, 1 / v AS i FROM numbers;"
        "INSERT INTO numbers VALUES (1); AWAIT QUERY inverse IDLE; INSERT INTO numbers VALUES (0);"
    )
    with pytest.raises(StreamsqlError):
        console.run("AWAIT QUERY inverse IDLE;")
    selected = console.run("SELECT v FROM inverse;")[-1]
    live = watched(console, "WATCH SELECT v FROM inverse;")
    for notes in (selected.notes, live.notes):
        assert [note.code for note in notes] == ["LIVE_TABLE_STANDS"]
        assert str(notes[0]).startswith(
            "the rows of inverse are those until its query failed: division by zero"
        )
    eventually(lambda: rows_of(live) == [(1,)])
    live.close()
    console.run("DROP LIVE TABLE inverse; DROP STREAM numbers;")


@pytest.mark.slow
def test_an_aggregate_in_a_chart_and_a_pivot_without_in(console: Console) -> None:
    console.run(SALES)
    live = watched(console, "WATCH per AS CHART (hour, sum(n));")
    assert (live.chart, live.combine) == (("hour", "n"), "sum")
    made = frame(live, View(width=70, height=16, mode="chart"))
    assert made.lines[0].strip() == "sum(n) over hour" and made.lines[-1].strip() == "x: hour   y: sum(n)"
    live.close()
    counted = watched(console, "WATCH per AS CHART (class, count(*));")
    lines = frame(counted, View(width=60, height=8, mode="chart")).lines
    assert [(line.split()[0], line.split()[-1]) for line in lines[1:3]] == [("x", "2"), ("y", "2")]
    counted.close()

    listed = console.rows(
        "SELECT * FROM (SELECT hour, class, n FROM per) PIVOT (sum(n) FOR class IN ('x', 'y')) ORDER BY hour;"
    )
    asked = console.run(
        "SELECT * FROM (SELECT hour, class, n FROM per) PIVOT (sum(n) FOR class) ORDER BY hour;"
    )[0]
    assert (asked.columns, list(asked.rows)) == (("hour", "x", "y"), listed)  # type: ignore[attr-defined]
    assert listed == [(1, 5, 7), (2, None, 4)]
    several = console.run(
        """WITH p AS (SELECT class, city, n FROM per)
        SELECT q.* FROM p AS a PIVOT (sum(a.n) AS s, count(*) AS c FOR a.city) AS q ORDER BY class;"""
    )[0]
    assert several.columns == ("class", "Oslo_s", "Oslo_c", "Rome_s", "Rome_c")  # type: ignore[attr-defined]
    assert list(several.rows) == [("x", 3, 1, 2, 1), ("y", 7, 1, 4, 1)]  # type: ignore[attr-defined]
    console.run("CREATE TABLE kept USING parquet AS SELECT * FROM VALUES ('a', 1), ('b', 2) AS t(k, v);")
    assert console.rows("SELECT a, b FROM kept PIVOT (max(v) FOR k);") == [(1, 2)]
    as_in_duckdb = console.run("PIVOT kept ON k USING max(v);")[0]
    assert list(as_in_duckdb.rows) == [(1, 2)]  # type: ignore[attr-defined]
    console.run("DROP TABLE kept;")
    with pytest.raises(RuleFault, match="PIVOT without IN over a stream") as raised:
        console.run("SELECT * FROM sales PIVOT (sum(n) FOR class);")
    assert "FOR class IN ('a', 'b', …))" in raised.value.hint


def test_a_watched_select_in_a_script_ends_with_the_queries_that_feed_it(spark: Any, tmp_path: Path) -> None:
    script = """CREATE STREAM words (word STRING, n INT) USING values;
        INSERT INTO words VALUES ('b', 1), ('a', 2), ('a', 5);
        CREATE LIVE TABLE counts TRIGGER AVAILABLE NOW AS SELECT word, sum(n) AS total FROM words GROUP BY word;
        WATCH SELECT word FROM counts WHERE total > 1;"""
    outcome = run_here(spark, tmp_path, Source("s.sql", script), format="csv")
    assert (outcome.code, outcome.out.splitlines()[-2:]) == (0, ["word", "a"]), outcome.err


@pytest.fixture
def client(spark: Any, tmp_path: Path) -> Iterator[RemoteSession]:
    host = Host(tmp_path / "served", spark)
    yield host.attach(interactive=True)
    host.close()
    drop_tables(spark)


@pytest.mark.slow
def test_a_client_of_a_server_watches_draws_and_pivots(
    client: RemoteSession, eventually: Callable[..., None]
) -> None:
    run(client, SALES)
    query = "SELECT class, sum(n) AS n FROM per GROUP BY class"
    live = run(client, f"WATCH {query};")
    assert isinstance(live, Live)
    eventually(lambda: rows_of(live) == [("x", 5), ("y", 11)])
    run(client, "INSERT INTO sales VALUES (3, 'x', 'Rome', 100); AWAIT QUERY per IDLE;")
    eventually(lambda: rows_of(live) == [("x", 105), ("y", 11)])
    live.close()
    drawn = run(client, "WATCH (SELECT hour, class, n FROM per) AS CHART (hour, sum(n), class);")
    assert isinstance(drawn, Live) and (drawn.mode, drawn.chart, drawn.combine) == (
        "chart",
        ("hour", "n", "class"),
        "sum",
    )
    eventually(lambda: len(rows_of(drawn)) == 5)
    lines = frame(drawn, View(width=60, height=16, mode="chart")).lines
    assert lines[0].strip() == "sum(n) over hour, a line for each class"
    assert lines[-1].strip() == "x: hour   y: sum(n)"
    drawn.close()
    pivot = "SELECT * FROM (SELECT hour, class, n FROM per) PIVOT (sum(n) FOR class) ORDER BY hour;"
    assert (run(client, pivot).columns, rows_on(client, pivot)) == (  # type: ignore[attr-defined]
        ("hour", "x", "y"),
        [(1, 5, 7), (2, None, 4), (3, 100, None)],
    )
    with pytest.raises(RuleFault, match="the y of a chart is a number, and city is string") as raised:
        run(client, "WATCH per AS CHART (hour, city);")
    assert raised.value.hint.startswith("count(city)") and raised.value.span
    assert [row[0] for row in rows_on(client, "SHOW QUERIES;")] == ["per"]
    run(client, "DROP LIVE TABLE per;")
