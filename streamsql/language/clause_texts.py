"""The text of a query by clause, for comparing two queries and showing the differences.

It uses the tokens only, because statement sets and queries that sqlglot cannot parse have no tree.
"""

from __future__ import annotations

from streamsql.language.tokens import Token, tokenize

_CLAUSES = frozenset("SELECT FROM WHERE GROUP HAVING QUALIFY UNION WITH ORDER LIMIT INSERT LATERAL".split())
_JOINS = frozenset("JOIN INNER LEFT RIGHT FULL OUTER SEMI ANTI CROSS".split())


def clauses_of(text: str) -> dict[str, list[str]]:
    """The parts of each clause of a query: every column, group and join; parentheses are kept whole."""
    clause, depth, part, parts = "SELECT", 0, list[Token](), dict[str, list[str]]()

    def done() -> None:
        if part:
            parts.setdefault(clause, []).append(_flat(part))
            part.clear()

    for token in tokenize(text, strict=False):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        word = token.upper if token.kind == "word" and depth == 0 else ""
        if word in _CLAUSES or (depth == 0 and token.text in (",", ";", "|>")):
            done()
            if word:
                clause = f"{word} BY" if word in ("GROUP", "ORDER") else word
            continue
        if word in _JOINS and clause == "FROM" and part and part[-1].upper not in _JOINS:
            done()
        if part or word != "BY":
            part.append(token)
    done()
    return parts


def _flat(tokens: list[Token]) -> str:
    """The tokens on one line."""
    text, before = "", None
    for token in tokens:
        close = token.text in (")", "]", ",", ".", "(", "[") and not (
            token.text in ("(", "[") and before is not None and before.kind == "sign"
        )
        joined = before is None or close or before.text in ("(", "[", ".")
        text += token.text if joined else " " + token.text
        before = token
    return text if len(text) <= 100 else text[:99] + "…"
