"""The errors for unsupported streaming queries, each with its cause and a hint."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.error_codes import OUTPUT_MODE
from streamsql.errors import RuleFault, Span


@dataclass(frozen=True)
class Refusal:
    """Why an output mode is not supported: the fact, the cause, a hint, and the span. clause: the kind of
    operation, if the span is not known; code: OUTPUT_MODE if another mode would be supported.
    """

    fact: str
    cause: str = ""
    hint: str = ""
    span: Span | None = None
    condition: str = ""
    clause: str = ""
    code: str = "NOT_ON_STREAMS"

    def fault(self) -> RuleFault:
        return RuleFault(
            self.fact,
            detail=self.cause,
            hint=self.hint,
            span=self.span,
            condition=self.condition,
            code=self.code,
        )


WATERMARK_HINT = (
    "give the stream a watermark and group by its event time:\n"
    "CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES; … GROUP BY window(ts, '10 minutes')"
)
MODE = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
NO_WATERMARK = Refusal(
    "output mode append is not supported for streaming aggregations without watermark",
    "without a watermark a group is never final, so append mode would never emit it",
    WATERMARK_HINT + "\nor write into a live table or another sink that supports OUTPUT MODE UPDATE",
    condition=MODE,
    clause="aggregate",
    code=OUTPUT_MODE,
)
NO_GROUPS = Refusal(
    "output mode complete is not supported without an aggregation",
    "complete mode emits the whole result each time, so Spark would have to keep every row",
    "omit OUTPUT MODE, or write OUTPUT MODE APPEND",
    condition=MODE,
    code=OUTPUT_MODE,
)
SORTED = Refusal(
    "sorting a stream is not supported, except after an aggregation in output mode complete",
    "later rows could belong before rows that have been emitted",
    "omit ORDER BY and sort when reading: CREATE LIVE TABLE t AS …; SELECT * FROM t ORDER BY …",
    clause="order",
    code=OUTPUT_MODE,
)
DISTINCT_COUNT = Refusal(
    "a distinct aggregation is not supported on a stream",
    "the state would have to keep every value of every group",
    "approx_count_distinct(x) instead of count(DISTINCT x)",
    clause="aggregate",
)
ONE_GROUP_TWICE = Refusal(
    "several aggregations without GROUP BY are not supported in one query over streams",
    "Spark's optimizer may merge them (rule MergeSubplans), and then a micro-batch gives the values of its "
    "own rows only",
    "a live table for each of them, and the query over these",
)
"""Seen in Spark 4.3, also where the streams differ: a micro-batch may have no rows of either."""
OVER = Refusal(
    "a window function (OVER …) is not supported on a stream (NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING)",
    "its frame would have to span rows that have not arrived yet",
    "GROUP BY window(ts, '10 minutes') for time windows; SELECT DISTINCT ON (id) … to keep the first row",
    clause="over",
)
SESSION_UPDATE = Refusal(
    "output mode update is not supported for session windows",
    "a session can still merge with another, so an emitted row could not be retracted",
    "OUTPUT MODE APPEND with a watermark, or COMPLETE",
    code=OUTPUT_MODE,
)
SESSION_GLOBAL = Refusal(
    "a session window needs a second grouping key on a stream",
    "Spark refuses it only while running: [a global aggregation with session window]",
    "GROUP BY session_window(ts, '10 minutes'), user_id",
)
UPDATE_LIMIT = Refusal(
    "LIMIT is not supported in output mode update",
    "",
    "OUTPUT MODE APPEND, or LIMIT when reading a live table",
    clause="limit",
    code=OUTPUT_MODE,
)
OFFSET = Refusal(
    "OFFSET is not supported on a stream", "", "use OFFSET when reading a live table", clause="offset"
)
NO_EQUALITY = Refusal(
    "a join of two streams needs an equality in its condition",
    "Spark keeps the rows of both sides by that key; it refuses the join only while running",
    "JOIN … ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    clause="join",
)

PROCESSOR = {
    how: Refusal(
        f"the stateful processor is called in output mode {how}, so the query must have the same mode",
        "",
        hint,
        code=OUTPUT_MODE,
    )
    for how, hint in (
        ("append", "output_mode => 'update' in the call, or omit OUTPUT MODE"),
        (
            "update",
            "output_mode => 'append' in the call, or a sink that supports update: a live table, with "
            "KEY (column, …) where the keys are not selected",
        ),
    )
}


ORDER_OF_STATE = Refusal(
    "this order of stateful operations can give wrong results in output mode {0}",
    "Detected pattern of possible 'correctness' issue: an operation after an aggregation would miss "
    "rows that are older than the watermark",
    "OUTPUT MODE APPEND with a watermark, or feed a live table and query that",
    code=OUTPUT_MODE,
)
THIS_ORDER_OF_STATE = replace(
    ORDER_OF_STATE, fact="this order of stateful operations can give wrong results in this output mode"
)
WITHIN = Refusal(
    "dropDuplicatesWithinWatermark is not supported without watermark: WITHIN WATERMARK needs one",
    "the watermark sets how long an id is kept in state",
    "CREATE STREAM … WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES, or omit WITHIN WATERMARK",
    clause="distinct_on",
)
UNTIMED = Refusal(
    "{0} join of two streams needs a watermark and a time range",
    "an unmatched row can be emitted only when the watermark shows that no match can follow",
    "give both streams a watermark and write: "
    "ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    clause="join",
)
JOIN_MODE = Refusal(
    "{0} join of two streams is not supported in {1} output mode",
    "each row is emitted only once, when it is final, and the whole result is not kept",
    "OUTPUT MODE APPEND",
    clause="join",
    code=OUTPUT_MODE,
)
STATIC_SIDE = Refusal(
    "{0} join with the stream on the {1} and a static table on the other side is not supported",
    "an unmatched row of the static side could still find a match later",
    "put the stream on the preserved side: stream LEFT JOIN table, or table RIGHT JOIN stream",
    clause="join",
)
STREAM_SIDE = Refusal(
    "{0} join with a stream on the {1} is not supported",
    "an unmatched row could still find a match later",
    "LEFT JOIN … ON a.id = b.id AND a time range … WHERE b.id IS NULL; or feed a live table and join that",
    clause="join",
)
UNION = Refusal(
    "UNION of a stream and a static table is not supported",
    "",
    "define the table as a stream too: CREATE STREAM … USING parquet …",
    clause="union",
)
SETS = Refusal(
    "INTERSECT of a stream, and EXCEPT of two, are not supported",
    "a row can be emitted only when all rows of the other side are known",
    "a LEFT SEMI join with a time range for INTERSECT; feed live tables for EXCEPT",
    clause="intersect",
)
EXCEPT_APPEND = Refusal(
    "EXCEPT of a stream is not supported in output mode append",
    "it keeps each row once, as an aggregation without watermark does; Spark refuses it only while running",
    "OUTPUT MODE UPDATE, or a LEFT ANTI join with the table",
    clause="intersect",
    code=OUTPUT_MODE,
)
CHANGES_MODE = Refusal(
    "a stream of changes needs output mode update",
    "each change replaces or deletes the row of its key",
    "omit OUTPUT MODE",
    code=OUTPUT_MODE,
)
CONTINUOUS = Refusal(
    "TRIGGER CONTINUOUS supports only projections and filters",
    "continuous processing does not support {0}",
    "TRIGGER EVERY INTERVAL 1 SECOND",
    code="TRIGGER_NOT_SUPPORTED",
)
REAL_TIME = replace(CONTINUOUS, fact="TRIGGER REAL TIME does not support {0}", cause="{1}")
SAMPLE = Refusal("TABLESAMPLE is not supported on a stream", "", "WHERE rand() < 0.1", clause="sample")
