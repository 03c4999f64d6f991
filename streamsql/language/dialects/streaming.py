"""Clauses of ksqlDB, Flink and RisingWave that have no sense in another place: EMIT CHANGES, WINDOW TUMBLING,
WITHIN, ROWTIME, FOR SYSTEM_TIME AS OF a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from streamsql.errors import SyntaxFault
from streamsql.language.dialects.expressions import TAKE_LAMBDAS
from streamsql.language.edits import Edit, OwnText, apart, edited
from streamsql.language.token_groups import closing, outside
from streamsql.language.tokens import Token, unquote

TimeOf = Callable[[str], str]
"""The event-time column of a stream by its name, "" if it has none."""


def word_edits(text: str, tokens: Sequence[Token], time_of: TimeOf) -> Iterator[Edit]:
    """The edits that write these clauses in the console's own words, in any order."""
    yield from _emit(tokens)
    yield from _window(text, tokens)
    yield from _partitioned(tokens)
    yield from _system_times(tokens)
    yield from _row_times(tokens, time_of)
    yield from _lambdas(tokens)
    for at in range(1, len(tokens) - 2):
        if _is_within(tokens, at):
            yield from _within(text, tokens, at, time_of)


def _lambdas(tokens: Sequence[Token]) -> Iterator[Edit]:
    """transform(list, x => x + 1) and reduce(list, 0, (s, x) => s + x) of ksqlDB."""
    for at in range(3, len(tokens) - 1):
        named = tokens[at - 1].kind == "word" and tokens[at - 2].text == ","
        if tokens[at].text == "=>" and (tokens[at - 1].text == ")" or (named and _takes_lambda(tokens, at))):
            yield tokens[at].start, tokens[at].end, "->"


