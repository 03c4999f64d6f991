"""What a staged definition changes: the streams, views and live tables over it, directly or through others.

A definition is a stream, a view or a function.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.catalog import Catalog, after_inputs
from streamsql.definitions import (
    OfSpark,
    Query,
    in_use_name,
    is_before,
    is_staged,
    promoted_name,
)
from streamsql.language.spark_definitions import definition_of
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.staged_tables import in_use, renamed
from streamsql.plan.streaming.readers import (
    in_spark,
    key_of,
    key_of_name,
    named_by,
    names_in,
    names_in_definition,
    relations_over,
)


def in_spark_over(names: Iterable[str], catalog: Catalog) -> list[OfSpark]:
    """The views and functions in SQL that read definitions or live tables, with the definitions in use where
    they have one, each after those that it reads; without those of these names.
    """
    names = list(names)
    over = relations_over(names, catalog) - {key_of_name(name, catalog) for name in names}
    entries: list[OfSpark] = [*catalog.tables.values(), *catalog.sql_functions.values()]
    in_use = {key_of(entry): entry for entry in entries if entry.text}
    found = (in_use.get(key, entry) for key, entry in in_spark(catalog).items() if key in over)
    return in_order(found, catalog)


def temporary_in_spark(entry: OfSpark, catalog: Catalog) -> list[str]:
    """The temporary views and functions that a view or function names, by their names in use."""
    found = list[str]()
    for name in names_in_definition(entry):
        plain, kind = name.removesuffix("()"), "function" if name.endswith("()") else "view"
        in_use = catalog.definition_in_use(kind, plain)
        new = in_use is None and name in in_spark(catalog)
        lasts = isinstance(in_use, OfSpark) and not definition_of(in_use.text).temporary
        if new or (in_use is not None and not lasts):
            found.append(plain)
    return sorted(found)


def in_order(entries: Iterable[OfSpark], catalog: Catalog) -> list[OfSpark]:
    """Views and functions, each after those that it reads."""
    views, names_of = {key_of(entry): entry for entry in entries}, dict(named_by(catalog))
    read = {key: [k for k in views if k != key and k in names_of.get(key, ())] for key in views}
    return [views[key] for key in after_inputs(views, read.__getitem__)]


def affected_tables(names: Iterable[str], catalog: Catalog) -> list[Query]:
    """The queries of the live tables that read definitions or live tables, directly or through others, each
    after those that it reads; also those among the names. What is staged counts with its staged definition.
    """
    catalog = catalog.with_changes()
    over = relations_over(names, catalog)
    left = {q.name: q for q in catalog.named(None) if q.live_table and not is_staged(q.name)}
    new = (renamed(q) for q in catalog.named(None) if catalog.is_new(promoted_name(q.name)))
    left |= {query.name: query for query in new}
    texts = {name: (catalog.staged(name) or query).text for name, query in left.items()}
    found: dict[str, Query] = {}
    more = [""]
    while more:
        more = [name for name in left if names_in(texts[name]) & over]
        found |= {name: left.pop(name) for name in more}
        over = relations_over((*over, *more), catalog)

    def inputs_of(name: str) -> list[str]:
        return [one for one in found if one != name and reads_through(texts[name], one, catalog)]

    return [found[name] for name in after_inputs(found, inputs_of)]


def reads_through(text: str, name: str, catalog: Catalog) -> bool:
    """Whether a query reads a definition or a live table, directly or through streams and views."""
    return bool(names_in(text) & relations_over([name], catalog))


def staged_definitions_of(named: Iterable[str], catalog: Catalog) -> list[str]:
    """The names of the streams, views and functions with a staged definition that a staged change reads.
    named: what it names, see `names_in`.
    """
    changed, named = catalog.with_changes(), frozenset(named)
    staged = (in_use_name(entry.name) for entry in catalog.aside.values() if is_staged(entry.name))
    return [name for name in staged if named & relations_over([name], changed)]


def staged_inserts(catalog: Catalog) -> list[Query]:
    """The staged changes of queries into sinks."""
    return [query for query in catalog.named(None) if query.into and not is_before(query.name)]


def inserts_over_tables(tables: Iterable[Query], catalog: Catalog) -> tuple[list[Query], Catalog]:
    """(the staged changes of queries into sinks that read live tables that are to be staged: they are staged
    anew behind these, the catalog without them).
    """
    names = {table.name.casefold() for table in tables}
    inserts = [q for q in staged_inserts(catalog) if names & {name.casefold() for name in q.inputs}]
    for query in (c for q in inserts for c in catalog.changes_of(promoted_name(q.name))):
        for kind, entry in entries_of(query, catalog):
            catalog = catalog.without(kind, entry)
    return inserts, catalog


def stands_alone(table: str, catalog: Catalog) -> bool:
    """Whether the staged change of a live table has another definition than the live table: else it is there
    because of what it reads.
    """
    if catalog.is_new(table):
        return True
    query, change = catalog.queries[table.casefold()], catalog.staged(table)
    assert change is not None
    sinks = (catalog.sinks[q.sinks[0].casefold()] for q in (query, change))
    texts = [q.sql(sink) for q, sink in zip((query, renamed(change)), map(in_use, sinks), strict=True)]
    return texts[0] != texts[1]
