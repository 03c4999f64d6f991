"""Maps spans of a text to spans of its source: the text was cut out of the source, or its `${name}` were
replaced.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any

from streamsql.errors import Span, StreamsqlError


@dataclass(frozen=True, slots=True)
class Origin:
    """points: pairs (offset in the text, offset in the source), in order. After the first pair, both offsets
    advance together. After the second comes the value of a `${name}`, whose characters all map to the whole
    `${name}`. Further pairs alternate in the same way.
    """

    points: tuple[tuple[int, int], ...] = ((0, 0),)

    @classmethod
    def of(cls, span: Span | None) -> Origin:
        """The origin of generated text: all of it maps to span in the source; None for no position."""
        return cls(((-1, span.start), (-1, span.start), (sys.maxsize, span.end)) if span else ())

    def part(self, start: int) -> Origin:
        """The origin of the rest of the text, from an offset on."""
        return Origin(tuple((offset - start, place) for offset, place in self.points))

    def within(self, start: int) -> Origin:
        """This origin in a larger source that contains this source from start on."""
        return Origin(tuple((offset, place + start) for offset, place in self.points))

    def span(self, span: Span) -> Span:
        """The span of the source for a span of the text. A part of a value maps to the whole `${name}`."""
        if not span or not self.points:
            return Span(0, 0)
        first, last = self._point(span.start), self._point(max(span.start, span.end - 1))
        start, end = self.points[first][1], self.points[last][1]
        if first % 2 == 0:
            start += span.start - self.points[first][0]
        if last % 2 == 0:
            end += span.end - self.points[last][0]
        else:
            end = self.points[last + 1][1]
        return Span(start, max(start + 1, end))

    def _point(self, offset: int) -> int:
        return max(0, bisect_right(self.points, offset, key=lambda point: point[0]) - 1)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Map the spans of errors raised in the body from the text to the source."""
        try:
            yield
        except StreamsqlError as error:
            if error.span is not None:
                error.span = self.span(error.span)
            raise


def located(value: Any, origin: Origin) -> Any:
    """A statement, or a part of one, with its spans mapped to the source of its text."""
    if isinstance(value, Span):
        return origin.span(value)
    if isinstance(value, tuple):
        return tuple(located(each, origin) for each in value) if value else value
    changes: dict[str, Any] = {}
    for name in _placed_fields(value.__class__):
        part = getattr(value, name)
        changes[name] = located(part, origin)
        if isinstance(part, Origin):
            changes[name] = origin.part(value.span.start)
    return replace(value, **changes) if changes else value


@cache
def _placed_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that can contain a span; empty for other classes."""
    plain = {f"{name}{rest}" for name in ("str", "int", "float", "bool") for rest in ("", " | None")}
    return tuple(f.name for f in fields(kind) if f.type not in plain) if is_dataclass(kind) else ()
