"""PROMOTE, the exchange of generations, and the handlers of other statements about staged changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from streamsql.definitions import Query, before_name, is_staged, promoted_name, staged_name
from streamsql.errors import RuleFault, Span, StreamsqlError
from streamsql.features.change.compare import compare
from streamsql.features.change.plan import to_promote
from streamsql.features.change.preview_change import preview_change
from streamsql.features.change.promote_query import (
    Promotion,
    began_from_now,
    gets_difference,
    promotion,
    query_promoted,
    still_to_write,
    take_over_query,
)
from streamsql.features.change.promoted_readers import going_on, with_asides
from streamsql.features.change.show_changes import show_generations, show_staged
from streamsql.features.change.statement import (
    Compare,
    PreviewChange,
    Promote,
    ShowGenerations,
    ShowStaged,
)
from streamsql.features.change.swap import (
    Next,
    define_in_spark,
    finish,
    in_sets,
    numbers_of,
    promoted,
    put_in_use,
    saved,
    staged_generations,
    take_out,
    with_definitions,
    without,
)
from streamsql.language.statements.base import Name
from streamsql.language.statements.query import StopQuery
from streamsql.language.tokens import quote_name
from streamsql.plan import planner
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.new_columns import with_new_columns
from streamsql.runtime.queries.run import BUSY, GOING_ON
from streamsql.runtime.queries.start import start_again, start_query
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import CURRENT, Generations, generations_of


def _promote(parts: SessionParts, statement: Promote) -> Result:
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
    nexts, catalog = list[Next](), with_definitions(parts.catalog, definitions)
    promotions = list[Promotion]()
    for query in changes:
        name = promoted_name(query.name)
        _check_change(parts, query, places)
        generation, stages = staged_generations(parts, name)
        assert generation is not None
        if query.into:
            promotions.append(
                promotion(parts, query, drained(parts), duplicates=duplicates, span=places[name])
            )
            catalog = query_promoted(catalog, name)
        else:
            catalog = promoted(catalog, name)
        definition = catalog.queries[name.casefold()].sql(catalog.sinks.get(name.casefold()))
        nexts.append(Next(name, generation, definition, stages))

    hidden = {*staged, *(staged_name(before_name(table)) for table in places)}
    then = with_asides(catalog, parts.catalog, definitions)
    others = going_on(parts, spans, {*places, *hidden}, then, "PROMOTE")
    before = [drained(parts)(query.name) for query in changes if not query.into]
    before += [step for promoted_query in promotions for step in promoted_query.before()]
    after = [step for promoted_query in promotions for step in promoted_query.after()]
    taking = partial(take_over, parts)
    done = exchange(parts, nexts, before, after, taking, "promoted", definitions, others, back)
    return replace(done, notes=(*done.notes, *still_to_write(parts, promotions)))


def drained(parts: SessionParts) -> Callable[[str], Step]:
    """The step after which a query has processed all available input, and is stopped."""
    return lambda name: Step(partial(_drain, parts, name), partial(start_again, parts, name))


def take_over(parts: SessionParts, table: str) -> None:
    """Put the definition of a staged change into the catalog, in the place of that in use."""
    staged = staged_name(table)
    into = parts.catalog.queries[staged.casefold()].into
    for old in (staged, *(query.name for query in parts.catalog.stages_of(staged))):
        rows = parts.live.loaded(old.casefold())
        _forget(parts, old)
        if parts.store is None and rows is not None and not (into and old == staged):
            # They are in no file.
            parts.live[promoted_name(old).casefold()] = rows
    if into:
        return take_over_query(parts, table)
    parts.current.update(lambda catalog: promoted(catalog, table))


def _check_change(parts: SessionParts, query: Query, places: Mapping[str, Span]) -> None:
    """Raise RuleFault for a staged change that cannot be promoted. places: of the names of the live tables
    that are promoted together.
    """
    table = promoted_name(query.name)
    running = parts.queries.all.get(query.name.casefold())
    if running is None or running.status() not in BUSY:
        failed = running is not None and running.status() == "FAILED"
        raise RuleFault(
            f"the staged change of {table} {'has failed' if failed else 'is stopped'}",
            detail="it is promoted once it has processed all available input",
            hint=f"{'WHY' if failed else 'START'} QUERY {quote_name(query.name)};",
            span=places[table],
            code="QUERY_NOT_RUNNING",
        )
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
    nexts: Sequence[Next],
    before: Sequence[Step],
    after: Sequence[Step],
    take_over: Callable[[str], None],
    word: str,
    definitions: Mapping[str, str],
    others: Sequence[str],
    back: str,
    gone: Sequence[str] = (),
) -> Done:
    """Stop live tables, put other generations of them in use, and start them again. nexts: each after
    those that it reads; before: what is done first; after: what is done once they are stopped; take_over:
    puts the definition of a live table into the catalog; word: what is done to them; definitions: those
    that are put in use with them, as for `with_definitions`; others: the queries that read these and go
    on from their checkpoints; back: as for `promote`; gone: the live tables that are taken out of use. A live
    table that was stopped stays stopped; a new one is started.
    """
    tables = [following.table for following in nexts]
    ordered = [query.name for query in parts.catalog.upstream(*gone, *tables)]
    stopping = [name for name in ordered if name in (*gone, *tables)]
    stopping = list(dict.fromkeys((*stopping, *tables, *others)))
    runs = [parts.queries.all.get(name.casefold()) for name in stopping]
    running = [run.name for run in runs if run is not None and run.status() in GOING_ON]
    new = [table for table in tables if table.casefold() not in parts.catalog.queries]
    to_start = [table for table in (*tables, *others) if table in running or table in new]
    old = [Generations(parts.places.query(table), CURRENT).current for table in tables]

    def stop(table: str) -> None:
        parts.queries.stop(parts.queries.all[table.casefold()], parts.cancel)

    statement = parts
    with parts.cancel.holding(parts.queries.starting):
        stops = [
            Step(partial(stop, table), partial(start_again, parts, table)) for table in reversed(running)
        ]
        swap = Step(lambda: put_in_use(parts, nexts, definitions, gone), final=True)
        run_steps((*before, *stops, *after, swap))
        parts = parts.under(CancelToken())  # Ctrl-C would leave half of it
        for table in (*tables, *gone):
            for query in (table, *(stage.name for stage in parts.catalog.stages_of(table))):
                _forget(parts, query)
        for table in gone:
            parts.current.update(partial(without, table=table))
        parts.current.update(
            lambda catalog: in_sets(with_definitions(catalog, definitions), numbers_of(nexts), definitions)
        )
        define_in_spark(parts, definitions)
        for table in tables:
            finish(parts.places, table, partial(_taken_over, take_over, table))
        parts.workspace.save()
        for table in gone:
            with suppress(OSError):  # the next opening does it
                take_out(parts.places, table)
        for table in tables:
            saved(parts.places, table)
            for query in (table, *(stage.name for stage in parts.catalog.stages_of(table))):
                with suppress(OSError, StreamsqlError):  # the next start clears them
                    generations_of(parts.places, query).clear(parts.config.preferences.count("generations"))
        try:
            for table in to_start:
                _start(parts, table)
        finally:
            parts.queries.refreshes.notify()
    notes = with_new_columns(statement, to_start)
    numbers = ", ".join(following.generation.name for following in nexts)
    several = len(nexts) > 1
    names = [*definitions, *tables, *gone]
    text = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} {word}"
    if nexts:
        text += f": generation{'s' * several} {numbers} {'are' if several else 'is'} in use"
    if gone:
        text += f"; {', '.join(gone)} {'are' if len(gone) > 1 else 'is'} not in use any more"
    if others:
        goes = "goes" if len(others) == 1 else "go"
        text += f"; {', '.join(others)} {goes} on from the checkpoint{'s' * (len(others) > 1)}"
    queries = [parts.catalog.queries.get(table.casefold()) for table in tables]
    returns = all(
        q and (q.live_table or q.inputs or _returns(parts, q, generation))
        for q, generation in zip(queries, old, strict=True)
    )
    can_return = not (nexts or gone) or (parts.store is not None and returns)
    if can_return and (definitions or back):
        back = back or f"ROLLBACK {', '.join(map(quote_name, definitions))};"
        text += f"; {back} brings back what was in use before"
    elif all(old) and can_return:
        what = "the ones before" if several else f"generation {old[0].name if old[0] else ''}"
        text += f"; ROLLBACK {', '.join(map(quote_name, tables))}; brings {what} back"
    return Done(notes, text)


def _returns(parts: SessionParts, query: Query, before: Path | None) -> bool:
    """Whether ROLLBACK brings the generation before of a query over streams into a sink back."""
    return gets_difference(parts, query.name) and not (before and began_from_now(before))


def _taken_over(
    take_over: Callable[[str], None], table: str, definition: str, stages: Mapping[str, str]
) -> None:
    take_over(table)


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


def _compare(parts: SessionParts, statement: Compare) -> Result:
    return compare(parts, statement)


OF_SINGLE_CHANGES: Answers = {
    ShowStaged: show_staged,
    PreviewChange: preview_change,
    ShowGenerations: show_generations,
    Compare: _compare,
    Promote: _promote,
}
