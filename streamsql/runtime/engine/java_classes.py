"""Classes of Spark's JVM by their full name, sequences of Scala, and plans of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def java_class(spark: Any, name: str) -> Any:
    """A class without a call of the JVM; `spark._jvm.org.apache…` makes one for each part of the name."""
    from py4j.java_gateway import JavaClass

    return JavaClass(name, spark._jvm._gateway_client)


def elements(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(n) for n in range(sequence.size())]


def nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan of Spark: the plan itself, and those below it."""
    yield plan
    for child in elements(plan.children()):
        yield from nodes(child)
