"""Looks into local csv files before Spark reads them: compares their headers with the columns of a stream,
and tells how their fields are quoted.

Spark compares headers, too, when it reads a file (enforceSchema 'false'), and so those that land later.
"""

from __future__ import annotations

import csv
import os
import zlib
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from streamsql.connectors.rows import binds_by_name
from streamsql.definitions import Stream
from streamsql.errors import InputFault, Note
from streamsql.language.statements.base import Column, Name, Watermark
from streamsql.language.tokens import quote
from streamsql.plan.statements.csv_guesses import decoded, quoting
from streamsql.plan.statements.queries import SAMPLE
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.text_files import PACKED, open_text

MOST = 1_000
"""The number of files whose headers are compared; Spark compares the others when it reads them."""
BY_POSITION = "OPTIONS (enforceSchema 'true') takes the columns by their positions"


def check_headers(stream: Stream, path: Name | None, create: str) -> None:
    """Raise InputFault when a file has a header with other columns than a stream, or in another order.

    path: of the statement; create: the words with which the stream is defined in a proposal.
    """
    headers, others = _headers(stream)
    if not others:
        return
    file, names = others[0]
    alike = len(others) == len(headers) and all(other == names for _, other in others)
    columns = _in_order(stream.columns, names, file)
    event_time = _renamed(stream.watermark, stream.columns, columns)
    proposed = replace(stream, columns=columns, watermark=event_time).sql().removeprefix("CREATE")
    own = "declare the columns with the names of the header, in its order"
    if not alike:
        own = "declare a stream for each header, with OPTIONS (pathGlobFilter '…')"
    raise InputFault(
        f"the header of {file} is not that of the columns of {stream.name}",
        detail=f"the header: {', '.join(names)}\nthe columns: {', '.join(c.name for c in stream.columns)}",
        hint=f"{own}; or {BY_POSITION}",
        proposal=f"{create}{proposed};" if alike else "",
        span=path.span if path else None,
        code="HEADER_MISMATCH",
    )


def header_notes(stream: Stream) -> tuple[Note, ...]:
    """A note about files with another header than that of the columns of a stream, which a query that has
    not read them yet cannot read.
    """
    _, others = _headers(stream)
    if not others:
        return ()
    file, names = others[0]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    text = f"{file}{more} has the header {', '.join(names)}: a query that has still to read it fails"
    return (Note("OTHER_HEADERS", text),)


def newest_file(stream: Stream) -> Path | None:
    """The file of a stream that was written last; None where its files are not local ones."""
    folder = local_path(stream.option("path"))
    files = _files(stream, Path(folder)) if folder is not None else iter(())
    return max(files, key=lambda file: (file.stat().st_mtime, file.name), default=None)


def _headers(stream: Stream) -> tuple[list[tuple[Path, list[str]]], list[tuple[Path, list[str]]]]:
    """The local files whose headers are compared with the columns of a stream, with these headers: all of
    them, and those with other columns.
    """
    folder = local_path(stream.option("path"))
    if not binds_by_name(stream) or not stream.columns or folder is None:
        return [], []
    files = islice(_files(stream, Path(folder)), MOST)
    headers = [(file, names) for file in files if (names := _header(stream, file))]
    declared = [
        c.name.casefold() for c in stream.columns if c.name != stream.option("columnNameOfCorruptRecord")
    ]
    return headers, [(file, names) for file, names in headers if not _same(names, declared, file)]


def quoting_notes(stream: Stream) -> tuple[Note, ...]:
    """A note about options that the first lines of a local csv file show, and the stream does not have: for a
    stream with declared columns, which is otherwise not looked into. Raises OSError.
    """
    folder = local_path(stream.option("path"))
    if stream.connector != "csv" or folder is None:
        return ()
    file = next(_files(stream, Path(folder)), None)
    if file is None or file.suffix in _PACKED:
        return ()
    with file.open("rb") as opened:
        lines = [line.rstrip(b"\r\n") for line in islice(opened, SAMPLE)]
    given = {key.casefold() for key, _ in stream.options}
    texts, encoding = decoded(lines)
    options = {"encoding": encoding} if encoding and not given & {"encoding", "charset"} else {}
    sign = stream.option("sep") or stream.option("delimiter") or ","
    options |= quoting(texts, sign, given, stream.option("quote", '"')[:1]).options
    if not options:
        return ()
    listed = ", ".join(f"{name} {quote(value)}" for name, value in options.items())
    text = f"as its lines show, {file} is read right with OPTIONS ({listed})"
    return (Note("CSV_OPTIONS", text),)


_PACKED = frozenset((".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"))


def _files(stream: Stream, folder: Path) -> Iterator[Path]:
    """The files that Spark would read."""
    chosen = stream.option("pathGlobFilter") or "*"
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f[0] not in "_." and ("=" in f or _recursive(stream)))
        yield from (Path(place) / f for f in sorted(files) if f[0] not in "_." and fnmatchcase(f, chosen))


def _recursive(stream: Stream) -> bool:
    return stream.option("recursiveFileLookup").casefold() == "true"


def _header(stream: Stream, file: Path) -> list[str]:
    """The fields of the first record of a file; none where it cannot be read here."""
    if file.suffix in _PACKED and file.suffix != PACKED or stream.option("lineSep"):
        return []
    encoding = stream.option("encoding") or stream.option("charset") or "utf-8"
    comment = stream.option("comment")
    try:
        with open_text(file, "r", encoding=encoding, errors="replace", newline="") as lines:
            rest = (line.removeprefix("\ufeff") for line in lines)
            records = (line for line in rest if line.strip() and not (comment and line.startswith(comment)))
            sign = stream.option("sep") or stream.option("delimiter") or ","
            return next(
                csv.reader(records, delimiter=sign, quotechar=stream.option("quote", '"') or None), []
            )
    except (OSError, EOFError, LookupError, TypeError, csv.Error, zlib.error):
        return []


def of_folders(file: Path) -> set[str]:
    """The columns whose values are in the names of the folders of a file."""
    return {part.partition("=")[0].casefold() for part in file.parent.parts if "=" in part}


def _same(names: list[str], declared: list[str], file: Path) -> bool:
    return [n.casefold() for n in names] == [c for c in declared if c not in of_folders(file)]


def _renamed(
    watermark: Watermark | None, columns: tuple[Column, ...], found: tuple[Column, ...]
) -> Watermark | None:
    """The watermark of a stream whose columns have other names now. found: the columns in their new order."""
    names = {c.name.casefold() for c in found}
    if watermark is None or watermark.computed or watermark.column.value.casefold() in names:
        return watermark
    for column, new in zip(columns, found, strict=False):
        if column.name.casefold() == watermark.column.value.casefold():
            return replace(watermark, column=replace(watermark.column, value=new.name))
    return watermark


def _in_order(columns: tuple[Column, ...], names: list[str], file: Path) -> tuple[Column, ...]:
    """The columns of a header: with their declared types, or those of the column in the same place where no
    column has that name; and the columns of folders behind them.
    """
    by_name = {c.name.casefold(): c for c in columns}
    used = {n.casefold() for n in names}
    found = []
    for at, name in enumerate(names):
        in_place = columns[at] if at < len(columns) and columns[at].name.casefold() not in used else None
        column = by_name.get(name.casefold()) or in_place
        found.append(replace(column, name=name) if column else Column(name, "STRING"))
    folders = of_folders(file) - used
    return (*found, *(c for c in columns if c.name.casefold() in folders))
