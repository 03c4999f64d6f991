"""Queries over live tables and streams: the result follows both, whichever changes, unless OUTPUT MODE is written."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Console, in_main_run
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import StreamsqlError
from streamsql.runtime.queries.end_with_input import _has_read_all

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

BOTH = """CREATE STREAM orders (dim STRING, n INT) USING values;
CREATE STREAM customers (customer STRING, label STRING) USING values;
CREATE LIVE TABLE agg AS SELECT dim, count(*) AS c FROM orders GROUP BY dim;
CREATE STREAM known AS SELECT label, c AS orders FROM customers JOIN agg ON dim = customer;
"""
SELECTS = {
    "join": "SELECT label, c FROM agg JOIN customers ON dim = customer",
    "outer": "SELECT label, c FROM agg RIGHT JOIN customers ON dim = customer",
    "full": "SELECT dim, label FROM agg FULL JOIN customers ON dim = customer",
    "comma": "SELECT label, c FROM agg, customers WHERE dim = customer",
    "nested": "SELECT label, c FROM (SELECT * FROM customers) JOIN (SELECT * FROM agg WHERE c > 1) ON dim = customer",
    "cte": "WITH q AS (SELECT customer AS dim, label FROM customers) SELECT label, c FROM q JOIN agg USING (dim)",
    "stream": "SELECT * FROM known",
    "groups": "SELECT label, sum(c) AS c FROM agg JOIN customers ON dim = customer GROUP BY label",
    "union": "SELECT dim FROM agg UNION ALL SELECT customer FROM customers",
    "distinct_union": "SELECT dim FROM agg UNION SELECT customer FROM customers",
    "except": "SELECT customer FROM customers EXCEPT SELECT dim FROM agg",
    "exists": "SELECT label FROM customers WHERE EXISTS (SELECT 1 FROM agg WHERE dim = customer)",
    "not_exists": "SELECT label FROM customers WHERE NOT EXISTS (SELECT 1 FROM agg WHERE dim = customer)",
    "in": "SELECT label FROM customers WHERE customer IN (SELECT dim FROM agg WHERE c > 1)",
    "not_in": "SELECT label FROM customers WHERE customer NOT IN (SELECT dim FROM agg)",
    "in_live": "SELECT dim, c FROM agg WHERE dim NOT IN (SELECT customer FROM customers)",
    "scalar": "SELECT label, (SELECT max(c) FROM agg) AS c FROM customers",
    "correlated": "SELECT label, (SELECT max(c) FROM agg WHERE dim = customer) AS c FROM customers",
    "compared": "SELECT dim FROM agg WHERE c > (SELECT count(*) FROM customers)",
    "lateral": "SELECT label, x FROM customers, LATERAL (SELECT max(c) AS x FROM agg WHERE dim <= customer)",
    "hinted": "SELECT /*+ BROADCAST(agg) */ label, c FROM agg JOIN customers ON dim = customer",
}  # fmt: skip
ORDERS = "(SELECT * FROM VALUES ('x', 1), ('y', 1), ('x', 2) t(dim, n))"
CUSTOMERS = (
    "(SELECT * FROM VALUES ('x', 'Xaver'), ('y', 'Yvonne'), ('z', 'Zoe'), ('y', 'Yves') t(customer, label))"
)


def expected(console: Console, select: str) -> list[tuple[object, ...]]:
    """What Spark computes for a SELECT over all rows."""
    relations = (
        f"orders AS {ORDERS}, customers AS {CUSTOMERS}, agg AS (SELECT dim, count(*) AS c FROM orders GROUP BY dim), "
        "known AS (SELECT label, c AS orders FROM customers JOIN agg ON dim = customer)"
    )
    if select.startswith("WITH "):
        select = f"WITH {relations}, {select.removeprefix('WITH ')}"
    else:
        select = f"WITH {relations} {select}"
    return sorted(map(tuple, console.session.spark.sql(select).collect()), key=repr)


SHARES = [{n: s for n, s in SELECTS.items() if in_main_run(n, 5) is main} for main in (True, False)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "selects", [SHARES[0], pytest.param(SHARES[1], marks=pytest.mark.slow)], ids=("some", "others")
)
def test_a_live_table_over_live_tables_and_streams_is_its_select_over_all_rows(
    console: Console, selects: dict[str, str]
) -> None:
    """The rows of each input come before and after those of the others."""
    console.run(BOTH)
    console.run("INSERT INTO customers VALUES ('x', 'Xaver'), ('y', 'Yvonne'); AWAIT QUERY ALL IDLE;")
    for name, select in selects.items():
        started = console.run(f"CREATE LIVE TABLE t_{name} AS {select};")[-1]
        assert {note.code for note in started.notes} & {"STAGES"}, name
    console.run("INSERT INTO orders VALUES ('x', 1), ('y', 1); AWAIT QUERY ALL IDLE;")
    console.run("INSERT INTO customers VALUES ('z', 'Zoe'), ('y', 'Yves'); AWAIT QUERY ALL IDLE;")
    console.run("INSERT INTO orders VALUES ('x', 2); AWAIT QUERY ALL IDLE;")
    for name, select in selects.items():
        rows = sorted(console.rows(f"SELECT * FROM t_{name};"), key=repr)
        assert rows == expected(console, select), name
    for name in {"outer", "union", "not_in", "stream"} & set(selects):
        rows = sorted(console.rows(f"{selects[name]};"), key=repr)
        assert rows == expected(console, selects[name]), name


@pytest.mark.slow
def test_with_an_output_mode_each_row_is_used_once(console: Console) -> None:
    """OUTPUT MODE asks for the query of Spark; a note says what that means."""
    console.run(BOTH)
    console.run("INSERT INTO customers VALUES ('x', 'Xaver');")
    started = console.run(f"CREATE LIVE TABLE once OUTPUT MODE APPEND AS {SELECTS['join']};")[-1]
    assert [str(n) for n in started.notes if n.code == "JOINED_ONCE"] == [
        "each row of customers is used once, with the rows that agg has when the query starts; "
        "later changes of agg do not change the result"
    ]
    console.run("AWAIT QUERY once IDLE; INSERT INTO orders VALUES ('x', 1); AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM once;") == []
    console.run("STOP QUERY once; START QUERY once; INSERT INTO customers VALUES ('x', 'Xenia');")
    console.run("AWAIT QUERY once IDLE;")
    assert console.rows("SELECT * FROM once;") == [("Xenia", 1)]


@pytest.mark.slow
def test_an_insert_writes_the_changes_where_the_sink_takes_them(console: Console, tmp_path: Path) -> None:
    console.run(BOTH)
    console.run("INSERT INTO customers VALUES ('x', 'Xaver'); CREATE SINK kept USING memory;")
    console.run(
        f"INSERT INTO kept {SELECTS['join']}; CREATE TABLE plain (label STRING, c BIGINT) USING parquet;"
    )
    started = console.run(f"INSERT INTO plain {SELECTS['join']};")[-1]
    assert "JOINED_ONCE" in {note.code for note in started.notes}
    console.run("AWAIT QUERY ALL IDLE; INSERT INTO orders VALUES ('x', 1); AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM kept;") == [("+I", "Xaver", 1)]
    assert console.rows("SELECT * FROM plain;") == []
    console.run(f"CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');")
    started = console.run(f"INSERT INTO f OUTPUT MODE APPEND {SELECTS['join']};")[-1]
    assert "JOINED_ONCE" in {note.code for note in started.notes}


def test_without_stages_such_a_query_is_refused_with_what_does_the_same(console: Console) -> None:
    console.run(f"{BOTH} SET streamsql.stages = off;")
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE LIVE TABLE e AS {SELECTS['join']};")
    assert caught.value.message == "the query reads the live table agg and the stream customers"
    assert caught.value.hint.splitlines()[0].startswith("OUTPUT MODE APPEND")
    console.run(caught.value.hint.partition("on; or:\n")[2])
    console.run("INSERT INTO customers VALUES ('x', 'Xaver'); AWAIT QUERY ALL IDLE;")
    console.run("INSERT INTO orders VALUES ('x', 1); AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM e;") == [("Xaver", 1)]


@pytest.mark.slow
def test_an_aggregate_without_group_by_has_its_row_before_the_first_rows(console: Console) -> None:
    """A batch over no rows gives one row, and so does the live table; GROUP BY and HAVING give none."""
    console.run(
        """CREATE STREAM s (k STRING, n INT) USING values;
        CREATE LIVE TABLE total AS SELECT count(*) AS c, sum(n) AS n FROM s WHERE n > 1;
        CREATE LIVE TABLE by_key AS SELECT k, count(*) AS c FROM s GROUP BY k;
        CREATE LIVE TABLE many AS SELECT count(*) AS c FROM s HAVING count(*) > 1;
        CREATE LIVE TABLE few AS SELECT count(*) AS c FROM s HAVING count(*) < 1;
        CREATE LIVE TABLE mean AS SELECT avg(c) AS a FROM (SELECT count(*) AS c FROM s);"""
    )
    assert console.rows("SELECT * FROM total;") == [(0, None)]
    assert console.rows("SELECT * FROM by_key;") == console.rows("SELECT * FROM many;") == []
    assert console.rows("SELECT * FROM few;") == [(0,)]
    assert console.rows("SELECT * FROM mean;") == [(0.0,)]
    assert console.rows("SELECT count(*) AS c FROM s;") == [(0,)]
    assert console.rows("SELECT max(c) AS c FROM (SELECT count(*) AS c FROM s);") == [(0,)]
    console.run("INSERT INTO s VALUES ('a', 1), ('a', 5); AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM total;") == [(1, 5)]
    assert console.rows("SELECT * FROM few;") == []
    assert console.rows("SELECT * FROM many;") == [(2,)]


OVER_NO_ROWS = {
    "direct": "SELECT 100 / count(*) AS x FROM s",
    "of_list": "SELECT sort_array(collect_list(n))[0] AS x FROM s",
    "in_stages": "SELECT 100 / count(*) AS x FROM (SELECT n, row_number() OVER (ORDER BY n) AS r FROM s)",
    "as_scalar": "SELECT (SELECT 100 / count(*) FROM s) AS x",
    "over_live": "SELECT 100 / count(*) AS x FROM c",
    "over_empty": "SELECT count(*) AS x FROM over_live",
}
"""SELECTs over the streams and live tables of EMPTY that fail where these have no rows."""
EMPTY = "CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE c AS SELECT n FROM s;"
WHY_EMPTY = (
    "has no result before all its inputs have had rows: over those of now its SELECT fails, division by zero"
)


def test_a_select_that_fails_over_no_rows_has_a_result_after_the_first_ones(console: Console) -> None:
    console.run(EMPTY)
    for name, select in OVER_NO_ROWS.items():
        started = console.run(f"CREATE LIVE TABLE {name} AS {select};")[-1]
        assert "LIVE_TABLE_EMPTY" in [note.code for note in started.notes], name
        assert console.rows(f"SELECT * FROM {name};") == [], name
    notes = console.run("SELECT * FROM over_empty;")[0].notes
    assert [str(note) for note in notes] == [f"over_empty {WHY_EMPTY}"]
    assert dict(console.rows("DESCRIBE QUERY over_live;"))["remark"] == WHY_EMPTY.removeprefix("has ")
    replaced = console.run("CREATE OR REPLACE LIVE TABLE over_live AS SELECT 50 / count(*) AS x FROM c;")[0]
    assert f"over_live {WHY_EMPTY}" in [str(note) for note in replaced.notes]
    for select in (OVER_NO_ROWS["direct"], OVER_NO_ROWS["as_scalar"]):  # all that there is: no rows
        with pytest.raises(StreamsqlError, match="division by zero"):
            console.run(f"{select};")
    console.run("INSERT INTO s VALUES (4), (3); AWAIT QUERY ALL IDLE;")
    expected = {
        "direct": 50,
        "of_list": 3,
        "in_stages": 50,
        "as_scalar": 50,
        "over_live": 25,
        "over_empty": 1,
    }
    assert {name: console.rows(f"SELECT x FROM {name};")[0][0] for name in OVER_NO_ROWS} == expected
    for select in (OVER_NO_ROWS["direct"], OVER_NO_ROWS["as_scalar"]):
        assert console.rows(f"{select};") == [(50,)]
    assert "remark" not in dict(console.rows("DESCRIBE QUERY over_live;"))
    with pytest.raises(StreamsqlError, match="division by zero"):  # of rows that are there
        console.run("CREATE LIVE TABLE wrong AS SELECT n / 0 AS x FROM c;")


@pytest.mark.slow
def test_a_query_that_ends_with_its_input_and_has_had_no_rows_fails_over_these(console: Console) -> None:
    console.run(EMPTY)
    console.run(f"CREATE LIVE TABLE e TRIGGER AVAILABLE NOW AS {OVER_NO_ROWS['as_scalar']};")
    with pytest.raises(StreamsqlError, match="query e failed: division by zero"):
        console.run("AWAIT QUERY e;")


def test_the_row_over_no_rows_outlives_the_console(opened: Open) -> None:  # noqa: F811
    one = opened()
    one.run("CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE total AS SELECT count(*) AS c FROM s;")
    two = opened()
    assert two.rows("SELECT * FROM total;") == [(0,)]
    two.run("START QUERY total; INSERT INTO s VALUES (1); AWAIT QUERY total IDLE;")
    assert two.rows("SELECT * FROM total;") == [(1,)]


def test_an_insert_of_a_workspace_that_ran_as_one_query_goes_on_so(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    """Its rows have been written without _op; with stages they would be written again."""
    one = opened()
    one.run(f"{BOTH} CREATE SINK f USING json OPTIONS (path '{tmp_path}/f');")
    one.run("INSERT INTO orders VALUES ('x', 1); AWAIT QUERY ALL IDLE;")
    one.run(
        f"INSERT INTO f OUTPUT MODE APPEND {SELECTS['join']}; INSERT INTO customers VALUES ('x', 'Xaver');"
    )
    one.run("AWAIT QUERY f IDLE; STOP QUERY f;")
    definitions = tmp_path / "w" / "catalog.sql"
    definitions.write_text(definitions.read_text("utf-8").replace("OUTPUT MODE APPEND", ""), "utf-8")
    two = opened()
    two.run("START QUERY f; INSERT INTO customers VALUES ('x', 'Xenia'); AWAIT QUERY f IDLE;")
    written = [
        json.loads(line) for file in (tmp_path / "f").glob("*.json") for line in file.read_text().splitlines()
    ]
    assert sorted(map(str, written)) == [
        "{'label': 'Xaver', 'c': 1}",
        "{'label': 'Xenia', 'c': 1}",
    ]


def test_a_select_of_a_failed_live_table_without_rows_says_so(console: Console) -> None:
    console.run(f"{BOTH} CREATE LIVE TABLE broken AS SELECT raise_error(label) AS l FROM customers;")
    with pytest.raises(StreamsqlError):
        console.run("INSERT INTO customers VALUES ('x', 'Xaver'); AWAIT QUERY broken IDLE;")
    shown = console.run("SELECT * FROM broken;")[-1]
    assert [note.code for note in shown.notes] == ["LIVE_TABLE_EMPTY"]
    assert "its query failed: " in str(shown.notes[0])


def test_an_aggregate_over_what_only_streams_have_begins_with_its_first_micro_batch(console: Console) -> None:
    console.run(
        """CREATE STREAM s (n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
        CREATE LIVE TABLE once AS SELECT count(*) AS c FROM (SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s);"""
    )
    assert console.rows("SELECT * FROM once;") == []
    console.run(
        "INSERT INTO s VALUES (1, '2024-05-01 12:00:00'), (1, '2024-05-01 12:00:00'); AWAIT QUERY once IDLE;"
    )
    assert console.rows("SELECT * FROM once;") == [(1,)]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("trigger", ["AVAILABLE NOW", "ONCE"])
def test_a_query_that_ends_with_its_input_ends_although_its_live_tables_go_on(
    console: Console, trigger: str
) -> None:
    """All input that was there at its start is processed, also that of the live tables; what comes later is not."""
    console.run(BOTH)
    console.run("INSERT INTO customers VALUES ('x', 'Xaver'); AWAIT QUERY ALL IDLE;")
    console.run("INSERT INTO orders VALUES ('x', 1), ('y', 1); INSERT INTO customers VALUES ('y', 'Yvonne');")
    console.run(f"CREATE LIVE TABLE once TRIGGER {trigger} AS {SELECTS['full']};")
    console.run(f"CREATE SINK log USING memory; INSERT INTO log TRIGGER {trigger} {SELECTS['join']};")
    console.run("AWAIT QUERY once TIMEOUT INTERVAL 60 SECONDS; AWAIT QUERY log TIMEOUT INTERVAL 60 SECONDS;")
    both = [("x", "Xaver"), ("y", "Yvonne")]
    changes = [("+I", "Xaver", 1), ("+I", "Yvonne", 1)]
    assert sorted(console.rows("SELECT * FROM once;")) == both
    assert sorted(console.rows("SELECT * FROM log;")) == changes
    shown = {row[0]: row[1] for row in console.rows("SHOW QUERIES;")}
    assert shown == {"agg": "running", "once": "finished", "log": "finished"}
    console.run("INSERT INTO customers VALUES ('z', 'Zoe'); INSERT INTO orders VALUES ('x', 2);")
    console.run("AWAIT QUERY agg IDLE;")
    assert sorted(console.rows("SELECT * FROM once;")) == both
    console.run("START QUERY once; AWAIT QUERY once; START QUERY log; AWAIT QUERY log;")
    assert sorted(console.rows("SELECT * FROM once;"), key=repr) == [*both, (None, "Zoe")]
    assert console.rows("SELECT * FROM log;")[2:] == [("-D", "Xaver", 1), ("+I", "Xaver", 2)]


@pytest.mark.slow
def test_a_query_that_ends_with_its_input_fails_with_an_input(console: Console) -> None:
    console.run(BOTH)
    console.run(
        "CREATE LIVE TABLE broken AS SELECT raise_error(label) AS l FROM customers;"
        "CREATE LIVE TABLE once TRIGGER AVAILABLE NOW AS SELECT l, dim FROM broken, orders;"
        "INSERT INTO orders VALUES ('x', 1); AWAIT QUERY once TIMEOUT INTERVAL 60 SECONDS;"
    )
    assert console.rows("SELECT * FROM once;") == []
    console.run("INSERT INTO customers VALUES ('x', 'Xaver'); START QUERY once;")
    with pytest.raises(StreamsqlError) as caught:
        console.run("AWAIT QUERY once TIMEOUT INTERVAL 60 SECONDS;")
    assert caught.value.message == "query once failed: the query of an input failed"
    assert caught.value.detail.startswith("query broken failed: ")


@pytest.mark.parametrize(
    ("batch", "latest", "limited", "read"),
    [
        (3, None, False, False),  # planned before
        (4, None, False, True),
        (4, None, True, False),
        (4, '{"t":{"0":9}}', True, False),
        (4, '{"t":{"0":7}}', True, True),
        (4, '{"t":{"0":9}}', False, False),
    ],
)
def test_a_query_that_is_never_idle_has_read_all_input_of_a_moment(
    batch: int, latest: str | None, limited: bool, read: bool
) -> None:
    source = {"latestOffset": latest, "endOffset": '{"t":{"0":7}}'}
    options = (("maxOffsetsPerTrigger", "9"),) if limited else ()
    running = SimpleNamespace(
        reports=SimpleNamespace(latest={"batchId": batch, "sources": [source]}),
        plan=SimpleNamespace(reads=SimpleNamespace(streams=[SimpleNamespace(options=options)])),
    )
    assert _has_read_all(running, 4) is read  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_table_is_read_again_with_each_refresh_also_where_it_is_joined_with_a_stream(
    console: Console,
) -> None:
    """No stage reads it: that would use each row of the stream once, with the table as it is then."""
    console.run(BOTH)
    console.run(
        """CREATE TABLE regions (name STRING, region STRING) USING parquet;
        CREATE LIVE TABLE m AS SELECT region, c FROM agg JOIN (SELECT customer, region FROM customers
          JOIN regions ON label = name) ON dim = customer;
        CREATE LIVE TABLE n AS SELECT dim, c FROM agg WHERE dim IN
          (SELECT customer FROM customers WHERE label NOT IN (SELECT name FROM regions));
        INSERT INTO customers VALUES ('x', 'Xaver'); INSERT INTO orders VALUES ('x', 1); AWAIT QUERY ALL IDLE;"""
    )
    assert (console.rows("SELECT * FROM m;"), console.rows("SELECT * FROM n;")) == ([], [("x", 1)])
    console.run(
        "INSERT INTO regions VALUES ('Xaver', 'north'); INSERT INTO orders VALUES ('x', 2); AWAIT QUERY ALL IDLE;"
    )
    assert (console.rows("SELECT * FROM m;"), console.rows("SELECT * FROM n;")) == ([("north", 2)], [])
