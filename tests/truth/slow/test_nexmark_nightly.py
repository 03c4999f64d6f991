"""The queries of truth/test_nexmark.py that the main run leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from truth import test_nexmark
from truth.test_nexmark import NIGHTLY

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "tests/truth/")


@pytest.mark.parametrize("name", NIGHTLY)
def test_a_live_table_is_the_batch_result_after_each_micro_batch(
    console: Console, spark: Any, tmp_path: Path, name: str
) -> None:
    test_nexmark.test_a_live_table_is_the_batch_result_after_each_micro_batch(console, spark, tmp_path, name)
