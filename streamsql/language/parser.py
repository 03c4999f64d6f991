"""Text to statements: the one entry is `parse_script`.

The registry below is all that a new statement adds here; the rest is in its .gram file and its
file in statements/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault, nearest
from streamsql.language.grammar import Grammar, Matcher, Node, State, load, syntax_fault
from streamsql.language.statements import (
    books,
    explain,
    function,
    insert,
    live_table,
    look,
    query,
    select,
    session,
    sink,
    spark,
    stream,
    watch,
)
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import Token, back_to_source, split, substitute, tokenize

Builder = Callable[[Node, Source], Statement]
_MODULES = (
    stream,
    sink,
    live_table,
    function,
    insert,
    query,
    watch,
    look,
    books,
    explain,
    session,
    select,
    spark,
)
BUILDERS: dict[str, Builder] = {}
for _module in _MODULES:
    BUILDERS |= _module.BUILDERS


@dataclass(frozen=True)
class Written:
    """One statement as it stands in a script, not yet read: its text and where it begins."""

    source: Source
    span: Span
    closed: bool

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]


def split_script(source: Source) -> list[Written]:
    """The statements of a script. Raises SyntaxFault (placed) for an unclosed quote or comment."""
    try:
        tokens = tokenize(source.text)
    except StreamsqlError as error:
        raise error.at(source) from None
    return [
        Written(source, Span(piece.tokens[0].start, piece.tokens[-1].end), piece.closed)
        for piece in split(tokens)
    ]


def parse(written: Written, variables: dict[str, str] | None = None) -> Statement:
    """Read one statement. Errors are placed in the script it came from.

    variables: what ${name} stands for.
    """
    inner = Source(written.source.name, written.text)
    back = [(0, 0)]
    try:
        if "${" in inner.text:
            text, back = substitute(inner, variables or {})
            inner = Source(inner.name, text)
        statement = parse_text(inner)
    except StreamsqlError as error:
        if error.span is not None and error.source is None:
            if len(back) > 1 and not error.message.startswith("variable "):
                error.span = back_to_source(error.span, back)
            error.span = error.span.shift(written.span.start)
        raise error.at(written.source, written.span) from None
    return replace(statement, text=inner.text, span=written.span)


def parse_text(source: Source) -> Statement:
    """Read the text of one statement, without `;`. Raises SyntaxFault with a span in that text."""
    tokens = tokenize(source.text)
    if not tokens:
        raise SyntaxFault("there is no statement here", span=Span(0, 1))
    grammar = load()
    furthest: State | None = None
    for rule in _candidates(tokens[0]):
        node, state = grammar.match(rule, tokens)
        if node is not None:
            if rule == "Spark":
                check_second_word(tokens)
            return BUILDERS[rule](node, source)
        if state.committed:
            raise syntax_fault(state, tokens)
        if furthest is None or state.furthest > furthest.furthest:
            furthest = state
        elif state.furthest == furthest.furthest:
            furthest.expected.update(state.expected)
    return _left_to_spark(tokens, furthest)


@cache
def _firsts() -> dict[str, list[str]]:
    """First word of a statement → the rules that may begin with it, in the registry's order."""
    grammar = load()
    firsts: dict[str, list[str]] = {}
    for rule in BUILDERS:
        for word in grammar.expected(rule, []):
            firsts.setdefault(word.strip("'"), []).append(rule)
    return firsts


def _candidates(first: Token) -> list[str]:
    firsts = _firsts()
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
    heads = [w for w in _firsts() if w.isalpha() and w.isupper()] + ["SELECT", "WITH"]
    if first.upper in heads and furthest is not None:
        raise syntax_fault(furthest, tokens)
    like = nearest(first.text, heads, 0.75) if first.kind == "word" else None
    raise SyntaxFault(
        f"there is no statement {first.text}",
        hint=ELSEWHERE.get(first.upper)
        or (f"did you mean {like}?" if like else "HELP; lists the statements"),
        span=first.span,
    )


# Spark statements begin CREATE TABLE, SHOW TABLES, …; a second word this near to one of the
# console's own is a misspelling of it and would only give a puzzling error from Spark.
OWN_SECOND_WORDS = (
    "STREAM", "STREAMS", "SINK", "SINKS", "LIVE", "QUERY", "QUERIES", "CONNECTORS", "CONNECTOR", "PROGRESS",
    "BATCHES", "CHECKPOINT",
)  # fmt: skip
SPARK_SECOND_WORDS = (
    "TABLE", "TABLES", "VIEW", "VIEWS", "SCHEMA", "SCHEMAS", "FUNCTION", "FUNCTIONS", "INDEX",
    "DATABASE", "COLUMNS", "CATALOGS", "CREATE", "VARIABLE", "OR", "TEMPORARY", "GLOBAL",
)  # fmt: skip


def check_second_word(tokens: list[Token]) -> None:
    """Raise SyntaxFault for CREATE STRAEM and the like, before it goes to Spark."""
    if len(tokens) < 2 or tokens[0].upper not in ("CREATE", "DROP", "SHOW", "DESCRIBE", "DESC"):
        return
    own = (*OWN_SECOND_WORDS, "TOPICS") if tokens[0].upper == "SHOW" else OWN_SECOND_WORDS
    at = 3 if tokens[1].upper == "OR" and len(tokens) > 3 else 1
    word = tokens[at]
    like = nearest(word.text, own + SPARK_SECOND_WORDS) if word.kind == "word" else None
    if like in own and like != word.upper:
        raise SyntaxFault(f"expected {like}, found {word.text}", hint=f"did you mean {like}?", span=word.span)


def parse_script(source: Source, variables: dict[str, str] | None = None) -> Iterator[Statement]:
    """All statements of a script, read one after the other."""
    for written in split_script(source):
        yield parse(written, variables)


__all__ = ["BUILDERS", "Grammar", "Matcher", "Written", "parse", "parse_script", "parse_text", "split_script"]
