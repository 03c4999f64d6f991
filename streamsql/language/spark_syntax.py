"""Syntax errors of Spark in statements, found without Spark, and a missing `;` between two statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamsql.errors import Source, Span, StreamsqlError, SyntaxFault, nearest
from streamsql.language.origin import Origin
from streamsql.language.parser import parse_text
from streamsql.language.query import read_query
from streamsql.language.reference import keywords
from streamsql.language.script import Written
from streamsql.language.spark_definitions import without_staged
from streamsql.language.spark_grammar import DEFAULTS, Switches, first_wrong
from streamsql.language.statements.base import Fragment, Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.insert import InsertSet
from streamsql.language.statements.select import Select
from streamsql.language.statements.spark import Spark
from streamsql.language.token_groups import CLAUSES, outside
from streamsql.language.tokens import Token, tokenize, unquote

SYNTAX_ERROR = "PARSE_SYNTAX_ERROR"
"""Spark's own condition for a text that its grammar does not take."""


_OF_CONSOLE = frozenset(("LIVE", "STREAM", "SINK", "QUERY", "WATCH", "STOP", "AWAIT", "START"))
"""Words at which Spark stops in a statement of the console."""


class Unreadable(NamedTuple):
    """Why Spark cannot read a statement, as far as its words tell; span: the words at fault, None where it is
    the place at which Spark stops.
    """

    message: str
    hint: str = ""
    proposal: str = ""
    span: Span | None = None


def unreadable(text: str, offset: int, near: str, more: str = "") -> Unreadable:
    """The likely cause of a syntax error. text: the statement; offset: where Spark stops; near: the word
    there, in quotes; more: what else Spark says.
    """
    message = f"Spark cannot read the statement at {near}{more}"
    if near.strip("'").upper() in _OF_CONSOLE and text.lstrip()[:5].upper() == "BEGIN":
        return Unreadable(message, "statements of the console stand outside of BEGIN … END")
    tokens = tokenize(text, strict=False)
    before = [token for token in tokens if token.start <= offset]
    for token in [t for t in before if t.kind == "word"][-2:]:  # FORM for FROM
        like = None if token.upper in keywords() else nearest(token.text, _CLAUSES, 0.75)
        if like:
            return Unreadable(message, f"did you mean {like}?", span=token.span)
    clause = next((token for token in before[-2:] if token.upper in _BEFORE_QUERY), None)
    behind_query = _behind_query(text, tokens, clause) if clause else None
    if behind_query:
        return behind_query
    comma = missing_comma(text, offset)
    if comma:
        behind = text[comma[1].start : comma[1].end]
        return Unreadable(f"a comma is missing before {behind}", proposal=comma[0], span=comma[1])
    return Unreadable(message)


_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "UNION", "VALUES")
_BEHIND_FROM = frozenset(
    ("JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT")
)
_BEFORE_QUERY = ("TRIGGER", "OUTPUT", "CHECKPOINT", "RESTART")
_QUERY_HEADS = ("SELECT", "WITH", "FROM", "VALUES")


def _behind_query(text: str, tokens: Sequence[Token], clause: Token) -> Unreadable | None:
    """The cause for a clause of the console that stands behind a query: with a proposal in which it stands
    before the query of an INSERT or CREATE, or without it behind a SELECT alone.
    """
    head, before = tokens[0].upper, [t.upper for t in tokens if t.start < clause.start]
    if head in ("INSERT", "CREATE"):
        words = ("AS",) if head == "CREATE" else _QUERY_HEADS
        query = next((t for t in tokens if t.upper in words and t.start < clause.start), None)
        if query is None:
            return None
        own = f"{text[clause.start :].strip()} {text[query.start : clause.start].strip()}"
        moved = f"{text[: query.start]}{own};"
        return Unreadable(f"{clause.upper} stands before {query.upper}", proposal=moved, span=clause.span)
    if head not in ("SELECT", "WITH", "FROM") or "FROM" not in before:
        return None
    behind = {token.upper for token in tokens if token.start > clause.start}
    whole = before.count("(") == before.count(")") and not behind & _BEHIND_FROM
    return Unreadable(
        f"{clause.upper} is a clause of INSERT INTO and CREATE LIVE TABLE, not of SELECT",
        proposal=f"{text[: clause.start].strip()};" if whole else "",
        span=clause.span,
    )


def queries_of(statement: Statement) -> list[Fragment]:
    """The queries that a statement holds."""
    if isinstance(statement, InsertSet):
        return [part.query for part in statement.inserts]
    query = getattr(statement, "query", None)
    return [query] if isinstance(query, Fragment) else []


def syntax_fault(statement: Statement, switches: Switches = DEFAULTS) -> SyntaxFault | None:
    """The error of a statement that Spark's grammar does not take, placed in its source; None if there is
    none. Raises what console clauses raise that cannot be read.
    """
    if isinstance(statement, Explain):
        return syntax_fault(statement.body, switches) if statement.body else None
    texts = [(query, True) for query in queries_of(statement)]
    if isinstance(statement, (Select, Spark)):  # WITH … INSERT is read as a query, too
        whole = Fragment(without_staged(statement.text), statement.span, statement.origin)
        texts = [(text, False) for text in (whole, *_immediate(statement))]
    for fragment, query in texts:
        fault = _fault_of(fragment, query, switches)
        if fault:
            return fault
    return None


