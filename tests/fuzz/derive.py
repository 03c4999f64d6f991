"""Random statements from the grammar files themselves: a derivation of a rule, terminal by terminal.

The files are read here with a few lines of their own, so that the generator does not share the
mistakes of the reader that it tests.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from queries import Queries

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
Tree = tuple[Any, ...]

NAMES = [
    "clicks",
    "orders",
    "vip",
    "out",
    "live",
    "q",
    "f",
    "_x",
    "n1",
    "größe",
    "日本",
    "`my name`",
    "`from`",
    "`a``b`",
]
CONNECTORS = [
    "rate",
    "json",
    "kafka",
    "values",
    "memory",
    "console",
    "noop",
    "parquet",
    "csv",
    "rate-micro-batch",
    "foreach",
]
TYPES = ["INT", "STRING", "TIMESTAMP", "DOUBLE", "DECIMAL(10, 2)", "BIGINT", "BINARY", "DATE", "VARIANT"]
KEYS = ["path", "topic", "servers", "rowsPerSecond", "'k 1'", "a.b-c", "kafka.x", "maxFilesPerTrigger", "`k`"]
STRINGS = [
    "''",
    "'a'",
    '"b"',
    "'it\\'s'",
    "r'a\\b'",
    "'a; -- b'",
    "'\\u00e9 日本'",
    "'in/x'",
    "'10 minutes'",
    "'m.f'",
    "'a\nb'",
]
LENGTHS = [
    "'10 minutes'",
    "INTERVAL 5 SECONDS",
    "INTERVAL '2' HOURS",
    "'1 day 2 hours'",
    "'0.5 s'",
    "INTERVAL 1 MONTH",
    "'x'",
]
POOLS = {
    "Connector": CONNECTORS, "TypeName": TYPES, "SimpleType": TYPES, "OptionKey": KEYS, "SettingKey": ["spark.a.b", "chart.width", "x"],
    "String": STRINGS, "Path": STRINGS, "OptionValue": [*STRINGS, "1", "-5", "true"], "Duration": LENGTHS,
    "Number": ["1", "0", "12", "-3", "1000000", "1.5", "9" * 5000, "²"], "Word": ["DAY", "abc", "HOUR"],
    "FormatName": ["json", "csv", "avro", "protobuf", "xml"], "TimeColumn": ["DESCRIPTOR(ts)"],
}  # fmt: skip

# Rules that stand behind FROM, read by planning.
RELATIONS = ("StateTable", "StatefulCall")


def read_rules() -> dict[str, str]:
    """Rule → its right side, of all grammar files."""
    text = "\n".join(f.read_text("utf-8") for f in sorted(FOLDER.rglob("*.gram")))
    lines = (line for line in text.split("\n") if not line.startswith("#"))
    pieces = re.split(r"^(\w+)\s*<-", "\n".join(lines), flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


class Derivations:
    """Random texts of the rules of the grammar."""

    def __init__(self, random: random.Random, queries: Queries) -> None:
        self.random = random
        self.queries = queries
        self.rules = read_rules()
        self.trees: dict[str, Tree] = {}
        used = {word for body in self.rules.values() for word in re.findall(r"\b[A-Z]\w*[a-z]\w*\b", body)}
        self.statements = sorted(r for r in self.rules if r not in used)
        self.depth = 0
        self.count = 0

    def statement(self) -> str:
        """A statement of a random rule."""
        self.count = 0
        # The longer a rule, the more there is to try.
        name = self.random.choices(self.statements, [len(self.rules[r]) for r in self.statements])[0]
        return ("SELECT * FROM " if name in RELATIONS else "") + self.rule(name)

    def rule(self, name: str) -> str:
        if name in POOLS:
            return self.random.choice(POOLS[name])
        if name == "Query" or (name == "QueryBody" and self.depth > 4):
            return self.queries.query()
        if name in ("Expression", "Rest"):
            return self.queries.expression()
        if name in ("ColumnDefName", "NewName") and self.depth > 1:
            self.count += 1
            return self.random.choice([f"c{self.count}", f"`c {self.count}`", *NAMES])
        if name not in self.rules:
            return self.random.choice(NAMES)
        self.depth += 1
        text = self.tree(self.tree_of(name))
        self.depth -= 1
        return text

    def tree(self, tree: Tree) -> str:
        kind, parts = tree[0], tree[1:]
        if kind == "word":
            return self.random.choice([parts[0], parts[0], parts[0].lower()])
        if kind == "rule":
            return self.rule(parts[0])
        if kind == "all":
            return " ".join(filter(None, map(self.tree, parts)))
        if kind == "either":
            return self.tree(self.random.choice(parts))
        if kind == "List":
            return ", ".join(self.tree(parts[0]) for _ in range(self.random.choice([1, 1, 2, 3])))
        least = 1 if kind == "+" else 0
        most = 1 if kind == "?" or self.depth > 6 else 3
        count = least if self.depth > 9 else self.random.randint(least, most)
        return " ".join(self.tree(parts[0]) for _ in range(count))

    def tree_of(self, name: str) -> Tree:
        if name not in self.trees:
            self.trees[name] = _alternatives(
                re.findall(r"'[^']+'|List\(|[A-Za-z]\w*|[()/?*+]", self.rules[name])
            )
        return self.trees[name]


def _alternatives(parts: list[str]) -> Tree:
    options = [_sequence(parts)]
    while parts and parts[0] == "/":
        parts.pop(0)
        options.append(_sequence(parts))
    return ("either", *options)


def _sequence(parts: list[str]) -> Tree:
    items: list[Tree] = []
    while parts and parts[0] not in "/)":
        part = parts.pop(0)
        if part in ("(", "List("):
            item = _alternatives(parts)
            parts.pop(0)
            item = ("List", item) if part == "List(" else item
        else:
            item = ("word", part.strip("'")) if part.startswith("'") else ("rule", part)
        while parts and parts[0] in ("?", "*", "+"):
            item = (parts.pop(0), item)
        items.append(item)
    return ("all", *items)
