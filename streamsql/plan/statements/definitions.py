"""Plans for CREATE STREAM, SINK and FUNCTION: check names, connector, options and columns."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.connectors.base import Connector, OptionSpec, check_options, filled_in
from streamsql.connectors.messages import SCHEMA_FILE
from streamsql.connectors.option_kinds import PYTHON_NAME
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import (
    DEFAULT_RETAIN,
    PAYLOAD_FORMATS,
    ROW_FILES,
    Function,
    Query,
    Sink,
    Stream,
    is_aside,
)
from streamsql.errors import NameFault, Note, RuleFault, SyntaxFault, did_you_mean
from streamsql.feature_registry import extensions
from streamsql.language import reference
from streamsql.language.query import read_query
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Fragment, Name, Option
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.sink import CreateSink
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment
from streamsql.plan.lowering.python_functions import is_module_name
from streamsql.plan.plans import DefineFunction, DefineSink, DefineStream, Plan
from streamsql.plan.statements.changelog_streams import check_key
from streamsql.plan.statements.query_parts import check_streaming
from streamsql.plan.statements.staged import staged
from streamsql.plan.statements.stream_columns import (
    check_columns,
    check_types,
    check_watermark,
    read_otherwise,
)
from streamsql.plan.streaming.readers import relations_under


def create_stream(statement: CreateStream, context: Context) -> Plan:
    if statement.staged:
        (stage,) = extensions("staged definition")
        planned: Plan = stage(statement, context)
        return planned
    if (
        not statement.or_replace
        and not statement.if_not_exists
        or statement.name.value.casefold() in context.catalog.sinks
    ):
        context.catalog.check_free(statement.name, "stream")
    if statement.query:
        return _stream_of_query(statement, context)
    assert statement.connector
    using = connector(statement.connector, "read")
    stream, options = stream_as_written(statement, using, context)
    check_columns(statement, stream, using)
    check_types(statement, connectors().get(stream.format, using))
    check_key(statement, stream)
    _check_malformed(statement, stream, context)
    columns = stream.columns or using.columns(stream)
    check_watermark(stream.watermark, (*columns, *using.metadata(stream)) if columns else ())
    path, schema_file = options.get(using.path_option.casefold()), options.get(SCHEMA_FILE.casefold())
    infer = infer_times = None
    if not columns:
        infer = using.infer(stream)
        watermark = stream.watermark
        infer_times = using.infer_times(stream) if watermark and not watermark.computed else None
    return DefineStream(
        stream,
        statement.if_not_exists,
        infer,
        infer_times,
        path.value if path else None,
        code_of(using.reads or (), options),
        schema_file.value if schema_file else None,
        notes=(*read_otherwise(statement.columns), *using.notes_of(stream)),
    )


def stream_as_written(
    statement: CreateStream, using: Connector, context: Context
) -> tuple[Stream, dict[str, Option]]:
    """The stream of a statement, and its options by their folded names, which are checked."""
    assert statement.connector
    check_format(statement.format, using)
    stream = Stream(
        statement.name.value,
        using.name,
        statement.format.value.lower() if statement.format else "",
        statement.columns,
        filled_in(using.reads or (), statement.options, context.here),
        statement.watermark,
        statement.comment,
        malformed=statement.malformed,
        malformed_sink=statement.malformed_sink.value if statement.malformed_sink else "",
        key=tuple(k.value for k in statement.key),
    )
    if using.format_of(stream) in PAYLOAD_FORMATS:
        stream = replace(stream, format=using.format_of(stream))
    options = {o.key.value.casefold(): o for o in statement.options}
    check_options(using, using.stream_options(stream.columns), statement.options, statement.connector)
    using.check_stream(stream, options, statement.connector)
    return stream, options


def code_of(specs: tuple[OptionSpec, ...], options: dict[str, Option]) -> Name | None:
    """The value of the option with the name of Python code, or None."""
    named = (options.get(s.name.casefold()) for s in specs if s.kind == PYTHON_NAME)
    return next((option.value for option in named if option), None)


def _stream_of_query(statement: CreateStream, context: Context) -> DefineStream:
    assert statement.query
    name = statement.name.value
    stream = Stream(name, query=statement.query.text, watermark=statement.watermark)
    if is_aside(name):  # of a workspace; it was planned under the name of the stream
        return DefineStream(stream)
    _check_is_no_circle(statement.name, statement.query, context.catalog)
    sources = context.sources()
    try:
        lowered = lower_fragment(statement.query, sources)
    except RuleFault as fault:
        staged(Query(name, (name,), stream.query), Sink(name, "memory"), statement.query, context, fault)
        note = Note("STAGES", f"queries that read {name} run in stages: HELP stages;")
        return DefineStream(stream, statement.if_not_exists, notes=(note,))
    view = f"CREATE TEMPORARY VIEW {quote_name(name)} AS"
    body, whose = statement.query, f"the query of {name}"
    check_streaming(lowered, body, context, whose, f"{view} …", f"{view} {body.text};")
    return DefineStream(stream, statement.if_not_exists, notes=(*sources.notes, *sources.cautions))


def _check_is_no_circle(name: Name, query: Fragment, catalog: Catalog) -> None:
    """Raise RuleFault where the query of a stream reads that stream, directly or through others."""
    read = {relation.name.casefold() for relation in read_query(query.text).relations}
    direct = name.value.casefold() in read
    if direct or name.value.casefold() in relations_under(read, catalog):
        raise RuleFault(
            f"the stream {name} reads itself",
            detail="" if direct else f"a stream that its query reads is defined by a query on {name}",
            span=name.span,
            code="CIRCULAR_DEFINITION",
        )


def check_format(given: Name | None, using: Connector) -> None:
    """Raise NameFault for a FORMAT that a connector does not support."""
    supported = (*using.formats, *using.line_formats)
    if given is None or given.value.lower() in supported:
        return
    formats = ", ".join(supported)
    raise NameFault(
        f"{using.name} has no format {given}" if formats else f"{using.name} takes no FORMAT",
        hint=did_you_mean(given.value, supported)
        or (f"formats: {formats}" if formats else "FORMAT is for message connectors such as kafka"),
        span=given.span,
        code="UNKNOWN_FORMAT",
    )


def _check_malformed(statement: CreateStream, stream: Stream, context: Context) -> None:
    """Check that ON MALFORMED has a payload or files with columns, and that its sink exists."""
    if not stream.malformed:
        return
    assert statement.connector
    if not stream.may_be_malformed:
        raise RuleFault(
            "ON MALFORMED is for messages with a payload in json, csv, avro or protobuf, and for files of "
            "json, csv or xml",
            span=statement.connector.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    mode = next((o for o in statement.options if o.key.value.casefold() == "mode"), None)
    if mode and stream.connector in ROW_FILES:
        raise RuleFault(
            "ON MALFORMED and the option mode cannot be used together",
            hint="omit one of them",
            span=mode.key.span,
            code="CLAUSE_CONFLICT",
        )
    name = statement.malformed_sink
    if name is not None and context.catalog.sink(name).keeps_groups:
        raise RuleFault(
            f"{name} is a live table, which has its own query",
            hint=f"CREATE LIVE TABLE … AS SELECT * FROM {quote_name(stream.name + '$malformed')}",
            span=name.span,
            code="WRONG_KIND",
        )


def create_sink(statement: CreateSink, context: Context) -> Plan:
    if not (statement.or_replace or statement.if_not_exists) or (
        statement.name.value.casefold() in context.catalog.streams
    ):
        context.catalog.check_free(statement.name, "sink")
    using = connector(statement.connector, "write")
    check_options(using, using.writes or (), statement.options, statement.connector)
    check_format(statement.format, using)
    _check_sink_clauses(statement, using)
    _check_replaced(statement.name, statement.or_replace, context)
    sink = Sink(
        statement.name.value,
        using.name,
        statement.format.value.lower() if statement.format else "",
        statement.columns,
        tuple(k.value for k in statement.key),
        tuple(p.value for p in statement.partitioned_by),
        filled_in(using.writes or (), statement.options, context.here),
        statement.retain or DEFAULT_RETAIN,
        statement.comment,
    )
    options = {o.key.value.casefold(): o for o in statement.options}
    using.check_sink(sink, options, statement.key, statement.connector)
    schema_file = options.get(SCHEMA_FILE.casefold())
    code = code_of(using.writes or (), options)
    return DefineSink(sink, statement.if_not_exists, code, schema_file.value if schema_file else None)


def _check_sink_clauses(statement: CreateSink, using: Connector) -> None:
    """Raise RuleFault for KEY, PARTITIONED BY or RETAIN if the connector does not support it."""
    if statement.key and not using.takes_key:
        able = " | ".join(c.name for c in connectors().values() if c.takes_key)
        raise RuleFault(
            f"{using.name} takes no KEY",
            hint=f"KEY belongs to sinks USING {able}",
            span=statement.key[0].span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    if statement.partitioned_by and using.path_option == "":
        raise RuleFault(
            f"{using.name} takes no PARTITIONED BY",
            span=statement.partitioned_by[0].span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    if statement.retain is not None and using.name != "memory":
        raise RuleFault(
            f"{using.name} takes no RETAIN",
            detail="RETAIN limits the rows that a live table keeps in memory",
            hint="omit RETAIN, or write USING memory",
            span=statement.retain_span,
            code="CLAUSE_NOT_SUPPORTED",
        )


def _check_replaced(name: Name, or_replace: bool, context: Context) -> None:
    feeding = [q.name for q in context.catalog.writers_of(name.value)] if or_replace else []
    if feeding:
        raise NameFault(
            f"the query {feeding[0]} writes into {name}",
            hint=f"DROP QUERY {feeding[0]};",
            span=name.span,
            code="IN_USE",
        )


def create_function(statement: CreateFunction, context: Context) -> Plan:
    """Plan a function from its name and 'module.attribute'; the module is not loaded here."""
    name, target = statement.name, statement.target
    if statement.staged:
        (stage,) = extensions("staged definition")
        planned: Plan = stage(statement, context)
        return planned
    module, _, attribute = target.value.rpartition(".")
    if not module or not is_module_name(target.value):
        raise SyntaxFault(
            f"'{target}' is not a Python function",
            hint=f"write 'module.function', such as AS 'my_functions.{name}'",
            span=target.span,
            code="BAD_NAME",
        )
    if name.value.lower() in reference.functions():
        raise NameFault(
            f"{name} is a function of Spark",
            hint=f"use another name, such as my_{name}",
            span=name.span,
            code="ALREADY_EXISTS",
        )
    replaces = statement.or_replace or statement.if_not_exists
    check_is_new_function(name, context.catalog, replaces=replaces)
    function = Function(
        name.value,
        module,
        attribute,
        statement.returns,
        statement.columns,
        "" if statement.columns else "scalar",
    )
    return DefineFunction(function, target, statement.if_not_exists)


def check_is_new_function(name: Name, catalog: Catalog, *, replaces: bool) -> None:
    """Raise NameFault where there is a function of that name. replaces: with OR REPLACE or IF NOT EXISTS, so
    that one written in Python may be there; one in SQL does not take its place, nor the other way round.
    """
    key = name.value.casefold()
    in_sql = catalog.sql_functions.get(key)
    existing = in_sql or catalog.functions.get(key)
    if existing is not None and (in_sql is not None or not replaces):
        temporary = in_sql is not None and definition_of(in_sql.text).temporary
        drop = f"DROP {'TEMPORARY ' if temporary else ''}FUNCTION {quote_name(name.value)};"
        written = "SQL" if in_sql is not None else "Python"
        raise NameFault(
            f"there is already a function {existing.name}, written in {written}",
            hint=drop if replaces else f"CREATE OR REPLACE FUNCTION …, or {drop}",
            span=name.span,
            code="ALREADY_EXISTS",
        )
