"""The cases of shared/cases, played through the language. Each was replayed on plain PySpark 4.3.0."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SHARED_CASES, Console
from harness import Player, check, load
from sql_tests import CASE_FILES

if not SHARED_CASES.is_dir():
    pytest.skip(f"the shared cases are not here: {SHARED_CASES}", allow_module_level=True)

CASES = {case.name: case for file in CASE_FILES for case in load(SHARED_CASES / file)}

# Cases in which the console does something else than plain Spark on purpose, and why.
DEVIATIONS = {
    "file_json_needs_schema": (
        "Spark refuses a file stream without columns unless schemaInference is set; the language infers "
        "them once at CREATE STREAM and keeps them (LANGUAGE.md, Streams and static tables)"
    ),
}


@pytest.mark.parametrize("name", [name for name in CASES if name not in DEVIATIONS])
def test_case(name: str, console: Console, tmp_path: Path) -> None:
    case = CASES[name]
    check(case, Player(case, console, tmp_path).play())


def test_columns_are_inferred_at_create(console: Console, tmp_path: Path) -> None:
    """Instead of file_json_needs_schema."""
    player = Player(CASES["file_json_needs_schema"], console, tmp_path)
    player.define()
    assert player.outcome.schema == "struct<c:string>"
    assert console.rows("SELECT * FROM input") == [("1",)]


def test_deviations_are_cases() -> None:
    assert DEVIATIONS.keys() <= CASES.keys()
