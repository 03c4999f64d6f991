"""The small things that statements are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from streamsql.errors import RuleFault, Source, Span, SyntaxFault, did_you_mean
from streamsql.language.grammar import Node, text_of
from streamsql.language.tokens import tokenize


@dataclass(frozen=True)
class Statement:
    """Base of all statements. text: as written, without `;`; span: where in the source."""

    text: str = field(default="", compare=False)
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True)
class Name:
    """A name, option or value with its place in the text."""

    value: str
    span: Span = field(default=Span(0, 0), compare=False)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Fragment:
    """A piece of Spark SQL, kept as the analyst wrote it."""

    text: str
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True)
class Column:
    """A declared column; type is Spark's type text."""

    name: str
    type: str
    nullable: bool = True
    comment: str = ""
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True)
class Watermark:
    """column: the event-time column; delay: as withWatermark takes it ("10 minutes").

    computed: the expression that the column is made of, when it is not a column of the source.
    """

    column: Name
    delay: str
    computed: Fragment | None = None
    delay_span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True)
class Option:
    key: Name
    value: Name


@dataclass(frozen=True)
class Trigger:
    """kind: available_now, once, every, continuous or real_time; interval: a duration text."""

    kind: str
    interval: str = ""
    span: Span = field(default=Span(0, 0), compare=False)

    def sql(self) -> str:
        words = {"available_now": "AVAILABLE NOW", "once": "ONCE", "every": "EVERY",
                 "continuous": "CONTINUOUS EVERY", "real_time": "REAL TIME EVERY"}  # fmt: skip
        return words[self.kind] + (f" '{self.interval}'" if self.interval else "")


def name_of(node: Node | None) -> Name:
    assert node is not None
    return Name(node.value, node.span)


def fragment_of(source: Source, node: Node) -> Fragment:
    return Fragment(text_of(source, node), node.span)


SIMPLE_TYPES = frozenset(
    """BOOLEAN BYTE TINYINT SHORT SMALLINT INT INTEGER LONG BIGINT FLOAT REAL DOUBLE DATE TIME
    TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ STRING CHAR CHARACTER VARCHAR BINARY DECIMAL DEC
    NUMERIC VOID VARIANT GEOMETRY GEOGRAPHY""".split()
)


def check_type(node: Node) -> None:
    """Raise SyntaxFault for a type name that Spark does not have (Spark guide: Data Types)."""
    for part in node.parts:
        if part.name == "TypeName" and part.value.upper() not in SIMPLE_TYPES:
            known = SIMPLE_TYPES | {"ARRAY", "MAP", "STRUCT"}
            raise SyntaxFault(
                f"there is no type {part.value}",
                hint=did_you_mean(part.value, known) or "types are BIGINT, DOUBLE, STRING, TIMESTAMP, …",
                span=part.span,
            )
        check_type(part)


def one_line(source: Source, node: Node) -> str:
    """A node's text without its comments and line ends; what is inside quotes stays as it is."""
    tokens = tokenize(text_of(source, node))
    gaps = [
        " " if before.end < token.start else "" for before, token in zip(tokens, tokens[1:], strict=False)
    ]
    return "".join(part for pair in zip([t.text for t in tokens], [*gaps, ""], strict=True) for part in pair)


def columns_of(source: Source, node: Node | None) -> tuple[Column, ...]:
    """The columns of a ColumnDefs node. Raises SyntaxFault for an unknown type or a name said twice."""
    columns: list[Column] = []
    for part in node.all("ColumnDef") if node else []:
        defined = part.get("ColumnDefName")
        kind = part.get("Type")
        assert defined and kind
        check_type(kind)
        name = defined.text("NewName")
        if name.casefold() in {c.name.casefold() for c in columns}:
            raise SyntaxFault(f"column {name} is declared twice", span=defined.span)
        comment = part.get("Comment")
        columns.append(
            Column(
                name,
                one_line(source, kind),
                not part.has("NotNull"),
                comment.text("String") if comment else "",
                defined.span,
            )
        )
    return tuple(columns)


def options_of(node: Node | None) -> tuple[Option, ...]:
    """The options of an Options node. Raises SyntaxFault for a key said twice."""
    options: list[Option] = []
    for part in node.all("Option") if node else []:
        key, value = name_of(part.get("OptionKey")), name_of(part.get("OptionValue"))
        if key.value.casefold() in {o.key.value.casefold() for o in options}:
            raise SyntaxFault(f"option {key} is given twice", span=key.span)
        options.append(Option(key, value))
    return tuple(options)


_DURATION = re.compile(r"\s*([-+]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-zµ]+)")


