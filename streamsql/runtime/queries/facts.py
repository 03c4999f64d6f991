"""The facts of a query, and the views that need nothing else. Spark is not asked."""

from __future__ import annotations

from streamsql.connectors.base import Places
from streamsql.connectors.rows import keeps_malformed
from streamsql.definitions import ROW_FILES, Stream
from streamsql.language.query import read_query
from streamsql.plan.plans import Run
from streamsql.query_facts import Account, Amount, QueryFacts
from streamsql.runtime.checkpoints.checkpoint_files import batch_under_way
from streamsql.runtime.engine.moments import millis, to_second
from streamsql.runtime.queries.run import Running


def facts_of(running: Running, zone: str = "") -> QueryFacts:
    """The facts of a query that was started here. zone: the session time zone. Calls Spark only once the
    query has ended.
    """
    reports, account = running.reports, running.reports.account
    return QueryFacts(
        running.name,
        running.reported_status(),
        account,
        reports.run,
        reports.latest.get("batchId", -1),
        reports.rate(),
        shown_watermark(account, zone),
        "" if reports.last or running.over else batch_under_way(running.plan.checkpoint),
        running.fault.message if running.fault else "",
        running.fault.hint if running.fault else "",
    )


_ROW_BY_ROW = frozenset(("watermark", "now", "key", "filter"))
"""Operations after which each row is one row, or none."""
_DROPPING = frozenset(("where", "having", "qualify", "filter"))
"""The words of a query that may drop rows."""

OPEN = "groups still open"
KEPT_FOR_A_PARTNER = "kept for a partner"
Fate = tuple[str, Amount | str]
"""A name, and the number of rows of which it tells what became; a text where Spark does not count them."""


UNREPORTED = "not known: the sink does not report it"


def accounted(plan: Run, account: Account, mode: str) -> tuple[Fate, ...]:
    """The account of a query as names and amounts: what it has read and lost, what came out, what became of
    the rest, and what its state holds.
    """
    amounts: list[Fate] = [("rows in", account.read)]
    amounts += [("late rows", account.late)] if account.late else []
    amounts += [("malformed", account.malformed)] if account.malformed else []
    if not account.read:
        return tuple(amounts)
    rest = fates(plan, account, mode)
    amounts += [("rows out", UNREPORTED if account.out is None else account.out), *rest]
    in_state = {name for name, _ in rest} & {OPEN, KEPT_FOR_A_PARTNER}
    return (*amounts, *([("state rows", Amount(account.held))] if account.held and not in_state else ()))


def fates(plan: Run, account: Account, mode: str) -> tuple[Fate, ...]:
    """What became of the rows read that are neither late nor malformed, beside `rows out`: with that, the
    account closes. Empty where it cannot be told: a generator, or a join with a table, gives several rows
    for one.
    """
    kinds = {op.kind for op in plan.shape.ops}
    if not plan.shape.complete or len(plan.targets) != 1:
        return ()
    keeps = any(map(keeps_malformed, plan.reads.streams))
    left = account.read.number - account.late.number - (0 if keeps else account.malformed.number)
    filters = _may_filter(plan)
    if any(op.kind == "join" and all(op.sides) for op in plan.shape.ops):
        return _of_joins(account)
    if kinds <= _ROW_BY_ROW | {"distinct_on"} and mode == "append" and account.out is not None:
        name = "filtered"
        if "distinct_on" in kinds:
            name = "repeated or filtered" if filters else "repeated"
        # Spark does not count the rows that it filters while it reads a file.
        uncounted = filters and any(s.connector in _PUSHED_DOWN for s in plan.reads.streams)
        rest = Amount(left - account.out.number, uncounted or account.read.at_least)
        return ((name, rest),) if rest.number > 0 and not account.late.at_least else ()
    if kinds <= _ROW_BY_ROW | {"aggregate"} and "aggregate" in kinds and left > 0:
        return _of_groups(account, mode, left, filters)
    return ()


_PUSHED_DOWN = (*ROW_FILES, "parquet", "orc", "values")
"""The connectors of which Spark reads files."""


