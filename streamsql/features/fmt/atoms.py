"""The tokens of a statement with the comments around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamsql.features.fmt.documents import HARD, SPACE, Doc, Line
from streamsql.language.tokens import Token


class Comment(NamedTuple):
    """own_line: nothing else is on its line; blank: an empty line precedes it."""

    text: str
    own_line: bool = False
    blank: bool = False

    @property
    def ends_line(self) -> bool:
        return self.text.startswith("--") or "\n" in self.text


@dataclass(frozen=True)
class Atom:
    """A token as it is written out. kind: see Token, or `raw` for a piece that is kept as it is.

    lines: the line breaks before it; before, after: comments, those after it on its line; keyword: whether it
    is a keyword; call: whether it is the name of a function that is called.
    """

    text: str
    kind: str
    start: int
    end: int
    lines: int = 0
    before: tuple[Comment, ...] = ()
    after: tuple[Comment, ...] = ()
    keyword: bool = False
    call: bool = False
    unary: bool = False
    angle: bool = False
    marks: frozenset[str] = field(default=frozenset())

    @property
    def word(self) -> str:
        """The keyword in upper case, "" if it is none."""
        return self.text.upper() if self.keyword else ""

    @property
    def doc(self) -> Doc:
        return [self.lead, self.body]

    @property
    def lead(self) -> Doc:
        """The comments before it."""
        parts: list[Doc] = []
        for comment in self.before:
            if comment.own_line or comment.ends_line:
                parts += [Line(hard=True, blank=comment.blank), comment.text, HARD]
            else:
                parts += [comment.text, SPACE]
        return parts

    @property
    def body(self) -> Doc:
        """Its text, and the comments after it."""
        parts: list[Doc] = [self.text]
        for comment in self.after:
            parts += [SPACE, comment.text]
            if comment.ends_line:
                parts.append(HARD)
        return parts


def comments_of(gap: str) -> tuple[tuple[Comment, ...], tuple[Comment, ...], int]:
    """The comments between two tokens: those on the line of the first, and the others; and the number of line
    breaks behind them.
    """
    after: list[Comment] = []
    before: list[Comment] = []
    rest, at = "", 0
    while at < len(gap):
        end = _end_of_comment(gap, at)
        if end == at:
            rest += gap[at]
            at += 1
            continue
        first, behind = _lines_before(rest), gap[end:].lstrip(" \t\r")
        if first == 0 and not before:
            after.append(Comment(gap[at:end]))
        else:
            before.append(Comment(gap[at:end], first > 0 and behind[:1] in ("\n", ""), first > 1))
        at, rest = end, rest + "\0"
    return tuple(after), tuple(before), _lines_before(rest)


def _lines_before(text: str) -> int:
    """The line breaks behind the last comment."""
    return text[text.rfind("\0") + 1 :].count("\n")


def _end_of_comment(text: str, at: int) -> int:
    """The end of the comment that begins there; the same place if there is none."""
    if text.startswith("--", at):
        return next((n for n in range(at, len(text)) if text[n] in "\r\n"), len(text))
    if not text.startswith("/*", at):
        return at
    depth, end = 1, at + 2
    while depth and end < len(text):
        step = text[end : end + 2]
        depth += (step == "/*") - (step == "*/")
        end += 2 if step in ("/*", "*/") else 1
    return end


def atoms_of(text: str, tokens: Sequence[Token], original: str) -> list[Atom]:
    """The atoms of tokens of a text. original: the text that is written out, of the same length."""
    atoms: list[Atom] = []
    behind = tokens[0].start if tokens else 0
    for token in tokens:
        gap = text[behind : token.start]
        after, before, lines = comments_of(gap)
        if atoms and after:
            atoms[-1] = replace(atoms[-1], after=after)
        own = original[token.start : token.end]
        atoms.append(Atom(own, token.kind, token.start, token.end, lines, before))
        behind = token.end
    return _typed(atoms)


_GENERIC = ("ARRAY", "MAP", "STRUCT")


def _typed(atoms: list[Atom]) -> list[Atom]:
    """With the signs of types (ARRAY<INT>) and those before one operand (-1) marked."""
    depth = 0
    for at, atom in enumerate(atoms):
        if atom.kind != "sign":
            continue
        before = atoms[at - 1] if at else None
        if atom.text == "<" and before and before.kind == "word" and before.text.upper() in _GENERIC:
            depth += 1
            atoms[at] = replace(atom, angle=True)
        elif depth and set(atom.text) == {">"}:
            depth -= len(atom.text)
            atoms[at] = replace(atom, angle=True)
        elif atom.text == "<>" and before and before.text.upper() == "STRUCT":
            atoms[at] = replace(atom, angle=True)
    return atoms


def with_unary(atoms: list[Atom]) -> Iterator[Atom]:
    """With the signs before one operand marked; the keywords are known."""
    before: Atom | None = None
    for atom in atoms:
        operand = before is not None and not before.keyword and not _is_operator(before)
        if atom.kind == "sign" and atom.text in ("-", "+", "~", "!") and not operand:
            atom = replace(atom, unary=True)
        yield atom
        before = atom


def _is_operator(atom: Atom) -> bool:
    return atom.kind == "sign" and atom.text not in (")", "]", "}", "*")


_CALLED = frozenset(["TABLE", "TUMBLE", "HOP", "CUMULATE", "SESSION", "DESCRIPTOR"])
"""Keywords that are written like functions."""
_AS_WRITTEN = frozenset([".", ":", "::", "$", "{", "}", "@", "#", "?", "\\", "[", "!"])


def is_spaced(before: Atom, atom: Atom) -> bool:
    """Whether a blank stands between two atoms of a line."""
    adjacent = before.end == atom.start
    if atom.text in (",", ";", ")", "]") and atom.kind == "sign":
        return False
    if before.text in ("(", "[") and before.kind == "sign":
        return False
    if before.angle and atom.angle and before.text == "<":
        return not adjacent
    if before.angle or atom.angle:
        return before.text in (">", ">>", "<>") and atom.kind in ("word", "quoted")
    if before.unary:
        return atom.text[:1] in "+-"
    if atom.text == "(" and atom.kind == "sign":
        keyword = before.keyword and before.word not in _CALLED
        return "spaced" in atom.marks or (not before.call and (keyword or not adjacent))
    if before.text == ":" and before.kind == "sign":
        return not adjacent
    signs = [a.text for a in (before, atom) if a.kind == "sign"]
    if any(sign in _AS_WRITTEN for sign in signs) or (before.kind == atom.kind == "string"):
        return not adjacent
    return True
