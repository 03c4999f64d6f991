"""A statement of another dialect in Spark's words. sqlglot reads each piece of its queries in that dialect
and in Spark's: where both say the same, the analyst's own words stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any

from streamsql.language.dialects.column_types import type_edits
from streamsql.language.dialects.expressions import Untranslatable, fixed, sql_of
from streamsql.language.dialects.functions import guarded
from streamsql.language.dialects.pieces import Piece, pieces_of, placeholder
from streamsql.language.dialects.streaming import TimeOf, word_edits
from streamsql.language.edits import Edit, OwnText, apart, edited
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import select_lists
from streamsql.language.tokens import Token, quote_name, tokenize, unquote

Wanted = Callable[[str], bool]
"""Whether a piece may be changed: a function of the piece as a statement."""


Translation = Callable[[str], OwnText | None]
"""A function of a statement: what `translated` gives for the dialect that the analyst has chosen."""


def translated(
    text: str,
    dialect: str,
    own: Collection[str] = (),
    *,
    wanted: Wanted = lambda piece: True,
    unread: Wanted = lambda piece: False,
    time_of: TimeOf = lambda name: "",
) -> OwnText | None:
    """A statement of another dialect in Spark's words; None where it has nothing of that dialect.

    own: the names, folded, of the user's functions, which stay; wanted: the pieces that are changed where
    they say something else; unread: those that are changed in any case; time_of: the event-time column of a
    stream.
    """
    before = _without_clauses(text, dialect, time_of)
    inner = before.text if before else text
    tokens = tokenize(inner, strict=False)
    if makes_rows_side_by_side(tokens):
        return before
    edits = [*_names(tokens), *_words(tokens), *type_edits(tokens)]
    for piece in pieces_of(tokens):
        edits += _edits(inner, piece, dialect, frozenset(own), wanted, unread)
    if edits:
        return edited(inner, apart(edits)) if before is None else OwnText(edited(inner, apart(edits)).text)
    return before


def makes_rows_side_by_side(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT list has several calls that make rows: other consoles put their rows side by side, and
    Spark would give all pairs of them.
    """
    for items in select_lists(tokens):
        if sum(i[0].upper in _MAKE_ROWS and len(i) > 1 and i[1].text == "(" for i in items) > 1:
            return True
    return False


_MAKE_ROWS = frozenset(("UNNEST", "GENERATE_SERIES", "GENERATE_SUBSCRIPTS"))


def _without_clauses(text: str, dialect: str, time_of: TimeOf) -> OwnText | None:
    """A statement without the clauses of streaming consoles; None if it has none."""
    if dialect not in ("flink", "ksqldb"):
        return None
    edits = list(word_edits(text, tokenize(text, strict=False), time_of))
    return edited(text, apart(edits)) if edits else None


def _edits(
    text: str, piece: Piece, dialect: str, own: frozenset[str], wanted: Wanted, unread: Wanted
) -> Iterator[Edit]:
    inner = [
        [e for nested in query.pieces for e in _edits(text, nested, dialect, own, wanted, unread)]
        for query in piece.nested
    ]
    whole = piece.text_in(text)
    written = None
    if (same := unread(whole)) or wanted(whole):
        written = in_spark(whole, dialect, own, same=same)
    if written is None or not written.startswith(piece.before.rstrip()):
        yield from (edit for edits in inner for edit in edits)
        return
    written = written[len(piece.before.rstrip()) :].strip()
    for number, (query, edits) in enumerate(zip(piece.nested, inner, strict=True)):
        shifted = [(s - query.start, e - query.start, new) for s, e, new in apart(edits)]
        written = written.replace(placeholder(number), edited(text[query.start : query.end], shifted).text)
    yield piece.start, piece.end, written


def in_spark(
    statement: str, dialect: str, own: frozenset[str] = frozenset(), *, same: bool = False
) -> str | None:
    """A SELECT of another dialect as Spark writes it; None where it cannot be read. same: also where it says
    the same in both: sqlglot reads some words as Spark's that Spark does not have.
    """
    guard = guarded(statement, dialect, own)
    tree = _read(guard.text, dialect)
    if tree is None:
        return None
    try:
        spark_text = guard.named(sql_of(fixed(tree, guard.form)))
    except Untranslatable:
        return None
    here = None if same or _is_foreign(statement) else _read(statement, "spark")
    return None if here is not None and spark_text == sql_of(here) else spark_text


def _is_foreign(statement: str) -> bool:
    """Whether a SELECT has words that sqlglot reads as Spark's, and that Spark does not have."""
    tokens = tokenize(statement, strict=False)
    return any(_is_foreign_at(tokens, at) for at in range(len(tokens) - 1))


