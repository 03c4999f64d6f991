"""PROMOTE and ROLLBACK of a query that writes into a sink.

A sink with KEY gets the rows of the change, and loses the keys that these do not have. Other sinks keep what
was written: FROM NOW the change goes on where the query stops; else it writes all rows, WITH DUPLICATES.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamsql.calls import Assign, evaluate
from streamsql.catalog import Catalog
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
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.staged_query import not_into_files
from streamsql.plan.statements.staged_tables import in_use, renamed
from streamsql.runtime.live.change_log import ChangeLog
from streamsql.runtime.live.recorded_progress import FROM_NOW
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.database_types import check_database_table
from streamsql.runtime.queries.promoted_rows import keep_promoted_rows
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.queries.start import forget_query
from streamsql.runtime.queries.start_steps import Step
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations

DIFFERENCE, GO_ON, SAME_POINT, ANEW, HAND_OVER = "difference", "go on", "same point", "anew", "hand over"
"""What PROMOTE does with the sink of a query: it gets the difference; the change goes on, from where it is or
where the query stops; the change writes all rows; over live tables, the change goes on from what the query
has written."""
WRITTEN = "written"
"""The folder of a generation of a query over live tables with what it has written."""
_TRIES = 5
"""So often both queries process their input until they stand at the same point."""


@dataclass(frozen=True)
class Promotion:
    """The promotion of the staged change of a query. way: one of the above; drained: a step after which a
    query has processed all available input, and is stopped.
    """

    parts: SessionParts
    change: Query
    way: str
    drained: Callable[[str], Step]

    @property
    def name(self) -> str:
        return promoted_name(self.change.name)

    @property
    def _generation(self) -> Path:
        return _generation(self.parts, self.name, STAGED)

    def before(self) -> list[Step]:
        """The steps while the query writes. What takes long is done here."""
        if self.way == ANEW:
            return []
        others = [staged_name(before_name(self.name))] if self.way == DIFFERENCE else []
        return [self.drained(name) for name in (*others, self.change.name, *self._together)]

    @property
    def _together(self) -> list[str]:
        """The query itself, where the change goes on: it has read no less than the change then."""
        return [self.name] if self.way in (GO_ON, SAME_POINT) else []

    def after(self) -> list[Step]:
        """The steps once the query has stopped, before the change is in use."""
        if self.way == DIFFERENCE:
            return [*map(self.drained, _hidden(self.name)), Step(self._keep_difference)]
        if self.way == SAME_POINT:
            return [Step(self._to_same_point), Step(self._renumber)]
        if self.way == HAND_OVER:
            return [Step(self._hand_over)]
        return [self.drained(self.change.name), Step(self._begin_anew)] if self.way == ANEW else []

    def _keep_difference(self) -> None:
        sides = [self.parts.live[name.casefold()] for name in _hidden(self.name)]
        before, after = (rows.now().frame(self.parts.spark) for rows in sides)
        old = _generation(self.parts, self.name, CURRENT)
        keep_promoted_rows(self._generation, before, after, _sink(self.parts, self.change).key, old)

    def _hand_over(self) -> None:
        from pyspark.sql.types import BinaryType, StructField, StructType

        name, sink = self.change.name.casefold(), _sink(self.parts, self.change)
        _check_keys(self.parts.live[name].frame(self.parts.spark), sink, self.name)
        own = [StructField(column, BinaryType()) for column in OF_CHANGES]
        schema = StructType([*self.parts.live[name].schema.fields, *own])
        keys = self.parts.catalog.sinks[name].key
        _hand_over(self.parts, self.name, sink, self._generation, schema, keys)

    def _to_same_point(self) -> None:
        """Bring both queries to the same point of their input: the sink has then each row once."""
        folders = [_generation(self.parts, self.name, link) / "checkpoint" for link in (CURRENT, STAGED)]
        for _ in range(_TRIES):
            now, staged = map(position, folders)
            if now == staged:
                return
            self.drained(self.change.name).do()
            now, staged = map(position, folders)
            if now == staged:
                return
            self.drained(self.name).do()
        raise RuleFault(
            f"{self.name} and its staged change do not come to the same point of their input",
            detail="new rows come all the time, or the change reads other streams; rows would be written"
            " twice, or left out",
            hint=f"PROMOTE {quote_name(self.name)} WITH DUPLICATES; writes all rows from the beginning",
            code="QUERY_RUNNING",
        )

    def _renumber(self) -> None:
        if _numbers(self.parts, self.change):
            number = newest_batch(_generation(self.parts, self.name, CURRENT) / "checkpoint")
            renumber(self._generation / "checkpoint", number)

    def _begin_anew(self) -> None:
        number = -1
        if _numbers(self.parts, self.change):
            number = newest_batch(_generation(self.parts, self.name, CURRENT) / "checkpoint")
        begin_anew(self._generation / "checkpoint", number)
        shutil.rmtree(self._generation / "rows", ignore_errors=True)


def promotion(
    parts: SessionParts, change: Query, drained: Callable[[str], Step], *, duplicates: bool, span: Span
) -> Promotion:
    """How the staged change of a query is promoted. Raises RuleFault where its sink would get rows twice."""
    name, sink = promoted_name(change.name), _sink(parts, change)
    from_now = began_from_now(_generation(parts, name, STAGED))
    mode = parts.queries.all[change.name.casefold()].mode
    in_step = connector(Name(sink.connector)).keeps_in_step(sink)
    if change.inputs:
        way = HAND_OVER
    elif duplicates and not in_step and mode != "complete":
        way = ANEW
    elif in_step and not from_now:
        way = DIFFERENCE
    elif in_step or mode == "complete":
        way = GO_ON
    elif from_now:
        way = SAME_POINT
    else:
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
    for needed in _needed(parts, name, way):
        running = parts.queries.all.get(needed.casefold())
        if running is None or running.status() not in BUSY:
            failed = running is not None and running.status() == "FAILED"
            raise RuleFault(
                f"the query {needed} {'has failed' if failed else 'is stopped'}",
                detail="it first processes all available input",
                hint=f"{'WHY' if failed else 'START'} QUERY {quote_name(needed)};",
                span=span,
                code="QUERY_NOT_RUNNING",
            )
    reads = parts.queries.all[change.name.casefold()].plan.reads.streams
    endless = next((stream.name for stream in reads if stream.connector in ENDLESS), None)
    if way == SAME_POINT and endless:
        raise RuleFault(
            f"{name} and its staged change do not come to the same point: {endless} always has new rows",
            hint=f"PROMOTE {quote_name(name)} WITH DUPLICATES; writes all rows from the beginning",
            span=span,
            code="QUERY_RUNNING",
        )
    if way in (SAME_POINT, ANEW):
        check_files(parts, name, sink, STAGED, span)
    _check_table(parts, sink, name, span)
    return Promotion(parts, change, way, drained)


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


def _needed(parts: SessionParts, name: str, way: str) -> Sequence[str]:
    """The queries that must run, beside the change."""
    if way == DIFFERENCE:
        return [staged_name(before_name(name))]
    return [name] if way in (GO_ON, SAME_POINT) else []


def check_files(parts: SessionParts, name: str, sink: Sink, link: str, span: Span) -> None:
    """Raise RuleFault for a query with state whose micro-batches are numbered in a folder of files."""
    if connector(Name(sink.connector)).keeps_log and keeps_state(
        _generation(parts, name, link) / "checkpoint"
    ):
        raise not_into_files(name, sink.name, span)


def _numbers(parts: SessionParts, change: Query) -> bool:
    """Whether the sink skips micro-batches with a number that it has."""
    return connector(Name(_sink(parts, change).connector)).keeps_log


def _sink(parts: SessionParts, change: Query) -> Sink:
    return parts.catalog.sinks[change.into[0].casefold()]


def _generation(parts: SessionParts, name: str, link: str) -> Path:
    generation = Generations(parts.places.query(name), link).current
    return generation if generation is not None else Path(parts.places.query(name), link)


def still_to_write(parts: SessionParts, promotions: Sequence[Promotion]) -> Iterator[Note]:
    """Notes about promoted queries that do not run, and give their sink the difference once they do."""
    for done in promotions:
        running = parts.queries.all.get(done.name.casefold())
        if done.way == DIFFERENCE and (running is None or running.status() not in BUSY):
            start = f"START QUERY {quote_name(done.name)}; gives its sink the difference, and goes on"
            yield Note("STAYS_STOPPED", f"{done.name} does not run: {start}")


def query_promoted(catalog: Catalog, name: str) -> Catalog:
    """The catalog with the staged change of a query in its place."""
    change = catalog.staged(name)
    assert change is not None
    retain = change.retain if change.inputs else 0  # else it limits the hidden live table
    query = replace(renamed(change), sinks=change.into, into=(), live_table=False, retain=retain)
    stages = catalog.stages_of(change.name)
    tables = [in_use(catalog.sinks[stage.name.casefold()]) for stage in stages]
    for kind, entry in entries_of(catalog.queries[name.casefold()], catalog):
        catalog = catalog.without(kind, entry)
    return catalog.having(query, *map(renamed, stages), *tables)


def take_over_query(parts: SessionParts, name: str) -> None:
    """Put the definition of the staged change of a query into the catalog, and forget the hidden live
    tables.
    """
    before = staged_name(before_name(name))
    if before.casefold() in parts.catalog.queries:
        forget_query(parts, before)
    parts.current.update(lambda catalog: query_promoted(catalog, name))
    remove_hidden_rows(parts, name)


def remove_hidden_rows(parts: SessionParts, name: str) -> None:
    """Remove the rows of the hidden live tables of a promoted change, as far as that is possible."""
    if parts.catalog.queries[name.casefold()].live_table:
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
    sink = parts.catalog.sinks[query.sinks[0].casefold()]
    return connector(Name(sink.connector)).keeps_in_step(sink)


def way_back(
    parts: SessionParts, name: str, old: Query, generation: Path, *, duplicates: bool, span: Span
) -> Step:
    """The step after which an earlier generation of a query can go on, once the query has stopped. old: its
    query. Raises RuleFault where its sink would have wrong rows.
    """
    sink = parts.catalog.sinks[old.sinks[0].casefold()]
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
    return Step(lambda: _renumber_left(parts, name, generation, span))


def _renumber_left(parts: SessionParts, name: str, generation: Path, span: Span) -> None:
    """Let an earlier generation of a query write into the files of its sink again. Raises RuleFault,
    OSError.
    """
    sink = parts.catalog.sinks[parts.catalog.queries[name.casefold()].sinks[0].casefold()]
    if not connector(Name(sink.connector)).keeps_log:
        return
    if keeps_state(generation / "checkpoint"):
        raise not_into_files(name, sink.name, span)
    renumber(generation / "checkpoint", newest_batch(_generation(parts, name, CURRENT) / "checkpoint"))
