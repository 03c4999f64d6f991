"""The document of a statement: its head, whose clauses may be on lines of their own, and its query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamsql.features.fmt.atoms import Atom
from streamsql.features.fmt.documents import HARD, SPACE, Doc, Indent, Line, group
from streamsql.features.fmt.keyword_places import Places
from streamsql.features.fmt.trees import (
    Item,
    before,
    first_of,
    item_doc,
    nested,
    on_new_line,
    plain,
    query_doc,
    sign_of,
    split_at,
    word_of,
)

_CLOSING = ("END", "ELSE", "ELSEIF", "WHEN", "UNTIL")
# Clauses that stay on the line of the one before them.
_JOINED = ("Format", "Key")


def statement_doc(atoms: Sequence[Atom], places: Places) -> Doc:
    """The document of a statement, without its `;`."""
    return _statement(nested(atoms), places)


def _statement(items: Sequence[Item], places: Places) -> Doc:
    if first_of(items[0]).start in places.compounds:
        return _compound(items, places)
    inner = {start for start, _ in places.nested}
    at = next((n for n, i in enumerate(items) if n and first_of(i).start in inner), None)
    begin = next((n for n, i in enumerate(items) if word_of(i) == "BEGIN"), None)
    if begin is not None:
        return _block(items, begin, places)
    if at is not None:
        own_line = HARD if on_new_line(items[at]) else SPACE
        return [plain(items[:at]), own_line, _statement(items[at:], places)]
    queries = {start for start, _ in places.queries}
    query = next((n for n, i in enumerate(items) if first_of(i).start in queries), None)
    if query is None:
        return group(_head(items, places))
    if query == 0:
        return query_doc(items)
    head, body = group(_head(items[:query], places)), items[query:]
    if word_of(body[0]) == "VALUES" and not on_new_line(body[0]):
        return [head, SPACE, query_doc(body)]
    return group([head, Line(), query_doc(body)], broken=on_new_line(body[0]))


def _compound(items: Sequence[Item], places: Places) -> Doc:
    """A compound statement: each statement, and each line of the structure, on a line of its own."""
    starts = [n for n, i in enumerate(items) if first_of(i).start in places.lines]
    statements = {start for start, _ in places.nested} - places.compounds
    docs: list[Doc] = []
    for begin, end in zip(starts, [*starts[1:], len(items)], strict=True):
        piece, line = list(items[begin:end]), first_of(items[begin])
        if word_of(piece[0]) in _CLOSING and line.before:  # comments behind the statements that it closes
            docs.append(_indented(line.lead, places.lines[line.start] + 1))
            piece[0] = replace(line, before=(), lines=1)
        closing = piece[-1:] if sign_of(piece[-1]) == ";" else []
        content = piece[: len(piece) - len(closing)]
        doc = _statement(content, places) if line.start in statements else _of_structure(content, places)
        lead: list[Doc] = [before(piece[0], hard=True)] if begin else []
        docs.append(_indented([*lead, doc, plain(closing)], places.lines[line.start]))
    return docs


def _indented(doc: Doc, depth: int) -> Doc:
    return _indented(Indent(doc), depth - 1) if depth else doc


def _of_structure(items: Sequence[Item], places: Places) -> Doc:
    """BEGIN, IF … THEN, END and so on; the query of a FOR may be on lines of its own."""
    queries = {start for start, _ in places.queries}
    query = next((n for n, i in enumerate(items) if n and first_of(i).start in queries), None)
    if query is None:
        return item_doc(items)
    head, tail = plain(items[:query]), plain(items[-1:])
    body = items[query:-1]
    content = [head, Indent([Line(), query_doc(body)]), Line(), tail]
    return group(content, broken=on_new_line(body[0]))


def _block(items: Sequence[Item], begin: int, places: Places) -> Doc:
    """BEGIN, statements on lines, and END."""
    end = max((n for n, i in enumerate(items) if word_of(i) == "END"), default=len(items))
    lines: list[Doc] = []
    for piece in _statements(items[begin + 1 : end], places):
        closing = piece[-1:] if sign_of(piece[-1]) == ";" else []  # the last one may have none
        content = _statement(piece[: len(piece) - len(closing)], places)
        lines += [before(piece[0], hard=True), content, plain(closing)]
    head = group(_head(items[: begin + 1], places))
    tail: list[Doc] = [before(items[end], hard=True), plain(items[end:])] if end < len(items) else []
    return [head, Indent(lines), *tail]


def _statements(items: Sequence[Item], places: Places) -> list[list[Item]]:
    """The statements of a block, each with its `;` if it has one; those in a compound statement are parts
    of it.
    """
    pieces: list[list[Item]] = []
    for piece in split_at(items, ";"):
        start = first_of(piece[0]).start
        if start in places.lines and start not in places.compounds:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def _head(items: Sequence[Item], places: Places) -> Doc:
    """The clauses of a statement: the line breaks of the source, or a line for each if they do not fit."""
    starts = [n for n, i in enumerate(items) if n and first_of(i).start in places.heads]
    pieces = [items[a:b] for a, b in zip([0, *starts], [*starts, len(items)], strict=True)]
    broken = any(on_new_line(p[0]) for p in pieces[1:])
    docs: list[Doc] = []
    for piece in pieces[1:]:
        content = plain(piece)
        if on_new_line(piece[0]):
            docs += [HARD, content]
        elif broken or places.heads[first_of(piece[0]).start] in _JOINED:
            docs.append(group([Line(), content]))
        else:
            docs += [Line(), content]
    return [plain(pieces[0]), Indent(docs)]
