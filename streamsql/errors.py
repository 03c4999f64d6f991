"""Every error a person can meet, and the one way it is shown.

    StreamsqlError            a fact, with detail, hint and the place in the text
    ├── SyntaxFault           the statement cannot be read
    ├── NameFault             a stream, sink, query, connector or option that is not there, or clashes
    ├── RuleFault             readable, but streaming does not allow it
    ├── InputFault            a file, directory, port or encoding that is not as said
    ├── EngineFault           Spark refused it while analysing or starting it
    ├── QueryFault            a query failed while running            (exit code 5)
    ├── StartFault            Spark could not start or be reached     (exit code 3)
    ├── UsageFault            the command line is wrong               (exit code 2)
    ├── TimeFault             it took longer than allowed             (exit code 4)
    └── Cancelled             the person gave it up                   (exit code 130)

Message: the fact, lower case, no full stop. Detail: the cause. Hint: what to type.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

EXIT_OK = 0
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a text."""

    start: int
    end: int

    def shift(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name it came under ("file.sql", "<stdin>", "-e")."""

    name: str
    text: str

    def line_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters) of an offset."""
        offset = min(max(offset, 0), len(self.text))
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self.text.rfind("\n", 0, offset)

    def line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if number <= len(lines) else ""


class StreamsqlError(Exception):
    """Base of all errors that are shown to a person.

    message: the fact; detail: the cause, may have several lines; hint: what to type;
    span: the characters of the source that are at fault; condition: Spark's error class, if any.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        span: Span | None = None,
        condition: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span
        self.condition = condition
        self.source: Source | None = None

    def at(self, source: Source, default: Span | None = None) -> StreamsqlError:
        """The same error, placed: source is the whole text, default the span when none is known."""
        if self.source is None:
            self.source = source
            self.span = self.span or default
        return self


class SyntaxFault(StreamsqlError):
    pass


class NameFault(StreamsqlError):
    pass


class RuleFault(StreamsqlError):
    pass


class InputFault(StreamsqlError):
    pass


class EngineFault(StreamsqlError):
    pass


class QueryFault(StreamsqlError):
    exit_code = 5


class StartFault(StreamsqlError):
    exit_code = 3


class UsageFault(StreamsqlError):
    exit_code = 2


class TimeFault(StreamsqlError):
    exit_code = 4


class Cancelled(StreamsqlError):
    exit_code = EXIT_INTERRUPTED


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that a person most likely meant, or None."""
    by_fold = {k.casefold(): k for k in known}
    found = difflib.get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=cutoff)
    return by_fold[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word; empty when there is none."""
    found = nearest(word, known)
    return f"did you mean {found}?" if found else ""


def cells(text: str) -> int:
    """Terminal cells that a text fills (wide characters fill two, combining and control ones none)."""
    if text.isascii() and text.isprintable():
        return len(text)
    from wcwidth import wcswidth, wcwidth

    whole: int = wcswidth(text)
    return whole if whole >= 0 else sum(max(0, wcwidth(c)) for c in text)


MAX_LINE = 160
SECRET_WORDS = (
    "password",
    "secret",
    "token",
    "credential",
    "jaas",
    "private.key",
    "access.key",
    "user.info",
)
_SECRET = re.compile(
    r"((?:" + "|".join(map(re.escape, SECRET_WORDS)) + r")[\w.]*['`\"]?\s*=?\s*)"
    r"(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\")",
    re.IGNORECASE,
)


# A login in an address: what stands between // and @.
_LOGIN = re.compile(r"(?<=://)[^\s/'\"@]+(?=@)")


def _mask(line: str) -> str:
    """A line of a script without the values of secret options; what stands where does not change."""
    line = _LOGIN.sub(lambda m: "*" * len(m.group()), line)
    return _SECRET.sub(lambda m: f"{m.group(1)}'{'*' * len(m.group(2) or m.group(3) or '')}'", line)


def holds_secret(text: str) -> bool:
    """Whether a statement has the value of a secret option in it."""
    return bool(_SECRET.search(text) or _LOGIN.search(text))


def _excerpt(line: str, column: int, most: int) -> tuple[str, int]:
    """A line of at most so many characters around a 1-based column; the column moves with it."""
    if len(line) <= most:
        return line, column
    start = max(0, column - most // 2)
    rest = line[start : start + most]
    cut = ("…" if start else "") + rest + ("…" if start + most < len(line) else "")
    return cut, column - start + (1 if start else 0)


def format_error(error: StreamsqlError, width: int = 0) -> str:
    """The error as lines of text: place, fact, source line with caret, detail, hint.

    width: cells of the window that the source line has to fit, 0 for none.
    """
    where, block = "", ""
    if error.source is not None and error.span is not None:
        number, column = error.source.line_column(error.span.start)
        where = f"{error.source.name}:{number}:{column}: "
        full = error.source.line(number)
        most = max(20, width - len(f"{number} | ") - 2) if width else MAX_LINE
        line, shown = _excerpt(full, column, min(most, MAX_LINE))
        line = _mask(line.replace("\t", " "))
        width = min(error.span.end - error.span.start, len(full) - column + 1, len(line) - shown + 1)
        lead = " " * cells(line[: shown - 1])
        mark = "^" * max(1, cells(line[shown - 1 : shown - 1 + width]))
        gutter = f"{number} | "
        block = f"\n{gutter}{line}\n{' ' * (len(gutter) - 2)}| {lead}{mark}"
    condition = f"[{error.condition}]" if error.condition else ""
    text = f"{where}error{condition}: {error.message}{block}"
    if error.detail:
        text += "\ndetail: " + error.detail.replace("\n", "\n        ")
    if error.hint:
        text += "\nhint: " + error.hint.replace("\n", "\n      ")
    return text
