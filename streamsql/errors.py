"""Every error a person can meet; output/error_text shows them.

    StreamsqlError            a fact, with detail, hint and the place in the text
    ├── SyntaxFault           the statement cannot be read
    ├── NameFault             a stream, sink, query, connector or option that is not there, or clashes
    ├── RuleFault             readable, but streaming does not allow it
    ├── InputFault            a file, directory, port or encoding that is not as said
    ├── EngineFault           Spark refused it while analysing or starting it
    ├── QueryFault            a query failed while running            (exit code 5)
    ├── StartFault            Spark could not start or be reached     (exit code 3)
    ├── UnmetExpectation      an EXPECT of a test does not hold
    ├── UsageFault            the command line is wrong               (exit code 2)
    ├── TimeFault             it took longer than allowed             (exit code 4)
    └── Cancelled             the person gave it up                   (exit code 130)

Message: the fact, lower case, no full stop. Detail: the cause. Hint: what to type.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamsql.secrets import redact_text

EXIT_OK = 0
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a text."""

    start: int
    end: int

    def shift(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)

    def __bool__(self) -> bool:
        """False for the span of what stands in no text."""
        return self.end > 0


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be known beside a result. code: what it is about, as error_codes.NOTES lists it; text: for a
    person, on one line.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name it came under ("file.sql", "<stdin>", "-e")."""

    name: str
    text: str

    def line_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters) of an offset."""
        offset = min(max(offset, 0), len(self.text))
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        lines = _LINE_END.split(self.text)
        return lines[number - 1] if number <= len(lines) else ""


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    """The offsets at which the lines of a text start."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


_hide: list[Callable[[str], str]] = [redact_text]


def hide_in_sql(text: str) -> str:
    """A hint or a proposal, which is SQL, without the secrets in it: `WHERE token = 'x'` compares data."""
    return _hide[-1](text)


def hide_with(redact: Callable[[str], str]) -> None:
    """Take over what finds the secrets in SQL: language/redaction.py, which can read it."""
    _hide[:] = [redact]


class StreamsqlError(Exception):
    """Base of all errors that are shown to a person.

    message: the fact, behind what it is about where that is not clear; fact: the fact alone; detail: the
    cause, may have several lines; hint: what to type;
    proposal: a statement to type instead, which ↑ brings at the prompt, and the hint where there is no other;
    span: the characters of the source that are at fault; condition: Spark's error class, if any;
    code: what is wrong, as error_codes lists it: the class's own, where none is given, or Spark's.
    Code decides by the code, never by the message. A secret in one of these texts, which may come from
    Spark, is hidden from the beginning.
    """

    exit_code = 1
    code = "ERROR"

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        span: Span | None = None,
        condition: str = "",
        code: str = "",
        proposal: str = "",
        instead: str = "",
        first: str = "",
    ) -> None:
        message = redact_text(message)
        super().__init__(message)
        self.message = self.fact = message
        self.detail = redact_text(detail)
        self.proposal = hide_in_sql(proposal)
        self.hint = hide_in_sql(hint if "'" in hint else redact_text(hint)) or self.proposal
        self.span = span
        self.condition = condition
        self.code = code or condition or type(self).code
        self.instead = instead
        self.first = first
        self.source: Source | None = None

    @property
    def place(self) -> tuple[int, int] | None:
        """The line and column of what is at fault, from 1; None where it stands in no text."""
        return self.source.line_column(self.span.start) if self.source and self.span else None

    def propose(self, statement: str) -> None:
        """Propose a statement to type instead. It is the hint, too, unless the console's reader has one."""
        self.proposal = hide_in_sql(statement)
        if not self.hint or self.condition:
            self.hint = self.proposal

    def add_way(self, way: str, joined: str = "or ") -> None:
        """Add another way, if there is one, to the hint."""
        self.hint = f"\n{joined}".join(filter(None, (self.hint, way)))

    def corrected(self) -> str:
        """The statement with `instead` in the place of the span, behind the statement `first`; "" where that
        is not known.
        """
        if not (self.instead and self.source and self.span):
            return ""
        text = self.source.text.strip().rstrip(";")
        if ";" in text or self.source.text[:1].isspace():
            return ""  # it may be one of several statements
        return f"{self.first}{text[: self.span.start]}{self.instead}{text[self.span.end :]};"

    def at(self, source: Source, default: Span | None = None) -> StreamsqlError:
        """The same error, placed: source is the whole text, default the span when none is known."""
        if self.source is None:
            self.source = source
            self.span = self.span or default
        return self


