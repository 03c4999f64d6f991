"""What may come next inside a query: by the clause the cursor stands in and the word before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsql.language import reference
from streamsql.language.grammar import load
from streamsql.language.tokens import Token, quote_name, unquote
from streamsql.shell.completion.candidates import (
    column_offers,
    named_relations,
    own_functions,
    query_names,
    times_first,
    types,
)
from streamsql.shell.completion.columns import WINDOW_TYPE, Pair, Resolver, fields
from streamsql.shell.completion.scope import Block, Place, Relation, read_query
from streamsql.shell.completion.spot import FUNCTION, KEYWORD, Offer, Spot

# Words of queries, for the colours as well.
SELECT_WORDS = (
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN",
    "ON", "AS", "AND", "OR", "NOT", "BETWEEN", "INTERVAL", "UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END",
    "LATERAL VIEW", "WATERMARK", "DELAY OF", "IN", "IS NULL", "LIKE", "CAST", "WITH",
    "INNER JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "USING",
    "QUALIFY", "OFFSET", "EXCEPT", "INTERSECT", "OVER", "PARTITION BY", "ASC", "DESC", "NULLS FIRST",
    "NULLS LAST", "EXISTS", "TRUE", "FALSE", "ALL", "STREAM", "VALUES", "RLIKE", "ILIKE", "WITHIN WATERMARK",
)  # fmt: skip

_TESTS = (
    "AND", "OR", "IN", "NOT IN", "BETWEEN", "NOT BETWEEN", "LIKE", "NOT LIKE", "ILIKE", "RLIKE", "IS NULL",
    "IS NOT NULL", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "DIV",
)  # fmt: skip
_AFTER_HAVING = ("ORDER BY", "LIMIT", "OFFSET", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "QUALIFY")
_AFTER_WHERE = ("GROUP BY", "HAVING", *_AFTER_HAVING)
_JOINS = (
    "JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "LEFT SEMI JOIN",
    "LEFT ANTI JOIN", "LATERAL VIEW",
)  # fmt: skip
# What may follow a complete operand or relation, by clause.
_GOES_ON = {
    "SELECT": ("AS", "FROM", *_TESTS),
    "FROM": ("AS", "ON", "USING", *_JOINS, "WHERE", *_AFTER_WHERE, "WATERMARK", "TABLESAMPLE"),
    "ON": (*_TESTS, *_JOINS, "WHERE", *_AFTER_WHERE),
    "USING": (*_JOINS, "WHERE", *_AFTER_WHERE),
    "WHERE": (*_TESTS, *_AFTER_WHERE),
    "GROUP": ("HAVING", *_AFTER_HAVING, *_TESTS),
    "HAVING": (*_TESTS, *_AFTER_HAVING),
    "QUALIFY": (*_TESTS, *_AFTER_HAVING),
    "ORDER": ("ASC", "DESC", "NULLS FIRST", "NULLS LAST", "LIMIT", "OFFSET"),
    "LIMIT": ("OFFSET",),
    "WATERMARK": ("AS", "DELAY OF"),
}  # fmt: skip
# What follows a word in any case.
_FOLLOW = {
    "GROUP": ("BY",), "ORDER": ("BY",), "PARTITION": ("BY",), "LATERAL": ("VIEW",), "CROSS": ("JOIN",),
    "INNER": ("JOIN",), "LEFT": ("JOIN", "OUTER JOIN", "SEMI JOIN", "ANTI JOIN"), "OUTER": ("JOIN",),
    "RIGHT": ("JOIN", "OUTER JOIN"), "FULL": ("OUTER JOIN",), "SEMI": ("JOIN",), "ANTI": ("JOIN",),
    "IS": ("NULL", "NOT NULL", "DISTINCT FROM", "TRUE", "FALSE"), "NULLS": ("FIRST", "LAST"),
    "DELAY": ("OF",), "OF": ("INTERVAL",), "UNION": ("ALL", "SELECT"), "WITHIN": ("WATERMARK", "GROUP"),
}  # fmt: skip
_UNITS = ("SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MILLISECONDS", "SECOND", "MINUTE", "HOUR", "DAY")
# Behind one of these an expression begins.
_OPENS_EXPRESSION = frozenset(
    """SELECT DISTINCT ALL WHERE AND OR NOT ON BY HAVING QUALIFY CASE WHEN THEN ELSE BETWEEN IN LIKE ILIKE
    RLIKE IS DIV INTERVAL LIMIT OFFSET FROM JOIN USING AS OVER FILTER WITH ESCAPE VALUES SET EXCEPT
    INTERSECT WATERMARK""".split()
)
_IN_EXPRESSION = ("CASE", "NOT", "NULL", "TRUE", "FALSE", "INTERVAL", "EXISTS")


def query_start(tokens: list[Token]) -> int | None:
    """Where the query of a statement begins among the tokens before the cursor; None when none has."""
    first = tokens[0].upper if tokens else ""
    if [t.upper for t in tokens[:2]] == ["SHOW", "TOPICS"]:
        return None
    for at, token in enumerate(tokens):
        word = token.upper
        if word == "SELECT" or (word == "FROM" and (at == 0 or first in _WITH_FROM)):
            return at
        # WITH WATERMARK is a clause of CREATE STREAM and WITH DRAIN one of STOP QUERY, not a query.
        if word == "WITH" and (first not in ("CREATE", "STOP") or tokens[at - 1].upper == "AS"):
            return at
    return None


_WITH_FROM = frozenset(("DELETE", "SHOW"))


def in_query(spot: Spot, tokens: list[Token]) -> Iterator[Offer]:
    """What may stand at the cursor in a query; tokens: the query's, before the cursor."""
    _, place = read_query([*tokens, *spot.behind], len(tokens))
    resolver = spot.resolver
    last, before = tokens[-1], tokens[-2].upper if len(tokens) > 1 else ""
    word = last.upper if before != "." else ""
    state = _of_state(tokens)
    if state:
        yield from _state(state, spot)
    elif last.text == ".":
        yield from _behind_dot(tokens, place, spot, resolver)
    elif place.expecting:
        yield from _relations(place, spot)
    elif word == "AS" or last.text == "::":
        if place.call in ("CAST", "TRY_CAST") or last.text == "::":
            yield from types(spot)
    elif word in _FOLLOW:
        yield from _keywords(_FOLLOW[word])
    elif place.clause == "WATERMARK" and word == "WATERMARK":
        joined = place.block.relations[place.joined - 1 : place.joined]
        pairs = [p for r in joined for p in resolver.relation(r, place.block)]
        yield from column_offers(times_first(pairs))
    elif place.call == "USING" or (place.clause == "USING" and last.text == "("):
        yield from column_offers(_common(place, resolver))
    elif last.kind in ("number", "string") and before == "INTERVAL":
        yield from _keywords(_UNITS)
    elif _operand_ended(tokens):
        if spot.typed:
            yield from _keywords(_continuations(tokens, place))
    elif word not in ("LIMIT", "OFFSET"):
        yield from _expression(tokens, place, spot, resolver)


