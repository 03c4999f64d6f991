"""How many examples the tests that generate their input try."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

Test = TypeVar("Test", bound=Callable[..., Any])
FACTOR = int(os.environ.get("STREAMSQL_EXAMPLES", "1"))
"""By hand, how many times as many examples."""


def examples(count: int) -> Callable[[Test], Test]:
    """So many examples, the same in every run, however slow the machine; more by STREAMSQL_EXAMPLES."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count * FACTOR, derandomize=True, deadline=None, suppress_health_check=slow)
