"""PySpark's first import: its packages import one another, so that two threads must not do it at a time."""

from __future__ import annotations

import threading

_one_at_a_time = threading.Lock()


def import_pyspark() -> None:
    """Import PySpark; waits while another thread does."""
    with _one_at_a_time:
        import pyspark.sql  # noqa: F401
