"""Flags that take NAME=VALUE."""

from __future__ import annotations

from streamsql.errors import UsageFault


def name_value_pairs(given: list[str], flag: str) -> dict[str, str]:
    """The values by name of a flag that takes NAME=VALUE. Raises UsageFault."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFault(f"{flag} takes NAME=VALUE, not {text}")
        pairs[name] = value
    return pairs
