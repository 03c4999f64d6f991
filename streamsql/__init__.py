"""A SQL-first console for Apache Spark Structured Streaming. `connect` is for Python programs."""

from typing import Any

__version__ = "0.2.0"
"""The version of this package: the one place where it is written; SemVer (HELP releases)."""

_MODULES = {
    "Change": "api.watched",
    "Changes": "api.watched",
    "Connection": "api.connection",
    "Explanation": "api.connection",
    "Pairs": "language.python_values",
    "QueryFacts": "query_facts",
    "QueryResult": "api.query_result",
    "Struct": "language.python_values",
    "Watch": "api.watched",
    "connect": "api.connection",
    "load_ipython_extension": "features.notebook.magics",
    "unload_ipython_extension": "features.notebook.magics",
}


def __getattr__(name: str) -> Any:
    """The names of the Python API, whose modules are imported when they are used: the console needs none."""
    from importlib import import_module

    if name == "Error":
        return import_module("streamsql.errors").StreamsqlError
    if name in _MODULES:
        return getattr(import_module(f"streamsql.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'streamsql' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names that a notebook completes."""
    return [*globals(), *_MODULES, "Error"]
