"""Documents with optional line breaks, and their lines: the algorithm of Wadler's "A prettier printer".

A document is a text, a list of documents, or one of the classes below. A Group is printed on one line if it
fits; if not, each Line directly in it is a line break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH = 100
INDENT = "  "


@dataclass(frozen=True)
class Line:
    """A blank in one line, or a line break. soft: nothing in one line; hard: always a break; blank: an empty
    line precedes it.
    """

    soft: bool = False
    hard: bool = False
    blank: bool = False


@dataclass(frozen=True)
class Space:
    """A blank that is left out at the end of a line."""


@dataclass(frozen=True)
class Indent:
    """Lines of its content begin further to the right."""

    content: Doc


@dataclass(frozen=True)
class Group:
    """See above. broken: it is never printed on one line."""

    content: Doc
    broken: bool = False


Doc = str | Line | Space | Indent | Group | Sequence["Doc"]
HARD = Line(hard=True)
SPACE = Space()
_Command = tuple[int, bool, Doc]


def is_broken(doc: Doc) -> bool:
    """Whether a document has a line break wherever it is printed."""
    if isinstance(doc, str):
        return False
    if isinstance(doc, Line):
        return doc.hard
    if isinstance(doc, Group):
        return doc.broken or is_broken(doc.content)
    if isinstance(doc, Indent):
        return is_broken(doc.content)
    return not isinstance(doc, Space) and any(map(is_broken, doc))


def group(content: Doc, *, broken: bool = False) -> Group:
    """A Group that is broken if something in it is."""
    return Group(content, broken or is_broken(content))


@dataclass
class _Lines:
    """The text that is printed. column: where the next text begins."""

    parts: list[str] = field(default_factory=list)
    column: int = 0
    pending: str = ""
    empty: bool = True

    def text(self, text: str) -> None:
        if not text:
            return
        self.parts += [self.pending, text]
        last = text.rfind("\n")
        self.column = self.column + len(self.pending) + len(text) if last < 0 else len(text) - last - 1
        self.pending, self.empty = "", False

    def space(self) -> None:
        if not self.empty and not self.pending:
            self.pending = " "

    def line(self, depth: int, blank: bool) -> None:
        """Begin a line, if the current one has text."""
        if not self.empty:
            self.parts.append("\n\n" if blank else "\n")
        self.pending, self.column, self.empty = INDENT * depth, 0, True


def printed(doc: Doc) -> str:
    """The lines of a document."""
    out = _Lines()
    rest: list[_Command] = [(0, True, doc)]
    while rest:
        depth, breaks, item = rest.pop()
        if isinstance(item, str):
            out.text(item)
        elif isinstance(item, Space):
            out.space()
        elif isinstance(item, Line):
            if item.hard or breaks:
                out.line(depth, item.blank)
            elif not item.soft:
                out.space()
        elif isinstance(item, Indent):
            rest.append((depth + 1, breaks, item.content))
        elif isinstance(item, Group):
            width = WIDTH - out.column - len(out.pending)
            fits = not item.broken and _fits(width, (depth, False, item.content), rest)
            rest.append((depth, not fits, item.content))
        else:
            rest.extend((depth, breaks, part) for part in reversed(item))
    return "".join(out.parts)


def _fits(width: int, first: _Command, rest: Sequence[_Command]) -> bool:
    """Whether a document, and what follows it up to the next line break, fits in a width."""
    behind = len(rest)
    todo = [first]
    while width >= 0:
        if not todo:
            if behind == 0:
                return True
            behind -= 1
            todo.append(rest[behind])
        depth, breaks, item = todo.pop()
        if isinstance(item, str):
            first_line, *others = item.split("\n")
            width -= len(first_line)
            if others and width >= 0:
                width = WIDTH - len(others[-1])
        elif isinstance(item, Space):
            width -= 1
        elif isinstance(item, Line):
            if item.hard or breaks:
                return True
            width -= not item.soft
        elif isinstance(item, Indent):
            todo.append((depth, breaks, item.content))
        elif isinstance(item, Group):
            todo.append((depth, breaks or item.broken, item.content))
        else:
            todo.extend((depth, breaks, part) for part in reversed(item))
    return False
