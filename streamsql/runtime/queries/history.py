"""Reads the static query of BACKFILL, once, before its live table starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamsql.calls import run
from streamsql.connectors.base import schema_text
from streamsql.definitions import Stream
from streamsql.errors import Note, RuleFault, Span
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.tokens import quote, quote_name
from streamsql.plan import plans
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.start_checks import WHOLE
from streamsql.runtime.workspace.owned_folders import claim, remove


def read_history(parts: SessionParts, plan: plans.Run, statement: CreateLiveTable) -> Note:
    """Read the static query into its one file, whole or not at all. The history of a live table that is
    replaced with the same BACKFILL is kept. Returns a note; raises RuleFault for columns that do not fit.
    """
    backfill, history, clause = plan.query.backfill, plan.history, statement.backfill
    assert backfill and history and clause
    folder = Path(history.folder)
    moment = f"before {backfill.until}"
    if backfill.history in parts.catalog.histories() and (folder / WHOLE).exists():
        return Note("BACKFILL", f"the history {moment} stays as it was read: DROP LIVE TABLE reads it again")
    if parts.spark.sql(f"SELECT try_cast({quote(backfill.until)} AS TIMESTAMP)").first()[0] is None:
        raise RuleFault(
            f"{quote(backfill.until)} is not a timestamp",
            hint="UNTIL TIMESTAMP '2024-05-01 00:00:00'",
            span=clause.until.span,
            code="BAD_ARGUMENT",
        )
    env = parts.env(history.program, history.reads)
    *setup, given, result, write = history.program
    run(tuple(setup), env)
    stream = parts.catalog.streams[backfill.stream.casefold()]
    _check_columns(stream, env["rows"].schema, clause.query.span)
    remove(folder)
    claim(folder)
    run((given, result, write), env)
    count = parts.spark.read.parquet(str(folder)).count()
    return Note("BACKFILL", f"rows of history: {count:,}, of which those {moment} are used")


def _check_columns(stream: Stream, given: Any, span: Span) -> None:
    """Raise RuleFault where the columns of the static query are not those of the stream."""
    from pyspark.sql.types import StructType

    needed = {f.name.casefold(): f for f in StructType.fromDDL(schema_text(stream.columns)).fields}
    present = {f.name.casefold(): f for f in given.fields}
    lists = f"columns of {stream.name}: {', '.join(c.name for c in stream.columns)}"
    missing, more = needed.keys() - present.keys(), present.keys() - needed.keys()
    if missing:
        fact = f"the query of BACKFILL has no column {', '.join(sorted(missing))}"
        raise RuleFault(fact, hint=lists, span=span, code="MISSING_COLUMNS")
    if more or len(given.fields) != len(needed):
        fact = f"the query of BACKFILL has columns that {stream.name} has not: {', '.join(sorted(more))}"
        raise RuleFault(fact, hint=lists, span=span, code="UNKNOWN_COLUMN")
    for key, field in needed.items():
        kind, wanted, name = present[key].dataType.simpleString(), field.dataType.simpleString(), field.name
        if kind != wanted:
            fact = f"column {name} of BACKFILL is {kind}, not {wanted}"
            hint = f"CAST({quote_name(name)} AS {wanted.upper()}) AS {quote_name(name)}"
            raise RuleFault(fact, hint=hint, span=span, code="WRONG_TYPE")
