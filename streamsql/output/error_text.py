"""Formats an error: place, fact, source line with a caret, detail and hint, with secrets redacted."""

from __future__ import annotations

from streamsql.errors import Source, StreamsqlError, cells, hide_in_sql
from streamsql.language.redaction import secret_places, secret_values, without_values
from streamsql.secrets import HIDDEN, redact_text

MAX_LINE = 160


def format_error(error: StreamsqlError, width: int = 0) -> str:
    """The error as lines of text: place, code, fact, source line with caret, detail, hint. The code is an
    error class of Spark, or the console's own.

    width: the width of the window for the source line, in cells; 0 for none.
    """
    where, block = "", ""
    if error.source is not None and error.span is not None:
        number, column = error.source.line_column(error.span.start)
        where = f"{error.source.name}:{number}:{column}: "
        block = _block(error.source, error.span.start, error.span.end, width)
    values = secret_values(error.source.text) if error.source is not None else set()

    def clean(text: str) -> str:
        return redact_text(without_values(text, values))

    text = f"{where}error[{error.code}]: {clean(error.message)}{block}"
    if error.detail:
        text += "\ndetail: " + clean(error.detail).replace("\n", "\n        ")
    if error.hint:
        hint = hide_in_sql(without_values(error.hint, values))
        text += "\nhint: " + hint.replace("\n", "\n      ")
    return text


def _block(source: Source, start: int, end: int, width: int) -> str:
    """The source line of a span, and a caret under it."""
    number, column = source.line_column(start)
    gutter = f"{number} | "
    first = start - column + 1
    line, start, end = _redacted(source, first, start, end, source.line(number))
    most = max(20, width - len(gutter) - 2) if width else MAX_LINE
    shown, column = _excerpt(line, start + 1, min(most, MAX_LINE))
    shown = shown.replace("\t", " ")
    marked = min(end - start, len(line) - start, len(shown) - column + 1)
    lead = " " * cells(shown[: column - 1])
    caret = "^" * max(1, cells(shown[column - 1 : column - 1 + marked]))
    return f"\n{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {lead}{caret}"


def _redacted(source: Source, first: int, start: int, end: int, line: str) -> tuple[str, int, int]:
    """The redacted line that begins at offset `first`, and the span [start, end) relative to it."""
    parts, at = [], 0
    places = [start - first, end - first]
    moved = list(places)
    for secret_start, secret_end in secret_places(source.text):
        a, b = max(secret_start - first, 0), min(secret_end - first, len(line))
        if a >= b:
            continue
        parts += [line[at:a], HIDDEN]
        at = b
        for i, place in enumerate(places):
            if place >= b:
                moved[i] += len(HIDDEN) - (b - a)
            elif place > a:
                moved[i] += (a if i == 0 else a + len(HIDDEN)) - place
    return "".join(parts) + line[at:], moved[0], max(moved[0] + 1, moved[1])


def _excerpt(line: str, column: int, most: int) -> tuple[str, int]:
    """(an excerpt of at most `most` characters around a 1-based column, the column in the excerpt)."""
    if len(line) <= most:
        return line, column
    start = max(0, column - most // 2)
    rest = line[start : start + most]
    cut = ("…" if start else "") + rest + ("…" if start + most < len(line) else "")
    return cut, column - start + (1 if start else 0)
