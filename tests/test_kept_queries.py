"""The trees of queries are kept, as long as they are not too large together; none takes more than linear time."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

from streamsql.catalog import Catalog
from streamsql.errors import Source
from streamsql.language.parser import parse_script
from streamsql.language.query import read_query
from streamsql.plan.context import Context
from streamsql.plan.planner import plan

ROOMS = ("streamsql/language/",)


def test_a_text_is_read_once() -> None:
    assert read_query("SELECT a, b FROM t") is read_query("SELECT a, b FROM t")


@pytest.mark.slow
def test_the_trees_of_large_texts_are_not_all_kept() -> None:
    items = ", ".join(f"a{n} + 1 AS b{n}" for n in range(1000))
    kept = [weakref.ref(read_query(f"SELECT {number}, {items} FROM t")) for number in range(30)]
    gc.collect()
    assert 0 < sum(query() is not None for query in kept) < 20


def seconds(script: str) -> float:
    """The processor time of parsing and planning a script."""
    context, began = Context(Catalog()), time.process_time()
    for statement in parse_script(Source("a.sql", script)):
        context = Context(plan(statement, context).applied(context.catalog))
    return time.process_time() - began


def test_the_time_of_nested_queries_grows_with_their_number() -> None:
    def nested(depth: int) -> str:
        query = "SELECT value FROM ticks"
        for number in range(depth):
            query = f"SELECT value FROM ({query}) AS q{number}"
        return f"CREATE STREAM ticks USING rate; {query};"

    seconds(nested(10))
    assert seconds(nested(400)) < 30 * max(seconds(nested(100)), 0.02)
