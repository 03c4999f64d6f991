"""Words of other consoles that Spark would misread, or that have no form of their own here: refused, with the
statement to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from streamsql.errors import Span, SyntaxFault
from streamsql.language.other_definitions import own_options
from streamsql.language.other_edits import Edit, edited
from streamsql.language.psql_variables import parameters
from streamsql.language.statements.base import OTHER_TYPES
from streamsql.language.token_groups import closing
from streamsql.language.tokens import Token


def check_words(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for such words in a statement."""
    _check_columns(text, tokens)
    _check_joins(text, tokens)
    _check_options(text, tokens)
    _check_parameters(text, tokens)
    _check_clauses(tokens)
    _check_percent(text, tokens)


_NOT_OF_SPARK = {
    "EXCLUDE TIES": "a window has all rows of its frame",
    "EXCLUDE GROUP": "a window has all rows of its frame",
    "EXCLUDE CURRENT ROW": "two frames, before and behind the row, leave it out",
    "USING <": "ORDER BY … ASC",
    "USING >": "ORDER BY … DESC",
    "MATCH_RECOGNIZE (": "a processor in Python finds patterns of rows: HELP stateful;",
    "FOR JSON": "to_json(struct(*)) makes a text of a row",
}
"""Clauses of SQL that Spark does not have, up to the token that tells them, and what there is."""


def _check_clauses(tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for a clause of SQL that Spark does not have."""
    words = [t.upper for t in tokens]
    for at in range(2, len(tokens) - 1):
        for size in (2, 3) if tokens[at].kind == "word" else ():
            hint = _NOT_OF_SPARK.get(clause := " ".join(words[at : at + size]))
            if hint:
                raise SyntaxFault(
                    f"Spark has no {clause.rstrip(' (')}",
                    hint=hint,
                    span=tokens[at].span,
                    code="OTHER_CONSOLE",
                )


def _check_percent(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `LIMIT 50%` of DuckDB and `LIMIT 50 PERCENT`."""
    for at in (n for n, t in enumerate(tokens[:-2]) if t.upper == "LIMIT" and tokens[n + 1].kind == "number"):
        share, sign = tokens[at + 1], tokens[at + 2]
        behind = [t.upper for t in tokens[at + 3 : at + 4]]
        alone = not behind or behind[0] in (")", "OFFSET", "UNION")
        if sign.upper == "PERCENT" or (sign.text == "%" and alone):
            raise SyntaxFault(
                f"Spark has no {text[tokens[at].start : sign.end]}",
                hint=f"FROM … TABLESAMPLE ({share.text} PERCENT) takes about as many rows of a table",
                span=Span(share.start, sign.end),
                code="OTHER_CONSOLE",
            )


_OPTIONS = re.compile(r"\s*/\*\+\s*(OPTIONS|STATE_TTL|LOOKUP)\s*\((.*?)\)\s*\*/", re.IGNORECASE | re.DOTALL)
"""A comment of Flink beside a table, which Spark would not see."""


def _check_options(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `t /*+ OPTIONS('key' = 'value') */` of Flink, which is a comment to Spark."""
    hint = _OPTIONS.search(text) if "/*+" in text else None
    before = next((t for t in reversed(tokens) if hint and t.end <= hint.start()), None)
    if hint is None or before is None or (before.upper == "SELECT" and hint[1].upper == "OPTIONS"):
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
    found = list(parameters(tokens))
    if not any(p.written != p.name for p in found):
        return
    edits = [(p.start, p.end, p.own) for p in found]
    first = found[0]
    defined = " ".join(f"DEFINE {name} = '…';" for name in dict.fromkeys(p.name for p in found))
    raise SyntaxFault(
        f"the variable {text[first.start : first.end]} is not defined",
        detail="DEFINE, or \\set, sets a variable here, and ${name} stands for its value",
        proposal=f"{defined} {edited(text, edits).text};",
        span=Span(first.start, first.end),
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
    whole = edited(text, edits).text
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
    if [t.upper for t in tokens[last + 1 : last + 3]] == ["NOT", "ENFORCED"]:
        last += 2
    start = at - 1 if tokens[at - 1].text == "," else at
    return (tokens[start].start if start < at else tokens[at - 1].end, tokens[last].end, "")
