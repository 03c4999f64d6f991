"""Statements with words of other consoles, in those of this one: EMIT CHANGES and WINDOW TUMBLING of ksqlDB,
EXCLUDE and REPLACE of DuckDB, regexp_match(…)[n], ~ and LANGUAGE SQL of PostgreSQL, types of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from streamsql.errors import Span, SyntaxFault
from streamsql.language.other_definitions import closing, items_of, own_options
from streamsql.language.other_expressions import Edit, expression_edits
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.tokens import Token, unquote


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
    _check_patterns(text, tokens)
    _check_joins(text, tokens)
    _check_options(text, tokens)
    _check_parameters(text, tokens)
    function = _sql_function(text, tokens)
    if function:
        return OwnText(function)
    edits = {*_exclude(tokens), *_emit(tokens), *_window(text, tokens), *_replace(text, tokens)}
    edits |= {*_partitioned(tokens), *_clauses(text, tokens), *expression_edits(text, tokens)}
    return _edited(text, _apart(edits)) if edits else None


def _apart(edits: Iterable[Edit]) -> list[Edit]:
    """The edits in order, without those inside of another one: the text that this gives is read again."""
    apart: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e[0], e[1] > e[0], -e[1])):
        if not apart or edit[0] >= apart[-1][1]:
            apart.append(edit)
    return apart


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


_OPTIONS = re.compile(r"\s*/\*\+\s*(OPTIONS|STATE_TTL|LOOKUP)\s*\((.*?)\)\s*\*/", re.IGNORECASE | re.DOTALL)
"""A comment of Flink beside a table, which Spark would not see."""


def _check_options(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `t /*+ OPTIONS('key' = 'value') */` of Flink, which is a comment to Spark."""
    hint = _OPTIONS.search(text) if "/*+" in text else None
    before = next((t for t in reversed(tokens) if hint and t.end <= hint.start()), None)
    if hint is None or before is None or before.upper == "SELECT":
        return
    if any(t.start < hint.start() < t.end for t in tokens):
        return  # a text
    raise _options_fault(before.text, hint, hint.span())


def check_options_behind(text: str, end: int, last: str) -> None:
    """The same for such a comment behind a statement. text: the script; end, last: its last token."""
    hint = _OPTIONS.match(text, end)
    if hint is not None:
        raise _options_fault(last, hint, hint.span())


_NOT_HERE = {
    "STATE_TTL": "the watermark of a stream bounds the state, and RETAIN the rows of a live table",
    "LOOKUP": "a stream joins a table as it is at each micro-batch",
}


def _options_fault(name: str, hint: re.Match[str], place: tuple[int, int]) -> SyntaxFault:
    if hint[1].upper() != "OPTIONS":
        return SyntaxFault(
            f"{hint[1].upper()} is a hint of Flink, which Spark would not see",
            detail=_NOT_HERE[hint[1].upper()],
            hint="leave it out",
            span=Span(*place),
            code="OTHER_CONSOLE",
        )
    return SyntaxFault(
        "Spark has no OPTIONS beside a table in a query",
        detail="the options of a stream stand in its definition",
        proposal=f"CREATE OR REPLACE STREAM {name} … OPTIONS ({own_options(hint[2]) or '…'});",
        span=Span(*place),
        code="OTHER_CONSOLE",
    )


