"""Handlers of staged changes and generations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsql.catalog import Catalog
from streamsql.definitions import is_staged, promoted_name, staged_name
from streamsql.errors import Note, RuleFault, StreamsqlError
from streamsql.features.change.compare import compare
from streamsql.features.change.preview_change import preview_change
from streamsql.features.change.readers import columns_of, restarted_readers
from streamsql.features.change.statement import (
    Compare,
    PreviewChange,
    Promote,
    Rollback,
    ShowGenerations,
    ShowStaged,
)
from streamsql.features.change.swap import (
    defined,
    finish,
    promoted,
    put_in_use,
    renamed,
    saved,
    staged_generations,
)
from streamsql.language.statements.base import Name
from streamsql.language.statements.query import StopQuery
from streamsql.language.tokens import quote_name
from streamsql.plan import planner
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import size_text, table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.new_generations import query_now
from streamsql.runtime.queries.run import BUSY, GOING_ON
from streamsql.runtime.queries.start import start_query
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations, Left, generations_of

# ---- SHOW -----------------------------------------------------------------------------------


def _show_staged(parts: SessionParts, statement: ShowStaged) -> Result:
    rows = []
    for query in parts.catalog.named(None):
        if is_staged(query.name):
            rows.append((promoted_name(query.name), *_progress(parts, query.name)))
    columns = ("name", "status", "batch", "rows in", "of", "%", "rows", "running", "last error")
    return table(columns, rows, (2, 3, 4, 5, 6), "nothing is staged")


def _progress(parts: SessionParts, staged: str) -> tuple[Any, ...]:
    """The columns of SHOW STAGED behind the name: what the change has read, of what the live table has."""
    running, before = parts.queries.all.get(staged.casefold()), parts.queries.all.get(_of(staged))
    facts, read = parts.facts(staged), parts.facts(promoted_name(staged)).account.read
    of, percent = None, None
    plans = [run.plan for run in (running, before) if run is not None]
    streams = [{s.name for p in (plan, *_stages(plan)) for s in p.reads.streams} for plan in plans]
    if len(streams) == 2 and streams[0] == streams[1] and read and not facts.account.read.at_least:
        of = read.cell
        percent = min(100, facts.account.read.number * 100 // read.number)
    rows = parts.live.loaded(staged.casefold())
    count = None if rows is None or rows.table is None else rows.table.num_rows
    since = brief((datetime.now() - running.started).total_seconds()) if running and not running.ended else ""
    batch = facts.batch if facts.batch >= 0 else None
    return facts.status, batch, facts.account.read.cell, of, percent, count, since, facts.error


def _of(staged: str) -> str:
    return promoted_name(staged).casefold()


def _stages(plan: Any) -> tuple[Any, ...]:
    return getattr(plan, "stages", ())


def _show_generations(parts: SessionParts, statement: ShowGenerations) -> Result:
    rows = []
    for query in parts.catalog.named(statement.name):
        if not is_staged(query.name):
            rows += list(_generations(parts, query.name))
    columns = ("name", "generation", "status", "left at", "size", "definition")
    return table(columns, rows, (1,), "no generations")


def _generations(parts: SessionParts, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows of SHOW GENERATIONS for a query, the newest first."""
    folder, catalog = parts.places.query(name), parts.catalog
    in_use, staged = Generations(folder, CURRENT), Generations(folder, STAGED)
    found: list[tuple[Path, str, str, str]] = []
    for generations, status, query in ((in_use, "in use", name), (staged, "staged", staged_name(name))):
        if generations.current is not None and query.casefold() in catalog.queries:
            definition = query_now(catalog, parts.places, query).definition
            found.append((generations.current, status, "", definition))
    for left in in_use.left():
        found.append((left.folder, "left", f"{left.at:%Y-%m-%d %H:%M:%S}", left.definition))
    for path, status, left_at, text in sorted(found, key=lambda row: int(row[0].name), reverse=True):
        yield name, int(path.name), status, left_at, size_text(_size(path)), " ".join(text.split())


