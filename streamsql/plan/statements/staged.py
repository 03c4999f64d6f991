"""A query that Spark refuses on streams, to its plan: stages, and the rest over these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cache

from streamsql.catalog import Catalog
from streamsql.definitions import DEFAULT_RETAIN, Query, Sink, Stream
from streamsql.error_codes import OUTPUT_MODE, ROW_OF_EACH_KEY
from streamsql.errors import Note, RuleFault, StreamsqlError
from streamsql.language.nested_queries import joins_in_the_optimizer
from streamsql.language.origin import Origin
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context, lower_fragment
from streamsql.plan.lowering.as_written import PLANNED_WITH
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import with_views_as_streams
from streamsql.plan.plans import Refresh, Run
from streamsql.plan.statements.change_queries import changes_plan
from streamsql.plan.statements.query_parts import lowered_query, one_result
from streamsql.plan.statements.query_run import run_plan
from streamsql.plan.statements.refreshes import refresh_plan
from streamsql.plan.streaming import stages
from streamsql.plan.streaming.collations import has_collations
from streamsql.plan.streaming.rules import Choice

SELECT = "select"
"""The name of the query of a SELECT."""
REFUSED = frozenset(
    (
        OUTPUT_MODE,
        "NOT_ON_STREAMS",
        ROW_OF_EACH_KEY,
        "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY",
        "NEAREST_BY_JOIN.STREAMING_NOT_SUPPORTED",
    )
)
"""The codes of what Spark does not do on streams, and does over tables."""
MOST_STAGES = 16
"""The hidden live tables that one query may have."""


def staged(
    query: Query, sink: Sink, body: Fragment, context: Context, fault: RuleFault, *, inserts: bool = False
) -> Refresh:
    """The plan of a query that is refused, in stages. inserts: it is that of an INSERT, and gives the sink
    its changes. Raises the fault where it cannot be split, or stages are off: then with the statements that
    do the same.
    """
    if fault.code not in REFUSED or (query.trigger and query.trigger.kind in ("continuous", "real_time")):
        raise fault
    context = replace(context, catalog=with_views_as_streams(context.catalog))
    runs = runs_as_stage(query, sink, context)
    try:
        split = stages.split(body.text, query.name, context.catalog, runs, whole=inserts)
        count = len(split.stages)
        if count <= MOST_STAGES:
            if not context.stages:
                if context.server is None:
                    fault.add_way(_by_hand(query, sink, body.text, context, inserts=inserts), "or: ")
                raise fault
            plan = _over_stages(query, sink, body, split, context, inserts=inserts)
    except (stages.CannotSplit, RuleFault) as why:
        fault.add_way(why.way if isinstance(why, stages.CannotSplit) else "")
        raise _hint_at_settings(query, sink, body, context, fault, inserts) from None
    if count > MOST_STAGES:
        raise RuleFault(
            f"the query would run in {count + 1} stages, and {MOST_STAGES + 1} are the most",
            detail="each stage is a streaming query of its own",
            hint="live tables for parts of it: CREATE LIVE TABLE … AS …; then the query over these",
            span=fault.span or body.span,
            code="TOO_MANY_STAGES",
        )
    if fault.code == ROW_OF_EACH_KEY:
        text = f"one query keeps less state, and leaves out NULL: {fault.hint}"
        note = Note("ONE_QUERY_INSTEAD", text)
        return replace(plan, notes=(*plan.notes, note))
    return plan


def _hint_at_settings(
    query: Query, sink: Sink, body: Fragment, context: Context, fault: RuleFault, inserts: bool
) -> RuleFault:
    """The fault of a query that cannot be split. Settings of Spark with which no query is taken apart are
    its hint, if the query runs in stages without them.
    """
    plain = replace(context, changed_language=())
    if not context.changed_language:
        return fault
    try:
        staged(query, sink, body, plain, copy(fault), inserts=inserts)
    except RuleFault:
        return fault
    back = " ".join(f"SET {name} = {PLANNED_WITH[name]};" for name in context.changed_language)
    fault.add_way(f"{back} then the query runs in stages", "or: ")
    return fault


def with_stages(
    run: Run, query: Query, sink: Sink, body: Fragment, context: Context, *, inserts: bool = False
) -> Run:
    """The plan of a query with what runs if Spark refuses it: stages, where not all of its operations are
    known and it can be split. Where stages are off, it has the statements that do the same. sink: limits the
    rows; inserts: as in `staged`.
    """
    read = read_query(body.text)
    collated = has_collations(read.words, run.reads.streams)
    if run.shape.complete and not joins_in_the_optimizer(read) and not collated:
        return run
    fault = RuleFault("", code=OUTPUT_MODE)
    try:
        return replace(run, otherwise=staged(query, sink, body, context, fault, inserts=inserts))
    except StreamsqlError:
        return replace(run, by_hand=fault.hint)


def stage_run(query: Query, retain: int, context: Context) -> Run | None:
    """The plan of a stage; None where its rows would not be exact after each micro-batch."""
    sink = Sink(query.name, "memory", retain=retain, owner=query.owner)
    body = Fragment(query.text)
    try:
        sources, lowered = lowered_query(body, (sink,), context, trigger=query.trigger)
        read, shape = read_query(query.text), lowered.shape
        groups = any(op.kind in ("aggregate", "distinct", "distinct_on") for op in shape.ops)
        # Of a live table, and of a join that only Spark's optimizer makes, the rows would not be exact.
        inexact = (
            sources.live
            or joins_in_the_optimizer(read)
            or any(note.code == "FIRST_ROW_KEPT" for note in sources.notes)
            or (groups and has_collations(read.words, sources.streams.values()))
        )
        if not shape.streaming or not shape.complete or not _is_table(lowered) or inexact:
            return None
        run = run_plan(query, one_result(body, (sink,), sources, lowered), context)
    except StreamsqlError:
        return None
    choices = tuple(c for c in run.choices if _is_exact(c, run.shape))
    return replace(run, choices=choices, define=True, notes=()) if choices else None


def _is_table(lowered: Lowered) -> bool:
    """Whether the columns of a result have names of their own, as those of a live table must."""
    columns = lowered.shape.columns
    if columns is None:
        return not any(op.kind == "join" for op in lowered.shape.ops)
    return len({c.casefold() for c in columns}) == len(columns)


def _is_exact(choice: Choice, shape: Shape) -> bool:
    """Whether the rows in that output mode are those of the same query over a table."""
    if shape.aggregates or shape.brings_changes:
        return choice.mode != "append"
    outer = any(op.kind == "join" and all(op.sides) and op.how not in ("inner", "cross") for op in shape.ops)
    return choice.mode == "append" and not outer


def runs_as_stage(query: Query, sink: Sink, context: Context) -> Callable[[str], bool]:
    """Whether a text can be a stage of a query: a function of it."""
    mixed = _reads_live_tables(query.text, context.catalog)

    def runs(text: str) -> bool:
        # A refresh over live tables reads tables again; a stage would use each row of a stream once, with a
        # table as it is then.
        if mixed and any(context.catalog.relation(r.name) is None for r in read_query(text).relations):
            return False
        return stage_run(_stage("stage", text, query), _limit(query, sink), context) is not None

    return cache(runs)


def _reads_live_tables(text: str, catalog: Catalog) -> bool:
    """Whether a query reads live tables, also through streams that are queries."""
    entries = [catalog.relation(relation.name) for relation in read_query(text).relations]
    inner = [entry.query for entry in entries if isinstance(entry, Stream) and entry.query]
    return any(isinstance(e, Sink) for e in entries) or any(_reads_live_tables(q, catalog) for q in inner)


def _limit(query: Query, sink: Sink) -> int:
    """The rows that each stage of a query may keep."""
    return query.retain or sink.retain


def _stage(name: str, text: str, query: Query) -> Query:
    return Query(name, (name,), text, trigger=query.trigger, live_table=True, owner=query.name)


def _over_stages(
    query: Query, sink: Sink, body: Fragment, split: stages.Split, context: Context, *, inserts: bool
) -> Refresh:
    runs = []
    for name, text in split.stages.items():
        run = stage_run(_stage(name, text, query), _limit(query, sink), context)
        assert run is not None
        runs.append(run)
    catalog = context.catalog.having(*(r.query for r in runs), *(r.sink for r in runs))
    sources = replace(context, catalog=catalog).sources()
    sources.of_changes = inserts
    over_stages = Fragment(split.text, body.span, Origin.of(body.span))
    lowered = lower_fragment(over_stages, sources)
    whole = replace(context, catalog=catalog)
    over = changes_plan if inserts else refresh_plan
    refresh = over(query, sink, over_stages, lowered, sources, whole, None)
    notes = (*refresh.notes, *{n: None for run in runs for n in run.notes}, _note(query.name, runs))
    return replace(refresh, stages=tuple(runs), notes=notes)


def _note(name: str, runs: Sequence[Run]) -> Note:
    """name: the query whose stages these are; "" for a SELECT, whose stages end with it."""
    parts = [f"{run.query.name} {contents_of(run)}" for run in runs]
    if name:
        parts.append(f"SHOW STAGES OF {quote_name(name)}; lists them")
    return Note("STAGES", f"runs in {len(runs) + 1} stages: {'; '.join(parts)}")


def contents_of(run: Run) -> str:
    """What the live table of a stage holds, in words."""
    if run.choices[0].mode == "append":
        return f"keeps rows, at most {run.sink.retain:,}"
    unit = "key" if run.shape.brings_changes else "group"
    return f"keeps one row for each {unit}" if run.choices[0].mode == "update" else "keeps the groups"


def _by_hand(query: Query, sink: Sink, text: str, context: Context, *, inserts: bool) -> str:
    """The statements that do the same as the stages."""
    shown, runs = query.name == SELECT, runs_as_stage(query, sink, context)
    name = "rows" if shown else query.name
    split = stages.split(text, name, context.catalog, runs, separator="_", whole=inserts)
    retain = _limit(query, sink)
    limit = "" if retain == DEFAULT_RETAIN else f" RETAIN {retain} ROWS"
    trigger = f" TRIGGER {query.trigger.sql()}" if query.trigger and not shown else ""
    parts = split.stages.items()
    lines = [f"CREATE LIVE TABLE {quote_name(n)}{trigger}{limit} AS {part};" for n, part in parts]
    if inserts:
        lines.append(f"{insert_head(query, sink)} {split.text};")
    else:
        lines.append(
            f"{split.text};" if shown else f"CREATE LIVE TABLE {quote_name(name)}{limit} AS {split.text};"
        )
    return "\n".join(["SET streamsql.stages = on; or:", *lines])


def insert_head(query: Query, sink: Sink) -> str:
    """INSERT INTO of a query, up to its SELECT."""
    listed = f" ({', '.join(map(quote_name, query.columns))})" if query.columns else ""
    name = "" if query.name.casefold() == sink.name.casefold() else f" AS QUERY {quote_name(query.name)}"
    return f"INSERT INTO {quote_name(sink.name)}{listed}{name}"


def as_select(plan: Refresh) -> Refresh:
    """A query in stages as the result of a SELECT."""
    notes = tuple(_note("", plan.stages) if note.code == "STAGES" else note for note in plan.notes)
    return replace(plan, transient=True, define=False, notes=notes)
