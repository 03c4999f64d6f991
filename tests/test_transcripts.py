"""Transcripts of whole scripts: what was written, what stood on stdout and stderr, and the exit code.

`UPDATE_GOLDEN=1 pytest` writes what happens now; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from scripts import run_here

from streamsql.errors import Source

FOLDER = Path(__file__).parent / "transcripts"
PARTS = re.compile(
    r"(?ms)^--- script (?P<format>\w+)\n(?P<script>.*?)^--- stdout\n(?P<out>.*?)^--- stderr\n(?P<err>.*?)^--- exit (?P<code>\d+)\n"
)


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.txt")))
def test_transcript(name: str, spark: Any, tmp_path: Path) -> None:
    found = PARTS.match((FOLDER / name).read_text())
    assert found, f"{name} is not a transcript"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(
        '{"user": "ann", "n": 1}\n{"user": "bob", "n": 2}\n{"user": null, "n": 3}\n'
    )
    script = found["script"]
    outcome = run_here(
        spark,
        tmp_path,
        Source("script.sql", script),
        format=found["format"],
        keep_going=True,
        tmp=str(tmp_path),
    )
    err = outcome.err.replace(str(tmp_path), "{tmp}")
    if os.environ.get("UPDATE_GOLDEN"):
        text = f"--- script {found['format']}\n{script}--- stdout\n{outcome.out}--- stderr\n{err}--- exit {outcome.code}\n"
        (FOLDER / name).write_text(text)
        return
    assert (outcome.out, err, outcome.code) == (found["out"], found["err"], int(found["code"]))
