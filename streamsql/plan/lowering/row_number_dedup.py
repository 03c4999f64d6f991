"""`row_number() OVER (PARTITION BY id ORDER BY ts) = 1`: the idiom for keeping the first row of each key.

Streams support no window functions except time windows (Spark guide, "Unsupported Operations"). The idiom is
therefore run as dropDuplicates (Spark guide, "Streaming Deduplication").
"""

from __future__ import annotations

from collections.abc import Callable

from streamsql.error_codes import ROW_OF_EACH_KEY
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


def columns_to_keep(number: RowNumber, type_of: Callable[[str], str], relation: str, span: Span) -> list[str]:
    """The columns of which the first row to arrive is kept. type_of: the type of a column, folded; relation:
    what the block reads, as written behind FROM.

    Raises a placed RuleFault when the order is another one than that of time.
    """
    columns = [key.column for key in number.keys]
    names = [column[1] for column in columns if column]
    [order, *more] = number.order
    by_time = bool(order.expression.column) and type_of(order.expression.column_name) == "TIMESTAMP"
    if more or order.descending or not by_time:
        what = "the greatest" if order.descending else "the least"
        sorting = ", ".join(o.expression.text for o in number.order)
        detail = f"the row of {what} {sorting} can change with each row that arrives: that is an aggregation"
        aggregation = _as_aggregation(number, type_of, relation)
        over_all_rows = (
            f"CREATE LIVE TABLE all_rows AS SELECT * FROM {relation}; and row_number() over all_rows"
        )
        raise refused(detail, aggregation or over_all_rows, span, code=ROW_OF_EACH_KEY if aggregation else "")
    if len(names) < len(columns):
        raise refused(
            "PARTITION BY contains more than columns",
            "compute them first: … FROM (SELECT *, upper(id) AS key FROM s) QUALIFY row_number() OVER "
            "(PARTITION BY key ORDER BY ts) = 1",
            span,
        )
    return names


def _as_aggregation(number: RowNumber, type_of: Callable[[str], str], relation: str) -> str:
    """The query that has the row of the greatest, or the least, value for each key; "" for an order that no
    struct has.
    """
    down = number.order[0].descending
    sorting: list[str] = []
    for order in number.order:
        text = order.expression.text
        if order.descending != down:
            kind = type_of(order.expression.column_name)
            if kind != "TIMESTAMP" and not kind.startswith(_NUMBERS):
                return ""
            text = f"-unix_micros({text})" if kind == "TIMESTAMP" else f"-{text}"
        sorting.append(text)
    by = sorting[0] if len(sorting) == 1 else f"struct({', '.join(sorting)})"
    keys = ", ".join(key.text for key in number.keys)
    function = "max_by" if down else "min_by"
    return f"SELECT best.* FROM (SELECT {function}(struct(*), {by}) AS best FROM {relation} GROUP BY {keys})"


_NUMBERS = ("INT", "BIGINT", "LONG", "SMALLINT", "SHORT", "TINYINT", "BYTE", "FLOAT", "DOUBLE", "DECIMAL")


def refused(detail: str, hint: str, span: Span, code: str = "") -> RuleFault:
    """The error for a row_number() that is not supported on a stream."""
    return RuleFault(
        "over a stream, row_number() = 1 can only keep the first row of each key to arrive",
        detail=detail,
        hint=hint,
        span=span,
        condition="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        code=code,
    )
