"""OVER clauses that Spark does not have, or reads without an error and computes wrongly. Errors say Spark's
form.
"""

from __future__ import annotations

from typing import Any

from streamsql.errors import RuleFault, Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.expression import Expression
from streamsql.language.query import Body, Query
from streamsql.language.query_tree import Item
from streamsql.language.token_groups import CLOSING, closing, outside
from streamsql.language.tree_nodes import is_aggregate, name_of, span_of, widened

_SESSIONS = frozenset(("session_window", "session"))


def check_window_functions(query: Query) -> None:
    """Raise RuleFault for the first OVER clause with a GROUPS frame, or with a session window as a key."""
    if not query.words & {"over", "window"}:
        return
    if query.tree is None:
        return
    for window in query.nodes_of(exp.Window):
        spec = window.args.get("spec")
        if spec is not None and str(spec.args.get("kind")).upper() == "GROUPS":
            _refuse_groups(query, window)
        for key in _keys(window):
            for call in key.walk():
                if name_of(call, query.text) in _SESSIONS:
                    _refuse_sessions(query, window, widened(query.text, span_of(call)))


def _keys(window: Any) -> list[Any]:
    order = window.args.get("order")
    return [*(window.args.get("partition_by") or ()), *(order.expressions if order else ())]


def _refuse_groups(query: Query, window: Any) -> None:
    """Raise RuleFault for a frame of GROUPS: RANGE is the same where its bounds have no number."""
    behind = max((span_of(key).end for key in _keys(window)), default=0)
    word = next(t for t in query.tokens if t.upper == "GROUPS" and t.start >= behind)
    spec = window.args["spec"]
    counted = any(isinstance(spec.args.get(side), exp.Expr) for side in ("start", "end"))
    tokens = query.tokens
    inside = outside(tokens, tokens.index(word))
    end = next((tokens[n].start for n in inside if tokens[n].text in CLOSING), tokens[-1].end)
    frame = query.text[word.end : end].strip()
    own = "ROWS" if counted else "RANGE"
    raise RuleFault(
        "Spark has no GROUPS frame",
        detail="GROUPS counts the distinct values of ORDER BY, ROWS counts rows"
        if counted
        else "without a number in its bounds it is the same as RANGE",
        hint=f"{own} {frame}",
        instead=own,
        span=word.span,
        code="OTHER_CONSOLE",
    )


def _refuse_sessions(query: Query, window: Any, session: Span) -> None:
    """Raise RuleFault for a session window in OVER. session: its place."""
    written = query.text[session.start : session.end]
    grouped = _grouped(query, window)
    raise RuleFault(
        "a session window cannot be a key of OVER",
        detail="rows are one session where they are grouped: here each row would be a session of its own",
        hint="" if grouped else f"GROUP BY {written}, …",
        proposal=f"{grouped};" if grouped else "",
        span=session,
        code="CLAUSE_NOT_SUPPORTED",
    )


def _grouped(query: Query, window: Any) -> str:
    """The query with GROUP BY in place of OVER; "" where its OVER is no aggregation of whole sessions."""
    block = query.body.block if query.body and _is_alone(query.body) else None
    keys = _whole_groups(query, window)
    if block is None or block.relation is None or keys is None:
        return ""
    forms = [key.normal for key in keys]
    items = ["session_window.start AS session_start", "session_window.end AS session_end"]
    for item in block.items:
        expression, own = item.expression, query.text[item.span.start : item.span.end]
        if expression.has_window_function:
            [*overs] = expression.tree.find_all(exp.Window)
            groups = _whole_groups(query, overs[0]) if len(overs) == 1 else None
            if groups is None or [key.normal for key in groups] != forms:
                return ""
            items.append(_without_over(query, item))
        elif not expression.column:
            return ""
        elif not any(expression.column_name in key.column_names() for key in keys):
            keys.append(expression)
            items.append(own)
        elif expression.normal in forms:  # others are inside of a key, as the time of the session is
            items.append(own)
    source = next(
        t for t in reversed(query.tokens) if t.upper == "FROM" and t.start < block.relation.span.start
    )
    rest = query.text[source.start : block.span.end]
    return f"SELECT {', '.join(items)} {rest} GROUP BY {', '.join(key.text for key in keys)}"


def _whole_groups(query: Query, window: Any) -> list[Expression] | None:
    """The keys of an aggregation over all rows of each key; None for any other window function."""
    keys = window.args.get("partition_by")
    if not keys or window.args.get("order") or window.args.get("spec"):
        return None
    if not is_aggregate(window.this, query.text):
        return None
    return [Expression(query.text, widened(query.text, span_of(key)), key) for key in keys]


def _is_alone(body: Body) -> bool:
    """Whether a query is one SELECT with no clauses but FROM and WHERE."""
    block = body.plain_block
    return block is not None and not (
        block.group_by or block.having or block.qualify or block.distinct or block.other
    )


def _without_over(query: Query, item: Item) -> str:
    """An item `count(*) OVER (…) AS n` without its OVER (…)."""
    inside = [t for t in query.tokens if item.span.start <= t.start < item.span.end]
    over = next(n for n, t in enumerate(inside) if t.upper == "OVER" and inside[n + 1].text == "(")
    start, end = inside[over - 1].end, inside[closing(inside, over + 1)].end
    return query.text[item.span.start : start] + query.text[end : item.span.end]
