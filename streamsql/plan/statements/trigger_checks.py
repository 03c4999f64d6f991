"""Which triggers a query supports, given its sources, sinks and operations.

Spark guide, "Triggers" and "Supported Queries" of continuous processing.
"""

from __future__ import annotations

from streamsql.connectors.base import ASYNC_PROGRESS, MICRO_BATCH, tracks_asynchronously
from streamsql.connectors.registry import connector, connectors
from streamsql.definitions import Sink
from streamsql.errors import RuleFault, Span
from streamsql.language.statements.base import Name, Trigger
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.streaming import rules


def check_trigger(trigger: Trigger | None, sinks: list[Sink], shape: Shape, sources: Sources) -> None:
    """Raise RuleFault, with its span, if a source, a sink or an operation does not support the trigger."""
    kind = trigger.kind if trigger else "default"
    span = trigger.span if trigger else None
    for stream in sources.streams.values():
        source = connector(Name(stream.connector)) if stream.connector else None
        if source and kind not in source.triggers:
            what = f"{source.name}, which {stream.name} reads from,"
            raise _not_taken(what, kind, span, "TRIGGER EVERY INTERVAL 1 SECOND, or omit TRIGGER")
    if kind == "available_now" and any(op.clock for op in shape.ops):
        raise RuleFault(
            "TRIGGER AVAILABLE NOW never ends with time_mode 'processingTime'",
            detail="time passes, so there is always new work",
            hint="omit TRIGGER, and AWAIT QUERY … IDLE before STOP QUERY",
            span=span,
            code="TRIGGER_NOT_SUPPORTED",
        )
    several = len(sinks) > 1
    for sink in sinks:
        # Several sinks are fed by foreachBatch, whatever each sink supports itself.
        own = sink.connector != "table" and not several
        if kind not in (connector(Name(sink.connector)).sink_triggers if own else MICRO_BATCH):
            raise _not_taken(
                "a query with several sinks" if several else f"a {sink.connector} sink", kind, span
            )
    refusal = rules.trigger_verdict(shape, kind)
    if refusal:
        raise refusal.fault()
    python = next(iter(sources.functions.values()), None)
    if python and kind == "real_time":
        what = f"{python.name}, which is written in Python"
        raise rules.not_in_real_time(what, "real-time mode does not support Python functions", span).fault()


def check_progress(trigger: Trigger | None, sinks: list[Sink], shape: Shape) -> None:
    """Raise RuleFault if a sink has asynchronous progress tracking and the query does not support it.

    Spark guide, "Asynchronous Progress Tracking". (A continuous query records its progress by epochs.)
    """
    sink = next(filter(tracks_asynchronously, sinks), None)
    if sink is None:
        return
    if trigger and trigger.kind in ("available_now", "once", "continuous"):
        what, code = f"TRIGGER {_TRIGGERS[trigger.kind]}", "TRIGGER_NOT_SUPPORTED"
        raise _no_tracking(
            sink, what, trigger.span, code, "TRIGGER EVERY INTERVAL 1 SECOND, omit TRIGGER, or "
        )
    if len(sinks) > 1:
        raise _no_tracking(sink, "several sinks")
    op = next((op for op in shape.ops if op.kind in _STATEFUL and all(op.sides)), None)
    if op is not None:
        raise _no_tracking(sink, _STATEFUL[op.kind], op.span)


_STATEFUL = {
    "aggregate": "aggregations", "distinct": "DISTINCT", "distinct_on": "DISTINCT ON", "limit": "LIMIT",
    "join": "joins of two streams", "stateful": "stateful processors", "changes": "streams of changes",
}  # fmt: skip
"""The operations that keep state."""


def _no_tracking(
    sink: Sink, what: str, span: Span | None = None, code: str = "OPTION_CONFLICT", hint: str = ""
) -> RuleFault:
    """The error for a query that does not support what its sink asks for."""
    return RuleFault(
        f"asynchronous progress tracking does not support {what}",
        detail=f"sink {sink.name} has {ASYNC_PROGRESS} true; it needs a query without state, with one sink,"
        " and with TRIGGER EVERY, REAL TIME or none",
        hint=f"{hint}use a sink without {ASYNC_PROGRESS}",
        span=span,
        code=code,
    )


def _not_taken(
    what: str, kind: str, span: Span | None, hint: str = "TRIGGER EVERY INTERVAL 1 SECOND"
) -> RuleFault:
    """The error for a source or sink that does not support a kind of trigger."""
    return RuleFault(
        f"{what} does not support TRIGGER {_TRIGGERS[kind]}",
        detail=_who_takes(kind),
        hint=hint,
        span=span,
        code="TRIGGER_NOT_SUPPORTED",
    )


_TRIGGERS = {"continuous": "CONTINUOUS", "real_time": "REAL TIME", "available_now": "AVAILABLE NOW",
             "once": "ONCE", "every": "EVERY", "default": "EVERY"}  # fmt: skip


def _who_takes(kind: str) -> str:
    """The sources and sinks that support a kind of trigger, for the detail of an error."""
    all_connectors = connectors().values()
    reads = [c.name for c in all_connectors if c.reads is not None and kind in c.triggers]
    writes = [c.name for c in all_connectors if c.writes is not None and kind in c.sink_triggers]
    if not reads and not writes:
        return "no source or sink supports it"
    return f"supported sources: {', '.join(reads) or 'none'}; supported sinks: {', '.join(writes) or 'none'}"
