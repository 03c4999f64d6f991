"""sqlglot as a reader of Spark queries: the only file that knows it.

Used where Spark is not at hand (`--check`): whether a query that the console's own grammar leaves
to Spark can be read at all. Spark itself stays the judge when a statement runs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from streamsql.errors import Span, SyntaxFault


@cache
def _dialect() -> Any:
    from sqlglot.dialects.spark import Spark
    from sqlglot.tokens import TokenType

    class SparkTokenizer(Spark.Tokenizer):
        COMMANDS = set()

    class StreamDialect(Spark):
        """Spark with `window(…)` readable as a grouping key; composed, since subclassed parsers
        crash where sqlglot's compiled form is installed.
        """

        Tokenizer = SparkTokenizer

        def tokenize(self, sql: str, **opts: Any) -> list[Any]:  # type: ignore[override]
            tokens = super().tokenize(sql, **opts)
            for token, after in zip(tokens, tokens[1:], strict=False):
                if token.token_type == TokenType.WINDOW and after.token_type == TokenType.L_PAREN:
                    token.token_type = TokenType.VAR
            return tokens

    return StreamDialect()


def check_query(text: str) -> SyntaxFault | None:
    """What is wrong with the grammar of a query, as far as sqlglot can tell; None when it reads it.

    The fault's span lies in text.
    """
    from sqlglot.errors import ParseError, SqlglotError

    try:
        _dialect().parse(text)
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        start = _offset(text, found.get("line") or 1, found.get("col") or 1)
        word = found.get("highlight") or ""
        return SyntaxFault(
            f"the query cannot be read at {word}" if word else "the query cannot be read",
            detail=str(found.get("description", "")).rstrip("."),
            span=Span(max(0, start - len(word)), max(start, 1)),
        )
    except SqlglotError:
        return SyntaxFault("the query cannot be read")
    return None


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(x) + 1 for x in lines[: line - 1]) + column
