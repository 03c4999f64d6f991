"""FORMAT debezium_json: rows in Debezium's envelope, an object with before, after, op and ts_ms.

A stream of it gives two rows for each change: the row before it, which is gone, and the row after it. The
column IN_RESULT tells them apart, so that a live table with the KEY of the stream follows the changes.
"""

from __future__ import annotations

from streamsql.calls import Call, Node, Var, expr
from streamsql.connectors.base import schema_text
from streamsql.language.statements.base import Column

FORMAT = "debezium_json"
IN_RESULT = "__kept"
"""The hidden column that says whether a row is in the result."""
JSON_OPTIONS = (
    ("ignoreNullFields", "false"),
    ("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"),
    ("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"),
)
"""How envelopes are written: with all digits of a time."""
_READABLE = (
    "(_change.op IN ('c', 'u', 'r') AND _change.after IS NOT NULL"
    " OR _change.op = 'd' AND _change.before IS NOT NULL OR _change.op = 'm')"
)
MALFORMED = f"NOT coalesce({_READABLE}, false)"
"""The condition of an envelope that says no change of a row."""


def schema(columns: tuple[Column, ...]) -> str:
    """The type of the envelope. With the schemas of Kafka Connect it is in a field payload."""
    row = f"STRUCT<{schema_text(columns)}>"
    envelope = f"before {row}, after {row}, op STRING"
    return f"{envelope}, payload STRUCT<{envelope}>"


def with_change(frame: Node) -> Node:
    """A frame with a column _parsed, and the envelope in it as a column _change."""
    change = "coalesce(_parsed.payload, struct(_parsed.before, _parsed.after, _parsed.op)) AS _change"
    return frame.call("select", expr("*"), expr(change))


def rows(frame: Node, columns: list[Node], fields: list[Node]) -> Node:
    """The rows before and after each change. columns: those of a struct _row.row; fields: other columns."""
    before = "named_struct('row', _change.before, 'kept', false)"
    after = "named_struct('row', _change.after, 'kept', true)"
    exploded = f"explode(filter(array({before}, {after}), each -> each.row IS NOT NULL)) AS _row"
    frame = frame.call("select", expr("*"), expr(exploded))
    return frame.call("select", *columns, *fields, expr(f"_row.kept AS {IN_RESULT}"))


def envelopes(frame: Node) -> Node:
    """The calls that put new rows into envelopes."""
    return Call(Var("envelopes"), (frame,))


def at_rest(frame: Node) -> Node:
    """The rows after each change only, of what `rows` gives."""
    return frame.call("where", expr(IN_RESULT)).call("drop", IN_RESULT)
