"""Classes of Spark's JVM by their full name."""

from __future__ import annotations

from typing import Any


def java_class(spark: Any, name: str) -> Any:
    """A class without a call of the JVM; `spark._jvm.org.apache…` makes one for each part of the name."""
    from py4j.java_gateway import JavaClass

    return JavaClass(name, spark._jvm._gateway_client)
