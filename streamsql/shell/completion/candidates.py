"""Candidates outside of queries: a source for each terminal of the grammar, and Spark's statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.language import reference
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import Token, quote_name
from streamsql.shell.completion.columns import Pair
from streamsql.shell.completion.options import (
    connector_names,
    connector_of,
    formats,
    option_keys,
    option_values,
    setting_keys,
    setting_values,
)
from streamsql.shell.completion.scope import Block, read_query
from streamsql.shell.completion.spot import FUNCTION, KEYWORD, Offer, Spot, declared, dotted, expected

# What Spark's own statements go on with.
_SPARK_NEXT = {
    "CREATE": ("TABLE", "VIEW", "TEMPORARY VIEW", "DATABASE", "FUNCTION"),
    "DROP": ("TABLE", "VIEW", "DATABASE", "FUNCTION"),
    "SHOW": ("TABLES", "VIEWS", "COLUMNS", "FUNCTIONS", "DATABASES", "CATALOGS", "CREATE TABLE"),
    "DESCRIBE": ("FUNCTION", "TABLE", "EXTENDED"),
    "DESC": ("FUNCTION", "TABLE", "EXTENDED"),
    "CACHE": ("TABLE",), "UNCACHE": ("TABLE",), "TRUNCATE": ("TABLE",), "REFRESH": ("TABLE",),
    "ALTER": ("TABLE", "VIEW"), "ANALYZE": ("TABLE",), "DELETE": ("FROM",), "MERGE": ("INTO",),
    "EXECUTE": ("IMMEDIATE",),
}  # fmt: skip
_BEFORE_TABLE = frozenset(("TABLE", "VIEW", "DESCRIBE", "DESC", "UPDATE"))


def in_statement(spot: Spot) -> Iterator[Offer]:
    """What may stand at the cursor, in the order of the grammar; not yet held against what is typed."""
    done, typed = dotted(spot.tokens, spot.typed)
    if len(done) < len(spot.tokens) and expected(done).keys() & _OF_SEVERAL_PARTS:
        spot = replace(spot, tokens=done, typed=typed)
    for name in sorted(expected(spot.tokens), key=_SPARK_INSERT.__contains__):
        yield from _keywords([name])
        if name in SOURCES:
            yield from (o._replace(typed=spot.typed) for o in SOURCES[name](spot))
    if spot.has("EXPLAIN", 1) and spot.typed:
        yield from _keywords(expected([]))
    yield from _spark_statement(spot)


def _keywords(wanted: Iterable[str]) -> Iterator[Offer]:
    """The words among what the grammar expects."""
    words = (w.strip("'") for w in wanted if w.startswith("'"))
    return (Offer(w, "keyword", KEYWORD) for w in words if w.isalpha())


# What only goes on to Spark comes after what is the console's own.
_SPARK_INSERT = frozenset(("'PARTITION'", "'BY'"))
# Terminals that are more than one token.
_OF_SEVERAL_PARTS = frozenset(("OptionKey", "SettingKey", "Connector"))


def _spark_statement(spot: Spot) -> Iterator[Offer]:
    """The words and names of statements that go to Spark as they are."""
    if not spot.tokens:
        return
    first, last = spot.tokens[0].upper, spot.tokens[-1].upper
    if len(spot.tokens) == 1 and (spot.typed or first not in ("SHOW", "DESCRIBE", "DESC")):
        yield from (Offer(w, "keyword", KEYWORD) for w in _SPARK_NEXT.get(first, ()))
    if last in _BEFORE_TABLE and first in (*_SPARK_NEXT, "UPDATE") and first != "CREATE":
        if first in ("DESCRIBE", "DESC", "CACHE"):
            yield from named_relations(spot.catalog)
        else:
            yield from (Offer(t.name, "table") for t in spot.catalog.tables.values())
    if last == "FUNCTION" and first in ("DESCRIBE", "DESC"):
        yield from (Offer(f.name, f.signature, FUNCTION) for f in reference.functions().values())


def named_relations(catalog: Catalog) -> Iterator[Offer]:
    """All that FROM can read."""
    yield from (Offer(quote_name(s.name), "stream") for s in catalog.streams.values())
    yield from (Offer(quote_name(s.name), "live table") for s in catalog.sinks.values() if s.is_live)
    yield from (Offer(t.name, "view of streams" if t.streaming else "table") for t in catalog.tables.values())


def own_functions(catalog: Catalog, *kinds: str) -> Iterator[Offer]:
    """The functions written in Python of these kinds, up to what is typed behind the name."""
    for found in catalog.functions.values():
        if found.kind in kinds:
            opens = "(TABLE(" if found.kind == "processor" else "("
            yield Offer(quote_name(found.name) + opens, found.schema, FUNCTION)


def column_offers(pairs: Iterable[Pair]) -> Iterator[Offer]:
    """Columns with their type."""
    return (Offer(quote_name(name), kind or "column") for name, kind in pairs)


def _columns(spot: Spot) -> Iterator[Offer]:
    """Columns where a statement of the console's own names one."""
    first, last = spot.tokens[0].upper, spot.tokens[-1].upper
    pairs: list[Pair] = []
    if first == "INSERT":
        target = spot.catalog.target(spot.behind_word("INTO"))
        pairs = [(c.name, c.type) for c in target.columns] if target else []
    elif first == "WATCH":
        pairs = spot.resolver.named(spot.behind_word("WATCH"))
    elif spot.has("STREAM", 4) or spot.has("SINK", 4):
        made = connector_of(spot)
        pairs = declared(spot.tokens)
        if not pairs and made is not None:
            pairs = [(c.name, c.type) for c in made.fixed_columns]
    if not pairs and spot.behind:
        pairs = spot.resolver.output(_query_behind(spot.behind))
    if last == "WATERMARK":
        pairs = times_first(pairs)
    return column_offers(pairs)


