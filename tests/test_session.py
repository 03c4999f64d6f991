"""What several threads share: the catalog, cancel tokens, the terminal, what is kept of micro-batches, and
the one start of Spark. Without Spark.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from conftest import Console

from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.connectors.base import Places
from streamsql.definitions import Stream
from streamsql.errors import Cancelled, Note, StartFault
from streamsql.output.printer import Printer
from streamsql.query_facts import Account
from streamsql.results import Rows
from streamsql.runtime.checkpoints.batch_history import FILE, BatchHistories
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import ClusterNews, Events, SparkLost
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.read_only import SharedTables
from streamsql.shell import statement_runner
from streamsql.shell.bare_terminal import Interrupt
from streamsql.shell.statement_runner import Desk


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def side_by_side(*acts: Callable[[], object]) -> list[Exception]:
    """Do things at the same time, each on a thread; what they raised."""
    barrier, raised = threading.Barrier(len(acts)), list[Exception]()

    def work(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


# ---- the catalog ----------------------------------------------------------------------------------


def test_a_catalog_cannot_be_changed() -> None:
    given = {"a": Stream("a", "rate")}
    catalog = Catalog(streams=given)
    given["b"] = Stream("b", "rate")
    assert list(catalog.streams) == ["a"]
    with pytest.raises(TypeError):
        catalog.streams["b"] = Stream("b", "rate")  # type: ignore[index]
    more = catalog.having(Stream("B", "rate"))
    assert (list(catalog.streams), list(more.streams)) == (["a"], ["a", "b"])
    assert more.without("streams", "b") == catalog


def test_the_catalog_is_read_while_others_change_it(hurried: None) -> None:
    current, seen = CurrentCatalog(), list[int]()

    def define(which: int) -> None:
        for n in range(200):
            current.update(lambda catalog, n=n: catalog.having(Stream(f"s{which}_{n}", "rate")))  # type: ignore[misc]

    def read() -> None:
        while len(current.snapshot.streams) < 400:
            seen.append(len(current.snapshot.relation_names()))

    assert side_by_side(lambda: define(1), lambda: define(2), read) == []
    assert len(current.snapshot.streams) == 400  # no change was lost
    assert seen == sorted(seen)


# ---- giving up ------------------------------------------------------------------------------------


def test_a_cancel_token_stays_set() -> None:
    before, after = threading.Event(), threading.Event()
    token = CancelToken()
    token.on_cancel(before.set, of=before)
    token.check()
    assert not before.is_set()
    token.cancel()
    token.on_cancel(after.set, of=after)
    assert token.cancelled and after.is_set() and before.wait(60)
    for act in (token.check, lambda: token.wait(60)):
        with pytest.raises(Cancelled):
            act()
    CancelToken().check()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session that needs no Spark."""
    made = Session(Config(Settings.make("local[1]", {}), tmp_path / "console", tmp_path / "log", tmp_path))
    yield made
    made.close()


