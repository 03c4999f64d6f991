"""The statements that change a workspace so that it has what a folder defines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamsql.features.project.comparison import (
    CHANGED,
    DROPPED,
    RENAMED,
    Change,
    Project,
    is_altered,
    written,
)
from streamsql.features.project.plan_command import shown_kind
from streamsql.features.project.project_folder import Key, Part, is_endless, needed, replacing
from streamsql.features.project.set_of_changes import SET
from streamsql.features.project.sink_differences import staged_insert
from streamsql.language.script import Written
from streamsql.language.spark_definitions import definition_of
from streamsql.language.tokens import quote_name
from streamsql.runtime.workspace.store import CatalogEntry


@dataclass(frozen=True)
class Step:
    """Statements that are executed one after the other. queries: those that they drop or stop.

    drops: how many of the statements, the first ones, drop a query, which UNDROP brings back if one that
    follows fails; brings_back: whether UNDROP does that in any case.
    """

    do: tuple[Written, ...]
    queries: tuple[str, ...] = ()
    drops: int = 0
    brings_back: bool = False


@dataclass(frozen=True)
class StagedChange:
    """The statements that change a live table, a query into a sink, or streams, views and functions with what
    reads them. name: what is left staged where it is not promoted, and drop: how that is removed; queries:
    those that are compared, of live tables or into a sink; replace: at once, where there is nothing to
    compare, None for a set; endless: whether an input never ends, so that it cannot be compared; stopped: the
    queries that PROMOTE would let go on, and that begin anew behind it; then: what begins these anew.
    """

    name: str
    queries: tuple[str, ...]
    stage: tuple[Written, ...]
    compare: Written
    promote: Written
    drop: str
    replace: Step | None
    endless: bool
    stopped: tuple[str, ...] = ()
    then: tuple[Step, ...] = ()


def steps(project: Project) -> Iterator[Step | StagedChange]:
    """The steps in their order: renames; then what makes way for others is dropped, last what nothing reads
    any more. A changed query is dropped and started again, the change of a live table is staged, and all else
    that is changed is replaced. Each query that is to be started again is so behind what it names.
    """
    renames = [c for c in project.comparison.changes if c.what == RENAMED and is_altered(c.entry)]
    yield from (Step((_rename(change),)) for change in renames)
    changes = {change.key: change for change in project.comparison.changes if change not in renames}
    effects = project.comparison.effects
    together = project.together
    in_set = {name.casefold() for name in (*together.names, *together.stopped)}
    again = [name for name in effects.begin_again if name.casefold() not in in_set]
    restarts = {name: _restart(name, " FROM BEGINNING") for name in again}
    restarts |= {name: _restart(name) for name in effects.resumed}
    taken = {part.entry.name.casefold() for part in project.parts if part.key in changes}
    gone = [c.present for c in changes.values() if c.what in (DROPPED, RENAMED) and c.present]
    taken |= {name.casefold() for name in together.dropped_before}
    first = [entry for entry in gone if _writes(entry) or entry.name.casefold() in taken]
    yield from (Step((_drop(entry),)) for entry in first)
    own = [part for part in project.parts if part in together.parts]
    before = needed((name for part in own for name in part.entry.names), project.parts)
    ordered = sorted(project.parts, key=lambda part: part not in own and part.key not in before)
    for part in ordered if own else project.parts:
        if part in own:
            if part is own[-1]:
                yield _as_set(own, changes, project)
        elif part.key in changes:
            yield _defining(part, changes[part.key], project)
        elif part.entry.kind == "query" and part.entry.name in restarts:
            yield restarts.pop(part.entry.name)
    yield from restarts.values()  # those that the console starts by itself
    yield from (Step((_drop(entry),)) for entry in gone if entry not in first)


def _restart(query: str, begins: str = "") -> Step:
    name = quote_name(query)
    return Step((written(f"STOP QUERY {name}"), written(f"START QUERY {name}{begins}")), (query,))


def _rename(change: Change) -> Written:
    """The statement that gives an entry its new name."""
    assert change.present
    old, kind = change.present, shown_kind(change.present).upper()
    return written(f"ALTER {kind} {quote_name(old.name)} RENAME TO {quote_name(change.entry.name)}")


def _writes(entry: CatalogEntry) -> bool:
    """Whether an entry is a query of INSERT or of a statement set."""
    return entry.kind == "query" and not entry.readable


def _drop(entry: CatalogEntry) -> Written:
    """The statement that drops an entry. (DROP QUERY of a live table can be undone: UNDROP.)"""
    if entry.kind == "setting":
        return written(entry.text.replace("SET", "RESET", 1).partition(" =")[0])
    definition, kind = definition_of(entry.text), entry.kind.upper()
    if definition.kind == "function" and definition.temporary:
        kind = f"TEMPORARY {kind}"
    return written(f"DROP {kind} {quote_name(entry.name)}")


def _defining(part: Part, change: Change, project: Project) -> Step | StagedChange:
    """The statement of the folder; one of an entry that is changed replaces it. A sink cannot be replaced
    while a query writes into it.
    """
    if change.what != CHANGED or part.entry.kind == "setting":
        return Step((part.written,))
    assert change.present
    if _writes(part.entry) or _writes(change.present):
        replace = Step((_drop(change.present), part.written), (part.entry.name,), drops=1)
        if part.entry.name not in project.comparison.effects.differences:
            return replace
        name = quote_name(part.entry.name)
        return StagedChange(
            part.entry.name,
            (part.entry.name,),
            stage=(staged_insert(part),),
            compare=written(f"COMPARE QUERY {name}"),
            promote=written(f"PROMOTE {name}"),
            drop=f"DROP STAGED {name};",
            replace=replace,
            endless=False,
        )
    statement = replacing(part)
    if part.entry.kind == "sink":
        gone = {c.key[1] for c in project.comparison.changes if c.what == DROPPED and _writes(c.entry)}
        writers = (query.name for query in project.present.catalog.writers_of(part.entry.name))
        names = tuple(dict.fromkeys(name for name in writers if name.casefold() not in gone))
        drops = tuple(written(f"DROP QUERY {quote_name(name)}") for name in names)
        return Step((*drops, statement), names, len(names), brings_back=True)
    if part.entry.kind != "query":
        return Step((statement,))
    name = quote_name(part.entry.name)
    return StagedChange(
        part.entry.name,
        (part.entry.name,),
        stage=(replacing(part, staged=True),),
        compare=written(f"COMPARE LIVE TABLE {name}"),
        promote=written(f"PROMOTE {name}"),
        drop=f"DROP STAGED {name};",
        replace=Step((statement,)),
        endless=is_endless(part, project.parts),
    )


def _as_set(own: Sequence[Part], changes: Mapping[Key, Change], project: Project) -> StagedChange:
    """The statements that change definitions as one set; END CHANGE stages the live tables that read them."""
    together = project.together
    staged = [
        part.written if part in together.inserts else replacing(part)
        for part in own
        if part.key in changes or part in together.inserts
    ]
    tables = [*(part.entry.name for part in together.tables), *together.dropped_behind]
    again = [name for name in together.stopped if name in project.comparison.effects.begin_again]
    left = project.present.catalog.changes.get(SET)
    drop = written(f"DROP CHANGE {SET}")  # what was left staged may be of another folder
    before = (drop,) if left and any(not member.generation for member in left.members) else ()
    return StagedChange(
        ", ".join(together.names),
        (*tables, *(part.entry.name for part in together.inserts)),
        stage=(*before, written(f"BEGIN CHANGE {SET}"), *staged, written("END CHANGE")),
        compare=written(f"COMPARE CHANGE {SET}"),
        promote=written(f"PROMOTE CHANGE {SET}"),
        drop=f"DROP CHANGE {SET};",
        replace=None,
        endless=any(is_endless(part, project.parts) for part in together.tables),
        stopped=together.stopped,
        then=tuple(Step((written(f"START QUERY {quote_name(q)} FROM BEGINNING"),), (q,)) for q in again),
    )
