"""The workspace of the command line: whether it may be opened, its lock, and the server that holds it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.cli.command_line import CommandLine
from streamsql.errors import StreamsqlError, UsageFault, reason_of
from streamsql.feature_registry import extensions, flags
from streamsql.output.console_messages import Messages

if TYPE_CHECKING:
    from streamsql.server.client import RemoteSession

_READ_ONLY_HINT = "; --read-only shows this one"


def check_workspace(line: CommandLine) -> bool:
    """Whether there is a workspace; changes nothing. Raises faults when it must not be opened, or when its
    catalog cannot be read: folders that it does not name would be removed as leftovers.
    """
    from streamsql.runtime.workspace import marker
    from streamsql.runtime.workspace.workspace_files import CONNECT_RECORD, read_statements

    folder = line.folder
    exists = marker.check(folder, trusted=line.trusted)
    if exists:
        if (folder / CONNECT_RECORD).exists():  # few workspaces have one, and the prompt need not import it
            _check_connect(folder, line.server.shown if line.server else "")
        read_statements(folder)
    return exists


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


def workspace_to_read(line: CommandLine) -> Path:
    """A workspace that is there. Raises UsageFault when there is none, or it must not be opened."""
    folder = line.folder
    if not check_workspace(line):
        raise UsageFault(
            f"there is no workspace {folder}", hint="-w DIR names another one", code="NOT_A_WORKSPACE"
        )
    return folder


@contextlib.contextmanager
def held_workspace(line: CommandLine, messages: Messages) -> Iterator[tuple[Path, Path | None]]:
    """(the folder of checkpoints and the like, the workspace that keeps the definitions), held against
    other consoles. Without a workspace the folder is gone at the end.
    """
    from streamsql.runtime.workspace.folder import Held, Workspace

    folder = line.folder
    if line.read_only:
        if line.resume:
            raise UsageFault("--resume and --read-only exclude each other")
        folder = workspace_to_read(line)
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary), folder
        return
    try:
        check_workspace(line)
        workspace = Workspace(folder, trusted=line.trusted)
    except (Held, OSError, StreamsqlError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"the workspace {folder} cannot be opened: {reason_of(error)}"
        if line.workspace and isinstance(error, StreamsqlError):
            raise
        if line.workspace:
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
def working_place(line: CommandLine, messages: Messages) -> Iterator[tuple[Path, Path | None]]:
    """Where scripts run: as `held_workspace` gives it."""
    if line.workspace or line.read_only:
        with held_workspace(line, messages) as place:
            yield place
        return
    _tell_of_console(line.folder, messages)
    with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary), None


def _tell_of_console(folder: Path, messages: Messages) -> None:
    """Say that the workspace of a script is a temporary one, if a console holds the default one and has
    queries: the script does not see them.
    """
    from streamsql.guard import informing

    if not (folder / "lock").exists():
        return
    note = informing(lambda: console_beside(folder), "")
    if note:
        messages.say(f"note: {note}")


def console_beside(folder: Path) -> str:
    """That a script does not see the queries of a workspace which a console holds; "" where there is none."""
    import json

    from streamsql.results import counted
    from streamsql.runtime.workspace.folder import holder

    who = holder(folder)
    number = len(json.loads((folder / "status.json").read_text("utf-8"))["queries"]) if who else 0
    if not number:
        return ""
    return (
        f"this script has a temporary workspace; {folder}, held by {who}, has {counted(number, 'query')} "
        "that it does not see"
    )


# ---- the server of a workspace ------------------------------------------------------------


def has_server(line: CommandLine) -> bool:
    """Whether a server listens on the workspace; known before the first prompt, so it imports little."""
    folder = line.folder
    if not (folder / "server.sock").exists():
        return False
    from streamsql.runtime.workspace import marker
    from streamsql.server.socket_frames import connect

    marker.check(folder, trusted=line.trusted)  # it may be another user's
    try:
        connect(folder).close()
    except OSError:
        return False
    return True


_OF_SPARK = ("master", "conf", "packages", "jars", "java")
"""The flags that only count when Spark is started."""


def attached(
    line: CommandLine, messages: Messages, *, interactive: bool, arrow: bool = False
) -> RemoteSession | None:
    """The session in the server of the workspace; None when no server holds it. Raises UsageFault for a
    server that does not take this client. arrow: as in Config.
    """
    if not (interactive or line.workspace or line.read_only):
        return None
    folder = line.folder.absolute()
    if not (folder / "server.sock").exists():
        return None
    from streamsql.runtime.workspace import marker
    from streamsql.server.client import RemoteSession
    from streamsql.server.client_calls import Calls

    marker.check(folder, trusted=line.trusted)  # it may be another user's
    hello = {
        "interactive": interactive,
        "arrow": arrow,
        "read_only": line.read_only,
        "preferences": messages.preferences.layers(),
    }
    try:
        calls = Calls(folder, hello)
    except (FileNotFoundError, ConnectionRefusedError):
        return None  # a server that was killed has left its socket
    except OSError as error:
        raise UsageFault(
            f"the server of {folder} cannot be attached to: {reason_of(error)}",
            hint="streamsql ps lists the servers",
            code="WORKSPACE_IN_USE",
        ) from None
    given = [f"--{name.replace('_', '-')}" for name in _OF_SPARK if line.flags[name]]
    if given:
        one = len(given) == 1
        messages.warn(
            f"{', '.join(given)} {'is' if one else 'are'} not applied: the server has started Spark already"
        )
    for flag in flags():
        if line.flags[flag.removeprefix("--").replace("-", "_")]:
            messages.warn(f"{flag} is not applied: it is a flag of streamsql serve, which holds the session")
    session = RemoteSession(calls, messages.preferences)
    session.variables.update(line.variables)
    return session
