"""Starts a streaming query, and removes one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from streamsql.calls import evaluate
from streamsql.connectors.base import ASYNC_INTERVAL, ASYNC_PROGRESS
from streamsql.connectors.memory import rows_variable
from streamsql.connectors.option_values import check_secrets
from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.errors import EngineFault, Note, RuleFault
from streamsql.language.statements.base import Name
from streamsql.plan import plans
from streamsql.plan.changes import Changes
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.query_marker import Folder, check_unchanged, facts_now, write_marker
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Events
from streamsql.runtime.engine.package_loader import is_there
from streamsql.runtime.live.recorded_progress import Recorded, of_checkpoint, of_late_rows
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.preflight.database_types import check_database_types
from streamsql.runtime.preflight.file_names import check_file_names, follow_file_names
from streamsql.runtime.preflight.kafka_topics import check_sink_topics
from streamsql.runtime.preflight.local_paths import check_alone, check_log
from streamsql.runtime.preflight.registry_subjects import register_schemas
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.new_generations import (
    Generation,
    check_checkpoint,
    generation_of,
    in_generation,
    in_use,
    prepared_checkpoint,
    record_checkpoint,
)
from streamsql.runtime.queries.null_columns import follow_null_columns
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.reports import Output, TableOutput
from streamsql.runtime.queries.run import BUSY, GOING_ON, Running
from streamsql.runtime.queries.start_late import begin_late, late_sinks, write_late
from streamsql.runtime.queries.start_refresh import (
    analysed,
    await_first,
    changed_input,
    check_computes,
    check_stages,
    launch_changes,
    launch_refresh,
)
from streamsql.runtime.queries.written_rows import check_rows, give_first_rows, rows_to_write
from streamsql.runtime.workspace.owned_folders import remove


def start_query(parts: QueryParts, plan: plans.Run, *, replaces: bool = False) -> Running:
    """Start a query. replaces: it takes the place of one with its name, which is stopped only after all
    checks of the new one have passed. Raises faults, Cancelled, or exceptions of Spark.
    """
    with parts.cancel.holding(parts.queries.starting):
        known = parts.queries.all.get(plan.query.name.casefold())
        if known is not None and not replaces and known.status() == "running":
            return known  # another client, or a server that resumes it, was faster
        stages = parts.catalog.stages_of(plan.query.name) if replaces else ()
        if isinstance(plan, plans.Refresh):
            running = _start_refresh(parts, plan, replaces)
        else:
            running = _start(parts, plan, replaces)
        left = {stage.name for stage in stages} - {s.name for s in parts.catalog.stages_of(plan.query.name)}
        for name in left:
            remove(Path(parts.places.query(name)))
        return running


def _start_refresh(parts: QueryParts, plan: plans.Refresh, replaces: bool) -> Running:
    """Start to refresh a live table; a new one has its first rows when this returns. Of an INSERT, start to
    keep its sink in step.
    """
    if isinstance(plan, Changes):
        _check_sink_of_changes(parts, plan)
    if plan.stages:
        return _start_stages(parts, plan, replaces)
    if isinstance(plan, Changes):
        schema = analysed(parts, plan)
        check_database_types(parts.spark, plan.sink, type(schema)(schema.fields[:-2]))
        parts.cancel.check()
        return launch_changes(parts, plan, schema)
    try:
        schema = analysed(parts, plan)
    except Exception as error:
        raise error if replaces else changed_input(error, plan) from error
    parts.cancel.check()
    if replaces:
        if plan.query.name.casefold() in parts.catalog.queries:
            check_computes(parts, plan, schema)  # else the one that it replaces goes on
        forget_query(parts, plan.query.name, files=False)
    running = launch_refresh(parts, plan, schema)
    if replaces:
        try:
            await_first(parts, running)
        except Exception:
            forget_query(parts, plan.query.name)
            parts.live.forget(plan.query.name.casefold())
            raise
    return running


def _check_sink_of_changes(parts: QueryParts, plan: Changes) -> None:
    """Check secrets, servers, drivers and topics before anything is started."""
    sinks = (plan.sink,)
    check_secrets(sinks, plan.query.text)
    check_servers(sinks)
    parts.packages.provide(parts.spark, plan.writer("changes"), parts.cancel)
    check_drivers(parts, sinks)
    check_sink_topics(parts.spark, sinks, parts.cancel)
    check_logs(parts, sinks, keeps=False)


def _start_stages(parts: QueryParts, plan: plans.Refresh, replaces: bool) -> Running:
    """Start the stages that do not run, then what is computed from them."""
    new = replaces or plan.query.name.casefold() not in parts.catalog.queries
    if new:
        with parts.own_state_provider(plan.program):
            check_stages(parts, plan)
        parts.cancel.check()
        forget_query(parts, plan.query.name, files=False)
    parts.current.update(plan.with_stages)
    started = list[Running]()
    try:
        for stage in plan.stages:
            known = parts.queries.all.get(stage.query.name.casefold())
            if known is None or known.status() not in BUSY:
                started.append(_start(parts, stage, replaces))
        schema = analysed(parts, plan)
        if isinstance(plan, Changes):
            running = launch_changes(parts, plan, schema)
        else:
            running = launch_refresh(parts, plan, schema)
        running.notes = tuple(dict.fromkeys(note for stage in started for note in stage.notes))
        if replaces:
            await_first(parts, running)
        return running
    except Exception:
        for each in started:
            parts.queries.stop(each, CancelToken())
        if new:
            forget_query(parts, plan.query.name)
        if replaces:
            parts.live.forget(plan.query.name.casefold())
        raise


def _start(parts: QueryParts, plan: plans.Run, replaces: bool) -> Running:
    late = late_sinks(plan)
    env = _checked(parts, plan, late)
    old = in_use(parts, plan)
    anew = replaces or plan.begins in ("now", "beginning")
    if old is not None:
        plan = in_generation(plan, old)
    else:
        anew = anew or not plan.query.checkpoint
    folder = Folder(parts.spark, plan.checkpoint)
    begun = -1 if anew else folder.newest("offsets")
    check_logs(parts, (t.sink for t in plan.targets), keeps=not plan.feeds_batches, begun=begun)
    check_logs(parts, late, keeps=False, begun=begun)
    _check_gaps(plan, folder, begun)
    _check_alone(parts, plan)
    env["LiveRows"] = helper("LiveRows")  # imports pyarrow, too slow for the start of a prompt
    with parts.own_state_provider(plan.program):
        choice = parts.queries.prepare(plan, env, fresh=replaces)
        facts = functools.cache(functools.partial(facts_now, plan, choice.mode, env["result"]))
        notes = tuple[Note, ...]()
        if not plan.transient:
            facts()
        if not plan.transient and not anew:
            known = plan.query.name.casefold() in parts.catalog.queries
            if old is not None:
                check_checkpoint(plan, old, folder)
            notes = check_unchanged(plan, folder, facts(), parts.spark.conf, known=known)
        register_schemas(((t.sink, t.rows) for t in plan.targets), env)
        for target in plan.targets:
            if target.sink.connector == "jdbc":
                check_database_types(parts.spark, target.sink, evaluate(target.rows, env).schema)
        if plan.begins not in ("now", "beginning"):
            _check_rows(parts, plan, late, folder, continued=old is not None and not replaces)
        parts.cancel.check()  # what follows stops the old query or moves its checkpoint
        if replaces and not plan.query.owner:  # a stage has been forgotten with its live table
            forget_query(parts, plan.query.name, files=False)
        with generation_of(parts, plan, None if anew else old) as generation:
            plan = in_generation(plan, generation.folder)
            folder = Folder(parts.spark, plan.checkpoint)
            env["checkpoint"] = lambda name: str(generation.folder / "checkpoint")
            with prepared_checkpoint(parts, plan, choice, env, folder, old) as said:
                notes = (*notes, *said)
                record = functools.partial(of_checkpoint, folder)
                output = _keep_rows(parts, plan, choice, env, record, generation)
                begin_late(parts, plan, env, functools.partial(of_late_rows, folder), generation)
                code = parts.modules.digests(plan.reads.functions)
                if generation.new and not plan.transient:
                    write_marker(Folder(parts.spark, str(generation.folder)), plan, facts(), code)
        _add_keys(plan, env)
        beside = lambda running: write_late(parts, running, env)  # noqa: E731
        committed = -1 if plan.transient else of_checkpoint(folder).written
        running = parts.queries.launch(plan, env, choice, facts, code, beside, folder)
        _follow_files(running, parts.events)
        running.notes = (*notes, *running.notes)
        running.reports.output = output or running.reports.output
    if not plan.transient:
        record_checkpoint(plan, generation.folder, str(running.handle.id))
        reports = running.reports
        reports.before, save = parts.histories.follow(running.name, str(running.handle.id), committed)
        reports.tell(lambda report: save(report, reports.account))
    return running


def _follow_files(running: Running, events: Events) -> None:
    """Fail a query that reads a file with a name that Spark takes for a pattern; say which columns have no
    value.
    """
    plan = running.plan
    followers = (
        follow_file_names(running.name, plan.reads.streams, plan.checkpoint, running.fail),
        follow_null_columns(plan.reads.streams, events),
    )
    for reported in filter(None, followers):
        running.reports.tell(reported)


def _checked(parts: QueryParts, plan: plans.Run, late: tuple[Sink, ...]) -> dict[str, Any]:
    """Check secrets, servers, drivers and topics before anything is started. Returns the program's env."""
    sinks = tuple(t.sink for t in plan.targets)
    entries: tuple[Stream | Sink, ...] = (*plan.reads.streams, *sinks, *late)
    check_secrets(entries, plan.query.text)
    check_servers(entries)
    for stream in plan.reads.streams:
        check_file_names(stream)
    needs = plan.program + plan.writer("append") + (plan.late.program if plan.late else ())
    env = parts.env(needs, plan.reads)
    check_drivers(parts, (*sinks, *late))
    check_sink_topics(parts.spark, sinks, parts.cancel)
    return env


