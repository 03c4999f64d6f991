"""The first import of PySpark: its packages import one another, so two threads must not import it at once."""

from __future__ import annotations

import sys
import threading
from typing import Any

_one_at_a_time = threading.Lock()


def import_pyspark() -> None:
    """Import PySpark; waits while another thread imports it."""
    with _one_at_a_time:
        import pyspark.sql  # noqa: F401


def running_spark() -> Any:
    """The SparkSession that runs in this process already; None if there is none."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession._instantiatedSession
