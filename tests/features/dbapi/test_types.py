"""Every type of Spark as a value of Python, there and back. The table of HELP python api says the same."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import namedtuple
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from streamsql import Pairs, Struct, dbapi
from streamsql.errors import InputFault
from streamsql.language.python_values import literal
from streamsql.language.topics import topic
from streamsql.runtime.engine.row_values import shortest

ZONE = "America/New_York"


@pytest.fixture(scope="module")
def cursor(spark: Any) -> Iterator[dbapi.Cursor]:
    with dbapi.connect(spark=spark.newSession(), config=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET spark.sql.session.timeZone = '{ZONE}'")
        cursor.execute("SET spark.sql.timeType.enabled = true")
        yield cursor


def selected(cursor: dbapi.Cursor, sql: str, values: Any = ()) -> Any:
    """The value of an expression."""
    ((value,),) = cursor.execute(f"SELECT {sql}", values).fetchall()
    return value


# ---- values that Spark makes

MADE: dict[str, list[tuple[str, Any]]] = {
    "BOOLEAN": [("true", True)],
    "TINYINT": [("-128Y", -128)],
    "SMALLINT": [("-32768S", -32768)],
    "INT": [("-2147483648", -(2**31))],
    "BIGINT": [("-9223372036854775808L", -(2**63))],
    "FLOAT": [("float('0.1')", 0.1), ("float('-Infinity')", -math.inf), ("float('3.4E38')", 3.4e38)],
    "DOUBLE": [("0.1D", 0.1), ("double('Infinity')", math.inf), ("4.9E-324D", 5e-324)],
    "DECIMAL(38, 18)": [
        ("CAST('-12345678901234567890.123456789012345678' AS DECIMAL(38, 18))",
         Decimal("-12345678901234567890.123456789012345678")),
    ],
    "STRING": [("''", ""), ("'a\\0b'", "a\0b"), ("'Zürich 😀'", "Zürich 😀")],
    "STRING COLLATE UTF8_LCASE": [("'x' COLLATE UTF8_LCASE", "x")],
    "BINARY": [("X''", b""), ("X'00ff'", b"\x00\xff")],
    "DATE": [
        ("DATE '0001-01-01'", dt.date(1, 1, 1)),
        ("DATE '9999-12-31'", dt.date(9999, 12, 31)),
        ("DATE '+10000-01-01'", "+10000-01-01"),
    ],
    "TIMESTAMP": [
        ("TIMESTAMP '0001-01-01 00:00:00'", dt.datetime(1, 1, 1)),
        ("TIMESTAMP '9999-12-31 23:59:59.999999'", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ("TIMESTAMP '2024-07-01 12:00:00Z'", dt.datetime(2024, 7, 1, 8)),
        ("TIMESTAMP '+10000-01-01 00:00:00'", "+10000-01-01 00:00:00"),
    ],
    "TIMESTAMP_NTZ": [
        ("TIMESTAMP_NTZ '0001-01-01 00:00:00'", dt.datetime(1, 1, 1)),
        ("TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ],
    "TIME(6)": [("TIME '23:59:59.999999'", dt.time(23, 59, 59, 999999)), ("TIME '00:00:00'", dt.time())],
    "TIME(9)": [
        ("CAST('12:30:00.1' AS TIME(9))", dt.time(12, 30, 0, 100_000)),
        ("CAST('12:30:00.123456789' AS TIME(9))", "12:30:00.123456789"),
    ],
    "INTERVAL DAY TO SECOND": [
        ("INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND", dt.timedelta(microseconds=-(2**63))),
    ],
    "INTERVAL HOUR TO MINUTE": [("INTERVAL '1:02' HOUR TO MINUTE", dt.timedelta(hours=1, minutes=2))],
    "INTERVAL DAY": [("INTERVAL '3' DAY", dt.timedelta(3))],
    "INTERVAL SECOND": [("INTERVAL '3' SECOND", dt.timedelta(seconds=3))],
    "INTERVAL YEAR TO MONTH": [("INTERVAL '-1-3' YEAR TO MONTH", "INTERVAL '-1-3' YEAR TO MONTH")],
    "INTERVAL MONTH": [("INTERVAL '15' MONTH", "INTERVAL '15' MONTH")],
    "INTERVAL": [("make_interval(1, 0, 0, 4)", "1 years 4 days")],
    "VARIANT": [
        ("""parse_json('{"a": [1, null, "ü"]}')""", '{"a":[1,null,"ü"]}'),
        ("parse_json('null')", "null"),
        ("CAST(12345678901234567890.5BD AS VARIANT)", "12345678901234567890.5"),
    ],
    "ARRAY<INT>": [("array(1, NULL)", [1, None])],
    "ARRAY<VOID>": [("array()", [])],
    "ARRAY<ARRAY<VOID>>": [("array(array())", [[]])],
    "MAP<STRING, INT>": [("map('a', 1, 'b', NULL)", {"a": 1, "b": None})],
    "MAP<VOID, VOID>": [("map()", {})],
    "MAP<STRING, VARIANT>": [("map('a', parse_json('1'))", {"a": "1"})],
    "MAP<INTERVAL MONTH, TIME(6)>": [
        ("map(INTERVAL '1' MONTH, TIME '01:00:00')", {"INTERVAL '1' MONTH": dt.time(1)}),
    ],
    "MAP<ARRAY<INT>, INT>": [("map(array(1), 2)", Pairs((([1], 2),)))],
    "STRUCT<a: INT, b: STRUCT<v: VARIANT>>": [
        ("named_struct('a', 1, 'b', named_struct('v', parse_json('1')))", Struct(a=1, b=Struct(v="1"))),
    ],
    "STRUCT<a: INT, a: INT>": [("named_struct('a', 1, 'a', 2)", Struct(a=1, a_2=2))],
    "STRUCT<>": [("named_struct()", Struct())],
    "ARRAY<STRUCT<m: MAP<STRING, ARRAY<INTERVAL MONTH>>>>": [
        ("array(named_struct('m', map('k', array(INTERVAL '1' MONTH))))",
         [Struct(m={"k": ["INTERVAL '1' MONTH"]})]),
    ],
    "GEOMETRY(0)": [
        ("st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
         {"srid": 0, "wkb": bytes.fromhex("0101000000000000000000F03F0000000000000040")}),
    ],
    "VOID": [("NULL", None)],
}  # fmt: skip
"""SQL of values of each type, and what they are in Python."""
OBJECTS = ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID")


def type_object(code: str) -> str:
    """The name of the one type object that equals a type code."""
    (name,) = [name for name in OBJECTS if getattr(dbapi, name) == code]
    return name


@pytest.mark.parametrize("kind", MADE)
def test_a_value_that_spark_makes(cursor: dbapi.Cursor, kind: str) -> None:
    values = [value for _, value in MADE[kind]]
    row = (*values, None, [*values[:1], None])
    null = f"IF(id < 0, {MADE[kind][0][0]}, NULL)" if kind != "VOID" else "NULL"
    cursor.execute(
        f"SELECT {', '.join(sql for sql, _ in MADE[kind])}, {null}, array({MADE[kind][0][0]}, NULL) FROM range(1)"
    )
    assert cursor.description is not None
    assert {code for _, code, *_ in cursor.description[:-1]} == {kind}
    assert type_object(kind) == type_object(cursor.description[0][1])
    fetched = cursor.fetchall()
    assert fetched == [row]
    assert list(map(type, fetched[0])) == list(map(type, row))


def test_numbers_that_equal_others(cursor: dbapi.Cursor) -> None:
    cursor.execute("SELECT double('NaN'), float('NaN'), -0.0D, float('-0.0'), array(double('NaN'))")
    ((double, single, *zeros, inside),) = cursor.fetchall()
    assert all(map(math.isnan, (double, single, *inside)))
    assert [math.copysign(1, zero) for zero in zeros] == [-1, -1]


# ---- the table of HELP python api

CLASSES = {type(None): "None", Pairs: "dict"}


def test_the_table_of_help(cursor: dbapi.Cursor) -> None:
    """Each row: types of Spark, the class of their values in Python, the type object."""
    rows = re.findall(r"^\| ([A-Z_][^|]*) \| `?(\w+)[^|]*\| ([A-Z]+) \|", topic("python api").text, re.M)
    told = {name: (python, of) for names, python, of in rows for name in names.split(", ")}
    assert len(rows) > 12
    for kind, ((_, value), *_) in MADE.items():
        first = re.match(r"INTERVAL \w+|\w+", kind)
        assert first is not None
        assert told[first[0]] == (CLASSES.get(type(value), type(value).__name__), type_object(kind)), kind


# ---- values that are given

TIMES = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)).map(
    lambda t: t.replace(fold=0)
)
# As a time in New York: none of the hours that summer time leaves out.
EXISTING = TIMES.filter(
    lambda t: t.year in (1, 9999) or t.replace(tzinfo=ZoneInfo(ZONE)).astimezone(dt.UTC).astimezone(ZoneInfo(ZONE)).replace(tzinfo=None) == t
)  # fmt: skip
MICROS = st.integers(-(2**63), 2**63 - 1)
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32).map(shortest),
    "DOUBLE": st.floats(),
    "DECIMAL(38, 10)": st.decimals(-(10**28) + 1, 10**28 - 1, places=10),
    "DECIMAL(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "STRING": st.text(st.characters(exclude_categories=("Cs",))),
    "BINARY": st.binary(),
    "DATE": st.dates(),
    "TIMESTAMP": EXISTING,
    "TIMESTAMP_NTZ": TIMES,
    "TIME(6)": st.times().map(lambda value: value.replace(fold=0)),
    "INTERVAL DAY TO SECOND": MICROS.map(lambda n: dt.timedelta(microseconds=n)),
    "INTERVAL YEAR TO MONTH": st.integers(0, 2**31 - 1).map(
        lambda n: f"INTERVAL '{n // 12}-{n % 12}' YEAR TO MONTH"
    ),
    "INTERVAL": st.tuples(st.integers(1, 11), st.integers(1, 1000)).map(lambda n: f"{n[0]} months {n[1]} days"),
}  # fmt: skip


def arrays(kinds: dict[str, st.SearchStrategy[Any]]) -> dict[str, st.SearchStrategy[Any]]:
    return {f"ARRAY<{kind}>": st.lists(st.none() | values, max_size=3) for kind, values in kinds.items()}


def structs(kinds: dict[str, st.SearchStrategy[Any]]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        f"STRUCT<f: {kind}, n: INT>": st.builds(Struct, f=st.none() | values, n=st.integers(0, 9))
        for kind, values in kinds.items()
    }


def maps(kinds: dict[str, st.SearchStrategy[Any]]) -> dict[str, st.SearchStrategy[Any]]:
    keys = SIMPLE["STRING"]
    return {
        f"MAP<STRING, {kind}>": st.dictionaries(keys, st.none() | values, max_size=3)
        for kind, values in kinds.items()
    }


GROUPS = {
    "simple": SIMPLE,
    "arrays": arrays(SIMPLE),
    "structs": structs(SIMPLE),
    "maps": maps(SIMPLE),
    "deeper": {
        **arrays(structs(maps({"DOUBLE": SIMPLE["DOUBLE"]}))),
        **maps(arrays(structs({"TIME(6)": SIMPLE["TIME(6)"]}))),
        **structs(maps(arrays({"DECIMAL(38, 0)": SIMPLE["DECIMAL(38, 0)"]}))),
        "MAP<TIMESTAMP_NTZ, INT>": st.dictionaries(TIMES, SIMPLE["INT"], max_size=3),
        "MAP<DECIMAL(38, 10), INT>": st.dictionaries(SIMPLE["DECIMAL(38, 10)"], SIMPLE["INT"], max_size=3),
    },
}
FEW = settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each try is a job of Spark
    suppress_health_check=list(HealthCheck),
)


def shown(value: Any) -> str:
    """A text that tells values apart that are equal, such as -0.0, and is equal for NaN."""
    return repr(sorted(value.items(), key=repr)) if type(value) is dict else repr(value)


@pytest.mark.parametrize("group", GROUPS)
@FEW
@given(data=st.data())
def test_every_type_there_and_back(cursor: dbapi.Cursor, group: str, data: st.DataObject) -> None:
    kinds = GROUPS[group]
    values = data.draw(st.tuples(*(st.none() | values for values in kinds.values())))
    by_place = ", ".join(f"CAST(? AS {kind}) AS c{n}" for n, kind in enumerate(kinds))
    by_name = ", ".join(f"CAST(:p{n} AS {kind}) AS d{n}" for n, kind in enumerate(kinds))
    (row,) = cursor.execute(f"SELECT {by_place}", values).fetchall()
    (same,) = cursor.execute(f"SELECT {by_name}", {f"p{n}": v for n, v in enumerate(values)}).fetchall()
    assert altered(row, values) == altered(same, values) == []
    assert [code for _, code, *_ in cursor.description or ()] == list(kinds)


def altered(row: tuple[Any, ...], values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    return [(value, got) for got, value in zip(row, values, strict=True) if shown(got) != shown(value)]


@FEW
@given(st.lists(st.one_of(*(SIMPLE[kind] for kind in SIMPLE if kind != "FLOAT")), min_size=10, max_size=30))
def test_values_without_a_cast(cursor: dbapi.Cursor, values: list[Any]) -> None:
    """As parameters, and what was fetched as a parameter again."""
    marks = ", ".join("?" for _ in values)
    (row,) = cursor.execute(f"SELECT {marks}", values).fetchall()
    assert altered(row, tuple(values)) == []
    again = selected(cursor, f"struct({marks})", row)
    assert altered(tuple(again.values()), tuple(values)) == []


POINT = namedtuple("POINT", "x y")
OTHER_FORMS: list[tuple[Any, Any]] = [
    (dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))), dt.datetime(2024, 5, 1, 6)),
    (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=18))), "0000-12-31 01:03:58"),
    (dt.datetime(1850, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), dt.datetime(1849, 12, 31, 18, 10, 30)),
    (dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 3, 10, 2, 30)),  # an hour that New York leaves out
    (UUID("12345678123456781234567812345678"), "12345678-1234-5678-1234-567812345678"),
    (2**100, Decimal(2**100)),
    (POINT(1, "x"), Struct(x=1, y="x")),
    (Row(x=1, y=None), Struct(x=1, y=None)),
    ((1, 2), [1, 2]),
    (bytearray(b"x"), b"x"),
    ([1, 0.5], [1.0, 0.5]),
    ([Decimal("0.5"), 7], [Decimal("0.5"), Decimal(7)]),
    ([[], [1], None], [[], [1], None]),
    ([Struct(a=1), Struct(a=None)], [Struct(a=1), Struct(a=None)]),
    (Pairs((([1], "x"), ([2], "y"))), Pairs((([1], "x"), ([2], "y")))),
    (np.float32(0.5), 0.5),
    (np.int8(-3), -3),
    (np.bool_(True), True),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (np.array([1]), [1]),
    (np.datetime64("2024-05-01T12:00:00.000001000"), dt.datetime(2024, 5, 1, 12, 0, 0, 1)),
    (np.datetime64("NaT"), None),
    (pd.NaT, None),
    (pd.Timestamp("2024-05-01 12:00:00.5"), dt.datetime(2024, 5, 1, 12, 0, 0, 500_000)),
    (pd.Series([1, 2]), [1, 2]),
]


@pytest.mark.parametrize(("given_value", "back"), OTHER_FORMS)
def test_a_value_of_another_class(cursor: dbapi.Cursor, given_value: Any, back: Any) -> None:
    assert selected(cursor, "?", [given_value]) == back
    assert selected(cursor, ":x", {"x": given_value}) == back


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Decimal("NaN"), "no DECIMAL of 38 digits"),
        (10**38, "no DECIMAL of 38 digits"),
        (Decimal("1e-39"), "no DECIMAL of 38 digits"),
        (object(), "type object"),
        ({1, 2}, "type set"),
        (1j, "type complex"),
        ("\ud800", "surrogate"),
        (dt.time(12, tzinfo=dt.UTC), "time zone"),
        (dt.timedelta.max, "106,751,991 days"),
        (dt.datetime(2024, 11, 3, 1, 30, fold=1), "fold=1"),
        (pd.Timestamp("2024-05-01 12:00:00.000000001"), "no time of Python"),
        (pd.Timedelta(1, "ns"), "no time of Python"),
        (np.datetime64("2024-05-01T12:00:00.000000001"), "no time of Python"),
        (np.datetime64("20240-01-01"), "no time of Python"),
        ([1, "1"], "no type in common: int, str"),
        ([True, 1], "no type in common: bool, int"),
        ([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)], "no type in common: date, datetime"),
        ([[1], ["1"]], "no type in common: int, str"),
        ([Struct(a=1), Struct(b=1)], "no type in common: Struct"),
        ({"a": 1, "b": "x"}, "no type in common: int, str"),
        ({1: "a", "1": "b"}, "no type in common: int, str"),
        ([0.5, 2**53 + 1], "9007199254740993 is none exactly"),
        ([0.5, Decimal("0.1")], "0.1 is none exactly"),
        ([Decimal("1e28"), Decimal("1e-28")], "no DECIMAL of 38 digits in common"),
        ([Decimal("1e-30"), 1], "no DECIMAL of 38 digits in common"),
    ],
)
def test_a_value_that_would_be_altered_is_refused(value: object, words: str) -> None:
    with pytest.raises(InputFault, match=words) as raised:
        literal(value)
    assert raised.value.code == "WRONG_PARAMETERS"


def test_rows_that_are_fetched_keep_their_types_as_parameters(cursor: dbapi.Cursor) -> None:
    """A STRUCT is a STRUCT again, a MAP a MAP."""
    sql = "SELECT named_struct('a', 1, 'b', 'x') AS s, map('k', 1) AS m, TIME '12:00:00' AS t"
    (row,) = cursor.execute(sql).fetchall()
    codes = [code for _, code, *_ in cursor.description or ()]
    assert cursor.execute("SELECT ?, ?, ?", row).fetchall() == [row]
    assert [code for _, code, *_ in cursor.description or ()] == codes
