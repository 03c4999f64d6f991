"""The words that can follow in a query, by clause and by the previous word."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.language.tokens import Token
from streamsql.language.unfinished.place import Place

# The words of queries, for syntax highlighting.
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
# Words after a complete operand or relation, by clause.
AFTER_OPERAND = {
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
# Words that always follow a word.
AFTER_WORD = {
    "GROUP": ("BY",), "ORDER": ("BY",), "PARTITION": ("BY",), "LATERAL": ("VIEW",), "CROSS": ("JOIN",),
    "INNER": ("JOIN",), "LEFT": ("JOIN", "OUTER JOIN", "SEMI JOIN", "ANTI JOIN"), "OUTER": ("JOIN",),
    "RIGHT": ("JOIN", "OUTER JOIN"), "FULL": ("OUTER JOIN",), "SEMI": ("JOIN",), "ANTI": ("JOIN",),
    "IS": ("NULL", "NOT NULL", "DISTINCT FROM", "TRUE", "FALSE"), "NULLS": ("FIRST", "LAST"),
    "DELAY": ("OF",), "OF": ("INTERVAL",), "UNION": ("ALL", "SELECT"), "WITHIN": ("WATERMARK", "GROUP"),
}  # fmt: skip
UNITS = ("SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MILLISECONDS", "SECOND", "MINUTE", "HOUR", "DAY")
IN_EXPRESSION = ("CASE", "NOT", "NULL", "TRUE", "FALSE", "INTERVAL", "EXISTS")
IN_FROM = ("STREAM", "VALUES", "LATERAL", "STATE OF QUERY", "STATE OF CHECKPOINT", "LATE ROWS OF QUERY")
# Words before an expression.
_OPENS_EXPRESSION = frozenset(
    """SELECT DISTINCT ALL WHERE AND OR NOT ON BY HAVING QUALIFY CASE WHEN THEN ELSE BETWEEN IN LIKE ILIKE
    RLIKE IS DIV INTERVAL LIMIT OFFSET FROM JOIN USING AS OVER FILTER WITH ESCAPE VALUES SET EXCEPT
    INTERSECT WATERMARK""".split()
)


def ends_operand(tokens: list[Token]) -> bool:
    """Whether the tokens end with a complete expression or relation, so that no other can start."""
    last, before = tokens[-1], tokens[-2].upper if len(tokens) > 1 else ""
    if last.kind == "word":
        return before == "." or last.upper not in _OPENS_EXPRESSION
    if last.text == "*":
        return before in ("SELECT", "DISTINCT", "ALL", ",", ".", "(")
    return last.kind in ("string", "number", "quoted") or last.text in (")", "]")


def after_operand(tokens: list[Token], place: Place) -> Iterator[str]:
    """The words that can follow a complete operand or relation."""
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
        yield from AFTER_OPERAND.get(place.clause, ("SELECT",))
