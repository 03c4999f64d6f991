"""The generations of a query: the folders that hold its checkpoint and its rows.

    run/queries/NAME/current            a link to the generation in use
    run/queries/NAME/3/checkpoint       Spark's checkpoint, unless CHECKPOINT names another folder
    run/queries/NAME/3/streamsql.json   the query, as in a checkpoint, but written before the query runs
    run/queries/NAME/3/rows/TABLE       the rows of each live table that the query writes
    run/queries/NAME/3/written          what a query over live tables has written into its sink

FROM BEGINNING, FROM NOW and CREATE OR REPLACE prepare a new generation beside the one in use; one rename of
`current` puts it in its place. A crash before that leaves the old generation whole, a crash after it the new
one. The generation before is kept.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from streamsql.connectors.base import Places, file_name
from streamsql.errors import EngineFault
from streamsql.runtime.embedded.durable_files import make_folder, move, point, write_file
from streamsql.runtime.workspace.owned_folders import claim, is_owned, remove

_NUMBER = re.compile(r"[1-9][0-9]*")


def rows_in(generation: Path, table: str) -> Path:
    """The folder with the rows of a live table in a generation."""
    return generation / "rows" / file_name(table)


class Generations:
    """The generations of one query. folder: run/queries/NAME."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._link = self.folder / "current"

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
        try:
            if not (self._link.is_symlink() and os.readlink(self._link) == generation.name):
                remove(generation)
        except OSError:
            pass  # `clear` does it later

    def clear(self) -> None:
        """Remove all generations but the one in use and the one before it, as far as that is possible."""
        current = self.current
        numbers = sorted(self._numbers())
        if current is None:
            return
        older = [number for number in numbers if number < int(current.name)]
        for number in numbers:
            if number != int(current.name) and number not in older[-1:]:
                self.discard(self.folder / str(number))

    def _numbers(self) -> list[int]:
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _is_to_be_moved(folder: Path) -> bool:
    """Whether a folder is there, and the console created it or the one that it is in."""
    return folder.is_dir() and not folder.is_symlink() and (is_owned(folder) or is_owned(folder.parent))


def move_over(places: Places, query: str, tables: tuple[str, ...]) -> None:
    """Give the folders that an earlier version of the console has written the form of this one. tables: the
    live tables that the query writes. A crash on the way does no harm: the next call goes on. Raises OSError.
    """
    generations = Generations(places.query(query))
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
