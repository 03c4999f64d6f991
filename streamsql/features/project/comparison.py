"""What is to be done so that a workspace has what a folder defines: a pure function of both."""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streamsql.definitions import Query
from streamsql.errors import Source
from streamsql.features.project.definition_set import DefinitionSet
from streamsql.features.project.project_folder import Key, Part, key_of
from streamsql.language.script import Written, split_script
from streamsql.plan.streaming.query_changes import entry_changes
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.store import CatalogEntry

ADDED, CHANGED, RENAMED, DROPPED = "added", "changed", "renamed", "dropped"
_BEFORE_KIND = frozenset(("OR", "REPLACE", "TEMP", "TEMPORARY"))
"""Words before VIEW and FUNCTION that are no part of what that is."""


@dataclass(frozen=True)
class Change:
    """what: ADDED, CHANGED, RENAMED or DROPPED; wanted: None for DROPPED; present: None for ADDED.

    loses_rows: whether the workspace has rows of it, which are moved to the trash; minor: whether queries go
    on from their checkpoints with it: a comment, or how fast a stream is read.
    """

    what: str
    wanted: CatalogEntry | None = None
    present: CatalogEntry | None = None
    loses_rows: bool = False
    minor: bool = False

    @property
    def entry(self) -> CatalogEntry:
        entry = self.wanted or self.present
        assert entry
        return entry

    @property
    def key(self) -> Key:
        return self.entry.kind, self.entry.name.casefold()

    @property
    def difference(self) -> list[str]:
        """The lines of the two texts that differ, with - and + before them, and the lines around them."""
        if not (self.wanted and self.present):
            return []
        texts = (self.present.text.splitlines(), self.wanted.text.splitlines())
        lines = list(difflib.unified_diff(*texts, lineterm=""))[2:]
        return [line for line in lines if not line.startswith("@@")]


@dataclass(frozen=True)
class Effects:
    """The names of queries. anew: those that are computed anew; begin_again: of these, those that are not
    changed themselves, and have to be started again from the beginning; resumed: those that go on from their
    checkpoints, and have to be started again to see a change; written_again: the sinks into which queries
    that are computed anew write their rows again; differences: of the queries that are computed anew, those
    whose changes can be staged, so that their sinks get the difference only.
    """

    anew: tuple[str, ...] = ()
    begin_again: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    written_again: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    def with_differences(self, queries: Sequence[Query]) -> Effects:
        """The same with queries whose sinks get the difference; no other query writes into these sinks."""
        sinks = {sink for query in queries for sink in query.sinks}
        again = tuple(sink for sink in self.written_again if sink not in sinks)
        return replace(self, written_again=again, differences=tuple(query.name for query in queries))


@dataclass(frozen=True)
class Comparison:
    """changes: in the order of the folder, those that drop last; unchanged: the number of other definitions;
    effects: on the queries that are there.
    """

    changes: tuple[Change, ...]
    unchanged: int
    effects: Effects


@dataclass(frozen=True)
class ChangeSet:
    """The parts of a folder that are changed as one. definitions: streams, views and functions; tables: the
    live tables that are changed, or computed anew because of these; inserts: the queries of INSERT whose
    sinks get the difference; stopped: the names of the other queries that write and read the definitions:
    they begin anew behind PROMOTE; dropped_before: the names of the live tables over these that the folder
    drops, and that no other one reads; dropped_behind: those that are dropped behind PROMOTE.
    """

    definitions: tuple[Part, ...] = ()
    tables: tuple[Part, ...] = ()
    inserts: tuple[Part, ...] = ()
    stopped: tuple[str, ...] = ()
    dropped_before: tuple[str, ...] = ()
    dropped_behind: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.definitions, *self.tables, *self.inserts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.entry.name for part in self.parts)


@dataclass(frozen=True)
class Project:
    """A folder beside a workspace. parts: its statements in their order; present: what is in the workspace,
    after renames; wanted: what the folder defines; session: one that has read the folder; together: what is
    changed as one.
    """

    workspace: Path
    folder: Path
    parts: tuple[Part, ...]
    present: DefinitionSet
    wanted: DefinitionSet
    session: SessionParts
    comparison: Comparison
    together: ChangeSet = ChangeSet()


def compare(
    present: DefinitionSet, wanted: DefinitionSet, parts: Sequence[Part], renames: Sequence[Rename]
) -> Comparison:
    """Compare what is there with what a folder defines. parts: the statements of the folder; renames: those
    after which present is as it is given.
    """
    before, after = present.entries, wanted.entries
    defined = {part.key for part in parts}  # the workspace has queries of the console, too
    renamed = {rename.key: rename.before for rename in renames}
    changes, unchanged = list[Change](), 0
    for key, entry in after.items():
        old = before.get(key)
        if key in renamed:
            changes.append(Change(RENAMED, old or entry, renamed[key]))
        if old is None:
            changes += [Change(ADDED, entry)] * (key not in renamed)
        elif not _same(old, entry):
            facts = _has_rows(key, present), _is_minor(key, present, wanted)
            changes.append(Change(CHANGED, entry, old, *facts))
        else:
            unchanged += key in defined and key not in renamed
    made_anew = {key_of(rename.before) for rename in renames}
    gone = [key for key in reversed(before) if key not in after and key not in made_anew]
    changes += (Change(DROPPED, None, before[key], _has_rows(key, present)) for key in gone)
    changed = {change.key for change in changes if change.what == CHANGED}
    minor = {change.key for change in changes if change.minor}
    return Comparison(tuple(changes), unchanged, _effects(wanted, after, before.keys(), changed, minor))


