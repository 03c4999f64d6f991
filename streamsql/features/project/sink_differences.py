"""The changed queries of a folder whose sinks get the difference: INSERT … STAGED, then PROMOTE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamsql.connectors.registry import connector
from streamsql.definitions import Query
from streamsql.errors import StreamsqlError
from streamsql.features.project.comparison import ADDED, CHANGED, Comparison
from streamsql.features.project.definition_set import DefinitionSet
from streamsql.features.project.project_folder import Part, edited, is_endless, needed
from streamsql.language.parser import parse
from streamsql.language.script import Written
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.plan.planner import plan
from streamsql.runtime.parts import SessionParts


def queries_to_stage(
    comparison: Comparison,
    present: DefinitionSet,
    wanted: DefinitionSet,
    parts: Sequence[Part],
    session: SessionParts,
) -> list[Query]:
    """The changed queries that can be staged, into sinks that take upserts and deletes. What they read is as
    it was: else the rows of the query of now, computed anew, are not those that the sink has. wanted: what
    the folder defines; parts: its statements; session: one that has read the folder.
    """
    return list(_stageable(comparison, present, wanted, parts, session))


def _stageable(
    comparison: Comparison,
    present: DefinitionSet,
    wanted: DefinitionSet,
    parts: Sequence[Part],
    session: SessionParts,
) -> Iterator[Query]:
    changes = {change.key: change for change in comparison.changes}
    replaced = {key for key, change in changes.items() if change.what != ADDED}
    for part in parts:
        query, change = present.catalog.queries.get(part.entry.name.casefold()), changes.get(part.key)
        if not isinstance(part.statement, Insert) or query is None:
            continue
        if change is None or change.what != CHANGED or change.present is None:
            continue
        if not gets_the_difference(part, present, wanted, parts):
            continue
        names = part.entry.names | change.present.names
        if needed(names, parts) & (replaced - {part.key}):
            continue
        catalog = wanted.catalog.having(query)
        try:
            plan(parse(staged_insert(part)), replace(session.context(), catalog=catalog))
        except StreamsqlError:
            continue  # it is dropped and begun anew
        yield query


def gets_the_difference(
    part: Part, present: DefinitionSet, wanted: DefinitionSet, parts: Sequence[Part]
) -> bool:
    """Whether the sink of a query takes upserts and deletes, and nothing else writes into it, and no input of
    the query is endless.
    """
    query = present.catalog.queries[part.entry.name.casefold()]
    sink = present.catalog.sinks.get(query.sinks[0].casefold())
    if sink is None or not connector(Name(sink.connector)).keeps_in_step(sink):
        return False
    return len(wanted.catalog.writers_of(sink.name)) == 1 and not is_endless(part, parts)


def staged_insert(part: Part) -> Written:
    """The INSERT of a folder with STAGED."""
    assert isinstance(part.statement, Insert)
    text, at = part.written.source.text, part.statement.targets[-1].span.end
    return edited(part, f"{text[:at]} STAGED{text[at:]}")
