"""Names and descriptions of Spark's functions and settings, for completion and help.

They come from reference.json, which tests/make_reference.py generates and which is read on first use.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Function(NamedTuple):
    """signature: its call syntax; kind: Spark's group of functions, such as agg, datetime or string."""

    name: str
    signature: str
    meaning: str
    kind: str

    @property
    def takes_nothing(self) -> bool:
        return self.signature == f"{self.name}()"


class Setting(NamedTuple):
    """A setting that SET can change. choices: its values, if there are only a few."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...]


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return content


@cache
def keywords() -> frozenset[str]:
    """The words of Spark's grammar, upper case."""
    return frozenset(_content()["keywords"])


@cache
def functions() -> dict[str, Function]:
    """Name → function, sorted by name."""
    return {name: Function(name, *rest) for name, rest in _content()["functions"].items()}


@cache
def settings() -> dict[str, Setting]:
    """Key → setting, sorted by key."""
    return {
        name: Setting(name, default, meaning, _choices(choices))
        for name, (default, meaning, choices) in _content()["settings"].items()
    }


def _choices(text: str) -> tuple[str, ...]:
    if text == "boolean":
        return ("true", "false")
    return tuple(text.split("|")) if text else ()
