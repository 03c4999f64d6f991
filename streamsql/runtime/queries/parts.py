"""What programs and queries are run with: the parts of a session that the start of a query needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from streamsql.calls import Program
from streamsql.catalog import Catalog, CurrentCatalog, Function, Query, Sink, Stream, Table
from streamsql.connectors.base import Places
from streamsql.connectors.memory import rows_variable
from streamsql.errors import EngineFault
from streamsql.plan.context import Context
from streamsql.plan.lowering.state_tables import reads_state
from streamsql.plan.lowering.stateful_calls import CHOICES
from streamsql.plan.plans import Reads
from streamsql.results import Result
from streamsql.runtime.checkpoints.batch_history import KeptBatches
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Events
from streamsql.runtime.engine.lifecycle import Engine, activate
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.preflight.function_kinds import Modules
from streamsql.runtime.program_helpers import HELPERS, helper
from streamsql.runtime.queries.query_runs import Queries

SHOWN = 20
"""Rows of a micro-batch that the sink `console` shows."""

P = TypeVar("P", bound="QueryParts")


class FunctionChanged(EngineFault):
    """What a plan took a function for is not what its module holds."""


@dataclass(frozen=True)
class QueryParts:
    """The parts of a session that programs and queries are run with; all are shared, but `cancel`.

    cancel: the token of the statement that is being carried out. current: the catalog. show_batch: called
    with the rows of a micro-batch of the sink `console`, on Spark's callback thread.
    """

    cancel: CancelToken
    events: Events
    engine: Engine
    current: CurrentCatalog
    settings: Settings
    places: Places
    variables: dict[str, str]
    packages: Packages
    modules: Modules
    live: LiveTables
    kept: KeptBatches
    queries: Queries
    show_batch: Callable[[Result, int], None]

    def under(self: P, cancel: CancelToken) -> P:
        """The same parts for a statement of its own."""
        return replace(self, cancel=cancel)

    @property
    def spark(self) -> Any:
        """The SparkSession; waits for it. Raises StartFault when it could not start, Cancelled."""
        return self.engine.wait(self.cancel)

    @property
    def catalog(self) -> Catalog:
        """The newest snapshot."""
        return self.current.snapshot

    def _load(self, functions: tuple[Function, ...]) -> None:
        """Import the modules of functions that a workspace brought. Raises FunctionChanged when one is of
        another kind than it was when it was created: what is planned does not fit then.
        """
        changed = []
        for function in functions:
            others = [f for f in self.catalog.functions.values() if f.name != function.name]
            found = self.modules.load(function, others)
            if found != function:
                self.define(found)
            if (found.kind, found.form) != (function.kind, function.form):
                changed.append(found.name)
        if changed:
            raise FunctionChanged(
                f"the Python of {', '.join(changed)} has changed since it was created",
                hint="run the statement again",
            )

    def update(self, change: Callable[[Catalog], Catalog]) -> None:
        """Make a new catalog. Raises Cancelled: a statement that was given up defines nothing."""
        self.cancel.check()
        self.current.update(change)

    def define(self, *entries: Stream | Sink | Query | Table | Function) -> None:
        """Put entries into the catalog. Raises Cancelled."""
        self.update(lambda catalog: catalog.having(*entries))

    def undefine(self, kind: str, name: str) -> None:
        """Take an entry out of the catalog, if it is there. kind: as in Catalog.without."""
        self.current.update(lambda catalog: catalog.without(kind, name))

    def context(self) -> Context:
        """What planning looks at now."""
        here = self.variables.get("here", "")
        return Context(self.catalog, self.places, os.path.abspath(here) if here else os.getcwd())

    def env(self, program: Program, reads: Reads | None = None, spark: Any = None) -> dict[str, Any]:
        """The variables that a program begins with, once Spark has the packages that it needs.

        spark: another session than the one of the engine, such as one that is just starting.
        """
        from pyspark.sql import functions

        spark = spark or self.spark
        self.packages.provide(spark, program, self.cancel)
        self.engine.run_jobs_of(self.cancel, spark)
        activate(spark)
        env: dict[str, Any] = {"spark": spark, "F": functions, "show_batch": self._show_batch,
                               "checkpoint": self.places.transient}  # fmt: skip
        env |= {name: helper(name) for name in HELPERS if name != "LiveRows"}
        reads = reads or Reads()
        self._load(reads.functions)
        env |= self.modules.env(reads.functions)
        for table in reads.live:
            rows = self.live.get(table.name.casefold())
            if rows is None:
                raise EngineFault(
                    f"the live table {table.name} has no query yet", hint=f"INSERT INTO {table.name} SELECT …"
                )
            env[rows_variable(table.name)] = rows
        return env

    def _show_batch(self, batch: Any, batch_id: int) -> None:
        rows = collect(batch.limit(SHOWN))
        if len(rows.rows) == SHOWN:
            # There may be more, and Spark keeps a micro-batch's state only when all of it is computed.
            batch.write.format("noop").mode("append").save()
        self.show_batch(replace(rows, notes=(f"batch {batch_id}",)), batch_id)

    @contextmanager
    def own_state_provider(self, program: Program) -> Iterator[None]:
        """A program may choose its state store (stateful processors and real-time mode do); afterwards
        the session has its own again. What is started inside keeps what it was started with.
        """
        reads = reads_state(program)  # which may choose the format
        before = {key: self.spark.conf.get(key) for key, step in CHOICES.items() if step in program or reads}
        try:
            yield
        finally:
            for key, value in before.items():
                self.spark.conf.set(key, value)
