"""Running scripts: files, -e and standard input, statement by statement, to an exit code."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from streamsql.errors import Cancelled, InputFault, Source, StreamsqlError, UsageFault
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Define, Exit, SourceFile
from streamsql.output.printer import Printer
from streamsql.plan.check import Checker
from streamsql.plan.context import Context
from streamsql.results import Leave, Started
from streamsql.runtime.session import Session

MAX_DEPTH = 20


def read_file(path: str, *, missing: type[StreamsqlError] = UsageFault) -> Source:
    """A script file as a Source. Raises `missing` when it is not there, InputFault when not UTF-8."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise missing(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    return decode(path, data)


def decode(name: str, data: bytes) -> Source:
    """Bytes of a script as a Source. Raises InputFault with line and column of the first bad byte."""
    try:
        return Source(name, data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise InputFault(
            f"{name}:{line}:{column}: the script is not UTF-8 (byte 0x{data[error.start]:02x})",
            hint=f"iconv -f latin1 -t utf-8 {name} > new.sql",
        ) from None


class ScriptRunner:
    """Runs sources in one session. keep_going: --on-error continue."""

    def __init__(self, session: Session, printer: Printer, *, keep_going: bool = False) -> None:
        self.session = session
        self.printer = printer
        self.keep_going = keep_going
        self.exit_code = 0
        self.leaving = threading.Event()
        self._depth = 0
        self._durable: list[str] = []

    def run(self, sources: list[Source]) -> int:
        """Run all, then wait for the queries that write something lasting. Returns the exit code."""
        for source in sources:
            if not self._source(source):
                break
        stopped_by_error = self.exit_code and not self.keep_going
        if not stopped_by_error:
            self._wait_for_durable()
        self._report_failures()
        return self.exit_code

    def _source(self, source: Source) -> bool:
        """Run one source; False when the script is to end."""
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            return self._failed(error)
        return all(self.run_statement(w) for w in statements)

    def run_statement(self, written: Written) -> bool:
        """Read and carry out one statement and show its result or error. False: the script is to end."""
        if self.leaving.is_set():
            return False
        self.session.variables["here"] = str(Path(written.source.name).parent)
        try:
            statement = parse(written, self.session.variables)
            if isinstance(statement, SourceFile):
                return self._include(statement, written)
            result = self.session.execute(statement)
            self._place(result, written)
            self.printer.show(result)
        except StreamsqlError as error:
            if error.span is not None and error.source is None:
                error.span = error.span.shift(written.span.start)
            return self._failed(error.at(written.source, written.span))
        return not isinstance(result, Leave)

    def _place(self, result: object, written: Written) -> None:
        """Remember where a query was started, for the error it may end with."""
        if isinstance(result, Started):
            for name in result.queries:
                running = self.session.queries.all.get(name.casefold())
                if running:
                    running.source, running.span = written.source, written.span
                if result.durable:
                    self._durable.append(name.casefold())

    def _include(self, statement: SourceFile, written: Written) -> bool:
        if self._depth >= MAX_DEPTH:
            raise InputFault(f"SOURCE goes {MAX_DEPTH} files deep: does a file read itself?")
        path = Path(statement.path.value)
        if not path.is_absolute() and Path(written.source.name).is_file():
            beside = Path(written.source.name).parent / path
            path = beside if beside.is_file() else path
        try:
            source = read_file(str(path), missing=InputFault)
        except StreamsqlError as error:
            error.span = statement.path.span
            raise
        self._depth += 1
        try:
            return self._source(source)
        finally:
            self._depth -= 1

    def _failed(self, error: StreamsqlError) -> bool:
        if not isinstance(error, Cancelled):
            self.printer.error(error)
        for running in self.session.queries.all.values():
            running.reported = running.reported or running.fault is error
        self.exit_code = self.exit_code or error.exit_code
        return self.keep_going

    def _wait_for_durable(self) -> None:
        """A script lives as long as its queries that write something lasting."""
        while not self.leaving.is_set():
            names = [n for n in self._durable if n in self.session.queries.all]
            active = [n for n in names if self.session.queries.all[n].status() == "running"]
            if not active or any(q.status() == "FAILED" for q in self.session.queries.all.values()):
                return
            try:
                self.session.queries.wait(active[:1], idle=False, timeout=0.5)
            except StreamsqlError:
                pass  # still running, or failed: looked at above and below

    def _report_failures(self) -> None:
        for running in list(self.session.queries.all.values()):
            if running.status() == "FAILED" and running.fault and not running.reported:
                self._failed(running.fault)


def check(
    sources: list[Source], variables: dict[str, str], printer: Printer, context: Context, *, keep_going: bool
) -> int:
    """Read and plan all sources; start nothing. context: what there is already. Returns the exit code."""
    checker = Checker(context)
    code, count = 0, 0
    queue = list(sources)
    while queue:
        source = queue.pop(0)
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            printer.error(error)
            return error.exit_code
        variables["here"] = str(Path(source.name).parent)
        for written in statements:
            count += 1
            try:
                statement = parse(written, variables)
                code_path = _follow(statement, variables)
                if code_path:
                    queue.insert(0, read_file(code_path, missing=InputFault))
                for note in checker.check(statement):
                    printer.show(replace(Leave(), notes=(f"{source.name}: {note}",)))
            except StreamsqlError as error:
                if error.span is not None and error.source is None:
                    error.span = error.span.shift(written.span.start)
                printer.error(error.at(written.source, written.span))
                code = code or error.exit_code
                if not keep_going:
                    return code
            else:
                if isinstance(statement, Exit):
                    break
    if code == 0:
        printer.say(f"{count} statement{'' if count == 1 else 's'} checked")
    return code


def _follow(statement: Statement, variables: dict[str, str]) -> str:
    """Take over a DEFINE; the path of a SOURCE, else empty."""
    if isinstance(statement, Define):
        variables[statement.name.value] = statement.value
    return statement.path.value if isinstance(statement, SourceFile) else ""
