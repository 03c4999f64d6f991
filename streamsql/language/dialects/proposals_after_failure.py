"""What is asked of other dialects: a statement that Spark does not know, and, after a failure, a proposal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from streamsql.config.preferences import DIALECTS
from streamsql.errors import EngineFault, Span, StreamsqlError, SyntaxFault
from streamsql.language import redaction  # noqa: F401 — errors hide secrets by it
from streamsql.language.console_clauses import cut
from streamsql.language.dialects.hints import hint_of
from streamsql.language.dialects.other_definitions import own_definition, sql_function
from streamsql.language.dialects.pieces import Piece, pieces_of
from streamsql.language.dialects.statements import Habit, own_form
from streamsql.language.dialects.streaming import TimeOf, own_clauses
from streamsql.language.dialects.translation import is_readable, translated
from streamsql.language.edits import OwnText
from streamsql.language.reference import functions, keywords
from streamsql.language.tokens import Token, tokenize
from streamsql.language.window_words import window_names


def own_statement(
    text: str, tokens: Sequence[Token], *, chosen: bool = False
) -> OwnText | SyntaxFault | None:
    """The console's own statement for one of another console that Spark's grammar does not take, or the error
    for one that there is none for; None for other statements. Raises SyntaxFault with the own statement where
    it is to be completed first.

    chosen: whether the analyst has chosen another dialect; then also for statements that Spark takes.
    """
    definition, remark = own_definition(text, tokens)
    span = Span(tokens[0].start, tokens[min(1, len(tokens) - 1)].end)
    if definition:
        detail = "here CREATE STREAM defines what is read, and CREATE SINK what is written"
        raise SyntaxFault(
            f"this {text[span.start : span.end]} is a statement of Flink, ksqlDB or RisingWave",
            detail=f"{detail}; {remark}" if remark else detail,
            proposal=f"{definition};",
            span=span,
            code="OTHER_CONSOLE",
        )
    if function := sql_function(text, tokens):
        return OwnText(function)
    if clauses := own_clauses(text, tokens):
        return clauses
    entry = own_form(text, tokens, of_spark=chosen)
    if entry is None:
        return None
    row, form = entry
    if row.runs:
        read = translated(form, "duckdb") if row.console == "DuckDB" else None
        return OwnText(read.text if read else form)
    fault = row.fault(SyntaxFault, form, span)
    if form or chosen:
        raise fault
    return fault


@dataclass(frozen=True)
class Judge:
    """How a proposal is judged. parses: whether Spark's parser, or where none runs sqlglot, takes a query;
    functions: gives the user's functions, folded; time_of: the event-time column of a stream.
    """

    parses: Callable[[str], bool] = is_readable
    functions: Callable[[], Collection[str]] = frozenset
    time_of: TimeOf = lambda name: ""

    def accepts(self, piece: str) -> bool:
        """Whether a piece of a statement can be read: by Spark, or as a clause of the console."""
        return self.parses(piece) or bool(cut(tokenize(piece, strict=False)).own)

    def refuses(self, piece: str) -> bool:
        """Whether a piece of a statement cannot be read."""
        return not self.accepts(piece)

    def accepts_all(self, statement: str) -> bool:
        """The same for each piece of a statement."""
        return all(self.accepts(piece) for piece in _texts(statement))


_ALONE = Judge()


def offered(error: StreamsqlError, text: str, judge: Judge = _ALONE) -> StreamsqlError:
    """The error with the statement in Spark's words as its proposal, where the statement is one of another
    dialect and that is why it failed. text: the statement without `;`.
    """
    if error.code == "NESTED_TOO_DEEPLY":  # no dialect reads it
        return error
    unread = isinstance(error, SyntaxFault) or (isinstance(error, EngineFault) and error.unread)
    fragment = error.fragment if isinstance(error, EngineFault) else ""
    has_one = bool(error.proposal or error.instead)
    if has_one and not (isinstance(error, EngineFault) and unread):
        return error
    hint = hint_of(text) if unread or fragment else ""
    if hint:
        error.hint = hint
        return error
    row, own = (None, "") if isinstance(error, SyntaxFault) else _statement_of_spark(text)
    if row is not None and row.refusal:
        error.hint = row.refusal
        return error
    if not own and unread:
        own = next(_translations(text, judge, lambda piece: False), "")
    elif not own and "->" in text and error.code.startswith(_OF_LAMBDAS):
        own = next(_translations(text, judge, lambda piece: "->" in piece), "")
    elif not own and fragment and error.code.startswith(_OF_WORDS):
        own = _of_fragment(error, fragment, text, judge)
    if own:
        error.propose(f"{own};")
    return error


_OF_WORDS = (
    "UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "UNRESOLVED_COLUMN", "DATATYPE_MISMATCH",
    "WRONG_NUM_ARGS", "INVALID_EXTRACT", "INVALID_PARAMETER_VALUE", "COLLATION_INVALID_NAME",
    "INVALID_TYPED_LITERAL", "UNSUPPORTED", "SPARK_ERROR",
)  # fmt: skip
"""The beginnings of the codes of errors that words of another dialect can have."""


_OF_LAMBDAS = ("INVALID_LAMBDA", "INTERNAL_ERROR")
"""Those of errors that an arrow has which is none of a lambda."""


def _of_fragment(error: StreamsqlError, fragment: str, text: str, judge: Judge) -> str:
    """The statement with the pieces that have what Spark names in Spark's words; "" if that mends nothing."""
    if error.code.startswith(("UNRESOLVED_ROUTINE", "UNRESOLVABLE")):
        fragment = fragment.partition("(")[0]
    place = re.compile(rf"(?<!\w){re.escape(fragment)}(?!\w)", re.IGNORECASE)
    called = error.code.startswith("UNRESOLVED_COLUMN")
    left = re.compile(place.pattern + r"(?!\()", re.IGNORECASE) if called else place
    found = _translations(text, judge, lambda piece: bool(place.search(piece)))
    if not error.code.startswith(("UNRESOLVED", "UNRESOLVABLE")):
        return next(found, "")
    before = {p.casefold() for p in _texts(text) if place.search(p) and p.startswith(_RELATIONS)}
    for own in found:
        pieces = {piece.casefold() for piece in _texts(own)}
        if not any(left.search(_ALIAS.sub("", piece)) for piece in pieces) or before - pieces:
            return own
    return ""


