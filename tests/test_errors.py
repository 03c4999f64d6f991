"""Errors as a person reads them: golden files that hold the whole block, caret and hint included.

A golden file holds cases: a title, the script, and what is shown. `UPDATE_GOLDEN=1 pytest` writes
what is shown now; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Console

from streamsql.errors import StreamsqlError, format_error

GOLDEN = Path(__file__).parent / "golden" / "errors"
CASE = re.compile(r"=== (.+)\n((?:.|\n)*?)\n--- shown\n((?:.|\n)*?)\n(?==== |\Z)")


def read(name: str) -> list[tuple[str, str, str]]:
    return CASE.findall((GOLDEN / name).read_text())


def shown(console: Console, script: str, folder: Path) -> str:
    """Run a script up to its first error, and give that error's text."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.json").write_text('{"user": "ann", "n": 1, "ts": "2024-01-01T00:00:00"}\n')
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "words").mkdir(exist_ok=True)
    (folder / "words" / "a.txt").write_text("to be or not\n")
    try:
        console.run(script.replace("{tmp}", str(folder)))
    except StreamsqlError as error:
        text = format_error(error)
    else:
        text = "no error"
    return text.replace(str(folder), "{tmp}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is always as long: carets stand under it."""
    made = Path("/tmp/golden")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    yield made
    shutil.rmtree(made, ignore_errors=True)


def check(name: str, console: Console, folder: Path) -> None:
    cases = read(name)
    assert cases, name
    results = []
    for title, script, _ in cases:
        results.append((title, script, shown(console, script, folder)))
        console.reset()
    if os.environ.get("UPDATE_GOLDEN"):
        text = "".join(f"=== {t}\n{s}\n--- shown\n{e}\n" for t, s, e in results)
        (GOLDEN / name).write_text(text)
        return
    for (title, _, expected), (_, _, actual) in zip(cases, results, strict=True):
        assert actual == expected, title


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("*.txt")))
def test_errors_are_shown_as_in_the_golden_file(name: str, console: Console, folder: Path) -> None:
    check(name, console, folder)


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.glob("*.txt")))
def test_no_error_shows_a_stack(name: str) -> None:
    for title, _, text in read(name):
        assert text != "no error", title
        assert not re.search(r"Traceback|\bat (org|java|scala)\.|py4j|File \"", text), title
        assert len(text.splitlines()) <= 12, title
