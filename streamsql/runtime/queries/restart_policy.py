"""RESTART n TIMES EVERY interval: when a query that failed is started again, and how it failed before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from streamsql.language.durations import seconds

if TYPE_CHECKING:
    from streamsql.runtime.queries.run import Running

LONGEST = 600.0
"""Seconds up to which the time between two tries doubles; a longer interval stays as it is."""


@dataclass(frozen=True)
class Failure:
    """How a query failed once. batch: the micro-batch it was at, -1 when that is not known."""

    KEPT: ClassVar[int] = 5

    at: str
    batch: int
    message: str

    @classmethod
    def of(cls, running: Running) -> Failure:
        now = datetime.now().isoformat(" ", "seconds")
        return cls(now, running.batch, running.fault.message if running.fault else "")


def next_start(running: Running, *, worked: bool) -> datetime | None:
    """When a query that has just failed is to be started again; None: it is not.

    worked: it finished a micro-batch before, so that the count begins again. A fault that would come
    again for certain needs no other try.
    """
    rule = running.plan.query.restart
    if rule is None or running.stopped or running.certain:
        return None
    if worked:
        running.tries = 0
    if running.tries >= rule.times:
        return None
    every = seconds(rule.every)
    return datetime.now() + timedelta(seconds=min(every * 2**running.tries, max(every, LONGEST)))
