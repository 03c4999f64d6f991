"""Puts other generations of live tables in use, with their definitions; a crash leaves all of them or none.

A record says first what is to be in use, and from then on it is. What follows can be done again: the links
`current`, the generations of the stages, the definitions in the catalog. Once the catalog is saved, the
record is removed. A workspace that was not left properly goes on from the record when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
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
from streamsql.plan import planner, plans
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.staged_tables import in_use, renamed
from streamsql.runtime.checkpoints.batch_history import history_file
from streamsql.runtime.embedded.durable_files import make_folder, remove_file, sync_folder, write_file
from streamsql.runtime.handlers.create_drop import forget_aside
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.new_generations import query_now
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.workspace.generations import CURRENT, STAGED, Generations, generations_of

_RECORD = "exchange.json"
_OF_EARLIER_VERSION = "to_define.json"
"""The record in a generation that an earlier version has put in use."""


@dataclass(frozen=True)
class Next:
    """A generation that is to be in use, by its number. stages: the generations of its stages, by their
    names; instead_of: the generation in its place now, "" for none; staged: whether it is that of a staged
    change; definition: in the record, the statement that creates it.
    """

    table: str
    generation: str
    stages: Mapping[str, str]
    instead_of: str
    staged: bool = False
    definition: str = ""


@dataclass(frozen=True)
class Exchange:
    """What is to be in use. nexts: the generations, each after those that it reads; after: gives the catalog
    with them; definitions: those that are put in use with them, as for `with_definitions`; gone: the live
    tables that are taken out of use; returns: whether they were in use before.
    """

    nexts: Sequence[Next]
    after: Callable[[Catalog], Catalog]
    definitions: Mapping[str, str]
    gone: Sequence[str] = ()
    returns: bool = False

    @property
    def tables(self) -> list[str]:
        return [following.table for following in self.nexts]


def staged_next(parts: SessionParts, table: str) -> Next:
    """The generation of the staged change of a live table."""
    generation = Generations(parts.places.query(table), STAGED).current
    assert generation is not None
    stages = query_now(parts.catalog, parts.places, staged_name(table)).stages
    numbers = {promoted_name(stage): number for stage, number in stages.items()}
    return Next(table, generation.name, numbers, number(parts.places, table), staged=True)


# ---- catalogs -----------------------------------------------------------------------------


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


def promoted(catalog: Catalog, name: str) -> Catalog:
    """The catalog with the staged change of a live table, or of a query into a sink, in its place."""
    change, old = catalog.staged(name), catalog.queries.get(name.casefold())
    assert change is not None
    query, stages = renamed(change), catalog.stages_of(change.name)
    if change.into:
        retain = change.retain if change.inputs else 0  # else it limits the hidden live table
        query = replace(query, sinks=change.into, into=(), live_table=False, retain=retain)
    filled = stages if change.into else [change, *stages]
    tables = [in_use(catalog.sinks[one.name.casefold()]) for one in filled]
    for kind, entry in (*(entries_of(old, catalog) if old else ()), *entries_of(change, catalog)):
        catalog = catalog.without(kind, entry)
    return catalog.having(query, *map(renamed, stages), *tables)


def defined(parts: SessionParts, definition: str, catalog: Catalog, *, in_stages: bool) -> Catalog:
    """The catalog with a definition of a live table or query. in_stages: whether it has stages. Raises faults
    when that cannot be planned any more.
    """
    statement = parse(split_script(Source("", definition))[0], literal=True)
    plan = planner.plan(statement, replace(parts.context(), catalog=catalog, stages=True))
    assert isinstance(plan, plans.Run)
    otherwise = plan.otherwise if in_stages else None
    return (otherwise or plan).applied(catalog)


def without(catalog: Catalog, table: str) -> Catalog:
    """The catalog without a live table, its query, and their stages. A staged change stays."""
    query = catalog.queries.get(table.casefold())
    stay = {entry for change in catalog.changes_of(table) for entry in entries_of(change, catalog)}
    for kind, name in entries_of(query, catalog) if query else ():
        if (kind, name) not in stay:
            catalog = catalog.without(kind, name)
    return catalog


def in_sets(catalog: Catalog, exchange: Exchange) -> Catalog:
    """The catalog whose sets of changes record what is in use now: of the staged changes, or of what was in
    use.
    """
    now = {n.table.casefold(): (n.instead_of * exchange.returns, n.generation) for n in exchange.nexts}
    now |= {name.casefold(): ("", PROMOTED) for name in exchange.definitions}
    for change in catalog.changes.values():
        for member in change.members:
            recorded, generation = now.get(member.name.casefold(), ("", ""))
            if generation and member.generation == recorded:
                change = change.with_member(replace(member, generation=generation))
        catalog = catalog.having(change)
    return catalog


# ---- the exchange -------------------------------------------------------------------------


def put_in_use(parts: SessionParts, exchange: Exchange) -> None:
    """Put generations in use, and take others out: all of it or nothing. Raises OSError: those before are in
    use then, or these.
    """
    catalog, places, gone = parts.catalog, parts.places, exchange.gone
    after, texts, replaced = exchange.after(catalog), dict[str, str](), list[str]()
    for name, aside in exchange.definitions.items():
        kind = kind_of(catalog.aside[aside.casefold()])
        replaced += [name] if catalog.definition_in_use(kind, name) else []
        entry = after.definition_in_use(kind, name)
        assert entry is not None
        texts[name] = text_of(entry)
    for table in (*exchange.tables, *gone):
        now = query_now(catalog, places, table)
        left = Generations(places.query(table), CURRENT)
        left.leave(now.definition, now.stages, replaced if table not in gone else ())
    nexts = [
        replace(following, definition=query_now(after, places, following.table).definition)
        for following in exchange.nexts
    ]
    record = {"nexts": list(map(asdict, nexts)), "texts": texts, "returns": exchange.returns}
    record |= {"definitions": dict(exchange.definitions), "gone": list(gone)}
    steps = [Step(partial(_write_record, places, record), partial(_forget_record, places))]
    for following in nexts:
        publish = partial(_publish, places, following.table)
        steps.append(Step(partial(publish, following.generation), partial(publish, following.instead_of)))
    run_steps(steps)


def number(places: Places, query: str) -> str:
    """The number of the generation in use; "" for none. Raises EngineFault."""
    generation = Generations(places.query(query), CURRENT).current
    return generation.name if generation else ""


def _publish(places: Places, query: str, generation: str) -> None:
    """Put a generation in use; none for "". Raises OSError, EngineFault."""
    generations = Generations(places.query(query), CURRENT)
    if not generation:
        generations.unlink()
    elif number(places, query) != generation:
        generations.publish(generations.folder / generation)


def take_over(parts: SessionParts, exchange: Exchange) -> None:
    """Put the catalog of an exchange in use, what Spark has of it, and the generations of the stages. A view
    or function that Spark does not take is missing: the next statement that names it says why.
    """

    def after(catalog: Catalog) -> Catalog:
        return in_sets(exchange.after(catalog), exchange)

    for name in parts.catalog.aside.keys() - after(parts.catalog).aside.keys():
        forget_aside(parts, name)
    parts.current.update(after)
    names, catalog = exchange.definitions, parts.catalog
    in_use = [catalog.definition_in_use(kind, name) for name in names for kind in ("view", "function")]
    before = [catalog.aside.get(before_name(name).casefold()) for name in names]
    for entries in (in_use, before):
        for entry in in_order((e for e in entries if isinstance(e, OfSpark)), catalog):
            keep_in_spark(parts, entry)
    for following in exchange.nexts:
        _with_stages(parts.places, following)


def _with_stages(places: Places, following: Next) -> None:
    """Put the generations of the stages in use. Nothing is staged any more. Raises OSError, EngineFault."""
    for stage, generation in following.stages.items():
        if number(places, stage) != generation:
            Generations(places.query(stage), CURRENT).leave("", {})
            _publish(places, stage, generation)
        _unlink_staged(places, stage)
    _unlink_staged(places, following.table)


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


def settle(parts: SessionParts, exchange: Exchange) -> None:
    """Once the catalog is saved: remove the rows of hidden live tables, take the generations of live tables
    out of use that are gone, and forget the record.
    """
    for following in exchange.nexts:
        if following.staged:
            remove_hidden_rows(parts, following.table)
    for table in exchange.gone:
        with suppress(OSError):
            _publish(parts.places, table, "")
    _forget_record(parts.places)


# ---- the record ---------------------------------------------------------------------------


def _record(places: Places) -> Path:
    return Path(places.folder, _RECORD)


def _write_record(places: Places, record: Mapping[str, Any]) -> None:
    make_folder(places.folder)
    write_file(_record(places), lambda file: file.write(json.dumps(record).encode()))


def _forget_record(places: Places) -> None:
    """Remove the record. It must not come back: what it says may change."""
    if _record(places).exists():
        remove_file(_record(places))
        sync_folder(places.folder)


def complete(parts: SessionParts) -> list[str]:
    """Complete what a crash has interrupted in a workspace that was opened. Returns warnings about what
    cannot be completed.
    """
    queries = [query.name for query in parts.catalog.named(None) if not is_staged(query.name)]
    tables = list(dict.fromkeys((*queries, *parts.catalog.created_by_sets())))
    for change in (c for table in tables for c in parts.catalog.changes_of(table)):
        for staged in (change, *parts.catalog.stages_of(change.name)):
            with suppress(OSError, StreamsqlError):  # the statement that staged them anew has not ended
                generations_of(parts.places, staged.name).bring_back()
    warnings = list[str]()
    try:
        warnings += _go_on(parts, json.loads(_record(parts.places).read_text("utf-8")))
    except FileNotFoundError:
        pass  # nothing was interrupted
    except (OSError, ValueError, KeyError, TypeError, StreamsqlError) as error:
        what = "so that PROMOTE or ROLLBACK is not completed"
        warnings.append(f"{_record(parts.places)} cannot be read, {what}: {error}")
    for table in tables:
        with _warning(table, warnings):
            generation = Generations(parts.places.query(table), CURRENT).current
            if generation is not None and (generation / _OF_EARLIER_VERSION).exists():
                why = "an earlier version of streamsql did not complete PROMOTE or ROLLBACK"
                warnings.append(_uncertain(table, why))
    for table in (table for table in tables if parts.catalog.staged(table) is None):
        for query in (table, *(stage.name for stage in parts.catalog.stages_of(table))):
            with suppress(OSError, StreamsqlError):
                Generations(parts.places.query(query), STAGED).remove()
    return list(dict.fromkeys(warnings))


def _uncertain(table: str, why: object) -> str:
    return f"{table}: its definition may be that of another generation: {why}"


@contextmanager
def _warning(table: str, warnings: list[str]) -> Iterator[None]:
    """Take the error of a live table that cannot be completed as a warning."""
    try:
        yield
    except (OSError, ValueError, KeyError, StreamsqlError) as error:
        warnings.append(_uncertain(table, error))


def _go_on(parts: SessionParts, record: Mapping[str, Any]) -> list[str]:
    """Go on from a record. What cannot be completed stays in it. Returns warnings about that."""
    nexts, definitions = [Next(**following) for following in record["nexts"]], dict[str, str]()
    for name, aside in record["definitions"].items():
        entry = parts.catalog.aside.get(aside.casefold())
        now = parts.catalog.definition_in_use(kind_of(entry), name) if entry else None
        if entry is not None and (now is None or text_of(now) != record["texts"][name]):
            definitions[name] = aside  # else the catalog has it
    catalog = reduce(without, record["gone"], with_definitions(parts.catalog, definitions))
    done, warnings = list[Next](), list[str]()
    for following in nexts:
        with _warning(following.table, warnings):
            catalog = _completed(parts, following, catalog)
            done.append(following)
    exchange = Exchange(done, lambda old: catalog, definitions, record["gone"], record["returns"])
    take_over(parts, exchange)
    parts.workspace.save()
    settle(parts, exchange)
    if left := [asdict(following) for following in nexts if following not in done]:
        _write_record(parts.places, {**record, "nexts": left, "definitions": {}, "gone": []})
    return warnings


def _completed(parts: SessionParts, following: Next, catalog: Catalog) -> Catalog:
    """Put a generation of a record in use, unless another one has taken its place since. Returns the catalog
    with its definition.
    """
    table, places = following.table, parts.places
    if number(places, table) == following.instead_of:
        _publish(places, table, following.generation)
    if number(places, table) != following.generation:
        return catalog
    _with_stages(places, following)
    if Generations(places.query(table), STAGED).current is None:
        for kind, name in (e for change in catalog.changes_of(table) for e in entries_of(change, catalog)):
            catalog = catalog.without(kind, name)
    return defined(parts, following.definition, without(catalog, table), in_stages=bool(following.stages))
