"""Streaming rules: which output modes a query supports, with causes and hints.

The rules are those of the Spark guide, "Output Modes" and "Unsupported Operations". Only some of them are
checked here; Spark's own check runs before every start, and `explain_refusal` translates its errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from streamsql.errors import RuleFault, Span
from streamsql.plan.lowering.shape import CHANGES, Op, Shape
from streamsql.plan.streaming import refusals
from streamsql.plan.streaming.refusals import Refusal


@dataclass(frozen=True)
class Choice:
    """An output mode and the reason for it, as shown to the analyst."""

    mode: str
    reason: str


def verdict(shape: Shape, mode: str) -> Refusal | None:
    """Why a query with that shape does not support that output mode; None if no rule is violated."""
    for number, op in enumerate(shape.ops):
        if not shape.complete and not op.is_replacing_processor:
            continue  # only Spark can decide
        refusal = _verdict_of(op, shape, number, mode)
        if refusal:
            return replace(refusal, span=op.span)
    if shape.complete and sum(op.one_group for op in shape.ops) > 1:
        return refusals.ONE_GROUP_TWICE
    if shape.complete and mode == "complete" and not shape.aggregates:
        return refusals.NO_GROUPS
    return None


def _filled(refusal: Refusal, *words: str) -> Refusal:
    return replace(refusal, fact=refusal.fact.format(*words), cause=refusal.cause.format(*words))


def _verdict_of(op: Op, shape: Shape, number: int, mode: str) -> Refusal | None:
    """The refusal for one operation, or None (Spark guide, "Unsupported Operations")."""
    if op.kind in _NEVER:
        return _NEVER[op.kind]
    if op.kind == CHANGES and mode != "update":
        return refusals.CHANGES_MODE
    inputs = shape.inputs(number) if op.kind in _AFTER_GROUPS and shape.aggregates else ()
    groups = [i for i in inputs if i.kind in ("aggregate", "distinct")]
    if op.kind == "limit" and mode == "update":
        return refusals.UPDATE_LIMIT
    if op.kind == "order" and not (mode == "complete" and any(g.kind == "aggregate" for g in groups)):
        return refusals.SORTED
    if op.kind == "union" and op.sides[0] != op.sides[1]:
        return refusals.UNION
    if op.kind == "intersect" or (op.kind == "except" and op.sides[1]):
        return refusals.SETS
    if op.kind == "except" and mode == "append":
        return refusals.EXCEPT_APPEND
    if op.kind == "distinct_on" and op.window == "within" and not op.watermarked:
        return refusals.WITHIN
    if op.kind == "join":
        refusal = _verdict_of_join(op, mode)
        if refusal:
            return refusal
    if op.kind == "stateful" and mode != op.how and not (shape.aggregates or shape.groups):
        return refusals.PROCESSOR[op.how]
    if op.kind in ("aggregate", "distinct"):
        refusal = _verdict_of_aggregate(op, mode)
        if refusal:
            return refusal
    stateful = op.kind in ("aggregate", "distinct") or (op.kind == "join" and all(op.sides))
    stateful = stateful or (op.kind == "distinct_on" and (op.window == "within" or bool(op.timed)))
    return _filled(refusals.ORDER_OF_STATE, mode) if stateful and groups and mode != "append" else None


# What may be refused because of groups before it; the inputs of a long UNION ALL are not collected.
_AFTER_GROUPS = ("order", "aggregate", "distinct", "join", "distinct_on")
_NEVER = {"over": refusals.OVER, "offset": refusals.OFFSET, "sample": refusals.SAMPLE}
# Spark's names for the kinds of join in its errors.
_KINDS = {"left": "LeftOuter", "left_outer": "LeftOuter", "right": "RightOuter", "right_outer": "RightOuter",
          "full": "FullOuter", "full_outer": "FullOuter", "left_semi": "LeftSemi", "left_anti": "LeftAnti",
          "inner": "Inner", "cross": "Cross"}  # fmt: skip


def _verdict_of_join(op: Op, mode: str) -> Refusal | None:
    """Spark guide, "Support matrix for joins in streaming queries"."""
    kind = _KINDS[op.how]
    if kind == "LeftAnti" and op.sides[1]:
        return _filled(refusals.STREAM_SIDE, kind, "right")
    if not all(op.sides):
        outer_sides = {"LeftOuter": (True, False), "LeftSemi": (True, False), "RightOuter": (False, True)}
        refused = kind == "FullOuter" or (kind in outer_sides and op.sides != outer_sides[kind])
        return _filled(refusals.STATIC_SIDE, kind, "left" if op.sides[0] else "right") if refused else None
    if not op.equi:
        return refusals.NO_EQUALITY
    outer = kind in ("LeftOuter", "RightOuter", "FullOuter")
    if mode == "complete" or (outer and mode == "update"):
        return _filled(refusals.JOIN_MODE, kind, mode)
    return _filled(refusals.UNTIMED, kind) if kind not in ("Inner", "Cross") and op.timed is False else None


def _verdict_of_aggregate(op: Op, mode: str) -> Refusal | None:
    if op.distinct:
        return refusals.DISTINCT_COUNT
    if op.window == "session_window":
        if op.only_window:
            return refusals.SESSION_GLOBAL
        if mode == "update":
            return refusals.SESSION_UPDATE
    return refusals.NO_WATERMARK if mode == "append" and not op.watermarked else None


def trigger_verdict(shape: Shape, kind: str) -> Refusal | None:
    """Why a query with that shape does not support that kind of trigger (Spark guide, "Continuous Processing"
    and "Real-time Mode"), or None.
    """
    if kind == "real_time":
        return _real_time_verdict(shape)
    if kind != "continuous" or not shape.complete:
        return None
    op = next((op for op in shape.ops if op.kind not in ("filter", "key")), None)
    if op is None:
        return None
    return replace(_filled(refusals.CONTINUOUS, _OPERATIONS.get(op.kind, op.kind.upper())), span=op.span)


# Operations that are not in Spark's RealTimeModeAllowlist, and why. It includes all others of a Shape, except
# for those that output mode update does not support anyway.
_NOT_IN_REAL_TIME = {
    "session_window": "real-time mode does not support session windows",
    "within": "real-time mode does not support WITHIN WATERMARK, but it supports DISTINCT ON",
    "join": "real-time mode joins a stream only with static tables, by equality (broadcast joins)",
    "union": "a UNION must come before stateful operations (GROUP BY, DISTINCT, DISTINCT ON)",
    "stateful": "real-time mode does not support stateful processors in Python",
    "limit": "real-time mode never ends, so rows cannot be counted",
}


def _real_time_verdict(shape: Shape) -> Refusal | None:
    for number, op in enumerate(shape.ops):
        behind = any(i.kind in ("aggregate", "distinct", "distinct_on") for i in shape.inputs(number))
        kind = op.window if op.window in _NOT_IN_REAL_TIME else op.kind
        if (kind == "join" and not all(op.sides) and op.equi) or (kind == "union" and not behind):
            continue
        if kind in _NOT_IN_REAL_TIME:
            what = "this join" if kind == "join" else _OPERATIONS.get(kind, f"{kind.upper()} here")
            return not_in_real_time(what, _NOT_IN_REAL_TIME[kind], op.span)
    return None


def not_in_real_time(what: str, why: str, span: Span | None) -> Refusal:
    return replace(_filled(refusals.REAL_TIME, what, why), span=span)


_OPERATIONS = {
    "watermark": "watermarks", "generate": "explode", "now": "the current time",
    "aggregate": "aggregations", "distinct": "DISTINCT", "distinct_on": "deduplication", "join": "joins",
    "session_window": "session windows", "within": "WITHIN WATERMARK", "stateful": "stateful processors",
}  # fmt: skip


def choices(shape: Shape, takes: tuple[str, ...], *, keyed: bool) -> list[Choice]:
    """The output modes to try, best first, each with its reason.

    takes: the modes of the sink. keyed: whether the sink shows the newest row of each group (a live table,
    the console), so that update is better than waiting for the watermark.
    """
    reasons = _reasons(shape, keyed)
    if any(op.half for op in shape.ops):  # complete has all groups, and the newest of the other rows only
        reasons.pop("complete", None)
    return [Choice(m, why) for m, why in reasons.items() if m in takes and verdict(shape, m) is None]


def _reasons(shape: Shape, keyed: bool) -> dict[str, str]:
    groups = shape.aggregates
    if not groups:
        only = "each row is emitted once" if shape.complete else "Spark accepts it"
        update = "the stateful processor replaces rows" if shape.replacing else "Spark accepts only this"
        if shape.brings_changes:
            return {"update": "each change replaces or deletes the row of its key"}
        modes = {"append": only, "update": update, "complete": "Spark accepts it"}
        if keyed and shape.loses_groups and not shape.complete:
            del modes["update"]
        if shape.groups and keyed:
            # Complete mode shows rows earlier than append mode; Spark refuses it without an aggregation.
            del modes["complete"]
            whole = "the whole result is emitted each time, because Spark reads this query, not the console"
            return {"complete": whole, **modes}
        return modes
    ordered = any(op.kind == "order" for op in shape.ops)
    closes = next((op for op in groups if op.watermarked), None)
    append = "the watermark closes the groups" if closes else ""
    update = "updated groups are emitted"
    complete = "the whole result is emitted each time, so that it can be sorted" if ordered else (
        "the whole result is emitted each time"
    )  # fmt: skip
    if ordered:
        return {"complete": complete}
    if keyed and shape.loses_groups:
        complete = "the whole result is emitted each time, since a filter can remove a group again"
        return {"complete": complete, "append": append}
    if keyed and shape.keys is not None:
        return {"update": update, "append": append, "complete": complete}
    if keyed:
        return {"complete": complete + ", because the groups' keys are not selected", "append": append}
    return {"append": append, "update": update, "complete": complete}


def refuse_all(shape: Shape, takes: tuple[str, ...], sink: str) -> RuleFault:
    """The error if no mode is supported: the refusal of the sink's first mode, with its hint."""
    reasons = {m: verdict(shape, m) for m in takes}
    first = next((r for r in reasons.values() if r), None)
    if first is None:
        return RuleFault(f"this query supports no output mode of {sink}", code=refusals.OUTPUT_MODE)
    also = f"the sink {sink} supports only {' and '.join(takes)}" if len(takes) < 3 else ""
    return replace(first, cause="\n".join(p for p in (first.cause, also) if p)).fault()


