"""TEST and the statements inside it: GIVEN, EXPECT, RESTART QUERY and KILL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Fragment,
    Name,
    Statement,
    StatementWithBlock,
    StatementWithBody,
)
from streamsql.language.statements.stream import AdvanceStream


@dataclass(frozen=True, kw_only=True)
class Test(StatementWithBlock, topic="testing", needs_spark=True):
    name: Name


@dataclass(frozen=True, kw_only=True)
class Given(Statement, topic="testing", needs_spark=True, read_only=False, refers="stream"):
    """Rows for a stream: those of a query, or (query None) of a file."""

    name: Name
    columns: tuple[Name, ...] = ()
    query: Fragment | None = None
    file: Name | None = None


@dataclass(frozen=True, kw_only=True)
class Advance(AdvanceStream):
    """ADVANCE STREAM, as tests write it."""

    topic: ClassVar[str] = "testing"
    changes_workspace: ClassVar[bool] = False
    read_only: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class ExpectNoChanges(Statement, topic="testing"):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ExpectedRows:
    """What the comparisons of rows share. name: the table; query: the rows that are expected, None for no
    rows; tolerance: of floating-point numbers, None for the default.
    """

    name: Name
    columns: tuple[Name, ...] = ()
    query: Fragment | None = None
    ordered: bool = False
    tolerance: float | None = None

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any]:
        written = node.get("Tolerance")
        return {"tolerance": _tolerance(written)} if written else {}


@dataclass(frozen=True, kw_only=True)
class ExpectChanges(ExpectedRows, Statement, topic="testing", needs_spark=True):
    """name: a live table or sink; its changes have a column _op."""


@dataclass(frozen=True, kw_only=True)
class ExpectLateRows(ExpectedRows, Statement, topic="testing", needs_spark=True):
    """name: a query, of which the late rows are compared."""


@dataclass(frozen=True, kw_only=True)
class ExpectRows(ExpectedRows, Statement, topic="testing", needs_spark=True):
    """contains: the table may have other rows, too."""

    contains: bool = False


@dataclass(frozen=True, kw_only=True)
class ExpectWatermark(Statement, topic="testing"):
    """to: a timestamp as text, with its span; "" for none."""

    name: Name
    to: Name


@dataclass(frozen=True, kw_only=True)
class ExpectError(StatementWithBody, topic="testing"):
    """body: the statement that is to be refused."""

    error_code: Name


@dataclass(frozen=True, kw_only=True)
class ExpectFailure(Statement, topic="testing"):
    name: Name
    error_code: Name


@dataclass(frozen=True, kw_only=True)
class RestartQuery(Statement, topic="testing", needs_spark=True, read_only=False, refers="query"):
    """name None means ALL."""

    name: Name | None


@dataclass(frozen=True, kw_only=True)
class KillQuery(Statement, topic="testing", needs_spark=True, read_only=False, refers="query"):
    """name None means ALL."""

    name: Name | None = None


def _tolerance(node: Node) -> float:
    number = node.get("Number")
    assert number
    try:
        value = float(number.value)
    except ValueError:
        value = -1.0
    if value < 0:
        raise SyntaxFault(
            f"TOLERANCE takes a number that is not negative, not {number.value}",
            hint="TOLERANCE 0.001",
            span=number.span,
            code="BAD_NUMBER",
        )
    return value
