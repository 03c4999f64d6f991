"""The DB-API (PEP 249): cursors, parameters and exceptions, on the Spark of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from conftest import drop_tables

import streamsql
from streamsql import dbapi


@pytest.fixture(scope="module")
def connection(spark: Any) -> Iterator[dbapi.Connection]:
    with dbapi.connect(spark=spark.newSession(), config=False) as connection:
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
