"""A script to its statements, not yet parsed; needs no grammar, so that it can be read before the prompt."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault
from streamsql.language.tokens import Token, split, tokenize


@dataclass(frozen=True)
class Written:
    """A statement of a script, not yet parsed: its text and its start.

    tokens: its tokens, kept so that the text is not tokenized again.
    """

    source: Source
    span: Span
    closed: bool
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]


def split_script(source: Source) -> list[Written]:
    """The statements of a script. Raises SyntaxFault, with its span, for an unclosed quote or comment, and
    for text that is not valid Unicode.
    """
    try:
        _check_unicode(source.text)
        tokens = tokenize(source.text)
    except StreamsqlError as error:
        raise error.at(source) from None
    return [
        Written(
            source,
            Span(piece.tokens[0].start, piece.tokens[-1].end),
            piece.closed,
            tuple(piece.tokens),
        )
        for piece in split(tokens)
    ]


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
