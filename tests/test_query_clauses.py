"""What of a query has changed since its checkpoint was made, told by its tree and its definitions."""

from __future__ import annotations

from typing import Any

import pytest

from streamsql.catalog import Catalog
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.plan.planner import Context, plan
from streamsql.plan.plans import Run
from streamsql.plan.streaming.query_changes import MIXED, REFUSED, changes, facts_of


def changed(old: str, new: str) -> list[str]:
    """The lines that tell what of a SELECT has changed."""
    facts = {"streams": [], "sinks": [], "state": None, "mode": "append"}
    return [c.what for c in changes(facts | {"select": old}, facts | {"select": new})]


LONG = ", ".join(f"column_number_{n}" for n in range(20))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("SELECT a AS b FROM s -- x", "select  A as B\nfrom S", []),
        ("SELECT 'a  b' FROM s", "SELECT 'a b' FROM s", ["SELECT: 'a  b' → 'a b'"]),
        ("SELECT a, b FROM s", "SELECT a FROM s", ["SELECT: b removed"]),
        ("SELECT a FROM s", "SELECT a FROM s WHERE a>1 AND b", ["WHERE: a>1 AND b added"]),
        ("SELECT a FROM s", "SELECT DISTINCT ON (a) a FROM s", ["SELECT: DISTINCT ON (a) added"]),
        (
            "SELECT a FROM s JOIN t ON s.a = t.a",
            "SELECT a FROM s LEFT JOIN t ON s.a = t.a",
            ["FROM: JOIN t ON s.a = t.a → LEFT JOIN t ON s.a = t.a"],
        ),
        (
            "SELECT a FROM s WATERMARK t DELAY OF INTERVAL 1 MINUTE",
            "SELECT a FROM s WATERMARK t DELAY OF INTERVAL 2 MINUTES",
            [
                "FROM: s WATERMARK t DELAY OF INTERVAL 1 MINUTE"
                " → s WATERMARK t DELAY OF INTERVAL 2 MINUTES"
            ],
        ),
        (
            "SELECT a, count(*) FROM s GROUP BY a",
            "SELECT a, count(*) FROM s GROUP BY ROLLUP(a)",
            ["GROUP BY: a → ROLLUP (a)"],
        ),
        # In a sub-query, the console's own clauses count.
        (
            "SELECT a FROM (SELECT DISTINCT ON (a) a FROM s)",
            "SELECT a FROM (SELECT a FROM s)",
            ["FROM: (SELECT DISTINCT ON (a) a FROM s) → (SELECT a FROM s)"],
        ),
        # Several INSERTs that are one query.
        (
            "INSERT INTO x SELECT a FROM s; INSERT INTO y SELECT b FROM s;",
            "INSERT INTO x SELECT a FROM s; INSERT INTO z SELECT b FROM s;",
            ["INSERT INTO: y → z"],
        ),
        # Left to Spark: sqlglot does not read it.
        ("FROM s |> WHERE a > 1", "FROM s |> WHERE a > 2", ["query: FROM s |> WHERE a > 1 → FROM s |> WHERE a > 2"]),
    ],
)  # fmt: skip
def test_what_has_changed(old: str, new: str, expected: list[str]) -> None:
    assert changed(old, new) == expected


def test_a_difference_behind_a_long_beginning_is_shown() -> None:
    select = "SELECT x FROM (SELECT {}, {} AS x FROM s)"
    (line,) = changed(select.format(LONG, "y"), select.format(LONG, "z"))
    before, after = line.removeprefix("FROM: ").split(" → ")
    assert before.endswith("y AS x FROM s)") and after.endswith("z AS x FROM s)")
    assert max(len(before), len(after)) <= 100


# ---- the streams and sinks of a query -----------------------------------------------------------------

STREAM = "CREATE STREAM s (a INT, ts TIMESTAMP) USING json OPTIONS (path 'in') WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE; "
SINK = "CREATE SINK o USING jdbc KEY (a) OPTIONS (url 'jdbc:sqlite:t.db', table 't'); "
INSERT = "INSERT INTO o SELECT a FROM s;"
STATE: list[dict[str, Any]] = [{"kind": "aggregate", "keys": ["INT"], "values": ["BIGINT"]}]


