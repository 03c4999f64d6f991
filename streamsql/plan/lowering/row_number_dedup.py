"""`row_number() OVER (PARTITION BY id ORDER BY ts) = 1`: the idiom for keeping the first row of each key.

Streams support no window functions except time windows (Spark guide, "Unsupported Operations"). The idiom is
therefore run as dropDuplicates (Spark guide, "Streaming Deduplication").
"""

from __future__ import annotations

from collections.abc import Callable

from streamsql.errors import RuleFault, Span
from streamsql.language.expression import Expression, RowNumber


def number_of(condition: Expression, aliases: dict[str, Expression]) -> RowNumber | None:
    """The row_number() that a condition requires to be 1, given directly or by its alias."""
    wanted = condition.wanted_first()
    if wanted is None:
        return None
    if wanted.column:
        wanted = aliases.get(wanted.column_name, wanted)
    return wanted.row_number()


def columns_to_keep(number: RowNumber, is_time: Callable[[str], bool], span: Span) -> list[str]:
    """The columns for which the first row to arrive is kept. is_time: whether a case-folded column is a time.

    Raises RuleFault, with its span, if the rows are not ordered by time.
    """
    if len(number.order) != 1:
        raise refused("the rows are ordered by more than the time of the event", _BY_VALUE, span)
    [order] = number.order
    columns = [key.column for key in number.keys]
    names = [column[1] for column in columns if column]
    if len(names) < len(columns):
        raise refused(
            "PARTITION BY contains more than columns",
            "compute them first: … FROM (SELECT *, upper(id) AS key FROM s) QUALIFY row_number() OVER "
            "(PARTITION BY key ORDER BY ts) = 1",
            span,
        )
    if order.descending:
        raise refused(
            "the newest row of a key is never known: a newer one can always arrive",
            f"CREATE LIVE TABLE newest OUTPUT MODE UPDATE KEY ({', '.join(names)}) AS SELECT … "
            "keeps the row that arrived last",
            span,
        )
    if not order.expression.column or not is_time(order.expression.column_name):
        raise refused(f"{order.expression.text} is not known to be the time of the event", _BY_VALUE, span)
    return names


_BY_VALUE = "SELECT id, min_by(x, price) AS x FROM s GROUP BY id keeps the row of the least price"


def refused(detail: str, hint: str, span: Span) -> RuleFault:
    """The error for a row_number() that is not supported on a stream."""
    return RuleFault(
        "over a stream, row_number() = 1 can only keep the first row of each key to arrive",
        detail=detail,
        hint=hint,
        span=span,
        condition="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
    )