def _of_groups(account: Account, mode: str, left: int, filters: bool) -> tuple[Fate, ...]:
    """The rows of an aggregation are in groups. Spark combines the rows of a group before it counts the late
    ones.
    """
    name = "merged into groups or filtered" if filters else "merged into groups"
    merged: Fate = (name, Amount(left, account.read.at_least))
    if account.late.at_least:
        merged = (name, f"at most {left:,}" if not account.read.at_least else "not known")
    out = {"update": "one for each change of a group", "complete": "all groups after each micro-batch"}
    fates_of_rows: list[Fate] = [merged]
    if account.out is not None and mode in out:
        fates_of_rows.append(("rows out are", out[mode]))
    if mode == "append" and account.held:
        fates_of_rows.append((OPEN, Amount(account.held)))
    return tuple(fates_of_rows)


def _of_joins(account: Account) -> tuple[Fate, ...]:
    """The rows of a join of streams: those of its state may still find a partner, even if they had one."""
    waiting = sum(rows for name, rows in account.state if name == JOIN)
    without = "not known: Spark does not count the rows that leave the state without one"
    return ((KEPT_FOR_A_PARTNER, Amount(waiting)), ("without a partner", without))


def _may_filter(plan: Run) -> bool:
    """Whether the query, or one of the streams that are queries, may drop rows by a condition."""
    texts = [plan.query.text, *(stream.query for stream in plan.reads.streams if stream.query)]
    return any(read_query(text).words & _DROPPING for text in texts)


def shown_watermark(account: Account, zone: str) -> str:
    """The watermark in the session time zone; "" before the first."""
    watermark = millis(account.watermark)
    return to_second(watermark, zone) if watermark else ""


FIRST_MICRO_BATCH = "first micro-batch"
ANSWERED = 10.0
"""Seconds after which a query that has put out all that it read is said to wait for data."""


JOIN = "symmetricHashJoin"
"""The join of two streams, as progress reports name it."""
GROUPS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The operators, as progress reports name them, that hold groups until they are closed."""


OUTER = ("left", "right", "full", "left_outer", "right_outer", "full_outer", "outer")
"""Joins that emit a row without partner once the watermark has passed its time range."""


def waits_for_watermark(plan: Run) -> bool:
    """Whether a query holds rows back until the watermark moves on: an inner join emits a pair at once, and
    a deduplication a new row.
    """
    ops = plan.shape.ops
    return any(op.kind in _HOLDING or (op.kind == "join" and op.how in OUTER) for op in ops)


_HOLDING = ("aggregate", "distinct", "stateful")


def waiting_for(running: Running, places: Places) -> str:
    """first micro-batch, data, window to close, watermark (of a stream); "" for nothing and after the end."""
    if running.over:
        return ""
    reports = running.reports
    if not reports.took_input:
        waits = reports.looked or running.is_refresh or reports.before.streams
        return "data" if waits else FIRST_MICRO_BATCH
    held = [op for op in reports.latest.get("stateOperators", []) if op.get("numRowsTotal", 0)]
    if reports.waiting is None and reports.output is not None:
        return "" if reports.rate(ANSWERED) else "data"
    if running.mode == "append" and held and waits_for_watermark(running.plan):
        for stream in running.plan.reads.streams:
            if stream.watermark and _has_given_nothing(stream, running, places):
                return f"watermark of {stream.name}"
        groups = any(op.get("operatorName") in GROUPS for op in held)
        return "window to close" if groups else "watermark"
    return "data" if reports.output is not None else ""


def _has_given_nothing(stream: Stream, running: Running, places: Places) -> bool:
    """Whether no row of a stream has been read, as far as Spark's description tells which source it is."""
    rows = [n for text, n in running.reports.account.streams if is_source_of(stream, text, places)]
    return bool(rows) and not sum(rows)


def is_source_of(stream: Stream, description: str, places: Places) -> bool:
    """Whether a stream is the source that Spark describes so."""
    place = places.values(stream.name) if stream.connector == "values" else stream.option("path")
    place = place or stream.option("topic") or stream.option("subscribe")
    return bool(place) and place in description