def _size(folder: Path) -> int:
    """The bytes of all files in a folder, as far as these can be read."""
    total = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, file)).st_size
    return total


# ---- PROMOTE, ROLLBACK ----------------------------------------------------------------------


def _promote(parts: SessionParts, statement: Promote) -> Result:
    """Put a staged change in use. Until that is done, an error or Ctrl-C leaves both queries as they were."""
    name = parts.catalog.live_table(statement.name).name
    staged = staged_name(name)
    running = parts.queries.all.get(staged.casefold())
    if running is None or running.status() not in BUSY:
        raise _not_running(parts, staged, statement)
    generation, numbers = staged_generations(parts, name)
    assert generation is not None
    definition = _definition_after(parts.catalog, name)

    def commit() -> None:
        put_in_use(parts, name, generation, definition, numbers)

    def take_over(definition: str, stages: Mapping[str, str]) -> None:
        for old in (staged, *(query.name for query in parts.catalog.stages_of(staged))):
            rows = parts.live.loaded(old.casefold())
            _forget(parts, old)
            if parts.store is None and rows is not None:  # they are in no file
                parts.live[promoted_name(old).casefold()] = rows
        parts.current.update(lambda catalog: promoted(catalog, name))

    before = Generations(parts.places.query(name), CURRENT).current
    drain = Step(lambda: _drain(parts, staged), lambda: _again(parts, staged))
    notes = _swap(parts, name, (drain,), commit, take_over)
    return Done(notes, f"{name} is promoted: {_in_use(parts, name, generation, before)}")


def _not_running(parts: SessionParts, staged: str, statement: Promote) -> RuleFault:
    running = parts.queries.all.get(staged.casefold())
    failed = running is not None and running.status() == "FAILED"
    return RuleFault(
        f"the staged change of {promoted_name(staged)} {'has failed' if failed else 'is stopped'}",
        detail="it is promoted once it has processed all available input",
        hint=f"{'WHY' if failed else 'START'} QUERY {quote_name(staged)};",
        span=statement.name.span,
        code="QUERY_NOT_RUNNING",
    )


def _definition_after(catalog: Catalog, name: str) -> str:
    """The statement that creates a live table once its staged change is promoted."""
    change = catalog.staged(name)
    assert change is not None
    catalog = promoted(catalog, name)
    return renamed(change).sql(catalog.sinks[name.casefold()])


def _drain(parts: SessionParts, name: str) -> None:
    """Stop a query once it has processed all available input. Raises its fault, Cancelled."""
    stop_queries(StopQuery(name=Name(name), drain=True), parts)


def _rollback(parts: SessionParts, statement: Rollback) -> Result:
    """Bring an earlier generation back. Until that is done, an error or Ctrl-C leaves the query as it was."""
    name = parts.catalog.live_table(statement.name).name
    left = _left(parts, name, statement)
    catalog = defined(parts, name, left.definition, in_stages=bool(left.stages))

    def commit() -> None:
        put_in_use(parts, name, left.folder, left.definition, left.stages)

    def take_over(definition: str, stages: Mapping[str, str]) -> None:
        parts.current.update(lambda old: catalog)

    before = Generations(parts.places.query(name), CURRENT).current
    notes = _swap(parts, name, (), commit, take_over)
    return Done(notes, f"{name} is rolled back: {_in_use(parts, name, left.folder, before)}")


