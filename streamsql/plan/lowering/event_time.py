"""Which expressions contain the event time of a watermark, and which output columns identify a group."""

from __future__ import annotations

from streamsql.language.expression import TIME_WINDOWS, Expression


def is_event_time(
    expression: Expression, event_time: frozenset[str], unmarked: frozenset[str] = frozenset()
) -> bool:
    """Whether an expression is the event time of a watermark: the column, or a window of it.

    event_time: the event-time columns, case-folded; unmarked: qualified names that are not event time.
    """
    column = expression.column
    if column:
        qualified = ".".join(filter(None, column)).casefold()
        return qualified not in unmarked and column[1].casefold() in event_time
    if expression.call in TIME_WINDOWS | {"window_time"}:
        arguments = expression.arguments()
        return bool(arguments) and is_event_time(arguments[0], event_time, unmarked)
    return False


def carries(item: Expression, key: Expression) -> bool:
    """Whether an output column identifies the groups of a key: it is the key or, for a window, its start or
    end (for a session its start, since sessions of one key do not overlap).
    """
    if item.same(key):
        return True
    if key.call in TIME_WINDOWS and item.field is not None:
        window, name = item.field
        return name in ("start", "end") and window.same(key)
    shown, grouped = item.column, key.column
    if shown is None:
        return False
    qualifier, name = (part.casefold() for part in shown)
    whole = key.call or key.column_name
    if whole in TIME_WINDOWS and not qualifier and name == whole:
        return True
    if qualifier == whole and name in ("start", "end"):
        return True
    # t.k and k are the same column if one of them has no qualifier.
    return grouped is not None and name == key.column_name and (bool(qualifier) != bool(grouped[0]))
