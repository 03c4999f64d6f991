"""Opens the prompt: on a session of its own, which can detach, or on the server of the workspace."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.cli.command_line import CommandLine
from streamsql.cli.open_session import open_session
from streamsql.cli.open_workspace import attached, held_workspace
from streamsql.cli.terminal_parent import Parent, fork_console
from streamsql.errors import EngineFault, Source
from streamsql.output.console_messages import Messages
from streamsql.output.terminal import window
from streamsql.shell.bare_terminal import greeting

if TYPE_CHECKING:
    from streamsql.output.printer import Printer
    from streamsql.runtime.console_session import ConsoleSession
    from streamsql.runtime.session import Session
    from streamsql.server.client import RemoteSession
    from streamsql.server.listener import Server


def open_prompt(line: CommandLine, messages: Messages, init: Source | None) -> int:
    """Open the prompt on a session of its own. init: a script to run first. Returns the exit code."""
    parent = fork_console()
    at_once = greeting(messages, prompt=init is None and not line.resume)
    with held_workspace(line, messages) as (run, folder), at_once as typed:
        from streamsql.shell.prompt import Prompt

        sessions: list[Session] = []
        servers: list[Server] = []

        def open_both() -> tuple[ConsoleSession, Printer]:
            printer = _printer(messages)
            sessions.append(open_session(line, printer, run, folder, interactive=True))
            return sessions[0], printer

        def detach() -> None:
            from streamsql.cli.serve_command import open_server

            assert folder is not None  # DETACH refuses a temporary workspace
            servers.append(open_server(sessions[0], folder.absolute(), messages))

        can_detach = folder is not None and not line.read_only and not line.server
        shell = Prompt(
            open_both, messages, resume=line.resume, detach=detach if can_detach else None, typed=typed
        )
        try:
            code = shell.run(init)
        except BaseException:
            shell.close()
            raise
        if not shell.detached:
            shell.close()
            if going_on := "".join(session.left_running() for session in sessions):
                messages.say(going_on)
            return code
        assert folder is not None
        return _go_on(parent, sessions[0], servers[0], folder, messages)


def attached_prompt(line: CommandLine, messages: Messages, init: Source | None) -> int:
    """Open the prompt on the server of a workspace; it is attached to after the first prompt is shown.
    Returns the exit code.
    """
    clients: list[RemoteSession] = []

    def open_both() -> tuple[ConsoleSession, Printer]:
        client = attached(line, messages, interactive=True)
        if client is None:
            raise EngineFault(
                "the server has ended", hint="streamsql opens the workspace", code="SERVER_LOST"
            )
        clients.append(client)
        return client, _printer(messages)

    with greeting(messages, prompt=init is None and not line.resume) as typed:
        from streamsql.shell.prompt import Prompt

        shell = Prompt(open_both, messages, resume=line.resume, typed=typed)
        try:
            return shell.run(init)
        finally:
            for client in clients:
                client.close()
                if client.attached:
                    server = client.calls.server
                    messages.say(f"the queries go on in the server (process {server.process})")


def _printer(messages: Messages) -> Printer:
    from streamsql.output.printer import Printer

    return Printer.beside(messages, lambda: window().lines)


def _go_on(parent: Parent, session: Session, server: Server, folder: Path, messages: Messages) -> int:
    """Free the terminal, and serve clients until the server is told to end."""
    from streamsql.cli.hosting_loop import HostingLoop
    from streamsql.cli.serve_command import LOG

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # of the terminal, which may come late
    # Before the terminal is free: who sees that may send a signal at once.
    loop = HostingLoop(session, server, messages)
    loop.obey_signals()
    session.parts.config.interactive = False
    running = session.summary().running
    messages.say(
        f"detached: {running} {'query goes' if running == 1 else 'queries go'} on in process "
        f"{server.status()['process']}; streamsql -w '{folder.absolute()}' attaches"
    )
    parent.detach(str(folder / LOG))
    messages.width = lambda: 0
    messages.terminal.timed = True
    return loop.run(lambda cancel: 0)
