"""Plans for INSERT and EXECUTE STATEMENT SET: a batch write or a streaming query."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign, Function, Var
from streamsql.catalog import Catalog
from streamsql.connectors.registry import connector
from streamsql.connectors.values import Values
from streamsql.definitions import Sink, Stream
from streamsql.errors import NameFault, RuleFault, Span, did_you_mean
from streamsql.language.statements.base import Fragment, Name, check_new_name
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment, reads_of, unknown_stream
from streamsql.plan.lowering.lower import Lowered, lower_statement
from streamsql.plan.lowering.sources import Sources, variable
from streamsql.plan.plans import Plan, Refresh, Run, Target, Write
from streamsql.plan.statements import statement_set
from streamsql.plan.statements.change_queries import check_is_of_streams, insert_changes, writes_once
from streamsql.plan.statements.one_query import check_one_streaming_query
from streamsql.plan.statements.query_parts import (
    QueryParts,
    as_declared,
    check_query_free,
    check_streaming,
    lowered_query,
    no_checkpoint,
    one_result,
    query_of,
)
from streamsql.plan.statements.query_run import beginning, run_plan
from streamsql.plan.statements.second_insert import check_one_query
from streamsql.plan.statements.staged_inserts import (
    insert_in_stages,
    may_run_in_stages,
)


def insert(statement: Insert, context: Context) -> Plan:
    plan = _insert(statement, context)
    keeps = isinstance(plan, Refresh) or (isinstance(plan, Run) and isinstance(plan.otherwise, Refresh))
    if statement.retain and not keeps:
        raise _keeps_none(statement)
    return plan


def _keeps_none(statement: Insert | InsertSet) -> RuleFault:
    return RuleFault(
        "RETAIN limits the rows that a query in stages keeps, and this one keeps none",
        hint="leave RETAIN out",
        span=statement.span,
        code="CLAUSE_NOT_SUPPORTED",
    )


def _insert(statement: Insert, context: Context) -> Plan:
    targets = [context.catalog.target(name.value) for name in statement.targets]
    if len(targets) == 1 and isinstance(targets[0], Stream):
        return _insert_values(statement, targets[0], context)
    sinks = () if targets == [None] else _sinks(statement, context)
    return insert_in_stages(lambda: _insert_select(statement, sinks, context), statement, sinks, context)


def _insert_select(statement: Insert, sinks: tuple[Sink, ...], context: Context) -> Plan:
    """An INSERT of a SELECT. sinks: none for a table of Spark."""
    given = tuple(c.value for c in statement.columns)
    mode = statement.output_mode.value if statement.output_mode else ""
    sources, lowered = lowered_query(statement.query, sinks, context, mode, statement.trigger, given)
    if not sinks:
        return _insert_table(statement, lowered, sources, context)
    _check_columns(statement, sinks, lowered)
    if not lowered.shape.streaming:
        if sources.live and not writes_once(statement):
            return insert_changes(statement, sinks, context)
        return _insert_static(statement, sinks, lowered, sources, context)
    if statement.output_mode is None:
        stages = may_run_in_stages(statement, sinks)
        check_one_streaming_query(
            lowered, sources, statement.query, context, statement.trigger, stages=stages
        )
    parts = one_result(statement.query, sinks, sources, lowered, given)
    return _insert_query(statement, statement.targets, parts, context)


def target_names(catalog: Catalog, *, streams: bool = True) -> list[str]:
    """The names that an INSERT may have as its target. streams: also of rows that are there."""
    kinds = (catalog.sinks, catalog.streams if streams else {}, catalog.tables)
    return [entry.name for entries in kinds for entry in entries.values()]


def no_target(name: Name, catalog: Catalog, *, streams: bool = True) -> NameFault:
    """The error for a name that is neither a sink nor a table. streams: whether a stream may be meant."""
    written = quote_name(name.value)
    return NameFault(
        f"there is no sink or table {name.value}",
        hint=did_you_mean(name.value, target_names(catalog, streams=streams))
        or f"CREATE SINK {written} USING … or CREATE TABLE {written} (…) first",
        span=name.span,
        code="UNKNOWN_SINK",
    )


def _check_columns(statement: Insert, sinks: tuple[Sink, ...], lowered: Lowered) -> None:
    """The columns that INSERT names are its one sink's. Raises faults at the column, or at the SELECT when it
    has another number of columns.
    """
    columns = statement.columns
    if columns and len(sinks) > 1:
        raise RuleFault(
            "an INSERT into several sinks takes no column list",
            hint="an INSERT for each sink",
            span=columns[0].span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    declared = [c.name for sink in sinks for c in sink.columns]
    seen: set[str] = set()
    for column in columns:
        name = column.value.casefold()
        if name in seen:
            raise NameFault(f"the column {column} is named twice", span=column.span, code="DUPLICATE_NAME")
        if declared and name not in {c.casefold() for c in declared}:
            raise NameFault(
                f"the sink {sinks[0].name} has no column {column}",
                hint=did_you_mean(column.value, declared) or f"columns: {', '.join(declared)}",
                span=column.span,
                code="UNKNOWN_COLUMN",
            )
        seen.add(name)
    width = len(lowered.shape.columns or ()) - len(lowered.shape.fields)
    if columns and lowered.shape.columns is not None and width != len(columns):
        raise RuleFault(
            f"the INSERT names {len(columns)} columns, and its SELECT has {width}",
            span=statement.query.span,
            code="WRONG_COLUMNS",
        )


def _sinks(statement: Insert, context: Context) -> tuple[Sink, ...]:
    """The sinks of an INSERT. Raises RuleFault or NameFault for other targets and duplicates."""
    sinks: list[Sink] = []
    for name in statement.targets:
        entry = context.catalog.target(name.value)
        if isinstance(entry, Stream):
            raise RuleFault(
                f"{entry.name} is a stream and cannot be one of several sinks",
                hint=f"INSERT INTO {quote_name(entry.name)} VALUES (…);",
                span=name.span,
                code="WRONG_KIND",
            )
        if entry is None:
            sink_names = [s.name for s in context.catalog.sinks.values()]
            raise NameFault(
                f"there is no sink {name.value}",
                detail="with several sinks, and in a statement set, every target must be a sink",
                hint=did_you_mean(name.value, sink_names)
                or f"CREATE SINK {quote_name(name.value)} USING … first",
                span=name.span,
                code="UNKNOWN_SINK",
            )
        if entry in sinks:
            raise NameFault(f"the sink {entry.name} is named twice", span=name.span, code="DUPLICATE_NAME")
        sinks.append(entry)
    return tuple(sinks)


def insert_set(statement: InsertSet, context: Context) -> Plan:
    targets = [name.value for part in statement.inserts for name in part.targets]
    if statement.of_spark and not any(map(context.catalog.target, targets)):
        return _as_written(statement, ", ".join(targets), context)
    check_is_of_streams(statement, context)
    if statement.retain:
        raise _keeps_none(statement)
    names = tuple(name for part in statement.inserts for name in part.targets)
    return _insert_query(statement, names, insert_set_parts(statement, context), context)


def insert_set_parts(statement: InsertSet, context: Context) -> QueryParts:
    """The INSERTs of a set as one query. Its result is the stream that all of them read, and each SELECT
    becomes a function of that result.
    """
    inserts = statement.inserts
    sinks = [_sinks(part, context) for part in inserts]
    names = [name for part in inserts for name in part.targets]
    for at, name in enumerate(names):
        if name.value.casefold() in {n.value.casefold() for n in names[:at]}:
            raise NameFault(
                f"the sink {name} is named twice in the set",
                hint="write one INSERT with UNION ALL",
                span=name.span,
                code="DUPLICATE_NAME",
            )
    if len(inserts) == 1:
        body = inserts[0].query
        sources, lowered = lowered_query(body, (), context)
        check_streaming(lowered, body, context, "this INSERT of the set")
        return one_result(body, sinks[0], sources, lowered)
    stream, whole, parts = statement_set.stream_of([part.query for part in inserts], context)
    sources = context.sources()
    node, shape = sources.stream(stream)
    targets, functions = [], []
    for group, lowered, part in zip(sinks, whole, parts, strict=True):
        for sink in group:
            select = sources.free_variable(f"rows_for_{sink.name}")
            value = as_declared(part.lowered.node, sink.columns)
            functions.append(Assign(select, Function((variable(stream.name),), part.program, value)))
            targets.append(Target(sink, lowered.shape, select))
        sources.live |= part.live
    body = Fragment(statement.body, Span(inserts[0].span.start, inserts[-1].query.span.end))
    return QueryParts(body, sources, Lowered(node, shape), tuple(targets), tuple(functions))


def _insert_table(statement: Insert, lowered: Lowered, sources: Sources, context: Context) -> Plan:
    """INSERT into a Spark table: Spark's own statement for a static query, else a streaming query."""
    name = statement.targets[0]
    streaming = lowered.shape.streaming
    catalog = context.catalog
    sinks, streams = list(catalog.sinks.values()), list(catalog.streams.values())
    written = [sink.name for sink in sinks]
    like = did_you_mean(name.value, (*written, *(stream.name for stream in streams)))
    written += [] if streaming else [stream.name for stream in streams]
    # The tables of a Connect server are not all in the catalog.
    misspelt = like and name.value.casefold() not in context.catalog.tables and context.server is None
    if misspelt or (statement.has_clauses and not streaming):
        raise NameFault(
            f"there is no sink {name.value}",
            hint=did_you_mean(name.value, written) or f"CREATE SINK {quote_name(name.value)} USING … first",
            span=name.span,
            code="UNKNOWN_SINK",
        )
    if streaming:
        if statement.columns:
            raise RuleFault(
                "a streaming INSERT takes no column list",
                span=statement.columns[0].span,
                code="CLAUSE_NOT_SUPPORTED",
            )
        target = Target(Sink(name.value, "table"), lowered.shape)
        parts = QueryParts(statement.query, sources, lowered, (target,))
        return _insert_query(statement, statement.targets, parts, context)
    if lowered.node == Var("spark").call("sql", statement.query.text) and not sources.views:
        program = (*sources.program, Assign("result", Var("spark").call("sql", statement.text)))
        return Write(program, f"written into {name.value}", reads_of(sources))
    return _as_written(statement, name.value, context)


