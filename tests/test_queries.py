"""Queries in the background: started, watched, stopped, resumed, dropped, awaited."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of

from streamsql.errors import Cancelled, QueryFault, StreamsqlError, TimeFault
from streamsql.results import Done, Rows, Started, Text
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.queries.facts import waiting_for
from streamsql.runtime.queries.progress_reports import Reports

ROOMS = ("streamsql/runtime/", "streamsql/output/")

WORDS = "CREATE STREAM words (word STRING, n INT) USING values;\n"


def status(console: Console, name: str) -> dict[str, Any]:
    shown = console.run("SHOW QUERIES;")[0]
    assert isinstance(shown, Rows)
    return next(dict(zip(shown.columns, r, strict=True)) for r in shown.rows if r[0] == name)


def test_stop_and_start_go_on_from_the_checkpoint(console: Console) -> None:
    console.run(WORDS + "CREATE LIVE TABLE t AS SELECT word, count(*) AS c FROM words GROUP BY word;")
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY t IDLE; STOP QUERY t;")
    assert status(console, "t")["status"] == "stopped"
    console.run("INSERT INTO words VALUES ('a', 2);")
    assert console.rows("SELECT * FROM t ORDER BY word;") == [("a", 1), ("b", 1)]
    console.run("START QUERY t; AWAIT QUERY t IDLE;")
    assert status(console, "t")["status"] == "running"
    assert console.rows("SELECT * FROM t ORDER BY word;") == [("a", 2), ("b", 1)]


def test_runs_that_have_ended_keep_no_connection_to_spark(
    console: Console, eventually: Callable[..., None]
) -> None:
    def sockets() -> int:
        links = Path("/proc/self/fd").iterdir()
        return sum(os.readlink(link).startswith("socket:") for link in links if link.is_symlink())

    again = "START QUERY t; AWAIT QUERY t;"
    create = (
        "CREATE LIVE TABLE t TRIGGER AVAILABLE NOW AS SELECT word, count(*) AS c FROM words GROUP BY word;"
    )
    console.run(WORDS + f"INSERT INTO words VALUES ('a', 1); {create} AWAIT QUERY t; {again}")
    before = sockets()
    console.run(again * 10)
    eventually(lambda: sockets() <= before + 2, 20)


def test_a_description_has_no_names_of_sparks_classes(console: Console) -> None:
    console.run(
        WORDS
        + """CREATE LIVE TABLE t AS SELECT word, count(*) AS c FROM words GROUP BY word;
        INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY t IDLE;"""
    )
    described = dict(console.rows("DESCRIBE QUERY t;"))
    assert described["from words"] == "2 rows in batch 0, up to file batch 0"
    assert re.fullmatch(r"2 rows, [\d.,]+ (bytes|KiB)", described["state of groups"])
    took = described["durations"]
    assert re.match(r"[\d,]+ ms: look for input \d+ ms, .*compute and write [\d,]+ ms", took)
    assert not re.search("[a-z][A-Z]", took)  # such as addBatch


def test_await_tells_the_next_trigger(console: Console, eventually: Callable[..., None]) -> None:
    console.run(
        WORDS
        + """INSERT INTO words VALUES ('a', 1);
        CREATE LIVE TABLE t TRIGGER EVERY INTERVAL 1 HOUR AS SELECT n FROM words;"""
    )
    eventually(lambda: console.rows("SELECT count(*) FROM t;") == [(1,)])
    cancel = CancelToken()
    engine, now = console.session.parts.engine, time.time()
    waiting = threading.Thread(target=lambda: pytest.raises(Cancelled, console.run, "AWAIT QUERY t;", cancel))
    waiting.start()
    eventually(lambda: "next trigger" in engine.doing)
    said = engine.doing
    cancel.cancel()
    waiting.join()
    hours = [datetime.fromtimestamp((t // 3600 + 1) * 3600) for t in (now, time.time())]
    assert said in [
        f"waiting for t to end: batch 0 done, 1 row in, next trigger at {at:%H:%M:%S}" for at in hours
    ]


@pytest.mark.slow
def test_an_idle_query_asks_for_rows_less_often_until_there_are_some(
    console: Console, spark: Any, eventually: Callable[..., None]
) -> None:
    def delay() -> int:
        (query,) = spark._jsparkSession.streams().active()
        return int(query.streamingQuery().pollingDelayMs())

    console.run("SET spark.sql.streaming.noDataProgressEventInterval = 50;")
    console.run(WORDS + "CREATE LIVE TABLE t AS SELECT n FROM words;")
    own = delay()
    eventually(lambda: delay() == 100)
    console.run("SET spark.sql.streaming.noDataProgressEventInterval = 1h;")
    console.run("STOP QUERY t; START QUERY t;")
    assert delay() == own < 100
    console.run("STOP QUERY t; SET spark.sql.streaming.noDataProgressEventInterval = 1s; START QUERY t;")
    eventually(lambda: delay() == 100)

    def delay_after_rows() -> int:
        console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY t IDLE;")
        return delay()

    eventually(lambda: delay_after_rows() == own)


def test_a_file_sink_gets_each_row_once_over_a_restart(console: Console, tmp_path: Path) -> None:
    out = tmp_path / "out"
    console.run(
        WORDS + f"CREATE SINK out USING json OPTIONS (path '{out}'); INSERT INTO out SELECT n FROM words;"
    )
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY out IDLE; STOP QUERY ALL;")
    console.run("INSERT INTO words VALUES ('a', 2); START QUERY ALL; AWAIT QUERY ALL IDLE;")
    rows = [json.loads(line)["n"] for p in out.glob("*.json") for line in p.read_text().splitlines()]
    assert sorted(rows) == [1, 2]


def test_a_failed_query_takes_no_other_with_it_and_says_why(console: Console) -> None:
    console.run(WORDS + "CREATE LIVE TABLE good AS SELECT n FROM words;")
    console.run("CREATE LIVE TABLE bad AS SELECT CAST(word AS INT) AS w FROM words;")
    console.run("INSERT INTO words VALUES ('x', 1);")
    with pytest.raises(QueryFault, match="query bad failed: the value 'x'"):
        console.run("AWAIT QUERY bad;")
    with pytest.raises(QueryFault) as again:  # the same failure is told once
        console.run("AWAIT QUERY bad;")
    assert re.fullmatch(r"query bad failed at \d\d:\d\d:\d\d", again.value.message)
    assert (again.value.code, again.value.exit_code) == ("CAST_INVALID_INPUT", 5)
    assert again.value.hint == "DESCRIBE QUERY bad; shows why, START QUERY bad; resumes it"
    console.run("INSERT INTO words VALUES ('1', 2); AWAIT QUERY good IDLE;")
    assert console.rows("SELECT * FROM good;") == [(1,), (2,)]
    assert status(console, "good")["status"] == "running"
    failed = status(console, "bad")
    assert failed["status"] == "FAILED"
    assert "the value 'x'" in failed["last error"]
    described = dict(console.rows("DESCRIBE QUERY bad;"))
    assert described["status"] == "FAILED"
    assert "try_cast" in described["detail"]


def test_describe_query_has_the_error_of_a_query_that_has_just_failed(console: Console) -> None:
    console.run(WORDS + "CREATE LIVE TABLE bad AS SELECT CAST(word AS INT) AS w FROM words;")
    running = console.session.parts.queries.all["bad"]
    console.run("INSERT INTO words VALUES ('x', 1);")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        running.handle.awaitTermination(60)
    with running.lock:  # nobody has taken note of it yet
        running.fault = running.ended = None
    described = dict(console.rows("DESCRIBE QUERY bad;"))
    assert described["status"] == "FAILED"
    assert "the value 'x'" in described["error"]


def test_show_queries_tells_rows_watermark_and_state(console: Console) -> None:
    console.run(
        """CREATE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY '10 minutes';
        CREATE LIVE TABLE t AS SELECT window.start AS s, count(*) AS c FROM w GROUP BY window(at, '5 minutes');
        INSERT INTO w VALUES ('2024-05-01 12:00:00'), ('2024-05-01 12:30:00'); AWAIT QUERY t IDLE;"""
    )
    shown = status(console, "t")
    assert shown["rows in"] == 2
    assert shown["watermark"] == "2024-05-01 12:20:00"
    assert shown["state rows"] == 1  # the window at 12:00 was closed by the watermark
    assert shown["lag"] == ""
    assert re.fullmatch(
        r"event times are [\d,]+ days behind the clock, as when old data is replayed",
        dict(console.rows("DESCRIBE QUERY t;"))["lag"],
    )
    progress = console.run("SHOW PROGRESS t LAST 1;")[0]
    assert isinstance(progress, Rows)
    assert len(progress.rows) == 1


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("hours", "lag", "described"),
    [
        (-3, r"3 h", r"3 h"),
        (-30, "", r"event times are 30 h behind the clock, as when old data is replayed"),
        (5, "", r"event times are 5 h ahead of the clock, as in another time zone"),
    ],
)
def test_a_lag_is_shown_where_event_times_follow_the_clock(
    console: Console, hours: int, lag: str, described: str
) -> None:
    console.run(
        f"""CREATE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY '0 seconds';
        CREATE LIVE TABLE t AS SELECT window.start AS s, count(*) AS c FROM w GROUP BY window(at, '5 minutes');
        INSERT INTO w SELECT now() + INTERVAL {hours} HOURS; AWAIT QUERY t IDLE;"""
    )
    assert status(console, "t")["lag"] == lag
    assert dict(console.rows("DESCRIBE QUERY t;")).get("lag", "") == described
    console.run("STOP QUERY t;")
    assert "lag" not in dict(console.rows("DESCRIBE QUERY t;"))


def test_append_says_why_nothing_comes_out(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY '10 minutes';
        CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT window.start AS s, count(*) AS c FROM w GROUP BY window(at, '5 minutes');
        INSERT INTO w VALUES ('2024-05-01 12:00:00');"""
    )
    done = console.run("AWAIT QUERY out IDLE;")[0]
    assert notes_of(done) == (
        "out: 1 row read, none written, 1 held back in state: 1 group is still open: the next window, which ends "
        "at 2024-05-01 12:05:00, closes when w receives an event of 2024-05-01 12:15:00 or later; resolve it with: ADVANCE STREAM w TO "
        "TIMESTAMP '2024-05-01 12:15:00';",
    )


