"""DISTINCT ON with an ORDER BY that chooses the row, as PostgreSQL and DuckDB have it. Here DISTINCT ON keeps
the row that comes first; the error says the query that chooses.
"""

from __future__ import annotations

from streamsql.errors import RuleFault, Span
from streamsql.language.query import Query


def check_distinct_on(query: Query) -> None:
    """Raise RuleFault for `SELECT DISTINCT ON (k) … ORDER BY k, ts DESC`."""
    block = query.body.block if query.body else None
    order = query.body.order_by if query.body else None
    if block is None or order is None or block.distinct is None or not block.items:
        return
    on = block.distinct.on
    leading, further = order.keys[: len(on)], order.keys[len(on) :]
    if not on or not further or not all(any(k.expression.same(e) for e in on) for k in leading):
        return
    text = query.text
    first, last = further[0].expression.span.start, order.span.end
    keys = ", ".join(e.text for e in on)
    chosen = f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {text[first:last].strip()}) = 1"
    selected = text[block.items[0].span.start : block.span.end].strip()
    before, behind = text[: block.span.start], text[order.span.end :]
    sorted_by = text[order.span.start : leading[-1].expression.span.end]
    own = f"{before}SELECT {selected} {chosen} {sorted_by}{behind}".strip()
    raise RuleFault(
        "DISTINCT ON keeps the row of each key that comes first: ORDER BY does not choose it",
        hint=own + ";" if not block.qualify else chosen,
        proposal="" if block.qualify else f"{own};",
        span=Span(first, last),
        code="OTHER_CONSOLE",
    )
