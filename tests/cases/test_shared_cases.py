"""The cases of shared/cases, played through the language. Each was replayed on plain PySpark 4.3.0.

Those that a TEST can express run as TESTs (test_shared_cases_in_sql.py): of these only some are played here, or
all with STREAMSQL_MATRIX=full.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import SHARED_CASES, Console
from harness import Player, check, load
from sql_tests import CASE_FILES, expressible

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


EVERY = 1 if os.environ.get("STREAMSQL_MATRIX") == "full" else 8
AS_TESTS = [name for name, case in CASES.items() if expressible(case.data)]
PLAYED = [name for name in CASES if name not in AS_TESTS or name in AS_TESTS[::EVERY]]


@pytest.mark.parametrize("name", [name for name in PLAYED if name not in DEVIATIONS])
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
