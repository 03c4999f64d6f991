"""Properties of a text for which its tokens are enough."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamsql.errors import Span, StreamsqlError, nearest
from streamsql.language.reference import keywords
from streamsql.language.tokens import Token, scan, split, tokenize, unquote


def is_ended(text: str) -> bool:
    """Whether a text ends with the `;` of a statement, outside quotes, comments and BEGIN … END."""
    try:
        tokens = tokenize(text)
    except StreamsqlError:
        return False  # a quote or comment is not closed
    return bool(tokens) and tokens[-1].text == ";" and all(piece.closed for piece in split(tokens))


def opened(text: str) -> str:
    """The sign of the quote or comment that is open at the end of a text; "" for none and for `--`."""
    _, sign, _ = scan(text)
    return "" if sign == "--" else sign


_COMMAND = re.compile(r"\\(?:\?|!|[A-Za-z]+\+?)(?:[ \t][^\n\\]*)?\s*\Z")


def trailing_command(text: str) -> tuple[str, str] | None:
    """(the text before, the command) of a text that ends with a backslash command, as `SELECT 1 \\gx` does.
    None if it ends with none, or has nothing before it.
    """
    found = _COMMAND.search(text)
    if found is None or not text[: found.start()].strip():
        return None
    before = text[: found.start()]
    try:
        tokens = tokenize(f"{before} x")
    except StreamsqlError:
        return None  # it stands inside a quote
    if tokens[-1].end <= len(before):
        return None  # it stands inside a comment
    return before.strip(), found[0].strip()


def cut_at_commands(text: str, signs: tuple[str, ...]) -> list[str]:
    """The parts of a text that are executed one after the other: each line that begins with one of the signs
    where a statement could begin, and what stands between such lines.
    """
    parts: list[str] = []
    before = ""
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith(signs) and (not before.strip() or is_ended(before)):
            parts += [before, line]
            before = ""
        else:
            before += line
    return [part for part in (*parts, before) if part.strip()]


def word_at(text: str, offset: int) -> Span:
    """The word, literal or sign at an offset or the first one after it; the last character if there is
    none.
    """
    token = next((t for t in tokenize(text, strict=False) if t.end > offset), None)
    return token.span if token else Span(max(0, len(text) - 1), len(text))


_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "UNION", "VALUES")


def misspelt_clause(text: str, offset: int) -> tuple[Span, str] | None:
    """The word at or before the offset where a query cannot be read that is nearly the word of a clause, and
    that word: FORM for FROM. None if there is none.
    """
    near = [t for t in tokenize(text, strict=False) if t.start <= offset and t.kind == "word"][-2:]
    for token in near:
        clause = None if token.upper in keywords() else nearest(token.text, _CLAUSES, 0.75)
        if clause:
            return token.span, clause
    return None


_BEHIND_FROM = frozenset(
    ("JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT")
)
_BEFORE_QUERY = ("TRIGGER", "OUTPUT", "CHECKPOINT", "RESTART")


def misplaced_clause(text: str, offset: int) -> tuple[Token, str, str] | None:
    """(a clause of the console that stands behind a query, the word that it belongs before, the statement
    with it there, and with all that follows it), if there is one at or just before the offset where the query
    cannot be read.
    """
    tokens = tokenize(text, strict=False)
    clause = _clause_near(tokens, offset)
    if clause is None or tokens[0].upper not in ("INSERT", "CREATE"):
        return None
    words = ("AS",) if tokens[0].upper == "CREATE" else ("SELECT", "WITH", "FROM", "VALUES")
    query = next((t for t in tokens if t.upper in words), None)
    if query is None or query.start > clause.start:
        return None
    own = f"{text[clause.start :].strip()} {text[query.start : clause.start].strip()}"
    return clause, query.upper, f"{text[: query.start]}{own};"


def _clause_near(tokens: list[Token], offset: int) -> Token | None:
    """The word at or just before an offset, with which a clause of the console begins."""
    near = [t for t in tokens if t.start <= offset][-2:]
    return next((token for token in near if token.upper in _BEFORE_QUERY), None)


def clause_of_select(text: str, offset: int) -> tuple[Token, str] | None:
    """(a clause of INSERT INTO behind a SELECT alone, the SELECT without it), if there is one at or just
    before the offset where the query cannot be read. The text is "" where the clause is not the end.
    """
    tokens = tokenize(text, strict=False)
    clause = _clause_near(tokens, offset)
    if clause is None or tokens[0].upper not in ("SELECT", "WITH", "FROM"):
        return None
    before = [token.upper for token in tokens if token.start < clause.start]
    if "FROM" not in before:
        return None
    behind = {token.upper for token in tokens if token.start > clause.start}
    whole = before.count("(") == before.count(")") and not behind & _BEHIND_FROM
    return clause, f"{text[: clause.start].strip()};" if whole else ""


@dataclass(frozen=True)
class WordsForSpark:
    """Names in a text, case-folded: formats (USING kafka, kafka.`path`), functions, URLs of places."""

    formats: frozenset[str]
    calls: frozenset[str]
    urls: frozenset[str]


def words_for_spark(text: str) -> WordsForSpark:
    """The names in a statement or expression for Spark, according to its tokens."""
    tokens = tokenize(text, strict=False)
    formats, calls, urls = set(), set(), set()
    for at, token in enumerate(tokens):
        name = unquote(token).casefold()
        before = tokens[at - 1].upper if at else ""
        after = tokens[at + 1 : at + 3]
        if token.kind in ("word", "quoted"):
            path = len(after) == 2 and after[0].text == "." and after[1].kind == "quoted"
            if before == "USING" or path:
                formats.add(name)
            if path:
                urls.add(unquote(after[1]).casefold())
            if after and after[0].text == "(":
                calls.add(name)
        elif token.kind == "string" and name.startswith(_URLS) and at and _is_url(tokens[:at]):
            urls.add(name)
    return WordsForSpark(frozenset(formats), frozenset(calls), frozenset(urls))


_URLS = ("jdbc:", "s3a:")


def _is_url(before: list[Token]) -> bool:
    """Whether the tokens end with the key of an option that names a place, or with LOCATION."""
    key = before[-2] if before[-1].text == "=" and len(before) > 1 else before[-1]
    return unquote(key).casefold() in ("url", "path", "location")
