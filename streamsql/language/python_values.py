"""Values of Python as literals of Spark, and the types of Python that streamsql has for values of Spark."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any
from uuid import UUID

from streamsql.errors import InputFault
from streamsql.language.tokens import quote

_INT, _LONG, _DIGITS = 1 << 31, 1 << 63, 38
_MICROSECOND = dt.timedelta(microseconds=1)


class Struct(dict[str, Any]):
    """A STRUCT, as a dict of its fields. As a parameter it is a STRUCT again; any other dict is a MAP."""


@dataclass(frozen=True)
class Pairs:
    """A MAP that is no dict of Python: it has keys that are structs or arrays, or that are equal as shown (an
    hour that a time zone has twice).
    """

    pairs: tuple[tuple[Any, Any], ...] = ()

    def items(self) -> tuple[tuple[Any, Any], ...]:
        """As that of a dict."""
        return self.pairs


def map_of(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any] | Pairs:
    """A map with these keys and values."""
    entries = tuple(pairs)
    try:
        made = dict(entries)
    except TypeError:  # a key that has no hash
        return Pairs(entries)
    return made if len(made) == len(entries) else Pairs(entries)


def literal(value: Any) -> str:
    """An expression of Spark whose value is that of a Python object. A datetime without a time zone is a
    TIMESTAMP_NTZ, which Spark takes as a time in the session time zone where it needs a TIMESTAMP. Raises
    InputFault for a value that Spark has no type for, or would alter.
    """
    value = _plain(value)
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        _check_alike(value, "an array")
        return f"array({', '.join(map(literal, value))})"
    if isinstance(value, Struct):
        fields = (f"{quote(name)}, {literal(part)}" for name, part in value.items())
        return f"named_struct({', '.join(fields)})"
    if isinstance(value, (Mapping, Pairs)):
        _check_alike([value], "a map")
        return f"map({', '.join(f'{literal(k)}, {literal(v)}' for k, v in value.items())})"
    for kinds, written in _LITERALS:
        if isinstance(value, kinds):
            return written(value)
    raise _wrong(
        f"a value of the type {type(value).__name__} cannot be a parameter",
        "None, bool, int, float, Decimal, str, bytes, date, datetime, time, timedelta, list, dict or Struct",
    )


def _wrong(message: str, hint: str = "") -> InputFault:
    return InputFault(message, hint=hint, code="WRONG_PARAMETERS")


def _plain(value: Any) -> Any:
    """A value of NumPy or pandas as one of Python: an array is a list, NaT is None. A tuple with names is a
    Struct. Raises InputFault for nanoseconds.
    """
    names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
    if isinstance(value, tuple) and names:  # of collections.namedtuple, or a row of PySpark
        return Struct(zip(names, value, strict=True))
    if isinstance(value, (dt.datetime, dt.timedelta)):
        if value != value:  # NaT
            return None
        if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
            raise _nanoseconds(value)
        return value
    if isinstance(value, _SCALARS) or not hasattr(value, "dtype") or not hasattr(value, "item"):
        return value
    if value.ndim:
        return list(value)
    item = value.item()
    if value.dtype.kind not in "mM" or isinstance(item, (dt.date, dt.timedelta, type(None))):
        return item
    micros = value.astype(f"{value.dtype.kind}8[us]")  # in its own unit it is a number for Python
    if micros != value or isinstance(micros.item(), int):
        raise _nanoseconds(value)
    return micros.item()


def _nanoseconds(value: Any) -> InputFault:
    return _wrong(f"{value} is no time of Python", "a datetime has microseconds, and the years 1 to 9999")


# ---- values that share a type -------------------------------------------------------------------


def _check_alike(values: Iterable[Any], of: str) -> None:
    """Raise InputFault unless Spark has a type for all these values that alters none of them: it makes a
    number of the text '1' beside a number. of: what has them.
    """
    given = [value for value in map(_plain, values) if value is not None]
    kinds = {_kind(value): value for value in given}
    if len(kinds) > 1:
        names = ", ".join(sorted({type(value).__name__ for value in kinds.values()}))
        hint = "streamsql.Struct(…) is a STRUCT, a dict a MAP" if of == "a map" else ""
        raise _wrong(f"{of} has values that have no type in common: {names}", hint)
    if not given:
        return
    one = given[0]
    if isinstance(one, (list, tuple)):
        _check_alike(chain.from_iterable(given), of)
    elif isinstance(one, Struct):
        for name in one:
            _check_alike([value[name] for value in given], of)
    elif isinstance(one, (Mapping, Pairs)):
        for parts in zip(*chain.from_iterable(value.items() for value in given), strict=True):
            _check_alike(parts, of)
    elif _kind(one) == "number":
        _check_numbers(given, of)


def _kind(value: Any) -> object:
    """What values of one type of Spark have in common."""
    if isinstance(value, Struct):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return "array"
    if isinstance(value, (Mapping, Pairs)):
        return "map"
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return "number"
    kind = next((kinds for kinds, _ in _LITERALS if isinstance(value, kinds)), type(value))
    return str if kind is UUID else kind


def _check_numbers(numbers: Sequence[Any], of: str) -> None:
    if any(isinstance(number, float) for number in numbers):
        altered = [number for number in numbers if not _is_double(number)]
        if altered:
            raise _wrong(f"{of} has floats, and {altered[0]} is none exactly")
    elif any(isinstance(number, Decimal) for number in numbers):
        sizes = [_digits(number) for number in numbers]
        if max(size - scale for size, scale in sizes) + max(scale for _, scale in sizes) > _DIGITS:
            raise _wrong(f"{of} has numbers that have no DECIMAL of {_DIGITS} digits in common")


def _is_double(number: Any) -> bool:
    try:
        return number != number or float(number) == number
    except OverflowError:
        return False


def _digits(number: int | Decimal) -> tuple[int, int]:
    """(precision, scale) of a number as Spark sees it beside a DECIMAL. Raises InputFault."""
    if isinstance(number, int):
        if -_LONG <= number < _LONG:
            return (10 if -_INT <= number < _INT else 20), 0
        number = Decimal(number)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise _out_of_range(number)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _DIGITS:
        raise _out_of_range(number)
    return precision, scale


def _out_of_range(value: Any) -> InputFault:
    return _wrong(f"the number {value} is no DECIMAL of {_DIGITS} digits")


# ---- simple values ------------------------------------------------------------------------------


def _integer(value: int) -> str:
    # In parentheses: a minus behind another one would begin a comment.
    if -_INT <= value < _INT:
        return f"({int(value)})"
    return f"({int(value)}L)" if -_LONG <= value < _LONG else _decimal(Decimal(value))


def _decimal(value: Decimal) -> str:
    precision, scale = _digits(value)
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _float(value: float) -> str:
    text = repr(float(value)) if math.isfinite(value) else str(float(value))
    return f"CAST('{text}' AS DOUBLE)"


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong("a text with half of a surrogate pair cannot be a parameter") from None
    return quote(value)


def _moment(value: dt.datetime) -> str:
    if value.tzinfo is None and value.fold:
        raise _wrong(
            f"{value} is the second time of that name (fold=1), which only a time zone tells",
            "a datetime with a time zone",
        )
    kind = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"  # which has the hours that a time zone leaves out
    return f"{kind} '{value.isoformat(' ')}'"


def _time_of_day(value: dt.time) -> str:
    if value.tzinfo is not None:
        raise _wrong("Spark has no TIME with a time zone", "a time without tzinfo")
    return f"TIME '{value.isoformat()}'"


def _interval(value: dt.timedelta) -> str:
    if not -_LONG <= value // _MICROSECOND < _LONG:
        raise _wrong(f"{value} is longer than an interval of Spark can be, 106,751,991 days")
    sign, size = ("-", -value) if value < dt.timedelta() else ("", value)
    minutes, seconds = divmod(size.seconds, 60)
    time_of_day = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{size.microseconds:06}"
    return f"INTERVAL '{sign}{size.days} {time_of_day}' DAY TO SECOND"


_LITERALS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (bool, lambda value: str(value).upper()),  # before int, which it is too
    (int, _integer),
    (float, _float),
    (Decimal, _decimal),
    (str, _text),
    ((bytes, bytearray, memoryview), lambda value: f"X'{bytes(value).hex()}'"),
    (dt.datetime, _moment),  # before date, which it is too
    (dt.date, lambda value: f"DATE '{value.isoformat()}'"),
    (dt.time, _time_of_day),
    (dt.timedelta, _interval),
    (UUID, lambda value: quote(str(value))),
)
_SCALARS = (bool, int, float, str, bytes)
"""Types whose NumPy kin, such as float64, are values of Python already."""