def test_a_statement_that_does_not_respond_to_ctrl_c_changes_nothing_afterwards(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module is still being imported when it is cancelled."""
    monkeypatch.setattr(statement_runner, "GIVING_UP", 0.05)
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    os.mkfifo(begun)
    os.mkfifo(go_on)
    (tmp_path / "slow_module.py").write_text(
        f"open({str(begun)!r}, 'w').close()\nopen({str(go_on)!r}).close()\ndef one():\n    return 1\n"
    )
    session.variables["here"] = str(tmp_path)
    shown, interrupted = StringIO(), Interrupt()
    desk = Desk(session, Printer("table", shown, shown), interrupted, {})

    def press_ctrl_c() -> None:
        open(begun).close()  # waits until the import has begun
        interrupted.set()

    pressing = threading.Thread(target=press_ctrl_c)
    pressing.start()
    before = set(threading.enumerate())
    text = f"SOURCE '{tmp_path}/define.sql'"
    (tmp_path / "define.sql").write_text(
        "CREATE FUNCTION one AS 'slow_module.one' LANGUAGE PYTHON RETURNS INT; CREATE STREAM s USING rate;"
    )
    assert desk.execute(text + ";")
    pressing.join()
    assert "but it does not respond: it stops at its next step" in shown.getvalue()
    assert desk.execute("SHOW STREAMS;")  # the prompt is free meanwhile
    assert "(0 rows)" in shown.getvalue()
    shown.truncate(0)
    [working] = [t for t in threading.enumerate() if t not in before and t.name == "statement"]
    open(go_on, "w").close()
    working.join(60)
    assert not working.is_alive()
    assert shown.getvalue() == ""
    assert session.catalog == Catalog()


# ---- the terminal ---------------------------------------------------------------------------------


def test_what_comes_in_the_background_does_not_stand_between_the_lines_of_a_result(hurried: None) -> None:
    out = StringIO()
    printer = Printer("csv", out, out)

    def show(word: str, background: bool) -> None:
        rows = Rows((Note("NO_ROWS", f"{word} has begun"),), (word,), [(word,)] * 30, (False,))
        for _ in range(30):
            printer.show(rows, background=background)

    assert side_by_side(lambda: show("statement", False), lambda: show("batch", True)) == []
    blocks = {w: [w] * 31 + ["(30 rows)", f"note: {w} has begun"] for w in ("statement", "batch")}
    lines = out.getvalue().splitlines()
    assert len(lines) == 60 * 33
    for at in range(0, len(lines), 33):
        assert lines[at : at + 33] == blocks[lines[at]]


def test_events_reach_their_subscribers_only() -> None:
    events, seen = Events(), list[str]()
    end = events.subscribe(ClusterNews, lambda event: seen.append(event.words))
    events.subscribe(ClusterNews, lambda event: seen.append(event.words.upper()))
    events.publish(ClusterNews("lost"))
    events.publish(SparkLost("killed"))
    end()
    events.publish(ClusterNews("back"))
    assert seen == ["lost", "LOST", "BACK"]


# ---- what is kept of micro-batches ----------------------------------------------------------------


def test_reports_are_written_on_another_thread_in_their_order_and_none_is_lost(tmp_path: Path) -> None:
    kept = BatchHistories(Places(str(tmp_path)), lasting=True)
    _, add = kept.follow("q")
    file = Path(kept.places.query("q")) / FILE
    os.mkfifo(file)  # a disk on which every write waits
    for n in range(300):
        add({"id": "x", "batchId": n, "numInputRows": n, "durationMs": {"triggerExecution": 5}}, Account())
    assert kept.of("q").done[("x", 299)] == (299, 5)
    written: list[str] = []
    with open(os.open(file, os.O_RDWR)) as reader:  # keeps the pipe open between two writes

        def read() -> None:
            while len(written) < 300:
                written.append(reader.readline())

        reading = threading.Thread(target=read)
        reading.start()
        kept.flush()
        reading.join()
    assert [json.loads(line)["batch"] for line in written] == list(range(300))


def test_rows_of_another_console_are_taken_up_once(tmp_path: Path, hurried: None) -> None:
    """By a live view and statements at the same time."""
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from streamsql.runtime.embedded.live_rows import LiveRows
    from streamsql.runtime.live.journal import LiveTables

    owner = LiveTables(lambda name: str(tmp_path / name), lambda name: True)
    schema = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "n", "type": "integer", "nullable": True, "metadata": {}}]}
    )
    rows = LiveRows(schema, "append", None, 1000)
    owner.begin("t", rows, tmp_path / "t")
    reader = SharedTables(lambda name: str(tmp_path / name), lambda name: True)
    end = reader.follow("t")
    for batch in range(30):
        rows.take(pa.table({"n": pa.array([batch], pa.int32())}), batch)
        assert side_by_side(*[lambda: reader.get("t")] * 4) == []
        assert reader.get("t").rows()[0]["n"].to_pylist() == list(range(batch + 1))
    end()
    assert not any(t.name == "follow-t" for t in threading.enumerate())


# ---- the start of Spark ---------------------------------------------------------------------------


@pytest.mark.usefixtures("processes")
def test_threads_that_want_spark_at_the_same_time_start_one(tmp_path: Path, hurried: None) -> None:
    """Its Java counts how often it is started, and fails."""
    home, starts = tmp_path / "java", tmp_path / "starts"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="21.0.1"\n')
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho started >> {starts}\nexit 1\n")
    java.chmod(0o755)
    settings = Settings.make("local[1]", {})
    engine = Engine(settings, tmp_path, tmp_path / "log", tmp_path / "cache", str(home), Events(), None)

    for times in (1, 2):  # the next statement tries again
        assert side_by_side(*[engine.begin_start] * 8) == []
        with pytest.raises(StartFault):
            engine.wait(CancelToken())
        assert starts.read_text().count("started") == times
        assert engine.failed


def test_views_whose_names_need_backticks_and_global_ones(console: Console) -> None:
    console.run(
        "CREATE TEMPORARY VIEW `odd.name` AS SELECT 1 AS n; CREATE GLOBAL TEMPORARY VIEW g AS SELECT 2 AS n;"
    )
    try:
        assert console.rows("SELECT o.n, g.n FROM `odd.name` o CROSS JOIN global_temp.g;") == [(1, 2)]
    finally:
        console.run("DROP VIEW `odd.name`; DROP VIEW global_temp.g;")


def test_an_insert_into_a_table_tells_its_rows(console: Console) -> None:
    _, first, second, none = console.run(
        "CREATE TABLE told (a INT); INSERT INTO told VALUES (1), (2); INSERT INTO told SELECT a FROM told WHERE a = 1;"
        "INSERT INTO told SELECT a FROM told WHERE a = 7;"
    )
    messages = [result.message for result in (first, second, none)]
    assert messages == ["2 rows written into told", "1 row written into told", "0 rows written into told"]
