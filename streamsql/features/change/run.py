"""PROMOTE, and the exchange of generations, which ROLLBACK does, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from streamsql.catalog import Catalog
from streamsql.definitions import Query, before_name, is_before, is_staged, promoted_name, staged_name
from streamsql.errors import RuleFault, Span, StreamsqlError
from streamsql.features.change.plan import to_promote
from streamsql.features.change.promote_query import (
    Promotion,
    began_from_now,
    check_runs,
    gets_difference,
    promotion,
    still_to_write,
)
from streamsql.features.change.promoted_readers import going_on, with_asides
from streamsql.features.change.statement import Promote
from streamsql.features.change.swap import (
    Exchange,
    Next,
    promoted,
    put_in_use,
    settle,
    staged_next,
    take_over,
    with_definitions,
)
from streamsql.language.statements.base import Name
from streamsql.language.statements.query import StopQuery
from streamsql.language.tokens import quote_name
from streamsql.plan import planner
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.new_columns import with_new_columns
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import forget_query, start_again, start_query
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import generations_of


def promote_named(parts: SessionParts, statement: Promote) -> Result:
    """PROMOTE. Raises faults, Cancelled."""
    return promote(parts, statement.names, duplicates=statement.duplicates)


def promote(
    parts: SessionParts, names: Iterable[Name], back: str = "", *, duplicates: bool = False
) -> Result:
    """Put staged changes in use. Until that is done, an error or Ctrl-C leaves all queries as they were.
    back: the statement that returns, "" for ROLLBACK with the names; duplicates: of WITH DUPLICATES.
    """
    spans, places = to_promote(names, parts.context())
    definitions = {name: staged_name(name) for name in spans}
    staged = [staged_name(table) for table in places]
    changes = [query for query in parts.catalog.upstream(*staged) if query.name in staged]
    tables, promotions = [promoted_name(query.name) for query in changes], list[Promotion]()
    for query, name in zip(changes, tables, strict=True):
        _check_change(parts, query, places)
        if query.into:
            span = places[name]
            promotions.append(promotion(parts, query, drained(parts), duplicates=duplicates, span=span))

    def after(catalog: Catalog) -> Catalog:
        return reduce(promoted, tables, with_definitions(catalog, definitions))

    whole = Exchange([staged_next(parts, name) for name in tables], after, definitions)
    hidden = {*staged, *(staged_name(before_name(table)) for table in places)}
    then = with_asides(after(parts.catalog), parts.catalog, definitions)
    others = going_on(parts, spans, {*places, *hidden}, then, "PROMOTE")
    before = [drained(parts)(query.name) for query in changes if not query.into]
    before += [step for promoted_query in promotions for step in promoted_query.before]
    stopped = [step for promoted_query in promotions for step in promoted_query.after]
    done = exchange(parts, whole, before, stopped, others, "promoted", back)
    return replace(done, notes=(*done.notes, *still_to_write(parts, promotions)))


def drained(parts: SessionParts) -> Callable[[str], Step]:
    """The step after which a query has processed all available input, and is stopped."""
    return lambda name: Step(partial(_drain, parts, name), partial(start_again, parts, name))


def _check_change(parts: SessionParts, query: Query, places: Mapping[str, Span]) -> None:
    """Raise RuleFault for a staged change that cannot be promoted. places: of the names of the live tables
    that are promoted together.
    """
    table = promoted_name(query.name)
    why = "it is promoted once it has processed all available input"
    check_runs(parts, query.name, f"the staged change of {table}", why, places[table])
    read = {
        promoted_name(name) for name in query.inputs if is_staged(name) and "$" not in promoted_name(name)
    }
    if read - places.keys():
        names = ", ".join(map(quote_name, sorted({*read, *places})))
        raise RuleFault(
            f"the staged change of {table} reads that of {', '.join(sorted(read - places.keys()))}",
            detail="its rows are computed from changes that are not in use",
            hint=f"PROMOTE {names}; puts them in use together",
            span=places[table],
            code="IN_USE",
        )


def _drain(parts: SessionParts, name: str) -> None:
    """Stop a query once it has processed all available input; one that is stopped is started for that. Raises
    its fault, Cancelled.
    """
    start_again(parts, name)
    stop_queries(StopQuery(name=Name(name), drain=True), parts)


def exchange(
    parts: SessionParts,
    whole: Exchange,
    before: Sequence[Step],
    stopped: Sequence[Step],
    others: Sequence[str],
    word: str,
    back: str,
) -> Done:
    """Stop live tables, put other generations of them in use, and start them again. before: what is done
    first; stopped: what is done once they are stopped; others: the queries that read the other definitions
    and go on from their checkpoints; word: what is done to them; back: as for `promote`. A live table that
    was stopped stays stopped; a new one is started.
    """
    tables, gone, statement = whole.tables, whole.gone, parts
    stopping = [q.name for q in parts.catalog.upstream(*gone, *tables) if q.name in (*gone, *tables)]
    stopping = list(dict.fromkeys((*stopping, *tables, *others)))
    runs = [parts.queries.all.get(name.casefold()) for name in stopping]
    running = [run.name for run in runs if run is not None and run.status() in GOING_ON]
    new = [table for table in tables if table.casefold() not in parts.catalog.queries]
    to_start = [table for table in (*tables, *others) if table in running or table in new]

    def stop(name: str) -> None:
        parts.queries.stop(parts.queries.all[name.casefold()], statement.cancel)

    stops = [Step(partial(stop, name), partial(start_again, parts, name)) for name in reversed(running)]
    with parts.cancel.holding(parts.queries.starting):
        run_steps((*before, *stops, *stopped, Step(partial(put_in_use, parts, whole), final=True)))
        parts = parts.under(CancelToken())  # Ctrl-C would leave half of it
        rows = _forgotten(parts, whole)
        take_over(parts, whole)
        for name, loaded in rows.items():
            parts.live[name] = loaded
        if not parts.workspace.save():
            settle(parts, whole)
        for table in tables:
            for query in (table, *(stage.name for stage in parts.catalog.stages_of(table))):
                with suppress(OSError, StreamsqlError):  # the next start clears them
                    generations_of(parts.places, query).clear(parts.config.preferences.count("generations"))
        try:
            for table in to_start:
                _start(parts, table)
        finally:
            parts.queries.refreshes.notify()
    notes = with_new_columns(statement, to_start)
    return Done(notes, _outcome(whole, others, word, _way_back(parts, whole, back)))


def _forgotten(parts: SessionParts, whole: Exchange) -> dict[str, Any]:
    """Forget the runs of what is replaced, taken out, and staged. Returns the rows of staged changes that are
    in no file, by their folded names after PROMOTE.
    """
    catalog, rows = parts.catalog, dict[str, Any]()
    for table in (*whole.tables, *whole.gone):
        for query in (table, *(stage.name for stage in catalog.stages_of(table))):
            _forget(parts, query)
    for change in (c for f in whole.nexts if f.staged for c in catalog.changes_of(f.table)):
        if is_before(change.name):
            forget_query(parts, change.name)
            parts.undefine("sinks", change.name)
            continue
        for query in (change.name, *(stage.name for stage in catalog.stages_of(change.name))):
            loaded = parts.live.loaded(query.casefold())
            if parts.store is None and loaded is not None and not (change.into and query == change.name):
                rows[promoted_name(query).casefold()] = loaded
            _forget(parts, query)
    return rows


def _outcome(whole: Exchange, others: Sequence[str], word: str, back: str) -> str:
    """What was done, in words. back: the statement that returns, and what it brings back, "" for none."""
    nexts, gone, several = whole.nexts, whole.gone, len(whole.nexts) > 1
    names = [*whole.definitions, *whole.tables, *gone]
    text = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} {word}"
    if nexts:
        numbers = ", ".join(following.generation for following in nexts)
        text += f": generation{'s' * several} {numbers} {'are' if several else 'is'} in use"
    if gone:
        text += f"; {', '.join(gone)} {'are' if len(gone) > 1 else 'is'} not in use any more"
    if others:
        goes = "goes" if len(others) == 1 else "go"
        text += f"; {', '.join(others)} {goes} on from the checkpoint{'s' * (len(others) > 1)}"
    return f"{text}; {back}" if back else text


def _way_back(parts: SessionParts, whole: Exchange, back: str) -> str:
    """The statement that returns, and what it brings back; "" where nothing does. back: as for `promote`."""
    nexts = whole.nexts
    if (nexts or whole.gone) and (parts.store is None or not all(_returns(parts, one) for one in nexts)):
        return ""
    if whole.definitions or back:
        back = back or f"ROLLBACK {', '.join(map(quote_name, whole.definitions))};"
        return f"{back} brings back what was in use before"
    if not all(following.instead_of for following in nexts):
        return ""
    what = "the ones before" if len(nexts) > 1 else f"generation {nexts[0].instead_of}"
    return f"ROLLBACK {', '.join(map(quote_name, whole.tables))}; brings {what} back"


def _returns(parts: SessionParts, following: Next) -> bool:
    """Whether ROLLBACK brings back the generation that was in the place of another one."""
    query = parts.catalog.queries[following.table.casefold()]
    if query.live_table or query.inputs:
        return True
    before = Path(parts.places.query(query.name), following.instead_of)
    return gets_difference(parts, query.name) and not began_from_now(before)


def _start(parts: SessionParts, name: str) -> None:
    """Start a query of the catalog. Raises its fault, with what holds then."""
    try:
        start_query(parts, planner.start_plan(parts.catalog.queries[name.casefold()], parts.context()))
    except StreamsqlError as fault:
        said = f"{name} is in use as it was to be, and does not run"
        fault.detail = "\n".join(p for p in (fault.detail, said) if p)
        raise


def _forget(parts: SessionParts, query: str) -> None:
    """Forget the run of a query that has stopped, and the rows in memory; its files stay."""
    parts.queries.forget(query)
    parts.queries.failures.pop(query.casefold(), None)
    parts.histories.forget(query)
    parts.live.forget(query.casefold())
