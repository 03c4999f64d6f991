"""Settings for a query whose streams give few rows: Spark's generators by their definition, and small files
that a query with TRIGGER AVAILABLE NOW reads to their end.

Its micro-batch costs what its tasks and the code generated for them cost, not what its rows cost. With one
task for each step and without generated code it takes a sixth less of the processor (tests/benchmarks,
many_queries.py), and the first row of a start comes 0.25 s earlier (first_row.py). The checkpoint keeps the
number of partitions of a state, so that files, which may be larger at the next start, decide on it only where
nothing is kept.
"""

from __future__ import annotations

import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from streamsql.definitions import Stream
from streamsql.plan.plans import Run
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.runtime.engine.java_command import spark_defaults
from streamsql.runtime.engine.settings import PARTITIONS
from streamsql.runtime.queries.parts import QueryParts

CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
SETTINGS = {PARTITIONS: "1", "spark.sql.leafNodeDefaultParallelism": "1", **CODE}
"""CODE: those of them that may differ from start to start."""
FEW = {"rate": ("rowsPerSecond", "1", 10), "rate-micro-batch": ("rowsPerBatch", "", 1_000)}
"""For each connector the option that says how many rows it gives, its default, and what is few: after a week
without the query, 10 rows a second are 6,000,000 rows in a micro-batch, which it computes in some seconds.
"""
TEXTS = ("csv", "json", "text", "xml")
"""The connectors whose files have few rows if they are small."""
FEW_BYTES = 2**18
MOST_FILES = 1_000
"""The files and folders that are looked at."""


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
    settings = parts.settings
    keys: list[str] = []
    if settings.master.startswith("local") and (fitting := _fitting(plan)):
        own = spark_defaults() | settings.configured | settings.given | settings.changed
        keys = [key for key in fitting if key not in own]
    chosen = FewRows(parts.spark.conf, keys)
    try:
        yield chosen
    finally:
        chosen.undo()


def _fitting(plan: Run) -> Iterable[str]:
    """The settings that fit what the streams of a query give; none where that may be much."""
    streams, trigger = plan.reads.streams, plan.query.trigger
    others = [stream for stream in streams if not _gives_few(stream)]
    if not streams:
        return ()
    if not others:
        return SETTINGS
    to_the_end = trigger is not None and trigger.ends
    if not (to_the_end and _are_small(others)):
        return ()
    return SETTINGS if plan.transient else CODE


def _gives_few(stream: Stream) -> bool:
    name, default, few = FEW.get(stream.connector, ("", "", 0))
    number = stream.option(name, default) if name else ""
    return number.isdecimal() and int(number) <= few


def _are_small(streams: Iterable[Stream]) -> bool:
    """Whether all are of small local files of text."""
    size = 0
    places = deque[str]()
    for stream in streams:
        path = local_path(stream.option("path"))
        if stream.connector not in TEXTS or not path:
            return False
        places += islice(glob.iglob(path), MOST_FILES)
    for _ in range(MOST_FILES):
        if not places:
            return True
        place = places.popleft()
        try:
            if os.path.isdir(place):
                places += (entry.path for entry in islice(os.scandir(place), MOST_FILES))
            else:
                size += os.path.getsize(place)
        except OSError:  # gone meanwhile, or not to be read: Spark says so
            continue
        if size > FEW_BYTES:
            return False
    return False
