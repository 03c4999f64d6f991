"""Advice at the start of a query that needs Spark's settings, or what its earlier micro-batches took."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from streamsql.errors import Note
from streamsql.language.durations import seconds
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.why.moments import interval, length

_PARTITIONS = "spark.sql.shuffle.partitions"
_STATEFUL = ("aggregate", "distinct", "distinct_on", "join", "stateful")
MANY = 100
"""Shuffle partitions that are worth a word where there are few processors."""


def start_advice(parts: SessionParts, running: Running) -> Iterator[Note]:
    """Notes on a query that has just started."""
    yield from _partitions(parts, running)
    yield from _trigger(parts, running)


def _partitions(parts: SessionParts, running: Running) -> Iterator[Note]:
    stateful = any(op.kind in _STATEFUL for op in running.plan.shape.ops)
    if not stateful:
        return
    number, cores = int(parts.spark.conf.get(_PARTITIONS, "200")), parts.spark.sparkContext.defaultParallelism
    if number >= MANY and number > 10 * cores:
        yield Note(
            "MANY_PARTITIONS",
            f"{number} shuffle partitions on {cores} processors: each micro-batch runs {number} tasks, "
            f"however few its rows; SET {_PARTITIONS} = {2 * cores}; STOP QUERY {running.name}; "
            f"START QUERY {running.name} FROM BEGINNING; runs fewer",
        )


def _trigger(parts: SessionParts, running: Running) -> Iterator[Note]:
    trigger = running.plan.query.trigger
    took = [ms for _, ms in parts.kept.of(running.name).done.values() if ms][-20:]
    if trigger is None or trigger.kind != "every" or len(took) < 3:
        return
    usual = median(took) / 1_000
    if usual > seconds(trigger.interval):
        yield Note(
            "TRIGGER_TOO_SHORT",
            f"micro-batches of {running.name} take {length(usual)}, longer than its trigger interval of "
            f"{trigger.interval}: TRIGGER EVERY {interval(usual * 1.5)} would keep to its times",
        )
