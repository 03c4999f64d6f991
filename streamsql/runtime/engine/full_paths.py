"""Relative paths in the statement of a view: the workspace may be opened from another folder."""

from __future__ import annotations

import glob
from collections.abc import Iterator

from streamsql.connectors.option_values import in_full
from streamsql.errors import Source
from streamsql.language.parser import parse
from streamsql.language.script import split_script
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import Token, quote, quote_name, tokenize, unquote


def with_full_paths(statement: Statement) -> Statement:
    """The statement of a view with the absolute paths of its files: of an option path, and of a relation
    such as csv.`data/a.csv`, if there are such files.
    """
    text, end = "", 0
    for token, path in _paths(tokenize(statement.text, strict=False)):
        text += statement.text[end : token.start] + path
        end = token.end
    if not end:
        return statement
    (written,) = split_script(Source("catalog.sql", f"{text}{statement.text[end:]};"))
    return parse(written, {}, literal=True)


def _paths(tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Each token that is a relative path, and what it becomes."""
    of_options = (
        next((t.upper for t in tokens if t.upper in ("AS", "USING")), "") == "USING"
    )  # it has no query
    for at, token in enumerate(tokens):
        before = [t for t in tokens[max(0, at - 2) : at] if t.text != "="]
        path = unquote(token) if token.kind in ("string", "quoted") else ""
        if not path or in_full(path) == path or not before:
            continue
        if token.kind == "string" and of_options and before[-1].text.strip("'\"`").casefold() == "path":
            yield token, quote(in_full(path))
        elif (
            token.kind == "quoted" and before[-1].text == "." and before[0].kind == "word" and glob.glob(path)
        ):
            yield token, quote_name(in_full(path))