def _check_rows(
    parts: QueryParts, plan: plans.Run, late: tuple[Sink, ...], folder: Folder, *, continued: bool
) -> None:
    """Raise UnfitRows when the checkpoint has rows that its live tables do not have, or the other way round.
    continued: the query goes on with its generation; a new one may name a checkpoint that has progress.
    """
    if not continued and not plan.query.checkpoint:
        return
    for table in plan.live:
        check_rows(parts.live, table.name, plan, of_checkpoint(folder), continued=continued)
    for table in (sink for sink in late if sink.is_live):
        check_rows(parts.live, table.name, plan, of_late_rows(folder), continued=continued)


def _keep_rows(
    parts: QueryParts,
    plan: plans.Run,
    choice: Choice,
    env: dict[str, Any],
    record: Callable[[], Recorded],
    generation: Generation,
) -> Output | None:
    """Put the rows of the live tables that the query writes into env: the existing rows, or new ones.
    Returns the counter of the rows that this run writes; None if it has other sinks, too.
    """
    output = Output()
    for table, step in zip(plan.live, plan.keeping(choice.mode), strict=True):
        fresh = evaluate(step.node, env)
        if plan.transient:
            rows = parts.live[table.name.casefold()] = fresh
        else:
            rows = rows_to_write(parts.live, table.name, fresh, plan, record, generation)
        if len(plan.targets) == 1 and not plan.feeds_batches:
            give_first_rows(parts, plan, choice.mode, env, rows)
        env[step.name] = rows
        others = (w for w in rows.watchers if not isinstance(getattr(w, "__self__", None), TableOutput))
        rows.watchers[:] = list(others)
        rows.watch(TableOutput(output, rows).watch)
    return output if len(plan.live) == len(plan.targets) else None


