"""What DROP QUERY removes, kept in the trash of the workspace, and how UNDROP brings it back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from streamsql.definitions import Query
from streamsql.errors import NameFault, Source
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.runtime.embedded.durable_files import move, write_file
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.workspace.owned_folders import TRASH, claim, free, is_owned, private_folder, remove
from streamsql.runtime.workspace.reopen import take_up

_PREFIX = "dropped-"
_STATEMENTS = "dropped.sql"


def begin(parts: SessionParts, queries: Sequence[Query]) -> Path | None:
    """A folder in the trash for queries that are about to be dropped, with their statements; None without a
    workspace. Raises OSError.
    """
    if parts.store is None:
        return None
    trash = parts.store.folder / TRASH
    private_folder(trash)
    folder = free(trash / f"{_PREFIX}{datetime.now():%Y%m%d-%H%M%S}")
    claim(folder)
    sinks = parts.catalog.sinks
    texts = [query.sql(sinks.get(query.sinks[0].casefold())) for query in queries]
    text = "".join(f"{text};\n\n" for text in texts)
    write_file(folder / _STATEMENTS, lambda out: out.write(text.encode()))
    return folder


def put(folder: Path, generations: Path) -> None:
    """Move the generations of a query that has stopped into the folder. Raises OSError."""
    if is_owned(generations):
        move(generations, folder / generations.name)


def undrop(parts: SessionParts) -> list[str]:
    """Define the queries again that were dropped last, with their checkpoints and rows; none of them runs.
    Returns their names, [] when there is nothing in the trash. Raises NameFault when a name is in use.
    """
    store = parts.store
    if store is None:
        return []
    found = (store.folder / TRASH).glob(f"{_PREFIX}*")
    folders = [folder for folder in found if is_owned(folder) and (folder / _STATEMENTS).is_file()]
    if not folders:
        return []
    folders.sort(key=lambda folder: folder.stat().st_mtime)
    folder = folders[-1]
    before = set(parts.catalog.queries)
    source = Source(str(folder / _STATEMENTS), (folder / _STATEMENTS).read_text("utf-8"))
    statements = [parse(written, literal=True) for written in split_script(source)]
    taken = (parts.catalog.queries, parts.catalog.sinks, parts.catalog.streams)
    for name in (name for name in map(_name_of, statements) if name):
        if any(name.casefold() in entries for entries in taken):
            raise NameFault(
                f"there is another {name} now",
                hint=f"drop it first, then UNDROP; brings back the query {name}",
                code="ALREADY_EXISTS",
            )
    for statement in statements:
        take_up(statement, parts, store)
    for moved in sorted(folder.iterdir()):
        if moved.is_dir():
            move(moved, Path(parts.places.folder, "queries", moved.name))
    remove(folder)
    queries = parts.catalog.queries
    return [query.name for key, query in queries.items() if key not in before and not query.owner]


def _name_of(statement: Statement) -> str:
    """The name of the query that a statement starts."""
    name = getattr(statement, "query_name", None) or getattr(statement, "name", None)
    return name.value if name is not None else ""
