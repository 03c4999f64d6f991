"""ROLLBACK of queries over streams into sinks with KEY: what they were before is staged and promoted.

The checkpoint of an earlier generation knows nothing of the keys that were written since. So the SELECT of
that generation is computed from the beginning, beside what the query writes now, and the sink gets the
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from streamsql.connectors.registry import connector
from streamsql.definitions import Table, before_name, staged_name
from streamsql.errors import RuleFault, Source, Span
from streamsql.features.change.affected import in_order
from streamsql.features.change.staging import define_again, drop_staged
from streamsql.features.change.swap import renamed_definition
from streamsql.language.parser import parse
from streamsql.language.script import split_script
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import create_drop
from streamsql.runtime.handlers.start_stop import start_statement
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.generations import Left
from streamsql.secrets import HIDDEN


def gets_difference(parts: SessionParts, name: str) -> bool:
    """Whether the sink of a query gets the difference, by key, when the query is rolled back."""
    query = parts.catalog.queries[name.casefold()]
    if query.live_table or query.inputs:
        return False
    sink = parts.catalog.sinks[query.sinks[0].casefold()]
    return connector(Name(sink.connector)).keeps_in_step(sink)


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
        for name in definitions if lefts else ():
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


def _ordered(parts: SessionParts, definitions: Mapping[str, Span]) -> list[str]:
    """Definitions, views each after those that it reads."""
    entries = {name: parts.catalog.aside.get(before_name(name).casefold()) for name in definitions}
    views = {entry.name: name for name, entry in entries.items() if isinstance(entry, Table)}
    tables = (entry for entry in entries.values() if isinstance(entry, Table))
    others = [name for name in definitions if name not in views.values()]
    return [*others, *(views[view.name] for view in in_order(tables, parts.catalog))]


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
    statement = parse(split_script(Source("", left.definition))[0], literal=True)
    assert isinstance(statement, Insert)
    return replace(statement, staged=True, begins="", checkpoint=None)
