"""The statements that stage what is defined, or staged, once more."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.definitions import Query, Sink, promoted_name
from streamsql.errors import Source, Span
from streamsql.language.origin import Origin
from streamsql.language.parser import parse_text
from streamsql.language.statements.base import Fragment
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.live_table import CreateLiveTable


def staging_of(query: Query, catalog: Catalog) -> CreateLiveTable:
    """The statement that stages a live table with its staged definition, if it has one, else its own."""
    query = catalog.staged(query.name) or query
    sink = in_use(catalog.sinks[query.sinks[0].casefold()])
    statement = parse_text(Source("", renamed(query).sql(sink)))
    assert isinstance(statement, CreateLiveTable)
    body = statement.query if query.backfill else _body(query)
    return replace(statement, query=body, or_replace=True, staged=True)


def staging_of_insert(change: Query) -> Insert:
    """The statement that stages a query into a sink with the definition of its staged change."""
    statement = parse_text(Source("", renamed(change).sql()))
    assert isinstance(statement, Insert)
    return replace(statement, query=_body(change))


def _body(query: Query) -> Fragment:
    """The SELECT of a query, with its secrets."""
    return Fragment(query.text, Span(0, 0), Origin.of(Span(0, 0)))


def in_use(sink: Sink) -> Sink:
    """The live table of a staged change, with its names after PROMOTE."""
    return replace(sink, name=promoted_name(sink.name), owner=promoted_name(sink.owner))


def renamed(query: Query) -> Query:
    """The query of a staged change, or of a stage of it, with its names after PROMOTE."""
    return replace(
        query,
        name=promoted_name(query.name),
        sinks=tuple(map(promoted_name, query.sinks)),
        inputs=tuple(map(promoted_name, query.inputs)),
        owner=promoted_name(query.owner),
    )
