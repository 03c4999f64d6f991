"""Attaches to the server of a workspace, if it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsql import feature_registry
from streamsql.cli.command_line import CommandLine
from streamsql.errors import UsageFault, reason_of
from streamsql.output.console_messages import Messages

if TYPE_CHECKING:
    from streamsql.server.client import RemoteSession


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


_OF_SPARK = ("master", "conf", "packages", "jars", "java", "warm")
"""The flags that only count when Spark is started."""


def attached(line: CommandLine, messages: Messages, *, interactive: bool) -> RemoteSession | None:
    """The session in the server of the workspace; None when no server holds it. Raises UsageFault for a
    server that does not take this client.
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
    for flag in feature_registry.flags():
        if line.flags[flag.removeprefix("--").replace("-", "_")]:
            messages.warn(f"{flag} is not applied: it is a flag of streamsql serve, which holds the session")
    session = RemoteSession(calls, messages.preferences)
    session.variables.update(line.variables)
    return session