def _left(parts: SessionParts, name: str, statement: Rollback) -> Left:
    """The generation that ROLLBACK means. Raises RuleFault."""
    found = Generations(parts.places.query(name), CURRENT).left()
    if parts.store is None:
        raise RuleFault(
            f"no earlier generation of {name} is kept: this console has no workspace",
            hint="streamsql --workspace DIR keeps the rows of each generation",
            span=statement.name.span,
            code="NO_GENERATION",
        )
    number = statement.generation
    chosen = [left for left in found if number is None or left.folder.name == str(number)]
    which = "earlier generation" if number is None else f"generation {number}"
    if not chosen:
        raise RuleFault(
            f"there is no {which} of {name} to go back to",
            detail="SET streamsql.generations says how many stay once they were replaced",
            hint=f"SHOW GENERATIONS OF {quote_name(name)};",
            span=statement.name.span,
            code="NO_GENERATION",
        )
    left = chosen[0]
    for stage, stage_number in left.stages.items():
        if not Path(parts.places.query(stage), stage_number).is_dir():
            raise RuleFault(
                f"generation {left.folder.name} of {name} is not whole: its stage {stage} is gone",
                hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(name)} AS …; computes it again",
                span=statement.name.span,
                code="NO_GENERATION",
            )
    return left


def _in_use(parts: SessionParts, name: str, generation: Path, before: Path | None) -> str:
    """Which generation is in use now, and the way back."""
    back = f"; ROLLBACK {quote_name(name)}; brings generation {before.name} back" if before else ""
    return f"generation {generation.name} is in use{back if parts.store else ''}"


def _swap(
    parts: SessionParts,
    name: str,
    before: tuple[Step, ...],
    commit: Callable[[], None],
    take_over: Callable[[str, Mapping[str, str]], None],
) -> tuple[Note, ...]:
    """Stop a live table, put another generation in use, and start it again; also what reads it, where its
    columns have changed. before: what is done first; commit: puts the generation in use; take_over: changes
    the catalog. A live table that was stopped stays stopped. Returns notes about what reads it.
    """
    running, columns = parts.queries.all.get(name.casefold()), columns_of(parts, name)
    went_on = running is not None and running.status() in GOING_ON

    def stop() -> None:
        if running is not None and went_on:
            parts.queries.stop(running, parts.cancel)

    with parts.cancel.holding(parts.queries.starting):
        stopping = Step(stop, lambda: _again(parts, name) if went_on else None)
        run_steps((*before, stopping, Step(commit, final=True)))
        parts = parts.under(CancelToken())  # Ctrl-C would leave half of it
        for query in (name, *(stage.name for stage in parts.catalog.stages_of(name))):
            _forget(parts, query)
        finish(parts.places, name, take_over)
        parts.workspace.save()
        saved(parts.places, name)
        for query in (name, *(stage.name for stage in parts.catalog.stages_of(name))):
            with suppress(OSError, StreamsqlError):  # the next start clears them
                generations_of(parts.places, query).clear(parts.generations())
        if not went_on:
            return ()
        try:
            start_query(parts, planner.start_plan(parts.catalog.queries[name.casefold()], parts.context()))
        except StreamsqlError as fault:
            said = f"{name} is in use as it was to be, and does not run"
            fault.detail = "\n".join(p for p in (fault.detail, said) if p)
            raise
        finally:
            parts.queries.refreshes.notify()
        return restarted_readers(parts, name, columns)


def _forget(parts: SessionParts, query: str) -> None:
    """Forget the run of a query that has stopped, and the rows in memory; its files stay."""
    parts.queries.forget(query)
    parts.queries.failures.pop(query.casefold(), None)
    parts.histories.forget(query)
    parts.live.forget(query.casefold())


def _again(parts: SessionParts, name: str) -> None:
    """Start a query again that a statement which failed has stopped."""
    running, parts = parts.queries.all.get(name.casefold()), parts.under(CancelToken())
    if running is not None and running.status() in BUSY and running.stopped:
        parts.queries.stop(running, parts.cancel)
    if running is not None and running.status() == "stopped":
        start_query(parts, planner.start_plan(parts.catalog.queries[name.casefold()], parts.context()))


def _compare(parts: SessionParts, statement: Compare) -> Result:
    return compare(parts, statement)


DIRECT: Answers = {
    ShowStaged: _show_staged,
    PreviewChange: preview_change,
    ShowGenerations: _show_generations,
    Compare: _compare,
    Promote: _promote,
    Rollback: _rollback,
}
