"""Statements with words of other consoles, in those of this one: EMIT CHANGES and WINDOW TUMBLING of ksqlDB,
EXCLUDE and REPLACE of DuckDB, regexp_match(…)[n], ~ and LANGUAGE SQL of PostgreSQL, types of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from streamsql.language.other_checks import check_words
from streamsql.language.other_edits import Edit, OwnText, apart, edited
from streamsql.language.other_expressions import expression_edits
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, unquote


def in_own_words(text: str, tokens: Sequence[Token]) -> OwnText | None:
    """A statement without the words of other consoles; None if it has none. Raises SyntaxFault for a type
    or key that a column here cannot have, with the statement to write instead.
    """
    check_words(text, tokens)
    function = _sql_function(text, tokens)
    if function:
        return OwnText(function)
    edits = {*_exclude(tokens), *_emit(tokens), *_window(text, tokens), *_replace(text, tokens)}
    edits |= {*_partitioned(tokens), *_clauses(text, tokens), *expression_edits(text, tokens)}
    return edited(text, apart(edits)) if edits else None


def _words(tokens: Sequence[Token], at: int, *words: str) -> bool:
    if at >= len(tokens) or tokens[at].upper != words[0]:
        return False
    return [t.upper for t in tokens[at : at + len(words)]] == list(words)


def _exclude(tokens: Sequence[Token]) -> Iterator[Edit]:
    """SELECT * EXCLUDE (a) and EXCLUDE a of DuckDB."""
    for at in range(len(tokens) - 2):
        if tokens[at].text == "*" and tokens[at + 1].upper == "EXCLUDE":
            word, name = tokens[at + 1], tokens[at + 2]
            yield word.start, word.end, "EXCEPT"
            if name.text != "(":
                yield name.start, name.end, f"({name.text})"


def _replace(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """SELECT * REPLACE (a + 1 AS a) and * RENAME (a AS b) of DuckDB: the columns without these, and these."""
    for at in range(len(tokens) - 3):
        word = tokens[at + 1].upper
        if tokens[at].text != "*" or word not in ("REPLACE", "RENAME") or tokens[at + 2].text != "(":
            continue
        close = closing(tokens, at + 2)
        items = [i for i in items_of(list(tokens[at + 3 : close])) if len(i) > 2 and i[-2].upper == "AS"]
        if close == len(tokens) or not items:
            return
        left_out = ", ".join(i[-1 if word == "REPLACE" else 0].text for i in items)
        columns = text[tokens[at + 3].start : tokens[close - 1].end]
        yield tokens[at + 1].start, tokens[close].end, f"EXCEPT ({left_out}), {columns}"


def _emit(tokens: Sequence[Token]) -> Iterator[Edit]:
    """EMIT CHANGES of ksqlDB: a SELECT over a stream always follows it, and a table is a live table. With
    EMIT FINAL, or EMIT ON WINDOW CLOSE of RisingWave, this has output mode append.
    """
    for at in range(3, len(tokens) - 1):
        on_close = _words(tokens, at, "EMIT", "ON", "WINDOW", "CLOSE")
        on_update = _words(tokens, at, "EMIT", "ON", "UPDATE")
        end = at + 4 if on_close else at + 3 if on_update else at + 2
        last = end == len(tokens) or tokens[end].upper == "LIMIT"
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
        depth, end = 0, keys + 2
        while end < len(tokens) and depth >= 0 and not (depth == 0 and tokens[end].upper in _AFTER_KEYS):
            depth += (tokens[end].text == "(") - (tokens[end].text == ")")
            end += depth >= 0
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


def _clauses(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """OFFSET 2 ROWS FETCH FIRST 2 ROWS ONLY of PostgreSQL, and LATERAL TABLE(f(x)) of Flink."""
    for at in range(2, len(tokens) - 2):
        words = [t.upper for t in tokens[at : at + 3]]
        last, limit = _fetched(tokens, at)
        if limit:
            yield tokens[at].start, tokens[last - 1].end, f"LIMIT {limit}"
        end, offset = (at, "") if tokens[at - 1].text == "." else _skips(tokens, at)
        last, limit = _fetched(tokens, end, of_limit=True)
        if offset and (limit or end > at + 2):
            own = f"LIMIT {limit} OFFSET {offset}" if limit else f"OFFSET {offset}"
            yield tokens[at].start, tokens[(last if limit else end) - 1].end, own
        if words[:3] == ["LATERAL", "TABLE", "("]:
            close = closing(tokens, at + 2)
            if close < len(tokens):
                yield tokens[at + 1].start, tokens[at + 2].end, ""
                yield tokens[close].start, tokens[close].end, ""


def _skips(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """The token behind OFFSET n [ROWS] that begins at that one, and n; "" if none does."""
    if tokens[at].upper != "OFFSET" or at + 1 >= len(tokens) or tokens[at + 1].kind != "number":
        return at, ""
    end = at + 2
    return end + (end < len(tokens) and tokens[end].upper in ("ROW", "ROWS")), tokens[at + 1].text


def _fetched(tokens: Sequence[Token], at: int, *, of_limit: bool = False) -> tuple[int, str]:
    """The token behind FETCH FIRST [n] ROWS ONLY that begins at that one, and n; "" if none does. of_limit:
    whether it can be LIMIT n.
    """
    if at >= len(tokens) or tokens[at].upper not in ("FETCH", "LIMIT"):
        return at, ""
    words = [t.upper for t in tokens[at : at + 5]]
    if of_limit and words[:1] == ["LIMIT"] and len(words) > 1:
        return at + 2, tokens[at + 1].text
    if words[:1] != ["FETCH"] or words[1:2] not in (["FIRST"], ["NEXT"]):
        return at, ""
    number = at + 2 if words[2:3] not in (["ROW"], ["ROWS"]) else None
    behind = words[3:] if number else words[2:4]
    if behind not in (["ROWS", "ONLY"], ["ROW", "ONLY"]):
        return at, ""
    return (at + 5, tokens[number].text) if number else (at + 4, "1")


def _sizes(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """(SIZE, ADVANCE, GRACE or RETENTION, its interval); the gap of a session is its SIZE."""
    name = "SIZE"
    for at, token in enumerate(tokens):
        if token.upper in ("SIZE", "ADVANCE", "GRACE", "RETENTION"):
            name = token.upper
        elif token.kind == "number" and at + 1 < len(tokens):
            yield name, f"INTERVAL '{token.text}' {tokens[at + 1].upper}"


def _sql_function(text: str, tokens: Sequence[Token]) -> str:
    """CREATE FUNCTION … LANGUAGE SQL AS $$ SELECT x + 1 $$ as Spark writes it; "" for any other statement."""
    words = [t.upper for t in tokens]
    if words[:1] != ["CREATE"] or "FUNCTION" not in words[1:4] or "AS" not in words or "SQL" not in words:
        return ""
    language = next((n for n in range(len(words)) if _words(tokens, n, "LANGUAGE", "SQL")), None)
    at = words.index("AS")
    if language is None or at + 1 >= len(tokens) or tokens[at + 1].kind != "string":
        return ""
    body = unquote(tokens[at + 1])
    head = text[: min(tokens[at].start, tokens[language].start)].rstrip()
    return f"{head} RETURN {_returned(body.strip().rstrip(';').strip())}"


def _returned(body: str) -> str:
    """The expression that a body of PostgreSQL returns."""
    select, _, value = body.partition(" ")
    if select.upper() != "SELECT":
        return body
    return f"({body})" if re.search(r"\bFROM\b", value, re.IGNORECASE) else value.strip()
