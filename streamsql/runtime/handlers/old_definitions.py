"""The running queries that a change does not reach: a query goes on with what it was started with."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.definitions import Query
from streamsql.errors import Note
from streamsql.language.spark_definitions import Definition, in_default, renamed_to, target_of
from streamsql.language.spark_writes import tables_written
from streamsql.language.tokens import quote_name
from streamsql.plan.basic_plans import Drop
from streamsql.plan.lowering.shape import STATEFUL
from streamsql.plan.streaming.readers import queries_over
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.start import start_again

_OF_CHECKPOINT = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.aggregation.stateformatversion",
    "spark.sql.streaming.flatmapgroupswithstate.stateformatversion",
    "spark.sql.streaming.join.stateformatversion",
    "spark.sql.streaming.multiplewatermarkpolicy",
    "spark.sql.streaming.statestore.compression.codec",
    "spark.sql.streaming.statestore.providerclass",
    "spark.sql.streaming.statestore.rocksdb.formatversion",
)
"""Settings that Spark keeps in a checkpoint (OffsetSeqMetadata), in lower case: only a new one has others."""
_SHOWN = 5


def users_of(parts: SessionParts, defines: Definition) -> list[str]:
    """The running queries that use the stream, view or function that a statement replaces or drops, or the
    table that it drops.
    """
    name = defines.creates or defines.drops
    if defines.kind == "table":
        return _running(parts, _readers_of_table(parts, name)) if defines.drops else []
    in_use = parts.catalog.definition_in_use(defines.kind, name)
    return _running(parts, (query.name for query in queries_over(name, parts.catalog))) if in_use else []


def without_definition(parts: SessionParts, defines: Definition, users: list[str]) -> tuple[Note, ...]:
    """Notes about running queries that use a view or function in SQL which was replaced or dropped. Live
    tables over live tables take the new one at once.
    """
    name, queries = defines.creates or defines.drops, parts.catalog.queries
    if defines.drops and users:
        return _without(users, name)
    following = [u for u in users if queries[u.casefold()].inputs and not parts.catalog.stages_of(u)]
    for user in following:  # it may read other live tables now
        parts.queries.stop(parts.queries.all[user.casefold()], parts.cancel)
        start_again(parts, user)
    return go_on([user for user in users if user not in following], f"the {defines.kind} {name}")


def _without(users: list[str], name: str, verb: str = "use") -> tuple[Note, ...]:
    """A note about running queries that use what is gone."""
    use = f"{', '.join(users)} still {verb}{'s' if len(users) == 1 else ''} {name}"
    return (Note("OLD_DEFINITION", f"{use}, and cannot be started again without it"),) if users else ()


def after_statement(parts: SessionParts, text: str) -> tuple[Note, ...]:
    """Let the queries that read the tables and the view which a statement of Spark has changed follow it.
    Returns notes about those that cannot. CREATE and DROP of a view are `without_definition`.
    """
    target = target_of(text)
    if target is not None and target.verb.startswith("ALTER") and renamed_to(text):
        return _without(_running(parts, _readers_of_table(parts, target.name)), target.name)
    if target is not None and target.verb == "ALTER VIEW":
        view = Definition(target.name, kind="view")
        return without_definition(parts, view, users_of(parts, view))
    written = tables_written(text).items()
    return tuple(n for name, replaced in written for n in with_table(parts, name, replaced=replaced))


def still_called(parts: SessionParts, plan: Drop) -> tuple[Note, ...]:
    """Notes about the running queries that call a function written in Python which is dropped."""
    names = [name for field, name in plan.entries if field == "functions"]
    users = ((name, users_of(parts, Definition(drops=name, kind="function"))) for name in names)
    return tuple(note for name, callers in users for note in _without(callers, name, "call"))


def with_setting(parts: SessionParts, key: str) -> tuple[Note, ...]:
    """A note about the running queries that keep a setting of Spark as it was when they started, also in
    their stages. What is computed from live tables is computed again with it, unless it is a client's own.
    """
    if not key.casefold().startswith("spark.sql."):
        return ()
    catalog = parts.catalog
    from_tables = {q.name for q in catalog.queries.values() if q.inputs and not catalog.stages_of(q.name)}
    names = _running(parts, (query.name for query in catalog.queries.values()))
    if parts.has_own_settings:
        from_tables = set()
    keeping = [name for name in names if name not in from_tables]
    if key.casefold() in _OF_CHECKPOINT:
        stateful = [name for name in keeping if _keeps_state(parts, name)]
        return go_on(stateful, key, " FROM BEGINNING")
    _compute_again(parts, [name for name in names if name in from_tables])
    return go_on(keeping, key)


def with_table(parts: SessionParts, name: str, *, replaced: bool) -> tuple[Note, ...]:
    """Compute again what reads live tables and a table of Spark that a statement has changed. Returns a note
    about the other running queries that read it. replaced: whether its rows of before are gone: a streaming
    query goes on with the files that it has found at its start, and new ones.
    """
    readers = _readers_of_table(parts, name)
    names = _running(parts, readers)
    _compute_again(parts, [name for name in names if readers[name].inputs])
    keeping = [name for name in names if not readers[name].inputs]
    return go_on(keeping, f"the table {in_default(name)}") if replaced else ()


def _readers_of_table(parts: SessionParts, name: str) -> dict[str, Query]:
    """The queries that read a table of Spark, by their names."""
    alone = in_default(name)
    return {q.name: q for n in (alone, f"default.{alone}") for q in queries_over(n, parts.catalog)}


def _compute_again(parts: SessionParts, names: Iterable[str]) -> None:
    for name in names:
        running = parts.queries.all[name.casefold()]
        if running.is_refresh:
            parts.queries.refreshes.refresh_again(running.handle)


def _keeps_state(parts: SessionParts, name: str) -> bool:
    running = parts.queries.all[name.casefold()]
    return any(op.kind in STATEFUL for plan in (running.plan, *running.stages) for op in plan.shape.ops)


def go_on(names: list[str], what: str, began: str = "") -> tuple[Note, ...]:
    """A note that running queries go on with what a statement has changed as it was before, and what starts
    them with the new one; none without such queries. began: the clause that START QUERY needs.
    """
    if not names:
        return ()
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    first = quote_name(names[0])
    others = " (and so for the others)" if len(names) > 1 else ""
    text = (
        f"{listed} still run{'s' if len(names) == 1 else ''} with {what} as it was before: "
        f"STOP QUERY {first}; START QUERY {first}{began}; starts with the new one{others}"
    )
    return (Note("OLD_DEFINITION", text),)


def _running(parts: SessionParts, names: Iterable[str]) -> list[str]:
    """The names of the queries in `names` that run now; stages of other queries are left out."""
    queries = parts.catalog.queries
    found = []
    for name in dict.fromkeys(names):
        running, query = parts.queries.all.get(name.casefold()), queries.get(name.casefold())
        if running is not None and query is not None and not query.owner and running.status() in GOING_ON:
            found.append(query.name)
    return found
