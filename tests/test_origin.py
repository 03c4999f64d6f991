"""The place of a character is known behind several readings of a text, one on top of the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamsql.errors import Span
from streamsql.language.edits import Edit, edited
from streamsql.language.origin import Origin

STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.text("xyz", max_size=3)), max_size=4)
"""Edits: the characters that stay before each, those that it replaces, and what stands there instead."""


def edits_of(text: str, steps: list[tuple[int, int, str]]) -> list[Edit]:
    edits: list[Edit] = []
    at = 0
    for before, length, own in steps:
        start = at + before
        if start > len(text):
            break
        at = min(len(text), start + length)
        edits.append((start, at, own))
    return edits


@given(st.text("ABCDEF", min_size=1, max_size=15), st.lists(STEPS, min_size=1, max_size=4))
def test_a_character_that_no_edit_has_touched_keeps_its_place(
    source: str, readings: list[list[tuple[int, int, str]]]
) -> None:
    text, origin = source, Origin()
    for steps in readings:
        own = edited(text, edits_of(text, steps))
        text, origin = own.text, origin.behind(own.points)
    for at, character in enumerate(text):
        span = origin.span(Span(at, at + 1))
        assert 0 <= span.start <= len(source) and span.end <= len(source) + 1
        if character.isupper():
            assert source[span.start : span.end] == character


def test_a_part_of_a_value_maps_to_all_that_it_stands_for() -> None:
    first = edited("SELECT a ? b", [(7, 12, "contains(a, b)")])
    second = edited(first.text, [(16, 17, "{x}")])
    assert second.text == "SELECT contains({x}, b)"
    origin = Origin().behind(first.points).behind(second.points)
    assert [origin.span(Span(at, at + 1)) for at in (0, 10, 17, 21)] == [Span(0, 1), *[Span(7, 12)] * 3]
