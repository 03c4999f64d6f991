"""Whether there are colours, and the few there are: readable on light and dark backgrounds.

The terminal is never asked for its background: one that does not answer would be waited for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TextIO

BOLD = "1"
DIM = "2"
FAULT = "1;31"
WORD = "36"


def wants_color(preference: str, terminal: bool, env: Mapping[str, str]) -> bool:
    """Whether a stream gets colours. preference: auto, always or never; terminal: whether it is one.

    What the person said to this console comes before NO_COLOR, which is said to all programs.
    """
    if preference != "auto":
        return preference == "always"
    return terminal and not env.get("NO_COLOR") and env.get("TERM", "dumb") not in ("", "dumb")


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal; a closed one is none."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if text else text


def unpainted(text: str) -> str:
    """A text without what `paint` put around it."""
    return _PAINT.sub("", text)


_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_FIRST = re.compile(r"\A((?:.*?: )?)(error(?:\[[^\]\n]*\])?:)")
_CARET = re.compile(r"(?m)^( *\| *)(\^+)$")
_LABEL = re.compile(r"(?m)^(?:hint|detail|note|warning):")


def paint_error(text: str) -> str:
    """An error as `format_error` writes it, with colours laid over."""
    text = _FIRST.sub(lambda m: m[1] + paint(m[2], FAULT), text, count=1)
    text = _CARET.sub(lambda m: m[1] + paint(m[2], FAULT), text)
    return paint_labels(text)


def paint_labels(text: str) -> str:
    """`hint:`, `note:` and the like at the beginning of a line in their colour."""
    return _LABEL.sub(lambda m: paint(m[0], WORD), text)
