"""A query that keeps a sink in step with a result over live tables is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import Var, evaluate
from streamsql.plan.changes import Changes as ChangesPlan
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.live.change_log import ChangeLog, UnreadableChanges
from streamsql.runtime.live.recorded_progress import of_changes
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.kept_rows import check_rows, rows_to_write
from streamsql.runtime.queries.new_generations import Generation, generation_of
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.queries.start_refresh import computed, keep_refreshed
from streamsql.runtime.workspace.generations import Generations

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import RowsAt


def launch_changes(parts: QueryParts, plan: ChangesPlan, schema: Any) -> Running:
    """Start to write what changes in the result; after a restart, since it was written last. schema: of the
    result. Raises RuleFault when rows with other columns were written, UnreadableChanges when it is not known
    which rows were written.
    """
    name = plan.query.name
    anew = plan.begins in ("beginning", "now") or name.casefold() not in parts.catalog.queries
    old = None if anew else Generations(parts.places.query(name)).current
    if old is None and not anew:
        raise UnreadableChanges(name, Path(parts.places.written(name)), FileNotFoundError())
    with generation_of(parts, plan, old) as generation:
        log = ChangeLog(generation.folder / "written")
        if generation.new:
            log.begin_new(schema, plan.keys)
        else:
            log.open(name, schema, plan.keys, accept=plan.begins == "accept")
            for table in plan.live:
                check_rows(parts.live, table.name, plan, of_changes(log.folder), continued=True)
        env = _env(parts, plan, schema, log, generation)
    changes = evaluate(plan.changes(Var("schema"), query=log.query), env)
    changes.table, changes.last_batch = log.rows, log.version
    changes.begin, changes.keep = log.begin, lambda version, rows: log.done(version)
    changes.silent = plan.begins == "now" and not plan.stages  # these begin now themselves

    def compute(inputs: Mapping[str, RowsAt], cancel: CancelToken) -> Any:
        if log.pending is not None:
            version, rows = log.pending
            _ready_to_write(parts, plan)
            changes.send(changes.table, rows, version)
            changes.kept(rows, version)
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
