"""HELP topics: the pages in grammars/topics, on subjects that concern more than one statement.

A page is Markdown. Its file is named after the topic (output_modes.md), and its first line is
`# output modes: summary`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streamsql.error_codes import CODES, NOTES
from streamsql.feature_registry import folder, plug_ins
from streamsql.guard import informing
from streamsql.language.grammar import grammar_folder

_LISTS = {"errors": CODES, "notes": NOTES}
"""Mark on a line of a page → the codes that are listed in its place."""


@dataclass(frozen=True)
class Topic:
    """name: lower case, words separated by blanks; text: the Markdown below the first line."""

    name: str
    summary: str
    text: str

    def page(self) -> str:
        """The page for a terminal: code is indented, fences and comments are removed, a paragraph, an item of
        a list and a row of a table are one line.
        """
        lines = [f"{self.name}: {self.summary}"]
        in_code = False
        for line in _TABLE.sub(_aligned, self.text).splitlines():
            if line.startswith("```"):
                in_code = not in_code
            elif in_code:
                lines.append(f"    {line}".rstrip())
            elif line.startswith("<!--"):
                continue
            elif _goes_on(lines[-1], line):
                lines[-1] += f" {line.strip()}"
            else:
                lines.append(line)
        return "\n".join(lines).rstrip()


_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)


def _aligned(table: re.Match[str]) -> str:
    """The rows of a table without the marks of code, each with one tab in it. Before it stand all columns but
    the last, below each other; or only the first, if they are wide.
    """
    rows = [re.split(r" \| ", row.strip("| ")) for row in table[0].splitlines()]
    rows = [[cell.strip().replace("`", "") for cell in row] for row in rows if not row[0].startswith("---")]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    if sum(widths) > _WIDE:
        widths = widths[:1]
    return "".join(
        f"    {'  '.join(map(str.ljust, row, widths)).rstrip()}\t{': '.join(row[len(widths) :])}\n"
        for row in rows
    )


_WIDE = 40


def _goes_on(before: str, line: str) -> bool:
    """Whether a line of a page continues the paragraph or item of the line before."""
    new = not line.strip() or line.startswith(("|", "- ", "#"))
    return not new and bool(before.strip()) and not before.startswith(("|", "    ", "#"))


@cache
def topics() -> dict[str, Topic]:
    """All topics by name, in alphabetical order."""
    pages = list[Topic]()
    for place in (*map(folder, plug_ins()), grammar_folder() / "topics"):
        pages += informing(lambda place=place: _pages(place), [])  # type: ignore[misc]
    by_name = {page.name: page for page in pages}  # a page of the console hides one of a plug-in
    return {name: by_name[name] for name in sorted(by_name)}


def _pages(folder: Path) -> list[Topic]:
    return [_read(page.read_text(encoding="utf-8")) for page in folder.glob("*.md")]


def _read(page: str) -> Topic:
    title, _, text = page.partition("\n")
    for label, codes in _LISTS.items():
        text = text.replace(f"<!-- {label} -->\n", "".join(f"- {c}: {what}\n" for c, what in codes.items()))
    name, _, summary = title.removeprefix("# ").partition(": ")
    return Topic(name, summary, text)


def topic(words: str) -> Topic | None:
    """The topic of that name, in any case; `watermark` also gives `watermarks`, `psql` also `switching from
    psql`, `mode` gives None.
    """
    asked = re.sub(r"[\s_]+", " ", words).casefold()
    pages = topics()
    names = (asked, f"{asked}s", f"switching from {asked}")
    return next((pages[name] for name in names if name in pages), None)
