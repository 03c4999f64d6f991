"""The statements that are already there: tests, transcripts, golden files, examples, README."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from truth.cases import groups  # noqa: E402

ROOT = TESTS.parent
HEADS = (
    "SELECT WITH FROM VALUES CREATE INSERT EXECUTE DROP SHOW DESCRIBE DESC EXPLAIN PREVIEW START STOP AWAIT WATCH SET RESET DEFINE SOURCE HELP ALTER COPY "
    "CACHE SWITCHING"
).split()


def _statements(text: str) -> list[str]:
    """Pieces of a text that begin with the head of a statement and end with ; or an empty line."""
    pieces = re.split(r";\s*\n|\n\s*\n|^(?:===|---).*\n|^-- .*\n|^```\w*\n", text, flags=re.M)
    shown = (re.sub(r"^(?:sql>|  ->|streamsql>)\s?", "", p.strip(), flags=re.M) for p in pieces if p)
    return [
        p for p in shown if p.split(None, 1)[:1] and p.split(None, 1)[0].upper() in HEADS and len(p) < 4000
    ]


@cache
def statements() -> tuple[str, ...]:
    """All of them, in the order of their files."""
    files = [
        *sorted((TESTS / "lowering").glob("*.sql")), *sorted((TESTS / "golden").rglob("*.txt")), *sorted((TESTS / "transcripts").glob("*.txt")),
        *sorted((ROOT / "examples").glob("*.sql")), ROOT / "README.md", TESTS / "fuzz" / "habits.sql",
    ]  # fmt: skip
    found = [s for f in files for s in _statements(f.read_text("utf-8"))]
    return tuple(dict.fromkeys(found))


@cache
def shared_queries() -> tuple[str, ...]:
    """The queries of the cases of tests/truth."""
    cases = (case for group in groups().values() for case in group.values())
    return tuple(dict.fromkeys(case["query_sql"] for case in cases))
