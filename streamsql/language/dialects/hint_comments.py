"""Hints of Flink beside a table, `t /*+ OPTIONS(…) */`: Spark's parser takes a hint behind SELECT only,
and the console would leave it out as a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamsql.errors import Span, SyntaxFault
from streamsql.language.dialects.other_definitions import own_options
from streamsql.language.tokens import Token

_OPTIONS = re.compile(r"\s*/\*\+\s*(OPTIONS|STATE_TTL|LOOKUP)\s*\((.*?)\)\s*\*/", re.IGNORECASE | re.DOTALL)
"""A comment of Flink beside a table, which Spark would not see."""


def check_comment(text: str, tokens: Sequence[Token]) -> None:
    """Raise SyntaxFault for `t /*+ OPTIONS('key' = 'value') */` of Flink, which is a comment to Spark."""
    hint = _OPTIONS.search(text) if "/*+" in text else None
    before = next((t for t in reversed(tokens) if hint and t.end <= hint.start()), None)
    if hint is None or before is None or (before.upper == "SELECT" and hint[1].upper == "OPTIONS"):
        return
    if any(t.start < hint.start() < t.end for t in tokens):
        return  # a text
    raise _options_fault(before.text, hint, hint.span())


def check_comment_behind(text: str, end: int, last: str) -> None:
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