def bad_mode(mode: str, takes: tuple[str, ...], sink: str, connector: str, span: Span) -> RuleFault:
    """The error for a mode that the sink does not support."""
    return RuleFault(
        f"the sink {sink} does not support output mode {mode}",
        detail=f"{connector} supports {', '.join(takes)}",
        hint="write into a live table, or omit OUTPUT MODE and give the stream a watermark",
        span=span,
        code=refusals.OUTPUT_MODE,
    )


# Spark's messages (ENGINE.md, "Output mode x query") → refusals. {0} is the first group of the pattern.
_SPARKS: tuple[tuple[str, Refusal], ...] = (
    (r"streaming aggregations without watermark", refusals.NO_WATERMARK),
    (r"output mode: complete.*no streaming aggregations", refusals.NO_GROUPS),
    (r"Distinct aggregations are not supported", refusals.DISTINCT_COUNT),
    (r"session window streaming aggregations", refusals.SESSION_UPDATE),
    (r"Global aggregation with session window", refusals.SESSION_GLOBAL),
    (r"correctness.*global watermark", refusals.THIS_ORDER_OF_STATE),
    (r"dropDuplicatesWithinWatermark is not supported.*without watermark", refusals.WITHIN),
    (r"Stream-stream (\w+) join between two stream.* is not supported without a watermark", refusals.UNTIMED),
    (r"(\w+) joins? between two stream.* not supported in (\w+) output mode", refusals.JOIN_MODE),
    (r"(\w+) joins? with (?:a )?streaming DataFrames?/Datasets? on the (\w+) and a static.* not supported",
     refusals.STATIC_SIDE),
    (r"(\w+) joins? with (?:streams|a streaming DataFrame/Dataset) on the (\w+).*not supported",
     refusals.STREAM_SIDE),
    (r"without equality predicate", refusals.NO_EQUALITY),
    (r"Limits are not supported", refusals.UPDATE_LIMIT),
    (r"Offset is not supported", refusals.OFFSET),
    (r"Sorting is not supported", refusals.SORTED),
    (r"Union between streaming and batch", refusals.UNION),
    (r"(Intersect|Except).*not supported|EXCEPT on a streaming", refusals.SETS),
    (r"Window function is not supported|NON_TIME_WINDOW", refusals.OVER),
    (r"Sampling is not supported", refusals.SAMPLE),
    (r"Continuous processing does not support (.*?) operations", refusals.CONTINUOUS),
)  # fmt: skip


def explain_refusal(message: str) -> Refusal | None:
    """The refusal for an error message of Spark; None if the message is not known."""
    for pattern, refusal in _SPARKS:
        match = re.search(pattern, message, re.IGNORECASE | re.DOTALL)
        if match:
            return _filled(refusal, *(g or "" for g in match.groups())) if match.groups() else refusal
    return None


def span_of(refusal: Refusal, shape: Shape) -> Span | None:
    """The span of the operation that most likely caused a refusal by Spark."""
    return next((op.span for op in shape.ops if op.kind == refusal.clause), None)
