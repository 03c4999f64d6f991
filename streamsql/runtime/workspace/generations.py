"""The generations of a query: the folders that hold its checkpoint and its rows.

    run/queries/NAME/current            a link to the generation in use
    run/queries/NAME/staged             a link to the generation of a staged change, while there is one
    run/queries/NAME/kept               a link to the one before, while a statement stages changes anew
    run/queries/NAME/3/checkpoint       Spark's checkpoint, unless CHECKPOINT names another folder
    run/queries/NAME/3/streamsql.json   the query, as in a checkpoint, but written before the query runs
    run/queries/NAME/3/rows/TABLE       the rows of each live table that the query writes
    run/queries/NAME/3/written          what a query over live tables has written into its sink
    run/queries/NAME/2/left.json        of a generation that is not in use any more: its query, and since when

FROM BEGINNING, FROM NOW and CREATE OR REPLACE prepare a new generation beside the one in use; one rename of
`current` puts it in its place. A crash before that leaves the old generation whole, a crash after it the new
one. The generations that were left last are kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from streamsql.connectors.base import Places, file_name
from streamsql.definitions import promoted_name
from streamsql.errors import EngineFault
from streamsql.runtime.embedded.durable_files import (
    make_folder,
    move,
    point,
    remove_file,
    sync_folder,
    write_file,
)
from streamsql.runtime.workspace.owned_folders import claim, is_owned, remove

_NUMBER = re.compile(r"[1-9][0-9]*")
CURRENT, STAGED, _KEPT = "current", "staged", "kept"
"""The names of the links."""
LEFT = "left.json"


def rows_in(generation: Path, table: str) -> Path:
    """The folder with the rows of a live table in a generation."""
    return generation / "rows" / file_name(promoted_name(table))


def generations_of(places: Places, query: str) -> Generations:
    """The generations of a query. Those of NAME$staged are those of NAME; the staged one is in use."""
    return Generations(places.query(query), Path(places.generation(query)).name)


@dataclass(frozen=True)
class Left:
    """A generation that was in use. folder: of it; at: when another one took its place; definition: the
    statement of its query, "" for a stage; stages: the generations of its stages, by their names; streams:
    those whose definitions were replaced with it.
    """

    folder: Path
    at: datetime
    definition: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)
    streams: tuple[str, ...] = ()


class Generations:
    """The generations of one query. folder: run/queries/NAME; link: the name of the link to the one in
    use.
    """

    def __init__(self, folder: str | Path, link: str = CURRENT) -> None:
        self.folder = Path(folder)
        self._link = self.folder / link

    @property
    def current(self) -> Path | None:
        """The generation in use; None before the first. Raises EngineFault when `current` is not the
        console's: it could lead out of the workspace.
        """
        try:
            name = os.readlink(self._link)
        except FileNotFoundError:
            return None
        except OSError:
            name = ""
        generation = self.folder / name
        if not (_NUMBER.fullmatch(name) and is_owned(self.folder) and is_owned(generation)):
            raise EngineFault(
                f"{self._link} does not lead to a generation of the query",
                detail="it is a link to a folder beside it, which the console has created",
                hint="remove the link; START QUERY then begins a new generation, from the beginning",
                code="FOLDER_IN_USE",
            )
        return generation

    def prepare(self) -> Path:
        """Create a new generation, which is not yet in use. Raises EngineFault, OSError."""
        generation = self.folder / str(max(self._numbers(), default=0) + 1)
        for folder in (self.folder, generation):
            make_folder(folder)
            claim(folder)
        return generation

    def publish(self, generation: Path) -> None:
        """Put a generation in use. Raises OSError: then it is in use or the one before; both are whole."""
        point(self._link, generation.name)

    def discard(self, generation: Path) -> None:
        """Remove a generation as far as that is possible, unless it is in use."""
        with suppress(OSError):  # `clear` does it later
            if generation.name not in self._linked():
                remove(generation)

    def leave(self, definition: str, stages: Mapping[str, str], streams: Iterable[str] = ()) -> None:
        """Record of the generation in use, which another one is about to replace, what `left` returns. One
        that was only staged is not kept. Raises OSError.
        """
        if self._link.name == CURRENT and self.current is not None:
            at = datetime.now().isoformat(timespec="microseconds")
            record = {
                "at": at,
                "definition": definition,
                "stages": dict(stages),
                "streams": list(streams),
            }
            write_file(self.current / LEFT, lambda file: file.write(json.dumps(record).encode()))

    def left(self) -> list[Left]:
        """The generations that were in use, the one that was left last first."""
        linked = self._linked()
        folders = (self.folder / str(number) for number in self._numbers())
        found = (_left(folder) for folder in folders if folder.name not in linked and is_owned(folder))
        return sorted((left for left in found if left is not None), key=lambda left: left.at, reverse=True)

    def clear(self, keep: int) -> None:
        """Remove the generations that are not in use, as far as that is possible. keep: how many stay of
        those that were left last.
        """
        used = self._linked() | {left.folder.name for left in self.left()[:keep]}
        for number in self._numbers():
            if str(number) not in used:
                self.discard(self.folder / str(number))

    def remove(self) -> None:
        """Remove all generations of the query; of a staged change, those of it. Raises OSError."""
        if self._link.name == CURRENT:
            remove(self.folder)
        elif self._link.is_symlink():
            staged = self.current
            self.unlink()
            if staged is not None:
                self.discard(staged)
            if not self._linked() and not self.left():
                remove(self.folder)  # of a stage that nothing but the staged change has

    def keep(self) -> None:
        """Keep the generation in use, whatever takes its place, until `forget_kept`. Raises OSError."""
        if self.current is not None:
            point(self.folder / _KEPT, self.current.name)

    def bring_back(self) -> None:
        """Put the generation in use again that is kept, if there is one. Raises OSError."""
        if (self.folder / _KEPT).is_symlink():
            point(self._link, os.readlink(self.folder / _KEPT))
            self.forget_kept()

    def forget_kept(self) -> None:
        """Remove the generation that is kept, unless it is in use. Raises OSError."""
        kept = self.folder / _KEPT
        if kept.is_symlink():
            generation = self.folder / os.readlink(kept)
            remove_file(kept)
            sync_folder(self.folder)
            self.discard(generation)

    def unlink(self) -> None:
        """Remove the link to the generation in use; the generation stays. Raises OSError."""
        remove_file(self._link)
        sync_folder(self.folder)

    def _linked(self) -> set[str]:
        """The names of the generations in use, that of a staged change and one that is kept among them."""
        links = (self.folder / name for name in (CURRENT, STAGED, _KEPT))
        return {os.readlink(link) for link in links if link.is_symlink()}

    def _numbers(self) -> list[int]:
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def _left(folder: Path) -> Left | None:
    """What `leave` has recorded of a generation; None where it has not, or where that cannot be read."""
    try:
        record: dict[str, Any] = json.loads((folder / LEFT).read_text("utf-8"))
        at = datetime.fromisoformat(record["at"])
        streams = tuple(record.get("streams", ()))
        return Left(folder, at, str(record["definition"]), dict(record["stages"]), streams)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_to_be_moved(folder: Path) -> bool:
    """Whether a folder is there, and the console created it or the one that it is in."""
    return folder.is_dir() and not folder.is_symlink() and (is_owned(folder) or is_owned(folder.parent))


def move_over(places: Places, query: str, tables: tuple[str, ...]) -> None:
    """Give the folders that an earlier version of the console has written the form of this one. tables: the
    live tables that the query writes. A crash on the way does no harm: the next call goes on. Raises OSError.
    """
    generations = generations_of(places, query)
    folder_of_query = generations.folder
    older = {
        folder_of_query / "checkpoint": "checkpoint",
        folder_of_query / "written": "written",
        **{Path(places.folder) / "live" / file_name(t): f"rows/{file_name(t)}" for t in tables},
    }
    older = {folder: place for folder, place in older.items() if _is_to_be_moved(folder)}
    first = folder_of_query / "1"
    begun = first / "moved_over"
    if not (older or begun.exists()) or generations.current is not None:
        return
    for folder in (folder_of_query, first):
        make_folder(folder)
        claim(folder)
    write_file(begun, lambda file: None)
    for folder, place in older.items():
        make_folder((first / place).parent)
        move(folder, first / place)
    if (first / "checkpoint").is_dir():
        # The state of a stateful processor has the absolute paths of its schemas.
        point(folder_of_query / "checkpoint", f"{first.name}/checkpoint")
    generations.publish(first)
