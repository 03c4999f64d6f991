"""Writes the rows of COPY TO into a file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from streamsql.errors import InputFault, no_folder, reason_of
from streamsql.output.document import Style, renamed_columns
from streamsql.output.row_formats import FORMATS
from streamsql.results import Copied, Rows, RowStream, counted
from streamsql.text_files import PACKED, open_text


def copy_to_file(copied: Copied, check: Callable[[], None]) -> str:
    """Write the file, complete or not at all; a FIFO or device is written into. Returns what was done. check:
    raises Cancelled. Raises InputFault when it cannot be written, and what the query raises.
    """
    path, rows = Path(copied.path), copied.rows
    count = 0

    def all_rows() -> Iterator[tuple[Any, ...]]:
        nonlocal count
        blocks = [rows.rows] if isinstance(rows, Rows) else _blocks(rows)
        for block in blocks:
            check()
            for row in block:
                count += 1
                yield row

    columns, _ = renamed_columns(rows)
    table = Rows((), columns, cast(Sequence[tuple[Any, ...]], all_rows()), rows.numeric)
    lines = FORMATS[copied.format](table, Style(delimiter=copied.delimiter))
    first = 1 if not copied.header and copied.format in ("csv", "tsv") else 0
    path = Path(os.path.realpath(path))  # what a symbolic link points to is written, and the link stays
    part = path.parent / f".{path.name}.part"
    try:
        if not path.parent.exists():
            raise no_folder(path, copied.place)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            part = path  # a device or FIFO cannot be replaced: the rows are written into it
        packed = path.suffix.casefold() == PACKED
        with open_text(part, "w", packed=packed, errors="surrogatepass", newline="") as file:
            file.writelines(f"{line}\n" for line in islice(lines, first, None))
        if part != path:
            if path.exists():
                os.chmod(part, stat.S_IMODE(path.stat().st_mode))
            part.replace(path)
    except OSError as error:
        fault = InputFault(
            f"cannot write {copied.path}: {reason_of(error)}", span=copied.place, code="FILE_NOT_WRITTEN"
        )
        raise fault from None
    finally:
        if isinstance(rows, RowStream):
            rows.close()
        if part != path and part.exists():
            os.unlink(part)
    return f"{counted(count, 'row')} copied to {copied.path}"


def _blocks(rows: RowStream) -> Iterator[Sequence[tuple[Any, ...]]]:
    yield rows.first
    yield from rows.rest
