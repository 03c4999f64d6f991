"""What first records look like, told without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from streamsql.plan.statements.csv_guesses import decoded, fields, has_header, quoting, separator
from streamsql.plan.statements.schema_guesses import Leaf, event_time, in_order, stream_name


@pytest.mark.parametrize(
    ("lines", "sign"),
    [
        (["a,b", "c,d"], ","),
        (["a;b,c", "d;e", "f;g,h,i"], ";"),
        (["1\tann", "2\tbob"], "\t"),
        (["a|b|c", "d|e|f"], "|"),
        (['"x, y";1', '"z";2'], ";"),
        (["one, two words", "plain"], ""),
        ([], ""),
    ],
)
def test_the_separator_makes_equally_many_fields(lines: list[str], sign: str) -> None:
    assert separator(lines) == sign


@pytest.mark.parametrize(
    ("lines", "typed", "header"),
    [
        (["id,name", "1,ann"], True, True),
        (["1,ann", "2,bob"], False, False),
        (["name,drink", "ann,tea", "bob,tea"], False, True),
        (["ann,tea", "bob,tea"], False, False),
        (["id,id", "1,2"], True, False),
        (["id,", "1,2"], True, False),
        (["name,drink"], False, False),
    ],
)
def test_a_header_names_and_does_not_come_again(lines: list[str], typed: bool, header: bool) -> None:
    assert has_header(fields(lines, ","), typed) is header


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["a,b", '1,"x"'], {}),
        (['1,"a ""b"""', "2,c"], {"escape": '"'}),
        (['1,"a \\"b\\" ""c"""', "2,c"], {}),
        (['1,"two', 'lines"', "2,one"], {"multiLine": "true"}),
        (['1,"inches', "2,one", "3,two"], {}),
        (['1,""', "2,"], {"nullValue": "\\N"}),
        (['1,""', "2,x"], {}),
        (['1,"two ""', 'lines"""', "2,one"], {"multiLine": "true", "escape": '"'}),
    ],
)
def test_quotes_are_told_from_the_lines(lines: list[str], options: dict[str, str]) -> None:
    found = quoting(lines, ",", ())
    assert found.options == options
    assert quoting(lines, ",", ("escape", "multiline", "nullvalue")).options == {}
    assert len({len(row) for row in fields(found.records, ",")}) == 1 or not options


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [("id,Müller", "utf-8", ""), ("id,Müller", "latin-1", "ISO-8859-1"), ("id,Müller", "utf-16", "UTF-16")],
)
def test_the_encoding_is_told_from_the_bytes(text: str, codec: str, encoding: str) -> None:
    texts, told = decoded([text.encode(codec)])
    assert told == encoding
    assert texts == ([] if encoding == "UTF-16" else [text])


def leaf(name: str, kind: str, *values: Any) -> Leaf:
    return Leaf(tuple(name.split(".")), kind, values)


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        ([leaf("ts", "TIMESTAMP", 1)], "ts DELAY 10 minutes"),
        ([leaf("t", "STRING", "2024-05-01T12:00:00Z")], "to_timestamp(t) AS event_time DELAY 10 minutes"),
        ([leaf("t", "STRING", "2024-05-01 12:00", None, None)], ""),
        ([leaf("t", "STRING", "2024-05-01 12:00", "noon")], ""),
        ([leaf("t", "STRING", "9021", "2024")], ""),
        (
            [leaf("t", "STRING", "01/May/2024:12:00:00 +0000")],
            "to_timestamp(t, 'dd/MMM/yyyy:HH:mm:ss Z') AS event_time DELAY 10 minutes",
        ),
        (
            [leaf("t", "STRING", "12/05/2024 12:00:00", "25/05/2024 12:00:00")],
            "to_timestamp(t, 'dd/MM/yyyy HH:mm:ss') AS event_time DELAY 10 minutes",
        ),
        ([leaf("at", "BIGINT", 1714564800)], "timestamp_seconds(at) AS event_time DELAY 10 minutes"),
        ([leaf("at", "BIGINT", 1714564800123)], "timestamp_millis(at) AS event_time DELAY 10 minutes"),
        ([leaf("at", "BIGINT", 1714564800123456)], "timestamp_micros(at) AS event_time DELAY 10 minutes"),
        (
            [leaf("at", "BIGINT", 1714564800123456789)],
            "timestamp_micros(at DIV 1000) AS event_time DELAY 10 minutes",
        ),
        ([leaf("at", "DOUBLE", 1714564800.25)], "timestamp_seconds(at) AS event_time DELAY 10 minutes"),
        (
            [leaf("at", "DOUBLE", 1714564800123.5)],
            "timestamp_seconds(at / 1000) AS event_time DELAY 10 minutes",
        ),
        (
            [leaf("at", "STRING", "1714564800123")],
            "timestamp_millis(CAST(at AS BIGINT)) AS event_time DELAY 10 minutes",
        ),
        ([leaf("id", "BIGINT", 1, 2), leaf("n", "DOUBLE", 0.5)], ""),
        ([leaf("day", "DATE", 1)], "to_timestamp(day) AS event_time DELAY 1 day"),
        # The likeliest of several.
        ([leaf("received_at", "TIMESTAMP", 1), leaf("ts", "BIGINT", 1714564800)],
         "timestamp_seconds(ts) AS event_time DELAY 10 minutes"),
        ([leaf("birthday", "DATE", 1), leaf("seen", "TIMESTAMP", 1)], "seen DELAY 10 minutes"),
        ([leaf("id", "BIGINT", 1714564800), leaf("createdAt", "TIMESTAMP", 1)], "createdAt DELAY 10 minutes"),
        ([leaf("e.ts", "TIMESTAMP", 1), leaf("ts", "TIMESTAMP", 1)], "ts DELAY 10 minutes"),
        # A field inside a column, and names that must be quoted or are taken.
        ([leaf("e.when at", "TIMESTAMP", 1)], "e.`when at` AS event_time DELAY 10 minutes"),
        (
            [leaf("event_time", "BIGINT", 1714564800)],
            "timestamp_seconds(event_time) AS event_time_2 DELAY 10 minutes",
        ),
    ],
)  # fmt: skip
def test_the_event_time_is_guessed(leaves: list[Leaf], expected: str) -> None:
    mark = event_time(leaves, [x.path[0] for x in leaves])
    made = f"{mark.computed.text} AS " if mark and mark.computed else ""
    assert (f"{made}{mark.column} DELAY {mark.delay}" if mark else "") == expected


def test_names_of_streams() -> None:
    assert stream_name("in/clicks", [], "json") == "clicks"
    assert stream_name("/data/My Clicks/", ["my_clicks"], "json") == "my_clicks_2"
    assert stream_name("in/clicks/day=*/h=1", [], "json") == "clicks"
    assert stream_name("s3://bucket/page-views", [], "json") == "page_views"
    assert stream_name("in/2024.csv", [], "csv") == "stream_2024"
    assert stream_name("from", [], "csv") == "stream_from"
    assert stream_name("", [], "rate-micro-batch") == "rate_micro_batch"
    assert stream_name("..", [], "json") == "json"


def test_columns_come_as_the_records_have_them() -> None:
    assert in_order(["a", "b", "c"], ["no json", '{"c": 1}', '{"b": 1, "c": 2}', "[1]"]) == ["c", "b", "a"]
