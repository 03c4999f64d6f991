"""`--check`: parses and plans scripts without Spark, and reports all that is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamsql.catalog import Catalog
from streamsql.cli.findings import Reporter
from streamsql.cli.unknown_names import UnknownNames
from streamsql.config.preferences import Preferences, is_preference
from streamsql.connectors.registry import connector
from streamsql.errors import Note, Source, Span, StreamsqlError, SyntaxFault
from streamsql.feature_registry import extensions
from streamsql.guard import internal
from streamsql.language.dialects.translation import Translation
from streamsql.language.parser import Written, parse, split_script
from streamsql.language.query import read_query
from streamsql.language.spark_grammar import SWITCHES, Switches
from streamsql.language.spark_syntax import missing_end, queries_of, syntax_fault
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.session import Define, Exit, Reset, Set, SourceFile
from streamsql.language.statements.spark import Spark
from streamsql.output.script_runner import included
from streamsql.plan.basic_plans import OpenChange
from streamsql.plan.chosen_dialect import translation_of
from streamsql.plan.context import EXTENSIONS, Context
from streamsql.plan.planner import plan
from streamsql.plan.plans import DefineSink, DefineStream, Plan


@dataclass
class Examined:
    """What is wrong with a statement, and notes, each with the part of the source that it is about (None: the
    whole statement).
    """

    faults: list[StreamsqlError] = field(default_factory=list)
    notes: list[tuple[Note, Span | None]] = field(default_factory=list)


class Checker:
    """Plans statements one after the other, with a catalog of what they define. closed: see UnknownNames;
    settings: those with which Spark will be started; preferences: of the command line, which SET changes.
    """

    def __init__(
        self,
        context: Context,
        *,
        closed: bool = False,
        settings: Mapping[str, str] | None = None,
        preferences: Preferences | None = None,
    ) -> None:
        settings = settings or {}
        self._at_start = {name: settings[name] for name in SWITCHES if name in settings}
        self._set_by_script: dict[str, str] = {}
        self.context = replace(context, extended=context.extended or bool(settings.get(EXTENSIONS)))
        self._preferences = preferences or Preferences()
        self._unknown = UnknownNames(closed)

    @property
    def catalog(self) -> Catalog:
        """What is defined up to now."""
        return self.context.catalog

    def check(self, statement: Statement) -> list[Note]:
        """Check one statement and add what it defines to the catalog. Returns notes; raises its first
        fault.
        """
        examined = self.examine(statement)
        if examined.faults:
            raise examined.faults[0]
        return [note for note, _ in examined.notes]

    def examine(self, statement: Statement) -> Examined:
        """All that is wrong with a statement. What it defines is added to the catalog if nothing is."""
        found = Examined()
        fault = self.syntax_fault(statement)
        planned = self._planned(statement, found)
        reads_other = planned is not None and any(note.code == "READ_AS" for note in planned.notes)
        if fault and not reads_other:  # the console may know what is meant, as by ALTER STREAM
            answered = [said for said in found.faults if said.proposal or said.code.startswith(_ANSWERED)]
            return Examined([*answered, fault][:1])
        faults, notes = self._unknown.check(statement, self.catalog)
        found.faults += faults
        found.faults = list({fault.span: fault for fault in reversed(found.faults)}.values())[::-1]
        if planned is None or found.faults:
            return found
        found.notes = [*((note, None) for note in (*planned.notes, *_left_to_format(planned))), *notes]
        self._unknown.follow(statement)
        for query in queries_of(statement):
            read = read_query(query.text)
            if read.tree is None and getattr(planned, "as_text", None):
                found.notes.append((_NOT_CHECKED, query.origin.span(read.stopped) if read.stopped else None))
        self.context = replace(self.context, catalog=planned.applied(self.catalog))
        if isinstance(planned, OpenChange):
            self.context = replace(self.context, open_change=planned.opens)
        if isinstance(statement, (Set, Reset)):
            self._set(statement)
        return found

    def syntax_fault(self, statement: Statement) -> StreamsqlError | None:
        """The error of a statement that Spark's grammar does not take; None if there is none."""
        try:
            fault = syntax_fault(statement, Switches.of({**self._at_start, **self._set_by_script}))
        except StreamsqlError as error:
            return error  # of a clause of the console
        doubt = statement.doubt if isinstance(statement, Spark) else None
        return (doubt or fault) if fault and not self.context.extended else None

    def _planned(self, statement: Statement, found: Examined) -> Plan | None:
        """The plan of a statement; None where it has a fault, which is added to `found`."""
        try:
            if self.context.open_change:
                for within in extensions("statement"):
                    statement, defined = within(statement, self.context)
                    self.context = replace(self.context, catalog=self.catalog.having(*defined))
            planned = plan(statement, self.context)
            if planned.fault:
                raise planned.fault
            return planned
        except StreamsqlError as error:
            found.faults.append(error)
            return None

    @property
    def translation(self) -> Translation | None:
        """From the dialect of SET streamsql.dialect into Spark's words; None if that is Spark's."""
        return translation_of(self._preferences["dialect"], self.catalog)

    def _set(self, statement: Set | Reset) -> None:
        """Take over a setting that planning or the grammar depends on. Raises as SET does."""
        key = statement.key
        if key is None:
            if isinstance(statement, Reset):
                self._preferences = Preferences()
                self._set_by_script.clear()
        elif not is_preference(key.value):
            self._set_by_script.pop(key.value, None)
            if isinstance(statement, Set) and statement.value and key.value.startswith("spark."):
                self._set_by_script[key.value] = statement.value
        elif isinstance(statement, Reset):
            self._preferences.reset(key.value, key.span)
        elif statement.value is not None:
            self._preferences.set(key.value, statement.value, span=key.span)
        self.context = replace(self.context, stages=self._preferences["stages"] == "on")


