"""The event time of ksqlDB: ROWTIME, and joins WITHIN a time. Errors say Spark's form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamsql.errors import RuleFault, Span
from streamsql.language.query import Query
from streamsql.language.tokens import Token, unquote

_AFTER_ON = frozenset(
    """WHERE GROUP HAVING ORDER LIMIT EMIT JOIN INNER LEFT RIGHT FULL CROSS WINDOW UNION PARTITION
    QUALIFY""".split()
)


def check_row_time(query: Query, time_of: Callable[[str], str]) -> None:
    """Raise RuleFault for a join WITHIN a time, else for ROWTIME, with Spark's form. time_of: the event-time
    column of a stream by its name, "" if it has none.
    """
    tokens = query.tokens
    for at in range(1, len(tokens) - 2):
        opened = tokens[at + 1].text == "(" and tokens[at + 2].kind == "number"
        if tokens[at].upper == "WITHIN" and (tokens[at + 1].kind == "number" or opened):
            _refuse_within(query, at, time_of)
    times = {time_of(name) for name in _relations(query).values()} - {""}
    places = [t for t in tokens if t.upper == "ROWTIME" and t.kind == "word"]
    if len(times) != 1 or not places:
        return
    time = times.pop()
    start, end = places[0].start, places[-1].end
    own, last = "", start
    for token in places:
        own += query.text[last : token.start] + time
        last = token.end
    raise RuleFault(
        "ROWTIME is a column of ksqlDB",
        hint=f"the event time of the stream is its column {time}",
        instead=own,
        span=Span(start, end),
        code="OTHER_CONSOLE",
    )


def _refuse_within(query: Query, at: int, time_of: Callable[[str], str]) -> None:
    tokens = query.tokens
    on = next((n for n in range(at, len(tokens)) if tokens[n].upper == "ON"), None)
    if on is None:
        return
    lengths = [
        f"INTERVAL {tokens[n].text} {tokens[n + 1].upper}"
        for n in range(at + 1, on)
        if tokens[n].kind == "number" and tokens[n - 1].upper != "PERIOD"
    ]
    end = _end_of_condition(tokens, on + 1)
    condition = query.text[tokens[on + 1].start : tokens[end - 1].end]
    right = tokens[at - 1].text
    sides = [tokens[n].text for n in range(on + 1, end - 1) if tokens[n + 1].text == "."]
    left = next((s for s in sides if s.casefold() != right.casefold()), "…")
    relations = _relations(query)
    later, earlier = (f"{s}.{time_of(relations.get(s.casefold(), '')) or '…'}" for s in (right, left))
    own = f"ON {condition} AND {later} BETWEEN {earlier} - {lengths[0]} AND {earlier} + {(lengths * 2)[1]}"
    raise RuleFault(
        "WITHIN is a clause of ksqlDB",
        detail="the condition of a join bounds the time between its rows",
        hint=own,
        instead=own,
        span=Span(tokens[at].start, tokens[end - 1].end),
        code="OTHER_CONSOLE",
    )


def _end_of_condition(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for n in range(start, len(tokens)):
        depth += (tokens[n].text == "(") - (tokens[n].text == ")")
        if depth < 0 or (depth == 0 and (tokens[n].upper in _AFTER_ON or tokens[n].text == ";")):
            return n
    return len(tokens)


def _relations(query: Query) -> dict[str, str]:
    """The relation of each name and alias behind FROM and JOIN, folded."""
    relations: dict[str, str] = {}
    tokens = query.tokens
    for at in range(1, len(tokens)):
        if tokens[at - 1].upper not in ("FROM", "JOIN"):
            continue
        name = unquote(tokens[at])
        relations[name.casefold()] = name
        behind = at + 2 if at + 1 < len(tokens) and tokens[at + 1].upper == "AS" else at + 1
        if behind < len(tokens):
            relations.setdefault(unquote(tokens[behind]).casefold(), name)
    return relations