def test_the_mode_is_chosen_and_the_reason_said(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY '10 minutes';
        CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');"""
    )
    started = console.run(
        "INSERT INTO out SELECT k, window.start AS s, count(*) AS c FROM w GROUP BY window(at, '5 minutes'), k;"
    )[0]
    assert isinstance(started, Started)
    assert notes_of(started) == (
        "append mode emits a window once it is closed: the window from 12:00 to 12:05, for example, when an event of "
        "12:15 or later arrives; CREATE LIVE TABLE name OUTPUT MODE UPDATE AS … shows open windows, too",
        "output mode append: the watermark closes the groups",
    )


def test_await_with_a_time_limit(console: Console) -> None:
    console.run("CREATE STREAM r USING rate; CREATE LIVE TABLE t AS SELECT value FROM r;")
    with pytest.raises(TimeFault, match="the query t is still running"):
        console.run("AWAIT QUERY t TIMEOUT INTERVAL 1 SECOND;")
    with pytest.raises(TimeFault, match="the query t is still running"):
        console.run("AWAIT QUERY t TIMEOUT INTERVAL 0.5 MILLISECONDS;")
    assert status(console, "t")["status"] == "running"


def test_drop_query_removes_definition_and_checkpoint(console: Console) -> None:
    console.run(WORDS + "CREATE SINK n USING noop; INSERT INTO n SELECT * FROM words;")
    folder = Path(console.session.parts.places.checkpoint("n"))
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY n IDLE;")
    assert folder.is_dir()
    console.run("DROP QUERY n;")
    assert not folder.exists()
    assert console.rows("SHOW QUERIES;") == []
    done = console.run("DROP QUERY IF EXISTS n;")[0]
    assert isinstance(done, Done)


