"""Binds the fields of a statement from the node of its rule, by the names of the fields.

A field is read from the parts of the node that FIELDS names for it. What a statement has of its own is read
by its `own_fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from streamsql.errors import RuleFault, Source, SyntaxFault
from streamsql.language.durations import duration_of, seconds
from streamsql.language.grammar import Node
from streamsql.language.statements.base import (
    Column,
    Fragment,
    Name,
    Option,
    Restart,
    Statement,
    Trigger,
    check_type,
    clause,
    columns_of,
    count_of,
    fragment_of,
    name_of,
    new_name_of,
    one_line,
    watermark_of,
)
from streamsql.language.statements.checkpoint import owner_of

Reader = Callable[[Node, Source], Any]
"""Reads a field. None: the statement does not say it; the default of the field stands then, if it has one."""


def bind(kind: type[Statement], node: Node, source: Source) -> Statement:
    """The statement of a node. Raises SyntaxFault or RuleFault, with its span in the source."""
    own = kind.own_fields(node, source)
    if isinstance(own, Statement):
        return own
    bound = dict(own)
    for name, reader, has_default in _READERS[kind]:
        if name not in bound:
            value = reader(node, source)
            if value is not None or not has_default:
                bound[name] = value
    return kind(**bound)


class _Readers(dict[type[Statement], tuple[tuple[str, Reader, bool], ...]]):
    """(name, reader, whether it has a default) of the fields of each kind of statement."""

    def __missing__(self, kind: type[Statement]) -> tuple[tuple[str, Reader, bool], ...]:
        of_all = {field.name for field in fields(Statement)}
        self[kind] = tuple(
            (f.name, FIELDS[f.name], (f.default, f.default_factory) != (MISSING, MISSING))
            for f in fields(kind)
            if f.name not in of_all and f.name in FIELDS
        )
        return self[kind]


_READERS = _Readers()


_NAMES = """StreamName SinkName LiveTableName QueryName ViewName FunctionName ChangeName RelationName Target
    String""".split()
"""The parts that name what a statement is about, in this order; the text of a TEST is its name."""


def _name(node: Node, source: Source) -> Name | None:
    """The name of what a statement is about; None for ALL and where it names nothing."""
    if node.has("NewName"):
        return new_name_of(node.get("NewName"))
    named = None if node.has("ALL") else next((p for rule in _NAMES if (p := node.get(rule))), None)
    return name_of(named) if named else None


def _named(rule: str) -> Reader:
    """A reader of the part with that name as a Name."""

    def read(node: Node, source: Source) -> Name | None:
        part = node.get(rule)
        return name_of(part) if part else None

    return read


def _clause(rule: str, read: Reader) -> Reader:
    """A reader of what a clause says; None without the clause. Raises SyntaxFault for one that is written
    twice.
    """

    def of_node(node: Node, source: Source) -> Any:
        written = clause(node, rule)
        return read(written, source) if written else None

    return of_node


def _has(rule: str) -> Reader:
    return lambda node, source: node.has(rule)


def _names(rule: str) -> Reader:
    """A reader of all parts with that name."""
    return lambda node, source: tuple(map(name_of, node.all(rule)))


def _columns(node: Node, source: Source) -> tuple[Column, ...] | tuple[Name, ...]:
    """The columns that a statement declares, or a list of the names of columns."""
    return columns_of(source, node.get("ColumnDefs")) or _COLUMN_NAMES(node, source) or ()


_COLUMN_NAMES = _clause("ColumnNames", _names("ColumnName"))


def _or_replace(node: Node, source: Source) -> bool:
    """Raises SyntaxFault for OR REPLACE and IF NOT EXISTS at once."""
    if_not_exists = node.get("IfNotExists")
    if node.has("OrReplace") and if_not_exists:
        raise SyntaxFault(
            "OR REPLACE and IF NOT EXISTS exclude each other",
            hint="leave one of them out",
            span=if_not_exists.span,
            code="CLAUSE_CONFLICT",
        )
    return node.has("OrReplace")


def _text(node: Node, source: Source) -> str:
    return node.text("String")


def _query(node: Node, source: Source) -> Fragment | None:
    part = node.get("Query")
    return fragment_of(source, part) if part else None


def _options(written: Node, source: Source) -> tuple[Option, ...]:
    """Raises SyntaxFault for a duplicate key."""
    options: list[Option] = []
    keys: set[str] = set()
    for part in written.all("Option"):
        key, value = name_of(part.get("OptionKey")), name_of(part.get("OptionValue"))
        if key.value.casefold() in keys:
            raise SyntaxFault(f"option {key} is given twice", span=key.span, code="DUPLICATE_NAME")
        keys.add(key.value.casefold())
        options.append(Option(key, value))
    return tuple(options)


def _malformed(written: Node, source: Source) -> str:
    """The action of ON MALFORMED: fail, skip or into."""
    return "into" if written.has("IntoSink") else written.parts[-1].name.lower()


def _into_sink(written: Node, source: Source) -> Name | None:
    """The sink that a clause names behind INTO."""
    into = written.get("IntoSink")
    return name_of(into.get("SinkName")) if into else None


def _count(rule: str) -> Reader:
    """A reader of a number. Raises SyntaxFault with the rule if it is not a positive integer."""

    def read(node: Node, source: Source) -> int | None:
        number = node.get("Number")
        return count_of(number, rule) if number else None

    return read


def _timeout(node: Node, source: Source) -> float | None:
    """In seconds."""
    duration = node.get("Duration")
    return seconds(duration_of(duration)) if duration else None


def _output_mode(written: Node, source: Source) -> Name:
    return Name(written.parts[-1].name.lower(), written.span)


def _trigger(written: Node, source: Source) -> Trigger:
    for rule, kind in (("Every", "every"), ("ContinuousEvery", "continuous"), ("RealTimeEvery", "real_time")):
        part = written.get(rule)
        if part:
            duration = part.get("Duration")
            assert duration
            return Trigger(kind, duration_of(duration), written.span)
    return Trigger("available_now" if written.has("AVAILABLE") else "once", "", written.span)


def _restart(written: Node, source: Source) -> Restart:
    """Raises SyntaxFault if the number is not valid or the delay between retries is zero."""
    number, duration = written.get("Number"), written.get("Duration")
    assert number and duration
    times = count_of(
        number, "RESTART takes a whole number of times", "RESTART 3 TIMES EVERY INTERVAL 10 SECONDS"
    )
    every = duration_of(duration)
    if seconds(every) <= 0:
        raise RuleFault(
            "the delay between retries must not be zero",
            hint="EVERY INTERVAL 10 SECONDS",
            span=duration.span,
            code="BAD_DURATION",
        )
    return Restart(times, every)


def _begins(written: Node, source: Source) -> str:
    """The position from which a query starts: now, beginning or accept."""
    return next(word.lower() for word in ("NOW", "BEGINNING", "ACCEPT") if written.has(word))


def _event_time(node: Node, source: Source) -> Name:
    """A timestamp as text; "" for NULL."""
    null = node.get("NULL")
    return Name("", null.span) if null else name_of(node.get("String"))


def _returned_type(node: Node, source: Source) -> str:
    """The type of a scalar function; "" for one that returns a table."""
    kind = node.get("Type")
    if kind is None:
        return ""
    check_type(kind)
    return one_line(source, kind)


_MODES = ("PYSPARK", "LOGICAL", "EXTENDED", "FORMATTED", "COST", "CODEGEN")
FIELDS: dict[str, Reader] = {
    "name": _name,
    "targets": _names("Target"),
    "connector": _named("Connector"),
    "format": _clause("Format", _named("FormatName")),
    "columns": _columns,
    "key": _clause("Key", _names("ColumnName")),
    "partitioned_by": _clause("PartitionedBy", _names("ColumnName")),
    "options": _clause("Options", _options),
    "watermark": _clause("Watermark", lambda written, source: watermark_of(source, written)),
    "comment": _clause("Comment", _text),
    "malformed": _clause("OnMalformed", _malformed),
    "malformed_sink": _clause("OnMalformed", _into_sink),
    "query": _query,
    "query_name": _clause("AsQuery", lambda written, source: new_name_of(written.get("NewName"))),
    "output_mode": _clause(
        "OutputMode", lambda written, source: Name(written.parts[-1].name.lower(), written.span)
    ),
    "trigger": _clause("Trigger", _trigger),
    "checkpoint": _clause("Checkpoint", _named("Path")),
    "restart": _clause("Restart", _restart),
    "begins": _clause("Begins", _begins),
    "since": _clause("FromTime", _named("String")),
    "late": _clause("OnLate", _into_sink),
    "retain": _clause("Retain", _count("RETAIN takes a whole number of rows")),
    "retain_span": _clause("Retain", lambda written, source: written.span),
    "or_replace": _or_replace,
    "if_not_exists": _has("IfNotExists"),
    "if_exists": _has("IfExists"),
    "staged": _has("STAGED"),
    "cascade": _has("CASCADE"),
    "extended": _has("EXTENDED"),
    "chart": _has("CHART"),
    "drain": _has("DRAIN"),
    "idle": _has("IDLE"),
    "ordered": _has("ORDERED"),
    "contains": _has("CONTAINS"),
    "pattern": _text,
    "path": _named("Path"),
    "file": _named("Path"),
    "target": _named("String"),
    "returns": _returned_type,
    "error_code": _named("String"),
    "to": _event_time,
    "mode": lambda node, source: next((mode.lower() for mode in _MODES if node.has(mode)), ""),
    "words": lambda node, source: tuple(word.value.upper() for word in node.all("Word")),
    "owner": lambda node, source: owner_of(node),
    "names": lambda node, source: tuple(name_of(named.parts[0]) for named in node.all("StagedName")),
    "duplicates": _has("WithDuplicates"),
    "last": _count("LAST takes a whole number of micro-batches"),
    "timeout": _timeout,
}
"""By the name of a field, how it is read."""
