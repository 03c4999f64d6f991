"""Plans statements, with one function for each kind of statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamsql.calls import Assign, Var
from streamsql.definitions import SqlFunction, Table
from streamsql.errors import NameFault, Note, RuleFault, Span, SyntaxFault
from streamsql.feature_registry import extensions, planners
from streamsql.language.spark_definitions import (
    GLOBAL,
    definition_named,
    definition_of,
    inserted_into,
    renamed_to,
)
from streamsql.language.spark_writes import executed_texts
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.checkpoint import DescribeCheckpoint, ShowBatches
from streamsql.language.statements.explain import Explain as ExplainStatement
from streamsql.language.statements.function import CreateFunction, DescribeFunction, DropFunction
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable, DropLiveTable
from streamsql.language.statements.query import DropQuery, FlushQuery, StartQuery
from streamsql.language.statements.select import Select
from streamsql.language.statements.session import Set
from streamsql.language.statements.sink import CreateSink, DropSink
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import AdvanceStream, CreateStream, DropStream
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, Server, reads_of
from streamsql.plan.lowering.lower import lower_statement
from streamsql.plan.plans import Collect, Direct, Drop, Explain, Plan, Run, Start, Write
from streamsql.plan.statements.advances import advance_stream, flush_query
from streamsql.plan.statements.definitions import (
    check_is_new_function,
    create_function,
    create_sink,
    create_stream,
)
from streamsql.plan.statements.existing import (
    checkpoint_of,
    drop_live_table,
    drop_query,
    drop_sink,
    drop_stream,
    named,
    setting,
    start_plan,
    start_query,
)
from streamsql.plan.statements.inserts import insert_set
from streamsql.plan.statements.queries import create_live_table, select, watched_query
from streamsql.plan.statements.query_run import beginning
from streamsql.plan.statements.spark_targets import check_inner_targets, check_target, description
from streamsql.plan.statements.staged_query import insert

__all__ = ["beginning", "plan", "start_plan"]


def plan(statement: Statement, context: Context) -> Plan:
    """The plan of a statement. Raises faults with spans in the statement's source."""
    if context.server:
        planned = _on_server(statement, context, context.server)
    else:
        planned = _planned(statement, context)
    if statement.read_as:
        note = Note("READ_AS", f"read as {statement.read_as};")
        return replace(planned, notes=(note, *planned.notes))
    return planned


def _planned(statement: Statement, context: Context) -> Plan:
    kind = type(statement)
    make = PLANNERS.get(kind) or planners(kind).get(kind)
    return make(statement, context) if make else named(statement, context)


def _on_server(statement: Statement, context: Context, server: Server) -> Plan:
    """The plan for a server. Raises RuleFault for what that lacks."""
    server.check_statement(statement)
    name = getattr(statement, "name", None)
    if statement.refers == "query" and name and name.value.casefold() in server.others:
        return Direct(statement)
    return server.check_plan(_planned(statement, context), statement)