def _check_parameters(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `:'x'` of psql, with variables of the console. `:x` alone is left to Spark."""
    places = [at for at in range(1, len(tokens) - 1) if _is_parameter(tokens, at)]
    if not any(tokens[at + 1].kind == "string" for at in places):
        return
    edits: list[Edit] = []
    names: dict[str, None] = {}
    for at in places:
        name = unquote(tokens[at + 1])
        own = f"${{{name}}}"
        edits.append(
            (tokens[at].start, tokens[at + 1].end, own if tokens[at + 1].kind == "word" else f"'{own}'")
        )
        names[name] = None
    start, end, _ = edits[0]
    defined = " ".join(f"DEFINE {name} = '…';" for name in names)
    raise SyntaxFault(
        f"{text[start:end]} is a variable of psql",
        detail="DEFINE sets a variable here, and ${name} stands for its value",
        proposal=f"{defined} {_edited(text, edits).text};",
        span=Span(start, end),
        code="OTHER_CONSOLE",
    )


def _is_parameter(tokens: Sequence[Token], at: int) -> bool:
    """Whether `:name` begins at a token, and no path of a VARIANT, key of a struct or part of a slice."""
    before, sign, name = tokens[at - 1 : at + 2]
    beside = sign.text == ":" and sign.end == name.start and name.kind in ("word", "string")
    value = before.kind in ("quoted", "string", "number") or before.text in (")", "]")
    value = value or (before.kind == "word" and before.end == sign.start)
    return beside and not value and before.text not in ("{", "[", ":") and unquote(name).isidentifier()


def _check_patterns(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for COLUMNS('a.*') of DuckDB, with the statement that does the same."""
    for at in range(1, len(tokens) - 3):
        call = [t.kind for t in tokens[at : at + 4]] == ["word", "sign", "string", "sign"]
        if call and tokens[at].upper == "COLUMNS" and tokens[at - 1].upper in ("SELECT", ","):
            pattern = unquote(tokens[at + 2]).replace("`", "``")
            own = f"{text[: tokens[at].start]}`{pattern}`{text[tokens[at + 3].end :]}"
            raise SyntaxFault(
                "COLUMNS is a function of DuckDB",
                detail="Spark takes a pattern of columns in backticks, if a setting allows it",
                proposal=f"SET spark.sql.parser.quotedRegexColumnNames = true; {own};",
                span=Span(tokens[at].start, tokens[at + 3].end),
                code="OTHER_CONSOLE",
            )


_JOINS = {
    "ASOF": "QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1 keeps one match of each row",
    "POSITIONAL": "rows have no order: row_number() OVER (ORDER BY …) gives them one to join ON",
}
_JOIN_KINDS = frozenset(("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "ANTI", "SEMI"))


def _check_joins(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for ASOF JOIN and POSITIONAL JOIN of DuckDB: the word would be an alias to Spark."""
    for at in range(2, len(tokens) - 2):
        word = tokens[at].upper
        if word in _JOINS and tokens[at + 1].upper in _JOIN_KINDS and tokens[at - 1].upper != "AS":
            own = _newest_match(text, tokens, at) if word == "ASOF" else ""
            raise SyntaxFault(
                f"Spark has no {word} JOIN",
                detail=_JOINS[word],
                proposal=f"{own};" if own else "",
                span=tokens[at].span,
                code="OTHER_CONSOLE",
            )


def _newest_match(text: str, tokens: Sequence[Token], at: int) -> str:
    """A query with a ASOF JOIN b ON a.k = b.k AND a.t >= b.t, as a join of which the newest rows of b are
    kept; "" if its condition is another one.
    """
    on = next((n for n in range(at, len(tokens)) if tokens[n].upper == "ON"), None)
    condition = re.match(_ASOF, text[tokens[on].start :]) if on else None
    if condition is None or tokens[0].upper != "SELECT" or text[tokens[at].start + 4 :].count("JOIN") > 1:
        return ""
    keys = re.findall(r"([\w.]+)\s*=\s*[\w.]+", condition[0])
    later, earlier = condition["later"], condition["earlier"]
    end = tokens[on].start + condition.end() if on else 0
    rest = text[end:].strip()
    best = f"QUALIFY row_number() OVER (PARTITION BY {', '.join([*keys, later])} ORDER BY {earlier} DESC) = 1"
    if re.match(r"(GROUP|WHERE|HAVING)\b", rest, re.IGNORECASE):
        return ""
    return f"{text[: tokens[at].start]}{text[tokens[at + 1].start : end]} {best} {rest}".strip()


_ASOF = re.compile(
    r"ON\s+((?:[\w.]+\s*=\s*[\w.]+\s+AND\s+)*)(?P<later>[\w.]+)\s*>=?\s*(?P<earlier>[\w.]+)", re.IGNORECASE
)


def _sizes(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """(SIZE, ADVANCE, GRACE or RETENTION, its interval); the gap of a session is its SIZE."""
    name = "SIZE"
    for at, token in enumerate(tokens):
        if token.upper in ("SIZE", "ADVANCE", "GRACE", "RETENTION"):
            name = token.upper
        elif token.kind == "number" and at + 1 < len(tokens):
            yield name, f"INTERVAL '{token.text}' {tokens[at + 1].upper}"


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
    if words[:2] == ["ALTER", "TABLE"] and "ADD" in words:
        _refuse_columns(text, list(_columns(tokens, [t.upper for t in tokens].index("ADD"), len(tokens))))
    if words[:1] != ["CREATE"] or _COLUMNS.isdisjoint(words):
        return
    opening = next((n for n, t in enumerate(tokens[:9]) if t.text == "("), len(tokens))
    if not _NO_COLUMNS.isdisjoint(t.upper for t in tokens[:opening]):
        return
    close = closing(tokens, opening)
    _refuse_columns(text, list(_columns(tokens, opening + 1, close)) if close < len(tokens) else [])


def _refuse_columns(text: str, faults: Sequence[tuple[str, str, Edit]]) -> None:
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
    unsized = "VARCHAR" if tokens[1].upper == "TABLE" else ""
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
            elif behind.text == "[" and tokens[at + 2].text == "]" and depth == 0:
                own = f"ARRAY<{OTHER_TYPES.get(token.upper, token.text)}>"
                yield f"{token.text}[]", own, (token.start, tokens[at + 2].end, own)
            elif token.upper in OTHER_TYPES and token.upper != "ROW" and depth == 0:
                own = OTHER_TYPES[token.upper]
                yield token.text, own, (token.start, token.end, own)
            elif token.upper == unsized and behind.text != "(" and depth == 0:
                yield token.text, "STRING", (token.start, token.end, "STRING")


def _key(tokens: Sequence[Token], at: int) -> Edit:
    """The edit that leaves out PRIMARY KEY behind a column, or `, PRIMARY KEY (a, b) NOT ENFORCED`."""
    last = at + 1
    if tokens[last + 1].text == "(":
        last = closing(tokens, last + 1)
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
