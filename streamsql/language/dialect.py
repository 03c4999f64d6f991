"""sqlglot's Spark dialect as the console uses it: the only place that builds tokenizers and parsers.

Composed of sqlglot's own classes rather than derived from its parser: where sqlglot's compiled form is
installed, an interpreted class cannot inherit from a compiled parser. A tokenizer may be derived.
"""

from __future__ import annotations

import logging
import threading
from functools import cache
from typing import Any

from streamsql.errors import Span


@cache
def _dialect() -> Any:
    """Imported when first needed: sqlglot takes longer to import than the prompt may take to appear."""
    from sqlglot.dialects.spark import Spark

    # It would write to the terminal that it takes a statement of Spark's for a command.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

    class StreamDialect(Spark):
        class Tokenizer(Spark.Tokenizer):
            # SHOW and the like are the console's to read; sqlglot would swallow them as opaque commands.
            COMMANDS = set()

    return StreamDialect()


_local = threading.local()


def raw_tokens(text: str) -> tuple[list[Any], int | None]:
    """sqlglot's tokens of a text, and the offset of what it could not read (an unclosed quote or comment);
    None when it read all.
    """
    from sqlglot.errors import TokenError

    # A tokenizer holds the text that it reads, so each thread has its own.
    tokenizer = getattr(_local, "tokenizer", None)
    if tokenizer is None:
        tokenizer = _local.tokenizer = _dialect().tokenizer()
    try:
        return tokenizer.tokenize(text), None
    except TokenError:
        # Its error names a stretch of text only; the tokenizer itself still stands where the token began.
        core = tokenizer._core
        return core.tokens, core._start


def parse_tokens(tokens: list[Any], text: str) -> tuple[Any, Span | None]:
    """The expression tree of the one query that tokens are; where they cannot be read, None and the place at
    which sqlglot stopped (None when it gave none). Raises RecursionError for what is nested very deeply.

    text: what the tokens' offsets count in.
    """
    from sqlglot.errors import ParseError
    from sqlglot.tokens import Token, TokenType

    retagged = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        # `window(` is a function; sqlglot reads WINDOW as the head of a clause.
        if (
            token.token_type == TokenType.WINDOW
            and after is not None
            and after.token_type == TokenType.L_PAREN
        ):
            token = Token(
                TokenType.VAR, token.text, line=token.line, col=token.col, start=token.start, end=token.end
            )
        retagged.append(token)
    try:
        trees = _dialect().parser().parse(retagged, text)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        at = (place.get("line"), place.get("col"))
        stopped = next((t for t in retagged if (t.line, t.col) == at), None)
        return None, Span(stopped.start, stopped.end + 1) if stopped else None
    except RecursionError:
        raise
    except Exception:
        # Its builders take arguments for granted: `map(, 1)` ends in a ValueError of Python.
        return None, None
    return (trees[0], None) if len(trees) == 1 else (None, None)


def name_token(name: str, start: int, end: int) -> Any:
    """A token of sqlglot that reads as a name and stands for the text from start to end."""
    from sqlglot.tokens import Token, TokenType

    return Token(TokenType.VAR, name, line=1, col=1, start=start, end=end - 1)
