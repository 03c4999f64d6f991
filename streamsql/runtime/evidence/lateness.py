"""How late the rows of a stream arrive: measured over micro-batches that are read again.

The lateness of a row is the newest event time of the micro-batches before its own, minus its event time; 0
for a row that is newer. A row is behind the watermark if its lateness is the delay or more.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamsql.calls import run
from streamsql.definitions import Query, Stream
from streamsql.errors import Span
from streamsql.language.durations import seconds
from streamsql.language.tokens import quote_name
from streamsql.plan.context import reads_of
from streamsql.plan.lowering.late_rows import check_sources, stream_batches
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.parts import SessionParts

SHARES = (0.5, 0.99, 0.999)
BUCKETS = (("on time", 0), ("up to 1 s", 1), ("up to 10 s", 10), ("up to 1 min", 60), ("up to 10 min", 600),
           ("up to 1 h", 3_600), ("up to 1 day", 86_400))  # fmt: skip
"""The classes of the distribution, with their upper limits in seconds; what is later is another class."""


@dataclass(frozen=True)
class Measured:
    """rows and batches: those that were read; nulls: rows whose event time is NULL; oldest, newest: event
    times in milliseconds; compared: rows that come after another micro-batch; beyond: how many of them have
    the delay or more; late: the lateness, in milliseconds, of the shares SHARES and of the latest row;
    classes: rows in each of BUCKETS and beyond the last.
    """

    rows: int
    batches: int
    nulls: int
    oldest: int | None
    newest: int | None
    compared: int
    beyond: int
    late: tuple[int, ...]
    classes: tuple[int, ...]


def keeping(late: int) -> float:
    """The delay, in seconds, that keeps a row of that lateness (in milliseconds): a longer one, from ten
    minutes on in whole minutes.
    """
    needed = -(-(late + 1) // 1_000)
    return needed if needed <= 600 else -(-needed // 60) * 60


def measured_in(evidence: Evidence, stream: Stream) -> Measured | None:
    """The lateness of a stream in the micro-batches of a query; None where that cannot be had within the
    time of a probe. Raises Cancelled.
    """
    if evidence.plan.transient or evidence.query.together or stream.watermark is None:
        return None
    probes = evidence.probes
    return probes.tried(lambda: measure(evidence.parts, stream, evidence.query, probes.collect))


def measure(
    parts: SessionParts, stream: Stream, query: Query, collect: Callable[[Any], list[Any] | None]
) -> Measured | None:
    """Measure a stream with a watermark in the micro-batches of a query. None if the query does not read it,
    if no micro-batch can be read, or collect gives None. Raises faults of planning, exceptions of Spark.
    """
    assert stream.watermark
    check_sources([stream], Span(0, 0))
    sources = parts.context().sources(counts=False)
    program = stream_batches(stream, query, sources)
    batches_read = run(program, parts.env(program, reads_of(sources))).batches(0) if program else ()
    time = f"unix_millis(CAST({quote_name(stream.watermark.column.value)} AS TIMESTAMP))"
    frames = [frame.selectExpr(f"{time} AS t", f"{number} AS b") for number, frame in batches_read]
    if not frames:
        return None
    rows = functools.reduce(lambda a, b: a.unionByName(b), frames)
    # The newest event time of the micro-batches before each one; NULL for the first.
    newest = rows.groupBy("b").agg({"t": "max"}).toDF("b", "newest")
    earlier = "max(newest) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier"
    late = "if(t IS NULL OR earlier IS NULL, NULL, greatest(0, earlier - t)) AS late"
    compared = rows.join(newest.selectExpr("b", earlier), "b").selectExpr("b", "t", late)
    shares = ", ".join(map(str, (*SHARES, 1.0)))
    figures = {
        "rows": "count(1)",
        "batches": "count(DISTINCT b)",
        "nulls": "count_if(t IS NULL)",
        "oldest": "min(t)",
        "newest": "max(t)",
        "compared": "count(late)",
        "beyond": f"count_if(late >= {int(seconds(stream.watermark.delay) * 1_000)})",
    }
    up_to = [f"count_if(late <= {limit * 1_000})" for _, limit in BUCKETS]
    distribution = [f"percentile_approx(late, array({shares}), 100000)", f"array({', '.join(up_to)})"]
    answer = collect(compared.selectExpr(*figures.values(), *distribution))
    if not answer:
        return None
    *numbers, late_by_share, counts = answer[0]
    figure = dict(zip(figures, numbers, strict=True))
    bounds = [0, *counts, figure["compared"]] if figure["compared"] else []
    classes = tuple(after - before for before, after in itertools.pairwise(bounds))
    return Measured(late=tuple(late_by_share or ()), classes=classes, **figure)
