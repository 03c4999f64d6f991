"""`streamsql apply`: tests a folder, and changes a workspace so that it has what the folder defines."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamsql.cli.command_line import Command, CommandLine, add_flags
from streamsql.cli.open_session import open_session
from streamsql.cli.open_workspace import attached, held_workspace
from streamsql.config.preferences import Preferences
from streamsql.errors import RuleFault, UsageFault
from streamsql.features.project.plan_command import (
    CHANGES,
    FAILED,
    NOTHING,
    Project,
    as_text,
    line_of,
    project_parser,
    read,
)
from streamsql.features.project.project_folder import TESTS
from streamsql.features.project.script_of_changes import statements
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.stop import LEAVING
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.workspace_files import CATALOG

_OF_TESTS = ("master", "packages", "jars", "java", "config", "color")
_SEVERAL = {"define": "--define", "conf": "--conf"}
"""The flags that are those of `streamsql test`, too."""


def _parser() -> argparse.ArgumentParser:
    parser = project_parser(
        "apply",
        "Compare a folder of SQL files with a workspace, run its tests, and change the workspace so that it "
        "has what the folder defines.",
        "0 applied, or nothing to do, 3 there are changes that are not applied",
    )
    parser.add_argument("--yes", action="store_true", help="apply the changes without a question")
    add_flags(parser, "--master", "--conf", "--packages", "--jars", "--java")
    return parser


def _apply(options: Namespace, preferences: Preferences) -> int:
    """Run `streamsql apply`. Returns the exit code."""
    line = line_of(options, preferences)
    printer = Printer(preferences, sys.stdout, sys.stderr)
    before = _catalog_of(line)
    project = read(options, line, printer)
    if project is None:
        return FAILED
    print(as_text(project), flush=True)
    if not project.comparison.changes:
        return NOTHING
    asks = not options.yes
    if asks and not (sys.stdin.isatty() and sys.stdout.isatty()):
        printer.say("nothing is applied: --yes applies the changes")
        return CHANGES
    if not _passes_tests(project, options, printer):
        return FAILED
    if asks and input("apply these changes? (y/n) ").strip().casefold() not in ("y", "yes"):
        printer.say("nothing is applied")
        return CHANGES
    with _session(line, printer) as (session, in_server):
        if _catalog_of(line) != before:
            raise RuleFault(
                f"the workspace {line.folder} has changed meanwhile",
                hint=f"streamsql apply {project.folder}, again",
                code="WORKSPACE_CHANGED",
            )
        settings = [change.entry.name for change in project.comparison.changes if change.key[0] == "setting"]
        if in_server and settings:
            raise UsageFault(
                f"a client cannot change the settings of a server: {', '.join(settings)}",
                hint="STOP SERVER, streamsql apply, and streamsql serve again",
                code="WORKSPACE_IN_USE",
            )
        runner = ScriptRunner(session, printer, CancelToken())
        if not all(runner.run_statement(statement) for statement in statements(project)):
            printer.say(
                f"the changes before this one are applied: streamsql plan {project.folder} shows the rest"
            )
        elif not in_server:
            printer.say(f"applied; streamsql serve -w {line.folder} resumes the queries")
        else:
            printer.say("applied")
        return runner.exit_code


COMMAND = Command(_parser, _apply)


def _catalog_of(line: CommandLine) -> bytes:
    """The definitions of the workspace as they are in its file."""
    try:
        return (line.folder / CATALOG).read_bytes()
    except OSError:
        return b""


@contextmanager
def _session(line: CommandLine, printer: Printer) -> Iterator[tuple[ConsoleSession, bool]]:
    """(the session of the workspace, whether it is that of its server). Raises UsageFault when another
    console holds the workspace.
    """
    client = attached(line, printer, interactive=False)
    if client is not None:
        try:
            yield client, True
        finally:
            client.close()
        return
    with held_workspace(line, printer) as (folder, workspace):
        session = open_session(line, printer, folder, workspace)
        for text in reopen(session.parts).lines():
            printer.say(text)
        session.engine.begin_start()
        try:
            yield session, False
        finally:
            session.close(LEAVING)


# ---- tests --------------------------------------------------------------------------------


def _passes_tests(project: Project, options: Namespace, printer: Printer) -> bool:
    """Run the tests of the folder, each with all of the project. Whether none has failed."""
    if not any(project.folder.rglob(f"*{TESTS}")):
        printer.say(f"there is no file *{TESTS} in {project.folder}: nothing is tested")
        return True
    flags = [f"--{name}={value}" for name in _OF_TESTS if (value := getattr(options, name))]
    flags += [f"{flag}={value}" for name, flag in _SEVERAL.items() for value in getattr(options, name)]
    flags += ["--no-config"] * options.no_config
    folders = {str(Path(part.place[0]).parent.absolute()): None for part in project.parts}
    path = os.pathsep.join((*folders, *filter(None, [os.environ.get("PYTHONPATH")])))
    with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
        script = Path(temporary, "project.sql")  # the statements in the order in which they can be executed
        script.write_text("".join(f"{part.written.text};\n\n" for part in project.parts), "utf-8")
        command = [sys.executable, "-m", "streamsql", "test", f"--file={script}", *flags, str(project.folder)]
        code = subprocess.run(command, check=False, env=os.environ | {"PYTHONPATH": path}).returncode
    if code:
        printer.say(f"nothing is applied: streamsql test has ended with exit code {code}")
    return code == 0
