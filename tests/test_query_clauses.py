"""What of a query has changed, told by its tree."""

from __future__ import annotations

import pytest

from streamsql.plan.streaming.query_changes import changes


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
