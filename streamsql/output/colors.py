"""Colours of the terminal: whether to use them, and a few that are readable on light and dark backgrounds.

The terminal is never queried for its background: one that does not answer would cause a delay.
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
    """Whether to use colours. preference: auto, always or never; terminal: whether the stream is one.

    The preference for this console overrides NO_COLOR, which is for all programs.
    """
    if preference != "auto":
        return preference == "always"
    return terminal and not env.get("NO_COLOR") and env.get("TERM", "dumb") not in ("", "dumb")


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal; False for a closed one."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if text else text


def unpainted(text: str) -> str:
    """A text without the escapes of `paint`."""
    return _PAINT.sub("", text)


_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_FIRST = re.compile(r"\A((?:.*?: )?)(error(?:\[[^\]\n]*\])?:)")
_CARET = re.compile(r"(?m)^( *\| *)(\^+)$")
_LABEL = re.compile(r"(?m)^(?:hint|detail|note|warning):")


def paint_error(text: str) -> str:
    """The text of `format_error` with colours."""
    text = _FIRST.sub(lambda m: m[1] + paint(m[2], FAULT), text, count=1)
    text = _CARET.sub(lambda m: m[1] + paint(m[2], FAULT), text)
    return paint_labels(text)


def paint_labels(text: str) -> str:
    """A text with labels such as `hint:` and `note:` at the beginning of lines in colour."""
    return _LABEL.sub(lambda m: paint(m[0], WORD), text)