def _same(one: CatalogEntry, other: CatalogEntry) -> bool:
    """Whether two definitions are the same but for comments, blanks and line ends."""
    if one.text == other.text:
        return True
    if one.kind == "setting":
        return False
    return _words(one) == _words(other)


def _words(entry: CatalogEntry) -> list[tuple[str, str]]:
    """The words and signs of a definition."""
    tokens = written(entry.text).tokens
    if entry.kind in ("view", "function"):
        kind = entry.kind.upper()
        head = next((at for at, token in enumerate(tokens) if token.upper == kind), 0)
        tokens = tuple(t for at, t in enumerate(tokens) if at > head or t.upper not in _BEFORE_KIND)
    return [(token.kind, token.text) for token in tokens]


def written(text: str) -> Written:
    """A statement that the console writes."""
    return split_script(Source("streamsql apply", f"{text};"))[0]


@dataclass(frozen=True)
class Rename:
    """A rename that a comment of a folder asks for. key: of the entry afterwards; before: the entry."""

    key: Key
    name: str
    before: CatalogEntry

    @property
    def keeps_state(self) -> bool:
        return is_altered(self.before)


def is_altered(entry: CatalogEntry) -> bool:
    """Whether ALTER … RENAME TO renames an entry; a view and a function are dropped, and created again."""
    return entry.kind in ("stream", "sink", "query")


def renames_of(present: DefinitionSet, parts: Sequence[Part]) -> list[Rename]:
    """The renames that the comments of a folder ask for. One that was done before is left out."""
    before, defined = present.entries, {part.key for part in parts}
    old_keys = {
        part.key: (part.entry.kind, part.renamed_from.casefold()) for part in parts if part.renamed_from
    }
    return [
        Rename(key, part.entry.name, before[old])
        for part in parts
        if (key := part.key) in old_keys
        and key not in before
        and (old := old_keys[key]) in before
        and old not in defined
        and key == next(k for k, other in old_keys.items() if other == old)
    ]


def _has_rows(key: Key, definitions: DefinitionSet) -> bool:
    """Whether an entry is a stream of values, whose rows are in the workspace."""
    kind, name = key
    return kind == "stream" and definitions.catalog.streams[name].connector == "values"


def _is_minor(key: Key, present: DefinitionSet, wanted: DefinitionSet) -> bool:
    """Whether a changed stream or sink is one with which queries go on from their checkpoints: its comment,
    or how fast it is read, has changed.
    """
    kind, name = key
    if _has_rows(key, present) or kind not in ("stream", "sink"):
        return False
    catalogs = (present.catalog, wanted.catalog)
    old, new = (c.streams[name] if kind == "stream" else c.sinks[name] for c in catalogs)
    return not entry_changes(old, new)


def _effects(
    wanted: DefinitionSet,
    entries: Mapping[Key, CatalogEntry],
    present: Container[Key],
    changed: Container[Key],
    minor: Container[Key],
) -> Effects:
    """What changes mean for the queries that name them, or a live table that is computed anew. entries: what
    is wanted; present: what is in the workspace; changed: what of it is changed; minor: see _is_minor.

    A streaming query that joins a live table goes on with the rows that it had then.
    """
    anew, begin_again, resumed, written_again = (dict[str, None]() for _ in range(4))
    sources, minor_sources, tables = set[str](), set[str](), set[str]()
    queries, sinks = wanted.catalog.queries, wanted.catalog.sinks
    for key, entry in entries.items():
        kind, name = key
        needs = {needed.partition("$")[0] for needed in entry.names}
        itself, by_source = key in changed and key not in minor, bool(needs & sources)
        by_minor = key in minor or bool(needs & minor_sources)
        if kind != "query":
            if kind != "setting" and (itself or by_source or by_minor):
                (sources if itself or by_source else minor_sources).add(name)
            continue
        query = queries[name]
        if key not in present:
            continue
        if not (itself or by_source or (query.inputs and needs & tables)):
            if by_minor:
                resumed[query.name] = None
            continue
        anew[query.name] = None
        if by_source and not itself:
            begin_again[query.name] = None
        for sink in (sinks[s.casefold()] for s in query.sinks if s.casefold() in sinks):
            if sink.is_live:
                tables.add(sink.name.casefold())
            else:
                written_again[sink.name] = None
    return Effects(*map(tuple, (anew, begin_again, resumed, written_again)))
