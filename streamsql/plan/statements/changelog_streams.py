"""Streams of changes (FORMAT debezium_json): only a live table with their KEY can hold their rows."""

from __future__ import annotations

from streamsql.definitions import Stream
from streamsql.errors import NameFault, RuleFault, Span, did_you_mean
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.shape import CHANGES, Shape
from streamsql.plan.plans import Target

_ROW_BY_ROW = frozenset({CHANGES, "watermark", "now", "key"})


def check_key(statement: CreateStream, stream: Stream) -> None:
    """Check the KEY of a stream. Raises RuleFault where a format of changes has none, or another has one;
    NameFault for a column that is not there.
    """
    if statement.format is None or not stream.is_of_changes:
        if statement.key:
            raise RuleFault(
                "KEY belongs to streams of changes",
                hint="omit KEY, or write FORMAT debezium_json; a live table takes a KEY, too",
                span=statement.key[0].span,
                code="CLAUSE_NOT_SUPPORTED",
            )
        return
    if not statement.key:
        first = statement.columns[0].name if statement.columns else "id"
        raise RuleFault(
            f"FORMAT {statement.format} needs a KEY",
            detail="its columns tell which row a change replaces or deletes",
            hint=f"FORMAT {statement.format} KEY ({quote_name(first)})",
            span=statement.format.span,
            code="MISSING_KEY",
        )
    names = [c.name for c in stream.columns]
    for column in statement.key:
        if column.value.casefold() not in map(str.casefold, names):
            raise NameFault(
                f"the stream {stream.name} has no column {column} for its KEY",
                hint=did_you_mean(column.value, names) or f"columns: {', '.join(names)}",
                span=column.span,
                code="UNKNOWN_COLUMN",
            )


def check_changes(streams: tuple[Stream, ...], shape: Shape, targets: tuple[Target, ...], span: Span) -> None:
    """Raise RuleFault for a query over a stream of changes that is not row by row into one live table: as
    rows, the changes would be counted twice, and what is deleted would stay.
    """
    stream = next((s for s in streams if s.is_of_changes), None)
    if stream is None:
        return
    sink = targets[0].sink
    row_by_row = shape.complete and shape.has_flag and all(op.kind in _ROW_BY_ROW for op in shape.ops)
    if row_by_row and len(targets) == 1 and sink.is_live and not sink.key:
        return
    rows = quote_name(f"{stream.name}_rows")
    by_hand = f"CREATE LIVE TABLE {rows} AS SELECT * FROM {quote_name(stream.name)};  and read {rows}"
    raise RuleFault(
        f"{stream.name} brings changes of rows, which only a live table without a KEY of its own can follow",
        detail=f"its KEY ({', '.join(stream.key)}) tells which row a change replaces or deletes",
        hint="omit KEY" if sink.is_live and sink.key else by_hand,
        span=span,
        code="NOT_ON_STREAMS",
    )
