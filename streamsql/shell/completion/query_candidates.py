"""Candidates inside a query: a source for each terminal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from streamsql.language import reference
from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.query_columns import type_in
from streamsql.language.struct_types import struct_fields
from streamsql.language.tokens import quote_name
from streamsql.language.unfinished.blocks import Relation
from streamsql.shell.completion.catalog_candidates import named_relations, own_functions
from streamsql.shell.completion.column_resolver import NameAndType
from streamsql.shell.completion.offers import (
    FUNCTION,
    Context,
    Offer,
    Source,
    column_offers,
    event_times_first,
    qualified_offer,
)


def _relations(context: Context) -> Iterator[Offer]:
    """The relations for FROM and JOIN: the queries named by WITH, streams, live tables, tables."""
    blocks = context.query.place.block.outward()
    for name in dict.fromkeys(name for block in blocks for name in block.ctes):
        yield Offer(quote_name(name), "WITH")
    yield from named_relations(context)


def _table_functions(context: Context) -> Iterator[Offer]:
    for function in reference.functions().values():
        if function.kind == "table":
            yield Offer(function.name + "(", function.signature, FUNCTION)
    yield from own_functions(context.catalog, "table", "processor")


def _functions(context: Context) -> Iterator[Offer]:
    """The functions of an expression; in upper case if two letters are typed in upper case."""
    yield from own_functions(context.catalog, "scalar", "aggregate")
    yield from _functions_of_spark(len(context.typed) > 1 and context.typed.isupper())


@cache
def _functions_of_spark(upper: bool) -> tuple[Offer, ...]:
    offers = []
    for function in reference.functions().values():
        if function.kind != "table":
            text = function.name + ("()" if function.takes_nothing else "(")
            offers.append(Offer(text.upper() if upper else text, function.signature, FUNCTION))
    return tuple(offers)


def _columns(context: Context) -> Iterator[Offer]:
    """The columns that a block reads, qualified if two have the same name."""
    block = context.query.place.block
    known = [(r, context.resolver.of_relation(r, block)) for r in block.relations]
    counts: dict[str, int] = {}
    for _, columns in known:
        for name, _ in columns:
            counts[name.casefold()] = counts.get(name.casefold(), 0) + 1
    for relation, columns in known:
        for name, kind in columns:
            if counts[name.casefold()] > 1 and relation.qualifier:
                yield qualified_offer(relation.qualifier, (name, kind))
            else:
                yield Offer(quote_name(name), kind or "column", keys=(name.casefold(),))
    if block.names_window and "window" not in counts:
        yield Offer("window", WINDOW_TYPE)
    if context.typed:
        yield from _qualifiers(block.relations)
        yield from _outer_columns(context)


def _qualifiers(relations: list[Relation]) -> Iterator[Offer]:
    """The qualifiers of columns, if a query reads several relations."""
    for relation in relations if len(relations) > 1 else ():
        if relation.qualifier:
            of = f"of {relation.name}" if relation.name else "of a sub-query"
            yield Offer(quote_name(relation.qualifier) + ".", of)


def _outer_columns(context: Context) -> Iterator[Offer]:
    """The columns of the queries around a sub-query."""
    for outer in list(context.query.place.block.outward())[1:]:
        for relation in outer.relations:
            if relation.qualifier:
                for column in context.resolver.of_relation(relation, outer):
                    yield qualified_offer(relation.qualifier, column)


def _select_aliases(context: Context) -> Iterator[Offer]:
    """The columns of the select list that are not columns of a relation."""
    block, resolver = context.query.place.block, context.resolver
    read = {n.casefold() for r in block.relations for n, _ in resolver.of_relation(r, block)}
    return column_offers(c for c in resolver.of_block(block) if c[0].casefold() not in read)


def _qualified_names(context: Context) -> Iterator[Offer]:
    """Columns of a relation, or fields of a column: `a.`, `a.b.`; in FROM also the tables of a database."""
    names, place, resolver = context.query.qualifiers, context.query.place, context.resolver
    if not names:
        return
    if place.expects_relation or place.clause == "FROM":
        prefix = ".".join(names) + "."
        for table in context.catalog.tables.values():
            if table.name.casefold().startswith(prefix.casefold()):
                yield Offer(table.name[len(prefix) :], "table")
    columns = resolver.qualified(names[0], place.block)
    for name in names[1:]:
        columns = struct_fields(type_in(columns, name))
    if place.clause == "ON":
        others = [r for r in place.relations if r.qualifier.casefold() != names[0].casefold()]
        shared = {n.casefold() for r in others for n, _ in resolver.of_relation(r, place.block)}
        columns = sorted(columns, key=lambda column: column[0].casefold() not in shared)
    yield from column_offers(columns)


def _event_times(context: Context) -> Iterator[Offer]:
    """After WATERMARK: the columns of the relation before it."""
    place = context.query.place
    return column_offers(
        event_times_first(
            c for r in place.relations[-1:] for c in context.resolver.of_relation(r, place.block)
        )
    )


def _joined(context: Context) -> tuple[list[Relation], list[NameAndType]]:
    """(the relations before the last joined one, the columns of the last)."""
    place = context.query.place
    *left, right = place.relations or [Relation()]
    return left, context.resolver.of_relation(right, place.block)


def _shared_columns(context: Context) -> Iterator[Offer]:
    """The columns that the last joined relation shares with those before it."""
    block, resolver = context.query.place.block, context.resolver
    left, columns = _joined(context)
    there = {n.casefold() for r in left for n, _ in resolver.of_relation(r, block)}
    return column_offers(c for c in columns if c[0].casefold() in there)


def _join_keys(context: Context) -> Iterator[Offer]:
    """After JOIN … ON: `a.id = b.id` for each column that both sides have and that is not yet compared."""
    query, resolver = context.query, context.resolver
    left, columns = _joined(context)
    right = query.place.relations[-1].qualifier if query.place.relations else ""
    there = {name.casefold(): name for name, _ in columns}
    for relation in left if right else ():
        for name, kind in resolver.of_relation(relation, query.place.block):
            if name.casefold() not in there or not relation.qualifier:
                continue
            mine = f"{quote_name(relation.qualifier)}.{quote_name(name)}"
            other = f"{quote_name(right)}.{quote_name(there[name.casefold()])}"
            if not query.has_equality(mine, other):
                text = f"{mine} = {other}"
                yield Offer(text, f"key, {kind}" if kind else "key", keys=(text.casefold(), name.casefold()))


def _equal_columns(context: Context) -> Iterator[Offer]:
    """After `ON a.id =`: the columns of that name, those of the last joined relation first."""
    place, name = context.query.place, context.query.compared
    for relation in reversed(place.relations if name else []):
        for column in context.resolver.of_relation(relation, place.block):
            if column[0].casefold() == name.casefold() and relation.qualifier:
                yield qualified_offer(relation.qualifier, column)


SOURCES: dict[str, Source] = {
    "Relation": _relations,
    "TableFunction": _table_functions,
    "Function": _functions,
    "Column": _columns,
    "SelectAlias": _select_aliases,
    "QualifiedName": _qualified_names,
    "EventTimeColumn": _event_times,
    "SharedColumn": _shared_columns,
    "JoinKey": _join_keys,
    "EqualColumn": _equal_columns,
}
