"""The synopsis of a rule, for HELP: CREATE [OR REPLACE] STREAM name …"""

from __future__ import annotations

import re

from streamsql.language.grammar import Grammar
from streamsql.language.grammar_reader import Reader


def synopsis(grammar: Grammar, rule: str) -> str:
    """A grammar rule on one line. Small rules are expanded, others are named by `rule_label`."""
    text = _Synopsis(grammar, grammar.rules[rule], (rule,)).alternatives()
    return re.sub(r"\s+([,)])|([(])\s+", r"\1\2", text)


def rule_label(name: str) -> str:
    """The name of a rule that a synopsis does not expand: <stream source>."""
    return "<" + re.sub(r"(?<!^)([A-Z])", r" \1", name).lower() + ">"


_SHORT = {"String": "'text'", "Path": "'path'", "Number": "n", "Rest": "…", "NewName": "name",
          "StreamName": "name", "SinkName": "name", "LiveTableName": "name", "QueryName": "name",
          "ViewName": "name", "ChangeName": "name", "ColumnName": "column",
          "OptionKey": "key", "OptionValue": "'value'",
          "SettingKey": "key", "FormatName": "format", "RelationName": "name"}  # fmt: skip
TERMS = {
    "Duration": "INTERVAL 10 MINUTES, INTERVAL '10' MINUTE or '10 minutes'",
    "Type": "a type of Spark: INT, STRING, TIMESTAMP, DECIMAL(10, 2), ARRAY<INT>, MAP<STRING, INT>, "
    "STRUCT<a: INT, b: STRING>",
}
"""Rules that a synopsis names, and that are explained by examples."""
# Rules that are small enough to be expanded in a synopsis.
_INLINE_LENGTH = 60


def _as_one(text: str) -> str:
    """Alternatives in braces; other texts as they are."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "[{(") - (sign in "]})")
        if depth == 0 and text.startswith(" | ", at):
            return "{" + text + "}"
    return text


class _Synopsis(Reader):
    def __init__(self, grammar: Grammar, text: str, inside: tuple[str, ...]) -> None:
        super().__init__(text)
        self.grammar = grammar
        self.inside = inside

    def alternatives(self) -> str:
        options = [self.sequence()]
        while self.peek() == "/":
            self.take()
            options.append(self.sequence())
        return " | ".join(options)

    def sequence(self) -> str:
        items: list[str] = []
        while self.peek() not in ("", "/", ")"):
            item = self.item()
            if item:
                items.append(item)
        return " ".join(items)

    def item(self) -> str:
        literal, is_list, name, sign = self.take().groups()
        if literal:
            text = literal
        elif is_list:
            inner = self.alternatives()
            self.take()
            text = f"{inner} [, …]"
        elif name:
            text = self.named(name)
        elif sign == "(":
            text = self.alternatives()
            self.take()
            if self.peek() not in ("?", "*", "+"):
                text = _as_one(text)
        else:
            return ""
        while self.peek() in ("?", "*", "+"):
            repeat = self.take().group()
            text = f"[{text}]" if repeat == "?" else f"[{text} …]" if repeat == "*" else f"{text} …"
        return text

    def named(self, name: str) -> str:
        if name in TERMS:
            return name.lower()
        if name not in self.grammar.rules:
            return _SHORT.get(name) or re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        if name in self.inside:
            return name.lower()
        inner = _Synopsis(self.grammar, self.grammar.rules[name], (*self.inside, name)).alternatives()
        if len(inner) > _INLINE_LENGTH:
            return rule_label(name)
        return _as_one(inner)