def _as_written(statement: Insert | InsertSet, tables: str, context: Context) -> Write:
    """An INSERT into tables of Spark, as a statement of Spark."""
    sources = context.sources()
    with statement.origin.errors():
        text, _ = lower_statement(statement.text, sources)
    program = (*sources.program, Assign("result", Var("spark").call("sql", text)))
    return Write(program, f"written into {tables}", reads_of(sources))


def _insert_query(
    statement: Insert | InsertSet, names: tuple[Name, ...], parts: QueryParts, context: Context
) -> Plan:
    """The plan of a streaming INSERT. names: the sinks as written, for the spans of errors."""
    sinks = [t.sink for t in parts.targets]
    own = "_".join(sink.name.rpartition(".")[2] for sink in sinks)
    name = statement.query_name or replace(names[0], value=own)
    check_new_name(name.value, name.span)
    written = statement.targets if isinstance(statement, Insert) else ()
    if statement.checkpoint and any(sink.is_live for sink in sinks):
        raise no_checkpoint(statement.checkpoint)
    query = query_of(
        statement,
        name.value,
        tuple(sink.name for sink in sinks),
        statement.body if isinstance(statement, InsertSet) else parts.body.text,
        together=isinstance(statement, InsertSet),
        columns=tuple(c.value for c in statement.columns) if isinstance(statement, Insert) else (),
    )
    check_one_query(sinks, names, query, context)
    check_query_free(name, context, ", ".join(n.value for n in written))
    run = run_plan(query, parts, context, statement.output_mode, names, statement.late)
    return beginning(run, statement.begins)


