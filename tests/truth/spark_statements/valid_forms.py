"""Other forms of a query that Spark takes: each is valid wherever the query itself is."""

from __future__ import annotations

import re
from collections.abc import Callable

from golden_files import GoldenStatement

from streamsql.language.tokens import Token, tokenize

NAME = "spark_statements_form"
"""The view, table or relation that a form names."""
_QUERY = re.compile(r"(?:SELECT|WITH|VALUES|TABLE|FROM)\b", re.IGNORECASE)
_NO_QUERY = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{[^}]*\}")


def is_query(statement: GoldenStatement) -> bool:
    """Whether a statement is a query that Spark runs, and that can be put into another one."""
    text = statement.text.lstrip("( \n\t")
    return bool(not statement.error and _QUERY.match(text) and not _NO_QUERY.search(text))


def _with_gaps(gap: Callable[[int], str], word: Callable[[str], str] = str) -> Callable[[str], str]:
    """Another text of the same tokens. gap: what stands in place of each gap, by its number; word: what stands
    in place of a word.
    """

    def form(text: str) -> str:
        tokens = tokenize(text)
        parts, end = list[str](), tokens[0].start
        for number, token in enumerate(tokens):
            parts += [gap(number) if end < token.start else "", _written(token, word)]
            end = token.end
        references = iter(_REFERENCE.findall(text))  # the case of a variable's name counts
        return _REFERENCE.sub(lambda _: next(references), "".join(parts))

    return form


def _written(token: Token, word: Callable[[str], str]) -> str:
    return word(token.text) if token.kind == "word" else token.text


def _around(before: str, after: str = "") -> Callable[[str], str]:
    return lambda text: f"{before}{text}{after}"


def _one_blank(number: int) -> str:
    return " "


FORMS: dict[str, Callable[[str], str]] = {
    "one line": _with_gaps(_one_blank),
    "comments": _with_gaps(lambda number: f" /* {number}; 'x */ "),
    "comments of lines": _with_gaps(lambda number: f" -- {number}; it's \n"),
    "lower case": _with_gaps(_one_blank, str.lower),
    "upper case": _with_gaps(_one_blank, str.upper),
    "swapped case": _with_gaps(_one_blank, str.swapcase),
    "EXPLAIN": _around("EXPLAIN "),
    "EXPLAIN FORMATTED": _around("EXPLAIN FORMATTED "),
    "DESCRIBE QUERY": _around("DESCRIBE QUERY "),
    "view": _around(f"CREATE OR REPLACE TEMPORARY VIEW {NAME} AS "),
    "CTAS": _around(f"CREATE TABLE {NAME} USING parquet AS\n"),
    "WITH": _around(f"WITH {NAME} AS (\n", f"\n) SELECT * FROM {NAME}"),
    "sub-query": _around("SELECT * FROM (\n", f"\n) AS {NAME}"),
    "EXISTS": _around("SELECT 1 WHERE EXISTS (\n", "\n)"),
    "parentheses": _around("(\n", "\n)"),
    "UNION ALL": lambda text: f"(\n{text}\n) UNION ALL (\n{text}\n)",
    "INSERT": _around(f"INSERT INTO {NAME} "),
}
"""The 17 forms, by name."""
