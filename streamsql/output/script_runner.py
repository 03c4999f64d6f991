"""Runs scripts (files, -e and standard input) statement by statement. Returns an exit code."""

from __future__ import annotations

import os
from pathlib import Path

from streamsql.errors import Cancelled, InputFault, Source, StreamsqlError
from streamsql.guard import internal
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.statements.session import SourceFile
from streamsql.output.printer import Printer
from streamsql.output.script_files import read_file
from streamsql.results import Leave, Started, discard
from streamsql.runtime.console_session import ConsoleSession, left_open
from streamsql.runtime.engine.cancel import CancelToken


def included(statement: SourceFile, written: Written, opened: list[str]) -> Source:
    """The file that a SOURCE names, searched next to its own script first.

    opened: the scripts that include that script. Raises InputFault when the file does not exist or is one
    of them.
    """
    path = Path(statement.path.value)
    if not path.is_absolute() and Path(written.source.name).is_file():
        beside = Path(written.source.name).parent / path
        path = beside if beside.is_file() else path
    around = {os.path.realpath(name) for name in (*opened, written.source.name)}
    if os.path.realpath(path) in around:
        raise InputFault(
            f"{path} includes itself",
            detail="a SOURCE leads back to the file",
            span=statement.path.span,
            code="CIRCULAR_SCRIPT",
        )
    try:
        return read_file(str(path), missing=InputFault)
    except StreamsqlError as error:
        error.span = statement.path.span
        raise


class ScriptRunner:
    """Runs sources in one session. keep_going: --on-error continue. cancel: cancels the current statement
    and ends the script.
    """

    def __init__(
        self, session: ConsoleSession, printer: Printer, cancel: CancelToken, *, keep_going: bool = False
    ) -> None:
        self.session = session
        self.printer = printer
        self.keep_going = keep_going
        self.cancel = cancel
        self.exit_code = 0
        self.failure_code = 0
        """The exit code of the first failure that was not caused by a cancellation."""
        self.only_queries_left = False
        """Whether all statements have ended, and only queries with a durable sink still run."""
        self.detach = False
        """Whether the last statement was DETACH."""
        self._cut_short = False
        self._open: list[str] = []
        self._started: list[str] = []
        self._durable: list[str] = []
        """Of the queries that were started, those with a durable sink."""

    def run(self, sources: list[Source]) -> int:
        """Run all sources, then wait for the queries with a durable sink. Returns the exit code."""
        for source in sources:
            if not self.run_source(source):
                break
        stopped_by_error = self.exit_code and not self.keep_going
        if not stopped_by_error:
            self.only_queries_left = not self._cut_short
            self.printer.note(self.session.without_end(self._durable))
            self.printer.note(self.session.await_queries(self._durable, self.cancel))
            self.printer.note(self.session.why_silent(self._started, self.cancel))
        self.report_failures()
        self.printer.note(left_open(self.session.summary()))
        if self.cancel.happened:
            self.printer.say(f"cancelled: {self.cancel.happened}")
        return self.exit_code

    def run_source(self, source: Source) -> bool:
        """Run one source. False: the script ends."""
        try:
            statements = split_script(source, recover=self.keep_going)
        except StreamsqlError as error:
            return self._failed(error)
        return all(self.run_statement(w) for w in statements)

    def run_statement(self, written: Written) -> bool:
        """Parse and execute one statement and show its result or error. False: the script ends."""
        if self.cancel.cancelled:
            self._cut_short = True
            return False
        self.session.set_folder(str(Path(written.source.name).parent))
        try:
            statement = parse(written, self.session.variables, translation=self.session.translation)
            if isinstance(statement, SourceFile):
                return self._include(statement, written)
            self.cancel.only_reads = statement.read_only and not statement.changes_workspace
            result = self.session.execute(statement, self.cancel)
            self._place(result, written)
            if self.cancel.abandoned or (self.cancel.cancelled and self.cancel.only_reads):
                discard(result)  # the prompt may show the next statement already
                raise Cancelled("cancelled")
            self.printer.show(result, check=self.cancel.check)
        except StreamsqlError as error:
            return self._failed(error.at(written.source, written.span))
        except OSError:
            raise  # the reader of the output is gone
        except Exception as error:
            return self._failed(internal(error).at(written.source, written.span))
        self.detach = isinstance(result, Leave) and result.detach
        return not isinstance(result, Leave)

    def _place(self, result: object, written: Written) -> None:
        """Record the statement that started a query, for the error it may end with."""
        if isinstance(result, Started):
            self.session.place(result, written.source, written.span)
            self._started += [name.casefold() for name in result.queries]
            if result.durable:
                self._durable += [name.casefold() for name in result.queries]

    def _include(self, statement: SourceFile, written: Written) -> bool:
        source = included(statement, written, self._open)
        self._open.append(written.source.name)
        try:
            return self.run_source(source)
        finally:
            self._open.pop()

    def _failed(self, error: StreamsqlError) -> bool:
        if not isinstance(error, Cancelled) and not self.cancel.abandoned:
            self.printer.error(error)
        if isinstance(error, Cancelled):
            self.cancel.happened = error.message.removeprefix("cancelled").removeprefix(": ")
        self.session.reported(error)
        self.exit_code = self.exit_code or error.exit_code
        if self.cancel.cancelled:
            self._cut_short = True
        else:
            self.failure_code = self.failure_code or error.exit_code
        return self.keep_going

    def report_failures(self) -> None:
        """Report the failed queries that were not reported before."""
        for error in self.session.failures():
            self._failed(error)
            self.failure_code = self.failure_code or error.exit_code
