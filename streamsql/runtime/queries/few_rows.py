"""Settings for a query whose streams give few rows by their definition: streams of Spark's generators.

Its micro-batch costs what its tasks and the code generated for them cost, not what its rows cost. With one
task for each step and without generated code it takes a sixth less of the processor (tests/benchmarks,
many_queries.py). The number of partitions of a state is kept by its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamsql.definitions import Stream
from streamsql.plan.plans import Run
from streamsql.runtime.engine.java_command import spark_defaults
from streamsql.runtime.engine.settings import PARTITIONS
from streamsql.runtime.queries.parts import QueryParts

SETTINGS = {
    PARTITIONS: "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
FEW = {"rate": ("rowsPerSecond", "1", 10), "rate-micro-batch": ("rowsPerBatch", "", 1_000)}
"""For each connector the option that says how many rows it gives, its default, and what is few: after a week
without the query, 10 rows a second are 6,000,000 rows in a micro-batch, which it computes in some seconds.
"""


class FewRows:
    """The settings of one start. changed: the keys that are set for it."""

    def __init__(self, conf: Any, keys: list[str]) -> None:
        self.conf = conf
        self.before = {key: conf.get(key, None) for key in keys}
        for key in keys:
            conf.set(key, SETTINGS[key])

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(self.before)

    def check(self, result: Any) -> None:
        """Undo it if the query reads anything but streams, or makes many rows of one. result: its rows."""
        if not self.before:
            return
        plan = result._jdf.queryExecution().analyzed()
        leaves = plan.collectLeaves()
        streams = all(leaves.apply(n).isStreaming() for n in range(leaves.size()))
        if not streams or "Generate " in plan.treeString():
            self.undo()

    def undo(self) -> None:
        for key, value in self.before.items():
            if value is None:
                self.conf.unset(key)
            else:
                self.conf.set(key, value)
        self.before = {}


@contextmanager
def few_rows(parts: QueryParts, plan: Run) -> Iterator[FewRows]:
    """A query that is started inside keeps these settings; what the user has set is left as it is."""
    settings, streams = parts.settings, plan.reads.streams
    keys: list[str] = []
    if settings.master.startswith("local") and streams and all(map(_gives_few, streams)):
        own = spark_defaults() | settings.configured | settings.given | settings.changed
        keys = [key for key in SETTINGS if key not in own]
    chosen = FewRows(parts.spark.conf, keys)
    try:
        yield chosen
    finally:
        chosen.undo()


def _gives_few(stream: Stream) -> bool:
    name, default, few = FEW.get(stream.connector, ("", "", 0))
    number = stream.option(name, default) if name else ""
    return number.isdecimal() and int(number) <= few
