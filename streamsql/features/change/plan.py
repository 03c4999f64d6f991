"""The statements about staged changes, to their plans; most are about entries that exist."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.definitions import (
    Aside,
    OfSpark,
    Query,
    Stream,
    before_name,
    in_use_name,
    is_before,
    is_staged,
    kind_of,
    promoted_name,
    staged_name,
    text_of,
)
from streamsql.errors import NameFault, Span
from streamsql.features.change.affected import (
    affected_tables,
    in_spark_over,
    staged_definitions_of,
    staged_inserts,
    stands_alone,
)
from streamsql.features.change.statement import (
    Compare,
    DropStaged,
    Promote,
    Rollback,
)
from streamsql.language.spark_definitions import definition_named
from streamsql.language.statements.base import Name, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import Direct, Drop
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.refreshes import check_unread
from streamsql.plan.streaming.readers import names_in, names_in_definition


def staged_change(name: Name, context: Context) -> Query:
    """The query of the staged change of a live table, or of a query into a sink. Raises NameFault without
    one.
    """
    changed = changed_entry(name, context.catalog)
    query = context.catalog.staged(changed)
    if query is None:
        of = context.catalog.queries.get(changed.casefold())
        hint = f"CREATE OR REPLACE LIVE TABLE {quote_name(changed)} STAGED AS SELECT …"
        if of is not None and not of.live_table:
            into = ", ".join(map(quote_name, of.sinks))
            hint = f"INSERT INTO {into} STAGED AS QUERY {quote_name(changed)} SELECT …"
        raise not_staged(name, hint)
    return query


def changed_entry(name: Name, catalog: Catalog) -> str:
    """The name of the live table, or of the query into a sink, that a statement means. Raises NameFault."""
    query, change = catalog.queries.get(name.value.casefold()), catalog.staged(name.value)
    if change and catalog.is_new(name.value):
        return promoted_name(change.name)
    return query.name if query and not query.live_table else catalog.live_table(name).name


def not_staged(name: Name, hint: str) -> NameFault:
    return NameFault(f"nothing is staged for {name}", hint=hint, span=name.span, code="NOT_STAGED")


# ---- promoted, rolled back, dropped -------------------------------------------------------


def to_promote(names: Iterable[Name], context: Context) -> tuple[dict[str, Span], dict[str, Span]]:
    """(the definitions, the live tables) that are promoted by these names, with the places of these: of a
    stream, view or function the staged changes of all that read it, too. Raises NameFault for a name without
    a staged change, and where another staged change belongs to these.
    """
    catalog, definitions, tables = context.catalog, dict[str, Span](), dict[str, Span]()
    for name in names:
        aside = staged_definition(name, catalog)
        if aside is not None:
            definitions[in_use_name(aside.name)] = name.span
        else:
            tables[promoted_name(staged_change(name, context).name)] = name.span
    span = next(iter(definitions.values()), Span(0, 0))
    for view in in_spark_over(definitions, catalog.with_changes()) if definitions else ():
        if catalog.staged_definition(view.name) is None:
            raise NameFault(
                f"the {kind_of(view)} {view.name} reads {', '.join(definitions)}, and was created after that"
                " was staged",
                hint=f"CREATE OR REPLACE … STAGED again, which stages {quote_name(view.name)}, too",
                span=span,
                code="IN_USE",
            )
        definitions.setdefault(view.name, span)
    for query in affected_tables(definitions, catalog) if definitions else ():
        if catalog.staged(query.name):
            tables.setdefault(query.name, span)
    for query in inserts_over(definitions, catalog):
        tables.setdefault(promoted_name(query.name), span)
    named = {name: _names_in(catalog.aside[staged_name(name).casefold()]) for name in definitions}
    named |= {name: names_in(catalog.queries[staged_name(name).casefold()].text) for name in tables}
    missing = {d: name for name, read in named.items() for d in staged_definitions_of(read, catalog)}
    for definition, reader in missing.items():
        if definition not in definitions:
            together = ", ".join(map(quote_name, dict.fromkeys((*definitions, *missing, *tables))))
            raise NameFault(
                f"the staged change of {reader} reads {definition} as it is staged",
                hint=f"PROMOTE {together}; puts them in use together",
                span={**tables, **definitions}[reader],
                code="IN_USE",
            )
    return definitions, tables


def staged_definition(name: Name, catalog: Catalog) -> Aside | None:
    """The staged definition of a stream, view or function; None for other entries. Raises NameFault for one
    without.
    """
    aside = catalog.staged_definition(name.value)
    kinds = [kind for kind in ("stream", "view", "function") if catalog.definition_in_use(kind, name.value)]
    is_other = {name.value.casefold()} & (catalog.queries.keys() | catalog.sinks.keys())
    if aside is None and kinds and not is_other:
        hint = f"CREATE OR REPLACE {kinds[0].upper()} {quote_name(name.value)} STAGED …"
        raise not_staged(name, hint)
    return aside


def definition_of_name(name: str, catalog: Catalog) -> Aside | None:
    """The stream, view or function in use that ROLLBACK means by a name; None for a live table or query."""
    kinds = ("stream", "view", "function")
    kept = catalog.aside.get(before_name(name).casefold())
    if kept is not None:
        return catalog.definition_in_use(kind_of(kept), name)
    if name.casefold() in catalog.queries.keys() | catalog.sinks.keys():
        return None
    return next((d for kind in kinds if (d := catalog.definition_in_use(kind, name))), None)


def _names_in(entry: Aside) -> frozenset[str]:
    """What a definition names."""
    if isinstance(entry, OfSpark):
        return names_in_definition(entry)
    return names_in(entry.query) if isinstance(entry, Stream) and entry.query else frozenset()


def inserts_over(definitions: Iterable[str], catalog: Catalog) -> list[Query]:
    """The staged changes of queries into sinks that read definitions as these are staged."""
    names, found = {name.casefold() for name in definitions}, list[Query]()
    for query in staged_inserts(catalog):
        read = staged_definitions_of(names_in(query.text), catalog)
        found += [query] if names & {name.casefold() for name in read} else []
    return found


def _compare(statement: Compare, context: Context) -> Plan:
    query = staged_change(statement.name, context)
    if (fault := context.catalog.only_staged(statement.name)) is not None:
        raise fault  # there is nothing to compare it with
    if statement.query != bool(query.into):
        name = quote_name(promoted_name(query.name))
        raise NameFault(
            f"{name} is a {'query into a sink' if query.into else 'live table'}",
            hint=f"COMPARE {'QUERY' if query.into else 'LIVE TABLE'} {name};",
            span=statement.name.span,
            code="WRONG_KIND",
        )
    return Direct(statement)


def promote(statement: Promote, context: Context) -> Plan:
    """Raises NameFault for a change that others read, which are not promoted with it: its name goes."""
    _, tables = to_promote(statement.names, context)
    changes = {staged_name(table): Name(table, span) for table, span in tables.items()}
    for query, name in changes.items():
        others = [q.name for q in context.catalog.readers_of(query) if q.name not in changes]
        staged = [promoted_name(other) for other in others if is_staged(other)]
        if staged and len(staged) == len(others):
            together = ", ".join(map(quote_name, dict.fromkeys((*map(promoted_name, changes), *staged))))
            raise NameFault(
                f"the staged change of {name} is read by that of {', '.join(staged)}",
                hint=f"PROMOTE {together}; puts them in use together",
                span=name.span,
                code="IN_USE",
            )
        if others:
            check_unread(name, query, context.catalog)
    return Direct(statement)


def _rollback(statement: Rollback, context: Context) -> Plan:
    for name in statement.names:
        if definition_of_name(name.value, context.catalog) is None:
            changed_entry(name, context.catalog)
    return Direct(statement)


def _drop(statement: DropStaged, context: Context) -> Plan:
    entries = tuple(entries_to_drop(statement.names, context))
    names = dict.fromkeys(promoted_name(name) for kind, name in entries if kind in ("aside", "queries"))
    return Drop("staged change of", ", ".join(name for name in names if "$" not in name), entries)


def entries_to_drop(names: Iterable[Name], context: Context) -> list[tuple[str, str]]:
    """What DROP STAGED removes: of a stream, view or function also the staged changes that are there only
    because of it. Raises NameFault where another staged change would read what is removed.
    """
    catalog, names = context.catalog, tuple(names)
    definitions = {n.value.casefold(): n for n in names if staged_definition(n, catalog)}
    for name in tuple(definitions.values()):
        for view in in_spark_over([name.value], catalog.with_changes()):
            aside = catalog.staged_definition(view.name)
            if aside is None or view.name.casefold() in definitions:
                continue
            others = _left(_names_in(aside), definitions, catalog)
            own = catalog.definition_in_use(kind_of(view), view.name)
            text = definition_named(text_of(own), aside.name, temporary=True) if own else ""
            if others or text != text_of(aside):
                raise _reads_staged(view.name, name, (*_values(names), *others, view.name))
            definitions[view.name.casefold()] = replace(name, value=view.name)
    named = [n for n in names if n.value.casefold() not in definitions]
    changes = {staged_change(name, context).name: name for name in named}
    changes |= {c.name: n for n in named for c in catalog.changes_of(changed_entry(n, catalog))}
    for staged, name in changes.items():
        if is_before(staged):
            continue
        read = staged_definitions_of(names_in(catalog.queries[staged.casefold()].text), catalog)
        left = [definition for definition in read if definition.casefold() not in definitions]
        if left:
            fact = f"{name} reads {', '.join(left)}, which is staged, too"
            raise _drop_together(fact, (*left, *_values(names)), name)
    for query in inserts_over(_values(definitions.values()), catalog):
        if query.name not in changes:
            definition, insert = next(iter(definitions.values())), promoted_name(query.name)
            raise _reads_staged(insert, definition, (*_values(names), insert))
    for name in definitions.values():
        for query in affected_tables([name.value], catalog):
            change = catalog.staged(query.name)
            if change is None or change.name in changes:
                continue
            others = _left(names_in(change.text), definitions, catalog)
            if stands_alone(query.name, catalog) or others:
                raise _reads_staged(query.name, name, (*_values(names), *others, query.name))
            changes[change.name] = name
    for staged, name in changes.items():
        if any(reader.name not in changes for reader in catalog.readers_of(staged)):
            check_unread(name, staged, catalog)
    ordered = [q for q in catalog.with_readers(catalog.named(None)) if q.name in changes]
    entries = [entry for query in ordered for entry in entries_of(query, catalog)]
    asides = [("aside", staged_name(name.value)) for name in definitions.values()]
    return [*entries, *reversed(asides)]


def _values(names: Iterable[Name]) -> list[str]:
    return [name.value for name in names]


def _left(named: frozenset[str], dropped: Container[str], catalog: Catalog) -> list[str]:
    """The staged definitions that a staged change reads, and that are not dropped with it."""
    return [d for d in staged_definitions_of(named, catalog) if d.casefold() not in dropped]


def _reads_staged(reader: str, name: Name, together: Iterable[str]) -> NameFault:
    return _drop_together(f"the staged change of {reader} reads {name} as it is staged", together, name)


def _drop_together(fact: str, together: Iterable[str], name: Name) -> NameFault:
    return NameFault(
        fact,
        detail="what reads a definition is staged with it",
        hint=f"DROP STAGED {', '.join(map(quote_name, dict.fromkeys(together)))}; removes them together",
        span=name.span,
        code="IN_USE",
    )


PLANNERS: dict[type[Statement], object] = {
    Compare: _compare,
    Promote: promote,
    Rollback: _rollback,
    DropStaged: _drop,
}
