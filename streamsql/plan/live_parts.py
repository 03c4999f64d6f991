"""The part of a live table that a SELECT needs, so that not all of its rows are handed to Spark.

Spark computes the whole query over that part: it has all rows for which the WHERE may hold, and all columns
that are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.definitions import Sink
from streamsql.language.expression import Expression
from streamsql.language.nested_queries import reads_all_columns
from streamsql.language.query_tree import Block, Query
from streamsql.plan.plans import LivePart

Condition = tuple[str, str, int | str]


def live_part(query: Query, live: Sequence[Sink]) -> LivePart | None:
    """The part of its live table that a query of one block needs; None for other queries."""
    block = query.body.block if query.body is not None else None
    if block is None or len(live) != 1 or len(query.relations) != 1 or query.own:
        return None
    relation = block.relation
    plain = (
        block.reads_one_relation
        and relation is not None
        and relation.name.casefold() == live[0].name.casefold()
    )
    if not plain or relation is None or relation.sample or relation.pivot or block.other:
        return None
    words = None if reads_all_columns(query) else query.words
    part = LivePart(live[0].name, words, tuple(_conditions(block)))
    return part if part.words is not None or part.conditions else None


def _conditions(block: Block) -> list[Condition]:
    """The conditions at the beginning of WHERE that compare a column with a literal. Those behind another
    condition are not among them: it may end the query with an error for any row.
    """
    conditions: list[Condition] = []
    for conjunct in block.where.expression.conjuncts() if block.where else ():
        compared = [_condition(*comparison) for comparison in conjunct.comparisons()]
        if not compared or None in compared:
            break
        conditions += [c for c in compared if c]
    return conditions


def _condition(left: Expression, sign: str, right: Expression) -> Condition | None:
    """`a < b` is also `a <= b`, so that no row is missing."""
    for column, literal, order in ((left, right, "<="), (right, left, ">=")):
        name, value = column.bare_column(), literal.literal
        if name is not None and not name[0] and value is not None:
            return name[1], "=" if sign == "=" else order, value
    return None
