"""A script to its statements, not yet parsed; needs no grammar, so that it can be read before the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault
from streamsql.language.tokens import Token, scan, split, tokenize, unquote


@dataclass(frozen=True)
class Written:
    """A statement of a script, not yet parsed: its text and its start.

    tokens: its tokens, kept so that the text is not tokenized again. fault: why it has none, where it cannot
    be tokenized; it is raised when the statement is parsed.
    """

    source: Source
    span: Span
    closed: bool
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)
    fault: StreamsqlError | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]

    def parts(self, second: int) -> tuple[Written, Written]:
        """The two statements that it is if another one begins at a token."""

        def part(tokens: tuple[Token, ...], closed: bool) -> Written:
            return Written(self.source, Span(tokens[0].start, tokens[-1].end), closed, tokens)

        return part(self.tokens[:second], True), part(self.tokens[second:], self.closed)

    @property
    def names(self) -> dict[str, str]:
        """Each name and word in it, by its folded form."""
        return {unquote(t).casefold(): unquote(t) for t in self.tokens if t.kind in ("word", "quoted")}

    @property
    def defines(self) -> frozenset[str]:
        """The folded names that it defines, from its words: it may be a statement that cannot be parsed."""
        if not self.tokens or self.tokens[0].upper not in ("CREATE", "INSERT"):
            return frozenset()
        names, words = set[str](), [token.upper for token in self.tokens]
        for at, word in enumerate(words[:-1]):
            name = at + 4 if words[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"] else at + 1
            if word in _BEFORE_NAME and name < len(words) and self.tokens[name].kind in ("word", "quoted"):
                names.add(unquote(self.tokens[name]).casefold())
            if word in ("AS", "SELECT", "WITH") and words[at + 1] != "QUERY":
                break
        return frozenset(names)


_BEFORE_NAME = frozenset(("STREAM", "SINK", "TABLE", "VIEW", "FUNCTION", "QUERY", "INTO"))
"""The words before a name that CREATE and INSERT define; a query has the name of its sink, if it has none."""


def split_script(source: Source, *, recover: bool = False) -> list[Written]:
    """The statements of a script. Raises SyntaxFault, with its span, for text that is not valid Unicode.

    An unclosed quote or comment, or a literal that cannot be read, raises SyntaxFault, too. recover: instead,
    the statement that holds it has this fault, and the others are read.
    """
    try:
        _check_unicode(source.text)
        return _pieces(source, tokenize(source.text))
    except StreamsqlError as error:
        if recover and error.code != "BAD_ENCODING":
            return list(_recovered(source))
        raise error.at(source) from None


def _pieces(source: Source, tokens: list[Token]) -> list[Written]:
    return [
        Written(
            source,
            Span(piece.tokens[0].start, piece.tokens[-1].end),
            piece.closed,
            tuple(piece.tokens),
        )
        for piece in split(tokens)
    ]


_END = re.compile(r";[ \t]*(?=[\r\n]|--|\Z)")
"""A `;` at the end of a line: where a statement ends whose quotes are not closed."""


def _recovered(source: Source) -> Iterator[Written]:
    """The statements of a script in which some cannot be tokenized."""
    text, begin = source.text, 0
    while begin < len(text):
        rest = " " * begin + text[begin:]
        try:
            yield from _pieces(source, tokenize(rest))
            return
        except SyntaxFault as raised:
            error = raised
        tokens, opened, at = scan(rest)
        # A quote that is not closed takes up the next statements: the text between is the following quote's.
        first = next((t for t in tokens if t.text[:1] == opened[:1] and _END.search(t.text)), None)
        if first is not None:
            tokens, at = tokens[: tokens.index(first)], first.start
            error.span = Span(at, at + len(opened))
        before = _pieces(source, tokens)
        start = at
        if before and not before[-1].closed:
            start = before.pop().span.start
        yield from before
        end = _end_of(text, at + len(opened), whole=len(opened) > 1 and opened[-1] in "'\"")
        yield Written(source, Span(start, max(at + 1, end)), end < len(text), fault=error)
        begin = end + 1


def _end_of(text: str, at: int, *, whole: bool) -> int:
    """Where the `;` of a statement is that cannot be tokenized before an offset. whole: a literal that cannot
    be read ends there; else it is not known where the quote or comment ends.
    """
    if whole:
        after = next((t.start for t in scan(text[at:])[0] if t.text == ";"), None)
        return len(text) if after is None else at + after
    ended = _END.search(text, at)
    return ended.start() if ended else len(text)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SyntaxFault(
            "this is not valid UTF-8",
            hint="save or type it as UTF-8",
            span=Span(error.start, error.end),
            code="BAD_ENCODING",
        ) from None
