"""The files that hold names: folders of queries and of streams, and records in generations and checkpoints.

Each change is a step that can be undone, and that is not needed where a crash came after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places, file_name
from streamsql.errors import RuleFault
from streamsql.language.tokens import quote_name
from streamsql.plan.renaming import Renaming
from streamsql.runtime.checkpoints.checkpoint_files import MARKER, LocalFiles, local_folder
from streamsql.runtime.embedded.durable_files import move
from streamsql.runtime.queries.start_steps import Step
from streamsql.runtime.workspace.generations import LEFT
from streamsql.runtime.workspace.owned_folders import is_owned

_files = LocalFiles()


def changes_of(places: Places, catalog: Catalog, names: Renaming) -> Iterator[Step]:
    """The steps that give new names to files, in their order; only those that are left to do. catalog: with
    the old names or the new ones.

    Raises RuleFault for a checkpoint that records a name, and is on another file system.
    """
    for query in catalog.queries.values():
        folder = _present(places.query(query.name), places.query(names.query(query).name))
        record = partial(names.record, together=query.together)
        for generation in _generations(folder):
            for marker in (generation / MARKER, generation / "checkpoint" / MARKER):
                yield from _rewritten(marker, record)
            yield from _rewritten(generation / LEFT, partial(_left, names=names))
            yield from _paths(generation / "checkpoint", places, names)
            for old, new in names.sinks.items():
                rows = generation / "rows"
                yield from _moved(rows / file_name(old), rows / file_name(new))
        if query.checkpoint:
            yield from _of_own_checkpoint(query, places, names, record)
    for old, new in names.queries.items():
        yield from _moved(Path(places.query(old)), Path(places.query(new)))
    for old, new in names.streams.items():
        yield from _moved(Path(places.values(old)), Path(places.values(new)))


def _present(one: str, other: str) -> Path:
    return Path(one) if Path(one).exists() else Path(other)


def _generations(folder: Path) -> list[Path]:
    if not is_owned(folder):
        return []
    return [path for path in sorted(folder.iterdir()) if path.name.isdigit() and is_owned(path)]


def _of_own_checkpoint(query: Any, places: Places, names: Renaming, record: Any) -> Iterator[Step]:
    """The changes of a checkpoint whose folder the statement names."""
    local = local_folder(query.checkpoint)
    if local is not None:
        yield from _rewritten(Path(local.root, MARKER), record)
        yield from _paths(Path(local.root), places, names)
    elif names.query(query) != query:
        raise RuleFault(
            f"the checkpoint of {query.name} records the old name, and is not on this machine",
            detail=query.checkpoint,
            hint=f"keep the name, or DROP QUERY {quote_name(query.name)}; and INSERT again with ACCEPT "
            "CHANGES",
            code="RENAME_NOT_SUPPORTED",
        )


def _rewritten(file: Path, change: Callable[[Any], Any]) -> Iterator[Step]:
    """The change of a record in JSON, if the file is there and is to be another one."""
    try:
        before = file.read_bytes()
        content = json.loads(before)
        after = change(content)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return  # it is damaged, which the start of its query reports
    if after != content:
        yield _write(file, before, json.dumps(after).encode())


def _write(file: Path, before: bytes, after: bytes) -> Step:
    return Step(partial(_files.write, str(file), after), partial(_files.write, str(file), before))


def _moved(old: Path, new: Path) -> Iterator[Step]:
    if old.exists() and old != new:
        yield Step(partial(move, str(old), str(new)), partial(_moved_back, old, new))


def _moved_back(old: Path, new: Path) -> None:
    if not old.exists():
        move(str(new), str(old))


def _left(record: Any, names: Renaming) -> Any:
    """What is recorded of a generation that is not in use any more, with the new names."""
    stages = {names.queries.get(stage.casefold(), stage): n for stage, n in record["stages"].items()}
    definition = record["definition"]
    if definition:
        definition = names.statements_text(f"{definition};").removesuffix(";")
    return record | {"definition": definition, "stages": stages}


# ---- paths in the files of Spark ----------------------------------------------------------


def _paths(checkpoint: Path, places: Places, names: Renaming) -> Iterator[Step]:
    """The changes of paths that Spark has recorded: of the files of a stream that it has read, and of the
    state of a stateful processor.
    """
    folders = {places.values(old): places.values(new) for old, new in names.streams.items()}
    folders |= {places.query(old): places.query(new) for old, new in names.queries.items()}
    found = (*checkpoint.glob("sources/*/*"), *checkpoint.glob("state/*/_metadata/v2/*"))
    whole = (path for path in found if path.name[0] != "." and path.suffix != ".part" and path.is_file())
    for file in sorted(whole):
        before = file.read_text("utf-8")
        after = before
        for old, new in folders.items():
            after = after.replace(f"{_written(old)}/", f"{_written(new)}/")
        if after != before:
            yield _write(file, before.encode(), after.encode())


def _written(folder: str) -> str:
    """The path of a folder as Spark writes it."""
    return quote(folder, safe="/!$&'()*+,;=:@~")
