"""Atoms nested by their parentheses, and the documents of expressions, lists and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from streamsql.features.fmt.atoms import Atom, is_spaced
from streamsql.features.fmt.documents import SPACE, Doc, Indent, Line, group

SOFT = Line(soft=True)
_CLOSING = {"(": ")", "[": "]"}
_FEW = 8
"""More literals than these in parentheses fill lines, rather than stand on a line each."""


@dataclass(frozen=True)
class Paren:
    """A part in parentheses or brackets."""

    opening: Atom
    items: tuple[Item, ...]
    closing: Atom


Item = Atom | Paren


def first_of(item: Item) -> Atom:
    return item.opening if isinstance(item, Paren) else item


def last_of(item: Item) -> Atom:
    return item.closing if isinstance(item, Paren) else item


def word_of(item: Item | None) -> str:
    """The keyword of an item, "" if it is none."""
    return item.word if isinstance(item, Atom) else ""


def sign_of(item: Item | None) -> str:
    return item.text if isinstance(item, Atom) and item.kind == "sign" else ""


def nested(atoms: Sequence[Atom]) -> list[Item]:
    """Atoms nested by their parentheses; those without a partner stay atoms."""
    stack: list[tuple[Atom | None, list[Item]]] = [(None, [])]
    for atom in atoms:
        opening = stack[-1][0]
        if atom.kind == "sign" and atom.text in _CLOSING:
            stack.append((atom, []))
        elif opening and atom.kind == "sign" and atom.text == _CLOSING[opening.text]:
            _, items = stack.pop()
            stack[-1][1].append(Paren(opening, tuple(items), atom))
        else:
            stack[-1][1].append(atom)
    while len(stack) > 1:
        opening, items = stack.pop()
        stack[-1][1].extend([opening, *items] if opening else items)
    return stack[0][1]


def split_at(items: Sequence[Item], sign: str) -> list[list[Item]]:
    """The items in pieces; each piece but the last ends with the sign. A comment that ends the line before a
    sign is moved behind it.
    """
    pieces: list[list[Item]] = [[]]
    for item in items:
        if sign_of(item) == sign and isinstance(item, Atom):
            last = pieces[-1][-1] if pieces[-1] else None
            if isinstance(last, Atom) and last.after and last.after[-1].ends_line and not item.before:
                pieces[-1][-1] = replace(last, after=())
                item = replace(item, after=(*last.after, *item.after))
            pieces[-1].append(item)
            pieces.append([])
        else:
            pieces[-1].append(item)
    return pieces if pieces[-1] else pieces[:-1]


def before(item: Item, *, hard: bool = False) -> Line:
    """The line break before an item, with the empty line before it in the source."""
    atom = first_of(item)
    return Line(hard=hard, blank=atom.lines > 1 and not atom.before)


def on_new_line(item: Item) -> bool:
    """Whether the item begins a line in the source."""
    atom = first_of(item)
    return atom.lines > 0 or any(c.own_line for c in atom.before)


def plain(items: Sequence[Item]) -> Doc:
    """Items one after the other."""
    parts: list[Doc] = []
    at = 0
    while at < len(items):
        item = items[at]
        if at and is_spaced(last_of(items[at - 1]), first_of(item)):
            parts.append(SPACE)
        end = _end_of_case(items, at) if word_of(item) == "CASE" else None
        if end is not None:
            parts.append(_case(items[at : end + 1]))
            at = end + 1
        else:
            parts.append(_paren(item) if isinstance(item, Paren) else item.doc)
            at += 1
    return parts


def condition(items: Sequence[Item]) -> tuple[list[Doc], bool]:
    """A document with a Line before each AND and OR, and whether these are line breaks in the source."""
    pieces = [items[a:b] for a, b in _conditions(items)]
    broken = any(on_new_line(p[0]) for p in pieces[1:])
    return [plain(pieces[0]), *([before(p[0]), plain(p)] for p in pieces[1:])], broken


def item_doc(items: Sequence[Item]) -> Doc:
    """One expression of a list."""
    content, broken = condition(items)
    return group([content[0], Indent(content[1:])], broken=broken)


def listed(head: Sequence[Item], items: Sequence[Item]) -> Doc:
    """A clause with a list: on one line, or each item on its own."""
    pieces = split_at(items, ",")
    if len(pieces) < 2:
        return group([plain(head), SPACE, Indent([item_doc(items)]) if items else ""])
    lines = [[before(p[0]), _with_comma(p)] for p in pieces]
    return group([plain(head), Indent(lines)], broken=any(on_new_line(p[0]) for p in pieces))


def _with_comma(piece: Sequence[Item]) -> Doc:
    if sign_of(piece[-1]) == ",":
        return [item_doc(piece[:-1]) if len(piece) > 1 else "", plain(piece[-1:])]
    return item_doc(piece)


def _paren(paren: Paren) -> Doc:
    return [paren.opening.lead, _inside(paren, paren.opening.body, paren.closing.doc)]


def _inside(paren: Paren, opening: Doc, closing: Doc) -> Doc:
    if not paren.items:
        return [opening, closing]
    if is_query(paren.items):
        return group([opening, Indent([SOFT, query_doc(paren.items)]), SOFT, closing])
    pieces = split_at(paren.items, ",")
    if len(pieces) > _FEW and all(len(p) <= 2 and isinstance(p[0], Atom) for p in pieces):
        return _filled(opening, pieces, closing)
    window = _window_parts(paren.items)
    if window:
        lines = [[Line() if n else SOFT, plain(p)] for n, p in enumerate(window)]
        return group([opening, Indent(lines), SOFT, closing])
    lines = [[before(p[0]) if n else SOFT, _with_comma(p)] for n, p in enumerate(pieces)]
    broken = "spaced" in paren.opening.marks and on_new_line(paren.items[0])
    return group([opening, Indent(lines), SOFT, closing], broken=broken)


def _filled(opening: Doc, pieces: Sequence[Sequence[Item]], closing: Doc) -> Doc:
    first, *rest = pieces
    lines = [group([Line(), _with_comma(p)]) for p in rest]
    return group([opening, Indent([SOFT, _with_comma(first), *lines]), SOFT, closing])


def _case(items: Sequence[Item]) -> Doc:
    starts = [n for n in _case_words(items, ("WHEN", "ELSE")) if n > 0]
    starts = starts or [len(items) - 1]
    ends = [*starts[1:], len(items) - 1]
    lines = [[before(items[a]), plain(items[a:b])] for a, b in zip(starts, ends, strict=True) if a < b]
    broken = any(on_new_line(items[a]) for a in starts)
    content = [plain(items[: starts[0]]), Indent(lines), Line(), plain(items[-1:])]
    return group(content, broken=broken)


def is_query(items: Sequence[Item]) -> bool:
    """Whether a part in parentheses is a query."""
    first = items[0] if items else None
    if isinstance(first, Paren):
        return is_query(first.items)
    return word_of(first) in ("SELECT", "WITH", "FROM", "VALUES")


def _case_words(items: Sequence[Item], words: Sequence[str]) -> Iterator[int]:
    """The places of words of the outermost CASE."""
    depth = 0
    for at, item in enumerate(items):
        word = word_of(item)
        depth += (word == "CASE") - (word == "END" and depth > 0)
        if word in words and depth == 1:
            yield at


def _end_of_case(items: Sequence[Item], at: int) -> int | None:
    depth = 0
    for end in range(at, len(items)):
        word = word_of(items[end])
        depth += (word == "CASE") - (word == "END")
        if depth == 0:
            return end
    return None


def _conditions(items: Sequence[Item]) -> Iterator[tuple[int, int]]:
    """The ranges of an expression at its AND and OR, which begin a range."""
    start = depth = between = 0
    for at, item in enumerate(items):
        word = word_of(item)
        depth = max(0, depth + (word == "CASE") - (word == "END"))
        if depth:
            continue
        if word == "BETWEEN":
            between += 1
        elif word == "AND" and between:
            between -= 1
        elif word in ("AND", "OR") and at > start:
            yield start, at
            start = at
    yield start, len(items)


def _window_parts(items: Sequence[Item]) -> list[Sequence[Item]]:
    """The clauses of the window of OVER; none for other parts in parentheses."""
    words = [word_of(i) for i in items]
    starts = [n for n, w in enumerate(words) if w in ("ROWS", "RANGE") or "BY" in words[n + 1 : n + 2]]
    if not starts or starts[0] != 0:
        return []
    return [items[a:b] for a, b in zip(starts, [*starts[1:], len(items)], strict=True)]


# ---- queries

_BY = ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")
_CLAUSES = ("SELECT", "FROM", "WHERE", "HAVING", "QUALIFY", "WINDOW", "LIMIT", "OFFSET", "PIVOT", "UNPIVOT")
_SET_OPERATIONS = ("UNION", "INTERSECT", "MINUS", "EXCEPT")
_JOIN_WORDS = ("NATURAL", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "OUTER")
_QUANTIFIERS = ("DISTINCT", "ALL")


def query_doc(items: Sequence[Item]) -> Doc:
    """The document of the items of a query: on one line if it is written so and fits."""
    parts = [items[a:b] for a, b in _clauses(items)]
    docs: list[Doc] = [_part_doc(parts[0])]
    for last, part in zip(parts, parts[1:], strict=False):
        apart = word_of(last[0]) in ("WITH", *_SET_OPERATIONS) or word_of(part[0]) in _SET_OPERATIONS
        docs += [before(part[0]) if apart else Line(), _part_doc(part)]
    return group(docs, broken=any(on_new_line(p[0]) for p in parts[1:]))


def _clauses(items: Sequence[Item]) -> list[tuple[int, int]]:
    """The ranges of the clauses."""
    starts = [0]
    for at in range(1, len(items)):
        if _begins(items, at, starts[-1]):
            starts.append(at)
    return list(zip(starts, [*starts[1:], len(items)], strict=True))


def _begins(items: Sequence[Item], at: int, start: int) -> bool:
    """Whether a clause begins at that item. start: the one before it."""
    word, previous = word_of(items[at]), word_of(items[at - 1])
    following = word_of(items[at + 1]) if at + 1 < len(items) else ""
    head = word_of(items[start])
    if sign_of(items[at]) == "|>":
        return True
    if sign_of(items[at - 1]) == "|>":
        return False
    if head in _SET_OPERATIONS and all(word_of(i) for i in items[start:at]):
        return isinstance(items[at], Paren) or word in ("SELECT", "FROM", "VALUES", "WITH", "TABLE")
    if word in _BY:
        return following == "BY" and previous != "WITHIN"
    if word in _SET_OPERATIONS:
        return not (word == "EXCEPT" and (sign_of(items[at - 1]) == "*" or sign_of(items[start]) == "|>"))
    if word == "JOIN" or word in _JOIN_WORDS:
        return previous not in _JOIN_WORDS and _leads_to_join(items, at)
    if word == "LATERAL":
        return following == "VIEW"
    if word == "FROM":
        return previous != "DISTINCT"
    return word in _CLAUSES and not (word == "OFFSET" and head == "LIMIT")


def _leads_to_join(items: Sequence[Item], at: int) -> bool:
    while at < len(items) and word_of(items[at]) in _JOIN_WORDS:
        at += 1
    return at < len(items) and word_of(items[at]) == "JOIN"


def _part_doc(items: Sequence[Item]) -> Doc:
    word = word_of(items[0])
    if sign_of(items[0]) == "|>" and len(items) > 1:
        return [plain(items[:1]), SPACE, _part_doc(items[1:])]
    if word == "SELECT":
        count = _select_head(items)
        return listed(items[:count], items[count:])
    if word in _BY and len(items) > 2:
        return listed(items[:2], items[2:])
    if word == "VALUES":
        return listed(items[:1], items[1:])
    if word in ("WHERE", "HAVING", "QUALIFY", "ON") and len(items) > 1:
        content, broken = condition(items[1:])
        return group([plain(items[:1]), SPACE, Indent(content)], broken=broken)
    if word == "FROM" and len(items) > 1:
        return _relations(items)
    if word == "WITH":
        return _ctes(items)
    if word == "JOIN" or word in _JOIN_WORDS:
        return _join(items)
    return plain(items)


def _select_head(items: Sequence[Item]) -> int:
    """How many items precede the list of a SELECT."""
    at = 1
    while at < len(items):
        item, word = items[at], word_of(items[at])
        hint = not isinstance(item, Paren) and item.kind == "hint"
        on = (word == "ON" or isinstance(item, Paren)) and word_of(items[at - 1]) in ("DISTINCT", "ON")
        within = word in ("WITHIN", "WATERMARK")
        if not (hint or word in _QUANTIFIERS or within or (on and at > 1 and _is_distinct_on(items, at))):
            break
        at += 1
    return at


def _is_distinct_on(items: Sequence[Item], at: int) -> bool:
    on = at if word_of(items[at]) == "ON" else at - 1
    return word_of(items[on]) == "ON" and word_of(items[on - 1]) == "DISTINCT"


def _relations(items: Sequence[Item]) -> Doc:
    first, *rest = split_at(items[1:], ",")
    lines = [[before(p[0]), plain(p)] for p in rest]
    broken = any(on_new_line(p[0]) for p in rest)
    return group([plain(items[:1]), SPACE, plain(first), Indent(lines)], broken=broken)


def _ctes(items: Sequence[Item]) -> Doc:
    """WITH and its queries, each on lines of its own."""
    count = 2 if len(items) > 1 and word_of(items[1]) == "RECURSIVE" else 1
    pieces = split_at(items[count:], ",")
    docs: list[Doc] = [plain(items[:count]), SPACE]
    for number, piece in enumerate(pieces):
        docs += [before(piece[0])] if number else []
        docs.append(plain(piece))
    return group(docs, broken=any(on_new_line(p[0]) for p in pieces[1:]))


def _join(items: Sequence[Item]) -> Doc:
    on = next((n for n, i in enumerate(items) if word_of(i) in ("ON", "USING")), None)
    if on is None:
        return plain(items)
    joined_by = [Line(), _part_doc(items[on:])]
    return group([plain(items[:on]), Indent(joined_by)], broken=on_new_line(items[on]))
