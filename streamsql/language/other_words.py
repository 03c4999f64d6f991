"""Statements with words of other consoles, in those of this one: EMIT CHANGES and WINDOW TUMBLING of ksqlDB,
EXCLUDE and REPLACE of DuckDB, regexp_match(…)[n], ~ and LANGUAGE SQL of PostgreSQL, types of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsql.errors import Span, SyntaxFault
from streamsql.language.other_definitions import closing, items_of
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.tokens import Token, unquote

Edit = tuple[int, int, str]
"""The characters from start to end, and what stands there instead."""


@dataclass(frozen=True)
class OwnText:
    """A statement in the console's own words. points: those of Origin; none: it has no places of its own."""

    text: str
    points: tuple[tuple[int, int], ...] = ()


def in_own_words(text: str, tokens: Sequence[Token]) -> OwnText | None:
    """A statement without the words of other consoles; None if it has none. Raises SyntaxFault for a type
    or key that a column here cannot have, with the statement to write instead.
    """
    _check_columns(text, tokens)
    function = _sql_function(text, tokens)
    if function:
        return OwnText(function)
    edits = sorted({*_exclude(tokens), *_emit(tokens), *_window(text, tokens), *_matches(text, tokens)})
    edits = sorted({*edits, *_casts(tokens), *_replace(text, tokens), *_likes(text, tokens)})
    edits = sorted({*edits, *_arrays(tokens), *_series(tokens)})
    return _edited(text, edits) if edits else None


def _edited(text: str, edits: Sequence[Edit]) -> OwnText:
    parts, points, old, new = [], [(0, 0)], 0, 0
    for start, end, own in edits:
        parts += [text[old:start], own]
        new += start - old
        points.append((new, start))
        new, old = new + len(own), end
        points.append((new, old))
    return OwnText("".join([*parts, text[old:]]).rstrip(), tuple(points))


def _words(tokens: Sequence[Token], at: int, *words: str) -> bool:
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
        close = closing(list(tokens), at + 2)
        items = [i for i in items_of(list(tokens[at + 3 : close])) if len(i) > 2 and i[-2].upper == "AS"]
        if close == len(tokens) or not items:
            return
        left_out = ", ".join(i[-1 if word == "REPLACE" else 0].text for i in items)
        columns = text[tokens[at + 3].start : tokens[close - 1].end]
        yield tokens[at + 1].start, tokens[close].end, f"EXCEPT ({left_out}), {columns}"


def _arrays(tokens: Sequence[Token]) -> Iterator[Edit]:
    """[1, 2] of DuckDB and ARRAY[1, 2] of PostgreSQL; a[1] is an element."""
    for at in range(1, len(tokens) - 1):
        before = tokens[at - 1]
        beside = before.end == tokens[at].start
        named = before.upper == "ARRAY" and beside
        element = beside and (before.kind in ("word", "quoted", "string") or before.text in (")", "]"))
        if tokens[at].text != "[" or (element and not named):
            continue
        depth = 0
        for last in range(at, len(tokens)):
            depth += (tokens[last].text == "[") - (tokens[last].text == "]")
            if depth == 0:
                yield (before if named else tokens[at]).start, tokens[at].end, "array("
                yield tokens[last].start, tokens[last].end, ")"
                break


def _series(tokens: Sequence[Token]) -> Iterator[Edit]:
    """FROM generate_series(1, 5) of PostgreSQL and DuckDB, whose last number is one of its rows."""
    for at in range(1, len(tokens) - 5):
        call = tokens[at - 1].upper in ("FROM", "JOIN") and tokens[at].upper == "GENERATE_SERIES"
        if call and tokens[at + 3].text == "," and tokens[at + 5].text == ")":
            yield tokens[at].start, tokens[at].end, "range"
            yield tokens[at + 4].end, tokens[at + 4].end, " + 1"


_LIKES = {"~": "RLIKE", "~*": "RLIKE", "!~": "NOT RLIKE", "!~*": "NOT RLIKE"}


