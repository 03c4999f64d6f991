"""Streaming rules: which output modes a query can have, why, and what to write instead.

The rules are those of the Spark guide, "Output Modes" and "Unsupported Operations". What is said
here before Spark is asked is a part of them; Spark's own checker is asked before every start, and
`explain_refusal` puts its words into the same form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from streamsql.errors import RuleFault, Span
from streamsql.plan.shape import Op, Shape


@dataclass(frozen=True)
class Refusal:
    """Why a mode cannot be: the fact, the cause, what to write instead, and the clause at fault."""

    fact: str
    cause: str = ""
    hint: str = ""
    span: Span | None = None
    condition: str = ""

    def fault(self) -> RuleFault:
        return RuleFault(
            self.fact, detail=self.cause, hint=self.hint, span=self.span, condition=self.condition
        )


@dataclass(frozen=True)
class Choice:
    """An output mode and the reason for it, as said to the analyst."""

    mode: str
    reason: str


_WATERMARK_HINT = (
    "give the stream a watermark and group by its event time:\n"
    "CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES; … GROUP BY window(ts, '10 minutes')"
)
_MODE = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
_NO_WATERMARK = Refusal(
    "output mode append is not supported for streaming aggregations without watermark",
    "without a watermark a group is never finished, so append would never show it",
    _WATERMARK_HINT + "\nor write into a live table or another sink that takes OUTPUT MODE UPDATE",
    condition=_MODE,
)
_NO_GROUPS = Refusal(
    "output mode complete is not supported without an aggregation",
    "complete hands over the whole result every time, so Spark would have to keep every row",
    "leave OUTPUT MODE out, or write OUTPUT MODE APPEND",
    condition=_MODE,
)
_SORTED = Refusal(
    "sorting a stream is not supported, unless after an aggregation in output mode complete",
    "rows that come later could belong before rows that are already out",
    "leave ORDER BY out and sort when reading: CREATE LIVE TABLE t AS …; SELECT * FROM t ORDER BY …",
)
_DISTINCT_COUNT = Refusal(
    "a distinct aggregation is not supported on a stream",
    "the state would have to keep every value of every group",
    "approx_count_distinct(x) instead of count(DISTINCT x)",
)
_OVER = Refusal(
    "a window function (OVER …) is not supported on a stream (NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING)",
    "its frame would have to span rows that have not come yet",
    "GROUP BY window(ts, '10 minutes') for time windows; SELECT DISTINCT ON (id) … to keep the first row",
)
_SESSION_UPDATE = Refusal(
    "output mode update is not supported for session windows",
    "a session can still merge with another, so a row given out could not be taken back",
    "OUTPUT MODE APPEND with a watermark, or COMPLETE",
)
_SESSION_GLOBAL = Refusal(
    "a session window needs a second grouping key on a stream",
    "Spark refuses it only while running: [a global aggregation with session window]",
    "GROUP BY session_window(ts, '10 minutes'), user_id",
)
_UPDATE_LIMIT = Refusal(
    "LIMIT is not supported in output mode update",
    "",
    "OUTPUT MODE APPEND, or LIMIT when reading a live table",
)
_OFFSET = Refusal("OFFSET is not supported on a stream", "", "use OFFSET when reading a live table")
_NO_EQUALITY = Refusal(
    "a join of two streams needs an equality in its condition",
    "Spark keeps the rows of both sides by that key; it refuses the join only while running",
    "JOIN … ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
)

_PROCESSOR = {
    how: Refusal(
        f"the stateful processor is called in output mode {how}, so the query has that mode too", "", hint
    )
    for how, hint in (
        ("append", "output_mode => 'update' in the call, or leave OUTPUT MODE out"),
        (
            "update",
            "output_mode => 'append' in the call, or a sink that takes update: a live table, with "
            "KEY (column, …) where the keys are not selected",
        ),
    )
}


_ORDER_OF_STATE = Refusal(
    "this order of stateful operations can give wrong results in output mode {0}",
    "Detected pattern of possible 'correctness' issue: an operation after an aggregation would miss "
    "rows that are older than the watermark",
    "OUTPUT MODE APPEND with a watermark, or feed a live table and query that",
)
_WITHIN = Refusal(
    "dropDuplicatesWithinWatermark is not supported without watermark: WITHIN WATERMARK needs one",
    "the watermark says how long an id is remembered",
    "CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES, or leave WITHIN WATERMARK out",
)
_UNTIMED = Refusal(
    "{0} join of two streams needs a watermark and a range of time",
    "an unmatched row can only be given out once the watermark says that no match will come",
    "give both streams a watermark and write: "
    "ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
)
_JOIN_MODE = Refusal(
    "{0} join of two streams is not supported in {1} output mode",
    "each row of it is given out once, as soon as it is certain, and the whole is not kept",
    "OUTPUT MODE APPEND",
)
_STATIC_SIDE = Refusal(
    "{0} join with the stream on the {1} and a static table on the other side is not supported",
    "an unmatched row of the static side could still find a match later",
    "put the stream on the side that is kept: stream LEFT JOIN table, or table RIGHT JOIN stream",
)
_STREAM_SIDE = Refusal(
    "{0} join with a stream on the {1} is not supported",
    "an unmatched row could still find a match later",
    "LEFT JOIN … ON a.id = b.id AND a range of time … WHERE b.id IS NULL; or feed a live table and join that",
)
_UNION = Refusal(
    "a stream and a static table cannot be put together by UNION",
    "",
    "make the table a stream too: CREATE STREAM … USING parquet …",
)
_SETS = Refusal(
    "INTERSECT of a stream, and EXCEPT of two, are not supported",
    "a row can be given out only once it is known what the other side holds",
    "a LEFT SEMI join on a range of time for INTERSECT; feed live tables for EXCEPT",
)
_EXCEPT_APPEND = Refusal(
    "EXCEPT of a stream is not supported in output mode append",
    "it keeps each row once, as an aggregation without watermark does; Spark refuses it only while running",
    "OUTPUT MODE UPDATE, or a LEFT ANTI join with the table",
)
_SAMPLE = Refusal("TABLESAMPLE is not supported on a stream", "", "WHERE rand() < 0.1")


def verdict(shape: Shape, mode: str) -> Refusal | None:
    """Why a query of that shape cannot have that mode; None when nothing is known against it."""
    for number, op in enumerate(shape.ops):
        if not shape.known and not op.is_replacing_processor:
            continue  # only Spark can tell
        found = _verdict_of(op, shape, number, mode)
        if found:
            return replace(found, span=op.span)
    if shape.known and mode == "complete" and not shape.aggregates:
        return _NO_GROUPS
    return None


def _filled(refusal: Refusal, *words: str) -> Refusal:
    return replace(refusal, fact=refusal.fact.format(*words))


def _verdict_of(op: Op, shape: Shape, number: int, mode: str) -> Refusal | None:
    """What speaks against one operation (Spark guide, "Unsupported Operations")."""
    if op.kind in _NEVER:
        return _NEVER[op.kind]
    inputs = shape.inputs(number)
    groups = [i for i in inputs if i.kind in ("aggregate", "distinct")]
    if op.kind == "limit" and mode == "update":
        return _UPDATE_LIMIT
    if op.kind == "order" and not (mode == "complete" and groups):
        return _SORTED
    if op.kind == "union" and op.sides[0] != op.sides[1]:
        return _UNION
    if op.kind == "intersect" or (op.kind == "except" and op.sides[1]):
        return _SETS
    if op.kind == "except" and mode == "append":
        return _EXCEPT_APPEND
    if op.kind == "distinct_on" and op.window == "within" and not op.watermarked:
        return _WITHIN
    if op.kind == "join":
        found = _verdict_of_join(op, mode)
        if found:
            return found
    if op.kind == "stateful" and mode != op.how and not (shape.aggregates or shape.groups):
        return _PROCESSOR[op.how]
    if op.kind in ("aggregate", "distinct"):
        found = _verdict_of_aggregate(op, mode)
        if found:
            return found
    stateful = op.kind in ("aggregate", "distinct") or (op.kind == "join" and all(op.sides))
    stateful = stateful or (op.kind == "distinct_on" and (op.window == "within" or bool(op.timed)))
    return _filled(_ORDER_OF_STATE, mode) if stateful and groups and mode != "append" else None


_NEVER = {"over": _OVER, "offset": _OFFSET, "sample": _SAMPLE}
# Spark's names of the kinds of join, as its own refusals say them.
_KINDS = {"left": "LeftOuter", "left_outer": "LeftOuter", "right": "RightOuter", "right_outer": "RightOuter",
          "full": "FullOuter", "full_outer": "FullOuter", "left_semi": "LeftSemi", "left_anti": "LeftAnti",
          "inner": "Inner", "cross": "Cross"}  # fmt: skip


def _verdict_of_join(op: Op, mode: str) -> Refusal | None:
    """Spark guide, "Support matrix for joins in streaming queries"."""
    kind = _KINDS[op.how]
    if kind == "LeftAnti" and op.sides[1]:
        return _filled(_STREAM_SIDE, kind, "right")
    if not all(op.sides):
        kept = {"LeftOuter": (True, False), "LeftSemi": (True, False), "RightOuter": (False, True)}
        refused = kind == "FullOuter" or (kind in kept and op.sides != kept[kind])
        return _filled(_STATIC_SIDE, kind, "left" if op.sides[0] else "right") if refused else None
    if not op.equi:
        return _NO_EQUALITY
    outer = kind in ("LeftOuter", "RightOuter", "FullOuter")
    if mode == "complete" or (outer and mode == "update"):
        return _filled(_JOIN_MODE, kind, mode)
    return _filled(_UNTIMED, kind) if kind not in ("Inner", "Cross") and op.timed is False else None


def _verdict_of_aggregate(op: Op, mode: str) -> Refusal | None:
    if op.distinct:
        return _DISTINCT_COUNT
    if op.window == "session_window":
        if op.only_window:
            return _SESSION_GLOBAL
        if mode == "update":
            return _SESSION_UPDATE
    return _NO_WATERMARK if mode == "append" and not op.watermarked else None


def trigger_verdict(shape: Shape, kind: str) -> Refusal | None:
    """Why a query of that shape cannot have that kind of trigger (Spark guide, "Continuous Processing"
    and "Real-time Mode").
    """
    if kind == "real_time":
        return _real_time_verdict(shape)
    if kind != "continuous" or not shape.known:
        return None
    op = next((op for op in shape.ops if op.kind not in ("filter", "key")), None)
    if op is None:
        return None
    return Refusal(
        "TRIGGER CONTINUOUS takes projections and filters only",
        f"continuous processing does not have {_OPERATIONS.get(op.kind, op.kind.upper())}",
        "TRIGGER EVERY INTERVAL 1 SECOND",
        op.span,
    )


# Operations that Spark's RealTimeModeAllowlist leaves out, and why; all others of a Shape it has (those
# that output mode update does not take are refused for that).
_NOT_IN_REAL_TIME = {
    "session_window": "session windows are not among the operators that real-time mode has",
    "within": "WITHIN WATERMARK is not among the operators that real-time mode has, DISTINCT ON is",
    "join": "it joins a stream with tables only, which it sends to every worker and looks up by equality",
    "union": "a UNION comes before all that keeps state: GROUP BY, DISTINCT and DISTINCT ON go behind it",
    "stateful": "stateful processors in Python are not among the operators that real-time mode has",
    "limit": "it has no end at which rows could be counted",
}


def _real_time_verdict(shape: Shape) -> Refusal | None:
    for number, op in enumerate(shape.ops):
        behind = any(i.kind in ("aggregate", "distinct", "distinct_on") for i in shape.inputs(number))
        kind = op.window if op.window in _NOT_IN_REAL_TIME else op.kind
        if (kind == "join" and not all(op.sides) and op.equi) or (kind == "union" and not behind):
            continue
        if kind in _NOT_IN_REAL_TIME:
            what = "this join" if kind == "join" else _OPERATIONS.get(kind, f"{kind.upper()} here")
            return Refusal(
                f"TRIGGER REAL TIME does not take {what}",
                _NOT_IN_REAL_TIME[kind],
                "TRIGGER EVERY INTERVAL 1 SECOND",
                op.span,
            )
    return None


_OPERATIONS = {
    "watermark": "watermarks", "generate": "rows made of a row (explode)", "now": "the current time",
    "aggregate": "aggregations", "distinct": "DISTINCT", "distinct_on": "deduplication", "join": "joins",
    "session_window": "session windows", "within": "WITHIN WATERMARK", "stateful": "stateful processors",
}  # fmt: skip


def choices(shape: Shape, takes: tuple[str, ...], *, keyed: bool) -> list[Choice]:
    """The modes to try, best first, each with its reason.

    takes: modes of the sink. keyed: whether the sink shows the newest row of each group (a live
    table, the console), so that update is worth more than waiting for the watermark.
    """
    reasons = _reasons(shape, keyed)
    order = [m for m in reasons if m in takes and verdict(shape, m) is None]
    return [Choice(m, reasons[m]) for m in order]


def _reasons(shape: Shape, keyed: bool) -> dict[str, str]:
    groups = shape.aggregates
    if not groups:
        only = "each row is handed over once" if shape.known else "Spark accepts it"
        update = "the stateful processor replaces rows" if shape.replacing else "Spark accepts only this"
        modes = {"append": only, "update": update, "complete": "Spark accepts it"}
        # Complete shows at once what append may hold back; Spark refuses it where nothing is grouped.
        return {"complete": modes.pop("complete"), **modes} if shape.groups and keyed else modes
    ordered = any(op.kind == "order" for op in shape.ops)
    closes = next((op for op in groups if op.watermarked), None)
    append = "the watermark closes the groups" if closes else ""
    update = "a group is handed over whenever it changes"
    complete = "the whole result is handed over each time, so that it can be sorted" if ordered else (
        "the whole result is handed over each time"
    )  # fmt: skip
    if ordered:
        return {"complete": complete}
    if keyed and shape.loses_groups:
        complete = "the whole result is handed over each time, since a filter can take a group out again"
        return {"complete": complete, "append": append}
    if keyed and shape.keys is not None:
        return {"update": update, "append": append, "complete": complete}
    if keyed:
        return {"complete": complete + ", because the groups' keys are not selected", "append": append}
    return {"append": append, "update": update, "complete": complete}


def refuse_all(shape: Shape, takes: tuple[str, ...], sink: str) -> RuleFault:
    """The error when no mode works: why the first that the sink takes does not, and what helps."""
    reasons = {m: verdict(shape, m) for m in takes}
    first = next((r for r in reasons.values() if r), None)
    if first is None:
        return RuleFault(f"no output mode of {sink} suits this query")
    also = f"the sink {sink} takes only {' and '.join(takes)}" if len(takes) < 3 else ""
    return RuleFault(
        first.fact,
        detail="\n".join(p for p in (first.cause, also) if p),
        hint=first.hint,
        span=first.span,
        condition=first.condition,
    )


def bad_mode(mode: str, takes: tuple[str, ...], sink: str, connector: str, span: Span) -> RuleFault:
    """The error for a mode that the sink does not take."""
    return RuleFault(
        f"the sink {sink} does not take output mode {mode}",
        detail=f"{connector} takes {', '.join(takes)}",
        hint="write into a live table, or leave OUTPUT MODE out and give the stream a watermark",
        span=span,
    )


# Spark's words (ENGINE.md, "Output mode x query") → ours. {0} is what the pattern caught.
_SPARKS: tuple[tuple[str, Refusal], ...] = (
    (r"streaming aggregations without watermark", _NO_WATERMARK),
    (r"output mode: complete.*no streaming aggregations", _NO_GROUPS),
    (r"Distinct aggregations are not supported", _DISTINCT_COUNT),
    (r"session window streaming aggregations", _SESSION_UPDATE),
    (r"Global aggregation with session window", _SESSION_GLOBAL),
    (r"correctness.*global watermark", replace(
        _ORDER_OF_STATE, fact=_ORDER_OF_STATE.fact.replace("output mode {0}", "this output mode"))),
    (r"dropDuplicatesWithinWatermark is not supported.*without watermark", _WITHIN),
    (r"Stream-stream (\w+) join between two stream.* is not supported without a watermark", _UNTIMED),
    (r"(\w+) joins? between two stream.* not supported in (\w+) output mode", _JOIN_MODE),
    (r"(\w+) joins? with (?:a )?streaming DataFrames?/Datasets? on the (\w+) and a static.* not supported",
     _STATIC_SIDE),
    (r"(\w+) joins? with (?:streams|a streaming DataFrame/Dataset) on the (\w+).*not supported",
     _STREAM_SIDE),
    (r"without equality predicate", _NO_EQUALITY),
    (r"Limits are not supported", _UPDATE_LIMIT),
    (r"Offset is not supported", _OFFSET),
    (r"Sorting is not supported", _SORTED),
    (r"Union between streaming and batch", _UNION),
    (r"(Intersect|Except).*not supported|EXCEPT on a streaming", _SETS),
    (r"Window function is not supported|NON_TIME_WINDOW", _OVER),
    (r"Sampling is not supported", _SAMPLE),
    (r"Continuous processing does not support (.*?) operations", Refusal(
        "TRIGGER CONTINUOUS takes projections and filters only",
        "continuous processing does not have {0}",
        "TRIGGER EVERY INTERVAL 1 SECOND")),
)  # fmt: skip


def explain_refusal(message: str) -> Refusal | None:
    """Spark's refusal in the console's words; None when its message is not known here."""
    for pattern, refusal in _SPARKS:
        found = re.search(pattern, message, re.IGNORECASE | re.DOTALL)
        if found:
            caught = [g or "" for g in found.groups()]
            if not caught:
                return refusal
            return replace(refusal, fact=refusal.fact.format(*caught), cause=refusal.cause.format(*caught))
    return None


_SPAN_OF = {
    "sort": "order",
    "LIMIT": "limit",
    "OFFSET": "offset",
    "join": "join",
    "window function": "over",
    "distinct aggregation": "aggregate",
    "aggregation": "aggregate",
    "WITHIN": "distinct_on",
    "UNION": "union",
    "INTERSECT": "intersect",
    "TABLESAMPLE": "sample",
}


def span_of(refusal: Refusal, shape: Shape) -> Span | None:
    """The clause of the query that a refusal of Spark's most likely means."""
    for word, kind in _SPAN_OF.items():
        if word in refusal.fact:
            return next((op.span for op in shape.ops if op.kind == kind), None)
    return None
