"""The workspace of the command line: whether it may be opened, and the lock on it."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamsql.errors import StreamsqlError, UsageFault
from streamsql.feature_registry import extensions
from streamsql.output.messages import Messages

_READ_ONLY_HINT = "; --read-only shows this one"


def workspace_folder(options: argparse.Namespace) -> Path:
    from streamsql.config.folders import data_folder

    if options.workspace:
        return Path(options.workspace)
    server = getattr(options, "server", None)
    return data_folder() / (f"remote/{server.host}_{server.port}" if server else "workspace")


def check_workspace(options: argparse.Namespace) -> bool:
    """Whether there is a workspace; changes nothing. Raises faults when it must not be opened, or when its
    catalog cannot be read: folders that it does not name would be removed as leftovers.
    """
    from streamsql.runtime.workspace import marker
    from streamsql.runtime.workspace.workspace_files import CONNECT_RECORD, read_statements

    folder = workspace_folder(options)
    there = marker.check(folder, trusted=options.trust_workspace)
    if there:
        if (folder / CONNECT_RECORD).exists():  # few workspaces have one, and the prompt need not import it
            _check_connect(folder, options.server.shown if getattr(options, "server", None) else "")
        read_statements(folder)
    return there


def _check_connect(folder: Path, server: str) -> None:
    """Raise UsageFault when the queries of a workspace run on another Spark Connect server, "" for none."""
    check = next(extensions("connect workspace"), None)
    if check is None:
        raise UsageFault(
            f"the queries of the workspace {folder} run on a Spark Connect server",
            hint="a console with --remote, or another workspace: -w DIR",
            code="NO_CONNECT",
        )
    check(folder, server)


def workspace_to_read(options: argparse.Namespace) -> Path:
    """A workspace that is there. Raises UsageFault when there is none, or it must not be opened."""
    folder = workspace_folder(options)
    if not check_workspace(options):
        raise UsageFault(
            f"there is no workspace {folder}", hint="-w DIR names another one", code="NOT_A_WORKSPACE"
        )
    return folder


@contextlib.contextmanager
def held_workspace(options: argparse.Namespace, messages: Messages) -> Iterator[tuple[Path, Path | None]]:
    """(the folder of checkpoints and the like, the workspace that keeps the definitions), held against
    other consoles. Without a workspace the folder is gone at the end.
    """
    from streamsql.runtime.workspace.folder import Held, Workspace

    folder = workspace_folder(options)
    if options.read_only:
        if options.resume:
            raise UsageFault("--resume and --read-only exclude each other")
        folder = workspace_to_read(options)
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary), folder
        return
    try:
        check_workspace(options)
        workspace = Workspace(folder, trusted=options.trust_workspace)
    except (Held, OSError, StreamsqlError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"the workspace {folder} cannot be opened: {(error.strerror or why).lower()}"
        if options.workspace and isinstance(error, StreamsqlError):
            raise
        if options.workspace:
            raise UsageFault(
                why, hint=f"another folder: -w DIR{_READ_ONLY_HINT}", code="WORKSPACE_IN_USE"
            ) from None
        if isinstance(error, StreamsqlError):
            messages.error(error)
            why = f"the workspace {folder} is not opened"
        messages.warn(
            f"{why}; this console uses a temporary workspace (-w DIR names a lasting one{_READ_ONLY_HINT})"
        )
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary), None
        return
    try:
        yield workspace.run, workspace.folder
    finally:
        workspace.close()


@contextlib.contextmanager
def working_place(options: argparse.Namespace, messages: Messages) -> Iterator[tuple[Path, Path | None]]:
    """Where scripts run: as `held_workspace` gives it."""
    if options.workspace or options.read_only:
        with held_workspace(options, messages) as place:
            yield place
        return
    _tell_of_console(workspace_folder(options), messages)
    with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary), None


def _tell_of_console(folder: Path, messages: Messages) -> None:
    """Say that the workspace of a script is a temporary one, if a console holds the default one and has
    queries: the script does not see them.
    """
    from streamsql.guard import informing

    if not (folder / "lock").exists():
        return
    told = informing(lambda: console_beside(folder), "")
    if told:
        messages.say(f"note: {told}")


def console_beside(folder: Path) -> str:
    """That a script does not see the queries of a workspace which a console holds; "" where there is none."""
    import json

    from streamsql.runtime.workspace.folder import holder

    who = holder(folder)
    number = len(json.loads((folder / "status.json").read_text("utf-8"))["queries"]) if who else 0
    if not number:
        return ""
    queries = "1 query" if number == 1 else f"{number} queries"
    return (
        f"this script has a temporary workspace; {folder}, held by {who}, has {queries} that it does not see"
    )
