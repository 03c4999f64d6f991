"""Reads the right-hand side of a grammar rule, part by part."""

from __future__ import annotations

import re

_LEX = re.compile(r"'([^']+)'|(List)\(|([A-Za-z]\w*)|([()/?*+~])|\s+")


class Reader:
    """Base class for readers of a rule's right-hand side; subclasses convert each part."""

    def __init__(self, text: str) -> None:
        self.parts = [m for m in _LEX.finditer(text) if not m.group().isspace()]
        self.at = 0

    def peek(self) -> str:
        return self.parts[self.at].group() if self.at < len(self.parts) else ""

    def take(self) -> re.Match[str]:
        self.at += 1
        return self.parts[self.at - 1]
