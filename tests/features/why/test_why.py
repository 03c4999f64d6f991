"""WHY: a situation for each letter, with a real pipeline; the proposed statement, typed, ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from data_files import put_whole
from test_reopened import Open, opened  # noqa: F401
from why_answers import resolved, texts, why

from streamsql.errors import NameFault, QueryFault, RuleFault
from streamsql.output.live_frames import View, frame
from streamsql.results import Live

ROOMS = ("streamsql/features/why/", "streamsql/runtime/")

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"
FIVE = "SELECT window.end AS until, count(*) AS n FROM {} GROUP BY window(at, '5 minutes')"


def test_f_a_window_over_two_streams_closes_once_both_have_moved_on(console: Console) -> None:
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM v (k STRING, at TIMESTAMP) USING values {WATERMARK.replace("10", "20")};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS
        {FIVE.format("(SELECT at FROM w UNION ALL SELECT at FROM v)")};
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00'); INSERT INTO v VALUES ('b', '2024-05-01 12:02:00');
        AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == (
        "1 group is still open: the next window, which ends at 2024-05-01 12:05:00, closes when w receives an "
        "event of 2024-05-01 12:15:00 or later, and v receives an event of 2024-05-01 12:25:00 or later"
    )
    assert (facts["missing event time of w"], facts["missing event time of v"]) == (
        "14 minutes",
        "23 minutes",
    )
    console.run("INSERT INTO w VALUES ('a', '2024-05-01 12:15:00'); AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == []
    shown, _ = why(console, "QUERY t")
    assert shown.code == "WATERMARK_HELD" and "v has no event newer than 2024-05-01 12:02:00" in shown.verdict
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:05:00", "2")]


def test_f_a_window_over_a_join_waits_for_the_range_of_the_join(console: Console) -> None:
    """Spark holds the watermark of what follows a join back by its time range: no event time is promised."""
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM v (k STRING, paid TIMESTAMP) USING values {WATERMARK.replace("at", "paid")};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT window.end AS until, count(*) AS n
        FROM w LEFT JOIN v ON w.k = v.k AND v.paid BETWEEN w.at AND w.at + INTERVAL 15 MINUTES
        GROUP BY window(at, '5 minutes');
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00'); INSERT INTO v VALUES ('a', '2024-05-01 12:02:00');
        AWAIT QUERY t IDLE;
        ADVANCE STREAM w TO TIMESTAMP '2024-05-01 12:16:00'; ADVANCE STREAM v TO TIMESTAMP '2024-05-01 12:16:00';
        AWAIT QUERY t IDLE;"""
    )
    assert console.rows("SELECT * FROM t;") == [], "the watermark is 12:06:00"
    shown, facts = why(console, "QUERY t")
    assert shown.code == "WINDOW_NOT_CLOSED"
    assert facts["newest event time of v"] == "2024-05-01 12:02:00, delay 10 minutes"
    assert shown.verdict == (
        "1 group is still open: the next window, which ends at 2024-05-01 12:05:00, is emitted once the watermark, "
        "less the time range of the join, has passed its end"
    )
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:05:00", "1")]


def test_f_a_window_that_is_not_closed(console: Console, eventually: Callable[..., None]) -> None:
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS {FIVE.format("w")};
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00'), ('b', '2024-05-01 12:07:00');
        AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "WINDOW_NOT_CLOSED"
    assert shown.verdict == (
        "2 groups are still open: the next window, which ends at 2024-05-01 12:05:00, closes when w receives an "
        "event of 2024-05-01 12:15:00 or later"
    )
    assert facts["missing event time"] == "8 minutes"
    waiting = {r[0]: r[12] for r in console.rows("SHOW QUERIES;")}
    assert waiting == {"t": "window to close"}
    live = console.run("WATCH t;")[0]  # shows the verdict in place of an empty table
    assert isinstance(live, Live)

    def picture() -> str:
        return "\n".join(frame(live, View(width=200)).lines)

    eventually(lambda: "closes when w receives an event of 2024-05-01 12:15:00 or later" in picture())
    assert "next window to close: ends at 2024-05-01 12:05:00" in picture()
    assert picture().rstrip().endswith("resolve it with:\n" + shown.proposal)
    assert live.proposal() == shown.proposal == "ADVANCE STREAM w TO TIMESTAMP '2024-05-01 12:15:00';"
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:05:00", "1")]
    assert "2024-05-01 12:05:00" in picture() and "closes when" not in picture()
    live.close()
    shown, facts = why(console, "LIVE TABLE t")  # (p)
    assert shown.code == "WINDOW_NOT_CLOSED"  # of the second window
    assert shown.verdict.startswith(
        "1 group is still open: the next window, which ends at 2024-05-01 12:10:00"
    )
    assert "; 1 row came out, the last " in shown.verdict
    assert (facts["rows in"], facts["rows out"]) == (2, 1)  # ADVANCE is no row


