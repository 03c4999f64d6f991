"""PROMOTE and ROLLBACK, and the handlers of the other statements about staged changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from streamsql.definitions import Query, before_name, is_staged, promoted_name, staged_name
from streamsql.errors import RuleFault, Span, StreamsqlError
from streamsql.features.change.affected import names_in
from streamsql.features.change.compare import compare
from streamsql.features.change.plan import to_promote
from streamsql.features.change.preview_change import preview_change
from streamsql.features.change.promote_query import (
    Promotion,
    promotion,
    query_promoted,
    still_to_write,
    take_over_query,
    way_back,
)
from streamsql.features.change.promoted_readers import going_on, to_roll_back, with_asides
from streamsql.features.change.rollback_of_query import forget_staged, gets_difference, staged_as_before
from streamsql.features.change.show_changes import show_generations, show_staged
from streamsql.features.change.statement import (
    Compare,
    PreviewChange,
    Promote,
    Rollback,
    ShowGenerations,
    ShowStaged,
)
from streamsql.features.change.swap import (
    Next,
    define_in_spark,
    defined,
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
from streamsql.plan.statements.refreshes import check_unread
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import Answers
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.drain import stop_queries
from streamsql.runtime.queries.new_columns import with_new_columns
from streamsql.runtime.queries.run import BUSY, GOING_ON
from streamsql.runtime.queries.start import start_again, start_query
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import CURRENT, Generations, Left, generations_of


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
    drained = _drained(parts)
    for query in changes:
        name = promoted_name(query.name)
        _check_change(parts, query, places)
        generation, stages = staged_generations(parts, name)
        assert generation is not None
        if query.into:
            promotions.append(promotion(parts, query, drained, duplicates=duplicates, span=places[name]))
            catalog = query_promoted(catalog, name)
        else:
            catalog = promoted(catalog, name)
        definition = catalog.queries[name.casefold()].sql(catalog.sinks.get(name.casefold()))
        nexts.append(Next(name, generation, definition, stages))

    hidden = {*staged, *(staged_name(before_name(table)) for table in places)}
    then = with_asides(catalog, parts.catalog, definitions)
    others = going_on(parts, spans, {*places, *hidden}, then, "PROMOTE")
    before = [drained(query.name) for query in changes if not query.into]
    before += [step for promoted_query in promotions for step in promoted_query.before()]
    after = [step for promoted_query in promotions for step in promoted_query.after()]
    take_over = partial(_take_over, parts)
    done = _swap(parts, nexts, before, after, take_over, "promoted", definitions, others, back)
    return replace(done, notes=(*done.notes, *still_to_write(parts, promotions)))


def _drained(parts: SessionParts) -> Callable[[str], Step]:
    """The step after which a query has processed all available input, and is stopped."""
    return lambda name: Step(partial(_drain, parts, name), partial(start_again, parts, name))


def _take_over(parts: SessionParts, table: str) -> None:
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


def _rollback(parts: SessionParts, statement: Rollback) -> Result:
    """Bring earlier generations back. Until that is done, an error or Ctrl-C leaves all queries as they
    were.
    """
    return roll_back(parts, statement.names, statement.generation, duplicates=statement.duplicates)


def roll_back(
    parts: SessionParts,
    names: Iterable[Name],
    generation: int | None = None,
    back: str = "",
    *,
    duplicates: bool = False,
    created: Sequence[Name] = (),
) -> Result:
    """The same for names of live tables, queries and definitions; these with all that was promoted with them.
    back, duplicates: as for `promote`; created: the live tables that a set of changes has created. Those in
    use are taken out, the others come back.
    """
    spans, places = to_roll_back(parts, names, generation)
    queries = [name for name in places if not parts.catalog.queries[name.casefold()].live_table]
    tables = [*(q.name for q in parts.catalog.upstream(*places) if q.name in places), *queries]
    lefts = {table: _left(parts, table, generation, places[table]) for table in tables}
    again = {name: left for name, left in lefts.items() if gets_difference(parts, name)}
    with staged_as_before(parts, again, places, spans):
        return _to_lefts(parts, spans, places, lefts, again, created, back, duplicates=duplicates)


def _to_lefts(
    parts: SessionParts,
    spans: Mapping[str, Span],
    places: Mapping[str, Span],
    lefts: Mapping[str, Left],
    again: Collection[str],
    created: Sequence[Name],
    back: str,
    *,
    duplicates: bool,
) -> Result:
    """Put generations in use that were left, and the definitions before. spans, places: the definitions, the
    live tables and queries, with the places of their names; lefts: their generations; again: of these, the
    queries that are staged as they were, whose sinks get the difference; the others as for `roll_back`.
    """
    definitions, queries = {name: before_name(name) for name in spans}, parts.catalog.queries
    nexts, before, after, promotions = list[Next](), list[Step](), list[Step](), list[Promotion]()
    catalog = with_definitions(parts.catalog, definitions)
    for definition in spans if again else ():
        catalog = catalog.without("aside", staged_name(definition))
    for name in again:
        change = queries[staged_name(name).casefold()]
        promoted_again = promotion(parts, change, _drained(parts), duplicates=False, span=places[name])
        promotions.append(promoted_again)
        before, after = [*before, *promoted_again.before()], [*after, *promoted_again.after()]
        catalog = query_promoted(catalog, name)
        folder, stages = staged_generations(parts, name)
        assert folder is not None
        text = catalog.queries[name.casefold()].sql()
        nexts.append(Next(name, folder, text, stages, before=_number(parts, name)))
    gone = [name for name in created if name.value.casefold() in parts.catalog.queries]
    returning = {name.value: name.span for name in created if name not in gone}
    for table, left in _returning(parts, returning):
        catalog = defined(parts, table, left.definition, in_stages=bool(left.stages), before=catalog)
        nexts.append(Next(table, left.folder, left.definition, left.stages))
    for table, left in lefts.items():
        if table in again:
            continue
        catalog = defined(parts, table, left.definition, in_stages=bool(left.stages), before=catalog)
        if not queries[table.casefold()].live_table:
            old = catalog.queries[table.casefold()]
            after.append(way_back(parts, table, old, left.folder, duplicates=duplicates, span=places[table]))
        nexts.append(Next(table, left.folder, left.definition, left.stages, before=_number(parts, table)))
    for written in gone:
        catalog = without(catalog, written.value)
    for written in gone:
        check_unread(written, written.value, catalog)
    whole = catalog
    order = [*again, *(query.name for query in whole.upstream(*returning, *lefts))]
    nexts.sort(key=lambda following: order.index(following.table) if following.table in order else len(order))

    def take_over(table: str) -> None:
        if table in again:
            forget_staged(parts, spans)
            return _take_over(parts, table)
        parts.current.update(lambda old: replace(whole, changes=old.changes))

    swapped = {*places, *(name.value for name in gone)}
    hidden = {change.name for name in again for change in parts.catalog.changes_of(name)}
    others = going_on(
        parts, spans, swapped | hidden, with_asides(whole, parts.catalog, definitions), "ROLLBACK"
    )
    out = [query.name for query in parts.catalog.upstream(*(name.value for name in gone))]
    out = [name for name in out if name in swapped - places.keys()]
    done = _swap(parts, nexts, before, after, take_over, "rolled back", definitions, others, back, out)
    sinks = ", ".join(parts.catalog.queries[name.casefold()].sink for name in again)
    text = f"{done.message}; {sinks} gets the difference by key" if sinks else done.message
    return replace(done, message=text, notes=(*done.notes, *still_to_write(parts, promotions)))


def _number(parts: SessionParts, name: str) -> str:
    """The number of the generation that is in use."""
    now = Generations(parts.places.query(name), CURRENT).current
    return now.name if now else ""


def _returning(parts: SessionParts, tables: Mapping[str, Span]) -> list[tuple[str, Left]]:
    """The generations with which live tables come back that were taken out, each after those that it reads.
    tables: with the places of their names. Raises RuleFault.
    """
    lefts = {table: _left(parts, table, None, place) for table, place in tables.items()}
    ordered = list[tuple[str, Left]]()
    while lefts:
        read = {table: names_in(left.definition) for table, left in lefts.items()}
        first = [t for t in lefts if not any(o.casefold() in read[t] for o in lefts if o != t)] or list(lefts)
        ordered += [(table, lefts.pop(table)) for table in first]
    return ordered


def _left(parts: SessionParts, name: str, number: int | None, span: Span) -> Left:
    """The generation that ROLLBACK means. Raises RuleFault."""
    found = Generations(parts.places.query(name), CURRENT).left()
    if parts.store is None:
        raise RuleFault(
            f"no earlier generation of {name} is kept: this console has no workspace",
            hint="streamsql --workspace DIR keeps the rows of each generation",
            span=span,
            code="NO_GENERATION",
        )
    chosen = [left for left in found if number is None or left.folder.name == str(number)]
    which = "earlier generation" if number is None else f"generation {number}"
    if not chosen:
        raise RuleFault(
            f"there is no {which} of {name} to go back to",
            detail="SET streamsql.generations says how many stay once they were replaced",
            hint=f"SHOW GENERATIONS OF {quote_name(name)};",
            span=span,
            code="NO_GENERATION",
        )
    left = chosen[0]
    for stage, stage_number in left.stages.items():
        if not Path(parts.places.query(stage), stage_number).is_dir():
            raise RuleFault(
                f"generation {left.folder.name} of {name} is not whole: its stage {stage} is gone",
                hint=f"CREATE OR REPLACE LIVE TABLE {quote_name(name)} AS …; computes it again",
                span=span,
                code="NO_GENERATION",
            )
    return left


def _swap(
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
                    generations_of(parts.places, query).clear(parts.generations())
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
    returns = all(q and (q.live_table or q.inputs or gets_difference(parts, q.name)) for q in queries)
    can_return = not (nexts or gone) or (parts.store is not None and returns)
    if can_return and (definitions or back):
        back = back or f"ROLLBACK {', '.join(map(quote_name, definitions))};"
        text += f"; {back} brings back what was in use before"
    elif all(old) and can_return:
        what = "the ones before" if several else f"generation {old[0].name if old[0] else ''}"
        text += f"; ROLLBACK {', '.join(map(quote_name, tables))}; brings {what} back"
    return Done(notes, text)


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
    Rollback: _rollback,
}
