"""The cases of truth/test_cases.py that the main run leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from truth import test_cases
from truth.test_cases import NIGHTLY, SessionFactory, factory, grouped_tests  # noqa: F401

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "streamsql/testing/", "tests/truth/")


@pytest.mark.parametrize(("group", "tests"), grouped_tests(NIGHTLY).items(), ids=grouped_tests(NIGHTLY))
def test_cases_pass_as_tests(
    group: str,
    tests: list[str],
    factory: SessionFactory,  # noqa: F811
    tmp_path: Path,
) -> None:
    test_cases.test_cases_pass_as_tests(group, tests, factory, tmp_path)