def _keywords(words: Iterable[str]) -> Iterator[Offer]:
    return (Offer(w, "keyword", KEYWORD) for w in words)


def _of_state(tokens: list[Token]) -> list[str]:
    """What may follow in a STATE OF … that stands before the cursor, as the grammar has it; `;` when it may
    be complete.
    """
    begins = [
        at
        for at, token in enumerate(tokens)
        if at and token.upper == "STATE" and tokens[at - 1].upper in ("FROM", "JOIN", ",")
    ]
    return load().expected("StateTable", tokens[begins[-1] :]) if begins else []


def _state(wanted: list[str], spot: Spot) -> Iterator[Offer]:
    yield from _keywords(w.strip("'") for w in wanted if w.strip("'").isalpha() and w.startswith("'"))
    if "QueryName" in wanted:
        yield from query_names(spot)
    if ";" in wanted and spot.typed:
        yield from _keywords(_GOES_ON["FROM"])


def _operand_ended(tokens: list[Token]) -> bool:
    """Whether an expression or relation is complete before the cursor, so that none can begin."""
    last, before = tokens[-1], tokens[-2].upper if len(tokens) > 1 else ""
    if last.kind == "word":
        return before == "." or last.upper not in _OPENS_EXPRESSION
    if last.text == "*":
        return before in ("SELECT", "DISTINCT", "ALL", ",", ".", "(")
    return last.kind in ("string", "number", "quoted") or last.text in (")", "]")


