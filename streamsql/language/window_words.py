"""Windows in GROUP BY, as TUMBLE(ts, INTERVAL '5' MINUTE), and the Spark SQL that they are read as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from streamsql.language import sqlglot_nodes as exp
from streamsql.language.query import try_expression
from streamsql.language.token_groups import closing, items_of
from streamsql.language.tokens import Token, quote_name, tokenize

GROUP_WINDOWS = {
    "tumble": ("window", (0,)),
    "hop": ("window", (1, 0)),
    "session": ("session_window", (0,)),
}
"""A function of the event time in GROUP BY, folded → Spark's, and the places of its intervals."""

WINDOW_PARTS = {
    f"{window}_{part}": (window, form)
    for window in GROUP_WINDOWS
    for part, form in (
        ("start", "{0}.start"),
        ("end", "{0}.end"),
        ("rowtime", "({0}.end - INTERVAL 1 MICROSECOND)"),  # window_time() is refused beside its aggregation
    )
}
"""A function beside such a window in GROUP BY, folded → the window, and Spark's form of a part of it."""


@cache
def window_names() -> frozenset[str]:
    """The names of all of these, folded."""
    return frozenset({*GROUP_WINDOWS, *WINDOW_PARTS})


@dataclass
class Reading:
    """How an expression is read. text: in Spark's words; words: (as written, as read) for each word.

    event_time: the one column that is the event time, "" if that is not known; exact_distinct: whether
    count(DISTINCT x) is read, too; own: functions of these names, folded, are the user's.
    """

    event_time: str = ""
    exact_distinct: bool = False
    own: frozenset[str] = frozenset()
    words: list[tuple[str, str]] = field(default_factory=list)

    def of(self, text: str) -> str:
        """An expression in Spark's words."""
        tokens = tokenize(text, strict=False)
        out, end, at = "", 0, 0
        while at < len(tokens):
            after_dot = at > 0 and tokens[at - 1].text == "."
            opened = [token.text for token in tokens[at + 1 : at + 2]] == ["("] and not after_dot
            close = closing(tokens, at + 1) if opened and tokens[at].kind == "word" else len(tokens)
            read = self._call(text, tokens, at, close) if close < len(tokens) else None
            if read is None:
                at += 1
                continue
            form, last = read
            written = text[tokens[at].start : tokens[last].end]
            self.words.append((written, form))
            out += text[end : tokens[at].start] + form
            end, at = tokens[last].end, last + 1
        return out + text[end:]

    def _call(self, text: str, tokens: Sequence[Token], at: int, close: int) -> tuple[str, int] | None:
        """Spark's form of the call at that token, and its last token; None if it stays as it is."""
        name = tokens[at].text.casefold()
        pieces = _arguments(text, tokens[at + 2 : close])
        if name in self.own:
            return None
        if name in GROUP_WINDOWS:
            form = self._window(name, pieces)
            return (form, close) if form else None
        if name in WINDOW_PARTS:
            window, part = WINDOW_PARTS[name]
            form = self._window(window, pieces)
            return (part.format(form), close) if form else None
        if name == "count" and self.exact_distinct and tokens[at + 2].upper == "DISTINCT":
            return _distinct_count(text, tokens, at, close)
        return None

    def _window(self, name: str, pieces: list[str]) -> str:
        function, places = GROUP_WINDOWS[name]
        times = [interval_text(p) for p in pieces[-len(places) :]]
        moment = pieces[0] if len(pieces) == len(places) + 1 else ""
        if len(pieces) == len(places):
            moment = quote_name(self.event_time) if self.event_time else ""
        if not moment or not all(times):
            return ""
        return f"{function}({', '.join([moment, *(times[p] for p in places)])})"


def _arguments(text: str, inside: Sequence[Token]) -> list[str]:
    """The arguments of a call. inside: the tokens between its parentheses."""
    return [text[item[0].start : item[-1].end] for item in items_of(inside) if item]


def _distinct_count(text: str, tokens: Sequence[Token], at: int, close: int) -> tuple[str, int]:
    """count(DISTINCT x), with FILTER behind it, as the size of a set, which is exact."""
    columns = _arguments(text, tokens[at + 3 : close])
    value = columns[0]
    if len(columns) > 1:
        not_null = " AND ".join(f"({c}) IS NOT NULL" for c in columns)
        value = f"CASE WHEN {not_null} THEN struct({', '.join(columns)}) END"
    filtered, last = "", close
    if [token.upper for token in tokens[close + 1 : close + 3]] == ["FILTER", "("]:
        end = closing(tokens, close + 2)
        if end < len(tokens):
            filtered, last = " " + text[tokens[close + 1].start : tokens[end].end], end
    return f"CAST(size(collect_set({value}){filtered}) AS BIGINT)", last


def interval_text(text: str) -> str:
    """An interval as the text that window() takes, in quotes; "" for everything else."""
    expression = try_expression(text)
    tree = expression.tree if expression else None
    if isinstance(tree, exp.Interval) and tree.this is not None and tree.this.is_string:
        return f"'{tree.this.name} {tree.unit.name.lower()}'" if tree.unit else f"'{tree.this.name}'"
    if isinstance(tree, exp.Interval) and tree.this is not None and tree.unit:
        return f"'{tree.this.name} {tree.unit.name.lower()}'"
    return text if isinstance(tree, exp.Literal) and tree.is_string else ""
