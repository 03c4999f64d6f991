"""What `--check` does with other forms of Spark's own queries: it refuses none and changes none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checked_session import CheckedSession
from golden_files import GoldenFiles, GoldenStatement
from valid_forms import FORMS, is_query

IN_EACH, SOME = 80, 7
"""One query in so many is tried in each test run: those whose checksums leave this remainder."""


def queries(golden: GoldenFiles, *, some: bool) -> Iterator[GoldenStatement]:
    """The queries of the golden files; some: those of each test run, otherwise the others."""
    for file in golden.names:
        for statement in golden.statements(file):
            if is_query(statement) and (statement.checksum % IN_EACH == SOME) == some:
                yield statement


def what_is_wrong(golden: GoldenFiles, statements: Iterable[GoldenStatement]) -> list[str]:
    """Each form that is refused or changed, with what is said of it."""
    wrong = []
    for statement in statements:
        for name, form in FORMS.items():
            other = GoldenStatement(statement.file, statement.number, form(statement.text), "")
            session = CheckedSession(statement.file, golden.settings(statement.file))
            if "${" in statement.text:
                _define_variables(session, golden, statement)
            for kind, failure in session.failures(other):
                wrong.append(f"{name}, {kind}: {other.shown(failure)}")
    return wrong


def _define_variables(session: CheckedSession, golden: GoldenFiles, statement: GoldenStatement) -> None:
    """Run the statements of the file that define variables and stand before a statement."""
    for earlier in golden.statements(statement.file)[: statement.number]:
        if earlier.text.upper().startswith("SET HIVEVAR:"):
            assert not list(session.failures(earlier))