def test_a_query_can_be_given_up_and_made_anew_under_its_name(console: Console) -> None:
    console.run(WORDS + "CREATE SINK m USING memory; INSERT INTO m SELECT n FROM words;")
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY m IDLE; DROP QUERY m;")
    console.run("INSERT INTO m SELECT word FROM words; AWAIT QUERY m IDLE;")
    assert console.rows("SELECT * FROM m;") == [("a",)]


def test_names_may_hold_anything(console: Console) -> None:
    console.run(
        """CREATE STREAM `../a b` (n INT) USING values;
        CREATE LIVE TABLE `x/../y` AS SELECT n FROM `../a b`;
        INSERT INTO `../a b` VALUES (1); AWAIT QUERY `x/../y` IDLE;"""
    )
    assert console.rows("SELECT * FROM `x/../y`;") == [(1,)]
    folder = Path(console.session.parts.places.folder)
    assert all(folder in p.parents for p in folder.rglob("*"))


@pytest.mark.parametrize(
    ("made", "show"),
    [
        (
            "CREATE SINK n USING noop; INSERT INTO n AS QUERY q TRIGGER EVERY INTERVAL 1 SECOND SELECT n FROM words;",
            "DESCRIBE QUERY q;",
        ),
    ],
)
def test_describe_query_gives_the_statement_back(console: Console, made: str, show: str) -> None:
    console.run(WORDS + made)
    described = dict(console.rows(show))
    assert (
        described["statement"]
        == "INSERT INTO n\n  AS QUERY q\n  TRIGGER EVERY '1 second'\n  SELECT n FROM words;"
    )


