"""Fits rows to a window and to formats for programs."""

from __future__ import annotations

from dataclasses import replace

from streamsql.config.preferences import PREFIX
from streamsql.errors import Note, cells
from streamsql.output.cells import wrap
from streamsql.results import Rows, RowStream, unique_names


def at_a_glance(rows: Rows, width: int) -> Rows:
    """A result about the console that is too wide for a window: without empty columns, or of two columns
    with wrapped values.
    """
    if len(rows.columns) == 2:
        room = width - max(cells(str(r[0])) for r in rows.rows) - 7
        wrapped = [
            (r[0] if n == 0 else "", part) for r in rows.rows for n, part in enumerate(wrap(r[1], room))
        ]
        return replace(rows, rows=wrapped)
    filled = [i for i, _ in enumerate(rows.columns) if any(r[i] not in (None, "") for r in rows.rows)]
    return replace(
        rows,
        columns=tuple(rows.columns[i] for i in filled),
        rows=[tuple(r[i] for i in filled) for r in rows.rows],
        numeric=tuple(rows.numeric[i] for i in filled),
    )


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


def cut_note(max_cell: int) -> Note:
    """The note of a result whose long values are cut."""
    in_full = f"{max_cell} cells are cut: SET {PREFIX}max_cell = 0; shows them in full"
    return Note("NOT_ALL_SHOWN", f"values longer than {in_full if max_cell else 'the window are cut'}")
