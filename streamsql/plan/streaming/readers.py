"""The queries and streams that read a stream, by the relations that their texts name."""

from __future__ import annotations

from streamsql.catalog import Catalog
from streamsql.definitions import Query
from streamsql.language.query import read_query


def reads(text: str, name: str) -> bool:
    """Whether a query names a relation."""
    query = read_query(text)
    relations = query.relations if query.tree is not None else query.names
    return any(relation.name.casefold() == name.casefold() for relation in relations)


def streams_over(name: str, catalog: Catalog) -> list[str]:
    """The streams that are queries over a stream, also over one of these, in the order of the catalog."""
    over = {name.casefold()}
    for stream in catalog.streams.values():  # a stream is defined after those that it reads
        if stream.query and any(reads(stream.query, read_name) for read_name in over):
            over.add(stream.name.casefold())
    return [s.name for key, s in catalog.streams.items() if key in over and key != name.casefold()]


def queries_over(name: str, catalog: Catalog) -> list[Query]:
    """The queries that read a stream, directly or through others; that of a live table for its stages."""
    names = [name, *streams_over(name, catalog)]
    reading = (q for q in catalog.queries.values() if any(reads(q.text, read_name) for read_name in names))
    owners = (catalog.queries.get(q.owner.casefold(), q) if q.owner else q for q in reading)
    return list({query.name: query for query in owners}.values())
