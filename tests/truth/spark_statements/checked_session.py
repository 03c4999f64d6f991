"""What `--check` does with golden statements, without Spark: refuses one, changes its text, or raises."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from unittest.mock import patch

from golden_files import GoldenFiles, GoldenStatement

from streamsql.calls import Attr, Lit, Var, calls_in, text_of
from streamsql.catalog import Catalog
from streamsql.cli import dry_run
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.language.statements.select import Select
from streamsql.language.statements.session import Define
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.plan.plans import Collect, Explain, Plan

REFUSED, CHANGED, RAISED = "refused", "changed", "raised"
"""The kinds of failures."""

PARTS, SOME = 12, 0
"""The parts into which the files are divided, and the one that each test run checks."""

_INSIDE = r"[^*/]|\*(?!/)|/(?!\*)"
_BRACKETED = rf"/\*(?:{_INSIDE})*\*/"
for _ in range(3):  # comments inside of comments
    _BRACKETED = rf"/\*(?:{_INSIDE}|{_BRACKETED})*\*/"
_AROUND = re.compile(rf"(?:\s|--[^\n]*(?:\n|\Z)|{_BRACKETED})*")
"""Blanks and comments. Around a statement they are no part of it, for Spark's parser either."""


class CheckedSession:
    """The statements of one golden file, one after the other, as `--check` reads a script of them.

    settings: those of the file; fault: the error with which `--check` refuses the last statement, None if it
    takes it.
    """

    def __init__(self, file: str, settings: Mapping[str, str]) -> None:
        self.file = file
        self.fault: StreamsqlError | None = None
        self._checker = dry_run.Checker(Context(Catalog()), settings=settings)
        self._plan: Plan | None = None
        self._variables: dict[str, str] = {}

    def failures(self, golden: GoldenStatement) -> Iterator[tuple[str, str]]:
        """The failures of the next statement: the kind of each, and what the console says or does."""
        self.fault = None
        try:
            for change in self._changes(golden.text):
                if golden.parses:
                    yield CHANGED, change
        except StreamsqlError as error:
            self.fault = error
            if not golden.error:
                yield REFUSED, f"[{error.code}] {error.message}"
        except Exception as error:
            yield RAISED, f"{type(error).__name__}: {error}"

    def _changes(self, text: str) -> Iterator[str]:
        """Check a statement. Gives what is changed in it; raises what `--check` raises."""
        written = split_script(Source(self.file, f"{text}\n;"))
        if len(written) != 1:
            yield f"it is read as {len(written)} statements"
            return
        statement = parse(written[0], self._variables)
        for name, value in self._variables.items():
            text = text.replace(f"${{{name}}}", value)  # as Spark does it
        if isinstance(statement, Define):
            self._variables[statement.name.value] = statement.value
        if statement.read_as or not _is_whole(statement.text, text):
            yield f"it is read as: {statement.text}"
        with patch.object(dry_run, "plan", self._recorded):
            self._checker.check(statement)
        if self._plan:
            yield from (f"Spark is handed: {other}" for other in _other_texts(statement, self._plan))
            if _is_taken_apart(statement, self._plan):
                yield "it is taken apart, although it reads no stream and no live table"

    def _recorded(self, statement: Statement, context: Context) -> Plan:
        self._plan = plan(statement, context)
        return self._plan


def _is_whole(part: str, text: str) -> bool:
    """Whether a text is the other one but for blanks and comments around it."""
    before = text.find(part)
    after = text[before + len(part) :]
    return before >= 0 and all(map(_AROUND.fullmatch, (text[:before], after)))


def _other_texts(statement: Statement, planned: Plan) -> Iterator[str]:
    """The texts that a plan hands to Spark as a whole, except the statement's own."""
    if isinstance(planned, Explain):
        statement, planned = getattr(statement, "body", None) or statement, planned.plan
    for call in calls_in(getattr(planned, "program", ())):
        if call.function == Attr(Var("spark"), "sql"):
            (handed,) = call.args
            if handed != Lit(statement.text):
                yield handed.value if isinstance(handed, Lit) else str(handed)


def _is_taken_apart(statement: Statement, planned: Plan) -> bool:
    """Whether a query becomes calls, instead of one spark.sql. The golden files have no streams, and no
    clauses of the console.
    """
    return isinstance(statement, Select) and isinstance(planned, Collect) and not text_of(planned.program)


def without_comments_before(text: str) -> str:
    """A statement without the blanks and comments before it."""
    before = _AROUND.match(text)
    return text[before.end() :] if before else text


def some_files(golden: GoldenFiles, part: int) -> list[str]:
    """The names of the files of a part: the same in each run."""
    return [file for file in golden.names if zlib.crc32(file.encode()) % PARTS == part]


def what_is_wrong(golden: GoldenFiles, files: list[str]) -> list[str]:
    """The failures of the statements of some files, each with what is said of it."""
    wrong = []
    for file in files:
        session = CheckedSession(file, golden.settings(file))
        for statement in golden.statements(file):
            wrong += [f"{kind}: {statement.shown(said)}" for kind, said in session.failures(statement)]
    return wrong