def _is_foreign_at(tokens: Sequence[Token], at: int) -> bool:
    token, behind = tokens[at], tokens[at + 1]
    further = tokens[at + 2].upper if at + 2 < len(tokens) else ""
    if token.text == "->":
        return behind.kind in ("string", "number")
    if token.upper in ("FILTER", "COUNT") and behind.text == "(":
        return further not in ("WHERE", "") if token.upper == "FILTER" else further == ")"
    if token.upper == "OFFSET":
        return further in ("LIMIT", "ROW", "ROWS")
    if token.text == "{" or (token.text == "[" and not _is_element(tokens, at)):
        return True
    cast = token.text == "::" or (token.upper == "AS" and further in (")", "("))
    if cast and behind.upper in (*OTHER_TYPES, "VARCHAR", "CHAR", "TIMESTAMP"):
        sized = behind.upper in ("VARCHAR", "CHAR")
        return behind.upper in OTHER_TYPES or (further == "(") != sized
    if token.upper in ("AS", "FROM", "JOIN") and behind.kind == "string":
        return behind.text[0] == '"' or token.upper != "AS"
    read = token.upper.startswith("READ_") and behind.text == "("
    return read or token.upper in _FOREIGN or (token.upper, behind.upper) in _FOREIGN_PAIRS


def _is_element(tokens: Sequence[Token], at: int) -> bool:
    """Whether a bracket is that of an element: `a[1]`, `f(x)[0]`."""
    before = tokens[at - 1] if at else tokens[at]
    named = before.kind in ("word", "quoted", "string") and before.upper not in ("ARRAY", "MAP")
    return before.end == tokens[at].start and (named or before.text in (")", "]", "}"))


_FOREIGN = frozenset(("->>", "FETCH", "!~~", "!~~*", "~~", "~~*"))
_FOREIGN_PAIRS = frozenset(
    (("USING", "SAMPLE"), ("TABLESAMPLE", "SYSTEM"),
     ("TABLESAMPLE", "BERNOULLI"), ("TIMESTAMP", "WITH"), ("TIMESTAMP", "WITHOUT"))
)  # fmt: skip


def is_readable(statement: str) -> bool:
    """Whether sqlglot can read a query of Spark."""
    return _read(statement, "spark") is not None


def _read(text: str, dialect: str) -> Any:
    """The tree of a SELECT in a dialect; None where sqlglot cannot read it."""
    from sqlglot.errors import SqlglotError

    try:
        trees = _dialect(dialect).parse(text)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError):
        return None  # the builders of functions do not check for missing arguments
    return trees[0] if len(trees) == 1 else None


@cache
def _dialect(name: str) -> Any:
    """sqlglot's dialect, with Spark's order of NULLs: only words are translated, not that."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.dialects.postgres import Postgres
    from sqlglot.dialects.spark import Spark

    class SmallNullsDuckDB(DuckDB):
        NULL_ORDERING = "nulls_are_small"

    class SmallNullsPostgres(Postgres):
        NULL_ORDERING = "nulls_are_small"

    class Flink(SmallNullsPostgres):
        class Tokenizer(Postgres.Tokenizer):
            IDENTIFIERS = ["`", '"']

    dialects = {"spark": Spark, "duckdb": SmallNullsDuckDB, "flink": Flink, "ksqldb": Flink}
    return dialects.get(name, SmallNullsPostgres)()


_NAMED = frozenset("TABLE STREAM VIEW SINK QUERY INTO DESCRIBE DESC SUMMARIZE WATCH EXISTS".split())


def _names(tokens: list[Token]) -> Iterator[Edit]:
    """Names in double quotes behind the word for their kind, where Spark takes no text."""
    for before, token in zip(tokens, tokens[1:], strict=False):
        quoted = token.kind == "string" and token.text[:1] == '"' and len(token.text) > 2
        if quoted and before.upper in _NAMED and not re.search(r"[./]", token.text):
            yield token.start, token.end, quote_name(unquote(token))


def _words(tokens: list[Token]) -> Iterator[Edit]:
    """AS MATERIALIZED and FOR UPDATE of PostgreSQL."""
    words = [t.upper for t in tokens]
    for at in range(max(1, len(tokens) - 4), len(tokens) - 1):
        locks = words[at : at + 2] in (["FOR", "UPDATE"], ["FOR", "SHARE"])
        if locks and words[at + 2 :] in ([], ["NOWAIT"], ["SKIP", "LOCKED"]):
            yield tokens[at - 1].end, tokens[-1].end, ""
    for at in range(1, len(tokens) - 1):
        before = tokens[at - 1].upper
        if tokens[at].upper == "MATERIALIZED" and before in ("AS", "NOT") and tokens[at + 1].text == "(":
            start = at - 1 if before == "NOT" else at
            yield tokens[start].start, tokens[at + 1].start, ""
