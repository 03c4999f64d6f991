"""A query over live tables is started: its program runs on snapshots of its inputs from now on. It gives the
rows of a live table, or keeps a sink in step with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import Var, evaluate, run
from streamsql.connectors.memory import rows_variable
from streamsql.error_codes import FILE_GONE
from streamsql.errors import EngineFault, QueryFault, StreamsqlError
from streamsql.language.query import read_query
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.changes_plan import Changes as ChangesPlan
from streamsql.plan.limits import raised_limit
from streamsql.runtime.embedded.carried_values import to_arrow
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.spark_errors import is_of_values, may_be_lost, spark_lost, translate
from streamsql.runtime.live.change_log import ChangeLog, UnreadableChanges
from streamsql.runtime.live.journal import UnreadableRows
from streamsql.runtime.live.kept_columns import Misfit
from streamsql.runtime.live.recorded_progress import of_changes
from streamsql.runtime.live.refresher import Compute, Refresher
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.end_with_input import end_with_input
from streamsql.runtime.queries.new_generations import BeforeStart, Generation, generation_for, in_use
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.progress_reports import QueryReported
from streamsql.runtime.queries.query_waits import POLL
from streamsql.runtime.queries.run import ColumnsChanged, Running
from streamsql.runtime.queries.start_steps import Step, run_steps
from streamsql.runtime.queries.written_rows import check_rows, rows_to_write
from streamsql.runtime.workspace.generations import generations_of, rows_in

if TYPE_CHECKING:
    from streamsql.runtime.embedded.changes import Changes
    from streamsql.runtime.embedded.live_rows import LiveRows, RowsAt


def launch_changes(parts: QueryParts, plan: ChangesPlan, schema: Any, before: BeforeStart) -> Running:
    """Start to write what changes in the result; after a restart, since it was written last. schema: of the
    result; before: as for generation_for. Raises RuleFault when rows with other columns were written,
    UnreadableChanges when it is not known which rows were written.
    """
    name = plan.query.name
    anew = plan.begins in ("beginning", "now") or name.casefold() not in parts.catalog.queries
    old = None if anew else generations_of(parts.places, name).current
    if old is None and not anew:
        raise UnreadableChanges(name, Path(parts.places.written(name)), FileNotFoundError())
    generation = generation_for(parts, plan, old, before)
    log, env = ChangeLog(generation.folder / "written"), dict[str, Any]()

    def open_log() -> None:
        """Open the record of what was written, and the rows of a live table that takes the changes."""
        if generation.new:
            log.begin_new(schema, plan.keys)
        else:
            log.open(name, schema, plan.keys, accept=plan.begins == "accept")
            for table in plan.live:
                check_rows(parts.live, table.name, plan, of_changes(log.folder), continued=True)
        env.update(_env(parts, plan, schema, log, generation))

    run_steps((Step(open_log, generation.discard), Step(generation.publish, final=True)))
    changes = evaluate(plan.changes(Var("schema"), query=log.query), env)
    changes.table, changes.last_batch = log.rows, log.version
    changes.begin, changes.keep = log.begin, lambda version, rows: log.done(version)
    changes.silent = plan.begins == "now" and not plan.stages  # these begin now themselves

    def compute(inputs: Mapping[str, RowsAt], cancel: CancelToken) -> Any:
        if log.pending is not None:
            version, rows = log.pending
            _ready_to_write(parts, plan)
            changes.send(changes.table, rows, version)
            changes.set_written(rows, version)
            log.pending = None
        table = computed(parts.under(cancel), plan, inputs, schema)
        _ready_to_write(parts, plan)
        return table

    return keep_refreshed(parts, plan, changes, compute)


def _env(
    parts: QueryParts, plan: ChangesPlan, schema: Any, log: ChangeLog, generation: Generation
) -> dict[str, Any]:
    """The variables of the program that writes changes, with the rows of a live table that takes them."""
    env = parts.env(plan.writer("changes"), plan.reads, own_session(parts.spark))
    env |= {"schema": schema, "LiveRows": helper("LiveRows")}
    for table, step in zip(plan.live, plan.rows(Var("schema")), strict=True):
        fresh = evaluate(step.node, env)
        record = lambda: of_changes(log.folder)  # noqa: E731
        env[step.name] = rows_to_write(parts.live, table.name, fresh, plan, record, generation)
    return env


def _ready_to_write(parts: QueryParts, plan: ChangesPlan) -> None:
    """Let the jobs of this thread be those of a write: a statement that stops the query waits for it."""
    parts.under(CancelToken()).env((), replace(plan.reads, live=()))


def analysed(parts: QueryParts, plan: plans.Refresh) -> Any:
    """The schema of the result, over the inputs as they are now. Raises faults, exceptions of Spark."""
    return _frame(parts, plan, _inputs_now(parts, plan)).schema


def check_computes(parts: QueryParts, plan: plans.Refresh, schema: Any) -> None:
    """Raise QueryFault when the result cannot be computed over the inputs as they are now, and they have had
    micro-batches. schema: of it.
    """
    try:
        computed(parts, plan, _inputs_now(parts, plan), schema)
    except QueryFault as fault:
        if parts.queries.refreshes.begun(*plan.query.inputs) or not is_of_values(fault):
            raise


def _inputs_now(parts: QueryParts, plan: plans.Refresh) -> dict[str, RowsAt]:
    """The rows of the inputs by folded name. Raises EngineFault."""
    return {table.name.casefold(): parts.rows_of(table.name).now() for table in plan.reads.live}


def changed_input(error: Exception, plan: plans.Refresh) -> StreamsqlError:
    """The error of a query over live tables that was computed before: what it reads has changed."""
    fault, name = translate(error), plan.query.name
    if fault.condition:
        fault.message = f"{name} cannot be computed any more: {fault.message}"
        again = f"CREATE OR REPLACE LIVE TABLE {quote_name(name)} AS …; its last rows can be read until then"
        if isinstance(plan, ChangesPlan):
            insert = f"INSERT INTO {quote_name(plan.sink.name)} AS QUERY {quote_name(name)} SELECT …;"
            again = f"DROP QUERY {quote_name(name)}; {insert} writes all rows again"
        fault.hint = "\n".join(p for p in (fault.hint, again) if p)
    return fault


def launch_refresh(parts: QueryParts, plan: plans.Refresh, schema: Any, before: BeforeStart) -> Running:
    """Start to keep it up to date; rows of earlier stay until then if the columns of now can hold them.
    before: as for generation_for.
    """
    key, table = plan.query.name.casefold(), plan.sink
    try:
        # Of a new query there are none: those in the folder of its name are of the query that it replaces.
        rows = parts.live.get(key) if key in parts.catalog.queries else None
    except UnreadableRows:
        rows = None  # all of them are computed now
    if rows is not None and rows.schema != schema:
        try:
            parts.live.fit(key, schema, table.retain)
        except Misfit:
            rows = None
    if rows is None or rows.mode != "complete":
        rows = helper("LiveRows")(schema, "complete", None, table.retain)
        if plan.transient:
            parts.live[key] = rows
        else:
            generation = generation_for(parts, plan, in_use(parts, plan), before)
            place = rows_in(generation.folder, plan.query.name)
            begin = Step(lambda: parts.live.begin(key, rows, place), generation.discard)
            run_steps((begin, Step(generation.publish, final=True)))

    def compute(inputs: Mapping[str, RowsAt], cancel: CancelToken) -> Any:
        return computed(parts.under(cancel), plan, inputs, schema)

    return keep_refreshed(parts, plan, rows, compute)


def keep_refreshed(
    parts: QueryParts, plan: plans.Refresh, rows: LiveRows | Changes, compute: Compute
) -> Running:
    """Compute rows now, and again after micro-batches of the inputs."""

    def on_report(report: dict[str, Any] | None) -> None:
        if report is None:
            running.reports.ended = True
        else:
            running.reports.add(report)
        parts.events.publish(QueryReported())

    is_table = plan.query.live_table or plan.transient
    refresher = Refresher(
        plan.query.name,
        plan.query.inputs,
        rows,
        compute,
        on_report,
        is_table=is_table,
        reads_tables=_reads_tables(parts, plan),
    )
    choice = plan.choices[0]
    running = Running(
        plan, choice.mode, choice.reason, refresher, datetime.now(), on_fault=parts.queries.failed
    )
    parts.queries.take_up(running)
    parts.queries.refreshes.start(refresher)
    if running.ends and not plan.transient:
        end_with_input(parts.queries, running)
    return running


def _reads_tables(parts: QueryParts, plan: plans.Refresh) -> bool:
    """Whether a SELECT reads a table besides live tables and streams."""
    relations = read_query(plan.query.text).relations
    return any(parts.catalog.relation(relation.name) is None for relation in relations)


def await_first(parts: QueryParts, running: Running) -> None:
    """Wait until a new live table has its first rows, if it can have them now. Raises the fault of its
    refresh, Cancelled.
    """
    refresher, refreshes = running.handle, parts.queries.refreshes
    while refresher.isActive and not (refresher.done or refresher.waits_for or refresher.rows.empty_fault):
        parts.cancel.check()
        refreshes.wait(refresher, POLL)
    running.status()
    # One that ends with its input, and had none, was created: it fails by itself, now or a moment later.
    if running.fault and not refreshes.empty_fault(refresher):
        raise running.fault


def _frame(parts: QueryParts, plan: plans.Refresh, inputs: Mapping[str, RowsAt]) -> Any:
    """The DataFrame of the result over these rows, in a Spark session of its own: the views that it makes
    are nobody else's.
    """
    # The live tables themselves may be replaced at this moment.
    env = parts.env(plan.program, replace(plan.reads, live=()), own_session(parts.spark))
    env |= {rows_variable(name): at for name, at in inputs.items()}
    run(plan.program, env)
    if env["result"].isStreaming:
        raise EngineFault(
            "this query reads a stream that Spark knows and the console does not",
            hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
            code="FOREIGN_STREAM",
        )
    return env["result"]


def computed(parts: QueryParts, plan: plans.Refresh, inputs: Mapping[str, RowsAt], schema: Any) -> Any:
    """The rows of the result as an Arrow table; computed again where a table of Spark was overwritten between
    listing and reading its files. Raises QueryFault.
    """
    for left in reversed(range(_TRIES)):
        try:
            return _computed(parts, plan, inputs, schema)
        except QueryFault as fault:
            if not left or fault.code != FILE_GONE:
                raise
    raise AssertionError("the last try returns or raises")


_TRIES = 5


def _computed(parts: QueryParts, plan: plans.Refresh, inputs: Mapping[str, RowsAt], schema: Any) -> Any:
    name, limit, losses, frame = plan.query.name, _limit(plan), parts.engine.losses, None
    try:
        frame = _frame(parts, plan, inputs)
        if frame.schema != schema:
            raise ColumnsChanged(
                "its columns have changed, because those of an input have",
                subject=f"query {name} failed",
                hint="" if plan.transient else f"START QUERY {quote_name(name)};",
                code="WRONG_COLUMNS",
            )
        table = to_arrow(frame.limit(limit + 1))
        if table.num_rows > limit:
            raise EngineFault(
                f"its result has more than {limit} row{'' if limit == 1 else 's'}",
                detail=_why_so_many(inputs, limit),
                hint=raised_limit(plan, limit, parts.catalog),
                code="LIMIT_REACHED",
            )
        return table
    except ColumnsChanged:
        raise
    except Exception as error:
        lost = may_be_lost(error) and parts.engine.has_ended(losses)
        fault = spark_lost() if lost else translate(error) if frame else changed_input(error, plan)
        raise QueryFault.caused_by(fault, name) from error


def _why_so_many(inputs: Mapping[str, RowsAt], limit: int) -> str:
    """What makes a result large, in words."""
    reason = "all its rows are kept in memory"
    if len(inputs) < 2 and sum(at.count for at in inputs.values()) > limit:
        return reason
    counts = " and ".join(f"{at.count:,} of {name}" for name, at in inputs.items())
    return f"{reason}; it reads {counts}: a join without a key in its ON multiplies them"


def _limit(plan: plans.Refresh) -> int:
    """How many rows the result may have; that of an INSERT without RETAIN, as many as one of its inputs."""
    if plan.query.live_table or plan.transient:
        return plan.sink.retain
    return plan.query.retain or max(table.retain for table in plan.reads.live)


def stage_frames(parts: QueryParts, plan: plans.Refresh) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the streaming DataFrame of each stage by its name, the variables of the program of the rest). Raises
    faults, and exceptions of Spark, for a stage that Spark refuses. Starts nothing.
    """
    names = {stage.sink.name for stage in plan.stages}
    others = tuple(table for table in plan.reads.live if table.name not in names)
    env = parts.env(plan.program, replace(plan.reads, live=others))
    frames = {}
    for stage in plan.stages:
        own = parts.env(stage.program, stage.reads) | {"LiveRows": helper("LiveRows")}
        choice = parts.queries.prepare(stage, own, fresh=True)
        frames[stage.query.name] = own["result"]
        env |= {step.name: evaluate(step.node, own) for step in stage.keeping(choice.mode)}
    return frames, env
