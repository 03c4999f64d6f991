"""Compiles the Java sources of spark_classes into the jar beside them: python tests/spark_classes_jar.py"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyspark

from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.spark_classes import JAR, RESOURCES, SOURCES

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of each file in the jar, so that the same sources give the same bytes."""


def contents(gateway: Any) -> dict[str, bytes]:
    """The files of the jar by their path. gateway: py4j's of a JVM with Spark's jars."""
    java = gateway.jvm
    resource = java.org.codehaus.commons.compiler.util.resource
    texts = gateway.new_array(resource.Resource, len(SOURCES))
    for number, source in enumerate(SOURCES):
        texts[number] = resource.StringResource(source.name, source.read_text("utf-8"))
    classes = java.java.util.TreeMap()
    compiler = java.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(java.org.codehaus.janino.ClassLoaderIClassLoader(_spark_only(gateway)))
    compiler.setClassFileCreator(resource.MapResourceCreator(classes))
    compiler.setTargetVersion(8)
    compiler.compile(texts)
    files = {path: text.encode() for path, text in RESOURCES.items()}
    return files | {name: bytes(classes[name]) for name in classes}


def _spark_only(gateway: Any) -> Any:
    """A class loader with Spark's jars, without the one that is compiled: its classes would be taken for the new."""
    java = gateway.jvm.java
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    urls = gateway.new_array(java.net.URL, len(jars))
    for number, jar in enumerate(jars):
        urls[number] = java.net.URL(jar.as_uri())
    return java.net.URLClassLoader(urls, java.lang.ClassLoader.getPlatformClassLoader())


def main() -> None:
    """Write the jar."""
    with tempfile.TemporaryDirectory() as folder:
        gateway = jvm.launch({}, Path(folder) / "log", Path(folder), find_java())
        files = contents(gateway)
        gateway.proc.kill()
    with zipfile.ZipFile(JAR, "w") as jar:
        for name, content in files.items():
            jar.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_STORED)


if __name__ == "__main__":
    main()
