"""Compiles LocalFiles.java into the jar beside it: python tests/local_files_jar.py"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.local_files import JAR, SOURCE

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of each file in the jar, so that the same source gives the same bytes."""


def compiled(java: Any) -> dict[str, bytes]:
    """The class files of the source, by their path in a jar. java: py4j's view of a JVM with Spark's jars."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setTargetVersion(8)
    compiler.cook(str(SOURCE), SOURCE.read_text("utf-8"))
    classes = compiler.getBytecodes()
    return {name.replace(".", "/") + ".class": bytes(classes[name]) for name in sorted(classes)}


def main() -> None:
    """Write the jar."""
    with tempfile.TemporaryDirectory() as folder:
        spark = jvm.start_session({}, Path(folder) / "log", Path(folder), find_java())
        classes = compiled(spark._jvm)
        spark.stop()
    with zipfile.ZipFile(JAR, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in classes.items():
            jar.writestr(zipfile.ZipInfo(name, _EPOCH), content)


if __name__ == "__main__":
    main()
