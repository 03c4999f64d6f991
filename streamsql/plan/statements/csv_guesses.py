"""Infers the options of a csv source from its first lines: separator, header, quotes, records of several
lines, and encoding. Pure functions of the lines.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from streamsql.errors import Note

SEPARATORS = (",", ";", "\t", "|")
# The percentage of records that must have the same number of fields.
_ALIKE = 90


def separator(lines: Sequence[str], quoting: str = '"') -> str:
    """The separator of delimited lines: the one that splits nearly all lines into the same number of fields,
    at least two, and into the most fields; empty if there is none.
    """
    best, most = "", 1
    for sign in SEPARATORS:
        counts = [len(row) for row in fields(lines, sign, quoting)]
        usual = max(set(counts), key=counts.count, default=0)
        if usual > most and counts.count(usual) * 100 >= len(counts) * _ALIKE:
            best, most = sign, usual
    return best


def fields(lines: Iterable[str], sign: str, quoting: str = '"') -> list[list[str]]:
    """The fields of delimited lines; an unclosed quote ends at the end of its line."""
    return [row for line in lines for row in csv.reader([line], delimiter=sign, quotechar=quoting or None)]


_TITLE = re.compile(r"[^\W\d][\w .:/()#%-]{0,63}\Z")


def has_header(rows: Sequence[Sequence[str]], typed: bool) -> bool:
    """Whether the first row is a header. typed: without the first row, some column is not a string."""
    if not rows or not all(_TITLE.match(cell.strip()) for cell in rows[0]):
        return False
    if len(set(rows[0])) < len(rows[0]):
        return False
    if typed:
        return True
    # All columns are strings: the names in a header do not occur again in their columns, except in the header
    # of another file.
    below = [row for row in rows[1:] if sorted(row) != sorted(rows[0])]
    return bool(below) and all(
        cell not in {row[at] for row in below if at < len(row)} for at, cell in enumerate(rows[0])
    )


def decoded(lines: Sequence[bytes]) -> tuple[list[str], str]:
    """(the texts of lines, their encoding in Spark's words: "" for UTF-8). Lines of UTF-16 are not
    decoded one by one: their text is empty.
    """
    data = b"\n".join(lines)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return [], "UTF-16"
    if b"\0" in data[:200]:
        return [], "UTF-16LE" if data[1:2] == b"\0" else "UTF-16BE"
    try:
        return [line.decode() for line in lines], ""
    except UnicodeDecodeError:
        if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data):  # texts of a Latin encoding have none of these
            return [line.decode("utf-8", "replace") for line in lines], ""
        return [line.decode("iso-8859-1") for line in lines], "ISO-8859-1"


@dataclass(frozen=True)
class Quoting:
    """How the fields of a sample are quoted. records: its lines, with those of one record joined; options:
    to be added to the stream.
    """

    records: list[str]
    options: dict[str, str] = field(default_factory=dict)


def quoting(lines: Sequence[str], sign: str, given: Iterable[str], quote: str = '"') -> Quoting:
    """The quoting of delimited lines, as far as the options that are given (in lower case) leave it open."""
    given_options, lines = set(given), list(lines)
    if not quote or not any(quote in line for line in lines):
        return Quoting(lines)
    options, records = dict[str, str](), lines
    if "multiline" not in given_options and "escape" not in given_options:
        whole = _joined(lines, sign, quote)
        if len(whole) < len(lines):
            options["multiLine"], records = "true", whole
    end, sign_of_quote = re.escape(sign), re.escape(quote)
    inside = f"(?:[^{sign_of_quote}]|{sign_of_quote}{sign_of_quote})*"
    quoted = rf"(?:\A|{end}){sign_of_quote}({inside}){sign_of_quote}(?={end}|\Z)"
    insides = [inside for record in records for inside in re.findall(quoted, record)]
    backslash = any("\\" + quote in record for record in records)
    if "escape" not in given_options and not backslash and any(quote * 2 in inside for inside in insides):
        options["escape"] = quote
    if not given_options & {"nullvalue", "emptyvalue"} and "" in insides and _has_empty(records, sign):
        options["nullValue"] = "\\N"
    return Quoting(records, options)


def _joined(lines: list[str], sign: str, quote: str) -> list[str]:
    """The lines, with those of one quoted field joined where all records then have equally many fields; else
    the lines as they are.
    """
    records, widths, begun = list[str](), list[int](), list[str]()
    for line in lines:
        begun.append(line)
        if "\n".join(begun).count(quote) % 2 == 0:
            record = "\n".join(begun)
            records.append(record)
            widths.append(len(next(csv.reader([record + "\n"], delimiter=sign, quotechar=quote), [])))
            begun = []
    alike = bool(widths) and widths.count(widths[0]) == len(widths)
    # What is left is the beginning of a record that the sample cuts off.
    return records if alike and len(begun) < len(lines) // 2 else lines


def _has_empty(records: Iterable[str], sign: str) -> bool:
    """Whether a record has a field without any character."""
    empty = re.compile(rf"(\A|{re.escape(sign)})(?={re.escape(sign)}|\Z)")
    return any(empty.search(record) for record in records)


def notes_of(options: dict[str, str]) -> tuple[Note, ...]:
    """The notes about inferred options."""
    found = []
    if options.get("header"):
        text = "the first line looks like names; OPTIONS (header 'false') when it is data"
        found.append(Note("HEADER_GUESSED", text))
    if options.get("nullValue"):
        text = 'a field without a character is NULL, and "" an empty text: nullValue tells them apart'
        found.append(Note("CSV_OPTIONS", text))
    return tuple(found)
