"""What the text of an expression tells: a column, a place in a list, a call, event time."""

from __future__ import annotations

from streamsql.language import functions
from streamsql.language.tokens import tokenize, unquote

MOST_ROWS = 2**31 - 1


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as Spark takes it for LIMIT and for an item's place."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MOST_ROWS


def ordinal(text: str) -> int | None:
    """The place of an item in the SELECT list that `2` or `(2)` names."""
    inside = [t.text for t in tokenize(text) if t.text not in ("(", ")")]
    return int(inside[0]) if len(inside) == 1 and is_whole(inside[0]) else None


def names_in(text: str) -> set[str]:
    """The words of an expression that may be columns (the last one of a dotted name), folded."""
    tokens = tokenize(text)
    after = [t.text for t in tokens[1:]] + [""]
    return {
        unquote(t).casefold()
        for t, follows in zip(tokens, after, strict=True)
        if t.kind in ("word", "quoted") and follows not in ("(", ".")
    }


def direction(text: str) -> tuple[str, str]:
    """`x DESC NULLS LAST` → ("x", "desc_nulls_last")."""
    tokens = tokenize(text)
    nulls, method = "", "asc"
    if len(tokens) > 2 and tokens[-2].upper == "NULLS":
        nulls = f"_nulls_{tokens[-1].text.lower()}"
        tokens = tokens[:-2]
    if len(tokens) > 1 and tokens[-1].upper in ("ASC", "DESC"):
        method = tokens[-1].text.lower()
        tokens = tokens[:-1]
    return text[: tokens[-1].end], method + nulls


def column(text: str) -> str:
    """The folded name of the column that an expression is: k for `k` and `t.k`; empty for others."""
    tokens = tokenize(text)
    plain = len(tokens) in (1, 3) and tokens[0].kind in ("word", "quoted")
    if not plain or (len(tokens) == 3 and tokens[1].text != "."):
        return ""
    return tokens[-1].text.strip("`").casefold()


def call_name(text: str) -> str:
    """`window` for `window(ts, '5 minutes')`; empty when the text is not one call."""
    tokens = tokenize(text)
    if len(tokens) > 2 and tokens[1].text == "(" and functions.closing(tokens, 1) == len(tokens) - 1:
        return tokens[0].text.lower()
    return ""


def carries(item: str, key: str) -> bool:
    """Whether an output column tells the groups of a key apart: it is the key, or for a window its
    start or end (a session's start, since sessions of one key do not overlap).
    """
    if functions.same(item, key):
        return True
    last = functions.normal(item)
    name = call_name(key) or functions.normal(key)[-1]
    if last == (name,) and name in functions.WINDOWS:
        return True  # the window as a whole
    fields = (("start",), ("end",))
    if len(last) == 3 and last[0] == name and last[1] == "." and (last[2],) in fields:
        return True
    # t.k and k name the same column when one of them is bare.
    a, b = functions.normal(item), functions.normal(key)
    return len(a) + len(b) == 4 and a[-1] == b[-1] and (len(a) == 1 or len(b) == 1)


def is_event_time(text: str, event_time: frozenset[str], unmarked: frozenset[str] = frozenset()) -> bool:
    """Whether an expression holds the event time of a watermark: the column, or a window of it.

    event_time: the columns that do; unmarked: qualified names that do not.
    """
    tokens = tokenize(text)
    names = [t.text.strip("`").casefold() for t in tokens]
    if "".join(names) in unmarked:
        return False
    if len(tokens) in (1, 3) and names[-1] in event_time and (len(tokens) == 1 or tokens[1].text == "."):
        return True
    if call_name(text) in ("window", "session_window", "window_time") and len(tokens) > 3:
        comma = next((i for i, t in enumerate(tokens) if t.text == ","), len(tokens) - 1)
        return is_event_time(text[tokens[2].start : tokens[comma - 1].end], event_time, unmarked)
    return False