def _insert_static(
    statement: Insert, sinks: tuple[Sink, ...], lowered: Lowered, sources: Sources, context: Context
) -> Plan:
    """INSERT of a static SELECT into sinks: one batch write for each sink."""
    listed = ", ".join(sink.name for sink in sinks)
    once = bool(sources.live) and not replace(statement, trigger=None).has_clauses
    if statement.has_clauses and not once:
        hint = f"INSERT INTO {listed} SELECT …  writes once"
        raise unknown_stream(statement.query, context, hint) or RuleFault(
            "this query reads no stream, so it cannot have streaming clauses",
            hint=hint,
            span=statement.query.span,
            code="NO_STREAM",
        )
    program = [*sources.program, Assign("result", lowered.node)]
    if len(sinks) == 1:
        given = tuple(c.value for c in statement.columns)
        program[-1] = Assign("result", as_declared(lowered.node, sinks[0].columns, None, given))
    for sink, name in zip(sinks, statement.targets, strict=True):
        using = connector(Name(sink.connector))
        rows = Var("result") if len(sinks) == 1 else as_declared(Var("result"), sink.columns)
        write = using.write_batch(sink, rows)
        if write is None:
            hint = "CREATE STREAM … first, or a sink that takes static queries"
            raise unknown_stream(statement.query, context, hint) or RuleFault(
                f"{sink.name} is a live table, to which only queries over streams write"
                if sink.is_live
                else f"a {using.name} sink takes streaming queries only",
                hint="HELP live_tables;" if sink.is_live else hint,
                span=name.span,
                code="CONNECTOR_NOT_SUPPORTED",
            )
        program.append(Assign("", write))
    return Write(
        tuple(program), f"written into {listed}", reads_of(sources), sinks=sinks, notes=tuple(sources.notes)
    )


