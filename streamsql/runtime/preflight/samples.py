"""Reads the first records of a source, with Spark."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamsql.errors import Note
from streamsql.plan.statements.queries import SAMPLE

MOST_TEXT = 4_000_000
"""The largest number of characters of records that are read."""
MOST_FILE = 64_000_000
"""The largest size in bytes of a file that is read as a whole, because its records have several lines."""


@dataclass(frozen=True)
class Seen:
    """The inferred schema. types: a StructType; values: the rows that were read; options: to be added to
    the stream; missed: the number of records that could not be read; order: the order of the columns.
    """

    types: Any
    values: Sequence[Sequence[Any]]
    options: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    missed: int = 0
    order: tuple[str, ...] = ()


def first_texts(frame: Any) -> list[str]:
    """The first records of a DataFrame of texts, within the limits."""
    return [record.decode("utf-8", "replace") for record in first_records(frame)]


def first_records(frame: Any) -> list[bytes]:
    """The bytes of the first records of a DataFrame of texts, within the limits."""
    first = frame.limit(SAMPLE).withColumnRenamed(frame.columns[0], "value")
    before = "sum(length(value)) OVER (ORDER BY monotonically_increasing_id()) - length(value)"
    taken = first.selectExpr("value", f"{before} AS before").where(f"before < {MOST_TEXT}")
    return [bytes(row[0]) for row in taken.selectExpr("CAST(value AS BINARY)").collect() if row[0]]


def as_frame(texts: Sequence[str], spark: Any) -> Any:
    """A DataFrame with a text in each row."""
    return spark.createDataFrame([(t,) for t in texts], "value STRING")


def first_file(frame: Any) -> str:
    """The URL of the first file of a DataFrame; "" when it is too large to be read as a whole."""
    first = next(iter(frame.inputFiles()), "")
    local = urllib.parse.unquote(first.removeprefix("file://").removeprefix("file:"))
    return "" if os.path.exists(local) and os.path.getsize(local) > MOST_FILE else first
