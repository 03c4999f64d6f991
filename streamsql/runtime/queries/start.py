"""Starts a query, and removes one."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.connectors.memory import rows_variable
from streamsql.errors import Note
from streamsql.plan import plans
from streamsql.plan.changes_plan import Changes
from streamsql.plan.planner import start_plan
from streamsql.runtime.checkpoints.query_marker import (
    Folder,
    check_unchanged,
    facts_now,
    recorded_facts,
    with_operators,
    write_marker,
)
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.live.recorded_progress import of_checkpoint, of_late_rows
from streamsql.runtime.preflight.database_types import check_database_types
from streamsql.runtime.preflight.file_columns import check_file_columns
from streamsql.runtime.preflight.file_names import follow_file_names
from streamsql.runtime.preflight.registry_subjects import register_schemas
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.late_rows_thread import LateWrites
from streamsql.runtime.queries.new_generations import (
    Generation,
    begin_checkpoint,
    check_checkpoint,
    generation_for,
    in_generation,
    in_use,
    old_checkpoint,
    query_now,
    record_checkpoint,
)
from streamsql.runtime.queries.null_columns import follow_null_columns
from streamsql.runtime.queries.plan_checks import reads_variable, unresolved_variable
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.progress_reports import Output, TableOutput
from streamsql.runtime.queries.promoted_rows import write_promoted_rows
from streamsql.runtime.queries.run import BUSY, Running
from streamsql.runtime.queries.start_checks import (
    check_alone_in_folders,
    check_gaps,
    check_logs,
    check_places,
    check_rows_of,
    check_sink_of_changes,
)
from streamsql.runtime.queries.start_refresh import (
    analysed,
    await_first,
    changed_input,
    check_computes,
    launch_changes,
    launch_refresh,
    stage_frames,
)
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.queries.written_rows import begin_late, give_first_rows, rows_to_write
from streamsql.runtime.workspace.generations import generations_of
from streamsql.runtime.workspace.owned_folders import remove


def start_again(parts: QueryParts, name: str) -> None:
    """Start a query again that a statement which failed has stopped. Raises the fault of its start."""
    running, parts = parts.queries.all.get(name.casefold()), parts.under(CancelToken())
    if running is not None and running.status() in BUSY and running.stopped:
        parts.queries.stop(running, parts.cancel)
    if running is not None and running.status() == "stopped":
        start_query(parts, start_plan(parts.catalog.queries[name.casefold()], parts.context()))


def start_query(parts: QueryParts, plan: plans.Run, *, replaces: bool = False) -> Running:
    """Start a query. replaces: it takes the place of one with its name, which is stopped only after all
    checks of the new one have passed. Raises faults, Cancelled, or exceptions of Spark.
    """
    with parts.cancel.holding(parts.queries.starting):
        before = parts.queries.all.get(plan.query.name.casefold())
        if before is not None and not replaces and before.status() == "running":
            return before  # another client, or a server that resumes it, was faster
        stages = parts.catalog.stages_of(plan.query.name) if replaces else ()
        running = _start(parts, plan, replaces)
        left = {stage.name for stage in stages} - {s.name for s in parts.catalog.stages_of(plan.query.name)}
        # A generation that was left goes on with its own stages.
        lefts = generations_of(parts.places, plan.query.name).left() if left else []
        for name in left.difference(*(generation.stages for generation in lefts)):
            generations_of(parts.places, name).remove()
        return running


def _start(parts: QueryParts, plan: plans.Run, replaces: bool) -> Running:
    if isinstance(plan, plans.Refresh):
        refresh = RefreshStart(parts, plan, replaces)
        run_steps(refresh.steps())
        return refresh.running
    start = StreamingStart(parts, plan, replaces)
    run_steps(start.checks())
    with parts.own_state_provider(plan.program):
        run_steps(start.steps())
    start.record()
    return start.running


class RefreshStart:
    """The start of a query over live tables: it refreshes a live table, or keeps the sink of an INSERT in
    step. A new live table has its first rows at the end. running: its run, after `launch`.
    """

    running: Running

    def __init__(self, parts: QueryParts, plan: plans.Refresh, replaces: bool) -> None:
        self.parts, self.plan, self.replaces = parts, plan, replaces
        self.name = plan.query.name
        self.defined = self.name.casefold() in parts.catalog.queries
        self.new = replaces or not self.defined
        self.before = query_now(parts.catalog, parts.places, plan.query.name)
        self.schema: Any = None
        self.started: list[Running] = []

    def steps(self) -> list[Step]:
        """The steps, with what undoes them."""
        parts, plan, steps = self.parts, self.plan, list[Step]()
        if isinstance(plan, Changes):
            steps.append(Step(lambda: check_sink_of_changes(parts, plan)))
        if plan.stages:
            steps += [Step(self.check_stages)] if self.new else []
            steps.append(Step(lambda: parts.current.update(plan.with_stages), self.forget))
            steps += [Step(self.start_stages, self.stop_stages), Step(self.analyse), Step(self.launch)]
        else:
            steps += [Step(self.analyse), Step(self.replace), Step(self.launch)]
        if self.replaces:
            forget = (lambda: None) if plan.stages else self.forget
            steps.append(Step(lambda: await_first(parts, self.running), forget))
        return steps

    def check_stages(self) -> None:
        """Let Spark check each stage, and stop the query that this one replaces."""
        with self.parts.own_state_provider(self.plan.program):
            run(self.plan.program, stage_frames(self.parts, self.plan)[1])
        self.parts.cancel.check()
        forget_query(self.parts, self.name, files=False)

    def forget(self) -> None:
        """Remove a new query."""
        if self.new:
            forget_query(self.parts, self.name)
        if self.replaces:
            self.parts.live.forget(self.name.casefold())

    def start_stages(self) -> None:
        """Start the stages that do not run."""
        for stage in self.plan.stages:
            before = self.parts.queries.all.get(stage.query.name.casefold())
            if before is None or before.status() not in BUSY:
                self.started.append(_start(self.parts, stage, self.replaces))

    def stop_stages(self) -> None:
        """Stop the stages that were started."""
        for stage in self.started:
            self.parts.queries.stop(stage, CancelToken())

    def analyse(self) -> None:
        """Let Spark analyse the query over the rows that its inputs have now."""
        try:
            self.schema = analysed(self.parts, self.plan)
        except Exception as error:
            variable = unresolved_variable(self.parts.spark, error)
            if variable:
                raise reads_variable(self.plan, variable) from error
            if self.new or self.plan.stages:
                raise
            raise changed_input(error, self.plan) from error

    def replace(self) -> None:
        """Compute the query once, and stop the one that it replaces."""
        if isinstance(self.plan, Changes):
            schema = type(self.schema)(self.schema.fields[:-2])
            check_database_types(self.parts.spark, self.plan.sink, schema)
            check_file_columns(self.parts.spark, self.plan.sink, schema, self.plan.body_span)
        self.parts.cancel.check()
        if self.replaces and not isinstance(self.plan, Changes):
            if self.defined:
                check_computes(self.parts, self.plan, self.schema)  # else the one that it replaces goes on
            forget_query(self.parts, self.name, files=False)

    def launch(self) -> None:
        """Compute the rows from now on."""
        if isinstance(self.plan, Changes):
            self.running = launch_changes(self.parts, self.plan, self.schema, self.before)
        else:
            self.running = launch_refresh(self.parts, self.plan, self.schema, self.before)
        if self.plan.stages:
            notes = (note for stage in self.started for note in stage.notes)
            self.running.notes = tuple(dict.fromkeys(notes))


def check_goes_on(parts: QueryParts, plan: plans.Run) -> None:
    """Raise faults where a query that runs could not go on from its checkpoint with this plan. Starts
    nothing.
    """
    if isinstance(plan, plans.Refresh):
        for stage in plan.stages:
            check_goes_on(parts, stage)
        return
    start = StreamingStart(parts, plan, replaces=False)
    for step in start.checks():
        step.do()
    start.replaces = True  # the query itself has its checkpoint open
    start.analyse()
    start.compare()


class StreamingStart:
    """The start of a streaming query. plan: with the place of its checkpoint, once that is known; old: the
    generation in use before; begun: the newest micro-batch of the checkpoint, -1 without one; env: the
    variables of its program. running: its run, after `launch`.
    """

    running: Running

    def __init__(self, parts: QueryParts, plan: plans.Run, replaces: bool) -> None:
        self.parts, self.plan, self.replaces = parts, plan, replaces
        self.late = (plan.late.sink,) if plan.late else ()
        self.notes = tuple[Note, ...]()
        self.output: Output | None = None
        self.aside = ""
        self.generation = Generation(Path(), new=False)
        self.before = query_now(parts.catalog, parts.places, plan.query.name)
        self.recorded = dict[str, Any]()

    def checks(self) -> tuple[Step, ...]:
        """What is checked before Spark analyses the query."""
        return Step(self.check_places), Step(self.find_checkpoint), Step(self.check_folders)

    def steps(self) -> tuple[Step, ...]:
        """The other steps, with what undoes them. Until the final one, the old generation is in use."""
        return (
            Step(self.analyse),
            Step(self.compare),
            Step(self.check_targets),
            Step(self.replace),
            Step(self.prepare_generation, lambda: self.generation.discard()),
            Step(self.set_checkpoint_aside, self.put_checkpoint_back),
            Step(lambda: begin_checkpoint(self.parts, self.plan, self.choice, self.env, self.folder)),
            Step(self.prepare_rows),
            Step(self.write_promoted),
            Step(lambda: self.generation.publish(), final=True),
            Step(self.launch),
            Step(self.follow_files),
        )

    def check_places(self) -> None:
        """Check secrets, servers, drivers and topics."""
        self.env = check_places(self.parts, self.plan, self.late)

    def find_checkpoint(self) -> None:
        """Find the generation in use, and how far its checkpoint is."""
        self.old = in_use(self.parts, self.plan)
        self.anew = self.replaces or self.plan.begins in ("now", "beginning")
        if self.old is not None:
            self.plan = in_generation(self.plan, self.old)
        else:
            self.anew = self.anew or not self.plan.query.checkpoint
        self.folder = Folder(self.parts.spark, self.plan.checkpoint)
        self.begun = -1 if self.anew else self.folder.newest("offsets")

    def check_folders(self) -> None:
        """Check the folders of the sinks and the checkpoint."""
        sinks = (target.sink for target in self.plan.targets)
        check_logs(self.parts, sinks, keeps=not self.plan.feeds_batches, begun=self.begun)
        check_logs(self.parts, self.late, keeps=False, begun=self.begun)
        check_gaps(self.plan, self.folder, self.begun)
        check_alone_in_folders(self.parts, self.plan)

    def analyse(self) -> None:
        """Let Spark analyse the query, and choose its output mode."""
        self.env["LiveRows"] = helper("LiveRows")  # imports pyarrow, too slow for the start of a prompt
        self.choice = self.parts.queries.prepare(self.plan, self.env, fresh=self.replaces)
        result = self.env["result"]
        self.first_facts = functools.cache(functools.partial(facts_now, self.plan, self.choice.mode, result))
        self.facts = functools.cache(lambda: with_operators(self.first_facts(), result, self.recorded))

    def compare(self) -> None:
        """Compare the query with the one that the checkpoint records."""
        if self.plan.transient:
            return
        self.first_facts()
        if not self.anew:
            self.recorded = recorded_facts(self.folder, self.plan)
            defined = self.plan.query.name.casefold() in self.parts.catalog.queries
            if self.old is not None:
                check_checkpoint(self.plan, self.old, self.folder)
            conf = self.parts.spark.conf
            self.notes = check_unchanged(self.plan, self.folder, self.facts(), conf, defined=defined)

    def check_targets(self) -> None:
        """Compare the rows with the sinks, and with the rows of the live tables."""
        register_schemas(((t.sink, t.rows) for t in self.plan.targets), self.env)
        for target in self.plan.targets:
            if not target.sink.is_live:
                schema = evaluate(target.rows, self.env).schema
                check_database_types(self.parts.spark, target.sink, schema)
                check_file_columns(self.parts.spark, target.sink, schema, self.plan.body_span)
        if self.plan.begins not in ("now", "beginning"):
            continued = self.old is not None and not self.replaces
            check_rows_of(self.parts, self.plan, self.late, self.folder, continued=continued)

    def replace(self) -> None:
        """Stop the query that this one replaces."""
        self.parts.cancel.check()  # what follows stops the old query or moves its checkpoint
        if self.replaces and not self.plan.query.owner:  # a stage has been forgotten with its live table
            forget_query(self.parts, self.plan.query.name, files=False)

    def prepare_generation(self) -> None:
        """Take the generation in use, or prepare a new one beside it."""
        old = None if self.anew else self.old
        self.generation = generation_for(self.parts, self.plan, old, self.before)
        self.plan = in_generation(self.plan, self.generation.folder)
        self.folder = Folder(self.parts.spark, self.plan.checkpoint)
        self.env["checkpoint"] = lambda name: str(self.generation.folder / "checkpoint")

    def set_checkpoint_aside(self) -> None:
        """Keep the old checkpoint where the query begins anew."""
        self.aside = old_checkpoint(self.plan, self.folder, self.old)
        if self.aside:
            self.notes += (Note("CHECKPOINT_KEPT", f"the old checkpoint is kept as {self.aside}"),)

    def put_checkpoint_back(self) -> None:
        """Move the checkpoint of the user back to its place."""
        if self.aside and self.plan.query.checkpoint:
            self.folder.put_back(self.aside)

    def prepare_rows(self) -> None:
        """Prepare the rows of the live tables, and what writes late rows."""
        self.keep_rows()
        begin_late(self.parts, self.plan, self.env, lambda: of_late_rows(self.folder), self.generation)
        self.code = self.parts.modules.digests(self.plan.reads.functions)
        if self.generation.new and not self.plan.transient:
            folder = Folder(self.parts.spark, str(self.generation.folder))
            write_marker(folder, self.plan, self.first_facts(), self.code)

    def keep_rows(self) -> None:
        """Put the rows of the live tables that the query writes into env: the existing rows, or new ones.
        output: the counter of the rows that this run writes; None if it has other sinks, too.
        """
        parts, plan, output = self.parts, self.plan, Output()
        alone = len(plan.targets) == 1 and not plan.feeds_batches
        record = lambda: of_checkpoint(self.folder)  # noqa: E731
        for table, step in zip(plan.live, plan.keeping(self.choice.mode), strict=True):
            fresh = evaluate(step.node, self.env)
            if plan.transient:
                rows = parts.live[table.name.casefold()] = fresh
            else:
                rows = rows_to_write(parts.live, table.name, fresh, plan, record, self.generation)
            if alone:
                give_first_rows(parts, plan, self.choice.mode, self.env, rows)
            self.env[step.name] = rows
            for watcher in rows.watchers:
                if isinstance(getattr(watcher, "__self__", None), TableOutput):  # of a run before
                    rows.unwatch(watcher)
            rows.watch(TableOutput(output, rows).watch)
        self.output = output if len(plan.live) == len(plan.targets) else None

    def write_promoted(self) -> None:
        """Write what the sink of a promoted query has to get before it goes on, or begins anew."""
        if self.old is not None and not self.plan.becomes:
            write_promoted_rows(self.parts, self.plan, self.old)

    def launch(self) -> None:
        """Start the query in Spark."""
        parts, plan, env = self.parts, self.plan, self.env
        if plan.live and len(plan.targets) == 1 and not plan.feeds_batches:
            # The query itself computes the text of the keys of its live table. In LiveRows.feed that would be
            # a second query to analyse and plan in each micro-batch.
            variable = rows_variable(plan.sink.name)
            rows = env[variable]
            env["result"] = rows.keyed(env["result"])
            env[variable] = SimpleNamespace(feed=functools.partial(rows.feed, keyed=True))
        self.committed = -1 if plan.transient else of_checkpoint(self.folder).written
        self.running = parts.queries.launch(
            plan, env, self.choice, self.facts, self.code, self.write_late, self.folder
        )
        self.running.notes = (*self.notes, *self.running.notes)
        self.running.settings = dict(parts.settings.changed)
        self.running.reports.output = self.output or self.running.reports.output

    def write_late(self, running: Running) -> None:
        """Write the late rows of a run from now on."""
        plan = self.plan
        if plan.late is None:
            return
        ready = lambda token: self.parts.under(token).env((), plan.reads)  # noqa: E731
        running.late = LateWrites(running, plan.late.sink.name, self.env[plan.late.writer], ready)
        running.late.start(self.parts.events)

    def follow_files(self) -> None:
        """Fail a query that reads a file with a name that Spark takes for a pattern; say which columns have
        no value.
        """
        running, streams = self.running, self.plan.reads.streams
        followers = (
            follow_file_names(running.name, streams, self.plan.checkpoint, running.fail),
            follow_null_columns(streams, self.parts.events),
        )
        for reported in filter(None, followers):
            running.reports.tell(reported)

    def record(self) -> None:
        """Record the checkpoint, and save the account of the query from now on."""
        if self.plan.transient:
            return
        query = str(self.running.handle.id)
        record_checkpoint(self.plan, self.generation.folder, query)
        reports = self.running.reports
        reports.before, save = self.parts.histories.follow(self.running.name, query, self.committed)
        reports.tell(lambda report: save(report, reports.account))


def end_transient(parts: QueryParts, running: Running) -> None:
    """Stop a query that is in no catalog, and remove all that it leaves."""
    parts.queries.stop(running, parts.cancel, 0)
    parts.queries.forget(running.name)
    parts.live.forget(running.name.casefold())
    remove(Path(running.plan.checkpoint).parents[1])


def forget_query(parts: QueryParts, name: str, *, files: bool = True) -> None:
    """Stop a query, and remove its definition, its rows in memory and its generations. files: False keeps the
    generations, beside which a query of that name begins a new one.
    """
    for stage in parts.catalog.stages_of(name):
        forget_query(parts, stage.name, files=files)
        parts.undefine("sinks", stage.name)
    running = parts.queries.all.get(name.casefold())
    if running:
        parts.queries.stop(running, parts.cancel)
        parts.queries.forget(name)
    parts.queries.failures.pop(name.casefold(), None)
    parts.histories.forget(name)
    query = parts.catalog.queries.get(name.casefold())
    if query:
        parts.undefine("queries", name)
        for fed in (*query.sinks, query.late):
            parts.live.forget(fed.casefold())
        if files:
            generations_of(parts.places, query.name).remove()