def _check_insert_values(statement: Insert, stream: Stream) -> None:
    """Raise RuleFault or NameFault for a stream that takes no rows, a streaming clause or unknown columns."""
    if stream.connector != "values":
        raise RuleFault(
            f"rows cannot be inserted into the stream {stream.name}:"
            f" it reads {stream.connector or 'a query'}",
            hint="only a stream USING values takes rows: "
            f"CREATE STREAM {quote_name(stream.name + '_in')} (…) USING values;",
            span=statement.targets[0].span,
            code="WRONG_KIND",
        )
    if statement.has_clauses:
        raise RuleFault(
            "an INSERT into a stream takes no streaming clause",
            span=statement.targets[0].span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    column_names = [c.name for c in _values_of(stream).given_columns(stream)]
    for column in statement.columns:
        if column.value.casefold() not in {name.casefold() for name in column_names}:
            raise NameFault(
                f"the stream {stream.name} has no column {column}",
                hint=did_you_mean(column.value, column_names),
                span=column.span,
                code="UNKNOWN_COLUMN",
            )


def _values_of(stream: Stream) -> Values:
    using = connector(Name(stream.connector))
    assert isinstance(using, Values)
    return using


def _insert_values(statement: Insert, stream: Stream, context: Context) -> Plan:
    """INSERT into a stream of values writes one file, which the stream reads as a micro-batch."""
    _check_insert_values(statement, stream)
    sources = context.sources()
    lowered = lower_fragment(statement.query, sources)
    if lowered.shape.streaming:
        both = f"SELECT * FROM {quote_name(stream.name)} UNION ALL {statement.query.text}"
        raise RuleFault(
            "a stream of values takes rows, not another stream",
            proposal=f"CREATE STREAM {quote_name(f'{stream.name}_all')} AS {both};",
            span=statement.query.span,
            code="NOT_ON_STREAMS",
        )
    given = [c.value for c in statement.columns] or [c.name for c in stream.columns]
    rows = _values_of(stream).written(stream, lowered.node, given)
    folder = context.places.values(stream.name)
    write = Var("result").call("coalesce", 1).attr("write").call("mode", "append").call("parquet", folder)
    program = (*sources.program, Assign("result", rows), Assign("", write))
    return Write(program, f"one micro-batch for {stream.name}", reads_of(sources), folder)