def _continuations(tokens: list[Token], place: Place) -> Iterator[str]:
    words = [t.upper for t in tokens]
    if words[-1] == ")":
        yield from ("OVER", "FILTER", "WITHIN GROUP")
    if words.count("CASE") > words.count("END"):
        yield from ("WHEN", "THEN", "ELSE", "END")
    if place.call == "OVER":
        yield from ("PARTITION BY", "ORDER BY", "ASC", "DESC", "ROWS BETWEEN", "RANGE BETWEEN")
    elif place.call:
        yield from (*_TESTS, "AS", "ORDER BY")
    else:
        yield from _GOES_ON.get(place.clause, ("SELECT",))


def _relations(place: Place, spot: Spot) -> Iterator[Offer]:
    """What FROM and JOIN read: the queries named by WITH, streams, live tables, tables."""
    seen: set[str] = set()
    for block in place.block.outward():
        for name in block.ctes:
            if name not in seen:
                seen.add(name)
                yield Offer(quote_name(name), "WITH")
    yield from named_relations(spot.catalog)
    if spot.typed:
        found = (f for f in reference.functions().values() if f.kind == "table")
        yield from (Offer(f.name + "(", f.signature, FUNCTION) for f in found)
        yield from own_functions(spot.catalog, "table", "processor")
        yield from _keywords(("STREAM", "VALUES", "LATERAL", "STATE OF QUERY", "STATE OF CHECKPOINT"))


def _behind_dot(tokens: list[Token], place: Place, spot: Spot, resolver: Resolver) -> Iterator[Offer]:
    """Columns of a relation, or fields of a column: `a.`, `a.b.`."""
    chain: list[str] = []
    at = len(tokens) - 1
    while at > 0 and tokens[at].text == "." and tokens[at - 1].kind in ("word", "quoted"):
        chain.insert(0, unquote(tokens[at - 1]))
        at -= 2
    if not chain:
        return
    if place.expecting or place.clause == "FROM":
        prefix = ".".join(chain) + "."
        for table in spot.catalog.tables.values():
            if table.name.casefold().startswith(prefix.casefold()):
                yield Offer(table.name[len(prefix) :], "table")
    pairs = resolver.qualified(chain[0], place.block)
    for name in chain[1:]:
        pairs = fields({n.casefold(): t for n, t in pairs}.get(name.casefold(), ""))
    if place.clause == "ON":
        others = [
            r for r in place.block.relations[: place.joined] if r.called.casefold() != chain[0].casefold()
        ]
        shared = {n.casefold() for r in others for n, _ in resolver.relation(r, place.block)}
        pairs = sorted(pairs, key=lambda pair: pair[0].casefold() not in shared)
    yield from column_offers(pairs)


def _common(place: Place, resolver: Resolver) -> list[Pair]:
    """Columns that the relation joined last shares with those before it."""
    *left, right = place.block.relations[: place.joined] or [Relation()]
    there = {n.casefold() for r in left for n, _ in resolver.relation(r, place.block)}
    return [p for p in resolver.relation(right, place.block) if p[0].casefold() in there]


def _same_keys(tokens: list[Token], place: Place, resolver: Resolver) -> Iterator[Offer]:
    """Behind JOIN … ON: `a.id = b.id` for each column that both sides have and that is not joined yet."""
    *left, right = place.block.relations[: place.joined] or [Relation()]
    there = {n.casefold(): (n, t) for n, t in resolver.relation(right, place.block)}
    written = "".join(t.text for t in tokens).casefold()
    for relation in left:
        for name, kind in resolver.relation(relation, place.block):
            other = there.get(name.casefold())
            if other is None or not (relation.called and right.called):
                continue
            sides = [
                f"{quote_name(r.called)}.{quote_name(n)}" for r, n in ((relation, name), (right, other[0]))
            ]
            if f"{sides[0]}={sides[1]}".casefold() not in written:
                text = " = ".join(sides)
                yield Offer(text, f"key, {kind}" if kind else "key", keys=(text.casefold(), name.casefold()))


