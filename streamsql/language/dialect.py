"""sqlglot's Spark dialect as the console uses it: the only place that builds tokenizers and parsers.

It is composed of sqlglot's own classes and does not subclass the parser: an interpreted class cannot inherit
from a parser of sqlglot's compiled form. The tokenizer can be subclassed.
"""

from __future__ import annotations

import logging
import re
import threading
from functools import cache
from typing import Any

from streamsql.errors import Span


@cache
def _dialect() -> Any:
    """The dialect, imported on first use: importing sqlglot would delay the prompt."""
    from sqlglot.dialects.spark import Spark

    # sqlglot would log to the terminal that it treats a Spark statement as a command.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

    class StreamDialect(Spark):
        class Tokenizer(Spark.Tokenizer):
            # The console parses SHOW and similar statements; sqlglot would read them as opaque commands.
            COMMANDS = set()

    return StreamDialect()


_local = threading.local()


def raw_tokens(text: str) -> tuple[list[Any], int | None]:
    """sqlglot's tokens of a text, and the offset of the part that it could not read (an unclosed quote or
    comment), or None. A text in $$ … $$ or $tag$ … $tag$ is one string.
    """
    if "/*/*" in text:
        text = _without_inner_comments(text)
    tokens, stopped = _read(text)
    if "$" not in text:
        return tokens, stopped
    masked, begin = text, 0
    while (opening := _dollars(tokens, text, begin)) is not None:
        begin = text.find(opening[0], opening.end())
        if begin < 0:
            return _whole_names([t for t in tokens if t.end < opening.start()]), opening.start()
        begin += len(opening[0])
        inside = re.sub(r"[^\n]", "x", text[opening.start() + 1 : begin - 1])
        masked = f"{masked[: opening.start()]}'{inside}'{masked[begin:]}"
        tokens, stopped = _read(masked)
    return _whole_names(tokens), stopped


_BEFORE_COMMENT = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*""", re.DOTALL)
_COMMENT_ENDS = re.compile(r"/\*|\*/")


def _without_inner_comments(text: str) -> str:
    """The text with an x in place of each character inside of a bracketed comment: sqlglot reads the `/*/*`
    of a comment that begins with another one as one beginning.
    """
    parts, at = list[str](), 0
    while found := _BEFORE_COMMENT.search(text, at):
        parts.append(text[at : found.end()])
        at, depth = found.end(), int(found.group() == "/*")
        while depth and (sign := _COMMENT_ENDS.search(text, at)):
            depth += 1 if sign.group() == "/*" else -1
            inside = sign.end() if depth else sign.start()
            parts.append(re.sub(r"[^\n]", "x", text[at:inside]))
            parts.append("" if depth else "*/")
            at = sign.end()
    return "".join([*parts, text[at:]])


_DOLLARS = re.compile(r"(?<![\w$])\$(?:[A-Za-z_]\w*)?\$")


def _dollars(tokens: list[Any], text: str, begin: int) -> re.Match[str] | None:
    """The first $$ or $tag$ from an offset on that stands outside of quotes and comments."""
    signs = (t.start for t in tokens if t.start >= begin and t.text == "$")
    return next((found for at in signs if (found := _DOLLARS.match(text, at))), None)


def _read(text: str) -> tuple[list[Any], int | None]:
    from sqlglot.errors import TokenError

    # A tokenizer keeps the text as state, so each thread has its own.
    tokenizer = getattr(_local, "tokenizer", None)
    if tokenizer is None:
        tokenizer = _local.tokenizer = _dialect().tokenizer()
    try:
        return tokenizer.tokenize(text), None
    except TokenError:
        # The error contains only a piece of text; the tokenizer's state still has the token's start.
        core = tokenizer._core
        return core.tokens, core._start


def _whole_names(tokens: list[Any]) -> list[Any]:
    """Tokens with names such as clicks$malformed as one: sqlglot would read an alias."""
    whole: list[Any] = []
    for token in tokens:
        parts = [*whole[-2:], token]
        adjacent = len(parts) == 3 and parts[0].end + 1 == parts[1].start == parts[1].end == token.start - 1
        if adjacent and parts[1].text == "$" and all(p.text.isidentifier() for p in (parts[0], token)):
            name = f"{parts[0].text}${token.text}"
            whole[-2:] = [name_token(name, parts[0].start, token.end + 1)]
        else:
            whole.append(token)
    return whole


def parse_tokens(tokens: list[Any], text: str) -> tuple[Any, Span | None]:
    """The expression tree of a query; if sqlglot cannot parse it, None and the position of the error (None if
    sqlglot gave no position). Raises RecursionError for a query that is nested too deeply.

    text: the text that the tokens' offsets refer to.
    """
    from sqlglot.errors import ParseError

    retagged = _retagged(tokens)
    try:
        trees = _dialect().parser().parse(retagged, text)
    except ParseError as error:
        return None, _place_of(error, retagged)
    except RecursionError:
        raise
    except Exception:
        # Its builders do not check for missing arguments: `map(, 1)` raises Python's ValueError.
        return None, None
    return (trees[0], None) if len(trees) == 1 else (None, None)


def parse_unfinished(tokens: list[Any], text: str) -> tuple[Any, Span | None]:
    """The expression tree of the part of a query that sqlglot can parse, None for none; and, if a part is
    left, the first token that sqlglot did not expect. Raises RecursionError as parse_tokens does.
    """
    from sqlglot.errors import ErrorLevel

    retagged = _retagged(tokens)
    parser = _dialect().parser(error_level=ErrorLevel.IGNORE)
    try:
        trees = parser.parse(retagged, text)
    except RecursionError:
        raise
    except Exception:
        return None, None
    tree = trees[0] if trees else None
    is_left = parser.errors and "Unexpected token" in (parser.errors[-1].errors[0]["description"] or "")
    return tree, _place_of(parser.errors[0], retagged) if is_left else None


def _retagged(tokens: list[Any]) -> list[Any]:
    """The tokens with `window(` and `session(` as functions, which sqlglot reads as the start of a clause."""
    from sqlglot.tokens import Token, TokenType

    retagged = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if (
            token.token_type in (TokenType.WINDOW, TokenType.SESSION)
            and after is not None
            and after.token_type == TokenType.L_PAREN
        ):
            token = Token(
                TokenType.VAR, token.text, line=token.line, col=token.col, start=token.start, end=token.end
            )
        retagged.append(token)
    return retagged


def _place_of(error: Any, tokens: list[Any]) -> Span | None:
    """The position of the token that an error of sqlglot's parser names; None if it names none."""
    place = error.errors[0] if error.errors else {}
    at = (place.get("line"), place.get("col"))
    stopped = next((t for t in tokens if (t.line, t.col) == at), None)
    return Span(stopped.start, stopped.end + 1) if stopped else None


def name_token(name: str, start: int, end: int) -> Any:
    """A sqlglot token for a name that replaces the text from start to end."""
    from sqlglot.tokens import Token, TokenType

    return Token(TokenType.VAR, name, line=1, col=1, start=start, end=end - 1)
