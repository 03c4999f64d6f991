"""What is said of rows that are fitted to a window or to formats for programs."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.config.preferences import PREFIX
from streamsql.errors import Note
from streamsql.results import Rows, RowStream, unique_names


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
    return columns, [Note("COLUMNS_RENAMED", f"{', '.join(renamed)}: name it with AS")] if renamed else []


NAMED = 8
"""The largest number of columns that a note names."""


def listed(columns: Sequence[str]) -> str:
    """The names of columns for a note."""
    more = len(columns) - NAMED
    return ", ".join(columns[:NAMED]) + (f" and {more} more" if more > 0 else "")


def cut_note(max_cell: int) -> Note:
    """The note of a result whose long values are cut."""
    in_full = f"{max_cell} cells are cut: SET {PREFIX}max_cell = 0; shows them in full"
    return Note("NOT_ALL_SHOWN", f"values longer than {in_full if max_cell else 'the window are cut'}")