class SyntaxFault(StreamsqlError):
    code = "SYNTAX_ERROR"


class NameFault(StreamsqlError):
    code = "UNKNOWN_NAME"


class RuleFault(StreamsqlError):
    code = "NOT_SUPPORTED"


class InputFault(StreamsqlError):
    code = "BAD_INPUT"


class EngineFault(StreamsqlError):
    """relation: the name in FROM that Spark does not know; "" where the error is another one. fragment: the
    part of the statement that Spark names, "" for none; unread: whether Spark's parser could not read it;
    suggests: whether the hint is a list of columns that Spark suggests.
    """

    code = "SPARK_ERROR"

    def __init__(
        self,
        message: str,
        *,
        relation: str = "",
        fragment: str = "",
        unread: bool = False,
        suggests: bool = False,
        **parts: Any,
    ) -> None:
        super().__init__(message, **parts)
        self.relation, self.fragment, self.unread, self.suggests = relation, fragment, unread, suggests


class QueryFault(StreamsqlError):
    """subject: what failed ("query a failed"); the message begins with it. fact: the rest."""

    exit_code = 5
    code = "QUERY_FAILED"

    def __init__(self, fact: str, *, subject: str = "", **parts: Any) -> None:
        super().__init__(f"{subject}: {fact}" if subject else fact, **parts)
        self.fact = redact_text(fact)

    @classmethod
    def caused_by(cls, fault: StreamsqlError, query: str, fact: str = "", **others: Any) -> QueryFault:
        """The failure of a query with an error. fact: instead of the error's; others: parts that it has
        instead of those of the error.
        """
        parts = {key: getattr(fault, key) for key in ("detail", "hint", "condition", "code")} | others
        return cls(fact or fault.fact, subject=f"query {query} failed", **parts)

    def of(self, subject: str) -> QueryFault:
        """The same failure of what the reader has typed, such as a SELECT, which has no query to name."""
        self.message = f"{subject}: {self.fact}"
        return self


class StartFault(StreamsqlError):
    exit_code = 3
    code = "SPARK_NOT_STARTED"


class UnmetExpectation(StreamsqlError):
    """columns, rows: the rows that are missing or too many, the first column says which."""

    code = "NOT_AS_EXPECTED"
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


class UsageFault(StreamsqlError):
    exit_code = 2
    code = "USAGE"


class TimeFault(StreamsqlError):
    exit_code = 4
    code = "TIME_OUT"


class Cancelled(StreamsqlError):
    exit_code = EXIT_INTERRUPTED
    code = "CANCELLED"


def reason_of(error: Exception) -> str:
    """Why the system refused something, for a message: no such file or directory."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def no_folder(file: Path, place: Span | None) -> InputFault:
    """The folder of a file that is to be written is missing."""
    return InputFault(
        f"there is no folder {file.parent}",
        hint=f"\\! mkdir -p '{file.parent}'",
        span=place,
        code="FILE_NOT_WRITTEN",
    )


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `words` that a person most likely meant with `word`, or None."""
    import difflib  # not before the first prompt

    by_fold = {w.casefold(): w for w in words}
    matches = difflib.get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=cutoff)
    return by_fold[matches[0]] if matches else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A hint that names the one of `words` nearest to `word`; empty when none is near."""
    like = nearest(word, words)
    return f"did you mean {like}?" if like else ""


def cells(text: str) -> int:
    """Terminal cells that a text fills (wide characters fill two, combining and control ones none)."""
    if text.isascii() and text.isprintable():
        return len(text)
    from wcwidth import wcswidth, wcwidth

    whole: int = wcswidth(text)
    return whole if whole >= 0 else sum(max(0, wcwidth(c)) for c in text)