_ANSWERED = ("UNKNOWN_", "OTHER_CONSOLE")
"""The codes of errors of the console that say more than where the grammar stops."""

_NOT_CHECKED = Note("LEFT_TO_SPARK", "not checked: names and columns of this query, which only Spark reads")


def _left_to_format(planned: Plan) -> Iterator[Note]:
    """The note about a stream or sink of which only its format knows the options and columns."""
    if not isinstance(planned, (DefineStream, DefineSink)):
        return
    entry = planned.stream if isinstance(planned, DefineStream) else planned.sink
    if not entry.connector or not connector(Name(entry.connector)).not_known:
        return
    parts = "format, options and columns" if getattr(planned, "infer", None) else "format and options"
    yield Note("LEFT_TO_SPARK", f"not checked: the {parts} of {entry.name}, which only Spark knows")


def read_all(sources: list[Source], variables: dict[str, str], reporter: Reporter, checker: Checker) -> int:
    """Check all sources with a checker, which then has what they define. Returns the exit code: that of the
    first error.
    """
    reader = _Reader(checker, variables, reporter)
    for source in sources:
        if not reader.read(source):
            break
    reporter.close(reader.count)
    return reader.code


@dataclass
class _Reader:
    """Reads scripts as they would be run, each SOURCE at its place. code: the exit code; undefined: the
    names, folded, that statements with errors would define.
    """

    checker: Checker
    variables: dict[str, str]
    reporter: Reporter
    code: int = 0
    count: int = 0
    opened: list[str] = field(default_factory=list)
    undefined: set[str] = field(default_factory=set)

    def read(self, source: Source) -> bool:
        """Read one script; False when none is to be read after it."""
        try:
            statements = split_script(source, recover=True)
        except StreamsqlError as error:
            self._failed([error.at(source)])
            return True
        return all(self._statement(written) for written in statements)

    def _statement(self, written: Written) -> bool:
        """Check one statement. False: the script ends here."""
        self.count += 1
        self.variables["here"] = str(Path(written.source.name).parent)
        try:
            statement = parse(written, self.variables, translation=self.checker.translation)
            self._define(statement)
            examined = self._examined(statement, written)
            source = included(statement, written, self.opened) if isinstance(statement, SourceFile) else None
        except OSError:
            raise  # the reader of the output is gone
        except Exception as error:
            fault = error if isinstance(error, StreamsqlError) else internal(error)
            return self._wrong([fault], written)
        if examined.faults:
            return self._wrong(examined.faults, written)
        for note, span in examined.notes:
            self.reporter.note(note, written.source, span or written.span)
        if source is None:
            return not isinstance(statement, Exit)
        self.opened.append(written.source.name)
        try:
            return self.read(source)
        finally:
            self.opened.pop()

    def _define(self, statement: Statement) -> None:
        if isinstance(statement, Define) and not (
            statement.if_not_exists and statement.name.value in self.variables
        ):
            self.variables[statement.name.value] = statement.value

    def _examined(self, statement: Statement, written: Written) -> Examined:
        """What is wrong with a statement; where it uses a name that an error left undefined, only its
        syntax is checked.
        """
        if not self.undefined:
            return self.checker.examine(statement)
        used, defined = written.names, written.defines
        missing = used.keys() & self.undefined
        if missing <= defined:
            self.undefined -= defined
            return self.checker.examine(statement)
        fault = self.checker.syntax_fault(statement)
        self.undefined |= defined
        names = ", ".join(used[name] for name in sorted(missing))
        text = f"not checked: the statement that defines {names} has an error"
        note = Note("NOT_CHECKED", text)
        return Examined([fault] if fault else [], [(note, None)])

    def _wrong(self, faults: Sequence[StreamsqlError], written: Written) -> bool:
        """Report the errors of a statement. Where it is two without a `;` between them, check both."""
        placed = [fault.at(written.source, written.span) for fault in faults]
        first = placed[0]
        if isinstance(first, SyntaxFault) and first.span and (two := missing_end(written, first.span.start)):
            error, *parts = two
            self._failed([error.at(written.source)])
            self.count -= 1
            checked = [self._statement(part) for part in parts]
            return all(checked)
        self.undefined |= written.defines
        self._failed(sorted(placed, key=lambda fault: fault.span.start if fault.span else 0))
        return True

    def _failed(self, errors: Sequence[StreamsqlError]) -> None:
        for error in errors:
            self.reporter.error(error)
            self.code = self.code or error.exit_code
