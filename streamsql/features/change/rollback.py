"""ROLLBACK: earlier generations are put in use again, with the definitions before.

Of a query over streams into a sink with KEY, the checkpoint of an earlier generation knows nothing of the
keys that were written since. So the SELECT of that generation is staged, from the beginning, beside what the
query writes now, and promoted: the sink gets the difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from streamsql.catalog import after_inputs
from streamsql.definitions import OfSpark, before_name, staged_name
from streamsql.errors import RuleFault, Source, Span
from streamsql.features.change.promote_query import (
    Promotion,
    began_from_now,
    gets_difference,
    promotion,
    still_to_write,
    way_back,
)
from streamsql.features.change.promoted_readers import going_on, to_roll_back, with_asides
from streamsql.features.change.run import drained, exchange
from streamsql.features.change.staging import define_again, drop_staged
from streamsql.features.change.statement import Rollback
from streamsql.features.change.swap import (
    Exchange,
    Next,
    defined,
    number,
    promoted,
    renamed_definition,
    staged_next,
    with_definitions,
    without,
)
from streamsql.language.parser import parse
from streamsql.language.script import split_script
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.plan.statements.refreshes import check_unread
from streamsql.plan.streaming.readers import key_of, names_in, names_in_definition
from streamsql.results import Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import create_drop
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.start_steps import Step
from streamsql.runtime.workspace.generations import CURRENT, Generations, Left
from streamsql.secrets import HIDDEN


def rollback(parts: SessionParts, statement: Rollback) -> Result:
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
    nexts, before, stopped, promotions = list[Next](), list[Step](), list[Step](), list[Promotion]()
    catalog = with_definitions(parts.catalog, definitions)
    for definition in spans if again else ():
        catalog = catalog.without("aside", staged_name(definition))
    for name in again:
        change = queries[staged_name(name).casefold()]
        promoted_again = promotion(parts, change, drained(parts), duplicates=False, span=places[name])
        promotions.append(promoted_again)
        before, stopped = [*before, *promoted_again.before], [*stopped, *promoted_again.after]
        catalog = promoted(catalog, name)
        nexts.append(staged_next(parts, name))
    gone = [name for name in created if name.value.casefold() in queries]
    returning = {name.value: name.span for name in created if name not in gone}
    staying = {table: left for table, left in lefts.items() if table not in again}
    for table, left in (*_returning(parts, returning), *staying.items()):
        catalog = defined(parts, left.definition, without(catalog, table), in_stages=bool(left.stages))
        nexts.append(Next(table, left.folder.name, left.stages, number(parts.places, table)))
        old = catalog.queries[table.casefold()]
        if not old.live_table:
            place = places[table]
            stopped.append(way_back(parts, table, old, left.folder, duplicates=duplicates, span=place))
    for written in gone:
        catalog = without(catalog, written.value)
    for written in gone:
        check_unread(written, written.value, catalog)
    order = [*again, *(query.name for query in catalog.upstream(*returning, *lefts))]
    nexts.sort(key=lambda following: order.index(following.table) if following.table in order else len(order))
    swapped = {*places, *(name.value for name in gone)}
    hidden = {change.name for name in again for change in parts.catalog.changes_of(name)}
    then = with_asides(catalog, parts.catalog, definitions)
    others = going_on(parts, spans, swapped | hidden, then, "ROLLBACK")
    out = [query.name for query in parts.catalog.upstream(*(name.value for name in gone))]
    out = [name for name in out if name in swapped - places.keys()]
    whole = Exchange(nexts, lambda old: replace(catalog, changes=old.changes), definitions, out, True)
    done = exchange(parts, whole, before, stopped, others, "rolled back", back)
    sinks = ", ".join(parts.catalog.queries[name.casefold()].sink for name in again)
    text = f"{done.message}; {sinks} gets the difference by key" if sinks else done.message
    return replace(done, message=text, notes=(*done.notes, *still_to_write(parts, promotions)))


def _returning(parts: SessionParts, tables: Mapping[str, Span]) -> list[tuple[str, Left]]:
    """The generations with which live tables come back that were taken out, each after those that it reads.
    tables: with the places of their names. Raises RuleFault.
    """
    lefts = {table: _left(parts, table, None, place) for table, place in tables.items()}
    read = {table: names_in(left.definition) for table, left in lefts.items()}
    inputs = {table: [o for o in lefts if o != table and o.casefold() in read[table]] for table in lefts}
    return [(table, lefts[table]) for table in after_inputs(lefts, inputs.__getitem__)]


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


@contextmanager
def staged_as_before(
    parts: SessionParts,
    lefts: Mapping[str, Left],
    places: Mapping[str, Span],
    definitions: Mapping[str, Span],
) -> Iterator[None]:
    """Stage queries with the SELECTs of earlier generations, which read the definitions before of streams,
    views and functions. An error leaves nothing staged. lefts: the generations; places: of the names of the
    queries; definitions: those that are rolled back, with the places of their names. Raises faults,
    Cancelled.
    """
    _check_nothing_staged(parts, lefts, places, definitions)
    statements = {name: _staging(name, left, places[name]) for name, left in lefts.items()}
    try:
        for name in _ordered(parts, definitions) if lefts else ():
            _stage_before(parts, name)
        for statement in statements.values():
            start_statement(parts, statement)
        yield
    except BaseException:
        for name, statement in statements.items():
            drop_staged(parts, name, statement)
        raise
    finally:
        if lefts:
            forget_staged(parts, definitions)


def forget_staged(parts: SessionParts, definitions: Mapping[str, Span]) -> None:
    """Remove the staged definitions of streams, views and functions, those that read others first."""
    parts = parts.under(CancelToken())
    for name in reversed(_ordered(parts, definitions)):
        create_drop.forget_aside(parts, staged_name(name))
        parts.undefine("aside", staged_name(name))


def _ordered(parts: SessionParts, definitions: Iterable[str]) -> list[str]:
    """Definitions, views and functions in SQL each after those that it reads."""
    before = {name: parts.catalog.aside.get(before_name(name).casefold()) for name in definitions}
    entries = {n: replace(entry, name=n) for n, entry in before.items() if isinstance(entry, OfSpark)}
    named = {name: names_in_definition(entry) for name, entry in entries.items()}
    read = {name: [n for n in entries if n != name and key_of(entries[n]) in named[name]] for name in entries}
    return [*(name for name in before if name not in entries), *after_inputs(entries, read.__getitem__)]


def _stage_before(parts: SessionParts, name: str) -> None:
    """Stage the definition of a stream, view or function that is to come back."""
    before = parts.catalog.aside[before_name(name).casefold()]
    define_again(parts, renamed_definition(before, staged_name(name), before))


def _check_nothing_staged(
    parts: SessionParts,
    lefts: Mapping[str, Left],
    places: Mapping[str, Span],
    definitions: Mapping[str, Span],
) -> None:
    """Raise RuleFault where something is staged under a name that is needed."""
    staged = {name: span for name, span in places.items() if name in lefts and parts.catalog.staged(name)}
    if lefts:
        staged |= {n: span for n, span in definitions.items() if parts.catalog.staged_definition(n)}
    for name, span in staged.items():
        raise RuleFault(
            f"a change of {name} is staged",
            detail="ROLLBACK stages the definition before, in its place",
            hint=f"PROMOTE {quote_name(name)}; or DROP STAGED {quote_name(name)}; first",
            span=span,
            code="IN_USE",
        )


def _staging(name: str, left: Left, span: Span) -> Insert:
    """The statement that stages a query as it was in an earlier generation. Raises RuleFault."""
    if HIDDEN in left.definition:
        raise RuleFault(
            f"generation {left.folder.name} of {name} cannot come back: its SELECT held a secret",
            detail="a workspace does not keep secrets",
            hint=f"INSERT INTO … STAGED AS QUERY {quote_name(name)} …; and PROMOTE {quote_name(name)};",
            span=span,
            code="NO_GENERATION",
        )
    if began_from_now(left.folder):
        raise RuleFault(
            f"generation {left.folder.name} of {name} cannot come back: it began FROM NOW",
            detail="which input it has not read is not known, and the sink would get the rows of all of it",
            hint=f"INSERT INTO … STAGED AS QUERY {quote_name(name)} FROM NOW SELECT …; "
            f"PROMOTE {quote_name(name)};",
            span=span,
            code="NO_GENERATION",
        )
    statement = parse(split_script(Source("", left.definition))[0], literal=True)
    assert isinstance(statement, Insert)
    return replace(statement, staged=True, begins="", checkpoint=None)
