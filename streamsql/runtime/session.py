"""The one place where a statement is carried out: Session.execute(statement) → Result.

The shell, a script, -e and standard input all end here. Nothing is printed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamsql.calls import Program, render, run
from streamsql.catalog import Catalog, Sink
from streamsql.connectors.base import Places
from streamsql.connectors.memory import rows_variable
from streamsql.errors import Cancelled, EngineFault, Source, StreamsqlError
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Clear, Exit
from streamsql.plan import plans
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.plan.stateful import CHOICES
from streamsql.plan.states import reads_state
from streamsql.results import Leave, Result, Text
from streamsql.runtime import readonly
from streamsql.runtime.attendant import Attendant
from streamsql.runtime.config import Config
from streamsql.runtime.engine import JOBS, Engine, activate
from streamsql.runtime.faults import translate
from streamsql.runtime.functions import Modules
from streamsql.runtime.helpers import HELPERS, helper
from streamsql.runtime.journal import LiveTables
from streamsql.runtime.kept import KeptBatches
from streamsql.runtime.packages import Packages
from streamsql.runtime.queries import Queries
from streamsql.runtime.state_checks import check_states
from streamsql.runtime.statements import (
    Answers,
    books,
    definitions,
    help,
    programs,
    queries,
    settings,
    show,
    show_queries,
)
from streamsql.runtime.stopping import PATIENCE
from streamsql.runtime.store import Past, past_of
from streamsql.runtime.temporary import TemporaryViews
from streamsql.runtime.values import collect

if TYPE_CHECKING:
    from streamsql.runtime.live import LiveRows

SHOWN = 20
"""Rows of a micro-batch that the sink `console` shows."""


class Session:
    """The state behind a prompt or a script: catalog, settings, variables, queries, and Spark."""

    def __init__(self, config: Config, spark: Any = None) -> None:
        self.config = config
        self.catalog = Catalog()
        if config.read_only and config.store:
            self.places = Places(str(config.store.folder / "run"), str(config.folder))
        else:
            self.places = Places(str(config.folder))
        self.variables: dict[str, str] = {}
        self.settings = config.settings
        self.queries = Queries()
        self.modules = Modules()
        self.store = config.store
        self.kept = KeptBatches(self.places, lasting=self.store is not None)
        tables = readonly.SharedTables if config.read_only else LiveTables
        self.live = tables(self.places if self.store else None, lambda name: name in self.catalog.sinks)
        self.look_again: Callable[[], None] = lambda: None
        """Called before each statement: what another console has defined meanwhile is taken up."""
        self.engine = Engine(config, self.queries.cancelled, spark)
        self.temporary = TemporaryViews(self.catalog, self._make_view)
        self.packages = Packages(
            self.settings.start_conf,
            config.cache,
            self.queries.cancelled,
            lambda: config.preferences["offline"] == "on",
            self.engine.say,
        )
        self.engine.on_start.append(self.temporary.restore)
        self.engine.on_lost.append(self.queries.lost)
        self.attendant = Attendant(self)
        self._saving = threading.Lock()

    # ---- Spark ----------------------------------------------------------------------------

    @property
    def spark(self) -> Any:
        """The SparkSession; waits for it. Raises StartFault when it could not start."""
        return self.engine.spark

    def _make_view(self, statement: Statement, spark: Any) -> None:
        made = plan(statement, self.context())
        assert isinstance(made, plans.Collect)
        run(made.program, self.env(made.program, made.reads, spark))

    def cancel(self) -> None:
        """Give up what is being carried out on another thread, until `resume`; queries run on."""
        self.queries.cancelled.set()
        self.engine.cancel()

    def resume(self) -> None:
        """Carry out statements again after a `cancel`."""
        self.queries.cancelled.clear()

    def close(self, limit: float = PATIENCE) -> None:
        """Stop all queries, then Spark if this session started it. limit: the seconds that their
        micro-batches have to end in.
        """
        self.attendant.close()
        self.save("the console was left")
        if self.engine.started:
            self.queries.stop_all(limit)
        self.engine.close()

    # ---- statements -----------------------------------------------------------------------

    def execute(self, statement: Statement, source: Source | None = None) -> Result:
        """Carry out one statement. Raises StreamsqlError, its span within statement.text; whatever
        else runs is untouched by that.
        """
        if self.queries.cancelled.is_set():
            raise Cancelled("cancelled")
        self.look_again()
        made = plan(statement, self.context())
        if self.config.read_only:
            readonly.refuse(made, frozenset((*definitions.DIRECT, *queries.DIRECT)), self)
        try:
            if isinstance(made, plans.Direct):
                kind = type(made.statement)
                answer = self._DIRECT.get(kind) or self._LOOKS[kind]
                result = answer(self, made.statement)
            else:
                self.temporary.check(statement, lambda: self.spark)
                if not isinstance(made, plans.Explain) or made.mode != "pyspark":
                    check_states(statement.text, self)
                result = self._PLANS[type(made)](self, made, statement)
            news, self.packages.news = self.packages.news, []
            notes = (*self.temporary.news(), *made.notes, *news, *self._saved(made), *result.notes)
            return replace(result, notes=notes) if notes != result.notes else result
        except StreamsqlError:
            raise
        except Exception as error:
            if self.queries.cancelled.is_set():
                raise Cancelled("cancelled") from None
            raise translate(error, statement.text, self.catalog.relation_names()) from error

    def past(self, query: str) -> Past:
        """How a query that has not run in this console was when it was last heard of."""
        if self.config.read_only:
            return readonly.past(query, self)
        found = self.store.past.get(query.casefold()) if self.store else None
        return found or Past("stopped")

    def _saved(self, made: plans.Plan) -> tuple[str, ...]:
        """Keep what a statement changed in the workspace. Returns what is to be told of that."""
        looks = (
            isinstance(made, plans.Explain)
            or (isinstance(made, plans.Collect) and not made.creates)
            or (isinstance(made, plans.Direct) and type(made.statement) in self._LOOKS)
        )
        return () if looks else self.save()

    def save(self, why: str = "") -> tuple[str, ...]:
        """Write definitions and the queries' status into the workspace, if there is one.

        why: the reason for which running queries are about to end.
        """
        if self.store is None or self.config.read_only:
            return ()
        views = self.temporary.texts()
        try:
            self.store.save(self.catalog, self.settings.changed, views)
        except OSError as error:
            return (f"the workspace could not be written: {(error.strerror or str(error)).lower()}",)
        return self.save_status(why)

    def save_status(self, why: str = "") -> tuple[str, ...]:
        """Write how the queries are into the workspace, if there is one. May be called on any thread."""
        if self.store is None or self.config.read_only:
            return ()
        known = dict(self.catalog.queries)
        with self._saving:
            past = {n: p for n, p in self.store.past.items() if n in known}
            for name in known:
                running = self.queries.all.get(name)
                if running is not None:
                    past[name] = past_of(running, self.queries.failures.get(name, ()), why)
            self.store.past = past
            folders = {n: f.folder for n, f in dict(self.catalog.functions).items() if f.folder}
            try:
                self.store.save_status(past, folders)
            except OSError as error:
                return (f"the workspace could not be written: {(error.strerror or str(error)).lower()}",)
        return ()

    def context(self) -> Context:
        here = self.variables.get("here", "")
        return Context(self.catalog, self.places, os.path.abspath(here) if here else os.getcwd())

    def env(self, program: Program, reads: plans.Reads | None = None, spark: Any = None) -> dict[str, Any]:
        """The variables that a program begins with, once Spark has the packages that it needs."""
        from pyspark.sql import functions

        spark = spark or self.spark
        self.packages.provide(spark, render(program))
        spark.sparkContext.setJobGroup(JOBS, "a statement")
        activate(spark)
        env: dict[str, Any] = {"spark": spark, "F": functions, "show_batch": self._show_batch,
                               "checkpoint": self.places.transient}  # fmt: skip
        env |= {name: helper(name) for name in HELPERS if name != "LiveRows"}
        reads = reads or plans.Reads()
        env |= self.modules.env(reads.functions)
        for table in reads.live:
            env[rows_variable(table.name)] = self._rows_of(table)
        return env

    def _rows_of(self, table: Sink) -> LiveRows:
        found = self.live.get(table.name.casefold())
        if found is None:
            raise EngineFault(
                f"the live table {table.name} has no query yet", hint=f"INSERT INTO {table.name} SELECT …"
            )
        return found

    def _show_batch(self, batch: Any, batch_id: int) -> None:
        rows = collect(batch.limit(SHOWN))
        if len(rows.rows) == SHOWN:
            # There may be more, and Spark keeps a micro-batch's state only when all of it is computed.
            batch.write.format("noop").mode("append").save()
        self.config.show_batch(replace(rows, notes=(f"batch {batch_id}",)), batch_id)

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

    _PLANS: Answers = {
        **definitions.PLANS,
        **programs.PLANS,
        **queries.PLANS,
    }
    _DIRECT: Answers = {
        **definitions.DIRECT,
        **queries.DIRECT,
        **settings.DIRECT,
        Exit: lambda session, statement: Leave(),
        Clear: lambda session, statement: Text(text=""),
    }
    _LOOKS: Answers = {
        **show.DIRECT,
        **show_queries.DIRECT,
        **help.DIRECT,
        **books.DIRECT,
    }
    """Those that change nothing."""
