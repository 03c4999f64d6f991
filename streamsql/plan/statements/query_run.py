"""Plans the run of a streaming query: output mode, keys, trigger, program."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign, Var
from streamsql.connectors.base import ALL_MODES
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import DEFAULT_RETAIN, Query, Sink, is_staged
from streamsql.errors import Note, RuleFault
from streamsql.guard import informing
from streamsql.language.statements.base import Fragment, Name, Trigger
from streamsql.plan.changes_plan import OF_CHANGES, Changes
from streamsql.plan.context import Context, reads_of
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.stateful_calls import CHOICES
from streamsql.plan.plans import Refresh, Run, Target
from streamsql.plan.statements.changelog_streams import check_changes
from streamsql.plan.statements.late_writes import late_plan, without_complete
from streamsql.plan.statements.one_query import joined_once
from streamsql.plan.statements.query_parts import (
    QueryParts,
    check_keys,
    check_streaming,
    lowered_query,
    one_result,
)
from streamsql.plan.statements.trigger_checks import check_progress, check_trigger
from streamsql.plan.streaming import rules
from streamsql.plan.streaming.advice import MOST, advice
from streamsql.plan.streaming.rules import Choice

EACH_SECOND = Trigger("every", "1 second")
"""The pace of a staged change whose rate is limited: the limit is that of a micro-batch."""


def run_plan(
    query: Query,
    parts: QueryParts,
    context: Context,
    mode: Name | None = None,
    names: tuple[Name, ...] = (),
    late: Name | None = None,
    *,
    transient: bool = False,
) -> Run:
    """The plan of a streaming query. names, late: the sinks as written, for the spans of errors."""
    targets = tuple(replace(t, shape=_with_key(t.shape, t.sink)) for t in parts.targets)
    sinks = [t.sink for t in targets]
    if len(targets) > 1 or targets[0].select:
        _check_several(sinks, names)
    check_keys(targets, parts.body.span)
    check_changes(tuple(parts.sources.streams.values()), parts.result.shape, parts.targets, parts.body.span)
    shape = _with_key(parts.result.shape, sinks[0]) if len(sinks) == 1 else parts.result.shape
    takes = tuple(m for m in ALL_MODES if all(m in _modes(sink) for sink in sinks))
    choices = without_complete(_choices(query, targets, shape, takes, mode), query, late)
    check_trigger(query.trigger, sinks, shape, parts.sources)
    check_progress(query.trigger, sinks, shape)
    if query.trigger is not None and query.trigger.kind == "real_time":
        choices = _real_time_modes(choices, takes, mode)
        parts.sources.program += [c for c in CHOICES.values() if c not in parts.sources.program]
    program = (*parts.sources.program, Assign("result", parts.result.node), *parts.functions)
    late_writes = late_plan(query, parts, context, late)
    return Run(
        query,
        targets,
        program,
        tuple(choices),
        shape,
        query.checkpoint or context.places.checkpoint(query.name),
        reads_of(parts.sources),
        parts.result.as_text,
        transient,
        mode_span=mode.span if mode else None,
        body_span=parts.body.span,
        late=late_writes,
        pace=EACH_SECOND if context.staged_rate and is_staged(query.name) else None,
        notes=(
            *parts.sources.notes,
            *joined_once(parts.sources),
            *(late_writes.notes if late_writes else ()),
            *(() if transient else _advice(parts, shape, choices)),
        ),
    )


def run_again(query: Query, sinks: tuple[Sink, ...], body: Fragment, context: Context, hint: str = "") -> Run:
    """The plan of a query of the catalog with one SELECT. hint: what to do where it reads no stream."""
    sources, lowered = lowered_query(body, sinks, context, query.mode, query.trigger, query.columns)
    check_streaming(lowered, body, context, f"the query {query.name}", hint)
    parts = one_result(body, sinks, sources, lowered, query.columns)
    return run_plan(query, parts, context, mode_of(query))


def mode_of(query: Query) -> Name | None:
    """The output mode with which a query of the catalog was written."""
    return Name(query.mode) if query.mode else None


def _advice(parts: QueryParts, shape: Shape, choices: list[rules.Choice]) -> tuple[Note, ...]:
    """The cautions of the lowering, and what else is worth knowing before the start."""
    streams = parts.sources.streams.values()
    notes = informing(lambda: advice(parts.body.text, shape, choices[0].mode, streams), ())
    return (*parts.sources.cautions, *notes)[:MOST]


def _choices(
    query: Query, targets: tuple[Target, ...], shape: Shape, takes: tuple[str, ...], mode: Name | None
) -> list[rules.Choice]:
    """The output modes to try, best first: the mode as written, or those that query and sinks support."""
    if mode:
        for target in targets:
            _check_mode(mode, shape, target)
        return [rules.Choice(mode.value, "")]
    sinks = [t.sink for t in targets]
    keyed = all(s.connector != "table" and connector(Name(s.connector)).shows_newest(s) for s in sinks)
    choices = rules.choices(shape, takes, keyed=keyed)
    if not all(_keeps_groups(t.shape) for t in targets if t.sink.keeps_groups):
        choices = [c for c in choices if c.mode != "update"]
    if shape.hidden or shape.has_flag:
        choices = [c for c in choices if c.mode == "update"]
    if not choices:
        raise rules.refuse_all(shape, takes, query.sink)
    return choices


def beginning(run: Run, begins: str) -> Run:
    """A query's plan with a start position; see Run. Raises RuleFault if FROM NOW is not supported."""
    if begins == "now" and run.query.trigger and run.query.trigger.kind == "continuous":
        raise RuleFault(
            "FROM NOW is not supported with TRIGGER CONTINUOUS",
            detail="it runs a micro-batch, and a continuous query does not resume from its offsets",
            hint="use an option of the source, such as startingOffsets 'latest'",
            span=run.body_span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    run = replace(run, begins=begins, otherwise=run.otherwise and beginning(run.otherwise, begins))
    if isinstance(run, Refresh):
        return replace(run, stages=tuple(beginning(stage, begins) for stage in run.stages))
    return run


def kept_beside(run: Run, name: str, context: Context) -> Run:
    """The plan of an INSERT whose rows a hidden live table keeps instead of its sink, in the same output mode
    and with the same state: its checkpoint is one that the INSERT can go on from. name: of that live table.
    Over live tables, it is computed from these.
    """
    key = run.keys if isinstance(run, Changes) else run.sink.key
    kept = context.live_table(Sink(name, "memory", key=key, retain=run.query.retain or DEFAULT_RETAIN))
    targets = (Target(kept, run.targets[0].shape),)
    query = replace(run.query, name=name, sinks=(name,), into=run.query.sinks, live_table=True)
    if isinstance(run, Changes):
        return Refresh(
            query,
            targets,
            (*run.program, Assign("result", Var("result").call("drop", *OF_CHANGES))),
            (Choice("complete", f"computed again after micro-batches of {', '.join(query.inputs)}"),),
            run.shape,
            "",
            run.reads,
            run.as_text,
            define=True,
            body_span=run.body_span,
            notes=run.notes,
            becomes=run.targets,
            stages=run.stages,
        )
    ends = query.trigger is not None and query.trigger.kind != "every"
    return replace(
        run,
        query=replace(query, checkpoint="", late="", trigger=None if ends else query.trigger),
        targets=targets,
        checkpoint=context.places.checkpoint(name),
        define=True,
        late=None,
        otherwise=None,
        pace=EACH_SECOND if context.staged_rate else None,
        becomes=run.targets,
    )


def _modes(sink: Sink) -> tuple[str, ...]:
    return ("append",) if sink.connector == "table" else connector(Name(sink.connector)).modes_of(sink)


def _check_several(sinks: list[Sink], names: tuple[Name, ...]) -> None:
    """Raise RuleFault if one of several sinks cannot write micro-batches, since foreachBatch feeds them."""
    for at, sink in enumerate(sinks):
        if sink.connector != "table" and connector(Name(sink.connector)).batch_writer(sink) is not None:
            continue
        able = [c.name for c in connectors().values() if c.writes is not None and c.writes_batches]
        raise RuleFault(
            f"a {sink.connector} sink cannot be one of several",
            detail="its writes are not idempotent, so a retried micro-batch could write rows twice",
            hint=f"INSERT INTO {sink.name} in a separate query; these sinks can: {', '.join(able)}",
            span=names[at].span if names else None,
            code="CONNECTOR_NOT_SUPPORTED",
        )


def _with_key(shape: Shape, sink: Sink) -> Shape:
    """The shape with the KEY of the sink, which identifies groups even if the query's keys are unknown."""
    if not sink.key:
        return shape
    return replace(shape if shape.aggregates else shape.then(Op("key")), keys=sink.key)


def _keeps_groups(shape: Shape) -> bool:
    """Whether a live table in update mode can identify the row that a newer row replaces."""
    keyed = [op for op in shape.ops if op.kind == "key" or op.replaces]
    if not shape.complete:
        return any(op.kind == "key" for op in keyed)
    return not keyed or shape.keys is not None


def _check_mode(mode: Name, shape: Shape, target: Target) -> None:
    sink = target.sink
    if mode.value not in _modes(sink):
        raise rules.bad_mode(mode.value, _modes(sink), sink.name, sink.connector, mode.span)
    refusal = rules.verdict(shape, mode.value)
    if refusal:
        raise replace(refusal, span=refusal.span or mode.span).fault()
    if sink.keeps_groups and mode.value == "update" and not _keeps_groups(target.shape):
        raise RuleFault(
            f"{sink.name} cannot identify the groups in output mode update",
            detail="a live table keeps the newest row of each group, but not all grouping keys are selected",
            hint="add them to the SELECT list, name them with KEY (column, …), or write OUTPUT MODE COMPLETE",
            span=mode.span,
            code="OUTPUT_MODE_NOT_SUPPORTED",
        )


def _real_time_modes(
    choices: list[rules.Choice], takes: tuple[str, ...], mode: Name | None
) -> list[rules.Choice]:
    """The output modes for real-time mode, which supports only update. Raises RuleFault if another mode is
    written, or the sink does not support update.
    """
    if (mode and mode.value != "update") or "update" not in takes:
        raise RuleFault(
            "TRIGGER REAL TIME supports only output mode update",
            hint="OUTPUT MODE UPDATE" if "update" in takes else "a sink that supports OUTPUT MODE UPDATE",
            span=mode.span if mode else None,
            code="TRIGGER_NOT_SUPPORTED",
        )
    return [c for c in choices if c.mode == "update"] or [
        rules.Choice("update", "real-time mode supports only this")
    ]
