"""What is checked before a query is started. None of it changes anything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamsql.connectors.base import ASYNC_INTERVAL, ASYNC_PROGRESS
from streamsql.connectors.option_values import check_secrets
from streamsql.connectors.registry import connector
from streamsql.definitions import HISTORY, Sink, Stream
from streamsql.errors import EngineFault, RuleFault
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.changes_plan import Changes
from streamsql.runtime.checkpoints.query_marker import Folder
from streamsql.runtime.engine.package_loader import can_load
from streamsql.runtime.live.recorded_progress import of_checkpoint, of_late_rows
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.preflight.file_names import check_file_names
from streamsql.runtime.preflight.kafka_topics import check_sink_topics
from streamsql.runtime.preflight.local_paths import check_alone, check_log
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.run import GOING_ON
from streamsql.runtime.queries.written_rows import check_rows

WHOLE = "_SUCCESS"
"""The file that Spark writes once all rows of a folder are there."""


def check_sink_of_changes(parts: QueryParts, plan: Changes) -> None:
    """Check secrets, servers, drivers and topics before anything is started."""
    sinks = (plan.sink,)
    check_secrets(sinks, plan.query.text)
    check_servers(sinks)
    parts.packages.provide(parts.spark, plan.writer("changes"), parts.cancel)
    check_drivers(parts, sinks)
    check_sink_topics(parts.spark, sinks, parts.cancel)
    check_logs(parts, sinks, keeps=False)


def check_places(parts: QueryParts, plan: plans.Run, late: tuple[Sink, ...]) -> dict[str, Any]:
    """Check secrets, servers, drivers and topics before anything is started. Returns the program's env."""
    sinks = tuple(t.sink for t in plan.targets)
    entries: tuple[Stream | Sink, ...] = (*plan.reads.streams, *sinks, *late)
    check_secrets(entries, plan.query.text)
    check_servers(entries)
    for stream in plan.reads.streams:
        check_file_names(stream)
        check_history(parts, stream)
    needs = plan.program + plan.writer("append") + (plan.late.program if plan.late else ())
    env = parts.env(needs, plan.reads)
    check_drivers(parts, (*sinks, *late))
    check_sink_topics(parts.spark, sinks, parts.cancel)
    return env


def check_history(parts: QueryParts, stream: Stream) -> None:
    """Raise RuleFault when a live table would start without the history that its BACKFILL has read."""
    table, _, digest = stream.name.rpartition(f"${HISTORY}_")
    if table and digest and not Path(parts.places.values(stream.name), WHOLE).exists():
        raise RuleFault(
            f"the history of {table} is gone: {parts.places.values(stream.name)}",
            detail="its rows would be those of the stream alone",
            hint=f"DROP LIVE TABLE {quote_name(table)}; then CREATE LIVE TABLE … BACKFILL … reads it again",
            code="ROWS_NOT_READ",
        )


def check_rows_of(
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


def check_logs(parts: QueryParts, sinks: Iterable[Sink], *, keeps: bool, begun: int = -1) -> None:
    """Raise RuleFault when readers of a file sink would miss files: those that another way of writing has
    written, or those that the query will write. begun: the newest micro-batch of its checkpoint.
    """
    for sink in sinks:
        if sink.connector != "table":
            check_log(parts.spark, sink, connector(Name(sink.connector)), keeps=keeps, begun=begun)


def check_gaps(plan: plans.Run, folder: Folder, begun: int) -> None:
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


def check_alone_in_folders(parts: QueryParts, plan: plans.Run) -> None:
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
        if wanted and not can_load(parts.spark, wanted):
            raise EngineFault(
                f"the sink {sink.name} needs the driver {wanted}",
                hint="streamsql --packages group:name:version …, or --jars FILE",
                code="MISSING_DRIVER",
            )
