"""The queries of test_lowering.py that the main run leaves out."""

from __future__ import annotations

from typing import Any

import pytest
import test_lowering
from conftest import Console
from test_lowering import NIGHTLY, ON_STREAMS_NIGHTLY, Case, as_streams, as_tables, tables  # noqa: F401

ROOMS = ("streamsql/language/", "streamsql/plan/", "tests/lowering/", "tests/test_lowering.py")


@pytest.mark.parametrize("case", NIGHTLY.values(), ids=NIGHTLY)
def test_same_as_spark(tables: Any, case: Case) -> None:  # noqa: F811
    test_lowering.test_same_as_spark(tables, case)


@pytest.mark.parametrize("case", ON_STREAMS_NIGHTLY.values(), ids=ON_STREAMS_NIGHTLY)
def test_a_stream_gives_the_rows_of_a_table(as_tables: Any, as_streams: Console, case: Case) -> None:  # noqa: F811
    test_lowering.test_a_stream_gives_the_rows_of_a_table(as_tables, as_streams, case)
