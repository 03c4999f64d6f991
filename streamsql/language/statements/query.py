"""SHOW, DESCRIBE, STOP, START, DROP and AWAIT QUERY."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.errors import Source, SyntaxFault
from streamsql.language.grammar import Node
from streamsql.language.statements.base import Name, Statement, begins_of, duration_of, name_of, seconds


@dataclass(frozen=True, kw_only=True)
class ShowQueries(Statement):
    extended: bool = False


@dataclass(frozen=True, kw_only=True)
class DescribeQuery(Statement):
    name: Name


@dataclass(frozen=True, kw_only=True)
class ShowProgress(Statement):
    name: Name
    last: int = 10


@dataclass(frozen=True, kw_only=True)
class StopQuery(Statement):
    """name None means ALL."""

    name: Name | None


@dataclass(frozen=True, kw_only=True)
class StartQuery(Statement):
    """name None means ALL. begins: see begins_of."""

    name: Name | None
    begins: str = ""


@dataclass(frozen=True, kw_only=True)
class DropQuery(Statement):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AwaitQuery(Statement):
    """name None means ALL; timeout in seconds, None for no limit."""

    name: Name | None
    idle: bool = False
    timeout: float | None = None


def _maybe_all(node: Node) -> Name | None:
    return None if node.has("ALL") else name_of(node.get("QueryName"))


def _progress(node: Node, source: Source) -> ShowProgress:
    number = node.get("Number")
    if number and (not number.value.isdigit() or int(number.value) < 1):
        raise SyntaxFault(f"LAST takes a whole number of micro-batches, not {number.value}", span=number.span)
    return ShowProgress(name=name_of(node.get("QueryName")), last=int(number.value) if number else 10)


def _await(node: Node, source: Source) -> AwaitQuery:
    timeout = node.get("Duration")
    return AwaitQuery(
        name=_maybe_all(node),
        idle=node.has("IDLE"),
        timeout=seconds(duration_of(timeout)) if timeout else None,
    )


def _drop(node: Node, source: Source) -> DropQuery:
    return DropQuery(name=name_of(node.get("QueryName")), if_exists=node.has("IfExists"))


BUILDERS = {
    "ShowQueries": lambda node, source: ShowQueries(extended=node.has("EXTENDED")),
    "DescribeQuery": lambda node, source: DescribeQuery(name=name_of(node.get("QueryName"))),
    "ShowProgress": _progress,
    "StopQuery": lambda node, source: StopQuery(name=_maybe_all(node)),
    "StartQuery": lambda node, source: StartQuery(
        name=_maybe_all(node), begins=begins_of(node.get("Begins"))
    ),
    "DropQuery": _drop,
    "AwaitQuery": _await,
}