def _spark(statement: Statement, context: Context) -> Plan:
    defines = definition_of(statement.text)
    if defines.staged or (isinstance(statement, Spark) and statement.staged):
        (stage,) = extensions("staged definition")
        planned: Plan = stage(statement, context)
        return planned
    gone = defines.drops or defines.renames
    of_kind = SqlFunction if defines.kind == "function" else Table
    if gone and isinstance(context.catalog.staged_definition(gone), of_kind):
        raise _is_staged(gone, statement.span)
    if defines.kind == "function" and defines.creates.casefold() in context.catalog.functions:
        check_is_new_function(Name(defines.creates, statement.span), context.catalog, replaces=False)
    context = context.of_definition(defines.creates)
    doubt = statement.doubt if isinstance(statement, Spark) else None
    if doubt and isinstance(statement, Spark) and statement.is_refused and not context.extended:
        raise doubt
    try:
        described = description(statement, context)
    except NameFault as fault:  # nothing has the name: a misspelt word says more
        raise doubt or fault from None
    if described is not None:
        return plan(described, context)
    if doubt and context.catalog.target(inserted_into(statement.text)):
        raise doubt
    check_target(statement, context)
    check_inner_targets(statement, context)
    sources = context.sources()
    name = defines.creates or renamed_to(statement.text)
    if name and defines.kind != "function" and context.catalog.relation(name):
        context.catalog.check_free(Name(name))
    with statement.origin.errors():
        text, streaming = lower_statement(statement.text, sources)
    if streaming and executed_texts(statement.text):
        raise RuleFault(
            "EXECUTE IMMEDIATE runs no query over a stream",
            detail="the console runs a query over a stream that stands in a statement",
            proposal=f"{executed_texts(statement.text)[0].rstrip('; ')};",
            span=statement.span,
            code="NOT_ON_STREAMS",
        )
    is_global = defines.kind == "view" and defines.creates.startswith(GLOBAL)
    if is_global and (streaming or sources.live):
        name = defines.creates.removeprefix(GLOBAL)
        raise RuleFault(
            "a global view cannot read streams and live tables",
            detail="Spark keeps it for all sessions: it would keep the rows that they have now",
            proposal=f"{definition_named(statement.text, name, temporary=True)};",
            span=statement.span,
            code="NOT_ON_STREAMS",
        )
    if streaming and defines.view_query and not defines.temporary:
        raise RuleFault(
            "a view over a stream is a stream",
            detail="Spark keeps the definition of a view in its catalog, where no stream of the console is",
            proposal=f"CREATE STREAM {quote_name(name)} AS {defines.view_query};",
            span=statement.span,
            code="NOT_ON_STREAMS",
        )
    if sources.live and defines.view_query:
        read = next(iter(sources.live.values())).name
        raise RuleFault(
            f"a view that is kept cannot read the live table {read}",
            detail="Spark keeps a view in its catalog, where no live table is; a live table of the same query"
            " is kept, and CREATE TEMPORARY VIEW lasts until the console ends",
            proposal=f"CREATE LIVE TABLE {quote_name(name)} AS {defines.view_query};",
            span=statement.span,
            code="NOT_ON_STREAMS",
        )
    if streaming and defines.table_query:
        raise RuleFault(
            "a table of Spark cannot be created from a stream",
            detail="it would have to be written without an end; a live table is kept up to date",
            proposal=f"CREATE LIVE TABLE {quote_name(name)} AS {defines.table_query};",
            span=statement.span,
            code="NOT_ON_STREAMS",
        )
    program = (*sources.program, Assign("result", Var("spark").call("sql", text)))
    return Collect(
        program, reads_of(sources), "a statement of Spark", defines, streaming, notes=tuple(sources.notes)
    )


def _is_staged(name: str, span: Span) -> RuleFault:
    """The error of a view or function that is to go while a change of it is staged."""
    return RuleFault(
        f"a change of {name} is staged",
        hint=f"PROMOTE {quote_name(name)}; or DROP STAGED {quote_name(name)}; first",
        span=span,
        code="IN_USE",
    )


def _watch(statement: Watch, context: Context) -> Plan:
    return watched_query(statement.query, context) if statement.query else named(statement, context)


def _function(statement: DropFunction | DescribeFunction, context: Context) -> Plan:
    """The plan for a function written in Python, else for one of Spark."""
    function = context.catalog.functions.get(statement.name.value.casefold())
    if function is None:
        return _spark(statement, context)
    if isinstance(statement, DropFunction):
        if context.catalog.staged_definition(function.name):
            raise _is_staged(function.name, statement.name.span)
        return Drop("function", function.name, (("functions", function.name),))
    return Direct(statement)


def _explain(statement: ExplainStatement, context: Context) -> Plan:
    if statement.name:
        return _explained(statement, start_query(StartQuery(name=statement.name), context))
    assert statement.body
    return _explained(statement, plan(statement.body, context))


def _explained(statement: ExplainStatement, explained: Plan) -> Explain:
    if isinstance(explained, Start) and len(explained.queries) == 1:
        if explained.fault:
            raise explained.fault
        explained = explained.queries[0].run or explained
    if isinstance(explained, (Collect, Write, Run)):
        return Explain(statement.mode, explained, notes=explained.notes)
    assert statement.body
    raise SyntaxFault(
        "there is no program to explain: the console answers this statement itself",
        hint="EXPLAIN takes SELECT, INSERT and CREATE LIVE TABLE",
        span=statement.body.span,
        code="NO_PROGRAM",
    )


PLANNERS: dict[type[Statement], Callable[[Any, Context], Plan]] = {
    CreateStream: create_stream,
    CreateSink: create_sink,
    CreateFunction: create_function,
    DropFunction: _function,
    DescribeFunction: _function,
    CreateLiveTable: create_live_table,
    Insert: insert,
    InsertSet: insert_set,
    Select: select,
    Spark: _spark,
    ExplainStatement: _explain,
    StartQuery: start_query,
    DropStream: drop_stream,
    DropSink: drop_sink,
    DropLiveTable: drop_live_table,
    DropQuery: drop_query,
    ShowBatches: checkpoint_of,
    DescribeCheckpoint: checkpoint_of,
    Set: setting,
    Watch: _watch,
    AdvanceStream: advance_stream,
    FlushQuery: flush_query,
}
