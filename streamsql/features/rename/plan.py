"""ALTER … RENAME TO, to its plan: the catalog as it is afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connector
from streamsql.definitions import Query, is_staged, promoted_name
from streamsql.errors import NameFault, RuleFault, StreamsqlError
from streamsql.features.rename.statement import (
    Rename,
    RenameLiveTable,
    RenameQuery,
    RenameSink,
    RenameStream,
)
from streamsql.language.redaction import redact
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.renaming import Renaming, renaming
from streamsql.plan.statements.existing import start_plan
from streamsql.plan.streaming.readers import queries_over


@dataclass(frozen=True)
class Renamed(Plan):
    """kind: what is renamed, as a person calls it; queries: those that name it, each after those that read
    what it computes.
    """

    kind: str
    old: str
    new: str
    renaming: Renaming
    queries: tuple[str, ...]

    def applied(self, catalog: Catalog) -> Catalog:
        return self.renaming.applied(catalog)


def _rename(statement: Rename, context: Context) -> Plan:
    """Raises NameFault for a name that is unknown, hidden or taken, RuleFault where what reads the entry
    cannot follow.
    """
    catalog, kind = context.catalog, getattr(type(statement), "refers", "")
    entry = getattr(catalog, kind)(statement.name)
    if kind == "sink" and entry.is_live:
        kind = "live_table"
    if kind == "query" and entry.live_table:
        kind = "live_table"
    _check_shown(statement, entry.name)
    _check_free(statement, kind, catalog)
    if kind == "stream" and catalog.staged_definition(entry.name):
        raise _is_staged(entry.name, statement)
    if kind == "stream" and entry.connector and connector(Name(entry.connector)).received:
        raise RuleFault(
            f"{entry.name} receives its rows under its name, which those that send them use",
            hint=f"CREATE STREAM {quote_name(statement.new_name.value)} … beside it",
            span=statement.name.span,
            code="RENAME_NOT_SUPPORTED",
        )
    names = renaming(kind, entry.name, statement.new_name.value, catalog)
    try:
        after = names.applied(catalog)
    except RuleFault as fault:
        fault.span = statement.name.span
        raise
    concerned = [q for q in catalog.queries.values() if names.query(q) != q]
    concerned += queries_over(entry.name, catalog) if kind == "stream" else []
    owners = {(catalog.queries[q.owner.casefold()] if q.owner else q).name for q in concerned}
    ordered = [q for q in catalog.with_readers(catalog.named(None)) if q.name in owners]
    for query in ordered:
        if query.backfill:
            raise RuleFault(
                f"{query.name} keeps its history of {query.backfill.stream} under these names",
                hint="keep the names, or create the live table anew",
                span=statement.name.span,
                code="RENAME_NOT_SUPPORTED",
            )
        texts = _texts_of_stages(query, statement, names, after, context)
        names = replace(names, texts={**names.texts, **texts})
    queries = tuple(query.name for query in ordered)
    return Renamed(kind.replace("_", " "), entry.name, statement.new_name.value, names, queries)


def _check_shown(statement: Rename, name: str) -> None:
    """Raise NameFault for a name of a stage or of a staged change, before or after."""
    for written in (statement.name, statement.new_name):
        if "$" in written.value:
            table = promoted_name(written.value).partition("$")[0]
            raise NameFault(
                f"{written} is a name of the console's own: $ stands before a stage, or staged",
                hint=f"PROMOTE {quote_name(table)}; or DROP STAGED {quote_name(table)};"
                if is_staged(written.value)
                else "use a name without $",
                span=written.span,
                code="BAD_NAME",
            )


def _check_free(statement: Rename, kind: str, catalog: Catalog) -> None:
    """Raise NameFault for a new name that is in use."""
    new = statement.new_name
    if kind != "query":
        try:
            catalog.check_free(new)
        except NameFault as fault:
            fault.hint = "use another name"
            raise
    taken = ""
    if new.value.casefold() in catalog.queries and kind in ("query", "live_table"):
        taken = "query"
    elif new.value.casefold() in catalog.tables and kind in ("stream", "live_table"):
        taken = "table or view of Spark"
    if taken:
        raise NameFault(
            f"there is already a {taken} {new}",
            hint="use another name, or drop that first",
            span=new.span,
            code="ALREADY_EXISTS",
        )


def _is_staged(name: str, statement: Rename) -> RuleFault:
    return RuleFault(
        f"a change of {name} is staged",
        detail="it is compared and promoted under the names that hold now",
        hint=f"PROMOTE {quote_name(name)}; or DROP STAGED {quote_name(name)}; first",
        span=statement.name.span,
        code="IN_USE",
    )


def _texts_of_stages(
    query: Query, statement: Rename, names: Renaming, after: Catalog, context: Context
) -> dict[str, str]:
    """The texts of the stages of a query as they are planned afterwards, by those that they have now. Raises
    RuleFault for a query that has a staged change, or that could not be started afterwards.
    """
    if is_staged(query.name) or context.catalog.staged(query.name):
        raise _is_staged(promoted_name(query.name), statement)
    try:
        start_plan(query, context)
    except StreamsqlError:
        return {}  # it cannot be started now, either
    try:
        planned = start_plan(names.query(query), replace(context, catalog=after))
    except StreamsqlError as fault:
        raise RuleFault(
            f"{query.name} could not be started with the name {statement.new_name}",
            detail=fault.message,
            hint="use another name, or an alias in that query",
            span=statement.new_name.span,
            code="RENAME_NOT_SUPPORTED",
        ) from fault
    stages = context.catalog.stages_of(query.name)
    texts = {s.query.name.casefold(): s.query.text for s in getattr(planned, "stages", ())}
    pairs = ((stage.text, texts.get(names.query(stage).name.casefold(), "")) for stage in stages)
    return {f(old): f(new) for old, new in pairs if new for f in (str, redact)}


PLANNERS = dict.fromkeys((RenameLiveTable, RenameStream, RenameSink, RenameQuery), _rename)
