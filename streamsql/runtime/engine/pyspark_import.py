"""The first import of PySpark: its packages import one another, so two threads must not import it at once."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

_one_at_a_time = threading.Lock()


def import_pyspark() -> None:
    """Import PySpark; waits while another thread imports it."""
    with _one_at_a_time:
        import pyspark.sql  # noqa: F401
        from py4j.protocol import INPUT_CONVERTER

        for place, converter in enumerate(INPUT_CONVERTER):
            if type(converter).__name__ in ("NumpyScalarConverter", "NumpyArrayConverter"):
                INPUT_CONVERTER[place] = NumpyConverter(converter)


def import_arrow() -> None:
    """Import Arrow on a thread of its own: a query needs it soon, and Python waits for Spark meanwhile."""
    threading.Thread(target=importlib.import_module, args=("pyarrow.compute",), daemon=True).start()


class NumpyConverter:
    """A converter of PySpark for arguments from numpy, asked for these only: to see that a text is not
    such an argument, PySpark would import its test tools, and pandas with them (0.3 s before the first row).
    """

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def can_convert(self, value: Any) -> bool:
        own = any(kind.__module__.partition(".")[0] == "numpy" for kind in type(value).__mro__)
        return own and bool(self._converter.can_convert(value))

    def convert(self, value: Any, gateway_client: Any) -> Any:
        return self._converter.convert(value, gateway_client)


def running_spark() -> Any:
    """The SparkSession that runs in this process already; None if there is none."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession._instantiatedSession
