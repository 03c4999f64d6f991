"""What a console keeps for each piece of work is gone when the work is done: threads, sockets, open files."""

from __future__ import annotations

import os
import threading
import time
from unittest.mock import MagicMock

from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import Engine


def test_a_token_ends_the_jobs_of_many_refreshes_once() -> None:
    """The token of a live table over live tables lives for as long as the table is refreshed."""
    spark, token = MagicMock(), CancelToken()
    engine = Engine(*[MagicMock() for _ in range(6)], spark)
    for _ in range(500):
        engine.run_jobs_of(token, spark)
    before = threading.active_count()
    ended = spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs
    began = threading.Event()
    ended.side_effect = lambda jobs: began.set()
    token.cancel()
    assert began.wait(60)
    assert threading.active_count() <= before + 2  # the action, and the timer that repeats it
    assert ended.call_count <= 2


def test_work_that_is_done_is_not_cancelled() -> None:
    token, done, under_way = CancelToken(), threading.Event(), threading.Event()
    for _ in range(500):
        with token.calling(done.set):
            pass
    with token.calling(under_way.set):
        before = threading.active_count()
        token.cancel()
        assert threading.active_count() <= before + 1
        assert under_way.wait(60)
    assert not done.is_set()


def kept() -> tuple[int, int]:
    """(the threads, the open files and sockets) of this process."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def settled(most: tuple[int, int]) -> tuple[int, int]:
    """What is kept, once it is at most that much, or after 10 s: what has ended may be closed a moment later."""
    deadline = time.monotonic() + 10
    while any(now > limit for now, limit in zip(kept(), most, strict=True)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return kept()
