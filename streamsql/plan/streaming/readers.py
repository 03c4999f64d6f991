"""What reads a stream, a view, a function or a live table: by the names in texts, directly or through others.

A function stands here as `name()`: it may have the name of a relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.definitions import (
    REJECTED,
    Function,
    OfSpark,
    Query,
    SqlFunction,
    in_use_name,
    is_aside,
    is_staged,
)
from streamsql.language.query import read_query
from streamsql.language.spark_definitions import definition_named, query_of_view

OWN_NAME = "$own"
"""A name that no relation has."""


def names_in(text: str) -> frozenset[str]:
    """The relations that a query reads and the functions that it calls, folded."""
    query = read_query(text)
    relations = query.relations if query.tree is not None else query.names
    return frozenset((*(r.name.casefold() for r in relations), *(f"{c.name}()" for c in query.calls)))


def names_in_definition(entry: OfSpark) -> frozenset[str]:
    """The same for a view or a function in SQL."""
    if isinstance(entry, SqlFunction):  # its own name, which comes first, reads as that of a relation
        return names_in(definition_named(entry.text, OWN_NAME, temporary=True)) - {OWN_NAME}
    place = query_of_view(entry.text)
    return names_in(entry.text[place.start : place.end]) if place else frozenset()


def key_of(entry: OfSpark) -> str:
    """The folded name of a view, or of a function as `name()`."""
    return f"{entry.name.casefold()}()" if isinstance(entry, SqlFunction) else entry.name.casefold()


def in_spark(catalog: Catalog) -> dict[str, OfSpark]:
    """The views and functions in SQL by `key_of`, each with its staged definition, if it has one, under its
    name in use.
    """
    entries: list[OfSpark] = [*catalog.tables.values(), *catalog.sql_functions.values()]
    staged = [e for e in catalog.aside.values() if isinstance(e, OfSpark) and is_staged(e.name)]
    entries = [e for e in entries if e.text and not is_aside(e.name)]
    return {key_of(e): e for e in (*entries, *(replace(e, name=in_use_name(e.name)) for e in staged))}


def named_by(catalog: Catalog) -> Iterator[tuple[str, frozenset[str]]]:
    """What each stream and view names, by its folded name; a staged view counts with that definition."""
    for key, stream in catalog.streams.items():
        if stream.query:
            yield key, names_in(stream.query)
    for key, entry in in_spark(catalog).items():
        yield key, names_in_definition(entry)


def relations_over(names: Iterable[str], catalog: Catalog) -> set[str]:
    """The folded names of definitions and live tables, and of the streams and views that are queries over
    them.
    """
    over = {key_of_name(name, catalog) for name in names}
    names_of = dict(named_by(catalog))
    while True:
        over |= {f"{name}${REJECTED}" for name in over if name in catalog.streams}
        new = {key for key, named in names_of.items() if key not in over and named & over}
        if not new:
            return over
        over |= new


def relations_under(names: Iterable[str], catalog: Catalog) -> set[str]:
    """The folded names of relations, and of those that the streams and views among them read."""
    under, new = set[str](), set(names)
    while new:
        under |= new
        texts = [s.query for n in new if (s := catalog.streams.get(n)) and s.query]
        views = [view for n in new if (view := catalog.tables.get(n)) and view.text]
        new = set().union(*map(names_in, texts), *map(names_in_definition, views)) - under
    return under


def key_of_name(name: str, catalog: Catalog) -> str:
    key = name.casefold()
    staged = catalog.staged_definition(name)
    is_function = catalog.definition_in_use("function", name) or isinstance(staged, (Function, SqlFunction))
    is_relation = key in catalog.tables or key in catalog.sinks or key in catalog.streams
    return f"{key}()" if is_function and not is_relation else key


def streams_over(name: str, catalog: Catalog) -> list[str]:
    """The streams that are queries over a stream, directly or through others, in the order of the catalog."""
    over = relations_over([name], catalog)
    return [s.name for key, s in catalog.streams.items() if key in over and key != name.casefold()]


def queries_over(name: str, catalog: Catalog) -> list[Query]:
    """The queries that read a stream or a view, or call a function, directly or through others; that of a
    live table for its stages.
    """
    over = relations_over([name], catalog)
    reading = (query for query in catalog.queries.values() if names_in(query.text) & over)
    owners = (catalog.queries.get(q.owner.casefold(), q) if q.owner else q for q in reading)
    return list({query.name: query for query in owners}.values())
