"""The parts of a session that programs and queries need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from streamsql.calls import Program
from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.connectors.base import Places
from streamsql.connectors.memory import rows_variable
from streamsql.definitions import DEFAULT_RETAIN, Aside, Change, Function, Query, Sink
from streamsql.errors import EngineFault, Note
from streamsql.plan.context import EXTENSIONS, Context, Server
from streamsql.plan.lowering.as_written import changed_language
from streamsql.plan.lowering.state_tables import reads_state
from streamsql.plan.lowering.stateful_calls import CHOICES
from streamsql.plan.plans import Reads
from streamsql.runtime.checkpoints.batch_history import BatchHistories
from streamsql.runtime.embedded.carried_values import to_arrow
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.cluster_cores import fit_partitions
from streamsql.runtime.engine.events import Events
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.live.part_of_rows import PartOfRows
from streamsql.runtime.preflight.function_kinds import Modules
from streamsql.runtime.program_helpers import HELPERS, helper
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.queries.run import Running
from streamsql.runtime.session_config import Config

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows

SHOWN = 20
"""The number of rows of a micro-batch that the sink `console` shows without numRows."""

P = TypeVar("P", bound="QueryParts")


@dataclass
class Newest:
    """What WHY without a name is about; of each client its own. run: the one that a statement started last;
    empty_select: the SELECT over live tables after it that gave no rows.
    """

    run: Running | None = None
    empty_select: str = ""

    def started(self, running: Running) -> Running:
        """Take note of the run that a statement has started."""
        self.run, self.empty_select = running, ""
        return running


class FunctionChanged(EngineFault):
    """The Python of a function is of another kind than the plan assumed."""


def _shared(spark: Any) -> Any:
    """The session of Spark that all statements share."""
    return spark


@dataclass(frozen=True)
class QueryParts:
    """The parts of a session that programs and queries need. All statements share them, except `cancel`.

    cancel: the token of the statement that is being executed. current: the catalog. variant: makes the
    SparkSession of a statement of the engine's: one with settings of a client's own. server: the Spark
    Connect server that the console runs on, if it does. writes: a lock for each place of a batch write:
    Spark's own writes into one folder share a temporary one, which the first that ends takes from the others.
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
    histories: BatchHistories
    queries: Queries
    config: Config
    variant: Callable[[Any], Any] = field(default=_shared, kw_only=True)
    open_change: list[str] = field(default_factory=list, kw_only=True)
    newest: Newest = field(default_factory=Newest, kw_only=True)
    server: Callable[[], Server | None] = field(default=lambda: None, kw_only=True)
    create_views: Callable[[Program, Any], None] = field(default=lambda program, spark: None, kw_only=True)
    writes: dict[object, threading.Lock] = field(default_factory=dict, kw_only=True)

    def under(self: P, cancel: CancelToken) -> P:
        """The same parts with another cancel token, for one statement."""
        return replace(self, cancel=cancel)

    @property
    def has_own_settings(self) -> bool:
        """Whether the statement is one of a client with settings of its own."""
        return self.variant is not _shared

    @property
    def spark(self) -> Any:
        """The SparkSession; waits until it has started. Raises StartFault when it could not, Cancelled."""
        return self.variant(self.engine.wait(self.cancel))

    @property
    def catalog(self) -> Catalog:
        """The newest snapshot."""
        return self.current.snapshot

    def _load(self, functions: tuple[Function, ...]) -> None:
        """Import the modules of functions that were loaded from a workspace. Raises FunctionChanged when a
        function is of another kind than when it was created, since the plan assumed the old one.
        """
        changed = []
        for function in functions:
            others = [f for f in self.catalog.functions.values() if f.name != function.name]
            current = self.modules.load(function, others)
            if current != function:
                self.define(current)
            if (current.kind, current.form) != (function.kind, function.form):
                changed.append(current.name)
        if changed:
            raise FunctionChanged(
                f"the Python of {', '.join(changed)} has changed since it was created",
                hint="run the statement again",
            )

    def update(self, change: Callable[[Catalog], Catalog]) -> None:
        """Replace the catalog by a changed one. Raises Cancelled: a cancelled statement defines nothing."""
        self.cancel.check()
        self.current.update(change)

    def define(self, *entries: Aside | Sink | Query | Change) -> None:
        """Add entries to the catalog. Raises Cancelled."""
        self.update(lambda catalog: catalog.having(*entries))

    def undefine(self, kind: str, name: str) -> None:
        """Remove an entry from the catalog if it exists. kind: as in Catalog.without."""
        self.current.update(lambda catalog: catalog.without(kind, name))

    def context(self) -> Context:
        """What planning may read: the catalog, the places of files and the current folder."""
        here = self.variables.get("here", "")
        place = os.path.abspath(here) if here else os.getcwd()
        server, preferences = self.server(), self.config.preferences
        conf = self.settings.start_conf()
        return Context(
            self.catalog,
            self.places,
            place,
            stages=preferences["stages"] == "on" and server is None,
            times=preferences["event_times"] == "on" and server is None,
            open_change=next(iter(self.open_change), ""),
            zone=conf.get("spark.sql.session.timeZone", ""),
            staged_rate=preferences.count("staged_rate"),
            server=server,
            changed_language=changed_language(conf),
            extended=bool(conf.get(EXTENSIONS)) or server is not None,
        )

    def env(self, program: Program, reads: Reads | None = None, spark: Any = None) -> dict[str, Any]:
        """The variables that a program starts with. Loads the packages that it needs first.

        spark: a SparkSession to use instead of the engine's, such as one that is just starting.
        """
        spark = spark or self.spark
        self.create_views(program, spark)
        self.packages.provide(spark, program, self.cancel)
        fit_partitions(spark, self.settings)
        self.engine.run_jobs_of(self.cancel, spark)
        env: dict[str, Any] = {"spark": spark, "F": self.engine.functions(), "show_batch": self._show_batch,
                               "checkpoint": self.places.transient, "keep_rows": self._keep_rows}  # fmt: skip
        env |= {name: helper(name) for name, module in HELPERS.items() if module != "live_rows"}
        reads = reads or Reads()
        self._load(reads.functions)
        env |= self.modules.env(reads.functions)
        for table in reads.live:
            if not table.is_view:
                rows = self.rows_of(table.name)
                env[rows_variable(table.name)] = PartOfRows(rows, reads.part) if reads.part else rows
        return env

    def rows_of(self, table: str) -> LiveRows:
        """The rows of a live table. Raises EngineFault when it has no query yet."""
        rows: LiveRows | None = self.live.get(table.casefold())
        if rows is None:
            raise EngineFault(
                f"the live table {table} has no query yet",
                hint=f"INSERT INTO {table} SELECT …",
                code="NO_QUERY",
            )
        return rows

    def _show_batch(self, batch: Any, batch_id: int, most: int = SHOWN) -> None:
        rows = collect(batch.limit(most))
        if len(rows.rows) == most:
            # There may be more rows, and Spark saves the state of a micro-batch only if all are computed.
            batch.write.format("noop").mode("append").save()
        self.config.show_batch(replace(rows, notes=(Note("MICRO_BATCH", f"batch {batch_id}"),)), batch_id)

    def _keep_rows(self, name: str, frame: Any) -> None:
        """Add rows to a sink of a test."""
        rows = self.live.loaded(f"{name.casefold()}$$")
        if rows is None:
            rows = helper("LiveRows")(frame.schema, "append", None, DEFAULT_RETAIN)
            self.live[f"{name.casefold()}$$"] = rows
        rows.take(to_arrow(frame), rows.last_batch + 1)

    @contextmanager
    def own_state_provider(self, program: Program) -> Iterator[None]:
        """Restores the session's state store settings afterwards. A program may set them (stateful
        processors and real-time mode do); a query that is started inside keeps the program's. Only one
        program at a time may set them, and none while a query is started, which would take them over: so
        the lock of the starts is held. Raises Cancelled.
        """
        reads = reads_state(program)  # reading state may set the format
        keys = [key for key, step in CHOICES.items() if step in program or reads]
        if not keys:
            yield
            return
        with self.cancel.holding(self.queries.starting):
            before = {key: self.spark.conf.get(key) for key in keys}
            try:
                yield
            finally:
                for key, value in before.items():
                    self.spark.conf.set(key, value)
