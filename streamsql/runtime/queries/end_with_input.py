"""TRIGGER AVAILABLE NOW, or ONCE, of a query over live tables: it ends once it has all input of its start."""

from __future__ import annotations

import threading
from contextlib import suppress

from streamsql.errors import Cancelled, QueryFault, StreamsqlError
from streamsql.guard import internal
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.queries.query_waits import POLL
from streamsql.runtime.queries.run import GOING_ON, Running


def end_with_input(queries: Queries, running: Running) -> None:
    """Let a query over live tables, which was just started, end by itself: after its own stages have ended,
    the queries that feed its live tables have processed what is available to them now, and it was computed
    from their rows. A query that feeds it and is stopped adds nothing: its rows are used as they are. A query
    that feeds it and has failed fails it.
    """
    stages = [stage.query.name.casefold() for stage in running.stages]
    feeding = queries.refreshes.feeding(*running.plan.query.inputs)
    inputs = [name for name in sorted(feeding) if name in queries.all and name not in stages]
    work = lambda: _await_and_end(queries, running, stages, inputs)  # noqa: E731
    threading.Thread(target=work, daemon=True, name=f"end-{running.name}").start()


def _await_and_end(queries: Queries, running: Running, stages: list[str], inputs: list[str]) -> None:
    refresher, refreshes, cancel = running.handle, queries.refreshes, CancelToken()
    following = {name: queries.all[name].batch + 1 for name in inputs}

    def tell(waited_for: Running) -> None:
        if not refresher.isActive:
            raise Cancelled(f"{running.name} was stopped")
        first = following.get(waited_for.name.casefold())
        if first is not None and _has_read_all(waited_for, first):
            raise _HasReadAll

    try:
        queries.wait(stages, cancel, idle=False, timeout=None, tell=tell)
        for name in _going_on_or_failed(queries, inputs):
            with suppress(_HasReadAll):
                queries.wait([name], cancel, idle=True, timeout=None, tell=tell)
        while not refreshes.settled(refresher):
            refreshes.wait(refresher, POLL)
        if fault := refreshes.empty_fault(refresher):
            return refreshes.fail(refresher, QueryFault.caused_by(fault, running.name))
        if refresher.waits_for:
            raise _not_refreshed(running.name, refresher.waits_for)
        refresher.stop()
    except Cancelled:
        pass
    except StreamsqlError as error:
        fact = "the query of an input failed"
        refreshes.fail(refresher, QueryFault.caused_by(error, running.name, fact, detail=error.message))
    except Exception as error:
        refreshes.fail(refresher, internal(error))


class _HasReadAll(Exception):
    """A query that is never idle has read all input of a moment."""


def _has_read_all(running: Running, first: int) -> bool:
    """Whether a streaming query has completed a micro-batch that took all input that was available. first:
    the number from which on micro-batches are planned after the moment in question.
    """
    newest = running.reports.latest
    if int(newest.get("batchId", -1)) < first:
        return False
    options = [key.casefold() for stream in running.plan.reads.streams for key, _ in stream.options]
    limited = any(key.endswith("pertrigger") for key in options)
    ends = [(source.get("latestOffset"), source.get("endOffset")) for source in newest.get("sources", ())]
    return all(latest == end if latest else not limited for latest, end in ends)


def _going_on_or_failed(queries: Queries, names: list[str]) -> list[str]:
    statuses = (*GOING_ON, "FAILED")
    return [name for name in names if name in queries.all and queries.all[name].status() in statuses]


def _not_refreshed(name: str, table: str) -> QueryFault:
    return QueryFault(
        f"the live table {table} is not kept up to date",
        subject=f"query {name} failed",
        detail="its rows are not after the same micro-batch as those of the other inputs",
        hint=f"START QUERY {quote_name(table)}; then START QUERY {quote_name(name)};",
        code="QUERY_FAILED",
    )
