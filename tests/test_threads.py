"""What a console keeps for each piece of work is gone when the work is done: threads, sockets, open files."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from conftest import Console, fresh_console

from streamsql.errors import Cancelled, TimeFault
from streamsql.plan.lowering.stateful_calls import CHOICES, STATE_PROVIDER
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.engine.statement_thread import StatementThread
from streamsql.runtime.evidence.probes import Probes
from streamsql.runtime.queries.query_waits import wait_one

ROOMS = ("streamsql/runtime/",)


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


def test_a_closed_console_leaves_no_thread_that_refreshes(
    spark: Any, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    def refreshing() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name in ("refresh", "refresh-scheduler")]

    before = refreshing()
    with fresh_console(spark, tmp_path) as console:
        console.run("CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1), (2);")
        console.run(
            "CREATE LIVE TABLE t AS SELECT n FROM s; CREATE LIVE TABLE u AS SELECT max(n) AS n FROM t;"
        )
        assert console.rows("AWAIT QUERY u IDLE; SELECT n FROM u;") == [(2,)]
        assert len(refreshing()) > len(before)
    eventually(lambda: len(refreshing()) <= len(before))


def test_statements_of_a_client_run_in_order_on_one_thread() -> None:
    thread, at_once = StatementThread(), threading.Event()
    first = thread.begin(at_once.wait, 60)
    others = [thread.begin(threading.current_thread) for _ in range(3)]
    not_wanted = thread.begin(threading.current_thread)
    assert not_wanted.cancel()
    at_once.set()
    (worker,) = {future.result(60) for future in others}
    assert first.result(60) and worker is thread.run(threading.current_thread)
    with pytest.raises(ZeroDivisionError):
        thread.run(lambda: 1 // 0)
    last = thread.begin(threading.current_thread)
    thread.close()
    thread.close()
    assert last.result(60) is worker
    worker.join(60)
    assert not worker.is_alive()
    with pytest.raises(RuntimeError, match="has ended"):
        thread.run(threading.current_thread)


def test_a_statement_that_nobody_closes_leaves_no_thread() -> None:
    thread = StatementThread()
    worker = thread.run(threading.current_thread)
    del thread
    gc.collect()
    worker.join(60)
    assert not worker.is_alive()


# ---- with Spark: nothing grows --------------------------------------------------------------------

TIMES = int(os.environ.get("STREAMSQL_TIMES", "4"))
"""How often the work of each kind is done after the first time; thousands by hand."""
BUSY = """
import os, time

def write(batch, batch_id):
    while not os.path.exists("FOLDER/over"):
        time.sleep(0.05)
"""


def kept() -> tuple[int, int]:
    """(the threads, the open files and sockets) of this process."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def assert_flat(work: Callable[[], object]) -> None:
    """Do some work many times: at the end, not more is kept than after the first times."""
    for _ in range(3):
        work()
    before = kept()
    for _ in range(TIMES):
        work()
    deadline = time.monotonic() + 20  # what has ended may be closed a moment later
    while (now := kept()) and any(n > b + 2 for n, b in zip(now, before, strict=True)):
        assert time.monotonic() < deadline, f"(threads, files): {before} before, {now} after {TIMES} times"
        gc.collect()
        time.sleep(0.1)


@pytest.mark.slow
def test_refreshes_keep_nothing(console: Console) -> None:
    console.run(
        "CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE a AS SELECT count(*) AS c FROM s;"
        "CREATE LIVE TABLE b AS SELECT c FROM a;"
    )
    assert_flat(lambda: console.run("INSERT INTO s VALUES (1); AWAIT QUERY b IDLE;"))
    token = console.session.parts.queries.all["b"].handle._cancel
    assert console.rows("SELECT c FROM b;") == [(TIMES + 3,)]
    assert len(token._actions) <= 1


@pytest.mark.slow
def test_refreshes_after_micro_batches_that_follow_each_other_keep_nothing(console: Console) -> None:
    """Without a statement for each of them, thousands take half an hour."""
    console.run(
        "CREATE STREAM s USING `rate-micro-batch` OPTIONS (rowsPerBatch 1);"
        "CREATE LIVE TABLE a AS SELECT count(*) AS c FROM s; CREATE LIVE TABLE b AS SELECT c FROM a;"
    )
    refresher, refreshes = (
        console.session.parts.queries.all["b"].handle,
        console.session.parts.queries.refreshes,
    )

    def next_refresh() -> None:
        done = refresher.done
        while refresher.done == done:
            assert refresher.isActive
            refreshes.wait(refresher, 1)

    assert_flat(next_refresh)
    assert refresher.done >= TIMES + 3
    assert len(refresher._cancel._actions) <= 1
    console.run("STOP QUERY a; AWAIT QUERY b IDLE;")
    assert console.rows("SELECT a.c = b.c FROM a, b;") == [(True,)]


@pytest.mark.slow
def test_probes_of_why_keep_nothing(console: Console) -> None:
    console.run(
        "CREATE STREAM s (n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY '1 hour';"
        "CREATE LIVE TABLE t AS SELECT n FROM s WHERE n > 5; INSERT INTO s VALUES (1, now());"
        "AWAIT QUERY t IDLE;"
    )
    token = CancelToken()
    probes = Probes(console.session.parts.under(token))
    assert_flat(lambda: probes.row("SELECT count(*) FROM s"))
    assert probes.row("SELECT count(*) FROM s") is not None
    assert len(token._actions) <= 1
    assert_flat(lambda: console.run("WHY QUERY t;"))


def test_starts_and_stops_keep_nothing(console: Console) -> None:
    console.run("CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE t AS SELECT n FROM s;")
    assert_flat(lambda: console.run("STOP QUERY t; START QUERY t; AWAIT QUERY t IDLE;"))


def test_a_busy_query_that_is_awaited_keeps_nothing(console: Console, tmp_path: Path) -> None:
    (tmp_path / "cellar_of_threads.py").write_text(BUSY.replace("FOLDER", str(tmp_path)))
    console.run(
        "CREATE STREAM s (n INT) USING values; CREATE SINK o USING foreach_batch OPTIONS "
        f"(function 'cellar_of_threads.write', folder '{tmp_path}'); INSERT INTO o AS QUERY q SELECT n FROM s;"
        "INSERT INTO s VALUES (1);"
    )

    def awaits() -> None:
        with pytest.raises(TimeFault):
            console.run("AWAIT QUERY q IDLE TIMEOUT INTERVAL 0.2 SECONDS;")

    try:
        assert_flat(awaits)
    finally:
        (tmp_path / "over").touch()
    console.run("AWAIT QUERY q IDLE;")


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
    with held(console.session.parts.queries.starting):
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


def test_a_failure_that_spark_throws_before_the_query_has_ended_is_its_end() -> None:
    """Spark sets the cause of a failure, which awaitTermination throws, before the state of the query."""

    class Failing:
        """The moment between the two, which a test cannot bring about."""

        name, late, handle = "q", None, None

        def __init__(self) -> None:
            self.handle, self.asked = self, 0

        def is_active(self) -> bool:
            self.asked += 1
            return self.asked < 4

        def awaitTermination(self, seconds: float) -> None:
            raise RuntimeError("the cause")

    failing: Any = Failing()
    wait_one(failing, None, time.monotonic() + 60, CancelToken(), lambda running: None)
    assert not failing.is_active()
