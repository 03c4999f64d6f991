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
from streamsql.features.project.comparison import Project, written
from streamsql.features.project.plan_command import (
    CHANGES,
    FAILED,
    NOTHING,
    as_text,
    line_of,
    project_parser,
    read,
)
from streamsql.features.project.project_folder import TESTS
from streamsql.features.project.script_of_changes import StagedChange, Step, steps
from streamsql.language.tokens import quote_name
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.results import Compared, counted
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.run import GOING_ON
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
    parser.add_argument(
        "--max-changed-rows",
        type=int,
        metavar="NUMBER",
        help="leave a staged change of a live table or a sink staged if it changes more rows",
    )
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
    if asks and not _agreed("apply these changes?"):
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
        code = _Run(session, printer, project, options.max_changed_rows, asks=asks).run()
    if not in_server:
        printer.say(f"the queries are stopped; streamsql serve -w {line.folder} resumes them")
    return code


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
        session.parts.engine.begin_start()
        try:
            yield session, False
        finally:
            session.close(LEAVING)


class _Run:
    """Executes the statements that change a workspace. limit: how many rows of a live table a change may
    change, None for any number; asks: whether a person at the terminal says which changes are promoted.
    """

    def __init__(
        self, session: ConsoleSession, printer: Printer, project: Project, limit: int | None, *, asks: bool
    ) -> None:
        self._session = session
        self._printer = printer
        self._project = project
        self._limit = limit
        self._asks = asks
        self._runner = ScriptRunner(session, printer, CancelToken())

    def run(self) -> int:
        """Execute them up to the first that fails, or is not promoted. Returns the exit code."""
        left = list(steps(self._project))
        changes = [step for step in left if isinstance(step, StagedChange)]
        if all(self._runs(change) for change in changes):
            while left and self._done(left[0]):
                del left[0]
        if not left:
            self._printer.say("applied")
            return NOTHING
        again = (step.queries for step in left if isinstance(step, Step) and not step.drops)
        if names := [name for queries in again for name in queries]:
            what = "not started again with what has changed"
            self._printer.warn(f"{what}: {', '.join(names)}")
        self._printer.say(f"streamsql plan {self._project.folder} shows what is left to do")
        return self._runner.exit_code or CHANGES

    def _runs(self, change: StagedChange) -> bool:
        """Start the queries that are to be compared, as they were before anything is changed."""
        return all(
            self._status(table) in (*GOING_ON, "FAILED")
            or self._runner.run_statement(written(f"START QUERY {quote_name(table)}"))
            for table in change.queries
        )

    def _status(self, query: str) -> str:
        facts = self._session.query_facts()
        return next((f.status for f in facts if f.query.casefold() == query.casefold()), "")

    def _done(self, step: Step | StagedChange) -> bool:
        """Do one step. Whether it is done."""
        if isinstance(step, StagedChange):
            failed = self._limit is None and any(self._status(query) == "FAILED" for query in step.queries)
            if failed and step.replace:
                return self._done(step.replace)
            return self._staged(step, compares=not failed and not step.endless)
        ran = [query for query in step.queries if self._status(query) in GOING_ON]
        done = 0
        try:
            while done < len(step.do) and self._runner.run_statement(step.do[done]):
                done += 1
        finally:  # after Ctrl-C, too
            failed = done < len(step.do)
            for _ in range(min(done, step.drops) if failed or step.brings_back else 0):
                self._runner.run_statement(written("UNDROP"))
            for query in ran if failed and step.drops else ():
                self._runner.run_statement(written(f"START QUERY {quote_name(query)}"))
        return not failed

    def _staged(self, change: StagedChange, *, compares: bool) -> bool:
        """Stage a change, compare it, and promote it. Whether it is promoted."""
        run, name = self._runner.run_statement, change.name
        if not all(map(run, change.stage)):
            return False
        differing = 0
        if compares:
            if not run(change.compare):
                return False
            differing = self._printer.last.differing if isinstance(self._printer.last, Compared) else 0
        why = ""
        if self._limit is not None and change.endless:
            why = "an input never ends, so that there is no comparison"
        elif self._limit is not None and differing > self._limit:
            why = f"{counted(differing, 'row')} changed, more than --max-changed-rows {self._limit}"
        elif self._asks and not _agreed(f"promote {name}?"):
            why = "not approved"
        if why:
            is_are = "are" if "," in name else "is"
            self._printer.say(f"{name} {is_are} left staged: {why}")
            self._printer.say(f"{change.promote.text}; puts it in use, {change.drop} removes it")
            return False
        ran = [query for query in change.stopped if self._status(query) in GOING_ON]
        stops = [written(f"STOP QUERY {quote_name(query)}") for query in ran]
        if not all(map(run, (*stops, change.promote))):
            for query in ran:
                run(written(f"START QUERY {quote_name(query)}"))
            return False
        return all(map(self._done, change.then))


def _agreed(question: str) -> bool:
    """Whether a person at the terminal agrees."""
    try:
        return input(f"{question} (y/n) ").strip().casefold() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False


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
