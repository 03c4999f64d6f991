"""The one place where a statement is carried out: Session.execute(statement) → Result.

The shell, a script, -e and standard input all end here. Nothing is printed.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import Assign, Node, Program, evaluate, render, run
from streamsql.catalog import REJECTED, Catalog, Query, Sink, Stream, Table
from streamsql.connectors.base import Places, is_secret
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.packages import PACKAGES
from streamsql.connectors.registry import connector
from streamsql.errors import (
    Cancelled,
    EngineFault,
    InputFault,
    NameFault,
    Source,
    StreamsqlError,
    did_you_mean,
)
from streamsql.language.parser import parse, split_script
from streamsql.language.statements import function, live_table, query, session, sink, stream, watch
from streamsql.language.statements.base import Column, Name, Statement
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.context import Context
from streamsql.plan.definitions import check_watermark
from streamsql.plan.planner import plan, restart
from streamsql.plan.stateful import CHOICES, CHOOSES_ROCKSDB
from streamsql.preferences import PREFIX, is_preference, spec_of
from streamsql.results import Done, Leave, Result, Rows, Started, Text
from streamsql.runtime import show, watching
from streamsql.runtime.attendant import Attendant
from streamsql.runtime.config import Config
from streamsql.runtime.draining import stop_queries
from streamsql.runtime.engine import JOBS, Engine, activate
from streamsql.runtime.explain import program_text, spark_plan
from streamsql.runtime.faults import translate
from streamsql.runtime.functions import WHAT, Modules
from streamsql.runtime.helpers import HELPERS, helper
from streamsql.runtime.journal import LiveTables
from streamsql.runtime.packages import Packages, is_there
from streamsql.runtime.paths import check_log, check_path
from streamsql.runtime.preview import Looking
from streamsql.runtime.queries import Queries
from streamsql.runtime.reach import check_servers
from streamsql.runtime.running import BUSY, GOING_ON, Running
from streamsql.runtime.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.stopping import PATIENCE
from streamsql.runtime.store import Past, check_secrets, in_full, past_of, placed, secrets
from streamsql.runtime.temporary import TemporaryViews
from streamsql.runtime.topics import show_topics
from streamsql.runtime.userlib import check_code
from streamsql.runtime.values import collect

if TYPE_CHECKING:
    from streamsql.runtime.live import LiveRows


class Session:
    """The state behind a prompt or a script: catalog, settings, variables, queries, and Spark."""

    def __init__(self, config: Config, spark: Any = None) -> None:
        self.config = config
        self.catalog = Catalog()
        self.places = Places(str(config.folder))
        self.variables: dict[str, str] = {}
        self.settings = config.settings
        self.queries = Queries()
        self.modules = Modules()
        self.store = config.store
        self.live = LiveTables(self.places if self.store else None, lambda name: name in self.catalog.sinks)
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
        run(made.program, self._env(made.program, made.reads, spark))

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
        made = plan(statement, self.context())
        try:
            if isinstance(made, plans.Direct):
                result = self._direct(made.statement)
            else:
                self.temporary.check(statement, lambda: self.spark)
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
        found = self.store.past.get(query.casefold()) if self.store else None
        return found or Past("stopped")

    def _saved(self, made: plans.Plan) -> tuple[str, ...]:
        """Keep what a statement changed in the workspace. Returns what is to be told of that."""
        looks = (
            isinstance(made, plans.Explain)
            or (isinstance(made, plans.Collect) and not made.creates)
            or (isinstance(made, plans.Direct) and type(made.statement) not in self._DIRECT)
        )
        return () if looks else self.save()

    def save(self, why: str = "") -> tuple[str, ...]:
        """Write definitions and the queries' status into the workspace, if there is one.

        why: the reason for which running queries are about to end.
        """
        if self.store is None:
            return ()
        views = self.temporary.texts()
        try:
            self.store.save(self.catalog, self.settings.changed, views)
        except OSError as error:
            return (f"the workspace could not be written: {(error.strerror or str(error)).lower()}",)
        return self.save_status(why)

    def save_status(self, why: str = "") -> tuple[str, ...]:
        """Write how the queries are into the workspace, if there is one. May be called on any thread."""
        if self.store is None:
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

    def _env(self, program: Program, reads: plans.Reads | None = None, spark: Any = None) -> dict[str, Any]:
        """The variables that a program begins with, once Spark has the packages that it needs."""
        from pyspark.sql import functions

        spark = spark or self.spark
        self.packages.provide(spark, render(program))
        spark.sparkContext.setJobGroup(JOBS, "a statement")
        activate(spark)
        env: dict[str, Any] = {"spark": spark, "F": functions, "show_batch": self._show_batch,
                               "checkpoint": self.places.checkpoint}  # fmt: skip
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
        rows = collect(batch.limit(20))
        self.config.show_batch(replace(rows, notes=(f"batch {batch_id}",)), batch_id)

    def _define_stream(self, made: plans.DefineStream, statement: Statement) -> Result:
        name = made.stream.name
        key = name.casefold()
        if made.skip_existing and (key in self.catalog.streams or key in self.catalog.sinks):
            return Done(message=f"stream {name} is there already")
        if made.path:
            check_path(made.path)
        if made.code:
            check_code(
                made.code, made.stream.option("folder"), connector(Name(made.stream.connector)), "read"
            )
        made_stream, notes = made.stream, tuple[str, ...]()
        if made.infer is not None:
            columns = self._with_event_time(made, self._infer(made, statement))
            made_stream = replace(made_stream, columns=columns, inferred=True)
            check_watermark(made_stream.watermark, columns)
            listed = ", ".join(f"{c.name} {c.type}" for c in made_stream.columns)
            notes = (f"columns of {name}, as inferred and kept: {listed}",)
        if made_stream.connector == "values":
            folder = Path(self.places.values(name))
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.catalog.streams[key] = placed(made_stream) if self.store else made_stream
        return Done((*notes, *self._not_kept(made_stream)), f"stream {name} created")

    def _infer(self, made: plans.DefineStream, statement: Statement) -> tuple[Column, ...]:
        assert made.infer is not None
        try:
            fields = self._schema(made.infer)
        except Exception as error:
            fault = translate(error, statement.text)
            if fault.condition != "UNABLE_TO_INFER_SCHEMA":
                raise fault from error
            fields = []
        if not fields:
            raise InputFault(
                f"the columns of {made.stream.name} cannot be inferred: there are no rows yet",
                hint=f"declare them: CREATE STREAM {made.stream.name} (id INT, ts TIMESTAMP) USING …",
                span=made.path.span if made.path else None,
            )
        return tuple(Column(f.name, f.dataType.simpleString()) for f in fields)

    def _schema(self, frame: Node) -> list[Any]:
        """The fields of a DataFrame."""
        return list(evaluate(frame, self._env((Assign("", frame),))).schema.fields)

    def _with_event_time(self, made: plans.DefineStream, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """Inferred columns, the watermark's as a timestamp where its texts are times."""
        mark = made.stream.watermark
        found = next((c for c in columns if mark and c.name.casefold() == mark.column.value.casefold()), None)
        if made.infer_times is None or found is None or found.type != "string":
            return columns
        times = {f.name: f.dataType.simpleString() for f in self._schema(made.infer_times)}
        event_time = replace(found, type=times.get(found.name, found.type))
        return tuple(event_time if c is found else c for c in columns)

    def _define_sink(self, made: plans.DefineSink, statement: Statement) -> Result:
        key = made.sink.name.casefold()
        if made.skip_existing and key in self.catalog.sinks:
            return Done(message=f"sink {made.sink.name} is there already")
        if made.code:
            check_code(made.code, made.sink.option("folder"), connector(Name(made.sink.connector)), "write")
        self.catalog.sinks[key] = placed(made.sink) if self.store else made.sink
        kind = "live table" if made.sink.is_live else "sink"
        return Done(self._not_kept(made.sink), f"{kind} {made.sink.name} created")

    def _not_kept(self, entry: Stream | Sink) -> tuple[str, ...]:
        """What a workspace does not keep of a stream or sink."""
        names = sorted(secrets(entry) & {k.casefold() for k, _ in entry.options}) if self.store else []
        return tuple(
            f"the workspace does not keep the {n}; it keeps where it lies: {n} '${{env:NAME}}'" for n in names
        )

    def _define_function(self, made: plans.DefineFunction, statement: Statement) -> Result:
        key = made.function.name.casefold()
        if made.skip_existing and key in self.catalog.functions:
            return Done(message=f"function {made.function.name} is there already")
        others = [f for k, f in self.catalog.functions.items() if k != key]
        found = self.modules.find(made.function, made.target, self.variables.get("here", ""), others)
        self.catalog.functions[key] = found
        return Done(message=f"{WHAT[found.kind]} {found.name} created")

    def _drop_function(self, statement: function.DropFunction) -> Result:
        found = self.catalog.function(statement.name)
        del self.catalog.functions[found.name.casefold()]
        if self.engine.started and found.kind != "processor":
            self.spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote_name(found.name)}")
        return Done(message=f"{WHAT[found.kind]} {found.name} dropped")

    @contextmanager
    def _own_state_provider(self, program: Program) -> Iterator[None]:
        """A program may choose its state store (stateful processors and real-time mode do); afterwards
        the session has its own again. What is started inside keeps what it was started with.
        """
        before = {key: self.spark.conf.get(key) for key, step in CHOICES.items() if step in program}
        try:
            yield
        finally:
            for key, value in before.items():
                self.spark.conf.set(key, value)

    def _collect_plan(self, made: plans.Collect, statement: Statement) -> Result:
        began = time.monotonic()
        with self._own_state_provider(made.program):
            return self._collected(
                made, run(made.program, self._env(made.program, made.reads)), statement, began
            )

    def _collected(self, made: plans.Collect, frame: Any, statement: Statement, began: float) -> Result:
        if made.creates:
            streaming = self.spark.table(made.creates).isStreaming
            self.catalog.tables[made.creates.casefold()] = Table(made.creates, streaming)
        self.temporary.remember(statement, made.creates)
        if frame.isStreaming:
            raise EngineFault(
                "this query reads a stream that Spark knows and the console does not",
                hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
            )
        rows = collect(frame)
        if not rows.columns:
            return Done(message="done")
        return replace(rows, seconds=time.monotonic() - began)

    def _write(self, made: plans.Write, statement: Statement) -> Result:
        check_servers(made.sinks)
        env = self._env(made.program, made.reads)
        self._check_drivers(made.sinks)
        self._check_logs(made.sinks, keeps=False)
        with self._own_state_provider(made.program):
            run(made.program, env)
        return Done(message=made.message)

    def _check_logs(self, sinks: Iterable[Sink], *, keeps: bool) -> None:
        """Raise RuleFault when one way of writing files would hide what another way has written."""
        for found in sinks:
            if found.connector != "table":
                check_log(self.spark, found, connector(Name(found.connector)), keeps=keeps)

    def _check_drivers(self, sinks: Iterable[Sink]) -> None:
        """Raise EngineFault when Spark's JVM has not the driver that a sink names."""
        for found in sinks:
            wanted = connector(Name(found.connector)).driver(found) if found.connector != "table" else ""
            if wanted and not is_there(self.spark, wanted):
                raise EngineFault(
                    f"the sink {found.name} needs the driver {wanted}",
                    hint="streamsql --packages group:name:version …, or --jars FILE",
                )

    # ---- streaming queries ----------------------------------------------------------------

    def _run(self, made: plans.Run, statement: Statement) -> Result:
        if made.skip_existing and made.sink.name.casefold() in self.catalog.sinks:
            return Done(message=f"live table {made.sink.name} is there already")
        if made.transient:
            return self._follow(made, statement)
        if self.store and made.query.checkpoint:
            place = in_full(made.query.checkpoint)
            made = replace(made, query=replace(made.query, checkpoint=place), checkpoint=place)
        running = self.start_query(made, replaces=made.define)
        if made.define:
            self.catalog.sinks[made.sink.name.casefold()] = made.sink
        self.catalog.queries[made.query.name.casefold()] = made.query
        what = f"live table {made.sink.name}" if made.define else f"query {made.query.name}"
        notes = [f"output mode {running.mode}: {running.reason}"] if running.reason else []
        if CHOOSES_ROCKSDB in made.program:
            processor = any(f.kind == "processor" for f in made.reads.functions)
            whose = "stateful processors need" if processor else "real-time mode needs"
            notes.append(f"state store of this query: RocksDB, which {whose}")
        for table in made.live:
            if self.live[table.name.casefold()].dropped:
                notes.append(f"only the last {table.retain} rows of {table.name} are kept")
        notes += running.notes
        durable = len(made.live) < len(made.targets)
        beside = self._start_rejected(made)
        notes += [f"query {name} started: it writes malformed messages" for name in beside]
        return Started(tuple(notes), (made.query.name, *beside), f"{what} started", durable or bool(beside))

    def _start_rejected(self, made: plans.Run) -> list[str]:
        """The queries that bring malformed messages to the sinks that ON MALFORMED INTO names: one for
        each stream, whoever reads it, so that each message is there once.
        """
        started = []
        for read in made.reads.streams:
            name = f"{read.name}_{REJECTED}"
            running = self.queries.all.get(name.casefold())
            if not read.malformed_sink or (running and running.status() in GOING_ON):
                continue
            if name.casefold() in self.catalog.queries:
                self.start_query(restart(self.catalog.queries[name.casefold()], self.context()))
            else:
                trigger = f"TRIGGER {made.query.trigger.sql()}" if made.query.trigger else ""
                rejected = quote_name(f"{read.name}${REJECTED}")
                into = f"INSERT INTO {quote_name(read.malformed_sink)} AS QUERY {quote_name(name)}"
                statement = parse(
                    split_script(Source("", f"{into} {trigger} SELECT * FROM {rejected}"))[0], {}
                )
                query_of = plan(statement, self.context())
                assert isinstance(query_of, plans.Run)
                self._run(query_of, statement)
            started.append(name)
        return started

    def start_query(self, made: plans.Run, *, replaces: bool = False) -> Running:
        """Start a query; one that it replaces is ended only once nothing speaks against the new one."""
        with self.queries.starting:
            return self._start_query(made, replaces)

    def _start_query(self, made: plans.Run, replaces: bool) -> Running:
        entries: tuple[Stream | Sink, ...] = (*made.reads.streams, *(t.sink for t in made.targets))
        check_secrets(entries)
        check_servers(entries)
        env = self._env(made.program + made.writer("append"), made.reads)
        self._check_drivers(t.sink for t in made.targets)
        self._check_logs((t.sink for t in made.targets), keeps=not made.feeds_batches)
        env["LiveRows"] = helper("LiveRows")  # with pyarrow, which a prompt must not wait for
        with self._own_state_provider(made.program):
            choice = self.queries.prepare(made, env, fresh=replaces)
            if replaces:
                self._forget_query(made.query.name)
            self._set_checkpoint_manager(made.checkpoint)
            for table, step in zip(made.live, made.keeping(choice.mode), strict=True):
                # A query that goes on feeds the rows that are there.
                known = self.live.get(table.name.casefold())
                rows = evaluate(step.node, env) if known is None else known
                env[step.name] = rows
                if made.transient:
                    self.live[table.name.casefold()] = rows
                elif known is None:
                    self.live.begin(table.name.casefold(), rows)
            code = self.modules.digests(made.reads.functions)
            return self.queries.launch(made, env, choice, code)

    def _set_checkpoint_manager(self, checkpoint: str) -> None:
        """The fast manager promises enough on a local file system only."""
        key = "spark.sql.streaming.checkpointFileManagerClass"
        if self.settings.start_conf().get(key) != LOCAL_CHECKPOINTS:
            return
        remote = "://" in checkpoint and not checkpoint.startswith("file:")
        if remote:
            self.spark.conf.unset(key)
        else:
            self.spark.conf.set(key, LOCAL_CHECKPOINTS)

    def _follow(self, made: plans.Run, statement: Statement) -> Result:
        """A SELECT over a stream: shown live at a prompt; else read what is there, give the result."""
        if self.config.interactive:
            return watching.follow(made, self)
        began = time.monotonic()
        name = f"select_{len(self.queries.all) + 1}_{os.getpid()}"
        made = made.named(name, self.places.checkpoint(name))
        running = self.start_query(made)
        try:
            self.queries.wait([name.casefold()], idle=made.query.trigger is None, timeout=None)
            rows = collect(self.live[name.casefold()].frame(self.spark))
        except StreamsqlError as error:
            error.message = error.message.replace(f"query {name} failed: ", "the query failed: ")
            raise
        finally:
            self.queries.stop(running, 0)
            self.queries.all.pop(name.casefold(), None)
            self.live.pop(name.casefold(), None)
            shutil.rmtree(Path(made.checkpoint).parent, ignore_errors=True)
        notes = show.why_empty(running, made) if not rows.rows else ()
        return replace(rows, seconds=time.monotonic() - began, notes=notes)

    def _forget_query(self, name: str) -> None:
        """Stop a query, drop its definition, the console's own checkpoint and the rows it fed."""
        running = self.queries.all.get(name.casefold())
        if running:
            self.queries.stop(running)
            self.queries.all.pop(name.casefold(), None)
        self.queries.failures.pop(name.casefold(), None)
        found = self.catalog.queries.pop(name.casefold(), None)
        if found:
            for fed in found.sinks:
                self.live.forget(fed.casefold())
            shutil.rmtree(Path(self.places.checkpoint(found.name)).parent, ignore_errors=True)

    def _explain(self, made: plans.Explain, statement: Statement) -> Result:
        if made.mode == "pyspark":
            return Text(
                text=program_text(made.plan, self.context(), self.settings, self.packages.for_program)
            )
        assert isinstance(made.plan, (plans.Collect, plans.Write, plans.Run))
        program = made.plan.program
        if isinstance(made.plan, plans.Write):
            program = tuple(step for step in program if step.name)
        env = self._env(program, made.plan.reads)
        with self._own_state_provider(program):
            run((*program, Assign("", program[-1].node)), env)
            if isinstance(made.plan, plans.Run) and any(t.select for t in made.plan.targets):
                frames = {t.sink.name: evaluate(t.rows, env) for t in made.plan.targets}
                return Text(text="\n".join(f"-- {n}\n{spark_plan(f, made.mode)}" for n, f in frames.items()))
            return Text(text=spark_plan(env["result"], made.mode))

    def _preview(self, made: plans.Preview, statement: Statement) -> Result:
        return Looking(self, self.context(), self._env).preview(made)

    def _topics(self, made: plans.Topics, statement: Statement) -> Result:
        self.packages.load(self.spark, PACKAGES["kafka"])
        return show_topics(self.spark, made, self.queries.cancelled)

    # ---- statements without a program -----------------------------------------------------

    def _direct(self, statement: Statement) -> Result:
        answer = self._DIRECT.get(type(statement))
        if answer is None:
            return show.answer(statement, self)
        return answer(self, statement)

    def _drop_stream(self, statement: stream.DropStream) -> Result:
        key = statement.name.value.casefold()
        if statement.if_exists and key not in self.catalog.streams:
            return Done(message=f"there is no stream {statement.name}")
        found = self.catalog.stream(statement.name)
        del self.catalog.streams[key]
        return Done(message=f"stream {found.name} dropped")

    def _drop_sink(self, statement: sink.DropSink) -> Result:
        key = statement.name.value.casefold()
        if statement.if_exists and key not in self.catalog.sinks:
            return Done(message=f"there is no sink {statement.name}")
        found = self.catalog.sink(statement.name)
        feeding = [q.name for q in self.catalog.queries_into(found.name)]
        if feeding:
            raise NameFault(
                f"the query {feeding[0]} writes into {found.name}",
                hint=f"DROP QUERY {feeding[0]};",
                span=statement.name.span,
            )
        del self.catalog.sinks[key]
        self.live.forget(key)
        return Done(message=f"sink {found.name} dropped")

    def _drop_live_table(self, statement: live_table.DropLiveTable) -> Result:
        key = statement.name.value.casefold()
        if statement.if_exists and key not in self.catalog.sinks:
            return Done(message=f"there is no live table {statement.name}")
        found = self.catalog.live_table(statement.name)
        for feeding in self.catalog.queries_into(found.name):
            if len(feeding.sinks) > 1:
                raise NameFault(
                    f"the query {feeding.name} writes into {feeding.sink}",
                    hint=f"DROP QUERY {feeding.name};",
                    span=statement.name.span,
                )
            self._forget_query(feeding.name)
        del self.catalog.sinks[key]
        self.live.forget(key)
        return Done(message=f"live table {found.name} dropped")

    def named(self, name: Name | None) -> list[Query]:
        """The query of that name; all of them for None. Raises NameFault."""
        return [self.catalog.query(name)] if name else list(self.catalog.queries.values())

    def _start_again(self, statement: query.StartQuery) -> Result:
        started, notes = [], tuple[str, ...]()
        for found in self.named(statement.name):
            running = self.queries.all.get(found.name.casefold())
            if running and running.status() in BUSY:
                if running.stopped:
                    raise NameFault(
                        f"the query {found.name} is still stopping: its last micro-batch runs",
                        hint=f"AWAIT QUERY {found.name};",
                        span=statement.name.span if statement.name else None,
                    )
                continue
            if running:
                self.queries.stop(running)  # it waits for no restart any more
            again = restart(found, self.context())
            notes += self.start_query(again).notes
            started.append(found.name)
        if not started:
            return Done(message="already running" if self.catalog.queries else "there are no queries")
        lasting = tuple(n for n in started if not self.catalog.query(Name(n)).live_table)
        return Started(notes, lasting or tuple(started), f"started: {', '.join(started)}", bool(lasting))

    def _drop_query(self, statement: query.DropQuery) -> Result:
        if statement.if_exists and statement.name.value.casefold() not in self.catalog.queries:
            return Done(message=f"there is no query {statement.name}")
        found = self.catalog.query(statement.name)
        self._forget_query(found.name)
        if found.live_table:
            self.catalog.sinks.pop(found.sinks[0].casefold(), None)
        return Done(message=f"query {found.name} dropped")

    def _await(self, statement: query.AwaitQuery) -> Result:
        names = [q.name.casefold() for q in self.named(statement.name)]
        names = [n for n in names if n in self.queries.all]
        self.queries.wait(names, idle=statement.idle, timeout=statement.timeout)
        notes = tuple(n for name in names for n in show.held_back(self.queries.all[name]))
        return Done(notes, "idle" if statement.idle else "ended")

    def _set(self, statement: session.Set) -> Result:
        if statement.value is None:
            return self._show_settings(statement.key)
        assert statement.key
        key = statement.key.value
        if is_preference(key):
            value = self.config.preferences.set(key, statement.value, span=statement.key.span)
            return Done(message=f"{key.casefold()} = {value}")
        if not key.startswith("spark."):
            raise NameFault(
                f"there is no setting {key}",
                hint=self._nearest_setting(key) or f"settings begin with spark. or {PREFIX}",
                span=statement.key.span,
            )
        if self.engine.started or self.engine.starting:
            self.spark.conf.set(key, statement.value)
        self.settings.changed[key] = statement.value
        return Done(message=f"{key} = {'***' if is_secret(key) else statement.value}")

    def _nearest_setting(self, key: str) -> str:
        """A hint; a preference may have been written without its `streamsql.`."""
        keys = [k for k, _, _ in (*self.settings.rows(), *self.config.preferences.rows())]
        return did_you_mean(key, keys) or did_you_mean(PREFIX + key, keys)

    def _show_settings(self, key: Name | None) -> Result:
        rows = [*self.settings.rows(), *self.config.preferences.rows()]
        if key is not None:
            wanted = PREFIX + spec_of(key.value, key.span).name if is_preference(key.value) else key.value
            rows = [r for r in rows if r[0] == wanted]
            if not rows:
                try:
                    value = self.spark.conf.get(key.value)  # Spark's own default
                except Exception:
                    value = "<undefined>"
                rows = [(key.value, "***" if is_secret(key.value) else value, "Spark")]
        return Rows((), ("key", "value", "from"), rows, (False, False, False))

    def _reset(self, statement: session.Reset) -> Result:
        preferences = self.config.preferences
        keys = [statement.key.value] if statement.key else [*self.settings.changed, *preferences.changed()]
        for key in keys:
            if is_preference(key):
                preferences.reset(key, statement.key.span if statement.key else None)
                continue
            self.settings.changed.pop(key, None)
            before = self.settings.start_conf().get(key)
            if self.engine.started:
                if before is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, before)
        return Done(message=f"reset: {', '.join(keys)}" if keys else "nothing was set")

    def _define(self, statement: session.Define) -> Result:
        self.variables[statement.name.value] = statement.value
        return Done(message=f"{statement.name} defined")

    _PLANS: dict[type, Callable[..., Result]] = {
        plans.DefineStream: _define_stream,
        plans.DefineSink: _define_sink,
        plans.DefineFunction: _define_function,
        plans.Collect: _collect_plan,
        plans.Write: _write,
        plans.Run: _run,
        plans.Explain: _explain,
        plans.Preview: _preview,
        plans.Topics: _topics,
    }
    _DIRECT: dict[type, Callable[..., Result]] = {
        stream.DropStream: _drop_stream,
        sink.DropSink: _drop_sink,
        function.DropFunction: _drop_function,
        live_table.DropLiveTable: _drop_live_table,
        query.StopQuery: lambda self, statement: stop_queries(statement, self),
        query.StartQuery: _start_again,
        query.DropQuery: _drop_query,
        query.AwaitQuery: _await,
        watch.Watch: lambda self, statement: watching.watch(statement, self),
        session.Set: _set,
        session.Reset: _reset,
        session.Define: _define,
        session.Exit: lambda self, statement: Leave(),
        session.Clear: lambda self, statement: Text(text=""),
    }
