"""Maps spans of a text to spans of its source: the text was cut out of the source, or its `${name}` were
replaced.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
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

    def behind(self, points: Sequence[tuple[int, int]]) -> Origin:
        """The origin of a text that these points map to the text of this origin."""
        joined: list[tuple[int, int]] = []
        ends = 0
        for offset, linear, start, end in self._joined(points):
            if len(joined) % 2 == 0 and joined:  # a value ends where the next point is
                joined.append((offset, ends))
                if linear and start == ends:
                    continue
            if linear == bool(len(joined) % 2):  # an empty part lies between
                joined.append((offset, start))
            joined.append((offset, start))
            ends = end
        if joined and len(joined) % 2 == 0:
            joined.append((sys.maxsize, ends))
        return Origin(tuple(joined))

    def _joined(self, points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bool, int, int]]:
        """(offset in the text, whether it advances with the source, start and end in the source) of each part
        of a text that points map to the text of this origin.
        """
        if not self.points:
            return
        for number, (offset, place) in enumerate(points):
            last = number + 1 == len(points)
            length = sys.maxsize - offset if last else points[number + 1][0] - offset
            if length > 0 and number % 2:
                end = place if last else points[number + 1][1]
                span = self.span(Span(place, max(end, place + 1)))
                yield offset, False, span.start, span.end if end > place else span.start
            while length > 0 and number % 2 == 0:
                at = self._point(place)
                begins, start = self.points[at]
                behind = self.points[at + 1] if at + 1 < len(self.points) else (sys.maxsize, start)
                if at % 2 == 0:
                    yield offset, True, start + place - begins, 0
                else:
                    yield offset, False, start, behind[1]
                if at + 1 >= len(self.points):
                    break
                step = behind[0] - place
                offset, place, length = offset + step, behind[0], length - step

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


def edited(text: str, edits: Mapping[Span, str], start: int = 0) -> str:
    """A text with other words in some places. start: where the text begins in what the spans are of."""
    for span in sorted(edits, key=lambda s: s.start, reverse=True):
        text = text[: span.start - start] + edits[span] + text[span.end - start :]
    return text


def located(value: Any, origin: Origin, **fields: Any) -> Any:
    """A statement, or a part of one, with its spans mapped to the source of its text. fields: those with
    other values, which stay as they are.
    """
    if isinstance(value, Span):
        return origin.span(value)
    if isinstance(value, tuple):
        return tuple(located(part, origin) for part in value) if value else value
    changes: dict[str, Any] = {}
    for name in _placed_fields(value.__class__):
        part = getattr(value, name)
        if isinstance(part, Span):
            changes[name] = origin.span(part)
        elif isinstance(part, Origin):
            spliced = getattr(value, "spliced", False)
            changes[name] = origin.behind(part.points) if spliced else origin.part(value.span.start)
        elif part and not isinstance(part, str):
            changes[name] = located(part, origin)
    changes |= fields
    return replace(value, **changes) if changes else value


@cache
def _placed_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that can contain a span; empty for other classes."""
    plain = {f"{name}{rest}" for name in ("str", "int", "float", "bool") for rest in ("", " | None")}
    return tuple(f.name for f in fields(kind) if f.type not in plain) if is_dataclass(kind) else ()
