"""The way of a statement to a plan: one function for each kind of statement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamsql.calls import Assign, Var
from streamsql.errors import Source, StreamsqlError, SyntaxFault
from streamsql.language.parser import parse_text
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.explain import Explain as ExplainStatement
from streamsql.language.statements.function import CreateFunction, DescribeFunction, DropFunction
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.look import Preview, ShowTopics
from streamsql.language.statements.select import Select
from streamsql.language.statements.sink import CreateSink
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.plan.context import Context, reads_of
from streamsql.plan.definitions import create_function, create_sink, create_stream
from streamsql.plan.looking import preview, show_topics
from streamsql.plan.plans import Collect, Direct, Explain, Plan, Run, Write
from streamsql.plan.queries import beginning, create_live_table, insert, insert_set, restart, select
from streamsql.plan.stateful import lower_calls

__all__ = ["beginning", "plan", "restart"]


def plan(statement: Statement, context: Context) -> Plan:
    """The plan of a statement. Raises faults whose spans lie in statement.text."""
    make = _PLANNERS.get(type(statement))
    return make(statement, context) if make else Direct(statement)


_CREATES = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?(?:TEMP(?:ORARY)?\s+)?(?:EXTERNAL\s+)?(?:TABLE|VIEW)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?([\w.`]+)",
    re.IGNORECASE,
)


def _spark(statement: Statement, context: Context) -> Plan:
    sources = context.sources()
    made = _CREATES.match(statement.text)
    name = made.group(1).replace("`", "") if made else ""
    if name and context.catalog.relation(name):
        context.catalog.check_free(Name(name))
    text = lower_calls(statement.text, sources)
    streaming = sources.register_views(text)
    program = (*sources.program, Assign("result", Var("spark").call("sql", text)))
    return Collect(program, reads_of(sources), "a statement of Spark", name, streaming)


def _function(statement: DropFunction | DescribeFunction, context: Context) -> Plan:
    """Ours when the function is one written in Python, else Spark's."""
    ours = statement.name.value.casefold() in context.catalog.functions
    return Direct(statement) if ours else _spark(statement, context)


def _explain(statement: ExplainStatement, context: Context) -> Plan:
    if statement.query_name:
        return Explain(statement.mode, _restart(statement.query_name, context))
    assert statement.body
    try:
        inner = parse_text(Source("", statement.body.text))
        inner = replace(inner, text=statement.body.text)
        made = plan(inner, context)
    except StreamsqlError as error:
        if error.span:
            error.span = error.span.shift(statement.body.span.start)
        raise
    if isinstance(made, (Collect, Write, Run)):
        return Explain(statement.mode, made, notes=made.notes)
    raise SyntaxFault(
        "there is no program to explain: this statement is answered by the console itself",
        hint="EXPLAIN takes SELECT, INSERT and CREATE LIVE TABLE",
        span=statement.body.span,
    )


def _restart(name: Name, context: Context) -> Run:
    return restart(context.catalog.query(name), context)


_PLANNERS: dict[type[Statement], Callable[[Any, Context], Plan]] = {
    CreateStream: create_stream,
    CreateSink: create_sink,
    CreateFunction: create_function,
    DropFunction: _function,
    DescribeFunction: _function,
    CreateLiveTable: create_live_table,
    Insert: insert,
    InsertSet: insert_set,
    Select: select,
    Preview: preview,
    ShowTopics: show_topics,
    Spark: _spark,
    ExplainStatement: _explain,
}