def _takes_lambda(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token stands in a call of a function that takes a lambda."""
    depth = 0
    for n in range(at - 1, 0, -1):
        depth += (tokens[n].text in ")]") - (tokens[n].text in "([")
        if depth < 0:
            return tokens[n - 1].text.casefold() in TAKE_LAMBDAS
    return False


_CERTAIN = frozenset(("EMIT", "TUMBLING", "HOPPING", "SESSION", "WITHIN"))


def own_clauses(text: str, tokens: Sequence[Token]) -> OwnText | None:
    """A statement without EMIT CHANGES and WINDOW TUMBLING (…), where Spark's parser fails anyway; None if it
    has none. Raises SyntaxFault for WITHIN in a stream that is created: its query is not read before the
    stream is.
    """
    words = {t.upper for t in tokens}
    if not words & _CERTAIN:
        return None
    within = next((n for n in range(len(tokens) - 1) if _is_within(tokens, n)), None)
    edits = [*_emit(tokens), *_window(text, tokens)]
    if edits:
        edits += _partitioned(tokens)
    if within is not None and tokens[0].upper == "CREATE" and "STREAM" in [t.upper for t in tokens[1:4]]:
        edits += _within(text, tokens, within, lambda name: "")
        raise SyntaxFault(
            "WITHIN is a clause of ksqlDB",
            detail="the condition of a join bounds the time between its rows",
            proposal=f"{edited(text, apart(edits)).text};",
            span=tokens[within].span,
            code="OTHER_CONSOLE",
        )
    return edited(text, apart(edits)) if edits else None


def _is_within(tokens: Sequence[Token], at: int) -> bool:
    """Whether WITHIN 7 DAYS, or WITHIN (7 DAYS, 1 DAY), begins at a token."""
    opened = tokens[at + 1].text == "(" and at + 2 < len(tokens) and tokens[at + 2].kind == "number"
    return tokens[at].upper == "WITHIN" and (tokens[at + 1].kind == "number" or opened)


def _row_times(tokens: Sequence[Token], time_of: TimeOf) -> Iterator[Edit]:
    """ROWTIME, the event time of the stream."""
    times = {time_of(name) for name in _relations(tokens).values()} - {""}
    for token in tokens if len(times) == 1 else ():
        if token.upper == "ROWTIME" and token.kind == "word":
            yield token.start, token.end, next(iter(times))


def _system_times(tokens: Sequence[Token]) -> Iterator[Edit]:
    """JOIN t FOR SYSTEM_TIME AS OF o.proctime: a stream joins a table as it is at each micro-batch."""
    for at in range(1, len(tokens) - 6):
        words = [t.upper for t in tokens[at : at + 6]]
        column = tokens[at + 4].kind in ("word", "quoted") and words[5] == "."
        if words[:4] == ["FOR", "SYSTEM_TIME", "AS", "OF"] and (column or words[4] == "PROCTIME"):
            yield tokens[at - 1].end, tokens[at + 6].end, ""


def _words(tokens: Sequence[Token], at: int, *words: str) -> bool:
    if at >= len(tokens) or tokens[at].upper != words[0]:
        return False
    return [t.upper for t in tokens[at : at + len(words)]] == list(words)


def _emit(tokens: Sequence[Token]) -> Iterator[Edit]:
    """EMIT CHANGES of ksqlDB: a SELECT over a stream always follows it, and a table is a live table. With
    EMIT FINAL, or EMIT ON WINDOW CLOSE of RisingWave, this has output mode append.
    """
    for at in range(3, len(tokens) - 1):
        on_close = _words(tokens, at, "EMIT", "ON", "WINDOW", "CLOSE")
        on_update = _words(tokens, at, "EMIT", "ON", "UPDATE")
        end = at + 4 if on_close else at + 3 if on_update else at + 2
        last = end == len(tokens) or tokens[end].upper == "LIMIT"
        last = last and tokens[at - 1].upper not in (",", "SELECT")  # a column with its alias
        final = on_close or _words(tokens, at, "EMIT", "FINAL")
        if last and (final or on_update or _words(tokens, at, "EMIT", "CHANGES")):
            yield tokens[at - 1].end, tokens[end - 1].end, ""
            table = 3 if _words(tokens, 1, "OR", "REPLACE") else 1
            if tokens[0].upper == "CREATE" and tokens[table].upper == "TABLE":
                yield tokens[table].start, tokens[table].end, "LIVE TABLE"
            query = next((n for n in range(3, at) if tokens[n].upper == "AS"), None)
            if final and query and {"TABLE", "VIEW"} & {t.upper for t in tokens[1:5]}:
                yield tokens[query].start, tokens[query].start, "OUTPUT MODE APPEND "


_KINDS = {"TUMBLING": "TUMBLE", "HOPPING": "HOP", "SESSION": "SESSION"}
_AFTER_KEYS = frozenset(("HAVING", "EMIT", "ORDER", "LIMIT", "UNION"))


def _window(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """WINDOW TUMBLING (SIZE 10 MINUTES, GRACE PERIOD 1 MINUTE) of ksqlDB as a key of GROUP BY."""
    for at in range(1, len(tokens) - 2):
        kind = _KINDS.get(tokens[at + 1].upper)
        if tokens[at].upper != "WINDOW" or kind is None or tokens[at + 2].text != "(":
            continue
        close = closing(tokens, at + 2)
        keys = next((n for n in range(close, len(tokens) - 1) if _words(tokens, n, "GROUP", "BY")), None)
        sizes = dict(_sizes(tokens[at + 3 : close]))
        if keys is None or "SIZE" not in sizes or close == len(tokens):
            return
        times = [sizes[name] for name in ("ADVANCE", "SIZE") if name in sizes]
        behind = outside(tokens, keys + 2)
        end = next(
            (n for n in behind if tokens[n].text == ")" or tokens[n].upper in _AFTER_KEYS), len(tokens)
        )
        grace = sizes.get("GRACE")
        note = (
            f" /* GRACE PERIOD is the delay of the watermark of the stream: DELAY OF {grace} */"
            if grace
            else ""
        )
        yield tokens[at - 1].end, tokens[close].end, ""
        place = tokens[end - 1].end
        yield place, place, f", {kind}({', '.join(times)}){note}"
        for n, token in enumerate(tokens):
            if token.upper in ("WINDOWSTART", "WINDOWEND"):
                part = f"{kind}_{token.upper.removeprefix('WINDOW')}({', '.join(times)})"
                item = n < at and tokens[n - 1].upper in ("SELECT", ",")
                item = item and tokens[n + 1].upper in ("FROM", ",") and _depth(tokens, n) == 0
                yield token.start, token.end, f"{part} AS {token.text}" if item else part
        return


def _depth(tokens: Sequence[Token], at: int) -> int:
    """The number of parentheses that are open at a token."""
    return sum((t.text == "(") - (t.text == ")") for t in tokens[:at])


def _partitioned(tokens: Sequence[Token]) -> Iterator[Edit]:
    """PARTITION BY id at the end of a query of ksqlDB: the key of its topic."""
    for at in range(3, len(tokens) - 2):
        if _words(tokens, at, "PARTITION", "BY") and _depth(tokens, at) == 0:
            end = next((n for n in range(at, len(tokens)) if tokens[n].upper == "EMIT"), len(tokens))
            if "SELECT" in [t.upper for t in tokens[:at]]:
                yield tokens[at - 1].end, tokens[end - 1].end, ""


def _sizes(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """(SIZE, ADVANCE, GRACE or RETENTION, its interval); the gap of a session is its SIZE."""
    name = "SIZE"
    for at, token in enumerate(tokens):
        if token.upper in ("SIZE", "ADVANCE", "GRACE", "RETENTION"):
            name = token.upper
        elif token.kind == "number" and at + 1 < len(tokens):
            yield name, f"INTERVAL '{token.text}' {tokens[at + 1].upper}"


_AFTER_ON = frozenset(
    """WHERE GROUP HAVING ORDER LIMIT EMIT JOIN INNER LEFT RIGHT FULL CROSS WINDOW UNION PARTITION
    QUALIFY""".split()
)


def _within(text: str, tokens: Sequence[Token], at: int, time_of: TimeOf) -> Iterator[Edit]:
    """JOIN b WITHIN 7 DAYS ON a.id = b.id: the condition bounds the time between the rows."""
    on = next((n for n in range(at, len(tokens)) if tokens[n].upper == "ON"), None)
    if on is None:
        return
    lengths = [
        f"INTERVAL {tokens[n].text} {tokens[n + 1].upper}"
        for n in range(at + 1, on)
        if tokens[n].kind == "number" and tokens[n - 1].upper != "PERIOD"
    ]
    ends = (n for n in outside(tokens, on + 1) if tokens[n].text in _ENDS or tokens[n].upper in _AFTER_ON)
    end = next(ends, len(tokens))
    right = tokens[at - 1].text
    sides = [tokens[n].text for n in range(on + 1, end - 1) if tokens[n + 1].text == "."]
    left = next((s for s in sides if s.casefold() != right.casefold()), "…")
    relations = _relations(tokens)
    later, earlier = (f"{s}.{time_of(relations.get(s.casefold(), '')) or '…'}" for s in (right, left))
    yield tokens[at].start, tokens[on].start, ""
    place = tokens[end - 1].end
    own = f" AND {later} BETWEEN {earlier} - {lengths[0]} AND {earlier} + {(lengths * 2)[1]}"
    yield place, place, own


_ENDS = frozenset((")", ";"))


def _relations(tokens: Sequence[Token]) -> dict[str, str]:
    """The relation of each name and alias behind FROM and JOIN, folded."""
    relations: dict[str, str] = {}
    for at in range(1, len(tokens)):
        if tokens[at - 1].upper not in ("FROM", "JOIN"):
            continue
        name = unquote(tokens[at])
        relations[name.casefold()] = name
        behind = at + 2 if at + 1 < len(tokens) and tokens[at + 1].upper == "AS" else at + 1
        if behind < len(tokens):
            relations.setdefault(unquote(tokens[behind]).casefold(), name)
    return relations
