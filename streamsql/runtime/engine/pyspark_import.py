"""The first import of PySpark: its packages import one another, so two threads must not import it at once."""

from __future__ import annotations

import threading

_one_at_a_time = threading.Lock()


def import_pyspark() -> None:
    """Import PySpark; waits while another thread imports it."""
    with _one_at_a_time:
        import pyspark.sql  # noqa: F401
