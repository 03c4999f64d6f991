"""Lines of JSON files are read by the console's own reader (JsonLine.java) as Spark's reader reads them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import cases_of

from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.spark_classes import SWITCH

ROOMS = ("streamsql/runtime/engine/",)

SCHEMA = (
    "bad STRING, s STRING, n BIGINT, i INT, d DOUBLE, b BOOLEAN, t TIMESTAMP, day DATE, f FLOAT, small SMALLINT,"
    " dec DECIMAL(10, 2), ntz TIMESTAMP_NTZ, a ARRAY<INT>, m MAP<STRING, STRING>, st STRUCT<x: INT, y: STRING>, bin BINARY"
)
VALUES = {
    "s": ['"abc"', '""', '"ü€😀"', r'"a\"b"', r'"\u00e4\n"', "12", "1.50", "true", "null", '{"x": [1, "2"]}', '"tab\tin"', '"a,b}"'],
    "n": ["0", "-1", "-0", "999999999999999999", "9223372036854775807", "9223372036854775808", "1.0", "1e3", '"5"', '""', "01", "+1", "-", "null", "12a"],
    "i": ["0", "2147483647", "2147483648", "-2147483648", "null", "1.5", "true"],
    "d": ["0", "-0", "-0.0", "1", "1.5", "0.1", "123456789.123456789", "1e10", "1E-7", "1e999", "9007199254740993", "0.30000000000000004",
          "123456789012345678", "1234567890123456789", "1234567890123456789.5", "4.35", "1.7976931348623157e308", "4.9e-324", ".5", "1.", '"NaN"', "NaN", '"1.5"', "null"],
    "b": ["true", "false", "null", "True", '"true"', "tru", "truex"],
    "t": ['"2026-01-02 03:04:05"', '"2026-01-02T03:04:05.123Z"', '"2026-01-02T03:04:05.123456"', '"2026-01-02T03:04:05.1234567"', '"2026-01-02T03:04:05+02:00"',
          '"2026-03-29 02:30:00"', '"2026-10-25 02:30:00"', '"2026-03-29 01:59:59.999999"', '"2024-02-29 23:59:59"', '"2023-02-29 00:00:00"', '"2026-01-02"',
          '"1899-12-31 00:00:00"', '"1900-03-01 00:00:00"', '"2100-02-29 00:00:00"', '"2026-13-01 00:00:00"', '"2026-01-02 24:00:00"', '"2026-01-02 03:04:60"',
          '"2026-01-02 03:04:05 "', '"2026-01-02 03:04:05."', '"9999-12-31 23:59:59"', "1767323045", "1767323045.5", '""', '"x"', "null"],
    "day": ['"2026-01-02"', '"2024-02-29"', '"2023-02-29"', '"1900-01-01"', '"0001-01-01"', '"2026-1-2"', '"2026-01-02T00:00:00"', '""', "20000", "null"],
    "f": ["1.5", "1", "1e50", '"NaN"', "null"],
    "small": ["1", "32768", "null"],
    "dec": ["1.25", "1.255", "123456789012", '"1.5"', "null"],
    "ntz": ['"2026-01-02T03:04:05"', '"2026-01-02T03:04:05Z"', "null"],
    "a": ["[1, 2]", "[]", '[1, "x"]', "[1, null]", "1", "null", "[1,]"],
    "m": ['{"k": "v", "l": 1}', "{}", '{"k": {"z": "ä"}}', "[]", "null"],
    "st": ['{"x": 1, "y": "b"}', '{"x": "no", "y": "b"}', '{"z": 1}', "1", "null", '{"x": 1, "x": 2}'],
    "bin": ['"AQID"', '"?"', "null"],
    "other": ["1", '"t"', r'"\q"', r'"\u12"', '{"deep": [[{"x": "}"}]]}', "[1 2]", "nul", "{'a': 1}", '{"a": 1, }'],
}  # fmt: skip
WHOLE = ["", " ", "{}", "{ }", "null", "[]", '[{"n": 1}, {"n": 2}]', "{", '{"n": 1} {"n": 2}', '{"n": 1}x', '{"n": 1}  ', "\ufeff{}", "1",
         '"x"', '{"n" 1}', '{"n": 1, "n": 2}', '{"n": 1,}', '{"N": 1}', '{"bad": "x"}', r'{"\u006e": 1}', '{n: 1}', "{'n': 1}", '\t{"n" :\t1 }',
         '/* c */ {"n": 1}', '{"n": 1, "s": "' + "x" * 70_000 + '"}', '{"ä": 1, "n": 2}']  # fmt: skip
GOOD = {
    "s": '"abc"',
    "n": "12",
    "d": "1.5",
    "b": "true",
    "t": '"2026-01-02 03:04:05.5"',
    "day": '"2026-01-02"',
}


def lines_of(rng: random.Random, number: int) -> list[bytes]:
    """Lines with each value once, in rows that are good otherwise, and with several of them."""
    lines = [text.encode() for text in WHOLE]
    for name, values in VALUES.items():
        lines += [_line(rng, {**GOOD, name: value}) for value in values]
    for _ in range(number):
        some = rng.sample(sorted(VALUES), rng.randrange(1, 6))
        lines.append(_line(rng, {**GOOD, **{name: rng.choice(VALUES[name]) for name in some}}))
    broken = [bytearray(line) for line in rng.sample(lines[len(WHOLE) :], number // 4)]
    for line in broken:
        line[rng.randrange(len(line))] = rng.choice(b'{}[]",:\\ 0a\x00\x80\xff\xc3')
    lines += [bytes(line) for line in broken if not set(line) & set(b"\r\n")]
    rng.shuffle(lines)
    return lines


def _line(rng: random.Random, values: dict[str, str]) -> bytes:
    pairs = list(values.items())
    if rng.random() < 0.3:
        rng.shuffle(pairs)
    between, colon = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
    return ("{" + between.join(f'"{name}"{colon}{value}' for name, value in pairs) + "}").encode()


def rows(session: Any, path: Path, query: str, **options: Any) -> list[str]:
    reader = session.read.schema(SCHEMA).option("columnNameOfCorruptRecord", "bad").options(**options)
    reader.json(str(path)).createOrReplaceTempView("lines")
    return shown(session.sql(query))


def shown(frame: Any) -> list[str]:
    columns = [
        f"CAST({name} AS STRING) AS {name}" if kind == "timestamp" else name for name, kind in frame.dtypes
    ]
    return [repr(row.asDict()) for row in frame.selectExpr(*columns).collect()]


@pytest.mark.parametrize("zone", cases_of({z: z for z in ("UTC", "Europe/Berlin", "America/St_Johns")}, 3))
def test_rows_are_those_of_spark(spark: Any, tmp_path: Path, zone: str) -> None:
    rng = random.Random(zone)
    (tmp_path / "lines.json").write_bytes(b"\n".join(lines_of(rng, 1_500)))
    session = own_session(spark)
    session.conf.set("spark.sql.session.timeZone", zone)
    everything = "SELECT * FROM lines"
    tested = (  # the columns that are only tested for NULL
        "SELECT s, CAST(t AS LONG) AS t, bad IS NULL AS good,"
        " n IS NULL AND d IS NULL AND b IS NULL AND day IS NULL AND st IS NULL AND s IS NULL AS nothing,"
        " i IS NOT NULL AS i FROM lines"
    )
    filtered = "SELECT s, bad, t FROM lines WHERE i IS NULL OR s LIKE 'a%'"
    others: list[dict[str, Any]] = [
        {},
        {"mode": "DROPMALFORMED"},
        {"timestampFormat": "yyyy-MM-dd HH:mm:ss", "dateFormat": "yyyy-M-d"},
        {"allowComments": True, "allowSingleQuotes": False, "allowUnquotedFieldNames": True},
        {"timeZone": "Asia/Kolkata", "lineSep": "\n"},
    ]
    plan = session.read.schema(SCHEMA).json(str(tmp_path))._jdf.queryExecution().executedPlan()
    assert (
        plan.collectLeaves().head().relation().fileFormat().getClass().getName()
        == "streamsql.JsonLines$Format"
    )
    read = 0
    for query, options in [(tested, {}), (filtered, {}), *((everything, each) for each in others)]:
        own = rows(session, tmp_path, query, **options)
        session.conf.set(SWITCH, "off")
        by_spark = rows(session, tmp_path, query, **options)
        session.conf.unset(SWITCH)
        assert [pair for pair in zip(own, by_spark, strict=True) if pair[0] != pair[1]] == []
        read += len(own)
    assert read > 5_000


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("ending", ["\n", "\r\n", pytest.param("\r", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["lines.json", "lines.dat"])
def test_lines_are_those_of_spark(spark: Any, tmp_path: Path, ending: str, name: str) -> None:
    """Of every length around those of the buffer, empty ones, a byte order mark, and the last without an end."""
    rng = random.Random(ending)
    texts = [
        "",
        json.dumps({"s": "y" * 600_000}),
        *(json.dumps({"s": "x" * rng.randrange(90)}) for _ in range(8_000)),
    ]
    rng.shuffle(texts)
    for number, last in enumerate(["", ending, ending * 2]):
        file = tmp_path / str(number) / name
        file.parent.mkdir()
        file.write_bytes(b"\xef\xbb\xbf" * (number == 1) + (ending.join(texts) + last).encode())
    session = own_session(spark)
    query = "SELECT length(s) AS n, bad FROM lines"
    for folder in tmp_path.iterdir():
        own = rows(session, folder, query)
        session.conf.set(SWITCH, "off")
        assert own == rows(session, folder, query) and len(own) == 8_001
        session.conf.unset(SWITCH)


@pytest.mark.slow
def test_messages_are_those_of_spark(spark: Any, tmp_path: Path) -> None:
    lines = lines_of(random.Random(7), 1_500)
    (tmp_path / "lines.txt").write_bytes(b"\n".join(lines))
    session = own_session(spark)
    session.read.text(str(tmp_path)).createOrReplaceTempView("texts")
    parsed = f"from_json({{}}, '{SCHEMA}', map('columnNameOfCorruptRecord', 'bad'))"
    queries = (
        f"SELECT inline(array({parsed.format('value')})) FROM texts",
        f"SELECT inline(array({parsed.format('CAST(CAST(value AS BINARY) AS STRING)')})) FROM texts",
        f"SELECT inline(transform(array(value, '{{\"n\": 7}}', value), v -> {parsed.format('v')})) FROM texts",
        "SELECT p.a, p.m FROM (SELECT from_json(value, 'a ARRAY<INT>, m MAP<STRING, STRING>') AS p FROM texts)",
        "SELECT from_json(value, 's STRING').s AS s FROM texts",
    )
    assert _reader(session.sql(queries[-1])) == "streamsql.JsonMessages$Parser"
    for query in queries:
        own = shown(session.sql(query))
        session.conf.set(SWITCH, "off")
        by_spark = shown(session.sql(query))
        session.conf.unset(SWITCH)
        assert [pair for pair in zip(own, by_spark, strict=True) if pair[0] != pair[1]] == []
        assert len(own) >= len(lines)


def _reader(frame: Any) -> str:
    """The class of the expression that reads a query's messages."""
    expressions = frame._jdf.queryExecution().executedPlan().expressions()
    return str(expressions.head().child().child().getClass().getName())


