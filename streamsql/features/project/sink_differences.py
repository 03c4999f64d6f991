"""The changed queries of a folder whose sinks get the difference: INSERT … STAGED, then PROMOTE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamsql.connectors.registry import connector
from streamsql.definitions import Query
from streamsql.errors import StreamsqlError
from streamsql.features.project.comparison import ADDED, CHANGED, Project
from streamsql.features.project.project_folder import Part, edited, is_endless, needed
from streamsql.language.parser import parse
from streamsql.language.script import Written
from streamsql.language.statements.base import Name
from streamsql.language.statements.insert import Insert
from streamsql.plan.planner import plan


def queries_to_stage(project: Project) -> Iterator[Query]:
    """The changed queries that can be staged, into sinks that take upserts and deletes. What they read is as
    it was: else the rows of the query of now, computed anew, are not those that the sink has.
    """
    changes = {change.key: change for change in project.comparison.changes}
    replaced = {key for key, change in changes.items() if change.what != ADDED}
    present = project.present.catalog.queries
    for part in project.parts:
        query, change = present.get(part.entry.name.casefold()), changes.get(part.key)
        if not isinstance(part.statement, Insert) or query is None:
            continue
        if change is None or change.what != CHANGED or change.present is None:
            continue
        if not gets_the_difference(part, project):
            continue
        names = part.entry.names | change.present.names
        if needed(names, project.parts) & (replaced - {part.key}):
            continue
        catalog = project.wanted.catalog.having(query)
        try:
            plan(parse(staged_insert(part)), replace(project.session.context(), catalog=catalog))
        except StreamsqlError:
            continue  # it is dropped and begun anew
        yield query


def gets_the_difference(part: Part, project: Project) -> bool:
    """Whether the sink of a query takes upserts and deletes, and nothing else writes into it, and no input of
    the query is endless.
    """
    present = project.present.catalog
    query = present.queries[part.entry.name.casefold()]
    sink = present.sinks.get(query.sinks[0].casefold())
    if sink is None or not connector(Name(sink.connector)).keeps_in_step(sink):
        return False
    is_alone = len(project.wanted.catalog.writers_of(sink.name)) == 1
    return is_alone and not is_endless(part, project.parts)


def staged_insert(part: Part) -> Written:
    """The INSERT of a folder with STAGED."""
    assert isinstance(part.statement, Insert)
    text, at = part.written.source.text, part.statement.targets[-1].span.end
    return edited(part, f"{text[:at]} STAGED{text[at:]}")
