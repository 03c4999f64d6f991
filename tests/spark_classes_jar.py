"""Compiles the Java sources of spark_classes into the jar beside them: python tests/spark_classes_jar.py"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.spark_classes import EXTENSIONS, JAR, SOURCES

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of each file in the jar, so that the same sources give the same bytes."""


def contents(java: Any) -> dict[str, bytes]:
    """The files of the jar by their path. java: py4j's view of a JVM with Spark's jars."""
    files = {path: text.encode() for path, text in EXTENSIONS.items()}
    for source in SOURCES:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setTargetVersion(8)
        compiler.cook(str(source), source.read_text("utf-8"))
        classes = compiler.getBytecodes()
        files |= {name.replace(".", "/") + ".class": bytes(classes[name]) for name in sorted(classes)}
    return files


def main() -> None:
    """Write the jar."""
    with tempfile.TemporaryDirectory() as folder:
        spark = jvm.start_session({}, Path(folder) / "log", Path(folder), find_java())
        files = contents(spark._jvm)
        spark.stop()
    with zipfile.ZipFile(JAR, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in files.items():
            jar.writestr(zipfile.ZipInfo(name, _EPOCH), content)


if __name__ == "__main__":
    main()
