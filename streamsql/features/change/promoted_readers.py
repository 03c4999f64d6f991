"""What reads a definition that is promoted or rolled back, and is not staged with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.definitions import Query, Stream, before_name, is_staged, kind_of, promoted_name
from streamsql.errors import Cancelled, RuleFault, Span
from streamsql.features.change.affected import in_spark_over
from streamsql.features.change.plan import changed_entry, definition_of_name
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.planner import start_plan
from streamsql.plan.plans import Refresh, Run
from streamsql.plan.streaming.readers import names_in, relations_over
from streamsql.runtime.checkpoints.query_marker import Folder, recorded_facts
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import check_goes_on
from streamsql.runtime.workspace.generations import CURRENT, Generations


def going_on(
    parts: SessionParts, definitions: Mapping[str, Span], swapped: Collection[str], after: Catalog, word: str
) -> list[str]:
    """The running queries that read definitions and go on from their checkpoints once these are others.
    definitions: with the places of their names; swapped: the queries that are replaced with them; after: the
    catalog with the other ones, from `with_asides`; word: of the statement. Raises RuleFault for a query that
    cannot go on.
    """
    if not definitions:
        return []
    over = relations_over(definitions, parts.catalog) | relations_over(definitions, after)
    in_spark = [name for name in definitions if parts.catalog.definition_in_use("stream", name) is None]
    state_over = relations_over(in_spark, parts.catalog) | relations_over(in_spark, after)
    found, later = list[str](), replace(parts, current=CurrentCatalog(after))
    for query in parts.catalog.named(None):
        running, named = parts.queries.all.get(query.name.casefold()), names_in(query.text)
        if query.name in swapped or running is None or running.status() not in GOING_ON:
            continue
        if not named & over:
            continue
        try:
            if named & state_over:
                _check_keeps_no_state(parts, running.plan)
            with parts.cancel.holding(parts.queries.starting):
                check_goes_on(later, start_plan(query, later.context()))
        except Cancelled:
            raise
        except Exception as error:
            raise _cannot_go_on(query, error, definitions, word) from error
        found.append(query.name)
    return found


def with_asides(after: Catalog, catalog: Catalog, definitions: Mapping[str, str]) -> Catalog:
    """The catalog with other definitions in use, as long as Spark has those before: views and functions are
    read under the names that they have in the catalog of now.
    """
    asides = {aside.casefold(): catalog.aside[aside.casefold()] for aside in definitions.values()}
    in_spark = [name for name, entry in asides.items() if not isinstance(entry, Stream)]
    return replace(after, aside={**after.aside, **asides}).reading(in_spark)


def _check_keeps_no_state(parts: SessionParts, plan: Run) -> None:
    """Raise RuleFault for a query with state, which would be that of the view or function before."""
    if isinstance(plan, Refresh):
        for stage in plan.stages:
            _check_keeps_no_state(parts, stage)
    elif recorded_facts(Folder(parts.spark, plan.checkpoint), plan).get("state") != []:
        raise RuleFault("it keeps state, which it has computed with the definition before", code="IN_USE")


def _cannot_go_on(query: Query, error: Exception, definitions: Mapping[str, Span], word: str) -> RuleFault:
    fault, name = translate(error), quote_name(query.name)
    hint = f"STOP QUERY {name}; {word} {', '.join(map(quote_name, definitions))}; "
    hint += f"then START QUERY {name} FROM BEGINNING; or ACCEPT CHANGES"
    if is_staged(query.name):
        hint = f"DROP STAGED {quote_name(promoted_name(query.name))};"
    elif query.live_table:
        hint += (
            f"\nor CREATE OR REPLACE LIVE TABLE {name} STAGED AS …; with its SELECT, which is promoted, too"
        )
    return RuleFault(
        f"{query.name} reads {', '.join(definitions)}, and cannot go on from its checkpoint with the change",
        detail="\n".join(filter(None, (fault.message, fault.detail))),
        hint=hint,
        span=next(iter(definitions.values())),
        code="IN_USE",
    )


def to_roll_back(
    parts: SessionParts, names: Iterable[Name], generation: int | None
) -> tuple[dict[str, Span], dict[str, Span]]:
    """(the definitions, the live tables) that are rolled back by these names, with the places of these: a
    stream, view or function with all that was promoted with it. Raises RuleFault where one has no earlier
    definition, and where a live table cannot go back without one.
    """
    catalog = parts.catalog
    definitions, tables = dict[str, Span](), dict[str, Span]()
    for name in names:
        entry = definition_of_name(name.value, catalog)
        if entry is None:
            tables[changed_entry(name, catalog)] = name.span
        elif before_name(entry.name).casefold() not in catalog.aside:
            kind = kind_of(entry)
            raise RuleFault(
                f"no earlier definition of {entry.name} is kept",
                detail=f"the one is kept that PROMOTE has replaced, until the {kind} is changed otherwise",
                hint=f"SHOW CREATE {'TABLE' if kind == 'view' else kind.upper()} {quote_name(entry.name)};",
                span=name.span,
                code="NO_GENERATION",
            )
        else:
            definitions[entry.name] = name.span
    span = next(iter(definitions.values()), Span(0, 0))
    for view in in_spark_over(definitions, catalog) if definitions else ():
        if before_name(view.name).casefold() in catalog.aside:
            definitions.setdefault(view.name, span)
    if parts.store is None:
        return definitions, tables
    for query in catalog.named(None):
        if not query.live_table or is_staged(query.name):
            continue
        lefts = Generations(parts.places.query(query.name), CURRENT).left()
        if query.name not in tables and lefts and definitions.keys() & set(lefts[0].streams):
            tables[query.name] = span
        if query.name not in tables:
            continue
        number = None if generation is None else str(generation)
        at = next((n for n, left in enumerate(lefts) if left.folder.name == number), 0)
        with_it = {name for left in lefts[: at + 1] for name in left.streams}
        if with_it - definitions.keys() or (with_it and at):
            raise RuleFault(
                f"{query.name} was promoted together with {', '.join(sorted(with_it))}",
                detail="its rows before are those of the definition before",
                hint=f"ROLLBACK {', '.join(map(quote_name, sorted(with_it | definitions.keys())))};",
                span=tables[query.name],
                code="IN_USE",
            )
    return definitions, tables