def _expression(tokens: list[Token], place: Place, spot: Spot, resolver: Resolver) -> Iterator[Offer]:
    """What an expression begins with: columns, and once a letter is typed functions and keywords."""
    word = tokens[-1].upper
    if place.clause == "ON" and not place.call:
        if word in ("ON", "AND"):
            yield from _same_keys(tokens, place, resolver)
        if tokens[-1].text == "=" and len(tokens) > 1:
            yield from _other_sides(unquote(tokens[-2]), place, resolver)
    aliases: list[Offer] = []
    if place.clause in ("GROUP", "HAVING", "ORDER", "QUALIFY"):
        read = {n.casefold() for r in place.block.relations for n, _ in resolver.relation(r, place.block)}
        aliases = list(column_offers(p for p in resolver.output(place.block) if p[0].casefold() not in read))
    if place.clause != "GROUP":
        yield from aliases
    if word != "INTERVAL":
        yield from _columns(place.block, spot, resolver)
        yield from aliases
    if not spot.typed or spot.typed.startswith("`"):
        return
    upper = len(spot.typed) > 1 and spot.typed.isupper()
    yield from own_functions(spot.catalog, "scalar", "aggregate")
    for found in reference.functions().values():
        if found.kind != "table":
            text = found.name + ("()" if found.takes_nothing else "(")
            yield Offer(text.upper() if upper else text, found.signature, FUNCTION)
    if word in ("SELECT", "(") or place.call == "OVER":
        more = ("PARTITION BY", "ORDER BY") if place.call == "OVER" else ("DISTINCT", "ALL", "SELECT")
        yield from _keywords(more)
    yield from _keywords(_IN_EXPRESSION)
    if tokens[-1].upper == "CASE":
        yield from _keywords(("WHEN",))


def _other_sides(name: str, place: Place, resolver: Resolver) -> Iterator[Offer]:
    """Behind `ON a.id =`: the columns of that name, the relation joined last first."""
    for relation in reversed(place.block.relations[: place.joined]):
        for column, kind in resolver.relation(relation, place.block):
            if column.casefold() == name.casefold() and relation.called:
                text = f"{quote_name(relation.called)}.{quote_name(column)}"
                yield Offer(text, kind or "column", keys=(column.casefold(), text.casefold()))


def _columns(block: Block, spot: Spot, resolver: Resolver) -> Iterator[Offer]:
    """The columns that a block reads; with their relation's name where two have the same."""
    known = [(r, resolver.relation(r, block)) for r in block.relations]
    counts: dict[str, int] = {}
    for _, pairs in known:
        for name, _ in pairs:
            counts[name.casefold()] = counts.get(name.casefold(), 0) + 1
    for relation, pairs in known:
        for name, kind in pairs:
            text = quote_name(name)
            keys: tuple[str, ...] = (name.casefold(),)
            if counts[name.casefold()] > 1 and relation.called:
                text = f"{quote_name(relation.called)}.{text}"
                keys = (name.casefold(), text.casefold())
            yield Offer(text, kind or "column", keys=keys)
    if any(t.upper == "WINDOW" for item in block.items for t in item) and "window" not in counts:
        yield Offer("window", WINDOW_TYPE)
    if not spot.typed:
        return
    if len(known) > 1:
        for relation, _ in known:
            if relation.called:
                of = f"of {relation.name}" if relation.name else "of a sub-query"
                yield Offer(quote_name(relation.called) + ".", of)
    for outer in list(block.outward())[1:]:
        for relation in outer.relations:
            if relation.called:
                for name, kind in resolver.relation(relation, outer):
                    text = f"{quote_name(relation.called)}.{quote_name(name)}"
                    yield Offer(text, kind or "column", keys=(name.casefold(), text.casefold()))