def duration_of(node: Node) -> str:
    """A Duration node as Spark's interval text: `10 minutes`. Raises RuleFault for a month or less
    than nothing: an event-time delay or trigger is a fixed length (withWatermark in the Spark guide).
    """
    interval = node.get("Interval")
    if interval is None:
        text = node.text("String")
    elif interval.has("String"):
        text = interval.text("String")
    else:
        text = " ".join(_interval_part(p) for p in interval.all("IntervalPart"))
    text = re.sub(r"^\s*interval\s+", "", text.strip(), flags=re.IGNORECASE)
    pairs = [(number.replace(" ", ""), unit) for number, unit in _DURATION.findall(text)]
    if not pairs or _DURATION.sub("", text).strip():
        raise SyntaxFault(
            f"'{text}' is not a length of time",
            hint="write INTERVAL 10 MINUTES, or '10 minutes'",
            span=node.span,
        )
    _check_duration(pairs, node)
    return " ".join(_as_spark_reads(number, unit) for number, unit in pairs)


def _check_duration(pairs: list[tuple[str, str]], node: Node) -> None:
    total = 0.0
    for number, unit in pairs:
        if _unit(unit) not in _SECONDS:
            raise SyntaxFault(
                f"there is no unit of time {unit}",
                hint=did_you_mean(unit, [u + "s" for u in _SECONDS])
                or "seconds, minutes, hours, days, weeks",
                span=node.span,
            )
        total += float(number) * _SECONDS[_unit(unit)]
    if total < 0:
        raise RuleFault("a delay cannot be negative", hint="write 0 seconds or more", span=node.span)
    if any(_unit(u) in ("month", "year") for _, u in pairs):
        raise RuleFault(
            "a month or a year has no fixed length",
            detail="a delay or trigger is compared with event time, so it must always be equally long",
            hint="write it in days, such as INTERVAL 30 DAYS",
            span=node.span,
        )


_SECONDS = {
    "microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400,
    "week": 7 * 86400, "month": 31 * 86400, "year": 372 * 86400,
}  # fmt: skip
# What people write for them; Spark takes the whole words alone.
_SHORT = {
    "us": "microsecond", "µs": "microsecond", "micro": "microsecond", "ms": "millisecond",
    "msec": "millisecond", "milli": "millisecond", "s": "second", "sec": "second", "m": "minute",
    "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week",
}  # fmt: skip


def _unit(written: str) -> str:
    """A unit in Spark's word, in the singular; as it is when there is none of that name."""
    name = written.lower()
    return next((_SHORT.get(n, n) for n in (name, name.removesuffix("s")) if n in {*_SHORT, *_SECONDS}), name)


def _as_spark_reads(number: str, unit: str) -> str:
    """One number and unit as Spark's interval text has it: whole words, fractions of seconds only."""
    name = _unit(unit)
    if name != "second" and "." in number:
        fraction = f"{Decimal(number) * Decimal(str(_SECONDS[name])):f}"
        return f"{fraction.rstrip('0').rstrip('.') if '.' in fraction else fraction} seconds"
    plural = name + "s" if unit.lower() not in (name, name + "s") else unit.lower()
    return f"{number} {plural}"


def seconds(duration: str) -> float:
    """Length of a checked duration text, in seconds."""
    return sum(float(n.replace(" ", "")) * _SECONDS[_unit(u)] for n, u in _DURATION.findall(duration))


def _interval_part(node: Node) -> str:
    unit = node.get("Unit")
    assert unit
    return f"{node.text('Number') or node.text('String')} {unit.parts[0].name.lower()}"


def watermark_of(source: Source, node: Node | None) -> Watermark | None:
    """A Watermark or InWatermark node."""
    if node is None:
        return None
    delay_node = node.get("Delay")
    assert delay_node
    duration = delay_node.get("Duration")
    assert duration
    delay = duration_of(duration)
    computed = node.get("ComputedColumn")
    if computed:
        expression = computed.get("Expression")
        assert expression
        return Watermark(
            name_of(computed.get("Alias")), delay, fragment_of(source, expression), duration.span
        )
    return Watermark(name_of(node.get("ColumnName")), delay, None, duration.span)


def begins_of(node: Node | None) -> str:
    """Where a start begins: now, beginning, accept, or "" for the checkpoint that there is."""
    words = ("NOW", "BEGINNING", "ACCEPT")
    return next((w.lower() for w in words if node and node.has(w)), "")


def trigger_of(node: Node | None) -> Trigger | None:
    if node is None:
        return None
    for rule, kind in (("Every", "every"), ("ContinuousEvery", "continuous"), ("RealTimeEvery", "real_time")):
        part = node.get(rule)
        if part:
            duration = part.get("Duration")
            assert duration
            return Trigger(kind, duration_of(duration), node.span)
    return Trigger("available_now" if node.has("AVAILABLE") else "once", "", node.span)


def output_mode_of(node: Node | None) -> Name | None:
    return Name(node.parts[-1].name.lower(), node.span) if node else None


def clause(node: Node, rule: str) -> Node | None:
    """The one clause of that name below a node. Raises SyntaxFault when it is written twice."""
    found = node.all(rule)
    if len(found) > 1:
        raise SyntaxFault("this clause is written twice", span=found[1].span)
    return found[0] if found else None
