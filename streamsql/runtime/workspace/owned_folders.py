"""The folders below `run` that the console creates. Each contains a mark file, and only folders with one
are moved or removed: other files, and the targets of symbolic links, are never touched.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from streamsql.errors import EngineFault
from streamsql.runtime.embedded.durable_files import move, only_owner, write_file

OWNER_FILE = ".streamsql.json"
"""The file in each folder that the console created. It begins with a dot, so that Spark does not read it as
data."""
KINDS = ("queries", "live", "streams")
"""The folders of `run`, each with a folder for each query, live table or stream."""
TRASH = "trash"
_REMOVED = ".removed-"
"""How the name of a folder begins once it is removed; no name of a query, live table or stream does."""


private = only_owner
"""An opener for files that only their owner may read."""


def private_folder(folder: Path) -> None:
    """Create a folder that only its owner can read, unless it exists. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def is_owned(folder: Path) -> bool:
    """Whether the console created a folder: it is no symbolic link, and contains the owner file."""
    file = folder / OWNER_FILE
    return folder.is_dir() and not folder.is_symlink() and file.is_file() and not file.is_symlink()


def claim(folder: Path) -> None:
    """Create a folder of the console, or use an existing one. Raises EngineFault when the path is used by
    something else, OSError when it cannot be written.
    """
    if is_owned(folder):
        return
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or not _is_begun(folder))):
        raise EngineFault(
            f"{folder} is in the way: streamsql did not create it",
            hint=f"check its content, then move it away: mv '{folder}' …",
            code="FOLDER_IN_USE",
        )
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_folder(folder)
    write_owner_file(folder)


def _is_begun(folder: Path) -> bool:
    """Whether a folder is empty, or has only what a crash has left of its owner file."""
    return all(path.name == f"{OWNER_FILE}.part" for path in folder.iterdir())


def write_owner_file(folder: Path) -> None:
    """Write the owner file of a folder: it says that the console created the folder."""
    try:
        kind = json.dumps({"kind": folder.parent.name, "version": 1}).encode()
        write_file(folder / OWNER_FILE, lambda out: out.write(kind))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # On a full disk an empty file is enough.
        os.close(private(str(folder / OWNER_FILE), os.O_WRONLY | os.O_CREAT))


def remove(folder: Path) -> bool:
    """Remove a folder if the console created it. Returns whether it did. Raises OSError.

    One rename takes it out of use; if its files are not all removed, `clear_removed` does so later.
    """
    owned = is_owned(folder)
    if owned:
        gone = folder.with_name(f"{_REMOVED}{uuid.uuid4().hex}")
        move(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)
    return owned


def clear_removed(run: Path) -> None:
    """Remove the files that a crash has left of removed folders."""
    for kind in KINDS:
        for left in ((run / kind).glob(f"{depth}{_REMOVED}*") for depth in ("", "*/")):
            for folder in left:
                shutil.rmtree(folder, ignore_errors=True)


def put_into_trash(workspace: Path, used: dict[str, set[str]]) -> list[str]:
    """Move the console's folders that no entry of the catalog uses into `trash`. Returns their names
    (kind/name). used: by kind, the names of the folders that entries of the catalog use.
    """
    moved = []
    for kind, names in used.items():
        for left in _folders(workspace / "run" / kind):
            if left.name in names or not is_owned(left):
                continue
            if [p.name for p in left.iterdir()] == [OWNER_FILE]:
                remove(left)  # it is empty
                continue
            into_trash(workspace, left)
            moved.append(f"{kind}/{left.name}")
    return moved


def into_trash(workspace: Path, folder: Path) -> Path:
    """Move a folder into `trash`. Returns where it is."""
    trash = workspace / TRASH
    private_folder(trash)
    name = f"{folder.parent.name}-{folder.name}-{datetime.now():%Y%m%d-%H%M%S}"
    return folder.rename(free(trash / name))


def set_aside(workspace: Path | None, folder: Path) -> Path | None:
    """Give an empty folder of the console. Returns where its content is in `trash`; None if it had none, or
    was deleted because there is no workspace. Raises EngineFault, OSError.
    """
    trashed = None
    if is_owned(folder) and workspace and any(not path.name.startswith(".") for path in folder.iterdir()):
        trashed = into_trash(workspace, folder)
    remove(folder)
    claim(folder)
    return trashed


def empty_trash(workspace: Path) -> tuple[int, list[str]]:
    """Delete what `put_into_trash` has moved there. Returns the number of deleted folders, and the entries
    that are kept because the console did not create them.
    """
    trash = workspace / TRASH
    entries = sorted(trash.iterdir()) if trash.is_dir() and not trash.is_symlink() else []
    removed = sum(remove(entry) for entry in entries)
    return removed, [entry.name for entry in entries if os.path.lexists(entry)]


def _folders(folder: Path) -> Iterable[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return ()
    return sorted(folder.iterdir())


def free(path: Path) -> Path:
    """A path that does not exist yet, with a number if necessary."""
    numbered = (path.with_name(f"{path.name}.{n}") for n in range(1, 1000))
    return path if not os.path.lexists(path) else next(p for p in numbered if not os.path.lexists(p))