def _immediate(statement: Statement) -> Iterator[Fragment]:
    """The statement in the string of EXECUTE IMMEDIATE '…', placed where the string is."""
    with statement.origin.errors():
        first, *rest = read_query(statement.text).tokens[:4]
    if first.upper != "EXECUTE" or len(rest) < 2 or rest[0].upper != "IMMEDIATE" or rest[1].kind != "string":
        return
    if len(rest) == 2 or rest[2].upper in ("INTO", "USING"):
        place = statement.origin.span(rest[1].span)
        yield Fragment(unquote(rest[1]), place, Origin.of(place))


def _fault_of(fragment: Fragment, query: bool, switches: Switches) -> SyntaxFault | None:
    text = fragment.text
    with fragment.origin.errors():
        tokens = read_query(text).spark_tokens
    wrong = first_wrong(tokens, query=query, switches=switches)
    if wrong is None:
        return None
    ends = wrong == len(tokens)
    span = Span(len(text.rstrip()) - 1, len(text.rstrip())) if ends else tokens[wrong].span
    near = "its end" if ends else f"'{text[span.start : span.end]}'"
    cause = unreadable(text, span.start, near)
    return SyntaxFault(
        cause.message,
        hint=cause.hint,
        proposal=cause.proposal,
        span=fragment.origin.span(cause.span or span),
        condition=SYNTAX_ERROR,
    )


def missing_end(written: Written, offset: int) -> tuple[SyntaxFault, Written, Written] | None:
    """The error for a `;` that is missing in what was read as one statement, and the two statements; None
    where none seems to be missing. Both must be statements that can be read, and the second begins a line.

    offset: the place in the source where the text could not be read.
    """
    at = next((at for at in _beginnings(written, offset) if _is_two(written, at)), None)
    if at is None:
        return None
    last, first = written.tokens[at - 1], written.tokens[at]
    fault = SyntaxFault(
        f"a ; is missing before {first.upper}",
        detail=f"{first.upper} begins another statement in the next line",
        hint=f"type ; after {last.text}",
        span=last.span,
        code="MISSING_SEMICOLON",
    )
    return fault, *written.parts(at)


def missing_end_in(text: str, offset: int) -> SyntaxFault | None:
    """The same error for the text of a statement."""
    tokens = tuple(tokenize(text, strict=False))
    found = missing_end(Written(Source("", text), Span(0, len(text)), False, tokens), offset)
    return found[0] if found else None


_HEADS = frozenset(
    """ALTER ANALYZE AWAIT CACHE COPY CREATE DEFINE DELETE DESC DESCRIBE DROP EXECUTE EXPLAIN INSERT MERGE
    PREVIEW REFRESH SELECT SHOW START STOP TRUNCATE UPDATE USE VALUES VERIFY WATCH WITH""".split()
)
"""Words with which a statement begins, and a line inside of one hardly."""


def _beginnings(written: Written, offset: int) -> Iterator[int]:
    """The tokens up to an offset, outside of parentheses, that begin a line with the first word of a
    statement.
    """
    tokens = written.tokens
    for at in outside(tokens):
        if tokens[at].start > offset:
            return
        starts_line = at and "\n" in written.source.text[tokens[at - 1].end : tokens[at].start]
        if starts_line and tokens[at].upper in _HEADS:
            yield at


def _is_two(written: Written, at: int) -> bool:
    first, second = written.parts(at)
    if not _can_be_read(first.text):
        return False
    end = second.span.end
    return _can_be_read(second.text) or any(_is_two(second, further) for further in _beginnings(second, end))


def _can_be_read(text: str) -> bool:
    """Whether a text is one statement that the console and Spark's grammar take."""
    try:
        return syntax_fault(parse_text(Source("", text))) is None
    except StreamsqlError:
        return False


_WITHIN = frozenset("AS DISTINCT ALL AND OR NOT IN IS LIKE BETWEEN CASE WHEN THEN ELSE OVER".split())
"""Words within an expression."""


def missing_comma(text: str, offset: int) -> tuple[str, Span] | None:
    """(the query with a comma before the token at which it cannot be read, or before the one in front of it;
    what stands behind the comma), if it can be read then. None for another text.
    """
    tokens = tokenize(text, strict=False)
    near = [n for n, token in enumerate(tokens) if token.start <= offset][-2:]
    for at in near:
        if at == 0 or not (_is_value(tokens[at - 1]) and _is_value(tokens[at]) and _in_select(tokens[:at])):
            continue
        end = tokens[at - 1].end
        corrected = f"{text[:end]},{text[end:]}"
        if read_query(corrected).tree is not None:
            return f"{corrected.strip()};", tokens[at].span
    return None


def _is_value(token: Token) -> bool:
    """Whether an expression can begin or end with a token."""
    return token.text == ")" or (token.kind != "sign" and token.upper not in CLAUSES | _WITHIN)


def _in_select(before: Sequence[Token]) -> bool:
    """Whether tokens end within the list behind a SELECT, and in no parenthesis in it."""
    depth = 0
    for token in reversed(before):
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0:
            return False
        if depth == 0 and token.upper in CLAUSES:
            return token.upper == "SELECT"
    return False