class _KeyedRows:
    """The rows of a live table, fed with micro-batches that have the text of their keys."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def feed(self, batch: Any, batch_id: int) -> None:
        self.rows.feed(batch, batch_id, keyed=True)


def _add_keys(plan: plans.Run, env: dict[str, Any]) -> None:
    """Let the query itself compute the text of the keys of its live table. In LiveRows.feed it would be a
    second query to analyse and plan in each micro-batch.
    """
    if plan.live and len(plan.targets) == 1 and not plan.feeds_batches:
        variable = rows_variable(plan.sink.name)
        env["result"], env[variable] = env[variable].keyed(env["result"]), _KeyedRows(env[variable])


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
            remove(Path(parts.places.query(query.name)))


def check_logs(parts: QueryParts, sinks: Iterable[Sink], *, keeps: bool, begun: int = -1) -> None:
    """Raise RuleFault when readers of a file sink would miss files: those that another way of writing has
    written, or those that the query will write. begun: the newest micro-batch of its checkpoint.
    """
    for sink in sinks:
        if sink.connector != "table":
            check_log(parts.spark, sink, connector(Name(sink.connector)), keeps=keeps, begun=begun)


def _check_gaps(plan: plans.Run, folder: Folder, begun: int) -> None:
    """Raise RuleFault for a checkpoint that Spark can only resume with asynchronous progress tracking: the
    micro-batch before the newest, `begun`, is not recorded. Spark fails with "batch N doesn't exist".
    """
    kind = plan.query.trigger.kind if plan.query.trigger else "default"
    if (
        begun < 1
        or kind == "continuous"
        or plan.is_tracked_asynchronously
        or folder.has(f"offsets/{begun - 1}")
    ):
        return
    raise RuleFault(
        f"the checkpoint of {plan.query.name} can only be resumed with asynchronous progress tracking",
        detail=f"it was written with it, and does not record micro-batch {begun - 1}",
        hint=f"use a sink with {ASYNC_PROGRESS} 'true' and {ASYNC_INTERVAL} '0' until two micro-batches have"
        " run; then the checkpoint can be resumed without it",
        span=plan.body_span,
        code="CHECKPOINT_CHANGED",
    )


def _check_alone(parts: QueryParts, plan: plans.Run) -> None:
    """Raise RuleFault when another query that goes on writes to the folder of a file sink of the plan."""
    if plan.feeds_batches:
        return
    writing = [
        (running.name, target.sink)
        for running in list(parts.queries.all.values())
        if running.name != plan.query.name and not running.is_refresh and not running.plan.feeds_batches
        if running.status() in GOING_ON
        for target in running.plan.targets
    ]
    for sink in (target.sink for target in plan.targets if target.sink.connector != "table"):
        check_alone(sink, connector(Name(sink.connector)), writing)


def check_drivers(parts: QueryParts, sinks: Iterable[Sink]) -> None:
    """Raise EngineFault when Spark's JVM does not have the driver that a sink needs."""
    for sink in sinks:
        wanted = connector(Name(sink.connector)).driver(sink) if sink.connector != "table" else ""
        if wanted and not is_there(parts.spark, wanted):
            raise EngineFault(
                f"the sink {sink.name} needs the driver {wanted}",
                hint="streamsql --packages group:name:version …, or --jars FILE",
                code="MISSING_DRIVER",
            )
