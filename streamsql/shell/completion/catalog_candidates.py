"""Candidates from the catalog, and the columns that statements of the console name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connectors
from streamsql.language import reference
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import quote_name
from streamsql.language.topics import topics
from streamsql.shell.completion.column_resolver import NameAndType
from streamsql.shell.completion.offers import (
    FUNCTION,
    KEYWORD,
    Context,
    Offer,
    Source,
    column_offers,
    event_times_first,
)


def named_relations(context: Context) -> Iterator[Offer]:
    """The relations that FROM can read."""
    catalog = context.catalog
    yield from (Offer(quote_name(s.name), "stream") for s in catalog.streams.values())
    yield from (
        Offer(quote_name(s.name), "live table") for s in catalog.sinks.values() if s.is_live and not s.owner
    )
    yield from (Offer(t.name, "view of streams" if t.streaming else "table") for t in catalog.tables.values())


def own_functions(catalog: Catalog, *kinds: str) -> Iterator[Offer]:
    """The own functions of some kinds, each with its opening parentheses."""
    for function in catalog.functions.values():
        if function.kind in kinds:
            opens = "(TABLE(" if function.kind == "processor" else "("
            yield Offer(quote_name(function.name) + opens, function.schema, FUNCTION)
    if "scalar" in kinds or "table" in kinds:  # which of these one in SQL is, Spark knows
        yield from (Offer(f"{quote_name(f.name)}(", "SQL", FUNCTION) for f in catalog.sql_functions.values())


def _named(kind: str, names: Callable[[Catalog], Iterable[str]]) -> Source:
    return lambda context: (Offer(quote_name(n), kind) for n in names(context.catalog))


def _queries(context: Context) -> Iterator[Offer]:
    """The queries, those that run first; after START, those that do not."""
    states = context.states or (lambda name: "query")
    offers = [Offer(quote_name(q.name), states(q.name)) for q in context.catalog.named(None)]
    starts = context.statement.head == "START"
    yield from sorted(offers, key=lambda offer: offer.kind.startswith("running") == starts)


def _sinks(context: Context) -> Iterator[Offer]:
    for sink in context.catalog.sinks.values():
        yield Offer(quote_name(sink.name), "live table" if sink.is_live else "sink")


def _targets(context: Context) -> Iterator[Offer]:
    catalog = context.catalog
    if context.statement.has("TOPICS", within=2):
        for entries in (catalog.streams, catalog.sinks):
            of_kafka = (e for e in entries.values() if e.connector == "kafka")
            yield from (Offer(quote_name(e.name), "kafka") for e in of_kafka)
        return
    yield from _sinks(context)
    yield from (Offer(quote_name(s.name), "stream") for s in catalog.streams.values())
    yield from (Offer(t.name, "table") for t in catalog.tables.values() if not t.streaming)


def _tables(context: Context) -> Iterator[Offer]:
    return (Offer(t.name, "table") for t in context.catalog.tables.values())


def _functions_of_spark(context: Context) -> Iterator[Offer]:
    return (Offer(f.name, f.signature, FUNCTION) for f in reference.functions().values())


def _types(context: Context) -> Iterator[Offer]:
    return (Offer(t, "type", KEYWORD) for t in sorted(SIMPLE_TYPES))


def _columns(context: Context) -> Iterator[Offer]:
    """The columns that a statement of the console can name."""
    statement = context.statement
    columns: list[NameAndType] = []
    if statement.head == "INSERT":
        target = context.catalog.target(statement.target)
        columns = [(c.name, c.type) for c in target.columns] if target else []
    elif statement.head == "WATCH":
        columns = list(context.resolver.of_name(statement.target).named)
    elif statement.has("STREAM", "SINK", within=4):
        columns = statement.declared_columns
        connector = connectors().get(statement.connector)
        if not columns and connector is not None:
            columns = [(c.name, c.type) for c in connector.fixed_columns]
    if not columns and (query := statement.following_query()):
        columns = list(context.resolver.of_text(query).named)
    return column_offers(event_times_first(columns) if statement.last == "WATERMARK" else columns)


def _help_topics(context: Context) -> Iterator[Offer]:
    """After HELP, the remaining words of the topics that begin with the typed words."""
    if context.statement.head == "HELP":
        words = [token.text.casefold() for token in context.statement.before[1:]]
        for name in topics():
            if name.split()[: len(words)] == words:
                yield Offer(" ".join(name.split()[len(words) :]), "topic", KEYWORD)


SOURCES: dict[str, Source] = {
    "Word": _help_topics,
    "StreamName": _named("stream", lambda c: (s.name for s in c.streams.values())),
    "SinkName": _sinks,
    "LiveTableName": _named("live table", lambda c: (s.name for s in c.live_tables())),
    "QueryName": _queries,
    "ChangeName": _named("change", lambda c: [change.name for change in c.changes.values()]),
    "ViewName": _named("view", lambda c: (t.name for t in c.tables.values() if t.text)),
    "FunctionName": _named("function", lambda c: c.names_in_use("function")),
    "Target": _targets,
    "ColumnName": _columns,
    "TypeName": _types,
    "AnyRelation": named_relations,
    "SparkTable": _tables,
    "SparkFunction": _functions_of_spark,
}
