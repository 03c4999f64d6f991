"""The DB-API (PEP 249): cursors, parameters and exceptions, on the Spark of the tests."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from conftest import drop_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamsql
from streamsql import dbapi
from streamsql.errors import InputFault
from streamsql.language.python_values import literal


@pytest.fixture(scope="module")
def connection(spark: Any) -> Iterator[dbapi.Connection]:
    with dbapi.connect(spark=spark.newSession(), config=False) as connection:
        connection.cursor().execute("SET spark.sql.timeType.enabled = true")
        yield connection
    drop_tables(spark)


@pytest.fixture
def cursor(connection: dbapi.Connection) -> dbapi.Cursor:
    return connection.cursor()


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    kinds = (dbapi.InterfaceError, dbapi.DatabaseError)
    of_database = (dbapi.DataError, dbapi.OperationalError, dbapi.IntegrityError, dbapi.InternalError)
    assert all(issubclass(kind, dbapi.Error) for kind in kinds)
    assert all(
        issubclass(kind, dbapi.DatabaseError)
        for kind in (*of_database, dbapi.ProgrammingError, dbapi.NotSupportedError)
    )
    assert issubclass(dbapi.Error, streamsql.Error)
    assert all(
        getattr(dbapi.Connection, name) is getattr(dbapi, name)
        for name in dbapi.__all__
        if name.endswith("Error")
    )
    assert dbapi.TimestampFromTicks(0).year in (1969, 1970)
    assert dbapi.Binary(b"x") == b"x"


def test_rows_are_fetched_one_after_the_other(cursor: dbapi.Cursor) -> None:
    assert cursor.execute("SELECT id, CAST(id AS DECIMAL(5, 2)) AS d FROM range(7)") is cursor
    assert cursor.description == [
        ("id", "BIGINT", None, None, None, None, None),
        ("d", "DECIMAL(5, 2)", None, None, 5, 2, None),
    ]
    assert cursor.fetchone() == (0, Decimal("0.00"))
    assert [row[0] for row in cursor.fetchmany()] == [1]
    assert [row[0] for row in cursor.fetchmany(2)] == [2, 3]
    assert [row[0] for row in cursor] == [4, 5, 6]
    assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall()) == (None, [], [])
    assert cursor.rowcount == -1


def test_types_of_columns(cursor: dbapi.Cursor) -> None:
    cursor.execute(
        "SELECT 1 AS i, 'x' AS s, X'00' AS b, DATE '2024-01-01' AS d, current_timestamp() AS t, true AS o,"
        " array(1) AS a, 1.5BD AS n, parse_json('1') AS v, INTERVAL 1 MONTH AS m"
    )
    assert cursor.description is not None
    codes = {name: code for name, code, *_ in cursor.description}
    kinds = (dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID)
    found = {name: [kind for kind in kinds if kind == code] for name, code in codes.items()}
    assert found == {
        **{name: [dbapi.NUMBER] for name in "ion"},
        **{name: [dbapi.STRING] for name in "savm"},
        **{name: [dbapi.DATETIME] for name in "dt"},
        "b": [dbapi.BINARY],
    }


def test_parameters(connection: dbapi.Connection, cursor: dbapi.Cursor) -> None:
    cursor.execute("SELECT ?, '?', 3 - ? -- ?", ["it's ${x} -- \\ ?", -2])
    assert cursor.fetchall() == [("it's ${x} -- \\ ?", "?", 5)]
    cursor.execute("SELECT :b AS x, :a AS y, ':a' AS z", {"a": None, "b": [1, 2]})
    assert cursor.fetchall() == [([1, 2], None, ":a")]
    cursor.execute("CREATE STREAM pairs (a INT, b STRING) USING values")
    assert (cursor.description, cursor.messages) == (None, [])
    cursor.executemany("INSERT INTO pairs VALUES (?, ?)", [(1, "x"), (2, "'); DROP STREAM pairs; --")])
    cursor.execute("SELECT * FROM pairs ORDER BY a")
    assert cursor.fetchall() == [(1, "x"), (2, "'); DROP STREAM pairs; --")]


@pytest.mark.parametrize(
    ("statement", "parameters", "kind", "code", "place"),
    [
        ("SELECT * FROM nowhere", (), dbapi.ProgrammingError, "TABLE_OR_VIEW_NOT_FOUND", (1, 15)),
        ("SELEC 1", (), dbapi.ProgrammingError, "UNKNOWN_STATEMENT", (1, 1)),
        ("SELECT 1,\n  1 / ?", [0], dbapi.DataError, "DIVIDE_BY_ZERO", (2, 3)),
        ("SELECT ?, ?", [1], dbapi.ProgrammingError, "WRONG_PARAMETERS", (1, 11)),
        ("SELECT ?", [1, 2], dbapi.ProgrammingError, "WRONG_PARAMETERS", (1, 1)),
        ("SELECT :a", {"b": 1}, dbapi.ProgrammingError, "WRONG_PARAMETERS", (1, 8)),
        ("SELECT ?", [object()], dbapi.ProgrammingError, "WRONG_PARAMETERS", (1, 1)),
        ("SELECT ?; SELECT ?", [1, 2], dbapi.ProgrammingError, "WRONG_PARAMETERS", None),
        ("WATCH nothing", (), dbapi.ProgrammingError, "UNKNOWN_LIVE_TABLE", (1, 7)),
    ],
)
def test_errors_have_a_kind_code_and_place(
    cursor: dbapi.Cursor,
    statement: str,
    parameters: Any,
    kind: type[dbapi.Error],
    code: str,
    place: tuple[int, int] | None,
) -> None:
    with pytest.raises(kind) as raised:
        cursor.execute(statement, parameters)
    assert (type(raised.value), raised.value.code) == (kind, code)
    assert raised.value.place == place if place else True
    assert isinstance(raised.value.__cause__, streamsql.Error)


def test_what_is_closed_or_has_no_rows(spark: Any, connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="no result"):
        cursor.fetchone()
    cursor.execute("SELECT 1")
    cursor.close()
    cursor.close()
    for act in (cursor.fetchall, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
            act()
    other = dbapi.connect(spark=spark, config=False)
    open_cursor = other.cursor()
    other.close()
    other.close()
    for act in (other.cursor, other.commit, lambda: open_cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            act()


# ---- every type of Spark, there and back

TIMES = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59))
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "INT": st.integers(-(2**31) + 1, 2**31 - 1),
    "BIGINT": st.integers(-(2**63) + 1, 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "DECIMAL(38, 10)": st.decimals(-(10**28) + 1, 10**28 - 1, places=10),
    "DECIMAL(38, 0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "STRING": st.text(st.characters(exclude_categories=("Cs",))),
    "BINARY": st.binary(),
    "DATE": st.dates(),
    "TIMESTAMP": TIMES,
    "TIMESTAMP_NTZ": TIMES,
    "TIME": st.times(),
    "INTERVAL DAY TO SECOND": st.timedeltas(dt.timedelta(days=-(10**8) + 1), dt.timedelta(days=10**8 - 1)),
}
LISTS = {f"ARRAY<{kind}>": st.lists(values, max_size=3) for kind, values in SIMPLE.items()}
MAPS = {"MAP<STRING, DOUBLE>": st.dictionaries(SIMPLE["STRING"], SIMPLE["DOUBLE"], max_size=3)}
TYPED = [st.tuples(st.just(kind), st.none() | values) for kind, values in {**SIMPLE, **LISTS, **MAPS}.items()]


def _read(value: Any) -> Any:
    """A value as it is read: a TIME, which may have nanoseconds, is a text."""
    if isinstance(value, list):
        return list(map(_read, value))
    text = value.isoformat() if isinstance(value, dt.time) else ""
    return (text.rstrip("0") if "." in text else text) if text else value


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(st.tuples(*TYPED))
def test_every_type_there_and_back(cursor: dbapi.Cursor, pairs: tuple[tuple[str, Any], ...]) -> None:
    columns = ", ".join(f"CAST(? AS {kind}) AS c{n}" for n, (kind, _) in enumerate(pairs))
    cursor.execute(f"SELECT {columns}", [value for _, value in pairs])
    assert cursor.fetchall() == [tuple(_read(value) for _, value in pairs)]
    assert cursor.description is not None
    assert [code.replace("(6)", "") for _, code, *_ in cursor.description] == [kind for kind, _ in pairs]


def test_values_that_equal_nothing_or_have_several_forms(cursor: dbapi.Cursor) -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    identity = UUID("12345678123456781234567812345678")
    moment = dt.datetime(2024, 5, 1, 12, tzinfo=zone)
    cursor.execute("SELECT ?, ?, ?, ?, ?", [math.nan, -math.inf, moment, identity, -(2**63)])
    nan, infinite, utc, text, smallest = cursor.fetchall()[0]
    assert math.isnan(nan)
    assert (infinite, text, smallest) == (-math.inf, str(identity), Decimal(-(2**63)))
    assert utc == dt.datetime(2024, 5, 1, 10)  # the session time zone is UTC


@pytest.mark.parametrize("value", [Decimal("NaN"), 10**38, object(), {1, 2}, Decimal("1e-39")])
def test_a_value_of_no_type_of_spark_is_refused(value: object) -> None:
    with pytest.raises(InputFault) as raised:
        literal(value)
    assert raised.value.code == "WRONG_PARAMETERS"
