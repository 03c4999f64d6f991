"""What a staged stream changes: the streams and live tables that read it, directly or through others."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.catalog import Catalog
from streamsql.definitions import REJECTED, Query, is_staged, promoted_name
from streamsql.plan.statements.staged_tables import in_use, renamed
from streamsql.plan.streaming.readers import reads


def relations_over(names: Iterable[str], catalog: Catalog) -> set[str]:
    """The folded names of relations, and of the streams that are queries over them."""
    over = {name.casefold() for name in names}
    while True:
        over |= {f"{name}${REJECTED}" for name in over if name in catalog.streams}
        new = {
            key
            for key, stream in catalog.streams.items()
            if key not in over and stream.query and any(reads(stream.query, name) for name in over)
        }
        if not new:
            return over
        over |= new


def affected_tables(names: Iterable[str], catalog: Catalog) -> list[Query]:
    """The queries of the live tables that read streams or live tables, directly or through others, each
    after those that it reads; also those among the names. What is staged counts with its staged definition.
    """
    catalog = catalog.with_changes()
    over = relations_over(names, catalog)
    left = {q.name: q for q in catalog.named(None) if q.live_table and not is_staged(q.name)}
    texts = {name: (catalog.staged(name) or query).text for name, query in left.items()}
    found: dict[str, Query] = {}
    new = [""]
    while new:
        new = [name for name in left if any(reads(texts[name], relation) for relation in over)]
        found |= {name: left.pop(name) for name in new}
        over = relations_over((*over, *new), catalog)
    ordered = list[Query]()

    def add(query: Query) -> None:
        if query in ordered:
            return
        for other in found.values():
            if other is not query and reads_through(texts[query.name], other.name, catalog):
                add(other)
        ordered.append(query)

    for query in found.values():
        add(query)
    return ordered


def reads_through(text: str, relation: str, catalog: Catalog) -> bool:
    """Whether a query reads a relation, directly or through streams."""
    return any(reads(text, name) for name in relations_over([relation], catalog))


def staged_streams_of(text: str, catalog: Catalog) -> list[str]:
    """The names of the streams with a staged definition that a query of a staged change reads."""
    if not text:  # of a stream USING a connector
        return []
    changed = catalog.with_changes()
    names = (promoted_name(s.name) for s in catalog.aside.values() if is_staged(s.name))
    return [name for name in names if reads_through(text, name, changed)]


def stands_alone(table: str, catalog: Catalog) -> bool:
    """Whether the staged change of a live table has another definition than the live table: else it is there
    because of what it reads.
    """
    query, change = catalog.queries[table.casefold()], catalog.staged(table)
    assert change is not None
    sinks = (catalog.sinks[q.sinks[0].casefold()] for q in (query, change))
    texts = [q.sql(sink) for q, sink in zip((query, renamed(change)), map(in_use, sinks), strict=True)]
    return texts[0] != texts[1]
