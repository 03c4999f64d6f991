"""Puts another generation of a live table in use, with its definition; a crash leaves one of them whole.

The generation that is to be in use has the definition in a file of its own. One rename of the link `current`
puts it in use. What follows can be done again: the generations of the stages, and the definition in the
catalog. A workspace that was not left properly does it when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.definitions import (
    PROMOTED,
    Aside,
    OfSpark,
    before_name,
    is_aside,
    is_staged,
    kind_of,
    promoted_name,
    staged_name,
    text_of,
)
from streamsql.errors import Source, StreamsqlError
from streamsql.features.change.affected import in_order
from streamsql.features.change.promote_query import remove_hidden_rows
from streamsql.features.change.staging import keep_in_spark
from streamsql.language.parser import parse
from streamsql.language.script import split_script
from streamsql.language.spark_definitions import definition_named, definition_of
from streamsql.language.tokens import quote_name
from streamsql.plan import planner, plans
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.staged_tables import renamed
from streamsql.runtime.checkpoints.batch_history import history_file
from streamsql.runtime.embedded.durable_files import remove_file, sync_folder, write_file
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_generations import query_now
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations, generations_of

_TO_DEFINE = "to_define.json"
"""The file of a generation with its definition, from before it is in use until the catalog has it."""


@dataclass(frozen=True)
class Next:
    """A generation that is to be in use. definition: the statement that creates the live table; stages: the
    generations of its stages, by their names; before: the generation in its place that a set of changes has
    recorded, "" for a staged change.
    """

    table: str
    generation: Path
    definition: str
    stages: Mapping[str, str]
    before: str = ""


def with_definitions(catalog: Catalog, definitions: Mapping[str, str]) -> Catalog:
    """The catalog with other definitions of streams, views and functions in use; those before are kept aside.
    definitions: the names of these definitions, by those of the entries.
    """
    for name, aside in definitions.items():
        new = catalog.aside.get(aside.casefold())
        if new is None:
            continue
        old = catalog.definition_in_use(kind_of(new), name)
        catalog = catalog.without("aside", aside).having(renamed_definition(new, name, old))
        if old is not None:
            catalog = catalog.having(renamed_definition(old, before_name(name), old))
    return catalog


def renamed_definition(entry: Aside, name: str, old: Aside | None) -> Aside:
    """A definition under another name. old: the one in use; a view or function of Spark that is not in use is
    a temporary one.
    """
    if not isinstance(entry, OfSpark):
        return replace(entry, name=name)
    temporary = is_aside(name) or not isinstance(old, OfSpark) or definition_of(old.text).temporary
    return replace(entry, name=name, text=definition_named(entry.text, name, temporary=temporary))


def define_in_spark(parts: SessionParts, definitions: Mapping[str, str]) -> None:
    """Give Spark the views and functions in SQL of which other definitions are in use now, with those that
    read them. definitions: as for `with_definitions`. One that Spark does not take is missing: the next
    statement that names it says why.
    """
    spark = parts.engine.wait(CancelToken()) if parts.engine.started else None
    for name, aside in definitions.items():
        if aside.casefold() not in parts.catalog.aside:
            parts.temporary.drop(aside, spark)
            parts.temporary.drop(f"{aside}()", spark)
            if spark is not None and parts.catalog.definition_in_use("function", name):
                spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(aside)}")
    in_use = [parts.catalog.definition_in_use(k, name) for name in definitions for k in ("view", "function")]
    before = [parts.catalog.aside.get(before_name(name).casefold()) for name in definitions]
    for entries in (in_use, before):
        for entry in in_order((e for e in entries if isinstance(e, OfSpark)), parts.catalog):
            keep_in_spark(parts, entry)


def in_sets(catalog: Catalog, tables: Mapping[str, tuple[str, str]], definitions: Iterable[str]) -> Catalog:
    """The catalog whose sets of changes record what is in use now. tables: by the names of the live tables,
    the generations that the sets have recorded for them, and those of now; definitions: those that changed.
    """
    numbers = {name.casefold(): numbers for name, numbers in tables.items()}
    numbers |= {name.casefold(): ("", PROMOTED) for name in definitions}
    for change in catalog.changes.values():
        for member in change.members:
            before, now = numbers.get(member.name.casefold(), ("", ""))
            if now and member.generation == before:
                change = change.with_member(replace(member, generation=now))
        catalog = catalog.having(change)
    return catalog


def numbers_of(nexts: Iterable[Next]) -> dict[str, tuple[str, str]]:
    """What `in_sets` takes of the generations that are put in use."""
    return {following.table: (following.before, following.generation.name) for following in nexts}


def put_in_use(
    parts: SessionParts, nexts: Sequence[Next], definitions: Mapping[str, str], gone: Sequence[str] = ()
) -> None:
    """Put generations of live tables in use, and definitions, as for `with_definitions`: all of them or none.
    gone: the live tables that are taken out of use; where nothing else changes, that is done once the catalog
    is saved. Raises OSError: those before are in use then, or these.
    """
    together = {following.table: following.generation.name for following in nexts}
    before = {following.table: following.before for following in nexts}
    kinds = {name: kind_of(parts.catalog.aside[aside.casefold()]) for name, aside in definitions.items()}
    now = {name: parts.catalog.definition_in_use(kind, name) for name, kind in kinds.items()}
    after = with_definitions(parts.catalog, definitions)
    then = {name: after.definition_in_use(kind, name) for name, kind in kinds.items()}
    texts = {name: (definitions[name], text_of(entry)) for name, entry in then.items() if entry}
    for following in nexts:
        record = {
            "definition": following.definition,
            "stages": dict(following.stages),
            "together": together,
            "before": before,
            "streams": texts,
            "gone": list(gone),
        }
        content = json.dumps(record).encode()
        write_file(following.generation / _TO_DEFINE, lambda file, content=content: file.write(content))
    replaced = [name for name, entry in now.items() if entry]
    for following in nexts:
        generation = query_now(parts.catalog, parts.places, following.table)
        left = Generations(parts.places.query(following.table), CURRENT)
        left.leave(generation.definition, generation.stages, replaced)
    for table in gone:
        generation = query_now(parts.catalog, parts.places, table)
        Generations(parts.places.query(table), CURRENT).leave(generation.definition, generation.stages)
    for following in nexts:  # with the first one all of them are in use: `complete` goes on
        Generations(parts.places.query(following.table), CURRENT).publish(following.generation)


def defined(
    parts: SessionParts, table: str, definition: str, *, in_stages: bool, before: Catalog | None = None
) -> Catalog:
    """The catalog with another definition of a live table. in_stages: whether it has stages; before: the
    catalog to begin with, by default that of now. Raises faults when that cannot be planned any more.
    """
    catalog = without(before or parts.catalog, table)
    statement = parse(split_script(Source("", definition))[0], literal=True)
    plan = planner.plan(statement, replace(parts.context(), catalog=catalog, stages=True))
    assert isinstance(plan, plans.Run)
    otherwise = plan.otherwise if in_stages else None
    return (otherwise or plan).applied(catalog)


def take_out(places: Places, table: str) -> None:
    """Take the generation of a live table out of use that the catalog does not have any more: it is one that
    was left. Raises OSError.
    """
    generations = Generations(places.query(table), CURRENT)
    if generations.current is not None:
        generations.unlink()


def without(catalog: Catalog, table: str) -> Catalog:
    """The catalog without a live table, its query, and their stages. A staged change stays."""
    query = catalog.queries.get(table.casefold())
    stay = {entry for change in catalog.changes_of(table) for entry in entries_of(change, catalog)}
    for kind, name in entries_of(query, catalog) if query else ():
        if (kind, name) not in stay:
            catalog = catalog.without(kind, name)
    return catalog


def promoted(catalog: Catalog, table: str) -> Catalog:
    """The catalog with the staged change of a live table in its place."""
    change = catalog.staged(table)
    assert change is not None
    queries = [change, *catalog.stages_of(change.name)]
    sinks = [catalog.sinks[query.name.casefold()] for query in queries]
    catalog = without(catalog, table)
    for kind, name in entries_of(change, catalog):
        catalog = catalog.without(kind, name)
    tables = (replace(s, name=promoted_name(s.name), owner=promoted_name(s.owner)) for s in sinks)
    return catalog.having(*map(renamed, queries), *tables)


def finish(places: Places, table: str, define: Callable[[str, Mapping[str, str]], None]) -> bool:
    """Do what follows once a generation of a live table is in use; again, if a crash came in between.
    define: puts its definition into the catalog, and is given that and the generations of its stages. Returns
    whether there was anything to do. Raises OSError, EngineFault.
    """
    record = _record(places, table)
    if record is None:
        return False
    for stage, number in record["stages"].items():
        generations = Generations(places.query(stage), CURRENT)
        if generations.current is None or generations.current.name != number:
            generations.leave("", {})
            generations.publish(generations.folder / number)
        _unlink_staged(places, stage)
    _unlink_staged(places, table)
    define(record["definition"], record["stages"])
    return True


def _record(places: Places, table: str) -> Any:
    """What `put_in_use` has recorded in the generation in use; None where the catalog has it."""
    generation = Generations(places.query(table), CURRENT).current
    try:
        return json.loads((generation / _TO_DEFINE).read_text("utf-8")) if generation else None
    except FileNotFoundError:
        return None


def saved(places: Places, table: str) -> None:
    """Forget the definition in the generation in use: the catalog has it."""
    generation = Generations(places.query(table), CURRENT).current
    if generation is not None:
        remove_file(generation / _TO_DEFINE)
        sync_folder(generation)  # it must not come back: the definition may change


def _unlink_staged(places: Places, query: str) -> None:
    """Remove the link of a staged generation that is in use now. The account of its micro-batches becomes a
    part of that of the query, beside those of its other checkpoints.
    """
    in_use = Generations(places.query(query), CURRENT).current
    staged = Generations(places.query(query), STAGED)
    if in_use is None or staged.current != in_use:
        return
    history = history_file(places, staged_name(query))
    if history.exists():
        with open(history_file(places, query), "ab") as whole:
            whole.write(history.read_bytes())
        remove_file(history)
    staged.unlink()


def complete(parts: SessionParts) -> list[str]:
    """Complete what a crash has interrupted in a workspace that was opened. Returns warnings about what
    cannot be completed.
    """
    created = parts.catalog.created_by_sets()
    in_use = [query.name for query in parts.catalog.named(None) if not is_staged(query.name)]
    tables = list(dict.fromkeys((*in_use, *created)))
    warnings, finished = list[str](), list[str]()

    def finish_one(table: str) -> None:
        if finish(parts.places, table, _completed(parts, table)):
            finished.append(table)

    for change in (c for table in tables for c in parts.catalog.changes_of(table)):
        for staged in (change, *parts.catalog.stages_of(change.name)):
            with suppress(OSError, StreamsqlError):  # the statement that staged them anew has not ended
                generations_of(parts.places, staged.name).bring_back()
    for step in (partial(_put_others_in_use, parts.places), partial(_define, parts), finish_one):
        for table in _in_order(parts.places, tables):
            try:
                step(table)
            except (OSError, ValueError, KeyError, StreamsqlError) as error:
                warnings.append(f"{table}: its definition may be that of another generation: {error}")
    if finished:
        parts.workspace.save()
    for table in finished:
        saved(parts.places, table)
        remove_hidden_rows(parts, table)
    for table in created if parts.store and not parts.store.unread else ():
        if table.casefold() not in parts.catalog.queries:
            with suppress(OSError, StreamsqlError):
                take_out(parts.places, table)
    for table in (table for table in tables if parts.catalog.staged(table) is None):
        for query in (table, *(stage.name for stage in parts.catalog.stages_of(table))):
            with suppress(OSError, StreamsqlError):
                Generations(parts.places.query(query), STAGED).remove()
    return list(dict.fromkeys(warnings))


def _in_order(places: Places, tables: Sequence[str]) -> list[str]:
    """Live tables, those that were to be in use together each after what it reads."""
    ordered = list[str]()
    for table in tables:
        with suppress(OSError, ValueError, KeyError, StreamsqlError):  # the steps say so
            record = _record(places, table)
            ordered += record["together"] if record else ()
    return list(dict.fromkeys((*ordered, *tables)))


def _put_others_in_use(places: Places, table: str) -> None:
    """Put the generations in use that were to be in use together with that of a live table."""
    record = _record(places, table)
    for other, number in record["together"].items() if record else ():
        generations = Generations(places.query(other), CURRENT)
        if generations.current is None or generations.current.name != number:
            generations.publish(generations.folder / number)


def _define(parts: SessionParts, table: str) -> None:
    """Define what was to be in use together with the generation of a live table, if the catalog has the
    definitions before; and record in the sets of changes what is in use.
    """
    record = _record(parts.places, table)
    if record is None or "streams" not in record:  # an earlier version has written it
        return
    numbers = {name: (record["before"][name], number) for name, number in record["together"].items()}
    parts.current.update(partial(in_sets, tables=numbers, definitions=record["streams"]))
    changed = dict[str, str]()
    for name, (aside, definition) in record["streams"].items():
        entry = parts.catalog.aside.get(aside.casefold())
        now = parts.catalog.definition_in_use(kind_of(entry), name) if entry else None
        if entry is not None and (now is None or text_of(now) != definition):
            changed[name] = aside
    parts.current.update(partial(with_definitions, definitions=changed))
    for gone in record.get("gone", ()):
        parts.current.update(partial(without, table=gone))
    define_in_spark(parts, changed)


def _completed(parts: SessionParts, table: str) -> Callable[[str, Mapping[str, str]], None]:
    """A function that puts the definition of a generation in use into the catalog, in place of the staged
    change that it was.
    """

    def define(definition: str, stages: Mapping[str, str]) -> None:
        catalog = parts.catalog
        if Generations(parts.places.query(table), STAGED).current is None:
            for change in catalog.changes_of(table):
                for kind, name in entries_of(change, catalog):
                    catalog = catalog.without(kind, name)
        catalog = defined(parts, table, definition, in_stages=bool(stages), before=catalog)
        parts.current.update(lambda old: catalog)

    return define


def staged_generations(parts: SessionParts, table: str) -> tuple[Path | None, dict[str, str]]:
    """(the generation of the staged change of a live table, those of its stages by their names after
    PROMOTE).
    """
    name = staged_name(table)
    stages = query_now(parts.catalog, parts.places, name).stages
    numbers = {promoted_name(stage): number for stage, number in stages.items()}
    return Generations(parts.places.query(table), STAGED).current, numbers
