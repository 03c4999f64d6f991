"""Infers the clauses of a CREATE STREAM from the first records of a source: types, event time, and a name for
the stream; csv_guesses has the options of csv.

Pure functions of the lines and values that were read. Spark infers the types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamsql.language.statements.base import Column, Fragment, Name, Watermark
from streamsql.language.tokens import NOT_A_NAME, quote, quote_name


def in_order(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The names of columns in the order in which they first occur in JSON objects; Spark sorts them
    alphabetically.
    """
    wanted = list(names)
    seen: dict[str, None] = {}
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            seen.update(dict.fromkeys(k for k in value if k in wanted))
        if len(seen) == len(wanted):
            break
    return [*seen, *(n for n in wanted if n not in seen)]


_ENDING = re.compile(r"(\.(json|jsonl|ndjson|csv|tsv|txt|log|parquet|orc|avro|gz|bz2|zst))+$", re.IGNORECASE)


def stream_name(place: str, taken: Iterable[str], otherwise: str) -> str:
    """An unused name for a stream that reads a folder or a topic."""
    parts = [p for p in re.split(r"[/\\]+", place) if p and not re.search(r"[*?\[\]{}=:]|^\.+$", p)]
    last = _ENDING.sub("", parts[-1]) if parts else ""
    name = re.sub(r"\W+", "_", last).strip("_").lower() or otherwise.replace("-", "_")
    if name[0].isdigit() or name.upper() in NOT_A_NAME:
        name = f"stream_{name}"
    used = {t.casefold() for t in taken}
    numbered = (name if n == 1 else f"{name}_{n}" for n in range(1, len(used) + 2))
    return next(n for n in numbered if n.casefold() not in used)


# ---- event time -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """A column, or (with a path of several names) a field inside one, and some of its values."""

    path: tuple[str, ...]
    type: str
    values: tuple[Any, ...]

    @property
    def sql(self) -> str:
        return ".".join(map(quote_name, self.path))


_ZONE = r"( ?(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?|\[?[A-Z]\w+/\w+\]?))?"
_ISO = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,9}})?)?{_ZONE}\Z")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_DIGITS = re.compile(r"\d{9,19}(\.\d+)?\Z")
_CLOCK = r"\d{2}:\d{2}:\d{2}"
# Other formats of times → Spark's patterns for them (Spark guide, "Datetime patterns").
_PATTERNS = (
    (rf"\d{{2}}/[A-Z][a-z]{{2}}/\d{{4}}:{_CLOCK} [+-]\d{{4}}", "dd/MMM/yyyy:HH:mm:ss Z"),
    (rf"\d{{4}}-\d{{2}}-\d{{2}} {_CLOCK},\d{{3}}", "yyyy-MM-dd HH:mm:ss,SSS"),
    (rf"\d{{4}}/\d{{2}}/\d{{2}} {_CLOCK}", "yyyy/MM/dd HH:mm:ss"),
    (rf"\d{{2}}\.\d{{2}}\.\d{{4}} {_CLOCK}", "dd.MM.yyyy HH:mm:ss"),
    (rf"(0[1-9]|1[0-2])/\d{{2}}/\d{{4}} {_CLOCK}", "MM/dd/yyyy HH:mm:ss"),
    (rf"\d{{2}}/\d{{2}}/\d{{4}} {_CLOCK}", "dd/MM/yyyy HH:mm:ss"),
    (r"\d{8}T\d{6}(Z|[+-]\d{4})", "yyyyMMdd'T'HHmmssX"),
    (r"\d{4}/\d{2}/\d{2} \d{2}:\d{2}", "yyyy/MM/dd HH:mm"),
    (r"\d{2}\.\d{2}\.\d{4} \d{2}:\d{2}", "dd.MM.yyyy HH:mm"),
    (r"(0[1-9]|1[0-2])/\d{2}/\d{4} \d{2}:\d{2}", "MM/dd/yyyy HH:mm"),
    (r"\d{2}/\d{2}/\d{4} \d{2}:\d{2}", "dd/MM/yyyy HH:mm"),
)
# The years 2000 to 2040, in seconds.
_FROM, _TO = 946_684_800, 2_208_988_800
_EPOCHS = (
    (1, "timestamp_seconds({})"),
    (1_000, "timestamp_millis({})"),
    (1_000_000, "timestamp_micros({})"),
    (1_000_000_000, "timestamp_micros({} DIV 1000)"),
)
_WORDS = "ts time timestamp datetime date at when epoch millis ms created occurred logged".split()
# Names of times that are not event time.
_OTHERS = (
    "updated modified ingest ingested received processed expires expiry deleted birth birthday until".split()
)


def is_iso(values: Sequence[Any]) -> bool:
    """Whether all values are timestamps that Spark reads without a pattern."""
    return _all(_ISO, values)


def _all(pattern: re.Pattern[str], values: Sequence[Any]) -> bool:
    texts = [v for v in values if v is not None]
    return bool(texts) and all(isinstance(v, str) and pattern.match(v) for v in texts)


def time_pattern(texts: Sequence[str]) -> str:
    """Spark's pattern for times that look like these texts; "" when none is known."""
    return next((p for shape, p in _PATTERNS if _all(re.compile(shape + r"\Z"), texts)), "")


def time_expression(column: str, texts: Sequence[str]) -> str:
    """The expression that makes timestamps of a column with such texts; "" when none is known."""
    moment = _moment(Leaf((column,), "STRING", tuple(texts)))
    return moment[1] if moment else ""


