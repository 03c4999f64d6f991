"""The queries of test_stream_results.py that the main run leaves out."""

from __future__ import annotations

from typing import Any

import pytest
import test_stream_results
from conftest import Console
from test_stream_results import NIGHTLY, Case, all_steps, as_tables  # noqa: F401

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "tests/test_stream_results.py")


@pytest.mark.parametrize("case", NIGHTLY.values(), ids=NIGHTLY)
def test_a_stream_ends_as_a_table(all_steps: Console, as_tables: Any, case: Case) -> None:  # noqa: F811
    test_stream_results.test_a_stream_ends_as_a_table(all_steps, as_tables, case)