_ALIAS = re.compile(r"\bAS\s+(`[^`]+`|\w+)", re.IGNORECASE)
_RELATIONS = "SELECT * FROM "
"""How the pieces begin that stand in FROM: their aliases may be the names of columns."""


def _texts(statement: str) -> Iterator[str]:
    """The pieces of a statement, each as a query."""
    for piece in pieces_of(tokenize(statement, strict=False)):
        yield from _texts_of(piece, statement)


def _texts_of(piece: Piece, text: str) -> Iterator[str]:
    yield piece.text_in(text)
    for query in piece.nested:
        for inner in query.pieces:
            yield from _texts_of(inner, text)


def _statement_of_spark(text: str) -> tuple[Habit | None, str]:
    """The row and the statement for one that Spark's grammar takes, and that another console has."""
    tokens = tokenize(text, strict=False)
    entry = own_form(text, tokens, of_spark=True) if tokens else None
    return entry if entry and entry[0].of_spark else (None, "")


def _translations(text: str, judge: Judge, wanted: Callable[[str], bool]) -> Iterator[str]:
    """The statement in Spark's words, as each dialect reads it, where Spark takes it then."""
    own_functions = judge.functions()
    callable_names = {*functions(), *window_names(), *map(str.casefold, keywords()), *own_functions}
    for dialect in _dialects(text):
        own = translated(
            text, dialect, own_functions, wanted=wanted, unread=judge.refuses, time_of=judge.time_of
        )
        if own is None or own.text == text or not judge.accepts_all(own.text):
            continue
        if _calls(own.text) - _calls(text) <= callable_names:
            yield own.text


_STREAMING = frozenset(("EMIT", "SYSTEM_TIME", "WITHIN", "ROWTIME", "=>", "->"))
"""Words of Flink and ksqlDB, which others read as something else."""


def _dialects(text: str) -> Sequence[str]:
    """The dialects, the most likely first."""
    words = {t.upper for t in tokenize(text, strict=False)}
    return tuple(reversed(DIALECTS[1:])) if words & _STREAMING and "->>" not in words else DIALECTS[1:]


def _calls(text: str) -> set[str]:
    """The names, folded, before a parenthesis in a statement."""
    tokens = tokenize(text, strict=False)
    beside = zip([None, *tokens], tokens, tokens[1:], strict=False)
    named = [(b, c) for a, b, c in beside if a is None or a.upper != "AS"]  # AS name (columns)
    return {b.text.casefold() for b, c in named if b.kind == "word" and c.text == "("}
