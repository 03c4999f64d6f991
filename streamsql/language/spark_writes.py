"""What a statement or a script of Spark (BEGIN … END) writes, and the statements that it has as texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from streamsql.errors import Span, StreamsqlError
from streamsql.language.query import read_query
from streamsql.language.spark_definitions import definition_of, inserted_into, name_of_table, target_of
from streamsql.language.tokens import Token, tokenize, unquote


def inner_targets(text: str) -> Iterator[tuple[str, Span]]:
    """The names of the tables into which the INSERTs of a script of Spark (BEGIN … END) write, with their
    places.
    """
    tokens = tokenize(text, strict=False)
    if not tokens or tokens[0].upper != "BEGIN":
        return
    for at in range(1, len(tokens) - 2):
        if tokens[at].upper == "INSERT" and tokens[at + 1].upper in ("INTO", "OVERWRITE"):
            rest = tokens[at + 2 + (tokens[at + 2].upper == "TABLE") :]
            if name := name_of_table(rest):
                yield ".".join(name), rest[0].span


_REPLACING = frozenset(
    ("TRUNCATE TABLE", "INSERT OVERWRITE", "INSERT OVERWRITE TABLE", "DELETE FROM", "UPDATE", "MERGE INTO")
)
_CHANGING = _REPLACING | {"ALTER TABLE", "REPAIR TABLE", "MSCK REPAIR TABLE"}


def tables_written(text: str) -> dict[str, bool]:
    """The tables whose rows a statement of Spark changes, or the INSERTs of a script (BEGIN … END), by their
    names as written; and whether rows of before may be gone then.
    """
    target, defined = target_of(text), definition_of(text)
    written = {name: True for name, _ in inner_targets(text)}
    if target is not None and target.verb in _CHANGING:
        written[target.name] = target.verb in _REPLACING
    elif inserted := inserted_into(text):
        written[inserted] = False
    elif defined.kind == "table" and defined.creates:
        written[defined.creates] = True
    return written


def executed_texts(text: str) -> list[str]:
    """The statements that EXECUTE IMMEDIATE has as texts, in a statement or a script of Spark. One in a
    variable is not among them, nor one whose quotes and parentheses are not in pairs: Spark says so.
    """
    tokens = tokenize(text, strict=False)
    texts = [
        _joined_literals(list(takewhile(lambda token: token.kind == "string", tokens[at + 2 :])))
        for at in range(len(tokens) - 2)
        if (tokens[at].upper, tokens[at + 1].upper) == ("EXECUTE", "IMMEDIATE")
    ]
    return [executed for executed in texts if executed and _is_readable(executed)]


def _joined_literals(literals: list[Token]) -> str:
    """The value of string literals that follow each other. Spark joins them; of two that touch, a quote
    stands between: 'it''s'.
    """
    value = ""
    for before, literal in zip([None, *literals], literals, strict=False):
        touches = before and before.span.end == literal.span.start and before.text[-1] == literal.text[0]
        value += (literal.text[0] if touches else "") + unquote(literal)
    return value


def _is_readable(text: str) -> bool:
    try:
        read_query(text)
    except StreamsqlError:
        return False
    return True
