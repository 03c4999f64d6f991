"""What Spark's exceptions about the files it reads mean to the one who wrote the statement."""

from __future__ import annotations

import re
import urllib.parse

from streamsql.runtime.kafka_faults import Words

_FILE = re.compile(r"FAILED_READ_FILE\.(\w+)\][^\n]*?(?:reading file|read the file:?|file) (\S+?)\.?(?:\s|$)")
_ROW = re.compile(r"MALFORMED_RECORD_IN_PARSING[^\n]*?record parsing: (.*?)\.\s*\n?Parse Mode", re.DOTALL)
_CAUSES = (
    ("Permission denied", "it may not be read: permission denied"),
    ("EOFException", "it ends in the midst: is it still being written, or cut off?"),
    ("Unexpected end of input stream", "it ends in the midst: is it still being written, or cut off?"),
    ("incorrect header check", "it is not compressed as its name says"),
    ("not in gzip format", "it is not compressed as its name says"),
    ("CANNOT_READ_FILE_FOOTER", "it is no file of that format, or only a part of one"),
    ("Not an Avro data file", "it is no file of that format, or only a part of one"),
    ("not an Avro data file", "it is no file of that format, or only a part of one"),
    ("is not a Parquet file", "it is no file of that format, or only a part of one"),
)


def file_words(text: str) -> Words | None:
    """The plain words for an exception, as text with its causes, that names a file; None for another."""
    found = _FILE.search(text)
    if found is None:
        return None
    file = _plain(found.group(2))
    row = _ROW.search(text)
    if row:
        shown = row.group(1).strip()
        return Words(
            f"a row of {file} cannot be read",
            f"it stands for {shown[:200]}" if shown not in ("", "[null]") else "",
            "ON MALFORMED SKIP or INTO sink goes on; SELECT * FROM `name$malformed` shows them",
        )
    if found.group(1) == "FILE_NOT_EXIST" or "FileNotFoundException" in text and "Permission" not in text:
        return Words(
            f"the file {file} is not there any more",
            "it was listed, and had gone when its turn came",
            "OPTIONS (ignoreMissingFiles true) goes on without it",
        )
    cause = next((words for mark, words in _CAUSES if mark in text), "")
    return Words(
        f"the file {file} cannot be read", cause, "OPTIONS (ignoreCorruptFiles true) goes on without it"
    )


def _plain(url: str) -> str:
    """A path as people write it."""
    path = re.sub(r"^file:/+", "/", url)
    return urllib.parse.unquote(path) if path != url else url
