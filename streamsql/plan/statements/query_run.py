"""A query over streams to the plan of its run: output mode, keys, trigger, program."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Assign
from streamsql.catalog import Query, Sink
from streamsql.connectors.base import ALL_MODES
from streamsql.connectors.registry import connector, connectors
from streamsql.errors import NameFault, RuleFault, Span, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.plan.context import Context, reads_of
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.stateful_calls import CHOICES
from streamsql.plan.plans import Run, Target
from streamsql.plan.statements.query_parts import QueryParts
from streamsql.plan.statements.trigger_checks import check_trigger
from streamsql.plan.streaming import rules


def run_plan(
    query: Query,
    made: QueryParts,
    context: Context,
    mode: Name | None = None,
    names: tuple[Name, ...] = (),
    *,
    transient: bool = False,
) -> Run:
    """names: where each sink is named, for faults."""
    targets = tuple(replace(t, shape=_with_key(t.shape, t.sink)) for t in made.targets)
    sinks = [t.sink for t in targets]
    several = len(targets) > 1 or bool(targets[0].select)
    if several:
        _check_several(sinks, names)
    _check_keys(targets, made.body.span)
    shape = _with_key(made.result.shape, sinks[0]) if len(sinks) == 1 else made.result.shape
    takes = tuple(m for m in ALL_MODES if all(m in _modes(sink) for sink in sinks))
    choices = _choices(query, targets, shape, takes, mode)
    check_trigger(query.trigger, sinks, shape, made.sources)
    if query.trigger is not None and query.trigger.kind == "real_time":
        choices = _real_time_modes(choices, takes, mode)
        made.sources.program += [c for c in CHOICES.values() if c not in made.sources.program]
    program = (*made.sources.program, Assign("result", made.result.node), *made.functions)
    return Run(
        query,
        targets,
        program,
        tuple(choices),
        shape,
        query.checkpoint or context.places.checkpoint(query.name),
        reads_of(made.sources),
        made.result.as_text,
        transient,
        mode_span=mode.span if mode else None,
        body_span=made.body.span,
        notes=(*made.sources.notes, *(() if transient else made.sources.cautions)),
    )


def _choices(
    query: Query, targets: tuple[Target, ...], shape: Shape, takes: tuple[str, ...], mode: Name | None
) -> list[rules.Choice]:
    """The output modes to try, best first: the one that is written, or those that query and sinks take."""
    if mode:
        for target in targets:
            _check_mode(mode, shape, target)
        return [rules.Choice(mode.value, "")]
    sinks = [t.sink for t in targets]
    keyed = all(s.connector != "table" and connector(Name(s.connector)).shows_newest(s) for s in sinks)
    choices = rules.choices(shape, takes, keyed=keyed)
    if not all(_keeps_groups(t.shape) for t in targets if t.sink.is_live):
        choices = [c for c in choices if c.mode != "update"]
    if not choices:
        raise rules.refuse_all(shape, takes, query.sink)
    return choices


def beginning(made: Run, begins: str) -> Run:
    """A query's plan that begins there: see Run. Raises RuleFault for FROM NOW where it cannot be had."""
    if begins == "now" and made.query.trigger and made.query.trigger.kind == "continuous":
        raise RuleFault(
            "FROM NOW does not go with TRIGGER CONTINUOUS",
            detail="it needs a micro-batch, whose offsets a continuous query does not take up",
            hint="an option of the source, such as startingOffsets 'latest'",
            span=made.body_span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    return replace(made, begins=begins)


def _modes(sink: Sink) -> tuple[str, ...]:
    return ("append",) if sink.connector == "table" else connector(Name(sink.connector)).modes_of(sink)


def _check_keys(targets: tuple[Target, ...], span: Span) -> None:
    """A sink's KEY is among the columns that it gets. Raises NameFault at the query."""
    for target in targets:
        columns = tuple(c.name for c in target.sink.columns) or target.shape.columns or ()
        known = {c.casefold() for c in columns}
        missing = [k for k in target.sink.key if k.casefold() not in known] if columns else []
        if missing:
            raise NameFault(
                f"the KEY of {target.sink.name}, {', '.join(missing)}, is not a column of this query",
                hint=did_you_mean(missing[0], columns) or f"columns: {', '.join(columns)}",
                span=span,
            )


def _check_several(sinks: list[Sink], names: tuple[Name, ...]) -> None:
    """Several sinks are fed by foreachBatch, so each must be able to write a micro-batch."""
    for at, sink in enumerate(sinks):
        if sink.connector != "table" and connector(Name(sink.connector)).batch_writer(sink) is not None:
            continue
        able = [c.name for c in connectors().values() if c.writes is not None and c.writes_batches]
        raise RuleFault(
            f"a {sink.connector} sink cannot be one of several",
            detail="its writes are not idempotent, so a retried micro-batch could write rows twice",
            hint=f"INSERT INTO {sink.name} in a separate query; these sinks can: {', '.join(able)}",
            span=names[at].span if names else None,
        )


def _with_key(shape: Shape, sink: Sink) -> Shape:
    """A KEY of the sink tells the groups apart even where the query's own keys are not known."""
    if not sink.key:
        return shape
    return replace(shape if shape.aggregates else shape.then(Op("key")), keys=sink.key)


def _keeps_groups(shape: Shape) -> bool:
    """Whether a live table in update mode can tell which row a newer one replaces."""
    keyed = [op for op in shape.ops if op.kind == "key" or op.replaces]
    if not shape.known:
        return any(op.kind == "key" for op in keyed)
    return not keyed or shape.keys is not None


def _check_mode(mode: Name, shape: Shape, target: Target) -> None:
    sink = target.sink
    if mode.value not in _modes(sink):
        raise rules.bad_mode(mode.value, _modes(sink), sink.name, sink.connector, mode.span)
    refusal = rules.verdict(shape, mode.value)
    if refusal:
        raise replace(refusal, span=refusal.span or mode.span).fault()
    if sink.is_live and mode.value == "update" and not _keeps_groups(target.shape):
        raise RuleFault(
            f"{sink.name} cannot identify the groups in output mode update",
            detail="a live table keeps the newest row of each group, but not all grouping keys are selected",
            hint="add them to the SELECT list, name them with KEY (column, …), or write OUTPUT MODE COMPLETE",
            span=mode.span,
        )


def _real_time_modes(
    choices: list[rules.Choice], takes: tuple[str, ...], mode: Name | None
) -> list[rules.Choice]:
    """Real-time mode has output mode update only. Raises RuleFault where another one is written, or the
    sink does not take it.
    """
    if (mode and mode.value != "update") or "update" not in takes:
        raise RuleFault(
            "TRIGGER REAL TIME takes output mode update only",
            hint="OUTPUT MODE UPDATE" if "update" in takes else "a sink that takes OUTPUT MODE UPDATE",
            span=mode.span if mode else None,
            code="TRIGGER_NOT_SUPPORTED",
        )
    return [c for c in choices if c.mode == "update"] or [
        rules.Choice("update", "real-time mode has no other")
    ]
