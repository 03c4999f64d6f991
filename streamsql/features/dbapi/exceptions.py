"""The exceptions of PEP 249. Each is a streamsql.Error too: with code, place, detail and hint."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

from streamsql.errors import (
    EngineFault,
    InputFault,
    NameFault,
    QueryFault,
    RuleFault,
    StreamsqlError,
    SyntaxFault,
)
from streamsql.guard import INTERNAL


class Warning(builtins.Warning):
    """Of PEP 249; none is raised."""


class Error(StreamsqlError):
    """The base of the errors of this module. `__cause__` is the error of streamsql."""

    def __init__(self, error: StreamsqlError) -> None:
        super().__init__(error.message)
        more = getattr(error, "__notes__", [])
        self.__dict__.update({name: value for name, value in vars(error).items() if name != "__notes__"})
        self.args = ("\n".join([error.message, *more]),)


class InterfaceError(Error):
    """The connection or cursor is closed, or has no rows to fetch."""


class DatabaseError(Error):
    """The statement failed."""


class DataError(DatabaseError):
    """A value cannot be computed, such as a division by zero."""


class OperationalError(DatabaseError):
    """Spark, a server, a file or a query failed, or the statement was cancelled."""


class IntegrityError(DatabaseError):
    """A value is not allowed where it is to be written."""


class InternalError(DatabaseError):
    """An exception that the console does not expect."""


class ProgrammingError(DatabaseError):
    """The statement cannot be read, names what is not there, or has other parameters."""


class NotSupportedError(DatabaseError):
    """The statement is not allowed."""


_BY_CODE = {
    INTERNAL: InternalError,
    "CONNECTION_CLOSED": InterfaceError,
    "WRONG_PARAMETERS": ProgrammingError,
}
_BY_STATE = {
    "0A": NotSupportedError,
    "21": DataError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
}
"""The first two characters of an SQLSTATE of Spark."""
_BY_KIND: tuple[tuple[type[StreamsqlError], type[Error]], ...] = (
    (SyntaxFault, ProgrammingError),
    (NameFault, ProgrammingError),
    (RuleFault, NotSupportedError),
    (InputFault, DataError),
)
"""All others are OperationalErrors."""


@contextmanager
def standard_errors() -> Iterator[None]:
    """Raise the errors of streamsql as those of PEP 249."""
    try:
        yield
    except Error:
        raise
    except StreamsqlError as error:
        raise _kind_of(error)(error) from error


def _kind_of(error: StreamsqlError) -> type[Error]:
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    state = getattr(error.__cause__, "getSqlState", lambda: "")() or ""
    if isinstance(error, (EngineFault, QueryFault)) and state[:2] in _BY_STATE:
        return _BY_STATE[state[:2]]
    return next((kind for fault, kind in _BY_KIND if isinstance(error, fault)), OperationalError)
