"""The definitions of a workspace as it is, and those that a folder gives, in the same form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.cli.dry_run import Checker
from streamsql.connectors import schema_registry
from streamsql.connectors.option_values import placed
from streamsql.definition_sql import setting_sql
from streamsql.definitions import (
    REJECTED,
    Query,
    Stream,
    in_use_name,
    is_aside,
    is_before,
    is_staged,
    promoted_name,
)
from streamsql.errors import RuleFault, StreamsqlError
from streamsql.features.project.project_folder import Key, Part, key_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.insert import Insert
from streamsql.plan import plans
from streamsql.plan.planner import plan
from streamsql.plan.renaming import renaming
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.reopen import tables_in, take_up
from streamsql.runtime.workspace.store import CatalogEntry, Store, entries_of, in_order

_INFERRED = frozenset(("avroschema", "encoding", "escape", "multiline", "nullvalue"))
"""The options, folded, that CREATE STREAM adds from what it sees in files and in a schema registry."""


@dataclass(frozen=True)
class DefinitionSet:
    """settings: those of Spark that are set, by key. Tables of Spark hold rows, and are left out."""

    catalog: Catalog
    views: tuple[tuple[str, Statement], ...]
    settings: Mapping[str, str]

    @classmethod
    def of(cls, parts: SessionParts) -> DefinitionSet:
        """What a session has."""
        statements = parts.temporary.statements()
        views = ((key, s) for key, s in statements if not (is_aside(key.removesuffix("()")) or is_table(s)))
        withheld = parts.store.withheld if parts.store else {}
        return cls(parts.catalog, tuple(views), withheld | parts.settings.changed)

    @property
    def entries(self) -> dict[Key, CatalogEntry]:
        """All entries but staged changes, each after those that it needs."""
        settings = (
            CatalogEntry("setting", k, setting_sql(k, v), readable=False) for k, v in self.settings.items()
        )
        entries = [*settings, *entries_of(self.catalog, self.views)]
        return {key_of(entry): entry for entry in in_order(entries) if not is_staged(entry.name)}

    def renamed(self, kind: str, old: str, new: str) -> DefinitionSet:
        """The same after ALTER … RENAME TO. kind: see renaming. Raises RuleFault."""
        names = renaming(kind, old, new, self.catalog)
        views = tuple((name, names.view(view)) for name, view in self.views)
        return replace(self, catalog=names.applied(self.catalog), views=views)

    @property
    def staged(self) -> tuple[str, ...]:
        """The live tables, queries, streams, views and functions of which a change is staged."""
        queries = self.catalog.named(None)
        changes = (query.name for query in queries if is_staged(query.name) and not is_before(query.name))
        definitions = (entry.name for entry in self.catalog.aside.values() if is_staged(entry.name))
        return *map(promoted_name, changes), *map(in_use_name, definitions)


def wanted(
    ordered: Iterable[Part], parts: SessionParts, store: Store, present: DefinitionSet
) -> tuple[DefinitionSet, list[StreamsqlError]]:
    """(what the statements of a folder define, what is wrong with them). parts: those of an empty session;
    store: the files of the workspace, which are not changed; present: what is in the workspace.
    """
    faults, undefined = list[StreamsqlError](), set[str]()
    parts = replace(parts, current=CurrentCatalog(Catalog().having(*tables_in(store))))
    checker = Checker(replace(parts.context(), catalog=parts.catalog))
    for part in ordered:
        if part.entry.names & undefined:
            undefined.add(part.entry.name.casefold())
            continue  # the error is that of what it needs
        parts.variables["here"] = str(Path(part.place[0]).parent)
        checker.context = replace(parts.context(), extended=checker.context.extended)
        try:
            found = checker.examine(part.statement).faults
            if not found:
                _check_query(part, parts)
                take_up(part.statement, parts, store)
        except StreamsqlError as error:
            found = [error]
        faults += [part.placed(fault) for fault in found]
        if found:
            undefined.add(part.entry.name.casefold())
    defined = DefinitionSet.of(parts)
    streams = (_as_created(s, present.catalog.streams.get(key)) for key, s in parts.catalog.streams.items())
    sinks = (placed(sink) for sink in parts.catalog.sinks.values())
    of_console = _own_queries(parts.catalog, present.catalog)
    return replace(defined, catalog=parts.catalog.having(*streams, *sinks, *of_console)), faults


def _check_query(part: Part, parts: SessionParts) -> None:
    """Raise RuleFault for an INSERT that starts no query, or the one that the console starts by itself."""
    if not isinstance(part.statement, Insert):
        return
    fact = ""
    if not isinstance(plan(part.statement, parts.context()), plans.Run):
        fact = "this INSERT writes rows once, and starts no query"
    elif part.key[1] in map(own_query, with_malformed(parts.catalog)):
        fact = f"the console starts the query {part.entry.name} by itself, for ON MALFORMED INTO"
    if fact:
        raise RuleFault(fact, hint="leave it out of the folder", code="NOT_A_DEFINITION")


def with_malformed(catalog: Catalog) -> Iterator[Stream]:
    return (stream for stream in catalog.streams.values() if stream.malformed_sink)


def own_query(stream: Stream) -> str:
    """The folded name of the query that the console starts for ON MALFORMED INTO of a stream."""
    return f"{stream.name}_{REJECTED}".casefold()


def _own_queries(wanted: Catalog, present: Catalog) -> Iterator[Query]:
    """The queries in the workspace that the console starts by itself for the streams of a folder."""
    for stream in with_malformed(wanted):
        query = present.queries.get(own_query(stream))
        if query and query.writes_into(stream.malformed_sink):
            yield query


def _as_created(stream: Stream, present: Stream | None) -> Stream:
    """A stream with absolute paths, and with the columns and options that CREATE has inferred, if its
    statement leaves that to CREATE.
    """
    stream = placed(stream)
    if present is None or present.connector != stream.connector or not stream.connector:
        return stream
    if stream.columns and not schema_registry.uses(stream):
        return stream
    given = {key.casefold() for key, _ in stream.options}
    inferred = [(k, v) for k, v in present.options if k.casefold() in _INFERRED - given]
    return replace(stream, columns=stream.columns or present.columns, options=(*stream.options, *inferred))
