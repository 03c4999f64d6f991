"""What may come next at the cursor: a pure function of text, position and catalog.

The grammar that parses is the one that completes: its expectations at the cursor are keywords and
named terminals, and each terminal has one source of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamsql.catalog import Catalog, Sink, Stream
from streamsql.connectors.base import OptionSpec
from streamsql.connectors.registry import connectors
from streamsql.language.functions import AGGREGATES, GENERATORS
from streamsql.language.grammar import Grammar, load
from streamsql.language.parser import BUILDERS
from streamsql.language.statements.base import SIMPLE_TYPES
from streamsql.language.tokens import Token, quote_name, split, tokenize, unquote
from streamsql.plan.sources import columns_of


@dataclass(frozen=True)
class Candidate:
    """text: what is put in the place of the last `length` characters before the cursor; kind: what it is."""

    text: str
    kind: str
    length: int


SELECT_WORDS = (
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN",
    "ON", "AS", "AND", "OR", "NOT", "BETWEEN", "INTERVAL", "UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END",
    "LATERAL VIEW", "WATERMARK", "DELAY OF", "IN", "IS NULL", "LIKE", "CAST", "WITH",
)  # fmt: skip
_BEFORE_COLUMNS = frozenset("SELECT WHERE AND OR ON BY HAVING".split())
FUNCTIONS = sorted(
    AGGREGATES
    | GENERATORS
    | {"window", "session_window", "window_time", "to_timestamp", "split", "upper", "lower"}
)


def complete(text: str, position: int, catalog: Catalog) -> list[Candidate]:
    """Candidates at a position of a text that may hold several statements, best first."""
    before = text[:position]
    tokens = _statement_before(tokenize(before, strict=False))
    if tokens is None:
        return []
    word = _word_at_end(before, tokens)
    typed = word.text if word else ""
    if not tokens:
        return []
    done = tokens[:-1] if word else tokens
    found = [c for c in _expected(done, typed, catalog, load()) if _fits(c, typed)]
    return [Candidate(c, kind, len(typed)) for c, kind in dict(reversed(found)).items()][::-1]


def _fits(candidate: tuple[str, str], typed: str) -> bool:
    text = candidate[0].casefold().strip("`")
    return text.startswith(typed.casefold().strip("`")) and text != typed.casefold()


def _statement_before(tokens: list[Token]) -> list[Token] | None:
    """The tokens of the statement that the cursor stands in."""
    pieces = list(split(tokens))
    return [] if not pieces or pieces[-1].closed else pieces[-1].tokens


def _word_at_end(before: str, tokens: list[Token]) -> Token | None:
    """The word that is being typed, if the cursor stands right behind one."""
    last = tokens[-1] if tokens else None
    touching = last is not None and last.end == len(before) and last.kind in ("word", "quoted")
    return last if touching else None


def _expected(
    tokens: list[Token], typed: str, catalog: Catalog, grammar: Grammar
) -> Iterable[tuple[str, str]]:
    wanted: dict[str, None] = {}
    for rule in BUILDERS:
        if rule != "Spark":
            wanted.update(dict.fromkeys(grammar.expected(rule, tokens)))
    query = _query_part(tokens)
    if query is not None:
        yield from _in_query(query, typed, catalog)
    for name in wanted:
        if name.startswith("'"):
            yield name.strip("'"), "keyword"
        elif name in _SOURCES:
            yield from _SOURCES[name](tokens, catalog)


def _query_part(tokens: list[Token]) -> list[Token] | None:
    """The tokens from the first SELECT, WITH or FROM on; None when there is no query yet."""
    start = next(
        (i for i, t in enumerate(tokens) if t.upper in ("SELECT", "WITH") and not _is_clause(tokens, i)), None
    )
    return None if start is None else tokens[start:]


def _is_clause(tokens: list[Token], index: int) -> bool:
    """WITH WATERMARK is a clause of CREATE STREAM, not a query."""
    return tokens[index].upper == "WITH" and any(t.upper == "STREAM" for t in tokens[:index])


def _in_query(tokens: list[Token], typed: str, catalog: Catalog) -> Iterable[tuple[str, str]]:
    last = tokens[-1]
    if last.upper in ("FROM", "JOIN", "STREAM"):
        yield from _relations([], catalog)
        return
    if last.text == ".":
        yield from _columns_of_alias(tokens, unquote(tokens[-2]) if len(tokens) > 1 else "", catalog)
        return
    if typed or last.text == "," or last.upper in _BEFORE_COLUMNS:
        for entry in _read(tokens, catalog):
            yield from _columns(entry)
    if typed:  # a list of all functions at an empty place would only be in the way
        yield from ((f + "(", "function") for f in FUNCTIONS)
        yield from ((w, "keyword") for w in SELECT_WORDS)


def _read(tokens: list[Token], catalog: Catalog) -> list[Stream | Sink]:
    """The streams and live tables that a query reads, as far as it is written."""
    names = [
        unquote(t)
        for i, t in enumerate(tokens)
        if i and tokens[i - 1].upper in ("FROM", "JOIN", "STREAM", ",")
    ]
    return [e for e in map(catalog.relation, names) if e is not None]


def _columns_of_alias(tokens: list[Token], alias: str, catalog: Catalog) -> Iterable[tuple[str, str]]:
    """Columns of what an alias stands for: `FROM clicks c`, `JOIN clicks AS c`, or the name itself."""
    for i, token in enumerate(tokens[:-2]):
        after = [t for t in tokens[i + 1 : i + 3] if t.upper != "AS"]
        named = unquote(token).casefold() == alias.casefold()
        if named or (after and unquote(after[0]).casefold() == alias.casefold()):
            entry = catalog.relation(unquote(token))
            if entry is not None:
                yield from _columns(entry)
                return


def _columns(entry: Stream | Sink) -> Iterable[tuple[str, str]]:
    types = {c.name: c.type for c in entry.columns}
    names = (columns_of(entry) or ()) if isinstance(entry, Stream) else tuple(types)
    return ((quote_name(n), types.get(n, "column")) for n in names)


def _relations(tokens: list[Token], catalog: Catalog) -> Iterable[tuple[str, str]]:
    yield from ((quote_name(s.name), "stream") for s in catalog.streams.values())
    yield from ((quote_name(s.name), "live table") for s in catalog.sinks.values() if s.is_live)
    yield from ((t.name, "table") for t in catalog.tables.values())


def _named(kind: str, names: Callable[[Catalog], Iterable[str]]) -> Callable[..., Iterable[tuple[str, str]]]:
    return lambda tokens, catalog: ((quote_name(n), kind) for n in names(catalog))


def _connectors(tokens: list[Token], catalog: Catalog) -> Iterable[tuple[str, str]]:
    writing = any(t.upper == "SINK" for t in tokens[:4])
    for made in connectors().values():
        if (made.writes if writing else made.reads) is not None:
            yield made.name, made.help


def _option_keys(tokens: list[Token], catalog: Catalog) -> Iterable[tuple[str, str]]:
    using = next((i for i, t in enumerate(tokens) if t.upper == "USING"), None)
    if using is None or using + 1 >= len(tokens):
        return
    made = connectors().get(unquote(tokens[using + 1]).casefold())
    specs: tuple[OptionSpec, ...] = ()
    if made is not None:
        specs = (made.writes if any(t.upper == "SINK" for t in tokens[:4]) else made.reads) or ()
    given = {unquote(t).casefold() for t in tokens}
    yield from ((s.name, s.help) for s in specs if s.name.casefold() not in given)


_SOURCES: dict[str, Callable[[list[Token], Catalog], Iterable[tuple[str, str]]]] = {
    "StreamName": _named("stream", lambda c: (s.name for s in c.streams.values())),
    "SinkName": _named("sink", lambda c: (s.name for s in c.sinks.values())),
    "LiveTableName": _named("live table", lambda c: (s.name for s in c.sinks.values() if s.is_live)),
    "QueryName": _named("query", lambda c: (q.name for q in c.queries.values())),
    "Target": _named(
        "sink", lambda c: [*(s.name for s in c.sinks.values()), *(s.name for s in c.streams.values())]
    ),
    "Query": lambda tokens, catalog: [("SELECT", "keyword"), ("WITH", "keyword")],
    "TypeName": lambda tokens, catalog: ((t, "type") for t in sorted(SIMPLE_TYPES)),
    "Connector": _connectors,
    "OptionKey": _option_keys,
}
