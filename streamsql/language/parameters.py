"""Parameters of a statement, ? and :name, and values of Python as literals of Spark."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from streamsql.errors import InputFault, Span, SyntaxFault
from streamsql.language.psql_variables import parameters as named_parameters
from streamsql.language.tokens import Token, quote, tokenize

Values = Sequence[Any] | Mapping[str, Any]
_INT, _LONG, _DIGITS = 1 << 31, 1 << 63, 38


def replaced_parameters(tokens: Sequence[Token], values: Values) -> list[tuple[int, int, str]]:
    """(start, end, literal) of each parameter of a statement. values: of ? in their order, or of :name.
    Raises SyntaxFault for a parameter without a value, InputFault for values that are too many or that no
    literal stands for.
    """
    if isinstance(values, Mapping):
        return _by_name(tokens, values)
    signs = _signs(tokens)
    if len(signs) > len(values):
        raise _without_value("?", signs[len(values)].span, f"{len(values)} are given")
    if len(signs) < len(values):
        raise InputFault(
            f"{len(values)} values are given for {len(signs)} parameters", code="WRONG_PARAMETERS"
        )
    return [(sign.start, sign.end, literal(value)) for sign, value in zip(signs, values, strict=True)]


def number_of_parameters(text: str) -> int:
    """How many ? a statement has: those in texts and comments are none. Raises SyntaxFault."""
    return len(_signs(tokenize(text)))


def _signs(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.kind == "sign" and token.text == "?"]


def _by_name(tokens: Sequence[Token], values: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    places = []
    for parameter in named_parameters(tokens):
        if parameter.name not in values:
            listed = f"values are given for {', '.join(values)}" if values else "no values are given"
            raise _without_value(f":{parameter.written}", Span(parameter.start, parameter.end), listed)
        if parameter.written == parameter.name:  # with quotes it is a variable of psql
            places.append((parameter.start, parameter.end, literal(values[parameter.name])))
    return places


def _without_value(name: str, place: Span, given: str) -> SyntaxFault:
    return SyntaxFault(
        f"there is no value for the parameter {name}", detail=given, span=place, code="WRONG_PARAMETERS"
    )


def literal(value: Any) -> str:
    """An expression of Spark whose value is that of a Python object. A datetime without a time zone is a time
    in the session time zone. Raises InputFault for a value that Spark has no type for.
    """
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return f"array({', '.join(map(literal, value))})"
    if isinstance(value, Mapping):
        return f"map({', '.join(f'{literal(k)}, {literal(v)}' for k, v in value.items())})"
    for kinds, written in _LITERALS:
        if isinstance(value, kinds):
            return written(value)
    if hasattr(value, "item"):  # a number of NumPy
        return literal(value.item())
    raise InputFault(
        f"a value of the type {type(value).__name__} cannot be a parameter", code="WRONG_PARAMETERS"
    )


def _integer(value: int) -> str:
    # In parentheses: a minus behind another one would begin a comment.
    if abs(value) < _INT:
        return f"({value})"
    return f"({value}L)" if abs(value) < _LONG else _decimal(Decimal(value))


def _decimal(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise _out_of_range(value)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _DIGITS:
        raise _out_of_range(value)
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _out_of_range(value: Any) -> InputFault:
    return InputFault(f"the number {value} is no DECIMAL of {_DIGITS} digits", code="WRONG_PARAMETERS")


def _float(value: float) -> str:
    text = repr(float(value)) if math.isfinite(value) else str(float(value))
    return f"CAST('{text}' AS DOUBLE)"


def _moment(value: dt.datetime) -> str:
    text = value.isoformat(" ")
    if value.tzinfo is not None:
        text = f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}+00:00"
    return f"TIMESTAMP '{text}'"


def _interval(value: dt.timedelta) -> str:
    sign, size = ("-", -value) if value < dt.timedelta() else ("", value)
    minutes, seconds = divmod(size.seconds, 60)
    time_of_day = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{size.microseconds:06}"
    return f"INTERVAL '{sign}{size.days} {time_of_day}' DAY TO SECOND"


_LITERALS: tuple[tuple[Any, Any], ...] = (
    (bool, lambda value: str(value).upper()),  # before int, which it is too
    (int, _integer),
    (float, _float),
    (Decimal, _decimal),
    (str, quote),
    ((bytes, bytearray, memoryview), lambda value: f"X'{bytes(value).hex()}'"),
    (dt.datetime, _moment),  # before date, which it is too
    (dt.date, lambda value: f"DATE '{value.isoformat()}'"),
    (dt.time, lambda value: f"TIME '{value.replace(tzinfo=None).isoformat()}'"),
    (dt.timedelta, _interval),
    (UUID, lambda value: quote(str(value))),
)
