"""ALTER STREAM, to its plan: the stream as it would be created now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from streamsql.catalog import Catalog
from streamsql.connectors import schema_registry
from streamsql.connectors.messages import SCHEMA
from streamsql.connectors.registry import connector
from streamsql.definitions import REJECTED, Query, Stream
from streamsql.errors import NameFault, RuleFault, Span
from streamsql.features.alter_stream.statement import AlterStream
from streamsql.language.statements.base import Column, Name, Option
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import DefineStream
from streamsql.plan.statements.definitions import create_stream
from streamsql.plan.streaming.readers import queries_over


@dataclass(frozen=True)
class Altered(Plan):
    """stream: as it is before; define: as it would be created with the new columns (added), or without
    columns, to read them again (then added is empty); readers: the queries that read it.
    """

    stream: Stream
    define: DefineStream
    added: tuple[Column, ...]
    readers: tuple[Query, ...]

    def applied(self, catalog: Catalog) -> Catalog:
        return self.of(self.define.stream).applied(catalog) if self.added else catalog

    def of(self, stream: Stream) -> DefineStream:
        """The plan that defines the stream, once its columns are known."""
        return replace(self.define, stream=stream)


@dataclass(frozen=True)
class NothingAdded(Plan):
    """All columns of ADD COLUMN IF NOT EXISTS are there."""

    stream: Stream


def alter_stream(statement: AlterStream, context: Context) -> Plan:
    """Raises NameFault or RuleFault for a stream whose columns cannot be changed, or a column that it cannot
    have.
    """
    place = statement.name.span
    stream = _placed(context.catalog.stream(statement.name), place)
    _check_has_own_columns(stream, statement)
    names = (stream.name, f"{stream.name}${REJECTED}")
    readers = tuple(query for name in names for query in queries_over(name, context.catalog))
    if not statement.columns or _is_not_read_yet(stream):
        if stream.stands_for:
            return Altered(stream, DefineStream(stream), (), readers)
        _check_can_be_read_again(stream, statement)
        whole = replace(_of_newest_schema(stream), columns=() if stream.inferred else stream.columns)
        planned = create_stream(_as_statement(whole, whole.columns, place), context)
        assert isinstance(planned, DefineStream)
        return Altered(stream, replace(planned, stream=whole), (), readers)
    added = _new_columns(stream, statement)
    if not added:
        return NothingAdded(stream)
    whole = _of_newest_schema(stream.stands_for or stream)
    planned = create_stream(_as_statement(whole, (*stream.columns, *added), place), context)
    assert isinstance(planned, DefineStream)
    altered = replace(whole, columns=(*stream.columns, *added))
    if stream.stands_for:
        altered = replace(stream, columns=altered.columns, stands_for=altered)
    return Altered(stream, replace(planned, stream=altered), added, readers)


def _check_has_own_columns(stream: Stream, statement: AlterStream) -> None:
    """Raise RuleFault for a stream that declares no columns."""
    name = quote_name(stream.name)
    if stream.query:
        raise RuleFault(
            f"the columns of {stream.name} are those of its query",
            hint=f"CREATE OR REPLACE STREAM {name} AS SELECT …",
            span=statement.clause,
            code="FIXED_COLUMNS",
        )
    whole = stream.stands_for or stream
    if not whole.columns and not _is_not_read_yet(whole):
        listed = ", ".join(f"{c.name} {c.type}" for c in connector(Name(whole.connector)).columns(whole))
        raise RuleFault(
            f"the columns of {stream.name} are fixed" + (f": {listed}" if listed else ""),
            detail=f"a stream USING {whole.connector}{' without FORMAT' * (not whole.format)} declares none",
            span=statement.clause,
            code="FIXED_COLUMNS",
        )


def _is_not_read_yet(stream: Stream) -> bool:
    """Whether the columns of a stream are read from its source when it is created, and --check has not."""
    return not stream.columns and connector(Name(stream.connector)).infer(stream) is not None


def _check_can_be_read_again(stream: Stream, statement: AlterStream) -> None:
    """Raise RuleFault for a stream whose statement declares its columns."""
    if stream.inferred or schema_registry.uses(stream) or _is_not_read_yet(stream):
        return
    raise RuleFault(
        f"the columns of {stream.name} are declared: there is no schema to read again",
        detail="REFRESH SCHEMA is for columns that were read from files, and for schemas of a registry",
        hint=f"ALTER STREAM {quote_name(stream.name)} ADD COLUMN name TYPE;",
        span=statement.clause,
        code="FIXED_COLUMNS",
    )


def _new_columns(stream: Stream, statement: AlterStream) -> tuple[Column, ...]:
    """The columns to add. Raises NameFault or RuleFault for one that is there, or that says NOT NULL."""
    names = {c.name.casefold() for c in stream.columns}
    added = []
    for column in statement.columns:
        if column.name.casefold() in names:
            if statement.if_not_exists:
                continue
            raise NameFault(
                f"{stream.name} has a column {column.name} already",
                hint="ADD COLUMN IF NOT EXISTS …",
                span=column.span,
                code="DUPLICATE_NAME",
            )
        watermark = stream.watermark
        if watermark and watermark.computed and watermark.column.value.casefold() == column.name.casefold():
            raise NameFault(
                f"{column.name} is the event time that the watermark of {stream.name} computes",
                hint="use another name",
                span=column.span,
                code="DUPLICATE_NAME",
            )
        if not column.nullable:
            raise RuleFault(
                f"the new column {column.name} cannot be NOT NULL",
                detail=f"it is NULL in what {stream.name} has brought before",
                hint="omit NOT NULL",
                span=column.span,
                code="CLAUSE_NOT_SUPPORTED",
            )
        names.add(column.name.casefold())
        added.append(column)
    return tuple(added)


def _as_statement(stream: Stream, columns: tuple[Column, ...], place: Span) -> CreateStream:
    """The statement that creates a stream with other columns, so that these are checked as there. place: of
    what was written in another statement.
    """
    named = partial(Name, span=place)
    return CreateStream(
        name=named(stream.name),
        connector=named(stream.connector),
        format=named(stream.format) if stream.format else None,
        columns=columns,
        key=tuple(map(named, stream.key)),
        options=tuple(Option(named(k), named(v)) for k, v in stream.options),
        watermark=stream.watermark,
        comment=stream.comment,
        malformed=stream.malformed,
        malformed_sink=named(stream.malformed_sink) if stream.malformed_sink else None,
        or_replace=True,
    )


def _placed(stream: Stream, place: Span) -> Stream:
    """The stream, whose columns and watermark were written in another statement, at a place of this one."""
    watermark = stream.watermark
    if watermark:
        watermark = replace(watermark, column=replace(watermark.column, span=place))
    columns = tuple(replace(column, span=place) for column in stream.columns)
    return replace(stream, columns=columns, watermark=watermark)


def _of_newest_schema(stream: Stream) -> Stream:
    """The stream without the schema that a registry has given before, so that it is asked again."""
    if not schema_registry.uses(stream):
        return stream
    options = ((k, v) for k, v in stream.options if k.casefold() != SCHEMA.casefold())
    return replace(stream, options=tuple(options))


PLANNERS = {AlterStream: alter_stream}
