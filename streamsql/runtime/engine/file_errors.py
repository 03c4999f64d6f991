"""Explains Spark's exceptions about the files that it reads, and recognizes a full disk."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterable
from pathlib import Path

from streamsql.error_codes import FILE_GONE, MALFORMED_MESSAGE
from streamsql.runtime.engine.kafka_errors import Words

_FILE = re.compile(r"FAILED_READ_FILE\.(\w+)\][^\n]*?(?:reading file|read the file:?|file) (\S+?)\.?(?:\s|$)")
_ROW = re.compile(r"MALFORMED_RECORD_IN_PARSING[^\n]*?record parsing: (.*?)\.\s*\n?Parse Mode", re.DOTALL)
_HEADER = re.compile(r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)")
_LENGTHS = re.compile(r"Header length: (\d+), schema size: (\d+)")
_BY_HEADER = (
    "a stream reads files with one header: move the file to a folder of its own, for another stream; "
    "or OPTIONS (enforceSchema 'true'), which takes the columns by their position"
)
_BEHIND = "ALTER STREAM name REFRESH SCHEMA takes new columns behind those of before; else "
_PARQUET_TYPE = re.compile(
    r"when reading Parquet column \[([^\]]*)\]\. Expected Spark type (\S+), actual Parquet type (\w+)"
)
_AVRO_TYPE = re.compile(r"Cannot convert Avro type (\{.*?\}) to SQL type (STRUCT<.*>)\.")
_BY_TYPE = (
    "a column has one type: CREATE OR REPLACE STREAM with the new type, or move the file to a folder of its "
    "own, for another stream"
)
_OF_TABLE = " in a stream; of a table that was overwritten, START QUERY reads the files of now"
SKIP_ROWS = "ON MALFORMED SKIP or INTO sink skips such rows; SELECT * FROM name$malformed shows them"
# A fragment of an exception's text → the cause.
_CAUSES = (
    ("Permission denied", "permission denied"),
    ("EOFException", "it is incomplete: is it still being written, or truncated?"),
    ("Unexpected end of input stream", "it is incomplete: is it still being written, or truncated?"),
    ("incorrect header check", "it is not compressed in the format that its name shows"),
    ("not in gzip format", "it is not compressed in the format that its name shows"),
    ("CANNOT_READ_FILE_FOOTER", "it is not a file of that format, or it is incomplete"),
    ("Not an Avro data file", "it is not a file of that format, or it is incomplete"),
    ("not an Avro data file", "it is not a file of that format, or it is incomplete"),
    ("is not a Parquet file", "it is not a file of that format, or it is incomplete"),
)


def file_words(text: str, *, of_query: bool = True) -> Words | None:
    """The explanation of an exception (its text, with causes) that names a file; None for another.

    of_query: whether a streaming query raised the exception.
    """
    match = _FILE.search(text)
    if match is None:
        return None
    file = _plain(match.group(2))
    header, lengths = _HEADER.search(text), _LENGTHS.search(text)
    if header or lengths:
        detail = f"the header: {header.group(1)}\nthe columns: {header.group(2)}" if header else ""
        if lengths:
            detail = f"the header has {lengths.group(1)} names, and the stream {lengths.group(2)} columns"
        fact = f"the header of {file} is not that of the columns of the stream"
        more = lengths is not None and int(lengths[1]) > int(lengths[2])
        return Words(fact, detail, (_BEHIND if more else "") + _BY_HEADER, "HEADER_MISMATCH")
    column, record = _PARQUET_TYPE.search(text), _AVRO_TYPE.search(text)
    if column or record:
        fact = f"the columns of {file} have other types than those of the stream"
        if column:
            name = column[1].replace(", ", ".")
            detail = f"{name} is {column[2]} in the stream, and {column[3]} of Parquet in the file"
        else:
            assert record
            detail = f"the file: {record[1]}\nthe columns: {record[2]}"
        hint = _BY_TYPE + ("; ALTER STREAM name REFRESH SCHEMA takes wider types" if of_query else "")
        return Words(fact, detail, hint, "WRONG_TYPE")
    row = _ROW.search(text)
    if row:
        shown = row.group(1).strip()
        return Words(
            f"a row of {file} cannot be read",
            f"the row: {shown[:200]}" if shown not in ("", "[null]") else "",
            SKIP_ROWS if of_query else "OPTIONS (mode 'DROPMALFORMED') skips such rows",
            MALFORMED_MESSAGE,
        )
    if match.group(1) == "FILE_NOT_EXIST" or "FileNotFoundException" in text and "Permission" not in text:
        return Words(
            f"the file {file} no longer exists",
            "it was deleted between listing and reading",
            "OPTIONS (ignoreMissingFiles true) skips it" + (_OF_TABLE if of_query else ""),
            FILE_GONE,
        )
    cause = next((words for fragment, words in _CAUSES if fragment in text), "")
    return Words(f"the file {file} cannot be read", cause, "OPTIONS (ignoreCorruptFiles true) skips it")


def _plain(url: str) -> str:
    """The path of a URL."""
    path = re.sub(r"^file:/+", "/", url)
    return urllib.parse.unquote(path) if path != url else url


NO_SPACE = "no space left on device"
_SAID = re.compile(
    r"(?:IOException: |\[[Ee]rrno 28\] )No space left on device|"
    r"(?:IOException: |\[[Ee]rrno 122\] )Disk quota exceeded|\[SQLITE_FULL\]"
)
_LITTLE = 256 * 1024


def is_no_space(text: str) -> bool:
    """Whether the text of an exception, including its class, says that a disk is full."""
    return bool(_SAID.search(text))


def full_disk(places: Iterable[str]) -> str:
    """A sentence about the first folder that is on a full disk; empty when none is."""
    for place in places:
        folder = Path(place.removeprefix("file://").removeprefix("file:")).absolute()
        try:
            existing = next(p for p in (folder, *folder.parents) if p.exists())
            disk = os.statvfs(existing)
        except (OSError, StopIteration, ValueError):
            continue
        if disk.f_bavail * disk.f_frsize < _LITTLE:
            return f"the disk of {existing} is full"
    return ""
