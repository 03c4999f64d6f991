"""`--check`: parses and plans a whole script without Spark, and records the names that it uses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from streamsql.catalog import Catalog
from streamsql.cli.unknown_columns import UnknownColumns
from streamsql.cli.unknown_tables import UnknownTables, queries_of
from streamsql.config.preferences import Preferences, is_preference
from streamsql.errors import Note, Source, StreamsqlError
from streamsql.guard import internal
from streamsql.language.lexical import misspelt_clause
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Statement
from streamsql.language.statements.session import Define, Exit, Reset, Set, SourceFile
from streamsql.output.printer import Printer
from streamsql.output.script_runner import included
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.results import Leave


class Checker:
    """Plans statements one after the other, with a catalog of what they define. closed: see UnknownTables."""

    def __init__(self, context: Context, *, closed: bool = False) -> None:
        self.context = context
        self._preferences = Preferences()
        self._unknown = UnknownTables(closed)
        self._columns = UnknownColumns()

    @property
    def catalog(self) -> Catalog:
        """What is defined up to now."""
        return self.context.catalog

    def check(self, statement: Statement) -> list[Note]:
        """Plan one statement and add what it defines to the catalog. Returns notes; raises placed faults."""
        planned = plan(statement, self.context)
        if planned.fault:
            raise planned.fault
        notes = [*planned.notes, *self._unknown.check(statement, self.catalog)]
        self._unknown.follow(statement)
        self._columns.check(statement, self.catalog)
        for query in queries_of(statement):
            notes += self._read(query, getattr(planned, "as_text", ""))
        self.context = replace(self.context, catalog=planned.applied(self.catalog))
        if isinstance(statement, (Set, Reset)):
            self._set(statement)
        return notes

    def _set(self, statement: Set | Reset) -> None:
        """Take over a setting of the console that planning depends on. Raises as SET does."""
        key = statement.key
        if key is None and isinstance(statement, Reset):
            self._preferences = Preferences()
        elif key is None or not is_preference(key.value):
            return
        elif isinstance(statement, Reset):
            self._preferences.reset(key.value, key.span)
        elif statement.value is not None:
            self._preferences.set(key.value, statement.value, span=key.span)
        self.context = replace(self.context, stages=self._preferences["stages"] == "on")

    def _read(self, query: Fragment, as_text: str) -> list[Note]:
        """A note for a query that only Spark can parse; it is checked when the statement runs."""
        written = read_query(query.text)
        if written.tree is not None or not as_text:
            return []
        stopped = written.stopped
        at = f" at {query.text[stopped.start : stopped.end]}" if stopped else ""
        misspelt = misspelt_clause(query.text, stopped.start) if stopped else None
        meant = f"; did you mean {misspelt[1]}?" if misspelt else ""
        text = f"the query could not be parsed here{at}; Spark parses it when the statement runs{meant}"
        return [Note("LEFT_TO_SPARK", text)]


def check(
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
    context: Context,
    *,
    keep_going: bool,
    closed: bool = False,
) -> int:
    """Parse and plan all sources; start nothing. context: existing definitions; closed: see UnknownTables.
    Returns the exit code.
    """
    return read_all(sources, variables, printer, Checker(context, closed=closed), keep_going=keep_going)


def read_all(
    sources: list[Source], variables: dict[str, str], printer: Printer, checker: Checker, *, keep_going: bool
) -> int:
    """Check all sources with a checker, which then has what they define. Returns the exit code."""
    reader = _Reader(checker, variables, printer, keep_going)
    for source in sources:
        if not reader.read(source):
            break
    if reader.code == 0:
        printer.say(f"{reader.count} statement{'' if reader.count == 1 else 's'} checked")
    return reader.code


@dataclass
class _Reader:
    """Reads scripts as they would be run, each SOURCE at its place. code: the exit code."""

    checker: Checker
    variables: dict[str, str]
    printer: Printer
    keep_going: bool
    code: int = 0
    count: int = 0
    opened: list[str] = field(default_factory=list)

    def read(self, source: Source) -> bool:
        """Read one script; False when none is to be read after it."""
        try:
            statements = split_script(source)
        except StreamsqlError as error:
            return self._failed(error)
        return all(self._statement(written) for written in statements)

    def _statement(self, written: Written) -> bool:
        self.count += 1
        self.variables["here"] = str(Path(written.source.name).parent)
        try:
            statement = parse(written, self.variables)
            if isinstance(statement, Define) and not (
                statement.if_not_exists and statement.name.value in self.variables
            ):
                self.variables[statement.name.value] = statement.value
            for note in self.checker.check(statement):
                self.printer.show(
                    replace(Leave(), notes=(Note(note.code, f"{written.source.name}: {note.text}"),))
                )
            source = included(statement, written, self.opened) if isinstance(statement, SourceFile) else None
        except StreamsqlError as error:
            return self._failed(error.at(written.source, written.span))
        except OSError:
            raise  # the reader of the output is gone
        except Exception as error:
            return self._failed(internal(error).at(written.source, written.span))
        if source is None:
            return not isinstance(statement, Exit)
        self.opened.append(written.source.name)
        try:
            return self.read(source)
        finally:
            self.opened.pop()

    def _failed(self, error: StreamsqlError) -> bool:
        self.printer.error(error)
        self.code = self.code or error.exit_code
        return self.keep_going
