"""Results to a screen or file: data on one stream, words on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from streamsql.errors import StreamsqlError, cells, format_error
from streamsql.output.formats import FORMATS
from streamsql.results import Done, Result, Rows, Started, Text


class Printer:
    """format: a key of FORMATS; out gets data, words gets messages, notes and errors.

    quiet: messages of statements that only did something are left out (a script's second reader
    is a program), notes and errors never. width: cells of a person's window, 0 for none: a table
    that does not fit is shown row by row.
    """

    def __init__(
        self,
        format: str,
        out: TextIO,
        words: TextIO,
        *,
        quiet: bool = False,
        width: Callable[[], int] = lambda: 0,
    ) -> None:
        self.format = format
        self.out = out
        self.words = words
        self.quiet = quiet
        self.width = width

    def show(self, result: Result) -> None:
        if isinstance(result, Rows):
            for line in self.lines(result):
                print(line, file=self.out)
            self.out.flush()
            self.say(_footer(result))
        elif isinstance(result, Text) and result.text:
            print(result.text, file=self.out)
            self.out.flush()
        elif isinstance(result, (Done, Started)) and result.message:
            self.say(result.message)
        for note in result.notes:
            print(f"note: {note}", file=self.words)
        self.words.flush()

    def lines(self, rows: Rows) -> Iterable[str]:
        """The rows in the printer's format; a table wider than the window as one block a row."""
        width = self.width() if self.format == "table" else 0
        lines = list(FORMATS[self.format](rows)) if width else FORMATS[self.format](rows)
        too_wide = isinstance(lines, list) and any(cells(line) > width for line in lines[:1])
        return FORMATS["vertical"](rows) if too_wide and rows.rows else lines

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, file=self.words, flush=True)

    def error(self, error: StreamsqlError) -> None:
        self.out.flush()
        print(format_error(error), file=self.words, flush=True)


def _footer(rows: Rows) -> str:
    count = len(rows.rows)
    took = f", {rows.seconds:.2f} s" if rows.seconds is not None else ""
    return f"({count} row{'' if count == 1 else 's'}{took})"
