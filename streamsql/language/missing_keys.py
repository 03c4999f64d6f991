"""The GROUP BY that a SELECT with aggregates lacks."""

from __future__ import annotations

from streamsql.errors import Span, StreamsqlError
from streamsql.language.expression import Expression
from streamsql.language.query import read_query
from streamsql.language.query_tree import Block
from streamsql.language.tokens import tokenize


def with_group_by(text: str, column: str = "") -> tuple[str, Span] | None:
    """A statement with the GROUP BY that its SELECT lacks: of all that it does not aggregate, or of one
    column more than it has; and the place in its SELECT of what is not aggregated. None where the SELECT is
    not the only one, or is left to Spark.
    """
    starts = [t.start for t in tokenize(text, strict=False) if t.upper == "SELECT"]
    if len(starts) != 1:
        return None
    start = starts[0]
    try:
        body = read_query(text[start:]).body
    except StreamsqlError:
        return None
    block = body.block if body else None
    if block is None:
        return None
    missing = _not_aggregated(block, column)
    place = _end_of_groups(block)
    if not missing or place is None or (block.group_by and (block.group_by.other or not column)):
        return None
    keys = [column] if column else [key.text for key in missing]
    word = ", " if block.group_by else " GROUP BY "
    at = start + place
    return f"{text[:at]}{word}{', '.join(keys)}{text[at:]};", missing[0].span.shift(start)


def _not_aggregated(block: Block, column: str) -> list[Expression]:
    """What stands in SELECT outside of aggregates and depends on columns, on that one if it is given; [] if
    it cannot be a key.
    """
    keys = [i.expression for i in block.items if not i.expression.aggregates and i.expression.column_names()]
    if column:
        return [key for key in keys if column.casefold() in key.column_names()]
    return [] if any(key.has_window_function for key in keys) else keys


def _end_of_groups(block: Block) -> int | None:
    """Where GROUP BY stands, or its next key."""
    if block.group_by:
        return block.group_by.span.end
    if block.where:
        return block.where.span.end
    if block.relation is None:
        return None
    ends = [block.relation.span.end, *(j.span.end for j in block.joins), *(v.span.end for v in block.views)]
    return max([*ends, *(j.relation.span.end for j in block.joins)])
