"""PROMOTE and ROLLBACK of a query that writes into a sink.

A sink with KEY gets the rows of the change, and loses the keys that these do not have. Other sinks keep what
was written: FROM NOW the change goes on where the query stops; else it writes all rows, WITH DUPLICATES.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, evaluate
from streamsql.connectors.registry import ENDLESS, connector
from streamsql.definitions import Query, Sink, before_name, promoted_name, staged_name
from streamsql.errors import Cancelled, Note, RuleFault, Span, StreamsqlError
from streamsql.features.change.query_positions import (
    begin_anew,
    keeps_state,
    newest_batch,
    position,
    renumber,
)
from streamsql.guard import log
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.changes_plan import OF_CHANGES
from streamsql.plan.statements.staged_query import not_into_files
from streamsql.runtime.live.change_log import ChangeLog
from streamsql.runtime.live.recorded_progress import FROM_NOW
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.database_types import check_database_table
from streamsql.runtime.queries.promoted_rows import keep_promoted_rows
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.queries.start_steps import Step
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations

WRITTEN = "written"
"""The folder of a generation of a query over live tables with what it has written."""
_TRIES = 5
"""So often both queries process their input until they stand at the same point."""


@dataclass(frozen=True)
class Promotion:
    """How the staged change of a query is promoted. before: the steps while the query writes, which may take
    long; after: those once it has stopped, before the change is in use; gives_difference: whether the sink
    gets the difference once the query runs.
    """

    name: str
    before: Sequence[Step] = ()
    after: Sequence[Step] = ()
    gives_difference: bool = False


def promotion(
    parts: SessionParts, change: Query, drained: Callable[[str], Step], *, duplicates: bool, span: Span
) -> Promotion:
    """The promotion of the staged change of a query. drained: the step after which a query has processed all
    available input, and is stopped. Raises RuleFault where its sink would get rows twice.
    """
    name, sink, staged = promoted_name(change.name), _sink(parts, change), change.name
    rows_before = staged_name(before_name(name))
    from_now = began_from_now(_generation(parts, name, STAGED))
    whole = parts.queries.all[staged.casefold()].mode == "complete"
    in_step = connector(Name(sink.connector)).keeps_in_step(sink)
    if not (change.inputs or duplicates or in_step or whole or from_now):
        raise RuleFault(
            f"the sink {sink.name} would get rows twice",
            detail=f"{name} has written rows into it, which stay: a {sink.meant} sink"
            f"{' without KEY' if sink.meant == 'jdbc' else ''} takes only new ones; the change is"
            " computed from the beginning",
            hint=f"PROMOTE {quote_name(name)} WITH DUPLICATES; writes all rows of the change, too;\n"
            "or stage it with FROM NOW: then what was written stays, and the change writes from now on",
            span=span,
            code="ROWS_TWICE",
        )
    _check_table(parts, sink, name, span)
    if change.inputs:  # it goes on from what the query has written
        return Promotion(name, [drained(staged)], [Step(partial(_hand_over_change, parts, change))])
    if duplicates and not in_step and not whole:  # it writes all rows
        _check_files(name, sink, _generation(parts, name, STAGED), span)
        return Promotion(name, (), [drained(staged), Step(partial(_begin_anew, parts, change))])
    if in_step and not from_now:
        _check_drains(parts, rows_before, span)
        after = [drained(rows_before), drained(staged), Step(partial(_keep_difference, parts, change))]
        return Promotion(name, [drained(rows_before), drained(staged)], after, gives_difference=True)
    _check_drains(parts, name, span)
    before = [drained(staged), drained(name)]  # the query has read no less than the change then
    if in_step or whole:
        return Promotion(name, before)
    reads = parts.queries.all[staged.casefold()].plan.reads.streams
    if endless := next((stream.name for stream in reads if stream.connector in ENDLESS), None):
        raise RuleFault(
            f"{name} and its staged change do not come to the same point: {endless} always has new rows",
            hint=f"PROMOTE {quote_name(name)} WITH DUPLICATES; writes all rows from the beginning",
            span=span,
            code="QUERY_RUNNING",
        )
    _check_files(name, sink, _generation(parts, name, STAGED), span)
    return Promotion(name, before, [Step(partial(_to_same_point, parts, change, drained))])


def check_runs(parts: SessionParts, query: str, what: str, detail: str, span: Span) -> None:
    """Raise RuleFault for a query that does not run. what: the query, in words."""
    running = parts.queries.all.get(query.casefold())
    if running is None or running.status() not in BUSY:
        failed = running is not None and running.status() == "FAILED"
        raise RuleFault(
            f"{what} {'has failed' if failed else 'is stopped'}",
            detail=detail,
            hint=f"{'WHY' if failed else 'START'} QUERY {quote_name(query)};",
            span=span,
            code="QUERY_NOT_RUNNING",
        )


def _check_drains(parts: SessionParts, query: str, span: Span) -> None:
    check_runs(parts, query, f"the query {query}", "it first processes all available input", span)


def _keep_difference(parts: SessionParts, change: Query) -> None:
    name = promoted_name(change.name)
    sides = [parts.live[hidden.casefold()] for hidden in _hidden(name)]
    before, after = (rows.now().frame(parts.spark) for rows in sides)
    old = _generation(parts, name, CURRENT)
    keep_promoted_rows(_generation(parts, name, STAGED), before, after, _sink(parts, change).key, old)


def _hand_over_change(parts: SessionParts, change: Query) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    name, key, sink = promoted_name(change.name), change.name.casefold(), _sink(parts, change)
    _check_keys(parts.live[key].frame(parts.spark), sink, name)
    own = [StructField(column, BinaryType()) for column in OF_CHANGES]
    schema = StructType([*parts.live[key].schema.fields, *own])
    _hand_over(parts, name, sink, _generation(parts, name, STAGED), schema, parts.catalog.sinks[key].key)


def _to_same_point(parts: SessionParts, change: Query, drained: Callable[[str], Step]) -> None:
    """Bring both queries to the same point of their input: the sink has then each row once."""
    name = promoted_name(change.name)
    checkpoints = [_generation(parts, name, link) / "checkpoint" for link in (CURRENT, STAGED)]
    for query in (change.name, name) * _TRIES:
        now, staged = map(position, checkpoints)
        if now == staged:
            return renumber(checkpoints[1], _newest_number(parts, change))
        drained(query).do()
    raise RuleFault(
        f"{name} and its staged change do not come to the same point of their input",
        detail="new rows come all the time, or the change reads other streams; rows would be written"
        " twice, or left out",
        hint=f"PROMOTE {quote_name(name)} WITH DUPLICATES; writes all rows from the beginning",
        code="QUERY_RUNNING",
    )


def _begin_anew(parts: SessionParts, change: Query) -> None:
    generation = _generation(parts, promoted_name(change.name), STAGED)
    begin_anew(generation / "checkpoint", _newest_number(parts, change))
    shutil.rmtree(generation / "rows", ignore_errors=True)


def _newest_number(parts: SessionParts, query: Query) -> int:
    """The newest micro-batch of a query, where its sink skips micro-batches with a number that it has; else
    -1.
    """
    if not connector(Name(_sink(parts, query).connector)).keeps_log:
        return -1
    return newest_batch(_generation(parts, promoted_name(query.name), CURRENT) / "checkpoint")


def _check_table(parts: SessionParts, sink: Sink, name: str, span: Span) -> None:
    """Raise RuleFault where the table of a database does not take the rows of a change. A table that cannot
    be read is not checked: it may not be there yet.
    """
    before, after = (parts.live.get(staged.casefold()) for staged in _hidden(name))
    if sink.connector != "jdbc" or before is None or after is None:
        return
    reader = connector(Name(sink.connector)).read_back(sink)
    assert reader is not None
    try:
        table = evaluate(reader, parts.env((Assign("", reader),))).schema
    except Cancelled:
        raise
    except Exception as error:
        log(error, f"the columns of the table of {sink.name} are not compared with those of the change")
        return
    check_database_table(parts.spark, sink, table, before.schema, after.schema, name, span)


def _hidden(name: str) -> tuple[str, str]:
    """The names of the hidden live tables of a staged change: the rows before, those of the change."""
    return staged_name(before_name(name)), staged_name(name)


def _check_files(name: str, sink: Sink, generation: Path, span: Span) -> None:
    """Raise RuleFault for a query with state whose micro-batches are numbered in a folder of files."""
    if connector(Name(sink.connector)).keeps_log and keeps_state(generation / "checkpoint"):
        raise not_into_files(name, sink.name, span)


def _sink(parts: SessionParts, query: Query) -> Sink:
    return parts.catalog.sinks[(query.into or query.sinks)[0].casefold()]


def _generation(parts: SessionParts, name: str, link: str) -> Path:
    generation = Generations(parts.places.query(name), link).current
    return generation if generation is not None else Path(parts.places.query(name), link)


def still_to_write(parts: SessionParts, promotions: Sequence[Promotion]) -> Iterator[Note]:
    """Notes about promoted queries that do not run, and give their sink the difference once they do."""
    for done in promotions:
        running = parts.queries.all.get(done.name.casefold())
        if done.gives_difference and (running is None or running.status() not in BUSY):
            start = f"START QUERY {quote_name(done.name)}; gives its sink the difference, and goes on"
            yield Note("STAYS_STOPPED", f"{done.name} does not run: {start}")


def remove_hidden_rows(parts: SessionParts, name: str) -> None:
    """Remove the rows of the hidden live tables of a promoted change, as far as that is possible."""
    query = parts.catalog.queries.get(name.casefold())
    if query is None or query.live_table:
        return  # the rows are its own
    with suppress(OSError, StreamsqlError):
        Generations(parts.places.query(before_name(name)), STAGED).remove()
        shutil.rmtree(_generation(parts, name, CURRENT) / "rows", ignore_errors=True)


def _check_keys(rows: Any, sink: Sink, name: str) -> None:
    """Raise RuleFault where several rows of a DataFrame have the same key of a sink."""
    several = rows.groupBy(*map(quote_name, sink.key)).count().where("count > 1").head() if sink.key else None
    if several is not None:
        raise RuleFault(
            f"the change of {name} has several rows with the same KEY of {sink.name}",
            detail=", ".join(f"{key} {value}" for key, value in zip(sink.key, several, strict=False)),
            hint=f"GROUP BY {', '.join(map(quote_name, sink.key))}; or DISTINCT ON",
            code="ROWS_TWICE",
        )


def _hand_over(
    parts: SessionParts, name: str, sink: Sink, generation: Path, schema: Any, keys: Sequence[str]
) -> None:
    """Give a generation of a query over live tables the record of what the one in use has written. schema,
    keys: of its result. Raises RuleFault, OSError.
    """
    log = ChangeLog(_generation(parts, name, CURRENT) / WRITTEN)
    in_step = connector(Name(sink.connector)).keeps_in_step(sink)
    log.hand_over(generation / WRITTEN, name, schema, keys, by_key=in_step)


def began_from_now(generation: Path) -> bool:
    """Whether a generation began FROM NOW: which input it has not read is not known."""
    return (generation / "checkpoint" / FROM_NOW).exists()


def gets_difference(parts: SessionParts, name: str) -> bool:
    """Whether the sink of a query gets the difference, by key, when the query is rolled back."""
    query = parts.catalog.queries[name.casefold()]
    if query.live_table or query.inputs:
        return False
    sink = _sink(parts, query)
    return connector(Name(sink.connector)).keeps_in_step(sink)


def way_back(
    parts: SessionParts, name: str, old: Query, generation: Path, *, duplicates: bool, span: Span
) -> Step:
    """The step after which an earlier generation of a query can go on, once the query has stopped. old: its
    query. Raises RuleFault where its sink would have wrong rows.
    """
    sink = _sink(parts, old)
    if old.inputs and parts.catalog.queries[name.casefold()].inputs:
        before = ChangeLog(generation / WRITTEN)
        return Step(lambda: _hand_over(parts, name, sink, generation, *before.result()))
    if not duplicates:
        raise RuleFault(
            f"the sink {sink.name} would get rows twice",
            detail=f"the earlier generation of {name} goes on from its own checkpoint, and writes again what"
            " was written since it was left",
            hint=f"ROLLBACK {quote_name(name)} WITH DUPLICATES;",
            span=span,
            code="ROWS_TWICE",
        )
    return Step(partial(_renumber_left, parts, name, generation, span))


def _renumber_left(parts: SessionParts, name: str, generation: Path, span: Span) -> None:
    """Let an earlier generation of a query write into the files of its sink again. Raises RuleFault,
    OSError.
    """
    query = parts.catalog.queries[name.casefold()]
    _check_files(name, _sink(parts, query), generation, span)
    renumber(generation / "checkpoint", _newest_number(parts, query))