def facts(script: str, state: list[dict[str, Any]] | None = None, operators: str = "") -> dict[str, Any]:
    """The facts about the query that a script ends with."""
    catalog = Catalog()
    for statement in split_script(Source("test.sql", script)):
        made = plan(parse(statement, {}), Context(catalog))
        catalog = made.applied(catalog)
    assert isinstance(made, Run)
    return facts_of(made, "append", state, operators)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("path 'in'", "path 'in', multiLine true", [("multiline of s: none → true", MIXED)]),
        ("path 'in'", "path 'elsewhere'", [("path of s: in → elsewhere", MIXED)]),
        ("path 'in'", "path 'in', maxFilesPerTrigger 1", []),
        ("(a INT, ts", "(a INT, b INT, ts", [("columns of s: b INT added", MIXED)]),
        ("(a INT, ts TIMESTAMP)", "(ts TIMESTAMP, a INT)", [("columns of s: in another order", MIXED)]),
        ("(a INT, ts", "(a BIGINT, ts", [("columns of s: a INT removed, a BIGINT added", MIXED)]),
        ("1 MINUTE", "2 MINUTES", [("watermark of s: ts, 1 minute → ts, 2 minutes", MIXED)]),
        ("USING json OPTIONS (path 'in')", "USING values", [
            ("connector of s: json → values", MIXED),
            ("path of s: in → none", MIXED),
        ]),
        ("USING json OPTIONS (path 'in')", "USING datagen OPTIONS (rowsPerBatch 1)", [
            ("source s: s USING json → s USING datagen", REFUSED),
        ]),
        ("table 't'", "table 'u'", [("table of o: t → u", MIXED)]),
        ("table 't'", "table 't', batchSize 7", []),
        (
            "KEY (a) OPTIONS (url 'jdbc:sqlite:t.db', table 't'); INSERT INTO o SELECT a",
            "KEY (b) OPTIONS (url 'jdbc:sqlite:t.db', table 't'); INSERT INTO o SELECT a AS b",
            [("SELECT: a → a AS b", MIXED), ("key of o: a removed, b added", MIXED)],
        ),
        ("USING jdbc KEY (a) OPTIONS (url 'jdbc:sqlite:t.db', table 't')", "USING noop", [
            ("connector of o: jdbc → noop", MIXED),
            ("key of o: a removed", MIXED),
        ]),
        ("FROM s;", "FROM s JOIN r USING (a);", [
            ("sources: r is also read now", REFUSED),
            ("FROM: JOIN r USING (a) added", MIXED),
        ]),
    ],
)  # fmt: skip
def test_what_has_changed_of_streams_and_sinks(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    script = "CREATE STREAM r (a INT) USING json OPTIONS (path 'r'); " + STREAM + SINK + INSERT
    assert script.count(old) == 1
    found = changes(facts(script), facts(script.replace(old, new)))
    assert [(change.what, change.effect) for change in found] == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (STATE, []),
        (None, []),
        ([], ["state: aggregate → none"]),
        (
            [{**STATE[0], "keys": ["INT", "STRING"]}],
            ["keys in the state of the aggregate: INT → INT, STRING"],
        ),
        ([{**STATE[0], "values": []}], ["values in the state of the aggregate: BIGINT → none"]),
    ],
)
def test_another_state_is_refused(now: list[dict[str, Any]] | None, expected: list[str]) -> None:
    script = STREAM + SINK + INSERT
    found = changes(facts(script, STATE), facts(script, now))
    assert [(change.what, change.effect) for change in found] == [(what, REFUSED) for what in expected]


# ---- columns that a stream gets, or that get a wider type -----------------------------------------------

ROWS = "CREATE STREAM s (a INT, ts TIMESTAMP) USING json OPTIONS (path 'in'); "
TABLE = "CREATE LIVE TABLE t AS SELECT * FROM s;"
FILES = "CREATE SINK o USING parquet OPTIONS (path 'out'); INSERT INTO o SELECT * FROM s;"
COUNT: list[dict[str, Any]] = [{"kind": "aggregation", "keys": [], "values": ["bigint"]}]
GROWN = "(a INT, ts TIMESTAMP, b STRING)"


@pytest.mark.parametrize(
    ("query", "columns", "expected"),
    [
        (TABLE, GROWN, []),
        (FILES, GROWN, []),
        (TABLE, "(a int, ts timestamp, `b c` STRING)", []),
        (TABLE, "(A INT, ts TIMESTAMP)", ["a INT removed, A INT added"]),
        (TABLE, "(a INT, b STRING, ts TIMESTAMP)", ["b STRING added"]),
        (TABLE, "(a INT)", ["ts TIMESTAMP removed"]),
        (TABLE, "(a BIGINT, ts TIMESTAMP)", []),
        (FILES, "(a BIGINT, ts TIMESTAMP)", ["a INT removed, a BIGINT added"]),
        (TABLE, "(a STRING, ts TIMESTAMP)", ["a INT removed, a STRING added"]),
        (TABLE, "(a INT NOT NULL, ts TIMESTAMP)", ["a INT removed, a INT NOT NULL added"]),
        (
            "CREATE LIVE TABLE t AS SELECT a AS B FROM s;",
            GROWN,
            ["b STRING added, and the query has that name already"],
        ),
        (
            "CREATE STREAM v AS SELECT a AS `b` FROM s; CREATE LIVE TABLE t AS SELECT * FROM v;",
            GROWN,
            ["b STRING added, and the query has that name already"],
        ),
        (
            "CREATE LIVE TABLE t AS SELECT x.a FROM s AS x NATURAL JOIN people;",
            GROWN,
            ["b STRING added, which NATURAL JOIN may compare"],
        ),
    ],
)
def test_columns_that_change_nothing_for_a_query_without_state(
    query: str, columns: str, expected: list[str]
) -> None:
    now = ROWS.replace("(a INT, ts TIMESTAMP)", columns)
    found = changes(facts(ROWS + query, []), facts(now + query, []))
    assert [c.what.removeprefix("columns of s: ") for c in found] == expected


@pytest.mark.parametrize(
    ("then", "now", "goes_on"), [("1f", "1f", True), ("1f", "2e", False), ("", "", False), ("", "1f", False)]
)
def test_columns_that_change_nothing_for_the_same_state(then: str, now: str, goes_on: bool) -> None:
    query = "CREATE LIVE TABLE t AS SELECT count(*) AS n FROM s;"
    grown = ROWS.replace("(a INT, ts TIMESTAMP)", GROWN)
    assert (changes(facts(ROWS + query, COUNT, then), facts(grown + query, COUNT, now)) == []) is goes_on
    wider = ROWS.replace("a INT", "a BIGINT")
    assert changes(facts(ROWS + query, COUNT, then), facts(wider + query, COUNT, now))
    old = facts(ROWS + query, COUNT, then)
    del old["operators"]  # as an earlier version of the console has written it
    assert changes(old, facts(grown + query, COUNT, now))
