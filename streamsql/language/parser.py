"""Text to statements: the one entry is `parse_script`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault, nearest
from streamsql.language.grammar import State, load, syntax_fault
from streamsql.language.origin import Origin, located
from streamsql.language.statements.base import Statement
from streamsql.language.statements.registry import STATEMENTS, first_words
from streamsql.language.tokens import Token, split, substitute, tokenize


@dataclass(frozen=True)
class Written:
    """One statement as it stands in a script, not yet read: its text and where it begins.

    tokens: those of the script that it consists of, so that they are not read again.
    """

    source: Source
    span: Span
    closed: bool
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]


def split_script(source: Source) -> list[Written]:
    """The statements of a script. Raises SyntaxFault (placed) for an unclosed quote or comment, and for
    what is not Unicode and so could not be written again.
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
            "this is not valid UTF-8", hint="save or type it as UTF-8", span=Span(error.start, error.end)
        ) from None


def parse(written: Written, variables: dict[str, str] | None = None, *, literal: bool = False) -> Statement:
    """Read one statement; its spans are those of the script that it came from. Errors are placed in it.

    variables: what ${name} stands for; literal: nothing, the text is what it is.
    """
    start = written.span.start
    text, origin = written.text, Origin(((0, start),))
    tokens = [Token(t.kind, t.text, t.start - start, t.end - start) for t in written.tokens] or None
    try:
        if "${" in text and not literal:
            with origin.errors():
                text, points = substitute(Source("", text), {} if variables is None else variables)
            origin, tokens = Origin(tuple(points)).within(start), None
        return parse_text(Source(written.source.name, text), origin, tokens)
    except StreamsqlError as error:
        raise error.at(written.source, written.span) from None


def parse_text(source: Source, origin: Origin | None = None, tokens: list[Token] | None = None) -> Statement:
    """Read the text of one statement, without `;`. Raises SyntaxFault.

    origin: where that text stands; the spans of statement and errors are those of that place. tokens: of
    the text, where they are known.
    """
    origin = origin or Origin()
    with origin.errors():
        statement = _read(source, tokens if tokens is not None else tokenize(source.text))
    whole = Span(0, len(source.text))
    placed: Statement = located(replace(statement, text=source.text, span=whole), origin)
    return placed


def _read(source: Source, tokens: list[Token]) -> Statement:
    if not tokens:
        raise SyntaxFault("there is no statement here", span=Span(0, 1), code="UNKNOWN_STATEMENT")
    grammar = load()
    furthest: State | None = None
    for rule in _candidates(tokens[0]):
        node, state = grammar.match(rule, tokens)
        if node is not None:
            if rule == "Spark":
                check_second_word(tokens)
            return STATEMENTS[rule].read(node, source)
        if state.committed:
            raise syntax_fault(state, tokens)
        if furthest is None or state.furthest > furthest.furthest:
            furthest = state
        elif state.furthest == furthest.furthest:
            furthest.expected.update(state.expected)
    return _left_to_spark(tokens, furthest)


def _candidates(first: Token) -> list[str]:
    firsts = first_words()
    rules = list(firsts.get(first.upper, []))
    if first.text == "(" or first.kind == "word":
        rules += [r for r in firsts.get("Query", []) if r not in rules]
    # What is ours comes before what is left to Spark.
    return sorted(rules, key=lambda rule: rule == "Spark")


# What other consoles call what is here.
ELSEWHERE = {
    "PRINT": "PREVIEW USING kafka OPTIONS (servers 'host:port', topic '…');",
}


def _left_to_spark(tokens: list[Token], furthest: State | None) -> Statement:
    """No rule fits: an error, because Spark statements have a rule of their own."""
    first = tokens[0]
    heads = [w for w in first_words() if w.isalpha() and w.isupper()] + ["SELECT", "WITH"]
    if first.upper in heads and furthest is not None:
        raise syntax_fault(furthest, tokens)
    like = nearest(first.text, heads, 0.75) if first.kind == "word" else None
    raise SyntaxFault(
        f"there is no statement {first.text}",
        hint=ELSEWHERE.get(first.upper)
        or (f"did you mean {like}?" if like else "HELP; lists the statements"),
        span=first.span,
        code="UNKNOWN_STATEMENT",
    )


SPARK_SECOND_WORDS = frozenset(
    """TABLE TABLES VIEW VIEWS SCHEMA SCHEMAS FUNCTION FUNCTIONS INDEX DATABASE COLUMNS CATALOGS CREATE
    VARIABLE OR TEMPORARY GLOBAL EXTENDED""".split()
)


@cache
def _second_words(first: str) -> frozenset[str]:
    """The words behind a first word in the console's own statements, those of Spark's left out."""
    head = tokenize(first)
    words = {w.strip("'") for rule in STATEMENTS if rule != "Spark" for w in load().expected(rule, head)}
    return frozenset(w for w in words if w.isalpha() and w.isupper()) - SPARK_SECOND_WORDS


def check_second_word(tokens: list[Token]) -> None:
    """Raise SyntaxFault for CREATE STRAEM and the like, before it goes to Spark: a second word this near to
    one of the console's own is a misspelling of it and would only give a puzzling error from Spark.
    """
    if len(tokens) < 2 or tokens[0].upper not in ("CREATE", "DROP", "SHOW", "DESCRIBE", "DESC"):
        return
    own = _second_words(tokens[0].upper)
    at = 3 if tokens[1].upper == "OR" and len(tokens) > 3 else 1
    word = tokens[at]
    like = nearest(word.text, sorted(own | SPARK_SECOND_WORDS)) if word.kind == "word" else None
    if like in own and like != word.upper:
        raise SyntaxFault(f"expected {like}, found {word.text}", hint=f"did you mean {like}?", span=word.span)


def parse_script(source: Source, variables: dict[str, str] | None = None) -> Iterator[Statement]:
    """All statements of a script, read one after the other."""
    for written in split_script(source):
        yield parse(written, variables)


__all__ = ["STATEMENTS", "Written", "parse", "parse_script", "parse_text", "split_script"]