@pytest.mark.slow
def test_f_windows_of_windows(console: Console, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("2024-05-01 12:01:00\n")
    console.run(
        f"""CREATE STREAM w (at TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/*.csv') {WATERMARK};
        CREATE LIVE TABLE t AS SELECT window(window_time(w), '1 hour').end AS until, sum(n) AS n
          FROM (SELECT window AS w, count(*) AS n FROM w GROUP BY window(at, '5 minutes'))
          GROUP BY window(window_time(w), '1 hour');
        AWAIT QUERY t IDLE;"""
    )
    # Output mode update does not support it.
    shown, _ = why(console, "QUERY t")
    assert (shown.code, shown.proposal) == ("WINDOW_NOT_CLOSED", "FLUSH QUERY t;")
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 13:00:00", "1")]


def test_a_no_data(console: Console, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("k,1\n")
    (folder / "_b.csv").write_text("k,2\n")
    console.run(
        f"""CREATE STREAM s (k STRING, n INT) USING csv OPTIONS (path '{folder}', pathGlobFilter '*.csv');
        CREATE LIVE TABLE t AS SELECT k, n FROM s; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "NO_DATA"
    assert shown.verdict == (
        f"no data: the folder {folder} has no file that s reads; 1 file there is hidden, or still being written "
        "(names with _ or . in front)"
    )
    assert facts["files not read: not matched by pathGlobFilter"] == "1, such as a.txt"
    assert why(console, "STREAM s")[0].code == "NO_DATA"
    assert [r[12] for r in console.rows("SHOW QUERIES;")] == ["data"]
    assert resolved(console, shown, "t") == [("k", 1)]


def test_a_nothing_was_inserted(console: Console) -> None:
    console.run("CREATE STREAM s (k STRING, n INT) USING values; CREATE LIVE TABLE t AS SELECT * FROM s;")
    shown, _ = why(console)
    assert (shown.code, shown.verdict) == ("NO_DATA", "no data: nothing was inserted into s yet")
    assert resolved(console, shown, "t") == [("a", 1)]


@pytest.mark.slow
def test_a_kafka_begins_with_the_latest(console: Console, kafka: Broker) -> None:
    topic, other = kafka.topic("one", "two"), kafka.topic('{"name": "a"}')
    console.run(
        f"""CREATE STREAM s USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}',
        startingOffsets 'latest'); CREATE LIVE TABLE t AS SELECT value FROM s;
        CREATE STREAM j (k STRING) USING kafka FORMAT json OPTIONS (servers '{kafka.servers}', topic '{other}');
        CREATE LIVE TABLE u AS SELECT k FROM j WHERE k > ''; AWAIT QUERY ALL IDLE;"""
    )
    shown, _ = why(console, "QUERY u")  # (c)
    assert (
        shown.verdict == "all columns of j are NULL in its only row: its data has other columns than declared"
    )
    [preview] = console.run(shown.proposal)
    assert preview.columns[0] == "name"  # type: ignore[union-attr]
    shown, facts = why(console, "QUERY t")
    assert shown.code == "NO_DATA"
    assert shown.verdict == (
        f"no data: s begins with the latest message of {topic}, and none has come since; 2 older messages there "
        "are not read"
    )
    assert facts["messages there"] == 2
    assert resolved(console, shown, "t") == [("one",), ("two",)]


@pytest.mark.slow
def test_g_one_input_holds_the_watermark(console: Console) -> None:
    console.run(
        f"""CREATE STREAM a (id INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM b (id INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS
          {FIVE.format("(SELECT * FROM a UNION ALL SELECT * FROM b)")};
        INSERT INTO a VALUES (1, '2024-05-01 12:00:00'), (2, '2024-05-01 13:00:00');
        INSERT INTO b VALUES (1, '2024-05-01 12:01:00'); AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "WATERMARK_HELD"
    assert shown.verdict == (
        "the watermark stands at 2024-05-01 11:51:00: b has no event newer than 2024-05-01 12:01:00, and the "
        "smallest watermark of all inputs counts"
    )
    assert facts["b is behind"] == "59 minutes"
    # Two situations hold: the one farther from the source is told in a fact.
    assert str(facts["also"]).startswith("2 groups are still open: the next window, which ends at ")
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:05:00", "2")]


@pytest.mark.slow
def test_g_an_input_without_events_holds_the_watermark(console: Console, tmp_path: Path) -> None:
    for name, text in {"a": "1,2024-05-01 12:00:00\n2,2024-05-01 13:00:00\n", "b": ""}.items():
        (tmp_path / name).mkdir()
        put_whole(tmp_path / name / "a.csv", text)
        console.run(
            f"CREATE STREAM {name} (id INT, at TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/{name}') {WATERMARK};"
        )
    union = FIVE.format("(SELECT * FROM a UNION ALL SELECT * FROM b)")
    console.run(f"CREATE LIVE TABLE t OUTPUT MODE APPEND AS {union}; AWAIT QUERY t IDLE;")
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == (
        "there is no watermark yet: b has no event time, and the smallest watermark of all inputs counts"
    )
    assert facts["newest event time of b"] == "none, delay 10 minutes"
    assert facts["watermark unchanged since"].startswith("micro-batch 0, 20")
    assert {r[0]: r[12] for r in console.rows("SHOW QUERIES;")} == {"t": "watermark of b"}
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:05:00", "1")]


@pytest.mark.slow
def test_j_what_waits_in_state(console: Console) -> None:
    console.run(
        f"""CREATE STREAM a (id STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE s AS SELECT id, session_window.end AS until, count(*) AS n
          FROM a GROUP BY id, session_window(at, '5 minutes');
        CREATE STREAM b (id STRING, bt TIMESTAMP) USING values WITH WATERMARK bt DELAY OF INTERVAL 10 MINUTES;
        CREATE LIVE TABLE o AS SELECT a.id, bt FROM a LEFT JOIN b
          ON a.id = b.id AND bt BETWEEN at AND at + INTERVAL 1 HOUR;
        INSERT INTO a VALUES ('x', '2024-05-01 12:00:00'); INSERT INTO b VALUES ('y', '2024-05-01 12:00:00');
        AWAIT QUERY ALL IDLE;"""
    )
    shown, facts = why(console, "QUERY o")
    assert (shown.code, facts["kept for a partner"]) == ("STATE_WAITS", 2)
    session, facts = why(console, "QUERY s")
    assert session.code == "SESSION_OPEN"
    assert facts["needed event time"] == "2024-05-01 12:15:00 (session end + delay 10 minutes)"
    assert resolved(console, shown, "o") == [("x", None)]
    assert shown.proposal == "FLUSH QUERY o;"
    console.run(session.proposal)
    assert texts(console.rows("AWAIT QUERY s IDLE; SELECT id, n FROM s WHERE id = 'x';")) == [("x", "1")]


@pytest.mark.slow
def test_j_k_a_deduplication(console: Console) -> None:
    console.run(
        """CREATE STREAM s (k STRING, at TIMESTAMP) USING values;
        CREATE LIVE TABLE t AS SELECT DISTINCT ON (k) k FROM s; CREATE LIVE TABLE d AS SELECT DISTINCT k FROM s;
        INSERT INTO s VALUES ('a', '2024-05-01 12:00:00'); INSERT INTO s VALUES ('b', '2024-05-01 12:00:00');
        INSERT INTO s VALUES ('c', '2024-05-01 12:00:00'); AWAIT QUERY ALL IDLE;"""
    )
    groups, _ = why(console, "QUERY d")
    assert (groups.code, "DISTINCT ON (k) WITHIN WATERMARK k" in groups.proposal) == ("STATE_GROWS", True)
    console.run("STOP QUERY d;")
    shown, facts = why(console, "QUERY t")
    assert shown.code == "STATE_GROWS"
    assert shown.verdict == (
        "the state grows without bound: 3 rows, 1 more in each micro-batch, and no watermark ever removes one"
    )
    assert "WITHIN WATERMARK" in shown.proposal
    console.run("INSERT INTO s VALUES ('a', now()); AWAIT QUERY t IDLE;")
    seen, facts = why(console, "QUERY t")
    assert seen.code == "ALL_SEEN_BEFORE"
    assert (facts["rows in"], facts["rows out"], facts["keys in state"]) == (4, 3, 3)
    assert resolved(console, shown, "t") == [("a",), ("b",), ("c",)]
    assert why(console, "QUERY t")[0].code == "NOTHING_WRONG"
    assert resolved(console, groups, "d") == [("a",), ("b",), ("c",)]


def test_l_changed_since_another_console_ran_it(opened: Open) -> None:  # noqa: F811
    opened().run(
        """CREATE STREAM s (k STRING) USING values; CREATE LIVE TABLE t AS SELECT k FROM s;
        INSERT INTO s VALUES ('1'); AWAIT QUERY t IDLE; STOP QUERY t;"""
    )
    again = opened()
    assert again.run("WHY QUERY t;")[0].proposal == "START QUERY t;"
    again.run("CREATE OR REPLACE STREAM s (more INT, k STRING) USING values;")
    shown = again.run("WHY QUERY t;")[0]
    assert ("changed", "columns of s: more INT added") in shown.rows
    again.run(shown.proposal)
    again.run("INSERT INTO s VALUES (2, '2'); AWAIT QUERY t IDLE;")
    assert again.rows("SELECT * FROM t;") == [("2",)]


def test_l_stopped_and_changed_since(console: Console) -> None:
    console.run(
        """CREATE STREAM s (k STRING) USING values; CREATE LIVE TABLE t AS SELECT k FROM s;
        INSERT INTO s VALUES ('1'); AWAIT QUERY t IDLE; STOP QUERY t;
        CREATE OR REPLACE STREAM s (more INT, k STRING) USING values;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == "t is stopped, and has changed since its checkpoint was created"
    assert facts["changed"] == "columns of s: more INT added"
    with pytest.raises(RuleFault, match="has changed since its checkpoint"):
        console.run("START QUERY t;")
    assert resolved(console, shown, "t") == []
    assert why(console, "QUERY t")[0].code == "NO_DATA"


@pytest.mark.slow
def test_l_m_stopped_failed_and_read_before(console: Console) -> None:
    console.run(
        """CREATE STREAM s (k STRING) USING values; CREATE LIVE TABLE t AS SELECT CAST(k AS INT) AS n FROM s;
        INSERT INTO s VALUES ('1'); AWAIT QUERY t IDLE; STOP QUERY t;"""
    )
    shown, _ = why(console, "QUERY t")
    assert (shown.code, shown.verdict) == (
        "NOT_RUNNING",
        "t is stopped: it reads nothing until it is started",
    )
    assert resolved(console, shown, "t") == [(1,)]
    shown, facts = why(console)
    assert shown.code == "ALL_READ_BEFORE"
    assert shown.verdict == (
        "nothing new: all that the source has was read before this start, 1 row in 1 micro-batch"
    )
    assert resolved(console, shown, "t") == [(1,)]
    console.run("INSERT INTO s VALUES ('x');")
    with pytest.raises(QueryFault):
        console.run("AWAIT QUERY t;")
    shown, facts = why(console, "QUERY t")
    assert shown.code == "NOT_RUNNING"
    assert "the value 'x'" in shown.verdict and "try_cast" in facts["detail"]
    assert shown.proposal == "SET spark.sql.ansi.enabled = false;\nSTART QUERY t;"
    assert resolved(console, shown, "t") == [(None,), (1,)]
    console.run("STOP QUERY t; START QUERY t FROM NOW; AWAIT QUERY t IDLE;")
    shown, facts = why(console, "QUERY t")
    assert (shown.code, facts["rows read under the checkpoint before"]) == ("OLDER_CHECKPOINT", 2)
    assert shown.verdict == (
        "the checkpoint of t is new, FROM NOW, and no input has come since it began: 2 rows were read under the checkpoint before it"
    )
    assert resolved(console, shown, "t") == [(None,), (1,)]


def test_l_waits_for_its_restart(console: Console, tmp_path: Path, eventually: Callable[..., None]) -> None:
    (tmp_path / "breaking.py").write_text(
        "import pathlib\ndef write(batch, batch_id):\n"
        f"    if not pathlib.Path('{tmp_path}/works').exists():\n        raise OSError('no network')\n"
        "    batch.collect()\n"
    )
    console.run(
        f"""CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1);
        CREATE SINK o USING foreach_batch OPTIONS (function 'breaking.write', folder '{tmp_path}');
        INSERT INTO o AS QUERY q RESTART 3 TIMES EVERY INTERVAL 1 HOUR SELECT n FROM s;"""
    )
    eventually(lambda: console.session.parts.queries.all["q"].status() == "restarting")
    shown, facts = why(console, "QUERY q")
    assert shown.code == "NOT_RUNNING"
    assert shown.verdict.startswith("q failed and waits for its restart: it restarts at ")
    assert shown.verdict.endswith("(attempt 1 of 3)")
    assert "no network" in f"{facts['error']} {facts.get('detail')}"
    (tmp_path / "works").touch()
    console.run(f"{shown.proposal} AWAIT QUERY q IDLE;")
    shown, facts = why(console, "QUERY q")
    assert shown.verdict == (
        "nothing that WHY examines is wrong: 1 row was read, and o does not tell how many came out"
    )


def test_without_a_query(console: Console) -> None:
    with pytest.raises(NameFault, match="there is no query yet"):
        console.run("WHY;")
    console.run("CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1), (2);")
    shown, facts = why(console, "STREAM s")
    assert shown.verdict == "nothing is wrong with s: it has 2 rows now"
    assert facts["read by"] == "no query that runs"
