"""Candidates inside a query: a source for each terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from streamsql.language import reference
from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.query_columns import Visible, type_in
from streamsql.language.struct_types import struct_fields
from streamsql.language.tokens import quote_name
from streamsql.shell.completion.catalog_candidates import named_relations, own_functions
from streamsql.shell.completion.offers import (
    FUNCTION,
    Context,
    Offer,
    Source,
    column_offers,
    event_times_first,
    qualified_offer,
)

_NONE = Visible("", "", (), 0)


def _relations(context: Context) -> Iterator[Offer]:
    """The relations for FROM and JOIN: the queries named by WITH, streams, live tables, tables."""
    for name in context.around.queries:
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
    around = context.around
    read = around.relations[0]
    counts = Counter(name.casefold() for relation in read for name, _ in relation.columns)
    for relation in read:
        for name, kind in relation.columns:
            if counts[name.casefold()] > 1 and relation.qualifier:
                yield qualified_offer(relation.qualifier, (name, kind))
            else:
                yield Offer(quote_name(name), kind or "column", keys=(name.casefold(),))
    if around.names_window and "window" not in counts:
        yield Offer("window", WINDOW_TYPE)
    if context.typed:
        yield from _qualifiers(read)
        yield from _outer_columns(context)


def _qualifiers(relations: Sequence[Visible]) -> Iterator[Offer]:
    """The qualifiers of columns, if a query reads several relations."""
    for relation in relations if len(relations) > 1 else ():
        if relation.qualifier:
            of = f"of {relation.name}" if relation.name else "of a sub-query"
            yield Offer(quote_name(relation.qualifier) + ".", of)


def _outer_columns(context: Context) -> Iterator[Offer]:
    """The columns of the queries around a sub-query."""
    for outer in context.around.relations[1:]:
        for relation in outer:
            if relation.qualifier:
                for column in relation.columns:
                    yield qualified_offer(relation.qualifier, column)


def _select_aliases(context: Context) -> Iterator[Offer]:
    """The columns of the select list that are not columns of a relation."""
    read = {n.casefold() for r in context.around.relations[0] for n, _ in r.columns}
    return column_offers(c for c in context.around.outputs if c[0].casefold() not in read)


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
    columns = resolver.qualified(names[0], context.around)
    for name in names[1:]:
        columns = struct_fields(type_in(columns, name))
    if place.clause == "ON":
        others = [r for r in _before(context) if r.qualifier.casefold() != names[0].casefold()]
        shared = {n.casefold() for r in others for n, _ in r.columns}
        columns = sorted(columns, key=lambda column: column[0].casefold() not in shared)
    yield from column_offers(columns)


def _before(context: Context) -> list[Visible]:
    """The relations of the SELECT that are written before the cursor."""
    around = context.around
    return sorted((r for r in around.relations[0] if r.start < around.start), key=lambda r: r.start)


def _event_times(context: Context) -> Iterator[Offer]:
    """After WATERMARK: the columns of the relation before it."""
    return column_offers(event_times_first(c for r in _before(context)[-1:] for c in r.columns))


def _shared_columns(context: Context) -> Iterator[Offer]:
    """The columns that the last joined relation shares with those before it."""
    *left, right = _before(context) or [_NONE]
    others = {n.casefold() for r in left for n, _ in r.columns}
    return column_offers(c for c in right.columns if c[0].casefold() in others)


def _join_keys(context: Context) -> Iterator[Offer]:
    """After JOIN … ON: `a.id = b.id` for each column that both sides have and that is not yet compared."""
    *left, right = _before(context) or [_NONE]
    names = {name.casefold(): name for name, _ in right.columns}
    for relation in left if right.qualifier else ():
        for name, kind in relation.columns:
            if name.casefold() not in names or not relation.qualifier:
                continue
            mine = f"{quote_name(relation.qualifier)}.{quote_name(name)}"
            other = f"{quote_name(right.qualifier)}.{quote_name(names[name.casefold()])}"
            if not context.query.has_equality(mine, other):
                text = f"{mine} = {other}"
                yield Offer(text, f"key, {kind}" if kind else "key", keys=(text.casefold(), name.casefold()))


def _equal_columns(context: Context) -> Iterator[Offer]:
    """After `ON a.id =`: the columns of that name, those of the last joined relation first."""
    name = context.query.compared
    for relation in reversed(_before(context) if name else []):
        for column in relation.columns:
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
