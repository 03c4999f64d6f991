"""Checks whether a folder is a workspace: it contains the console's marker, is empty, or does not exist.

Only `write` writes.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from streamsql.errors import UsageFault
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.workspace.owned_folders import KINDS, TRASH
from streamsql.runtime.workspace.workspace_files import STATUS, WORKSPACE, check_version

MARKER = "streamsql.json"
_FILES = (MARKER, "lock", "holder.json", "catalog.sql", "status.json")
_FOLDERS = ("run", TRASH, *(f"run/{kind}" for kind in KINDS))
_LARGEST = 100_000
"""The largest size of a marker in bytes."""


def check(folder: Path, *, trusted: bool = False) -> bool:
    """Whether a folder is a workspace; False when it can become one: it does not exist, or is empty.

    Raises UsageFault for any other folder, for one that a later version has written, and for one that
    another user owns or can write to, unless it is trusted.
    """
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise UsageFault(
            f"{folder} is a file, not a folder", hint="-w DIR names another one", code="NOT_A_WORKSPACE"
        ) from None
    except OSError as error:
        raise _unreadable(folder, error) from None
    try:
        _check_kinds(folder)
        if not trusted:
            _check_owner(folder)
        return _check_marker(folder, names)
    except OSError as error:
        raise _unreadable(folder, error) from None


def is_of_now(folder: Path) -> bool:
    """Whether a workspace has a marker of this version. Raises OSError."""
    return (_read(folder / MARKER) or {}).get("version") == WORKSPACE


def write(folder: Path) -> None:
    """Write the marker of a workspace, atomically."""
    content = json.dumps({"kind": "workspace", "version": WORKSPACE}) + "\n"
    write_file(folder / MARKER, lambda out: out.write(content.encode()))


def _unreadable(folder: Path, error: OSError) -> UsageFault:
    return UsageFault(
        f"the workspace {folder} cannot be opened: {(error.strerror or str(error)).lower()}",
        code="NOT_A_WORKSPACE",
    )


def _check_kinds(folder: Path) -> None:
    """Raise UsageFault when a file or folder of the workspace is a symbolic link, or of another kind than
    the console creates: it could lead outside of the workspace.
    """
    for names, is_kind, kind in ((_FILES, stat.S_ISREG, "file"), (_FOLDERS, stat.S_ISDIR, "folder")):
        for name in names:
            path = folder / name
            try:
                mode = os.lstat(path).st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
            if not is_kind(mode):
                what = "a symbolic link" if stat.S_ISLNK(mode) else f"not a {kind}"
                raise UsageFault(
                    f"{path} is {what}",
                    detail=f"a workspace needs its own {kind} there",
                    hint="move it away, or name another workspace: -w DIR",
                    code="NOT_A_WORKSPACE",
                )


def _check_owner(folder: Path) -> None:
    """Raise UsageFault when somebody else owns a part of the workspace or may write to it."""
    empty = not os.listdir(folder)
    for path in (folder, *(folder / n for n in (*_FILES, *_FOLDERS))):
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if status.st_uid != os.geteuid():
            why, hint = "another user owns it", ""
        elif status.st_mode & 0o022 and not empty:
            why, hint = "other users may write to it", f"chmod -R go-w '{folder}' if all in it is yours, or "
        else:
            continue
        raise UsageFault(
            f"the workspace {folder} is not trusted",
            detail=f"{path}: {why}, and a workspace can contain code that would run as you",
            hint=f"{hint}--trust-workspace opens it anyway",
            code="UNTRUSTED_WORKSPACE",
        )


def _check_marker(folder: Path, names: list[str]) -> bool:
    marker = folder / MARKER
    if MARKER in names:
        content = _read(marker)
        if content is None or content.get("kind") != "workspace":
            raise UsageFault(
                f"{folder} is not a workspace: {marker} is not the marker of one",
                hint="-w DIR names another folder, which may be new",
                code="NOT_A_WORKSPACE",
            )
        check_version(content, WORKSPACE, f"the workspace {folder}")
    elif _is_begun(folder, names):
        return False
    else:
        listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise UsageFault(
            f"{folder} is not a workspace: it has no {MARKER}, and is not empty",
            detail=f"it holds {listed}",
            hint="-w DIR names another folder, which may be new",
            code="NOT_A_WORKSPACE",
        )
    check_version(_read(folder / "status.json") or {}, STATUS, f"{folder / 'status.json'}")
    return True


def _is_begun(folder: Path, names: list[str]) -> bool:
    """Whether a folder is empty, or contains only what a console writes before the marker."""
    if not names:
        return True
    begun = {"lock", MARKER + ".part", "run"}
    lock, run = folder / "lock", folder / "run"
    return (
        set(names) <= begun
        and lock.exists()
        and lock.stat().st_size == 0
        and not (run.exists() and any(run.iterdir()))
    )


def _read(file: Path) -> dict[str, Any] | None:
    """The content of a small JSON file; None when it is not one. Raises OSError."""
    try:
        if file.stat().st_size > _LARGEST and file.name == MARKER:
            return None
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
