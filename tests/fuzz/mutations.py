"""Broken and odd statements: one of the texts that are there, with some of its parts changed."""

from __future__ import annotations

import random
import re

PARTS = re.compile(r"\s+|\w+|'(?:\\.|[^'\\])*'|`[^`]*`|.", re.DOTALL)
ODD = [
    "\0", "\r", "\r\n", "\u2028", "\ufeff", "é", "日本", "👩‍👩‍👧", "\u202e", "\x1b[31m", "\x7f", "\u00a0", "²", "٣", "\ud83d", "'", '"', "`", "$", "${",
    "${x", "${a b}", "${env:HOME}", "${file:/x}", "${here}", "/*", "*/", "--", "/*+", "(", ")", "((((", "))))", "[", "]", "{", "}", "<", ">", ">>", "->", "=>", "::", "|>", ";",
    ",", ".", "..", "\\", "\\'", "@", "#", "?", ":", ":p", "!", "%", "&", "1e", "1.e", "0x1F", "1L1", "9" * 400, "9" * 5000, "-", "- -", "+", "=", "==", "<=>", "*",
    "x" * 3000, "`" + "n" * 3000 + "`", "'" + "s" * 3000 + "'", "(" * 60, "(" * 60 + "1" + ")" * 60, "NOT " * 50, "ARRAY<" * 60, "CASE " * 40, "SELECT * FROM (" * 40,
    " SELECT ", " FROM ", " WHERE ", " AS ", " WITH ", " UNION ", " BEGIN ", " END ", " NULL ", " EXPLAIN ", " STREAM ", " WATERMARK ", " OVER ", " JOIN ", " ON ", " TABLE ",
    " STATE ", " OF ", " QUERY ", " INTERVAL ", " DELAY ", " GROUP BY ", " TUMBLE ", " DESCRIPTOR ", " OPTIONS ", " DISTINCT ON ", " QUALIFY ", " LATERAL VIEW ",
]  # fmt: skip


def mutate(random: random.Random, text: str, other: str) -> str:
    """text with one to three changes; other is a text that parts may be taken from."""
    parts = PARTS.findall(text) or [" "]
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        at = random.randrange(len(parts))
        kind = random.randrange(10)
        if kind == 0:
            del parts[at]
        elif kind == 1:
            parts.insert(at, parts[at])
        elif kind == 2:
            to = random.randrange(len(parts))
            parts[at], parts[to] = parts[to], parts[at]
        elif kind == 3:
            parts = parts[: at + 1]
        elif kind == 4:
            parts = parts[at:]
        elif kind in (5, 6):
            parts.insert(at, random.choice(ODD))
        elif kind == 7:
            parts[at] = random.choice(ODD)
        elif kind == 8:
            begin = random.randrange(len(parts))
            parts[at:at] = parts[begin : begin + random.randint(1, 6)]
        else:
            taken = PARTS.findall(other)
            begin = random.randrange(len(taken) or 1)
            parts[at:at] = taken[begin : begin + random.randint(1, 8)]
        if not parts:
            parts = [" "]
    changed = "".join(parts)
    if random.random() < 0.03:
        changed = changed.replace(
            " ", random.choice(["\n", "\r", "\r\n", "\t", " /* c */ ", " -- c\n", "\u00a0"])
        )
    return changed[: random.randint(0, len(changed))] if random.random() < 0.05 else changed