def test_a_file_of_lines_that_are_not_plain_and_one_of_other_encoding(spark: Any, tmp_path: Path) -> None:
    session = own_session(spark)
    texts = [json.dumps({"s": 'a "quoted" ü', "n": n}) for n in range(1_000)]
    (tmp_path / "escapes.json").write_text("\n".join(texts))
    (tmp_path / "wide.txt").write_bytes("\n".join(texts).encode("utf-16-le"))
    expected = [(1_000, 1, 499_500)]
    for file, options in (("escapes.json", {}), ("wide.txt", {"encoding": "UTF-16LE", "lineSep": "\n"})):
        frame = session.read.schema("s STRING, n BIGINT").options(**options).json(str(tmp_path / file))
        counted = frame.selectExpr("count(*)", "count(DISTINCT s)", "sum(n)").collect()
        assert [tuple(row) for row in counted] == expected


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_by_spark(
    spark: Any, tmp_path: Path, ending: str
) -> None:
    """The files are listed at every length, and grow before they are read."""
    text = ending.join(json.dumps({"n": number}) for number in range(3)) + ending
    lengths = range(1, len(text) + 1)
    for length in lengths:
        (tmp_path / f"{length:02}.json").write_text(text[:length], newline="")
    frames = []
    for switch in ("on", "off"):
        session = own_session(spark)
        session.conf.set(SWITCH, switch)
        rows = (
            session.read.schema("n INT, bad STRING")
            .option("columnNameOfCorruptRecord", "bad")
            .json(str(tmp_path))
        )
        frames.append(rows.selectExpr("right(input_file_name(), 7) AS file", "n", "bad"))
    for length in lengths:
        (tmp_path / f"{length:02}.json").write_text(text + '{"n": 3}' + ending + '{"n": 4}', newline="")
    own, of_spark = (sorted(map(repr, frame.collect())) for frame in frames)
    assert own == of_spark
    read = [sum(f"'{length:02}.json'" in row for row in own) for length in lengths]
    assert (
        read[0] == 1 and read[-1] == 4
    )  # as Hadoop's reader does: a line that begins at the listed length, too
