"""The lengths in window() and session_window(), as far as they are literals: what Spark refuses of them
(TimeWindow and SessionWindow in its analyzer) is refused at its place in the statement.
"""

from __future__ import annotations

from collections.abc import Container

from streamsql.errors import RuleFault, Span
from streamsql.language.durations import window_length
from streamsql.language.expression import TIME_WINDOWS, Expression
from streamsql.language.query import try_expression
from streamsql.language.window_words import WINDOW_PARTS, Reading


def check_lengths(expression: Expression, own: Container[str]) -> None:
    """Raise SyntaxFault or RuleFault, with its span, if an expression is a window, or a field of one, whose
    lengths Spark does not take. Others than literals are left to Spark. own: the user's functions, folded.
    """
    call = expression.field[0] if expression.field else expression
    if call.call in _HOPS and call.call not in own:
        _check_hop(call)
    if call.call not in TIME_WINDOWS:
        return
    time, *lengths = call.arguments()
    session = call.call == "session_window"
    seconds = [
        window_length(e.literal, e.span, session=session, time=time.text)
        if isinstance(e.literal, str)
        else None
        for e in lengths
    ]
    for length, in_seconds in list(zip(lengths, seconds, strict=True))[:2]:
        if in_seconds is not None and in_seconds <= 0:
            raise RuleFault("a window has a length above 0", span=length.span, code="BAD_DURATION")
    size, slide = (*seconds, None, None)[:2]
    if not session and size is not None and slide is not None and slide > size:
        long, short = lengths[1], lengths[0]
        raise slide_above_size(
            short.text,
            long.text,
            first="length",
            hint=f"window({time.text}, {long.text}, {short.text})",
            span=long.span,
        )


_HOPS = frozenset({"hop", *(part for part, (window, _) in WINDOW_PARTS.items() if window == "hop")})


def _check_hop(call: Expression) -> None:
    """HOP(time, slide, size) in GROUP BY, and its parts in SELECT: the length comes last."""
    window = try_expression(Reading(event_time="ts").of("hop" + call.text[len(call.call) :]))
    lengths = window.arguments()[1:] if window and window.call == "window" else []
    size, slide = [str(length.literal) for length in lengths] or ("", "")
    seconds = [window_length(text, call.span, session=False) for text in (size, slide)]
    if seconds[0] is not None and seconds[1] is not None and seconds[1] > seconds[0]:
        time = [argument.text for argument in call.arguments()][:-2]
        swapped = ", ".join([*time, f"INTERVAL {size}", f"INTERVAL {slide}"])
        hint = f"{call.call.upper()}({swapped})"
        raise slide_above_size(size, slide, first="slide", hint=hint, span=call.span)


def slide_above_size(size: str, slide: str, *, first: str, hint: str, span: Span) -> RuleFault:
    """The fault of a sliding window whose slide is longer than the window. size, slide: as they are shown;
    first: which of them ("length" or "slide") the call takes first; hint: the call with the lengths swapped.
    """
    return RuleFault(
        f"windows of {size} cannot slide by {slide}",
        detail=f"they would leave out the rows between them; the {first} comes first",
        hint=hint,
        span=span,
        code="BAD_DURATION",
    )