def test_show_create_live_table(console: Console) -> None:
    console.run(
        WORDS + "CREATE LIVE TABLE t OUTPUT MODE UPDATE KEY (word) RETAIN 5 ROWS AS SELECT * FROM words;"
    )
    shown = console.run("SHOW CREATE LIVE TABLE t;")[0]
    assert isinstance(shown, Text)
    text = shown.text
    console.run("DROP LIVE TABLE t;")
    console.run(text)
    assert console.run("SHOW CREATE LIVE TABLE t;")[0] == shown


def test_one_trouble_leaves_the_session_as_it_was(console: Console) -> None:
    console.run(WORDS)
    before = console.session.catalog
    for bad in (
        "CREATE STREAM words USING rate;",
        "CREATE LIVE TABLE t AS SELECT nope FROM words;",
        "CREATE SINK s USING csv;",
    ):
        with pytest.raises(StreamsqlError):
            console.run(bad)
    assert console.session.catalog == before


def test_a_query_waits_for_data_only_after_it_has_looked_for_some() -> None:
    class Begun:
        over = is_refresh = False
        reports = Reports()

    assert waiting_for(Begun(), Any) == "first micro-batch"  # type: ignore[arg-type]
    Begun.reports.add({"numInputRows": 0})
    assert waiting_for(Begun(), Any) == "data"  # type: ignore[arg-type]


def test_a_query_is_not_started_again_without_its_table(console: Console) -> None:
    console.run(
        WORDS
        + "CREATE TABLE written (word STRING, n INT); INSERT INTO written AS QUERY q SELECT * FROM words;"
    )
    console.run("STOP QUERY ALL; DROP TABLE written;")
    for start in ("START QUERY q;", "START QUERY ALL;"):
        with pytest.raises(StreamsqlError) as caught:
            console.run(start)
        assert caught.value.message == "the query q writes into the table written, which does not exist"
        assert caught.value.hint == "CREATE TABLE written (…) first, or DROP QUERY q;"
    console.run("CREATE TABLE written (word STRING, n INT); START QUERY q; STOP QUERY q;")
