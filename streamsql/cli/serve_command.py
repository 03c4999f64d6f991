"""`streamsql serve`: the session of a workspace without a terminal."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from streamsql.cli.command_line import CommandLine
from streamsql.cli.hosting_loop import HostingLoop
from streamsql.cli.open_session import open_session, scripts_of
from streamsql.cli.open_workspace import attached, held_workspace
from streamsql.cli.server_script import ServerScripts
from streamsql.cli.terminal_parent import redirect
from streamsql.errors import StartFault, StreamsqlError, UsageFault, reason_of
from streamsql.output.console_messages import Messages
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import Session
from streamsql.runtime.workspace.folder import write_holder
from streamsql.runtime.workspace.reopen import reopen
from streamsql.server.listener import Server

LOG = "server.log"
SCRIPTS = 60.0
"""The seconds that --detach waits for the scripts."""


def serve(line: CommandLine, printer: Printer) -> int:
    """Run a server until it is told to end. Returns the exit code; raises faults when it cannot start."""
    if line.read_only or line.check:
        raise UsageFault("a server cannot be started with --read-only or --check")
    sources = scripts_of(line) if line.inputs else []
    line = replace(line, workspace=str(line.folder.absolute()))  # the default one is not replaced, either
    if attached(line, printer, interactive=False):
        raise UsageFault(
            f"a server holds {line.workspace} already",
            hint=f"streamsql -w '{line.workspace}' attaches to it",
            code="WORKSPACE_IN_USE",
        )
    background = _Background(line.folder) if line.detach else None
    with held_workspace(line, printer) as (run, folder):
        assert folder is not None
        session = open_session(line, printer, run, folder)
        opened = reopen(session.parts)
        session.parts.workspace.resuming = True
        session.parts.engine.begin_start()
        server = open_server(session, folder, printer)
        printer.say(f"server of {folder}, process {os.getpid()}")
        for text in opened.lines(resumes=True):
            printer.say(text)
        session.on_news(printer.warn)
        loop = HostingLoop(session, server, printer, line.status_file)

        def begin(cancel: CancelToken) -> int:
            try:
                code = run_scripts(cancel)
            except StreamsqlError as error:
                printer.error(error)
                code = error.exit_code
            if background is not None:
                background.begun(code)
            return code

        def run_scripts(cancel: CancelToken) -> int:
            loop.resume()
            scripts = ServerScripts(session.parts)
            runner = ScriptRunner(scripts, printer, cancel, keep_going=line.keep_going)
            for source in sources:
                if not runner.run_source(source):
                    break
            failed = runner.failure_code
            return 0 if line.keep_going and failed != StartFault.exit_code else failed

        if background is not None:
            background.begin()
            printer.terminal.timed = True
        return loop.run(begin)


def open_server(session: Session, folder: Path, messages: Messages) -> Server:
    """The server of a workspace that this process holds. Raises UsageFault when it cannot be opened."""
    try:
        server = Server(session, folder, messages.warn)
    except OSError as error:
        raise UsageFault(
            f"the socket of {folder} cannot be created: {reason_of(error)}", code="NOT_DETACHED"
        ) from None
    with suppress(OSError):
        write_holder(folder, "a server")
    return server


class _Background:
    """A server that goes on in a child process. The parent waits for its scripts, so that its exit code tells
    of their failure, and whoever comes after it sees what they have defined.
    """

    def __init__(self, folder: Path) -> None:
        """Go on in the child; in the parent this does not return. folder: of the workspace."""
        self.folder = folder
        sys.stdout.flush()
        sys.stderr.flush()
        reading, self._writing = os.pipe()
        log = self.folder / LOG
        written = log.stat().st_size if log.exists() else 0
        child = os.fork()
        if child:
            os.close(self._writing)
            os._exit(self._wait(child, reading, log, written))
        os.close(reading)
        os.setsid()

    def begin(self) -> None:
        """The server accepts clients."""
        redirect(str(self.folder / LOG))
        os.write(self._writing, bytes((0,)))

    def begun(self, code: int) -> None:
        """The queries are resumed and the scripts have run. code: the exit code, if it is not 0."""
        with suppress(OSError):  # the parent does not wait any more
            os.write(self._writing, bytes((code,)))
        os.close(self._writing)

    def _wait(self, child: int, reading: int, log: Path, written: int) -> int:
        """In the parent: the exit code. written: the bytes that were in the log before the child ran."""
        if not os.read(reading, 1):
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1
        code = os.read(reading, 1) if select.select([reading], [], [], SCRIPTS)[0] else None
        if code is None:
            self._say(f"its scripts are not done after {SCRIPTS:.0f} s; {log} tells of them")
        elif code != bytes((0,)):
            with suppress(OSError):
                self._say(log.read_bytes()[written:].decode("utf-8", "replace").rstrip())
            return code[0] if code else 1
        self._say(
            f"it goes on in the background: streamsql -w '{self.folder}' attaches, STOP SERVER; ends it"
        )
        return 0

    def _say(self, words: str) -> None:
        print(words, file=sys.stderr, flush=True)