def event_time(leaves: Iterable[Leaf], taken: Iterable[str], odd: Collection[str] = ()) -> Watermark | None:
    """A watermark on the column that is most likely the event time, or None. taken: the names of all columns,
    which a computed column must not have; odd: columns of which some values are no times.
    """
    ranked = []
    for place, leaf in enumerate(leaves):
        moment = _moment(leaf)
        if moment:
            worth, expression, delay = moment
            ranked.append((_rank(leaf, worth), place, expression, delay, leaf))
    if not ranked:
        return None
    _, _, expression, delay, leaf = min(ranked, key=lambda r: r[:2])
    if not expression:
        return Watermark(Name(leaf.path[0]), delay)
    used = {t.casefold() for t in taken}
    name = next(n for n in ("event_time", *(f"event_time_{i}" for i in range(2, 99))) if n not in used)
    if leaf.path[0] in odd and expression.startswith("to_timestamp"):
        expression = f"try_{expression}"
    return Watermark(Name(name), delay, Fragment(expression))


def _moment(leaf: Leaf) -> tuple[str, str, str] | None:
    """(kind, expression that converts it to a timestamp, empty if it is one, watermark delay) of a column
    with times; else None.
    """
    kind, values = leaf.type.upper(), [v for v in leaf.values if v is not None]
    if not values or len(values) * 2 < len(leaf.values):
        return None
    if kind.startswith("TIMESTAMP"):
        return "time", leaf.sql if len(leaf.path) > 1 else "", "10 minutes"
    if kind == "DATE" or (kind == "STRING" and _all(_DAY, values)):
        return "date", f"to_timestamp({leaf.sql})", "1 day"
    if kind == "STRING":
        if is_iso(values):
            return "time", f"to_timestamp({leaf.sql})", "10 minutes"
        if pattern := time_pattern(values):
            return "time", f"to_timestamp({leaf.sql}, {quote(pattern)})", "10 minutes"
        if not _all(_DIGITS, values):
            return None
        values = [float(v) for v in values]
        return _epoch(
            values, f"CAST({leaf.sql} AS {'BIGINT' if all(v % 1 == 0 for v in values) else 'DOUBLE'})"
        )
    if re.match(r"(BIGINT|INT|DOUBLE|FLOAT|DECIMAL)\b", kind):
        return _epoch([float(v) for v in values], leaf.sql)
    return None


def _epoch(values: list[float], written: str) -> tuple[str, str, str] | None:
    """Like _moment for numbers: times since 1970, in the unit that puts them between 2000 and 2040."""
    whole = all(v % 1 == 0 for v in values)
    for unit, template in _EPOCHS:
        if all(_FROM * unit <= v < _TO * unit for v in values):
            expression = (
                template.format(written) if whole or unit == 1 else f"timestamp_seconds({written} / {unit})"
            )
            return "epoch", expression, "10 minutes"
    return None


def _rank(leaf: Leaf, kind: str) -> tuple[int, int, int]:
    """A rank by name, kind and nesting depth; the lowest is most likely the event time."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", leaf.path[-1]).lower()
    parts = set(re.split(r"[\W_]+", words))
    other = bool(parts & set(_OTHERS))
    named = not other and (bool(parts & set(_WORDS)) or words.endswith(("time", "timestamp", "date")))
    if kind == "date":
        tier = 6 if other else 5
    elif named:
        tier = 0 if parts & {"event", "ts", "timestamp"} else 1
    else:
        tier = 3 if other else 2 if kind == "time" else 4
    return tier, len(leaf.path), int(kind != "time")


MANY = 0.8
"""The share of the values of a column whose type is told, though the column stays a STRING."""
_SHAPES = (
    # A TIMESTAMP of Spark has six digits behind the seconds.
    ("TIMESTAMP", re.compile(rf"(?!.*\.\d{{6}}\d*[1-9]){_ISO.pattern}")),
    ("DATE", _DAY),
    ("BIGINT", re.compile(r"(0|-?[1-9]\d{0,17})\Z")),
    ("DOUBLE", re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{0,2})?\Z")),
)


@dataclass(frozen=True)
class Typed:
    """A column with the type of all its values. many: the type that many of them have, but not all, so that
    the column stays a STRING; odd: those that do not have it; of: the number of all.
    """

    column: Column
    odd: tuple[str, ...] = ()
    of: int = 0
    many: str = ""


def typed(columns: Sequence[Column], values: dict[str, Sequence[Any]], *, numbers: bool) -> tuple[Typed, ...]:
    """The columns, where texts of which all are timestamps or dates get these types. numbers: whether a type
    of numbers that many texts have is told.
    """
    shapes = _SHAPES if numbers else _SHAPES[:2]
    return tuple(_typed(column, values.get(column.name, ()), shapes) for column in columns)


def _typed(column: Column, seen: Sequence[Any], shapes: Sequence[tuple[str, re.Pattern[str]]]) -> Typed:
    texts = [v for v in seen if isinstance(v, str) and v]
    as_it_is = Typed(Column(column.name, column.type))
    if column.type != "STRING" or not texts:
        return as_it_is
    for kind, shape in shapes:
        odd = [v for v in texts if not shape.match(v)]
        if not odd and kind in ("TIMESTAMP", "DATE"):
            return Typed(Column(column.name, kind))
        if 0 < len(odd) <= len(texts) * (1 - MANY):
            return replace(as_it_is, odd=tuple(dict.fromkeys(odd)), of=len(texts), many=kind)
    return as_it_is
