"""RESTART n TIMES EVERY interval: when a failed query is restarted, and its earlier failures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from streamsql.language.durations import seconds

if TYPE_CHECKING:
    from streamsql.runtime.queries.run import Running

LONGEST = 600.0
"""The delay between two restarts doubles up to this many seconds; a longer interval is kept as it is."""


@dataclass(frozen=True)
class Failure:
    """One failure of a query. batch: its micro-batch then, -1 when that is not known."""

    KEPT: ClassVar[int] = 5

    at: str
    batch: int
    message: str

    @classmethod
    def of(cls, running: Running) -> Failure:
        now = datetime.now().isoformat(" ", "seconds")
        return cls(now, running.batch, running.fault.message if running.fault else "")


def next_start(running: Running, *, worked: bool) -> float | None:
    """When a query that has just failed is restarted, by time.monotonic(); None: never.

    worked: it completed a micro-batch before, which resets the count. A fault that is certain to recur
    is not retried.
    """
    rule = running.plan.query.restart
    if rule is None or running.stopped or running.certain:
        return None
    if worked:
        running.tries = 0
    if running.tries >= rule.times:
        return None
    every = seconds(rule.every)
    return time.monotonic() + min(every * 2**running.tries, max(every, LONGEST))
