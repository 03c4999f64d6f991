"""The definitions by name.

A catalog is an immutable snapshot; a statement makes a new one, and `CurrentCatalog` holds the newest.
Lookups ignore case, as Spark does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from streamsql.definitions import (
    HISTORY,
    REJECTED,
    Aside,
    Change,
    Function,
    Query,
    Sink,
    SqlFunction,
    Stream,
    Table,
    before_name,
    in_use_name,
    is_aside,
    is_staged,
    kind_of,
    promoted_name,
    staged_name,
)
from streamsql.errors import NameFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name

Entry = TypeVar("Entry", Stream, Sink, Query, Function | SqlFunction, Change)
Input = TypeVar("Input", str, Query)


@dataclass(frozen=True)
class Catalog:
    """All entries by folded name. tables: names of Spark's own tables and views made in this session;
    functions: those written in Python; aside: the definitions of streams, views and functions that are not in
    use, NAME$staged and NAME$before; changes: the sets of staged changes; instead: the names of what is read
    in place of streams, live tables, views and functions, by their folded names.
    """

    streams: Mapping[str, Stream] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    sql_functions: Mapping[str, SqlFunction] = field(default_factory=dict)
    aside: Mapping[str, Aside] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in fields(self):
            entries = getattr(self, kind.name)
            if not isinstance(entries, MappingProxyType):
                # A copy that nobody else holds, behind a view that cannot be written through.
                object.__setattr__(self, kind.name, MappingProxyType(dict(entries)))

    def having(self, *entries: Aside | Sink | Query | Change) -> Catalog:
        """The catalog with these entries; each replaces the one of its kind and name."""
        changed: dict[str, dict[str, Any]] = {}
        for entry in entries:
            aside = isinstance(entry, Aside) and is_aside(entry.name)
            kind = "aside" if aside else _KINDS[type(entry)]
            changed.setdefault(kind, getattr(self, kind).copy())[entry.name.casefold()] = entry
        return replace(self, **{kind: MappingProxyType(entries) for kind, entries in changed.items()})

    def without(self, kind: str, name: str) -> Catalog:
        """The catalog without an entry, which need not be there. kind: the field that holds it."""
        entries = getattr(self, kind)
        return replace(self, **{kind: {k: e for k, e in entries.items() if k != name.casefold()}})

    def relation(self, name: str) -> Stream | Sink | None:
        """The stream or live table of that name, if there is one."""
        entry: Stream | Sink | None = self.streams.get(name.casefold())
        aside = self.aside.get(name.casefold())
        if entry is None and isinstance(aside, Stream):
            entry = aside
        if entry is None:
            sink = self.sinks.get(name.casefold())
            entry = sink if sink is not None and sink.is_live else None
        base, dollar, which = name.rpartition("$")
        if entry is None and dollar and which.casefold() == REJECTED:
            stream = self.streams.get(base.casefold())
            if stream is not None and stream.may_be_malformed:
                unread = replace(stream, columns=(), watermark=None, malformed="", malformed_sink="")
                entry = replace(unread, name=f"{stream.name}${REJECTED}", rejected=stream.columns)
        if entry is None and which.casefold().startswith(HISTORY):
            queries = (self.queries.get(of.casefold()) for of in (base, staged_name(base)))
            clauses = (query.backfill for query in queries if query and query.backfill)
            backfill = next((b for b in clauses if b.history.casefold() == name.casefold()), None)
            if backfill:
                backfilled = self.streams.get(backfill.stream.casefold())
                columns = backfilled.columns if backfilled else ()
                entry = Stream(backfill.history, "values", columns=columns)
        return entry

    def histories(self) -> list[str]:
        """The names of the streams of history of live tables with BACKFILL."""
        return [query.backfill.history for query in self.queries.values() if query.backfill]

    def target(self, name: str) -> Stream | Sink | None:
        """The sink or stream that an INSERT into that name means, if there is one."""
        return self.sinks.get(name.casefold()) or self.streams.get(name.casefold())

    def reads(self, name: str) -> bool:
        """Whether FROM may read that name: a stream, a live table, or a table or view made here."""
        return name.casefold() in self.tables or self.relation(name) is not None

    def relation_names(self) -> list[str]:
        live = [s.name for s in self.live_tables()]
        return [s.name for s in self.streams.values()] + live + [t.name for t in self.tables.values()]

    def stream(self, name: Name) -> Stream:
        return _get(self.streams, name, "stream")

    def sink(self, name: Name) -> Sink:
        return _get(self.sinks, name, "sink")

    def live_table(self, name: Name) -> Sink:
        key = name.value.casefold()
        if key in self.streams:
            raise NameFault(
                f"{name} is a stream, not a live table",
                hint=f"SELECT * FROM {quote_name(name.value)};",
                span=name.span,
                code="WRONG_KIND",
            )
        if key in self.queries and key not in self.sinks:
            sink = self.queries[key].sink
            raise NameFault(f"{name} is a query; it writes into {sink}", span=name.span, code="WRONG_KIND")
        if key not in self.sinks and (fault := self.only_staged(name)) is not None:
            raise fault
        return _get({k: s for k, s in self.sinks.items() if s.is_live}, name, "live table")

    def named(self, name: Name | None) -> list[Query]:
        """The query of that name; all of them for None. Raises NameFault."""
        return [self.query(name)] if name else [q for q in self.queries.values() if not q.owner]

    def definition(self, entry: Stream | Sink) -> str:
        """The statement that defines a stream, a sink or a live table, without its secrets and `;`."""
        query = self.queries.get(entry.name.casefold()) if isinstance(entry, Sink) else None
        return query.sql(entry) if query and query.live_table and isinstance(entry, Sink) else entry.sql()

    def live_tables(self) -> list[Sink]:
        """All live tables but the stages of others and staged changes."""
        return [s for s in self.sinks.values() if s.is_live and not s.owner and not is_staged(s.name)]

    def with_changes(self) -> Catalog:
        """The catalog as a staged change reads it: each live table, stream, view and function that has a
        staged change is that.
        """
        changes = (query for query in self.named(None) if is_staged(query.name) and not query.into)
        tables = {promoted_name(q.name).casefold(): self.sinks[q.name.casefold()] for q in changes}
        catalog = self.reading(name for name in self.aside if is_staged(name))
        if not tables:
            return catalog
        instead = {name: sink.name for name, sink in tables.items()}
        sinks = {**self.sinks, **tables}
        return replace(catalog, sinks=sinks, instead={**catalog.instead, **instead})

    def reading(self, names: Iterable[str]) -> Catalog:
        """The catalog with definitions that are aside in the place of those in use, by the names of these.
        Spark has views and functions under their names: a query that names them calls them by these.
        """
        entries = [self.aside[name.casefold()] for name in names]
        if not entries:
            return self
        streams = [replace(e, name=in_use_name(e.name)) for e in entries if isinstance(e, Stream)]
        views = [e for e in entries if isinstance(e, Table)]
        views += [replace(view, name=in_use_name(view.name)) for view in views]
        in_sql = [e for e in entries if isinstance(e, SqlFunction)]
        functions = [e for e in entries if isinstance(e, Function)]
        processors = [f for f in functions if self._is_processor(f)]  # Spark does not have them
        functions += [replace(f, name=in_use_name(f.name)) for f in processors]
        return replace(
            self,
            streams={**self.streams, **{s.name.casefold(): s for s in streams}},
            tables={**self.tables, **{v.name.casefold(): v for v in views}},
            functions={**self.functions, **{f.name.casefold(): f for f in functions}},
            sql_functions={**self.sql_functions, **{f.name.casefold(): f for f in in_sql}},
            instead={in_use_name(e.name).casefold(): e.name for e in entries if e not in processors},
        )

    def _is_processor(self, aside: Function) -> bool:
        """Whether a function is a stateful processor, or takes the place of one before its Python is read."""
        in_use = self.functions.get(in_use_name(aside.name).casefold())
        return aside.kind == "processor" or bool(not aside.kind and in_use and in_use.kind == "processor")

    def instead_of(self, *kinds: type) -> dict[str, str]:
        """The names of `instead` that Spark resolves itself: of views (Table) or functions."""
        return {
            n: new for n, new in self.instead.items() if isinstance(self.aside.get(new.casefold()), kinds)
        }

    def definition_in_use(self, kind: str, name: str) -> Aside | None:
        """The stream, view or function of a name, if there is one."""
        return self._in_use(kind).get(name.casefold())

    def names_in_use(self, kind: str) -> list[str]:
        """The names of the streams, views or functions."""
        return [entry.name for entry in self._in_use(kind).values()]

    def _in_use(self, kind: str) -> Mapping[str, Aside]:
        if kind == "view":
            return {name: table for name, table in self.tables.items() if table.text}
        return self.streams if kind == "stream" else {**self.sql_functions, **self.functions}

    def is_new(self, name: str) -> bool:
        """Whether a live table is only staged, by a set of changes that creates it."""
        change = self.staged(name)
        return change is not None and not change.into and name.casefold() not in self.queries

    def created_by_sets(self) -> list[str]:
        """The names of the live tables that sets of changes create, or have created."""
        return [m.name for change in self.changes.values() for m in change.members if m.new]

    def set_of(self, name: str) -> str:
        """The set of changes that a staged change belongs to; "" for none."""
        staged = (c.name for c in self.changes.values() for m in c.members if m.is_staged(name))
        return next(staged, "")

    def only_staged(self, name: Name) -> NameFault | None:
        """The error for the name of what a set of changes creates, and is only staged; None for others."""
        definition = self.staged_definition(name.value)
        if self.is_new(name.value):
            kind = "live table"
        elif definition and not self.definition_in_use(kind_of(definition), name.value):
            kind = kind_of(definition)
        else:
            return None
        of = self.set_of(name.value)
        hint = f"PROMOTE {f'CHANGE {quote_name(of)}' if of else quote_name(name.value)};"
        if kind != "function":
            hint += f"\nor SELECT * FROM {quote_name(staged_name(name.value))};"
        return NameFault(
            f"the {kind} {name} is new, and only staged",
            detail="it is in use from PROMOTE on",
            hint=hint,
            span=name.span,
            code="NOT_PROMOTED",
        )

    def staged_definition(self, name: str) -> Aside | None:
        """The staged definition of a stream, view or function, if there is one."""
        return self.aside.get(staged_name(name).casefold())

    def staged(self, table: str) -> Query | None:
        """The query of the staged change of a live table, if there is one."""
        return self.queries.get(staged_name(table).casefold())

    def changes_of(self, query: str) -> list[Query]:
        """The queries of the staged change of a query; that of an INSERT has one more, of the rows before."""
        return [change for name in (query, before_name(query)) if (change := self.staged(name))]

    def stages_of(self, query: str) -> list[Query]:
        """The queries of the stages of another, in their order."""
        return list(self._of_queries["owner"].get(query.casefold(), ()))

    def query(self, name: Name) -> Query:
        return _get(self.queries, name, "query")

    def queries_into(self, sink: str) -> list[Query]:
        """The queries that write into a sink."""
        return list(self._of_queries["sink"].get(sink.casefold(), ()))

    def late_into(self, sink: str) -> list[Query]:
        """The queries whose late rows are written into a sink."""
        return list(self._of_queries["late"].get(sink.casefold(), ()))

    def writers_of(self, sink: str) -> list[Query]:
        """The queries that write into a sink, those of which it takes the late rows among them."""
        return [*self.queries_into(sink), *self.late_into(sink)]

    def readers_of(self, table: str) -> list[Query]:
        """The queries that compute live tables from a live table."""
        return list(self._of_queries["input"].get(table.casefold(), ()))

    def upstream(self, *tables: str) -> list[Query]:
        """The queries whose rows reach live tables, directly or through others, each after those that it
        reads.
        """

        def writers(names: Iterable[str]) -> list[Query]:
            return [query for name in names for query in self.writers_of(name)]

        return after_inputs(writers(tables), lambda query: writers(query.inputs))

    def with_readers(self, queries: Iterable[Query]) -> list[Query]:
        """These queries and those that read what they compute, each after its readers."""
        return after_inputs(queries, lambda q: self.readers_of(q.sinks[0]) if q.live_table else ())

    @cached_property
    def _of_queries(self) -> Mapping[str, dict[str, list[Query]]]:
        """The queries by what they name, folded: their sinks, inputs, sink of late rows and owner."""
        queries: dict[str, dict[str, list[Query]]] = {"sink": {}, "input": {}, "late": {}, "owner": {}}
        for query in self.queries.values():
            for kind, name in query.named:
                queries[kind].setdefault(name, []).append(query)
        return queries

    @property
    def all_functions(self) -> dict[str, Function]:
        """The functions written in Python, those not in use among them, by folded name."""
        aside = {name: entry for name, entry in self.aside.items() if isinstance(entry, Function)}
        return {**self.functions, **aside}

    def change(self, name: Name) -> Change:
        return _get(self.changes, name, "change")

    def function(self, name: Name) -> Function | SqlFunction:
        functions: dict[str, Function | SqlFunction] = {**self.sql_functions, **self.functions}
        return _get(functions, name, "function")

    def check_free(self, name: Name, new: str = "") -> None:
        """Raise NameFault when a stream, sink or live table of that name exists. new: the kind of what is to
        be created, where it is one of these.
        """
        key = name.value.casefold()
        if key in self.streams:
            kind = "stream"
        elif key in self.sinks:
            kind = "live table" if self.sinks[key].is_live else "sink"
        else:
            if (fault := self.only_staged(name)) is not None:
                raise fault
            return
        other = "CREATE OR REPLACE …" if new == kind else "another name"
        raise NameFault(
            f"there is already a {kind} {name.value}",
            hint=f"{other}, or DROP {kind.upper()} {quote_name(name.value)};",
            span=name.span,
            code="ALREADY_EXISTS",
        )


_KINDS: dict[type, str] = {
    Stream: "streams",
    Sink: "sinks",
    Query: "queries",
    Table: "tables",
    Function: "functions",
    SqlFunction: "sql_functions",
    Change: "changes",
}


def after_inputs(entries: Iterable[Input], inputs_of: Callable[[Input], Iterable[Input]]) -> list[Input]:
    """Entries, and what reaches them, each once and after its inputs. inputs_of: gives those of one."""
    ordered, seen = list[Input](), set[Input]()

    def add(entry: Input) -> None:
        if entry not in seen:
            seen.add(entry)
            for one in inputs_of(entry):
                add(one)
            ordered.append(entry)

    for entry in entries:
        add(entry)
    return ordered


class CurrentCatalog:
    """The newest snapshot of a session's catalog. Safe on any thread."""

    def __init__(self, snapshot: Catalog | None = None) -> None:
        self._lock = threading.Lock()
        self._snapshot = snapshot or Catalog()
        self._followers: list[Callable[[Catalog], None]] = []

    @property
    def snapshot(self) -> Catalog:
        return self._snapshot

    def update(self, change: Callable[[Catalog], Catalog]) -> None:
        """Replace the snapshot by what `change` makes of it; no other change comes in between."""
        with self._lock:
            self._snapshot = change(self._snapshot)
        for follow in self._followers:
            follow(self._snapshot)

    def subscribe(self, follow: Callable[[Catalog], None]) -> None:
        """Call a function, which raises nothing, with each snapshot from now on."""
        self._followers.append(follow)


def _get(entries: Mapping[str, Entry], name: Name, kind: str) -> Entry:
    entry = entries.get(name.value.casefold())
    if entry is None:
        raise unknown(kind, name, (e.name for e in entries.values()))
    return entry


def unknown(kind: str, name: Name, existing: Iterable[str]) -> NameFault:
    """The error for a name that does not exist. existing: the names of that kind, of which the hint names the
    nearest.
    """
    names = sorted(existing)
    plural = "queries" if kind == "query" else f"{kind}s"
    hint = did_you_mean(name.value, names)
    if not hint:
        hint = f"{plural}: {', '.join(names[:8])}" if names else f"there are no {plural} yet"
    code = f"UNKNOWN_{kind.replace(' ', '_').upper()}"
    return NameFault(f"there is no {kind} {name.value}", hint=hint, span=name.span, code=code)
