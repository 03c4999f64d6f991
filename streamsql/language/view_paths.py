"""The paths of files in the statement of a view or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamsql.language.edits import Edit, with_points
from streamsql.language.tokens import Token, quote, quote_name, tokenize, unquote


def with_paths(text: str, full: Callable[[str], str], exists: Callable[[str], bool]) -> str:
    """The statement with other paths: those of an option path, of LOCATION, and of a relation such as
    csv.`data/a.csv`, if there are such files. full: the path that takes the place of one; exists: whether a
    path has files.
    """
    return with_points(text, list(_paths(tokenize(text, strict=False), full, exists)))[0]


def _paths(tokens: list[Token], full: Callable[[str], str], exists: Callable[[str], bool]) -> Iterator[Edit]:
    """What each token that is a path becomes."""
    first = next((t.upper for t in tokens if t.upper in ("AS", "USING")), "")
    of_options = first == "USING"  # then it has no query, in which a column may be called path
    for at, token in enumerate(tokens):
        before = [t for t in tokens[max(0, at - 2) : at] if t.text != "="]
        path = unquote(token) if token.kind in ("string", "quoted") else ""
        if not path or not before:
            continue
        word = before[-1].text.strip("'\"`").casefold()
        if token.kind == "string" and of_options and word in ("path", "location"):
            yield token.start, token.end, quote(full(path))
        elif token.kind == "quoted" and before[-1].text == "." and before[0].kind == "word" and exists(path):
            yield token.start, token.end, quote_name(full(path))
