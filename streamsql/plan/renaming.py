"""New names for old ones, in a catalog and in texts of statements: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from streamsql.catalog import Catalog
from streamsql.definitions import REJECTED, Aside, Function, Query, Sink, SqlFunction, Stream, Table
from streamsql.errors import RuleFault, Source
from streamsql.language.edits import Edit, apart, with_points
from streamsql.language.parser import parse
from streamsql.language.renamed_relations import with_names
from streamsql.language.script import split_script
from streamsql.language.statements.base import Fragment, Name, Statement
from streamsql.language.statements.insert import InsertSet
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.tokens import quote_name

Names = Mapping[str, str]
Entry = TypeVar("Entry", Stream, Sink, Query, Table, SqlFunction)


@dataclass(frozen=True)
class Renaming:
    """New names by folded old ones. A live table is a sink and a query, which FROM may read; its stages are
    so, too. texts: new texts of the queries of stages, as planning writes them, by the old ones.
    """

    streams: Names = field(default_factory=dict)
    sinks: Names = field(default_factory=dict)
    queries: Names = field(default_factory=dict)
    relations: Names = field(default_factory=dict)
    texts: Names = field(default_factory=dict)

    def query_text(self, text: str, *, together: bool = False) -> str:
        """The text of a query (together: the INSERTs of a statement set) with the new names."""
        if text in self.texts:
            return self.texts[text]
        return self.statements_text(text) if together else with_names(text, self.relations, self.queries)

    def statements_text(self, text: str) -> str:
        """Statements that define queries, live tables and views, with the new names. Raises RuleFault where
        that is not possible.
        """
        edits: list[Edit] = []
        for written in split_script(Source("", text)):
            statement = parse(written, literal=True)
            if isinstance(statement, Spark):
                span = written.span
                edits.append((span.start, span.end, self.query_text(text[span.start : span.end])))
            for one in (statement, *(statement.inserts if isinstance(statement, InsertSet) else ())):
                edits += self._edits(one, text)
        return with_points(text, apart(edits))[0]

    def view(self, view: Statement) -> Statement:
        """The statement of a view with the new names."""
        text = self.statements_text(f"{view.text};")
        if text == f"{view.text};":
            return view
        return parse(split_script(Source("catalog.sql", text))[0], {}, literal=True)

    def _edits(self, statement: Statement, text: str) -> list[Edit]:
        edits = []
        is_table = isinstance(statement, CreateLiveTable)
        of_field = {"name": self.sinks if is_table else {}, "query_name": self.queries}
        of_field |= {"targets": self.sinks | self.streams, "late": self.sinks}  # type: ignore[operator]
        for part, names in of_field.items():
            value = getattr(statement, part, None)
            for name in value if isinstance(value, tuple) else (value,):
                if isinstance(name, Name) and name.value.casefold() in names:
                    new = quote_name(names[name.value.casefold()])
                    edits.append((name.span.start, name.span.end, new))
        query = getattr(statement, "query", None)
        if isinstance(query, Fragment) and (changed := self.query_text(query.text)) != query.text:
            if text[query.span.start : query.span.end] != query.text:
                raise RuleFault(
                    "a query that begins before its INSERT INTO cannot follow a new name",
                    hint="write it behind INSERT INTO",
                    code="RENAME_NOT_SUPPORTED",
                )
            edits.append((query.span.start, query.span.end, changed))
        return edits

    def record(self, marker: Any, *, together: bool) -> Any:
        """What a checkpoint records of its query, with the new names."""
        facts = marker.get("facts") or {}
        streams = [
            stream
            | {
                "name": _of(self.relations, stream["name"]),
                "query": self.query_text(stream["query"]) if stream["query"] else "",
            }
            for stream in facts.get("streams", ())
        ]
        sinks = [sink | {"name": _of(self.sinks, sink["name"])} for sink in facts.get("sinks", ())]
        changed = marker | {"query": _of(self.queries, marker["query"])}
        changed["text"] = self.query_text(marker["text"], together=together)
        if facts:
            select = self.query_text(facts["select"], together=together)
            changed["facts"] = facts | {"select": select, "streams": streams, "sinks": sinks}
        return changed

    def applied(self, catalog: Catalog) -> Catalog:
        """A catalog with the new names; one that has them already is as it was. Raises RuleFault."""
        return replace(
            catalog,
            streams=_keyed(map(self._stream, catalog.streams.values())),
            sinks=_keyed(map(self._sink, catalog.sinks.values())),
            queries=_keyed(map(self.query, catalog.queries.values())),
            tables=_keyed(map(self._table, catalog.tables.values())),
            sql_functions=_keyed(map(self._sql_function, catalog.sql_functions.values())),
            aside=_keyed(map(self._aside, catalog.aside.values())),
        )

    def _aside(self, entry: Aside) -> Aside:
        if isinstance(entry, Function):
            return entry
        if isinstance(entry, Table):
            return self._table(entry)
        if isinstance(entry, SqlFunction):
            return self._sql_function(entry)
        base, _, suffix = entry.name.rpartition("$")
        return replace(self._stream(entry), name=f"{_of(self.streams, base)}${suffix}")

    def _table(self, table: Table) -> Table:
        text = self.statements_text(f"{table.text};").removesuffix(";") if table.text else ""
        return replace(table, live=self._live(table.live), text=text)

    def _sql_function(self, function: SqlFunction) -> SqlFunction:
        text = self.statements_text(f"{function.text};").removesuffix(";")
        return replace(function, live=self._live(function.live), text=text)

    def _live(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_of(self.relations, name) for name in names)

    def _stream(self, stream: Stream) -> Stream:
        return replace(
            stream,
            name=_of(self.streams, stream.name),
            query=self.query_text(stream.query) if stream.query else "",
            malformed_sink=_of(self.sinks, stream.malformed_sink),
        )

    def _sink(self, sink: Sink) -> Sink:
        return replace(sink, name=_of(self.sinks, sink.name), owner=_of(self.queries, sink.owner))

    def query(self, query: Query) -> Query:
        """A query with the new names. Raises RuleFault."""
        return replace(
            query,
            name=_of(self.queries, query.name),
            sinks=tuple(_of(self.sinks | self.streams, name) for name in query.sinks),  # type: ignore[operator]
            inputs=tuple(_of(self.relations, name) for name in query.inputs),
            late=_of(self.sinks, query.late),
            owner=_of(self.queries, query.owner),
            text=self.query_text(query.text, together=query.together),
        )


def _of(names: Names, name: str) -> str:
    return names.get(name.casefold(), name)


def _keyed(entries: Any) -> dict[str, Any]:
    return {entry.name.casefold(): entry for entry in entries}


def renaming(kind: str, old: str, new: str, catalog: Catalog) -> Renaming:
    """What the new name of an entry means for all names. kind: stream, sink, live_table or query."""
    if kind == "stream":
        rejected = f"{old}${REJECTED}"
        relations = {old.casefold(): new, rejected.casefold(): f"{new}${REJECTED}"}
        return Renaming({old.casefold(): new}, relations=relations)
    query = catalog.queries.get(old.casefold())
    sink = catalog.sinks.get(old.casefold())
    if kind != "query" and not (query and query.live_table):
        names = {old.casefold(): new}
        return Renaming(sinks=names, relations=names if sink and sink.is_live else {})
    stages = with_stages(old, new, (stage.name for stage in catalog.stages_of(old)))
    own = {old.casefold(): new}
    table = own if query and query.live_table else {}
    return Renaming({}, table | stages, own | stages, table | stages)


def with_stages(old: str, new: str, stages: Any) -> dict[str, str]:
    """New names of the stages of a query that is renamed."""
    return {stage.casefold(): new + stage[len(old) :] for stage in stages}
