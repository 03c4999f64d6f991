"""The terminals of the grammar: names, paths, options, expressions.

Each is named after its completion. A terminal matches the tokens from a position on and returns the position
after the match and its value, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamsql.language.token_groups import CLOSING, outside
from streamsql.language.tokens import NOT_A_NAME, Token, unquote

Terminal = Callable[[Sequence[Token], int], tuple[int, str] | None]


def _one(accepts: Callable[[Token], bool]) -> Terminal:
    """A terminal of one token."""

    def match(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
        return (at + 1, unquote(tokens[at])) if at < len(tokens) and accepts(tokens[at]) else None

    return match


_any_name = _one(lambda token: token.kind in ("word", "quoted"))
"""A name in a position where no clause can start, such as an alias after AS."""
_name = _one(lambda t: t.kind == "quoted" or (t.kind == "word" and t.upper not in NOT_A_NAME))


def dotted(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    name = _name(tokens, at)
    while name and name[0] + 1 < len(tokens) and tokens[name[0]].text == ".":
        more = name[0] + 1
        if tokens[more].kind not in ("word", "quoted"):
            break
        name = more + 1, f"{name[1]}.{unquote(tokens[more])}"
    return name


def _target(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    name = dotted(tokens, at)
    computed = (
        name and name[1].upper() == "IDENTIFIER" and [t.text for t in tokens[name[0] : name[0] + 1]] == ["("]
    )
    return None if computed else name  # IDENTIFIER('a' || 'b') is a name that only Spark computes


def _hyphened(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    # A connector's name can be a keyword, such as values.
    name = _any_name(tokens, at)
    while name and name[0] + 1 < len(tokens) and tokens[name[0]].text == "-":
        name = name[0] + 2, f"{name[1]}-{tokens[name[0] + 1].text}"
    return name


def _kind(kind: str) -> Terminal:
    return _one(lambda token: token.kind == kind)


def _signed_number(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    sign = at < len(tokens) and tokens[at].text in "+-"
    number = _kind("number")(tokens, at + sign)
    return (number[0], tokens[at].text + number[1]) if number and sign else number


_KEY_PARTS = ("word", "quoted", "number")


def _joins_key(tokens: Sequence[Token], at: int) -> bool:
    """Whether the token at that position joins two parts of a key: a dot, or a hyphen without spaces
    (`a -5` is the key a and a number).
    """
    if at + 1 >= len(tokens) or tokens[at + 1].kind not in _KEY_PARTS:
        return False
    adjacent = tokens[at - 1].end == tokens[at].start and tokens[at].end == tokens[at + 1].start
    return tokens[at].text == "." or (tokens[at].text == "-" and adjacent)


def _option_key(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    if at < len(tokens) and tokens[at].kind == "string":
        return at + 1, unquote(tokens[at])
    if at >= len(tokens) or tokens[at].kind not in _KEY_PARTS:
        return None
    end = at + 1
    while _joins_key(tokens, end):
        end += 2
    return end, "".join(unquote(t) for t in tokens[at:end])


def _option_value(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    values = (terminal(tokens, at) for terminal in (_kind("string"), _signed_number, _kind("word")))
    return next((value for value in values if value), None)


QUERY_HEADS = frozenset(["SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"])


def _balanced(tokens: Sequence[Token], at: int, stop: Callable[[int], bool]) -> int:
    """The position of the first token at depth 0 for which stop is true, or of an unmatched `)` or `]`."""
    ends = (i for i in outside(tokens, at) if tokens[i].text in CLOSING or stop(i))
    return next(ends, max(at, len(tokens)))


def _raw(tokens: Sequence[Token], start: int, end: int) -> tuple[int, str] | None:
    """Tokens [start, end) as a terminal without a value; its text is read by span."""
    return (end, "") if end > start else None


def _query(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    first = at
    while first < len(tokens) and tokens[first].text == "(":
        first += 1
    if first == len(tokens) or tokens[first].kind != "word" or tokens[first].upper not in QUERY_HEADS:
        return None
    if tokens[first].upper == "WITH" and _word(tokens, behind_with(tokens, first)) in _CHANGES:
        return None
    return _raw(tokens, at, _balanced(tokens, at, lambda i: tokens[i].text == ";" or _is_insert(tokens, i)))


_CHANGES = frozenset(("INSERT", "DELETE", "UPDATE", "MERGE"))
"""The statements other than queries that may stand behind WITH."""


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].upper if at < len(tokens) else ""


def _is_insert(tokens: Sequence[Token], at: int) -> bool:
    return _word(tokens, at) == "INSERT" and _word(tokens, at + 1) in ("INTO", "OVERWRITE")


def behind_with(tokens: Sequence[Token], at: int) -> int:
    """The position of the word behind the queries of the WITH that stands at a position."""
    for number in outside(tokens, at + 1):
        closed = tokens[number - 1].text == ")"
        if closed and tokens[number].kind == "word" and tokens[number].upper not in ("AS", "MAX"):
            return number
    return len(tokens)


def _query_start(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """WITH … and FROM … before INSERT INTO."""
    begin = behind_with(tokens, at) if _word(tokens, at) == "WITH" else at
    if _word(tokens, begin) == "FROM":
        begin = _balanced(tokens, begin, lambda i: tokens[i].text == ";" or _is_insert(tokens, i))
    return _raw(tokens, at, begin) if _is_insert(tokens, begin) else None


ENDS_EXPRESSION = frozenset(
    """FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION EXCEPT MINUS
    INTERSECT LATERAL WINDOW JOIN INNER LEFT RIGHT FULL CROSS NATURAL ON USING QUALIFY AS DELAY
    TABLESAMPLE PIVOT UNPIVOT ANTI SEMI ASOF""".split()
)


def _expression(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    def stop(i: int) -> bool:
        token = tokens[i]
        if token.kind != "word":
            return token.text in (",", ";", "|>") or token.kind == "hint"
        if token.upper not in ENDS_EXPRESSION:
            return False
        after = [t.upper for t in tokens[i + 1 : i + 3]]
        called = after[:1] == ["("]
        if token.upper in ("LEFT", "RIGHT") and called:
            return False
        if token.upper == "WINDOW":
            return after[1:] == ["AS"]
        if i == at and token.upper in ("OFFSET", "DELAY", "MINUS", "PIVOT", "UNPIVOT"):
            return False
        distinct_from = token.upper == "FROM" and i and tokens[i - 1].upper == "DISTINCT"
        field_name = i and tokens[i - 1].text == "."
        within_group = token.upper == "GROUP" and i and tokens[i - 1].upper == "WITHIN"
        star_except = token.upper == "EXCEPT" and i > at and tokens[i - 1].text == "*" and called
        return not (distinct_from or field_name or within_group or star_except)

    return _raw(tokens, at, _balanced(tokens, at, stop))


def _pivot_values(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """The aggregates of a PIVOT, up to its FOR."""
    return _raw(tokens, at, _balanced(tokens, at, lambda i: tokens[i].upper == "FOR"))


def _relation_alias(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    if at < len(tokens) and tokens[at].upper in ENDS_EXPRESSION | {"WATERMARK"}:
        return None
    return _name(tokens, at)


def _rest(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    return _raw(tokens, at, len(tokens))


_HEADS_OF_LINES = frozenset(
    """BEGIN IF CASE WHILE FOR LOOP REPEAT DECLARE END ELSE ELSEIF WHEN UNTIL""".split()
)


def _inner(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """A statement inside of a compound one, which is none itself."""
    return None if _word(tokens, at) in _HEADS_OF_LINES else _to_semicolon(tokens, at)


def _declared(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """A variable or a condition behind DECLARE, and no handler."""
    return None if _word(tokens, at + 1) == "HANDLER" else _to_semicolon(tokens, at)


def _to_semicolon(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    end = next((i for i in range(at, len(tokens)) if tokens[i].text == ";"), len(tokens))
    return _raw(tokens, at, end) if end < len(tokens) else None


_AFTER_CONDITION = frozenset(("THEN", "DO", "WHEN", "END"))


def _condition(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """A condition, or a query, of a compound statement, up to THEN, DO, WHEN or END."""
    depth = 0
    for end in range(at, len(tokens)):
        token = tokens[end]
        word = token.upper if not (end and tokens[end - 1].text == ".") else ""
        if depth == 0 and word in _AFTER_CONDITION:
            return _raw(tokens, at, end)
        depth += (word in ("(", "CASE")) - (word in (")", "END"))
        if word == ";" or depth < 0:
            break
    return None


# The description of each terminal in "expected …".
TERMINALS: dict[str, tuple[Terminal, str]] = {
    "NewName": (_name, "a name"),
    "StreamName": (_name, "the name of a stream"),
    "SinkName": (_name, "the name of a sink"),
    "LiveTableName": (_name, "the name of a live table"),
    "ChangeName": (_name, "the name of a set of staged changes"),
    "QueryName": (_name, "the name of a query"),
    "Target": (_target, "the name of a sink, stream or table"),
    "RelationName": (dotted, "the name of a stream or table"),
    "ViewName": (_name, "the name of a view"),
    "FunctionName": (dotted, "the name of a function"),
    "Alias": (_any_name, "an alias"),
    "RelationAlias": (_relation_alias, "an alias"),
    "ColumnName": (dotted, "a column"),
    "Connector": (_hyphened, "a connector"),
    "FormatName": (_name, "a format"),
    "OptionKey": (_option_key, "an option"),
    "OptionValue": (_option_value, "a quoted value"),
    "SettingKey": (_option_key, "a setting"),
    "Variable": (_name, "a variable"),
    "String": (_kind("string"), "a quoted string"),
    "Path": (_kind("string"), "a quoted path"),
    "Number": (_signed_number, "a number"),
    "Word": (_kind("word"), "a word"),
    "TypeName": (_kind("word"), "a type"),
    "Expression": (_expression, "an expression"),
    "PivotValues": (_pivot_values, "aggregates"),
    "Query": (_query, "a query"),
    "QueryStart": (_query_start, "WITH or FROM"),
    "Rest": (_rest, "the rest of the statement"),
    "Condition": (_condition, "a condition"),
    "LoopQuery": (_condition, "a query"),
    "Inner": (_inner, "a statement"),
    "Declared": (_declared, "a variable"),
}
