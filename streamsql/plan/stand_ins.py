"""What takes the place of streams, sinks and clauses of a pipeline in a test.

A stream becomes one of values, with the same columns and watermark, to which GIVEN gives rows. A sink keeps
its rows in memory. A query runs micro-batches as soon as there are rows, from a checkpoint of the test's own.
"""

from __future__ import annotations

from dataclasses import replace

from streamsql.connectors import debezium
from streamsql.connectors.given import format_options, message_format, takes_messages
from streamsql.connectors.registry import connector
from streamsql.definitions import DEFAULT_RETAIN, ROW_FILES, Original, Sink, Stream
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.plan.plans import DefineStream


def given_stream(stream: Stream) -> Stream:
    """The stream that takes the place of one USING a connector; one over a query, or of values, stays."""
    if not stream.connector or stream.connector == "values":
        return stream
    messages = takes_messages(stream)
    may_be_malformed = messages or stream.connector in ROW_FILES
    return replace(
        stream,
        connector="values",
        format=message_format(stream) if messages else "",
        columns=stream.columns or connector(Name(stream.connector)).columns(stream),
        options=format_options(stream) if messages else (),
        inferred=False,
        malformed=stream.malformed if may_be_malformed else "",
        malformed_sink=stream.malformed_sink if may_be_malformed else "",
        stands_for=stream,
    )


def stand_in_sink(sink: Sink) -> Sink:
    """The sink that takes the place of another one; a live table stays."""
    if sink.is_live:
        return sink
    using = connector(Name(sink.connector))
    original = Original(
        sink.connector,
        using.modes_of(sink),
        using.shows_newest(sink),
        using.keeps_in_step(sink),
        using.changes_writer(sink) is not None,
        sink.format == debezium.FORMAT,
    )
    return replace(
        sink,
        connector="memory",
        format="",
        partitioned_by=(),
        options=(),
        retain=DEFAULT_RETAIN,
        stands_for=original,
    )


def without_source(plan: DefineStream) -> DefineStream:
    """The plan of a stream whose source need not be there, unless its columns are read from it."""
    if plan.infer is not None:
        return plan
    return replace(plan, path=None, code=None)


def in_test(statement: Statement) -> Statement:
    """A statement of a pipeline as a test executes it."""
    if isinstance(statement, (Insert, InsertSet, CreateLiveTable)):
        return replace(statement, trigger=None, checkpoint=None, restart=None, begins="")
    return statement
