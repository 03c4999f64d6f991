"""PREVIEW: the first records of a source, and a CREATE STREAM that is inferred from them.

Reads few records, defines nothing and leaves no query running.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, Node, evaluate, run
from streamsql.connectors.packages import PACKAGES
from streamsql.connectors.registry import connector
from streamsql.definitions import PAYLOAD_FORMATS, Stream
from streamsql.errors import InputFault, Note, QueryFault, StreamsqlError
from streamsql.features.preview.plan import Preview as PreviewPlan
from streamsql.features.preview.plan import Topics
from streamsql.features.preview.statement import FIRST
from streamsql.language.statements.base import Name, Statement, Watermark
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, reads_of
from streamsql.plan.statements.queries import SAMPLE, as_they_come
from streamsql.plan.statements.schema_guesses import Leaf, event_time
from streamsql.results import Preview, Result, Rows
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.kafka_topics import check_topics, show_topics
from streamsql.runtime.preflight.local_paths import check_path
from streamsql.runtime.preflight.python_code_checks import check_code
from streamsql.runtime.preflight.registry_subjects import with_schema
from streamsql.runtime.preflight.samples import Seen, first_texts
from streamsql.runtime.preflight.schema_files import with_schema_file
from streamsql.runtime.preflight.schema_inference import of_frame, of_lines, of_messages, suggested
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.workspace.owned_folders import remove

PATIENCE = 5.0
"""The seconds to wait for the first records of a source that has no batch reader."""

QUIET = 1.0
"""The seconds without another record after which those that were asked for are enough."""


class Previewer:
    """Runs one PREVIEW. notes: of the result."""

    def __init__(self, parts: SessionParts, context: Context) -> None:
        self.parts = parts
        self.context = context
        self.notes: list[Note] = []

    def preview(self, plan: PreviewPlan) -> Preview:
        """Preview an existing stream, or (propose) what a connector with options would read."""
        began = time.monotonic()
        stream, proposal = plan.stream, ""
        if plan.path:
            stream = _of_path(stream, plan.path)
        if plan.code:
            check_code(plan.code, stream.option("folder"), connector(Name(stream.connector)), "read")
        options = stream.options
        try:
            stream = with_schema(with_schema_file(stream))
            self._ask_brokers(stream)
            if plan.propose:
                stream, rows = self._proposed(stream, plan.limit)
            else:
                rows = self._rows(stream, plan.limit)
        except Exception as error:
            raise _placed(error, plan) from error
        if plan.propose:
            # A schema that was read for the preview is not written into the statement.
            more = ((k, v) for k, v in stream.options[len(options) :] if k != "avroSchema")
            stream = replace(stream, options=(*options, *more))
            proposal = stream.sql() + ";"
            if stream.watermark is None and stream.columns:
                text = "no column looks like an event time; windows need WITH WATERMARK column DELAY …"
                self.notes.append(Note("NO_EVENT_TIME", text))
        seconds = time.monotonic() - began
        return Preview(tuple(self.notes), rows.columns, rows.rows, rows.numeric, seconds, proposal=proposal)

    # ---- the proposed stream ---------------------------------------------------------------------

    def _proposed(self, stream: Stream, limit: int) -> tuple[Stream, Rows]:
        """The stream that is inferred, and its first rows."""
        source = connector(Name(stream.connector))
        if source.formats:
            return self._messages(stream, limit)
        records = source.records(stream)
        if records is None and not source.infers_columns:
            rows = self._rows(stream, max(limit, 1))
            leaves = [Leaf((c.name,), c.type, _values(rows, c.name)) for c in source.columns(stream)]
            return replace(stream, watermark=event_time(leaves, rows.columns)), rows
        seen, folders = self._seen(stream, records)
        stream, notes = suggested(stream, seen, folders)
        self.notes += notes
        rows = self._rows(stream, limit)
        watermark = stream.watermark
        if watermark and rows.rows and all(v is None for v in _values(rows, watermark.column.value)):
            stream = replace(stream, watermark=None)
            rows = self._rows(stream, limit)
        return stream, rows

    def _messages(self, stream: Stream, limit: int) -> tuple[Stream, Rows]:
        """The same for a source of messages; the format is inferred from the payload if none is given."""
        source, rows = connector(Name(stream.connector)), None
        inferred = source.infer(stream) if stream.format in PAYLOAD_FORMATS else None
        if inferred is not None:
            types = self._frame(inferred).schema
            rows = self._rows(suggested(stream, Seen(types, ()))[0], max(limit, 1))
            values = [row[: len(types.fields)] for row in rows.rows]
            stream, _ = suggested(stream, Seen(types, values))
        elif stream.format == "protobuf":
            raise InputFault(
                "the columns of protobuf messages cannot be inferred",
                hint="declare them in CREATE STREAM, or show the messages with FORMAT raw",
                code="MISSING_COLUMNS",
            )
        else:
            stream, rows = self._texts(stream, source.records(stream), limit)
        if rows is None:
            rows = self._rows(stream, limit)
        arrival = next((f for f in source.metadata(stream) if f.type == "TIMESTAMP"), None)
        if stream.watermark is None and arrival:
            stream = replace(stream, watermark=Watermark(Name(arrival.name), "10 minutes"))
            text = f"no event time in the payload: {arrival.name} is the time of the message"
            self.notes.append(Note("MESSAGE_TIME", text))
        return stream, replace(rows, rows=rows.rows[:limit])

    def _texts(self, stream: Stream, records: Node | None, limit: int) -> tuple[Stream, Rows | None]:
        """The same for messages whose columns are inferred from their text. The rows are None when they
        were not read on the way.
        """
        rows = None
        if records is None:
            rows = self._rows(replace(stream, format="text"), max(limit, FIRST), max(limit, 1))
            texts = [str(row[0]) for row in rows.rows]
        else:
            texts = first_texts(self._frame(records))
        if not texts:
            raise _nothing(stream.name)
        form, seen = of_messages(stream, texts, self.parts.spark)
        if form == "raw" and all(t.startswith("\0") for t in texts):
            self.notes.append(
                Note(
                    "REGISTRY_MESSAGES",
                    "the messages have the header of a schema registry: schemaRegistry 'http://host:8081' "
                    "reads Avro with its schemas, FORMAT avro with wireFormat 'confluent' with yours",
                )
            )
        stream = replace(stream, format=form)
        if seen is not None:
            stream, notes = suggested(stream, seen)
            self.notes += notes
            if seen.missed:  # by default a malformed message fails the query
                stream = replace(stream, malformed="skip")
        return stream, rows

    def _ask_brokers(self, stream: Stream) -> None:
        """Check that the brokers answer and have the topic. Raises faults."""
        asked = connector(Name(stream.connector)).brokers(stream) if stream.connector else None
        if asked:
            self.parts.packages.load(self.parts.spark, PACKAGES[stream.connector], self.parts.cancel)
            check_topics(self.parts.spark, *asked, self.parts.cancel)

    def _seen(self, stream: Stream, records: Node | None) -> tuple[Seen, Sequence[Any]]:
        """The types and values of the records, and the fields of their partition folders."""
        folders: Sequence[Any] = ()
        if records is not None:
            frame = self._frame(records)
            seen, folders = of_lines(stream, frame), frame.schema.fields[1:]
        else:
            inferred = connector(Name(stream.connector)).infer(stream)
            assert inferred is not None
            seen = of_frame(self._frame(inferred))
        if seen is None:
            raise _nothing(stream.name)
        return seen, folders

    def _frame(self, node: Node) -> Any:
        return evaluate(node, self.parts.env((Assign("", node),)))

    # ---- rows -------------------------------------------------------------------------------------

    def _rows(self, stream: Stream, limit: int, least: int | None = None) -> Rows:
        """The first rows of a stream with its columns; of one over a query, those computed from the first
        records of each of its sources. least: how many are enough where it has to wait.
        """
        from pyspark.errors import AnalysisException

        sources = self.context.sources()
        if stream.connector:
            words = (f.name.casefold() for f in connector(Name(stream.connector)).metadata(stream))
            sources.words = frozenset(words) - {"_headers", "_metadata"}
        node, _ = sources.stream(stream)
        at_rest = sources.program_at_rest(SAMPLE if stream.query else limit)
        if isinstance(at_rest, Stream):
            return self._as_they_come(stream, limit, limit if least is None else least)
        program = (*at_rest, Assign("result", node.call("limit", limit)))
        try:
            rows = collect(run(program, self.parts.env(program, reads_of(sources))))
        except AnalysisException:
            if not stream.query:
                raise
            return self._as_they_come(stream, limit, limit)  # an operation that batch queries do not support
        if stream.query:
            text = f"computed from the first {SAMPLE} records of what {stream.name} reads"
            self.notes.append(Note("SAMPLED", text))
        return rows

    def _as_they_come(self, stream: Stream, limit: int, least: int) -> Rows:
        """The first rows of a streaming query over the stream, which is then stopped: when there are as
        many as limit, or as many as least and no other for some time.
        """
        parts = self.parts
        name = f"preview_{len(parts.queries.all) + 1}_{os.getpid()}"
        plan = as_they_come(stream, self.context).named(name, parts.places.transient(name))
        running = start_query(parts, plan)
        live = parts.live[name]
        arrived, began = 0, time.monotonic()
        last = began
        try:
            while running.is_active() and time.monotonic() < began + PATIENCE and arrived < limit:
                table, _ = live.rows()
                if table is not None and table.num_rows > arrived:
                    arrived, last = table.num_rows, time.monotonic()
                elif arrived >= least and time.monotonic() > last + QUIET:
                    break
                else:
                    parts.cancel.wait(0.05)
            if running.status() == "FAILED" and isinstance(running.fault, QueryFault):
                raise running.fault.of("it cannot be read")
            rows = collect(live.frame(parts.spark, limit))
        finally:
            parts.queries.stop(running, parts.cancel, 0)
            parts.queries.forget(name)
            parts.live.pop(name, None)
            remove(Path(plan.checkpoint).parents[1])
        if arrived < least:
            text = f"{stream.connector or stream.name}: rows that arrived within {PATIENCE:.0f} seconds"
            self.notes.append(Note("TIME_LIMITED", text))
        return rows


def _of_path(stream: Stream, path: Name) -> Stream:
    """The stream of a path; for a single file, that of its folder, restricted to the file."""
    if not os.path.isfile(path.value):
        check_path(path)
        return stream
    folder, name = os.path.split(path.value)
    options = ((k, (folder or ".") if k.casefold() == "path" else v) for k, v in stream.options)
    return replace(stream, options=(*options, ("pathGlobFilter", name)))


def _placed(error: Exception, plan: PreviewPlan) -> StreamsqlError:
    """An error of Spark as a fault whose span is the path in the statement."""
    fault = translate(error)
    if fault.condition == "UNABLE_TO_INFER_SCHEMA":
        fault = _nothing(plan.stream.name)
    fault.span = fault.span or (plan.place.span if plan.place else None)
    return fault


def _nothing(name: str) -> InputFault:
    return InputFault(
        "there are no records to show yet",
        hint=f"declare the columns: CREATE STREAM {quote_name(name)} (id INT, ts TIMESTAMP) USING …",
        code="NO_RECORDS",
    )


def _values(rows: Rows, name: str) -> tuple[Any, ...]:
    at = next(i for i, c in enumerate(rows.columns) if c.casefold() == name.casefold())
    return tuple(row[at] for row in rows.rows)


def _preview(parts: SessionParts, plan: PreviewPlan, statement: Statement) -> Result:
    return Previewer(parts, parts.context()).preview(plan)


def _topics(parts: SessionParts, plan: Topics, statement: Statement) -> Result:
    parts.packages.load(parts.spark, PACKAGES["kafka"], parts.cancel)
    return show_topics(parts.spark, plan.settings, plan.like, plan.place.span, parts.cancel)


PLANS: Answers = {PreviewPlan: _preview, Topics: _topics}
