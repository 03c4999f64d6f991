"""The changes of a folder that are staged, compared and promoted as one: the set `applied`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamsql.cli.dry_run import Checker
from streamsql.errors import StreamsqlError
from streamsql.features.project.comparison import CHANGED, DROPPED, ChangeSet, Project, written
from streamsql.features.project.project_folder import needed, replacing
from streamsql.features.project.sink_differences import gets_the_difference
from streamsql.language.parser import parse
from streamsql.language.script import Written
from streamsql.language.statements.insert import Insert

SET = "applied"
"""The set of staged changes of `streamsql apply`."""


def staged_as_one(project: Project) -> ChangeSet:
    """The set of a folder: what a change of a stream, view or function changes, with all changed live tables.
    Empty without such a change, and where STAGED does not take one of them.
    """
    parts, present, effects = project.parts, project.present, project.comparison.effects
    changes = {change.key: change for change in project.comparison.changes if change.what == CHANGED}
    anew, again = ({n.casefold() for n in names} for names in (effects.anew, effects.begin_again))
    of_kind = [part for part in parts if part.entry.kind in ("stream", "view", "function")]
    definitions = [p for p in of_kind if p.key in changes and not changes[p.key].minor]
    if not definitions:
        return ChangeSet()
    queries = [part for part in parts if part.entry.kind == "query" and part.key[1] in anew]
    live = {name for name, query in present.catalog.queries.items() if query.live_table}
    tables = [part for part in queries if part.entry.readable and part.key[1] in live]
    keys = {part.key for part in definitions}
    written_again = [p for p in queries if p.key[1] not in live and (p.key in changes or p.key[1] in again)]
    writing = [part for part in written_again if needed(part.entry.names, parts) & keys]
    sinks = (name for kind, name in changes if kind == "sink")
    writers = {query.name.casefold() for sink in sinks for query in present.catalog.writers_of(sink)}
    if writers & {part.key[1] for part in writing}:
        return ChangeSet()
    replaced = [replacing(part) for part in definitions]
    if not _takes(replaced, project):
        return ChangeSet()
    inserts = [
        part
        for part in writing
        if isinstance(part.statement, Insert)
        and gets_the_difference(part, project)
        and _takes([*replaced, part.written], project)
    ]
    stopped = tuple(part.entry.name for part in writing if part not in inserts)
    gone = list(_dropped_over({part.key[1] for part in (*definitions, *tables)}, project))
    read = [t for t in gone if any(q.name not in gone for q in present.catalog.readers_of(t))]
    before = tuple(table for table in gone if table not in read)
    return ChangeSet(tuple(definitions), tuple(tables), tuple(inserts), stopped, before, tuple(read))


def _dropped_over(names: set[str], project: Project) -> Iterator[str]:
    """The live tables in the workspace that the folder drops, and that read what has these folded names,
    directly or through others.
    """
    dropped = {change.key for change in project.comparison.changes if change.what == DROPPED}
    over = set(names)
    for key, entry in project.present.entries.items():  # each after those that it needs
        if {name.partition("$")[0] for name in entry.names} & over:
            over.add(key[1])
            if key in dropped and entry.kind == "query" and entry.readable:
                yield entry.name


def _takes(statements: Sequence[Written], project: Project) -> bool:
    """Whether planning refuses none of the statements with STAGED, in the workspace with what the folder adds
    to it. Any other fault is that of `apply`.
    """
    new, old = project.wanted.catalog, project.present.catalog
    catalog = replace(
        old,
        streams={**new.streams, **old.streams},
        sinks={**{k: s for k, s in new.sinks.items() if not s.is_live}, **old.sinks},
        tables={**new.tables, **old.tables},
        functions={**new.functions, **old.functions},
        sql_functions={**new.sql_functions, **old.sql_functions},
    )
    checker = Checker(replace(project.session.context(), catalog=catalog))
    for statement in (written(f"BEGIN CHANGE {SET}"), *statements):
        try:
            checker.check(parse(statement, {}, literal=True))
        except StreamsqlError as fault:
            if fault.code in _REFUSED:
                return False
    return True


_REFUSED = frozenset(("NOT_STAGEABLE", "CLAUSE_CONFLICT", "NOT_ON_STREAMS"))
"""The codes of statements that STAGED does not take."""
