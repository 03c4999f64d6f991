"""What is written about tests: for a person, as TAP (Test Anything Protocol), and as JUnit's XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from streamsql.errors import StreamsqlError, UnmetExpectation
from streamsql.features.testing.cases import Case
from streamsql.features.testing.runner import Outcome
from streamsql.output.colors import BOLD, DIM, FAULT, paint, paint_error
from streamsql.output.control_characters import harmless
from streamsql.output.document import PLAIN
from streamsql.output.drawn_tables import draw
from streamsql.output.error_text import format_error
from streamsql.results import Rows

OK = "32"


def explained(error: StreamsqlError) -> str:
    """An error as lines: its place, what is wrong, and the rows that are missing or too many as a table."""
    text = format_error(error)
    if isinstance(error, UnmetExpectation) and error.rows:
        numeric = tuple(all(_is_number(v) for v in column) for column in zip(*error.rows, strict=True))
        text += "\n" + "\n".join(draw(Rows((), error.columns, error.rows, numeric), PLAIN).lines)
    return harmless(text)


def _is_number(value: object) -> bool:
    return value is None or (hasattr(value, "__float__") and not isinstance(value, bool))


def counted(outcomes: Sequence[Outcome]) -> str:
    """2 passed, 1 failed in 3.2 s."""
    failed = sum(not o.passed for o in outcomes)
    seconds = sum(o.seconds for o in outcomes)
    parts = [f"{len(outcomes) - failed} passed", *([f"{failed} failed"] if failed else [])]
    return f"{', '.join(parts)} in {seconds:.1f} s"


class TextReport:
    """For a person. color: whether to use colours; progress: a terminal for the line that says which test
    runs, None for none.
    """

    def __init__(self, out: TextIO, *, color: bool = False, progress: TextIO | None = None) -> None:
        self.out = out
        self.color = color
        self.progress = progress
        self._file = ""
        self._last_error = ""

    def begins(self, case: Case, number: int, count: int) -> None:
        if self.progress:
            self.progress.write(f"\r\x1b[K{number}/{count} {harmless(case.name)}")
            self.progress.flush()

    def ends(self, outcome: Outcome) -> None:
        self._clear()
        case = outcome.case
        if case.source.name != self._file:
            self._file = case.source.name
            self._line(self._paint(harmless(self._file), BOLD))
        word = self._paint("  ok", OK) if outcome.passed else self._paint("FAIL", FAULT)
        seconds = self._paint(f"{outcome.seconds:6.2f} s", DIM)
        self._line(f"{word} {seconds}  {harmless(case.name)}")
        if outcome.error:
            text = explained(outcome.error)
            if not outcome.in_test and text == self._last_error:
                text = "error: the pipeline cannot be loaded, as above"
            else:
                self._last_error = text
            self._line(paint_error(text) if self.color else text)

    def summary(self, outcomes: Sequence[Outcome]) -> None:
        self._line(counted(outcomes))

    def _clear(self) -> None:
        if self.progress:
            self.progress.write("\r\x1b[K")
            self.progress.flush()

    def _paint(self, text: str, style: str) -> str:
        return paint(text, style) if self.color else text

    def _line(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()


class TapReport:
    """As TAP, version 13."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self._number = 0
        self._planned = 0

    def begins(self, case: Case, number: int, count: int) -> None:
        if number == 1:
            self._planned = count
            self.out.write(f"TAP version 13\n1..{count}\n")

    def ends(self, outcome: Outcome) -> None:
        self._number += 1
        name = outcome.case.title.replace("#", "\\#").replace("\n", " ")
        word = "ok" if outcome.passed else "not ok"
        self.out.write(f"{word} {self._number} - {harmless(name)} # time={outcome.seconds * 1000:.0f}ms\n")
        if outcome.error:
            self.out.writelines(f"# {line}\n" for line in explained(outcome.error).splitlines())
        self.out.flush()

    def summary(self, outcomes: Sequence[Outcome]) -> None:
        failed = sum(not o.passed for o in outcomes)
        self.out.write(f"# {len(outcomes)} tests, {failed} failed\n")
        if self._number < self._planned:
            self.out.write(f"Bail out! {self._planned - self._number} tests were not run\n")
        self.out.flush()


def junit(outcomes: Sequence[Outcome]) -> str:
    """The XML that CI servers read, one suite for each file."""
    by_file: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_file.setdefault(outcome.case.source.name, []).append(outcome)
    suites = "\n".join(_suite(file, of_file) for file, of_file in by_file.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{_counts(outcomes)}>\n{suites}\n</testsuites>\n'
    )


def _suite(file: str, outcomes: Sequence[Outcome]) -> str:
    cases = "\n".join(_test_case(outcome) for outcome in outcomes)
    return f"<testsuite name={quoteattr(file)}{_counts(outcomes)}>\n{cases}\n</testsuite>"


def _counts(outcomes: Sequence[Outcome]) -> str:
    failures = sum(not o.passed and o.in_test for o in outcomes)
    errors = sum(not o.passed and not o.in_test for o in outcomes)
    seconds = sum(o.seconds for o in outcomes)
    return f' tests="{len(outcomes)}" failures="{failures}" errors="{errors}" time="{seconds:.3f}"'


def _test_case(outcome: Outcome) -> str:
    case = outcome.case
    head = (
        f"<testcase name={quoteattr(_xml(case.name))} classname={quoteattr(_xml(case.source.name))} "
        f'file={quoteattr(_xml(case.source.name))} line="{case.line}" time="{outcome.seconds:.3f}"'
    )
    if outcome.error is None:
        return f"{head}/>"
    kind = "failure" if outcome.in_test else "error"
    message = quoteattr(_xml(outcome.error.message))
    code = quoteattr(outcome.error.code)
    text = escape(_xml(explained(outcome.error)))
    return f"{head}><{kind} message={message} type={code}>{text}</{kind}></testcase>"


def _xml(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return "".join(c if c in "\t\n" or ord(c) >= 0x20 else "?" for c in text)
