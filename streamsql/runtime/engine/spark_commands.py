"""Which commands of Spark a statement holds: by the classes of the plan that Spark's parser makes of it."""

from __future__ import annotations

from typing import Any

from streamsql.runtime.engine.java_classes import nodes

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_TELLING = ("Show", "Describe", "Explain", "List")
"""How the names of the commands begin that only read."""


def changing_commands(spark: Any, text: str) -> list[str]:
    """The classes of the commands that change something, such as DropTable and InsertIntoStatement. None for
    a text that Spark's parser does not take, and on a Spark Connect server, which does not tell.
    """
    from py4j.java_gateway import is_instance_of
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not hasattr(spark, "_jsparkSession"):
        return []
    gateway = spark.sparkContext._gateway

    def is_command(plan: Any) -> bool:
        kinds = ("Command", "ParsedStatement")
        return any(is_instance_of(gateway, plan, f"{_PLANS}.{kind}") for kind in kinds)

    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except (PySparkException, Py4JJavaError):
        return []
    names = [node.getClass().getSimpleName() for node in nodes(plan) if is_command(node)]
    return [name for name in names if not name.startswith(_TELLING)]
