"""Formats as pure functions: nothing altered, NULL told from an empty text, numbers to the right."""

from __future__ import annotations

import csv as csv_module
import datetime as dt
import io
import json as json_module
from decimal import Decimal

import pytest

from streamsql.output.cells import plain, text
from streamsql.output.formats import FORMATS
from streamsql.results import Rows

ROWS = Rows(
    (),
    ("name", "n", "note"),
    [("1e5", 1234567.891, ""), ("日本", None, None), ('a "b", c', 2, "two\nlines\tand a | bar")],
    (False, True, False),
)


def shown(format: str, rows: Rows = ROWS) -> str:
    return "\n".join(FORMATS[format](rows))


def test_table_alters_nothing_and_counts_wide_characters() -> None:
    assert shown("table") == (
        "+----------+-------------+-------------------------+\n"
        "| name     |           n | note                    |\n"
        "|----------+-------------+-------------------------|\n"
        "| 1e5      | 1234567.891 |                         |\n"
        "| 日本     |        NULL | NULL                    |\n"
        '| a "b", c |           2 | two\\nlines\\tand a | bar |\n'
        "+----------+-------------+-------------------------+"
    )


def test_csv_reads_back_and_tells_null_from_empty() -> None:
    written = shown("csv")
    assert written.splitlines()[1] == '1e5,1234567.891,""'
    assert written.splitlines()[2] == "日本,,"
    back = list(csv_module.reader(io.StringIO(written)))
    assert back[3] == ['a "b", c', "2", "two\nlines\tand a | bar"]


def test_tsv_keeps_one_line_a_row() -> None:
    lines = shown("tsv").split("\n")
    assert lines[0] == "name\tn\tnote"
    assert lines[2] == "日本\t\\N\t\\N"
    assert lines[3] == 'a "b", c\t2\ttwo\\nlines\\tand a | bar'


def test_json_and_jsonl_read_back() -> None:
    rows = json_module.loads(shown("json"))
    assert rows[1] == {"name": "日本", "n": None, "note": None}
    assert [json_module.loads(line) for line in shown("jsonl").splitlines()] == rows
    assert json_module.loads(shown("json", Rows((), ("a",), [], (True,)))) == []


def test_markdown_escapes_bars_and_aligns_numbers() -> None:
    lines = shown("markdown").splitlines()
    assert lines[1] == "|---|---:|---|"
    assert lines[4] == '| a "b", c | 2 | two\\nlines\\tand a \\| bar |'


def test_vertical_has_a_block_for_each_row() -> None:
    lines = shown("vertical").splitlines()
    assert lines[0].startswith("-[ row 1 ]")
    assert lines[1:4] == ["name | 1e5", "n    | 1234567.891", "note | "]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_takes_no_rows(format: str) -> None:
    shown(format, Rows((), ("a", "b"), [], (False, True)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        ("", ""),
        (True, "true"),
        (1.0, "1.0"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (b"\x00\xff", "0x00ff"),
        ([1, None, "x"], "[1, NULL, x]"),
        ({"a": 1, "b": {"c": None}}, "{a: 1, b: {c: NULL}}"),
        (dt.datetime(2024, 1, 1, 12, 0, 0, 1), "2024-01-01 12:00:00.000001"),
        (dt.date(2024, 1, 1), "2024-01-01"),
    ],
)
def test_cells(value: object, expected: str) -> None:
    assert text(value) == expected


def test_json_numbers_are_exact_or_texts() -> None:
    assert plain(Decimal("1.5")) == 1.5
    assert plain(Decimal("0.1234567890123456789")) == "0.1234567890123456789"
    assert plain(float("nan")) == "nan"
    assert plain({1: Decimal(2)}) == {"1": 2.0}
