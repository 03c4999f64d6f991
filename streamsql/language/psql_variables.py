"""Variables as psql writes them: `:day`, `:'day'` as a text and `:"day"` as a name. Those of DEFINE and \\set
are replaced; others are refused, since Spark's parser takes no `:'day'`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamsql.errors import Span, SyntaxFault
from streamsql.language.edits import Edit, edited
from streamsql.language.tokens import Token, quote, quote_name, unquote


@dataclass(frozen=True)
class Parameter:
    """name: of the variable; written: the token with it, quoted or not; start, end: its place."""

    name: str
    written: str
    start: int
    end: int

    def with_value(self, value: str) -> str:
        """The value as SQL: as it is, as a text, or as a name."""
        kind = self.written[0]
        return quote(value) if kind == "'" else quote_name(value) if kind == '"' else value

    @property
    def own(self) -> str:
        """The console's own form: `${day}`, in quotes or backticks where these quote it."""
        kind = self.written[0]
        around = "'" if kind == "'" else "`" if kind == '"' else ""
        return f"{around}${{{self.name}}}{around}"


def parameters(tokens: Sequence[Token]) -> Iterator[Parameter]:
    """The variables of psql in a statement: no path of a VARIANT, key of a struct or part of a slice."""
    for before, sign, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        beside = sign.text == ":" and sign.end == name.start and name.kind in ("word", "string")
        value = before.kind in ("quoted", "string", "number") or before.text in (")", "]")
        value = value or (before.kind == "word" and before.end == sign.start)
        if beside and not value and before.text not in ("{", "[", ":") and unquote(name).isidentifier():
            yield Parameter(unquote(name), name.text, sign.start, name.end)


def defined_parameters(tokens: Sequence[Token], values: Mapping[str, str]) -> list[Parameter]:
    """Those of them that have a value."""
    return [p for p in parameters(tokens) if p.name in values]


def own_edits(used: Sequence[Parameter], values: Mapping[str, str]) -> list[Edit]:
    """The edits that write these in the console's own form. A value with a quote in it has none: it stands
    there itself.
    """

    def own(parameter: Parameter) -> str:
        value = values[parameter.name]
        return parameter.own if quote(value) == f"'{value}'" else parameter.with_value(value)

    return [(p.start, p.end, own(p)) for p in used]


def check_parameters(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `:'x'` of psql, with variables of the console. `:x` alone is left to Spark."""
    found = list(parameters(tokens)) if ":" in text else []
    if not any(p.written != p.name for p in found):
        return
    edits = [(p.start, p.end, p.own) for p in found]
    first = found[0]
    defined = " ".join(f"DEFINE {name} = '…';" for name in dict.fromkeys(p.name for p in found))
    raise SyntaxFault(
        f"the variable {text[first.start : first.end]} is not defined",
        detail="DEFINE, or \\set, sets a variable here, and ${name} stands for its value",
        proposal=f"{defined} {edited(text, edits).text};",
        span=Span(first.start, first.end),
        code="OTHER_CONSOLE",
    )
