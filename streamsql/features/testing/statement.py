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
    clause,
    fragment_of,
    name_of,
)
from streamsql.language.statements.sink import names_of
from streamsql.language.statements.stream import AdvanceStream


@dataclass(frozen=True, kw_only=True)
class Test(StatementWithBlock):
    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True

    name: Name

    @classmethod
    def read(cls, node: Node, source: Source) -> Test:
        return cls(name=name_of(node.get("String")))


@dataclass(frozen=True, kw_only=True)
class Given(Statement):
    """Rows for a stream: those of a query, or (query None) of a file."""

    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True
    read_only: ClassVar[bool] = False
    refers: ClassVar[str] = "stream"

    name: Name
    columns: tuple[Name, ...] = ()
    query: Fragment | None = None
    file: Name | None = None

    @classmethod
    def read(cls, node: Node, source: Source) -> Given:
        file, query = node.get("GivenFile"), node.get("Query")
        return cls(
            name=name_of(node.get("StreamName")),
            columns=names_of(clause(node, "ColumnNames")),
            query=fragment_of(source, query) if query else None,
            file=name_of(file.get("Path")) if file else None,
        )


@dataclass(frozen=True, kw_only=True)
class Advance(AdvanceStream):
    """ADVANCE STREAM, as tests write it."""

    topic: ClassVar[str] = "testing"
    changes_workspace: ClassVar[bool] = False
    read_only: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class ExpectNoChanges(Statement):
    topic: ClassVar[str] = "testing"

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


@dataclass(frozen=True, kw_only=True)
class ExpectChanges(ExpectedRows, Statement):
    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectChanges:
        return cls(name=name_of(node.get("Target")), **_expected(node, source))


@dataclass(frozen=True, kw_only=True)
class ExpectLateRows(ExpectedRows, Statement):
    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectLateRows:
        return cls(name=name_of(node.get("QueryName")), **_expected(node, source))


@dataclass(frozen=True, kw_only=True)
class ExpectRows(ExpectedRows, Statement):
    """contains: the table may have other rows, too."""

    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True

    contains: bool = False

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectRows:
        named = name_of(node.get("Target"))
        return cls(name=named, contains=node.has("CONTAINS"), **_expected(node, source))


@dataclass(frozen=True, kw_only=True)
class ExpectWatermark(Statement):
    """to: a timestamp as text, with its span; "" for none."""

    topic: ClassVar[str] = "testing"

    name: Name
    to: Name

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectWatermark:
        null = node.get("NULL")
        to = Name("", null.span) if null else name_of(node.get("String"))
        return cls(name=name_of(node.get("QueryName")), to=to)


@dataclass(frozen=True, kw_only=True)
class ExpectError(StatementWithBody):
    """body: the statement that is to be refused."""

    topic: ClassVar[str] = "testing"

    error_code: Name

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectError:
        return cls(error_code=name_of(node.get("String")))


@dataclass(frozen=True, kw_only=True)
class ExpectFailure(Statement):
    topic: ClassVar[str] = "testing"

    name: Name
    error_code: Name

    @classmethod
    def read(cls, node: Node, source: Source) -> ExpectFailure:
        return cls(name=name_of(node.get("QueryName")), error_code=name_of(node.get("String")))


@dataclass(frozen=True, kw_only=True)
class RestartQuery(Statement):
    """name None means ALL."""

    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True
    read_only: ClassVar[bool] = False
    refers: ClassVar[str] = "query"

    name: Name | None


@dataclass(frozen=True, kw_only=True)
class KillQuery(Statement):
    """name None means ALL."""

    topic: ClassVar[str] = "testing"
    needs_spark: ClassVar[bool] = True
    read_only: ClassVar[bool] = False
    refers: ClassVar[str] = "query"

    name: Name | None = None


def _expected(node: Node, source: Source) -> dict[str, Any]:
    """The fields of ExpectedRows but the name."""
    query, tolerance = node.get("Query"), node.get("Tolerance")
    return {
        "columns": names_of(clause(node, "ColumnNames")),
        "query": fragment_of(source, query) if query else None,
        "ordered": node.has("ORDERED"),
        "tolerance": _tolerance(tolerance) if tolerance else None,
    }


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
