"""Parameters of a statement, ? and :name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamsql.errors import InputFault, Span, SyntaxFault
from streamsql.language.psql_variables import parameters as named_parameters
from streamsql.language.python_values import literal
from streamsql.language.tokens import Token, tokenize

Values = Sequence[Any] | Mapping[str, Any]


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
