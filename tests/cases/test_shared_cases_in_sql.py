"""The cases of shared/cases as TESTs, run in one session: a third of those that a TEST can express. test_shared_cases
runs all of them without TEST.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED_CASES

if not SHARED_CASES.is_dir():
    pytest.skip(f"the shared cases are not here: {SHARED_CASES}", allow_module_level=True)

from sql_tests import all_cases, sql_tests

from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.settings import Settings
from streamsql.testing.cases import collect
from streamsql.testing.reports import TextReport
from streamsql.testing.runner import Outcome, run_cases
from streamsql.testing.sessions import SessionFactory


def test_cases_pass_as_tests(spark: Any, tmp_path: Path) -> None:
    cases = all_cases()[::5]
    assert len(cases) > 12
    file = tmp_path / "cases.test.sql"
    file.write_text(sql_tests(cases, tmp_path))
    collection = collect([str(file)], [])
    assert not collection.errors
    out, outcomes = io.StringIO(), list[Outcome]()
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    try:
        run_cases(collection.cases, factory, TextReport(out), CancelToken(), outcomes)
    finally:
        factory.close()
    assert all(outcome.passed for outcome in outcomes), out.getvalue()
    assert len(outcomes) == len(cases)