def _likes(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """name ~ 'pattern' of PostgreSQL, and ~*, which ignores case."""
    for at in range(1, len(tokens) - 1):
        pattern = next((n for n in range(at + 1, min(at + 4, len(tokens))) if tokens[n].kind == "string"), at)
        sign = text[tokens[at].start : tokens[pattern].start].strip()
        before = tokens[at - 1]
        if sign in _LIKES and (before.kind in ("word", "quoted", "string") or before.text in (")", "]")):
            written = tokens[pattern].text
            own = f"{written[0]}(?i){written[1:]}" if sign.endswith("*") else written
            yield tokens[at].start, tokens[pattern].end, f"{_LIKES[sign]} {own}"


def _emit(tokens: Sequence[Token]) -> Iterator[Edit]:
    """EMIT CHANGES of ksqlDB: a SELECT over a stream always follows it, and a table is a live table. With
    EMIT FINAL, or EMIT ON WINDOW CLOSE of RisingWave, this has output mode append.
    """
    for at in range(3, len(tokens) - 1):
        on_close = _words(tokens, at, "EMIT", "ON", "WINDOW", "CLOSE")
        end = at + 4 if on_close else at + 2
        last = end == len(tokens) or tokens[end].upper == "LIMIT"
        final = on_close or _words(tokens, at, "EMIT", "FINAL")
        if last and (final or _words(tokens, at, "EMIT", "CHANGES")):
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
        close = closing(list(tokens), at + 2)
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
                named = n + 1 < len(tokens) and tokens[n + 1].upper == "AS"
                yield token.start, token.end, part if named or n > at else f"{part} AS {token.text}"
        return


def _sizes(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """(SIZE, ADVANCE, GRACE or RETENTION, its interval); the gap of a session is its SIZE."""
    name = "SIZE"
    for at, token in enumerate(tokens):
        if token.upper in ("SIZE", "ADVANCE", "GRACE", "RETENTION"):
            name = token.upper
        elif token.kind == "number" and at + 1 < len(tokens):
            yield name, f"INTERVAL '{token.text}' {tokens[at + 1].upper}"


def _matches(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    """regexp_match(text, pattern)[n] of PostgreSQL, which counts from 1 as regexp_extract does."""
    for at in range(len(tokens) - 2):
        if tokens[at].upper != "REGEXP_MATCH" or tokens[at + 1].text != "(":
            continue
        close = first_behind = closing(list(tokens), at + 1)
        opened = at > 0 and tokens[at - 1].text == "(" and tokens[close + 1 : close + 2]
        if opened and tokens[close + 1].text == ")":
            first_behind += 1
        index = tokens[first_behind + 1 : first_behind + 4]
        if [t.text for t in index[::2]] == ["[", "]"] and index[1].kind == "number":
            start = tokens[at - 1].start if first_behind > close else tokens[at].start
            yield start, tokens[at].end, "regexp_extract"
            yield tokens[close].start, index[2].end, f", {index[1].text})"


def _casts(tokens: Sequence[Token]) -> Iterator[Edit]:
    """a::text and CAST(a AS text)."""
    for at in range(1, len(tokens)):
        name, before = tokens[at], tokens[at - 1]
        cast = before.text == "::" or (
            before.upper == "AS" and tokens[at + 1 : at + 2] and tokens[at + 1].text == ")"
        )
        if cast and name.kind == "word" and name.upper in OTHER_TYPES and _in_query(tokens, at):
            yield name.start, name.end, OTHER_TYPES[name.upper]


def _in_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name before a parenthesis is a type: of a CAST that is open there."""
    if tokens[at - 1].text == "::":
        return True
    depth = 0
    for n in range(at - 1, 0, -1):
        depth += (tokens[n].text == ")") - (tokens[n].text == "(")
        if depth < 0:
            return tokens[n - 1].upper in ("CAST", "TRY_CAST")
    return False


_UNSIGNED = {
    "TINYINT": "SMALLINT",
    "SMALLINT": "INT",
    "INT": "BIGINT",
    "INTEGER": "BIGINT",
    "BIGINT": "DECIMAL(20)",
}
"""A whole number → the type here that has the values of it UNSIGNED."""
_COLUMNS = frozenset(("STREAM", "TABLE", "SINK"))
_NO_COLUMNS = frozenset(("AS", "USING", "OPTIONS", "KEY"))


def _check_columns(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for UNSIGNED, PRIMARY KEY or a type of another system among the columns that a
    CREATE declares, with the whole statement in Spark's words.
    """
    words = [t.upper for t in tokens[:5]]
    if words[:1] != ["CREATE"] or _COLUMNS.isdisjoint(words):
        return
    opening = next((n for n, t in enumerate(tokens[:9]) if t.text == "("), len(tokens))
    if not _NO_COLUMNS.isdisjoint(t.upper for t in tokens[:opening]):
        return
    close = closing(list(tokens), opening)
    faults = list(_columns(tokens, opening + 1, close)) if close < len(tokens) else []
    if not faults:
        return
    written, own, edit = faults[0]
    edits = sorted(edit for _, _, edit in faults)
    whole = _edited(text, edits).text
    unsigned = written.upper().endswith("UNSIGNED")
    message = "Spark has no UNSIGNED types" if unsigned else f"there is no type {written}"
    raise SyntaxFault(
        message if own else f"Spark has no {written}",
        hint=f"{written.upper() if unsigned else written} of other systems is {own} here" if own else "",
        proposal=f"{whole};",
        span=_place(text, edit, written),
        code="UNKNOWN_TYPE",
    )


def _place(text: str, edit: Edit, written: str) -> Span:
    start = text.upper().index(written.upper(), edit[0])
    return Span(start, start + len(written))


def _columns(tokens: Sequence[Token], start: int, close: int) -> Iterator[tuple[str, str, Edit]]:
    """(what is written there, what it is here, the edit) for each type or key of another system."""
    depth = 0
    for at in range(start, close):
        token, before = tokens[at], tokens[at - 1]
        depth += token.text.count("(") - token.text.count(")")
        behind = tokens[at + 1] if at + 1 < close else token
        if depth == 0 and token.upper == "PRIMARY" and behind.upper == "KEY":
            yield "PRIMARY KEY", "", _key(tokens, at)
        elif before.kind in ("word", "quoted") and before.upper != "AS":
            if behind.upper == "UNSIGNED" and token.upper in _UNSIGNED:
                own = _UNSIGNED[token.upper]
                yield f"{token.text} {behind.text}", own, (token.start, behind.end, own)
            elif token.upper == "DOUBLE" and behind.upper == "PRECISION":
                yield f"{token.text} {behind.text}", "DOUBLE", (token.start, behind.end, "DOUBLE")
            elif token.upper in OTHER_TYPES and token.upper != "ROW" and depth == 0:
                own = OTHER_TYPES[token.upper]
                yield token.text, own, (token.start, token.end, own)


def _key(tokens: Sequence[Token], at: int) -> Edit:
    """The edit that leaves out PRIMARY KEY behind a column, or `, PRIMARY KEY (a, b) NOT ENFORCED`."""
    last = at + 1
    if tokens[last + 1].text == "(":
        last = closing(list(tokens), last + 1)
    if _words(tokens, last + 1, "NOT", "ENFORCED"):
        last += 2
    start = at - 1 if tokens[at - 1].text == "," else at
    return (tokens[start].start if start < at else tokens[at - 1].end, tokens[last].end, "")


_DOLLARS = re.compile(r"\$(\w*)\$(.*?)\$\1\$", re.DOTALL)


def _sql_function(text: str, tokens: Sequence[Token]) -> str:
    """CREATE FUNCTION … LANGUAGE SQL AS $$ SELECT x + 1 $$ as Spark writes it; "" for any other statement."""
    words = [t.upper for t in tokens]
    if words[:1] != ["CREATE"] or "FUNCTION" not in words[1:4] or "AS" not in words or "SQL" not in words:
        return ""
    language = next((n for n in range(len(words)) if _words(tokens, n, "LANGUAGE", "SQL")), None)
    at = words.index("AS")
    if language is None or at + 1 >= len(tokens):
        return ""
    dollars = _DOLLARS.match(text, tokens[at + 1].start)
    if dollars is None and tokens[at + 1].kind != "string":
        return ""
    body = dollars[2] if dollars else unquote(tokens[at + 1])
    head = text[: min(tokens[at].start, tokens[language].start)].rstrip()
    return f"{head} RETURN {_returned(body.strip().rstrip(';').strip())}"


def _returned(body: str) -> str:
    """The expression that a body of PostgreSQL returns."""
    select, _, value = body.partition(" ")
    if select.upper() != "SELECT":
        return body
    return f"({body})" if re.search(r"\bFROM\b", value, re.IGNORECASE) else value.strip()
