"""The statements that change a workspace so that it has what a folder defines."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.errors import Source
from streamsql.features.project.comparison import CHANGED, DROPPED, RENAMED, Change, written
from streamsql.features.project.plan_command import Project
from streamsql.features.project.project_folder import Part
from streamsql.language.script import Written, split_script
from streamsql.language.tokens import quote_name
from streamsql.runtime.workspace.store import CatalogEntry

_BEFORE_NAME = 8
"""The most words of CREATE … IF NOT EXISTS."""


def statements(project: Project) -> Iterator[Written]:
    """The statements in their order: first what makes way for others is dropped, last what nothing reads any
    more. A changed query is dropped and started again; all else that is changed is replaced.
    """
    changes = {change.key: change for change in project.comparison.changes}
    taken = {part.entry.name.casefold() for part in project.parts if part.key in changes}
    gone = [
        change.present for change in changes.values() if change.what in (DROPPED, RENAMED) and change.present
    ]
    first = [entry for entry in gone if _writes(entry) or entry.name.casefold() in taken]
    for change in changes.values():
        if change.what == CHANGED and _writes(change.entry):
            yield _drop(change.entry)
    yield from map(_drop, first)
    for part in project.parts:
        if part.key in changes:
            yield _define(part, changes[part.key])
    for name in map(quote_name, project.comparison.restarts):
        yield written(f"STOP QUERY {name}")
        yield written(f"START QUERY {name} FROM BEGINNING")
    yield from (_drop(entry) for entry in gone if entry not in first)


def _writes(entry: CatalogEntry) -> bool:
    """Whether an entry is a query of INSERT or of a statement set."""
    return entry.kind == "query" and not entry.readable


def _drop(entry: CatalogEntry) -> Written:
    """The statement that drops an entry. (DROP QUERY of a live table can be undone: UNDROP.)"""
    if entry.kind == "setting":
        return written(entry.text.replace("SET", "RESET", 1).partition(" =")[0])
    return written(f"DROP {entry.kind.upper()} {quote_name(entry.name)}")


def _define(part: Part, change: Change) -> Written:
    """The statement of the folder, as CREATE OR REPLACE where it is changed, with the same place."""
    if change.what != CHANGED or part.entry.kind == "setting" or _writes(part.entry):
        return part.written
    source, tokens = part.written.source, part.written.tokens
    text, end = source.text, tokens[0].end
    words = [token.upper for token in tokens[:_BEFORE_NAME]]
    if "NOT" in words and words[words.index("NOT") - 1] == "IF":
        at = words.index("NOT")
        text = text[: tokens[at - 1].start] + text[tokens[at + 2].start :]
    if words[1] != "OR":
        text = f"{text[:end]} OR REPLACE{text[end:]}"
    number = next(
        at for at, other in enumerate(split_script(source)) if other.span.start == part.written.span.start
    )
    return split_script(Source(source.name, text))[number]
