"""A result as lines with what is said below them, and the style of the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from streamsql.errors import Note
from streamsql.results import Rows, RowStream, unique_names


@dataclass(frozen=True)
class Style:
    """The display of rows on a terminal; the default is for files.

    null: the text for NULL in table, vertical and markdown. In a table: max_cell: the largest width of a
    value in cells, 0 for no limit; width: the largest width of a line, 0 for no limit; narrow: the
    widest texts are cut before a column is omitted. delimiter: of csv. compact: without blanks beside the
    names of columns.
    """

    null: str = "NULL"
    color: bool = False
    max_cell: int = 0
    width: int = 0
    narrow: bool = False
    delimiter: str = ","
    compact: bool = False


PLAIN = Style()


@dataclass
class Document:
    """A result at a place. lines: may be read once; notes, footer: complete after that, "" for no footer;
    hidden: the names of columns that have no room.
    """

    lines: Iterable[str] = ()
    notes: list[Note] = field(default_factory=list)
    hidden: tuple[str, ...] = ()
    footer: Callable[[], str] = str


def renamed_columns(rows: Rows | RowStream) -> tuple[tuple[str, ...], list[Note]]:
    """(unique column names, notes about renamed columns): JSON would drop all but the last column of a name,
    and other programs would confuse them.
    """
    columns = unique_names(rows.columns)
    renamed = [
        f"{new} is a second column named {old}"
        for old, new in zip(rows.columns, columns, strict=True)
        if old != new
    ]
    return columns, [
        Note("COLUMNS_RENAMED", f"{', '.join(renamed)}; AS gives it another name")
    ] if renamed else []
