"""Connections and cursors of PEP 249, over those of streamsql.connect."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import streamsql.api.connection as api
from streamsql.api.query_result import QueryResult, Row
from streamsql.errors import RuleFault
from streamsql.features.dbapi import exceptions
from streamsql.features.dbapi.exceptions import InterfaceError, standard_errors

Column = tuple[str, str, None, None, int | None, int | None, None]


def connect(workspace: str | os.PathLike[str] | None = None, **options: Any) -> Connection:
    """A connection of PEP 249. The arguments are those of streamsql.connect. Raises Error."""
    with standard_errors():
        return Connection(api.connect(workspace, **options))


class Connection:
    """A connection: threads may share it. There are no transactions: each statement takes effect at once."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, connection: api.Connection) -> None:
        self.streamsql = connection
        """The connection of streamsql.connect behind it: live tables, watch, why."""

    def cursor(self) -> Cursor:
        """A new cursor. Raises InterfaceError when the connection is closed."""
        if self.streamsql.closed:
            raise _closed("connection")
        return Cursor(self)

    def commit(self) -> None:
        """Nothing: there are no transactions. Raises InterfaceError when the connection is closed."""
        if self.streamsql.closed:
            raise _closed("connection")

    def close(self) -> None:
        """Close it, as that of streamsql.connect. May be called again."""
        self.streamsql.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Cursor:
    """Executes statements and reads their rows, each once. description: of the columns: name, type code
    (Spark's type), and precision and scale of a DECIMAL; None without rows. rowcount: -1, as Spark does not
    count. arraysize: the default of fetchmany. messages: the notes of the last statement.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount = -1
        self.lastrowid = None
        self.description: list[Column] | None = None
        self.messages: list[str] = []
        self._result: QueryResult | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Cursor:
        """Execute a statement. parameters: the values of ? in their order, or a dict of those of :name.
        Returns the cursor. Raises Error.
        """
        self._check_open()
        self._forget()
        with standard_errors():
            result = self.connection.streamsql.sql(operation, parameters or ())
        self._result, self.messages = result, result.notes
        if result.columns:
            self.description = list(map(_column, result.columns, result.types))
        return self

    def executemany(self, operation: str, parameters: Sequence[Sequence[Any] | Mapping[str, Any]]) -> Cursor:
        """Execute a statement with each of several sets of parameters. Raises Error."""
        for values in parameters:
            self.execute(operation, values)
        self._forget()
        return self

    def fetchone(self) -> Row | None:
        """The next row; None behind the last one. Raises Error."""
        with standard_errors():
            return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """At most so many of the next rows. Raises Error."""
        with standard_errors():
            return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        """All rows that are left. Raises Error."""
        with standard_errors():
            return self._rows().fetchall()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing: sizes need not be known."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: sizes need not be known."""

    def close(self) -> None:
        """Fetch no more rows. May be called again."""
        self._forget()
        self._closed = True

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise _closed("cursor")

    def _forget(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result, self.description, self.messages = None, None, []

    def _rows(self) -> QueryResult:
        self._check_open()
        if self._result is None or not self._result.columns:
            fault = RuleFault(
                "there is no result to fetch from",
                detail="the last statement has no rows, or none was executed",
                code="NO_RESULT",
            )
            raise InterfaceError(fault)
        return self._result


def _closed(what: str) -> InterfaceError:
    return InterfaceError(RuleFault(f"the {what} is closed", code="CONNECTION_CLOSED"))


def _column(name: str, kind: str) -> Column:
    decimal = re.fullmatch(r"DECIMAL\((\d+), (\d+)\)", kind)
    precision, scale = (int(decimal[1]), int(decimal[2])) if decimal else (None, None)
    return name, kind, None, None, precision, scale, None