def _query_behind(behind: Sequence[Token]) -> Block:
    start = next((i for i, t in enumerate(behind) if t.upper in ("SELECT", "WITH")), len(behind))
    return read_query(list(behind[start:]), -1)[0]


def times_first(pairs: Iterable[Pair]) -> list[Pair]:
    """Columns that can carry a watermark first."""
    return sorted(pairs, key=lambda pair: not pair[1].upper().startswith("TIMESTAMP"))


def _named(kind: str, names: Callable[[Catalog], Iterable[str]]) -> Callable[[Spot], Iterator[Offer]]:
    return lambda spot: (Offer(quote_name(n), kind) for n in names(spot.catalog))


def _sinks(spot: Spot) -> Iterator[Offer]:
    for sink in spot.catalog.sinks.values():
        yield Offer(quote_name(sink.name), "live table" if sink.is_live else "sink")


def _targets(spot: Spot) -> Iterator[Offer]:
    if spot.has("TOPICS", 2):
        for entries in (spot.catalog.streams, spot.catalog.sinks):
            found = (e for e in entries.values() if e.connector == "kafka")
            yield from (Offer(quote_name(e.name), "kafka") for e in found)
        return
    yield from _sinks(spot)
    yield from (Offer(quote_name(s.name), "stream") for s in spot.catalog.streams.values())
    yield from (Offer(t.name, "table") for t in spot.catalog.tables.values() if not t.streaming)


def types(spot: Spot) -> Iterator[Offer]:
    """The names of types."""
    return (Offer(t, "type", KEYWORD) for t in sorted(SIMPLE_TYPES))


def _query_heads(spot: Spot) -> Iterator[Offer]:
    heads = ("SELECT", "WITH", "VALUES") if spot.has("INSERT", 1) else ("SELECT", "WITH")
    return (Offer(w, "keyword", KEYWORD) for w in heads)


def _help_words(spot: Spot) -> Iterator[Offer]:
    if spot.has("HELP", 1):
        yield from _keywords(expected(spot.tokens[1:]))


query_names = _named("query", lambda c: (q.name for q in c.queries.values()))

SOURCES: dict[str, Callable[[Spot], Iterator[Offer]]] = {
    "StreamName": _named("stream", lambda c: (s.name for s in c.streams.values())),
    "SinkName": _sinks,
    "LiveTableName": _named("live table", lambda c: (s.name for s in c.sinks.values() if s.is_live)),
    "QueryName": query_names,
    "FunctionName": _named("Python", lambda c: (f.name for f in c.functions.values())),
    "Target": _targets,
    "Query": _query_heads,
    "TypeName": types,
    "Connector": connector_names,
    "FormatName": formats,
    "OptionKey": option_keys,
    "OptionValue": option_values,
    "SettingKey": setting_keys,
    "Rest": setting_values,
    "ColumnName": _columns,
    "Word": _help_words,
}
