"""What a console keeps for each piece of work is gone when the work is done: threads, sockets, open files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from conftest import Console

from streamsql.errors import Cancelled
from streamsql.plan.lowering.stateful_calls import CHOICES, STATE_PROVIDER
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.package_loader import Packages


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


# ---- waits that Ctrl-C ends, and settings that one program at a time sets -------------------------


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """A context in which another thread holds a lock."""
    holds, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            let_go.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert holds.wait(60)
        yield
    finally:
        let_go.set()
        other.join()


def cancelled_while(act: Callable[[CancelToken], object]) -> None:
    """Call a function that waits, and cancel it: it has to end with Cancelled."""
    token, outcome = CancelToken(), list[BaseException]()

    def work() -> None:
        try:
            act(token)
        except BaseException as error:
            outcome.append(error)

    waiting = threading.Thread(target=work, daemon=True)
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    token.cancel()
    waiting.join(10)
    assert [type(error) for error in outcome] == [Cancelled]


STREAMS = "CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE t AS SELECT n FROM s; STOP QUERY t;"


@pytest.mark.parametrize("statement", ["START QUERY t;", "CREATE LIVE TABLE u AS SELECT n FROM s;"])
def test_ctrl_c_ends_the_wait_for_the_start_of_another_client(console: Console, statement: str) -> None:
    console.run(STREAMS)
    with held(console.session.queries.starting):
        cancelled_while(lambda token: console.run(statement, token))
    console.run(statement)


def test_ctrl_c_ends_the_wait_for_the_packages_of_another_statement(tmp_path: Path) -> None:
    loader = Packages(dict, tmp_path, lambda: False, lambda words: None)
    with held(loader._lock):
        cancelled_while(lambda token: loader.load(Mock(), Mock(), token))


def test_programs_that_set_the_state_store_do_so_one_after_the_other(console: Console) -> None:
    console.run("CREATE STREAM s (n INT) USING values;")  # starts nothing
    parts, conf = console.session.parts, console.session.spark.conf
    before = conf.get(STATE_PROVIDER)
    program = (CHOICES[STATE_PROVIDER],)
    seen, entered = list[str](), threading.Event()

    def second() -> None:
        entered.set()
        with parts.own_state_provider(program):
            seen.append(conf.get(STATE_PROVIDER))
            conf.set(STATE_PROVIDER, "of the second")

    other = threading.Thread(target=second)
    with parts.own_state_provider(program):
        conf.set(STATE_PROVIDER, "of the first")
        other.start()
        assert entered.wait(60)
        other.join(0.3)
        assert seen == []
    other.join(60)
    assert seen == [before]
    assert conf.get(STATE_PROVIDER) == before
