"""What a plug-in imports: for connectors and statements that another distribution adds (HELP plugins).

These names stay as they are (HELP releases); the other modules of the console may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsql.connectors.base import OptionSpec
    from streamsql.connectors.python import PythonSource
    from streamsql.connectors.spark import SparkFormat
    from streamsql.definitions import Sink, Stream
    from streamsql.errors import RuleFault
    from streamsql.feature_registry import Feature
    from streamsql.language.statements.base import Statement
    from streamsql.results import Text
    from streamsql.runtime.handlers.info_table import table

__all__ = [
    "Feature",
    "OptionSpec",
    "PythonSource",
    "RuleFault",
    "Sink",
    "SparkFormat",
    "Statement",
    "Stream",
    "Text",
    "table",
]
_MODULES = {
    "Feature": "feature_registry",
    "OptionSpec": "connectors.base",
    "PythonSource": "connectors.python",
    "RuleFault": "errors",
    "Sink": "definitions",
    "SparkFormat": "connectors.spark",
    "Statement": "language.statements.base",
    "Stream": "definitions",
    "Text": "results",
    "table": "runtime.handlers.info_table",
}
"""A module is imported with the first of its names: the console imports plug-ins while it reads its own
statements, and Spark's workers import them, too.
"""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"streamsql.plugin has no {name}")
    return getattr(import_module(f"streamsql.{_MODULES[name]}"), name)
