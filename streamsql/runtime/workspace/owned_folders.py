"""The folders below `run` that the console makes. Each holds a mark, and only those that do are moved or
removed: what somebody else has put there, or what a symbolic link leads to, is never touched.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from streamsql.errors import EngineFault

MARK = ".streamsql.json"
"""Begins with a dot, so that Spark does not take it for data."""
KINDS = ("queries", "live", "streams")
"""The folders of `run`, which hold a folder for each query, live table and stream."""
TRASH = "trash"


def private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def private_folder(folder: Path) -> None:
    """Make a folder, for its owner only, unless it is there. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def is_owned(folder: Path) -> bool:
    """Whether the console made a folder: a real one that holds the mark."""
    mark = folder / MARK
    return folder.is_dir() and not folder.is_symlink() and mark.is_file() and not mark.is_symlink()


def claim(folder: Path) -> None:
    """Make a folder of the console's own, or take up one that is. Raises EngineFault for anything else
    that is in the way, OSError when it cannot be written.
    """
    if is_owned(folder):
        return
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise EngineFault(
            f"{folder} is in the way: streamsql did not create it",
            hint=f"check its content, then move it away: mv '{folder}' …",
            code="FOLDER_IN_USE",
        )
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_folder(folder)
    mark(folder)


def mark(folder: Path) -> None:
    """Say in a folder that it is the console's own."""
    try:
        with open(folder / MARK, "w", encoding="utf-8", opener=private) as out:
            out.write(json.dumps({"kind": folder.parent.name, "version": 1}))
    except OSError as error:
        # On a full disk the file is there without content, and it is the file that counts.
        if error.errno != errno.ENOSPC or not is_owned(folder):
            raise


def remove(folder: Path) -> bool:
    """Remove a folder if it is the console's own. Returns whether it was."""
    owned = is_owned(folder)
    if owned:
        shutil.rmtree(folder, ignore_errors=True)
    return owned


def adopt(run: Path, known: dict[str, set[str]]) -> None:
    """Mark what an older console, which knew no marks, has made. known: by kind, the names of the folders
    that the catalog's entries have.
    """
    for kind, names in known.items():
        for folder in (run / kind / name for name in names):
            if (
                folder.is_dir()
                and not folder.is_symlink()
                and not is_owned(folder)
                and _looks_like(folder, kind)
            ):
                mark(folder)


def _looks_like(folder: Path, kind: str) -> bool:
    """Whether a folder holds what an older console has written for its kind."""
    names = [p.name for p in folder.iterdir()]
    if kind == "queries":
        return all(n.startswith(("checkpoint", "batches.jsonl")) for n in names)
    if kind == "live":
        return all(n in ("kind.json", "part") or n.endswith((".all", ".new")) for n in names)
    return all(n.startswith((".", "_")) or n.endswith(".parquet") for n in names)


def put_into_trash(workspace: Path, known: dict[str, set[str]]) -> list[str]:
    """Move the console's own folders that nothing in the catalog names into `trash`. Returns their names
    (kind/name).
    """
    moved = []
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    for kind, names in known.items():
        for left in _folders(workspace / "run" / kind):
            if left.name in names or not is_owned(left):
                continue
            if [p.name for p in left.iterdir()] == [MARK]:
                remove(left)  # nothing is in it
                continue
            trash = workspace / TRASH
            private_folder(trash)
            left.rename(_free(trash / f"{kind}-{left.name}-{stamp}"))
            moved.append(f"{kind}/{left.name}")
    return moved


def empty_trash(workspace: Path) -> tuple[int, list[str]]:
    """Delete what `put_into_trash` has moved there. Returns how many folders, and what was left because it
    is not the console's.
    """
    trash = workspace / TRASH
    entries = sorted(trash.iterdir()) if trash.is_dir() and not trash.is_symlink() else []
    removed = sum(remove(entry) for entry in entries)
    return removed, [entry.name for entry in entries if os.path.lexists(entry)]


def _folders(folder: Path) -> Iterable[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return ()
    return sorted(folder.iterdir())


def _free(path: Path) -> Path:
    """A path that nothing has yet: numbered if need be."""
    numbered = (path.with_name(f"{path.name}.{n}") for n in range(1, 1000))
    return path if not os.path.lexists(path) else next(p for p in numbered if not os.path.lexists(p))
