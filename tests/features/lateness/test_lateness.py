"""SHOW LATENESS OF STREAM: the distribution of a known input, and the advice on the delay of its watermark."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from test_advance import refusal

from streamsql.errors import InputFault, RuleFault
from streamsql.results import Rows
from streamsql.runtime.evidence.event_times import event_times
from streamsql.runtime.queries.progress_reports import counted_once

ROOMS = (
    "streamsql/features/lateness/",
    "streamsql/runtime/",
)


def shown(console: Console, more: str = "") -> tuple[Rows, dict[str, Any]]:
    result = console.run(f"SHOW LATENESS OF STREAM w{more};")[-1]
    assert isinstance(result, Rows)
    return result, {row[0]: row[1] for row in result.rows}


@pytest.mark.slow
def test_lateness_of_known_rows(console: Console) -> None:
    console.run(
        """CREATE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
        CREATE LIVE TABLE t AS SELECT at FROM w;
        INSERT INTO w VALUES ('2024-05-01 12:00:00');
        AWAIT QUERY t IDLE;"""
    )
    assert shown(console)[1]["lateness"] == "not known before the second micro-batch with rows"
    # Against 12:00: one row is newer, one 1 s late, one has no time. Against 13:00: 10 and 61 minutes late.
    console.run(
        """INSERT INTO w VALUES ('2024-05-01 13:00:00'), ('2024-05-01 11:59:59'), (NULL);
        INSERT INTO w VALUES ('2024-05-01 12:50:00'), ('2024-05-01 11:59:00');
        ADVANCE STREAM w TO TIMESTAMP '2024-05-01 14:00:00';
        AWAIT QUERY t IDLE;"""
    )
    result, facts = shown(console)
    assert facts == {
        "rows": "6 in 3 micro-batches of t",
        "event time NULL": 1,
        "oldest event time": "2024-05-01 11:59:00",
        "newest event time": "2024-05-01 13:00:00",
        "delay now": "10 minutes",
        "rows compared with earlier ones": 4,
        "late by the delay or more": "2 (50.00%)",
        "half of the rows are late by at most": "1 second",
        "delay that keeps 99 %": "INTERVAL 62 MINUTES",
        "delay that keeps 99.9 %": "INTERVAL 62 MINUTES",
        "delay that keeps 100 %": "INTERVAL 62 MINUTES",
    }
    assert notes_of(result) == (
        "2 rows came 10 minutes late or more, and may be dropped; WITH WATERMARK at DELAY OF INTERVAL 62 MINUTES "
        "keeps 99.9 %",
    )
    result, _ = shown(console, " AS CHART")
    assert [(row[0], row[1], len(row[3])) for row in result.rows if row[1]] == [
        ("on time", 1, 20),
        ("up to 1 s", 1, 20),
        ("up to 10 min", 1, 20),
        ("up to 1 day", 1, 20),
    ]
    console.run(
        """CREATE STREAM w2 (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 HOUR;
        CREATE LIVE TABLE t2 AS SELECT at FROM w2;
        INSERT INTO w2 VALUES ('2024-05-01 12:00:00'); INSERT INTO w2 VALUES ('2024-05-01 11:59:50');
        AWAIT QUERY t2 IDLE;"""
    )
    [note] = notes_of(console.run("SHOW LATENESS OF STREAM w2;")[-1])
    assert note.startswith("the latest row came 10 seconds late, and windows wait for the delay, 1 hour")


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("unread", "no query has read the stream unread"),
        ("plain", "the lateness of plain is not known: it has no watermark"),
    ],
)
def test_what_cannot_be_measured_is_refused(stream: str, said: str) -> None:
    fault = refusal(
        f"""CREATE STREAM unread (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 HOUR;
        CREATE STREAM plain (at TIMESTAMP) USING values;
        SHOW LATENESS OF STREAM {stream};"""
    )
    assert isinstance(fault, RuleFault)
    assert said in fault.message


def test_lateness_of_a_source_that_cannot_be_read_again(
    console: Console, eventually: Callable[..., None]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as connections:
        console.run(
            f"""CREATE STREAM w USING socket OPTIONS (host '127.0.0.1', port {server.getsockname()[1]})
            WITH WATERMARK to_timestamp(value) AS at DELAY OF INTERVAL 10 MINUTES;"""
        )
        with pytest.raises(InputFault, match="no query has read rows of w yet"):
            console.run("SHOW LATENESS OF STREAM w;")
        console.run("CREATE LIVE TABLE t AS SELECT at FROM w;")
        server.setblocking(False)
        there: list[socket.socket] = []  # one is that of the check before the start

        def sent(line: str, seen: int, done: set[socket.socket]) -> bool:
            with contextlib.suppress(BlockingIOError):
                there.append(connections.enter_context(server.accept()[0]))
            for each in set(there) - done:
                done.add(each)
                with contextlib.suppress(OSError):
                    each.sendall(line.encode())
            return len(console.rows("SELECT * FROM t;")) == seen

        for number, minute in enumerate(("12:00", "13:00", "13:10", "12:59"), 1):
            eventually(partial(sent, f"2024-05-01 {minute}:00\n", number, set[socket.socket]()))
        result, facts = shown(console)
        assert (facts["rows"], facts["late by the delay or more"]) == (
            "4 in 4 micro-batches of t",
            "1 (33.33%)",
        )
        assert facts["delay that keeps 99 %"] == "INTERVAL 12 MINUTES"
        assert notes_of(result)[0] == (
            "a socket source cannot be read again: all rows of a micro-batch count as late as its latest"
        )
        result, _ = shown(console, " AS CHART")
        assert [(row[0], row[1]) for row in result.rows if row[1]] == [("on time", 2), ("up to 1 h", 1)]
        assert dict(console.rows("DESCRIBE STREAM w;"))["event times in t"] == (
            "4 rows in 4 micro-batches: 2024-05-01 12:00:00 to 2024-05-01 13:10:00, late by at most 11 minutes"
        )
        console.run("STOP QUERY t;")


def test_what_share_of_the_rows_came_how_late_by_their_micro_batches() -> None:
    def report(rows: int, oldest: str, newest: str) -> dict[str, Any]:
        times = {"min": f"2024-05-01T{oldest}:00.000Z", "max": f"2024-05-01T{newest}:00.000Z"}
        return {"numInputRows": rows, "sources": [{}], "eventTime": times | {"avg": times["max"]}}

    times = event_times(
        [report(5, "12:00", "12:10"), report(990, "12:09", "12:20"), report(10, "11:20", "12:20")]
    )
    assert times is not None
    assert (times.within(0.99), times.within(0.999)) == (60_000, 3_600_000)
    assert times.text("UTC") == (
        "1,005 rows in 3 micro-batches: 2024-05-01 11:20:00 to 2024-05-01 12:20:00, late by at most 1 hour, "
        "99 % of the rows by at most 1 minute"
    )


def test_rows_of_a_stream_that_a_query_reads_twice_count_once() -> None:
    def rows(*sources: tuple[str, int]) -> int:
        read = [{"description": name, "numInputRows": n} for name, n in sources]
        report = {"numInputRows": sum(n for _, n in sources), "sources": read}
        return int(counted_once(report)["numInputRows"])

    assert rows(("FileStreamSource[a]", 3), ("FileStreamSource[a]", 3), ("FileStreamSource[b]", 2)) == 5
    assert rows(("RateStreamV2[rowsPerSecond=1]", 3), ("RateStreamV2[rowsPerSecond=1]", 3)) == 6


def test_event_times_of_each_stream_of_a_join(console: Console, tmp_path: Path) -> None:
    for name, times in {"a": ("12:00", "12:20", ""), "b": ("12:05",)}.items():
        (tmp_path / name).mkdir()
        lines = (json.dumps({"id": n, f"{name}t": t and f"2024-05-01 {t}:00"}) for n, t in enumerate(times))
        (tmp_path / name / "1.json").write_text("\n".join(lines))
    for name in "ab":
        console.run(
            f"""CREATE STREAM {name} (id INT, {name}t TIMESTAMP) USING json OPTIONS (path '{tmp_path}/{name}')
            WITH WATERMARK {name}t DELAY OF INTERVAL 10 MINUTES;"""
        )
    joined = "SELECT at, bt FROM a JOIN b ON a.id = b.id AND bt BETWEEN at AND at + INTERVAL 1 HOUR"
    console.run(f"CREATE LIVE TABLE t AS {joined}; AWAIT QUERY t IDLE;")
    put_whole(tmp_path / "a" / "2.json", '{"id": 9, "at": "2024-05-01 12:04:00"}')
    console.run("AWAIT QUERY t IDLE;")
    assert dict(console.rows("DESCRIBE STREAM a;"))["event times in t"] == (
        "4 rows in 2 micro-batches: 2024-05-01 12:00:00 to 2024-05-01 12:20:00, NULL in 1, late by at most 16 minutes"
    )
    described = dict(console.rows("DESCRIBE STREAM b;"))
    assert (
        described["event times in t"] == "1 row in 1 micro-batch: 2024-05-01 12:05:00 to 2024-05-01 12:05:00"
    )
    assert "AS newest" in console.run("EXPLAIN PYSPARK QUERY t;")[-1].text
    console.run("SET streamsql.event_times = off;")
    assert "AS newest" not in console.run(f"EXPLAIN PYSPARK {joined};")[-1].text


@pytest.mark.slow
def test_event_times_are_known_from_the_micro_batches_themselves(console: Console) -> None:
    console.run(
        """CREATE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
        CREATE LIVE TABLE t AS SELECT window, count(*) AS n FROM w GROUP BY window(at, '1 minute');
        INSERT INTO w VALUES ('2024-05-01 12:00:00'), ('2024-05-01 12:01:00'), (NULL);
        INSERT INTO w VALUES ('2024-05-01 12:20:00'), ('2024-05-01 11:45:00');
        ADVANCE STREAM w TO TIMESTAMP '2024-05-01 14:00:00';
        AWAIT QUERY t IDLE;"""
    )
    described = dict(console.rows("DESCRIBE STREAM w;"))
    assert described["event times in t"] == (
        "5 rows in 2 micro-batches: 2024-05-01 11:45:00 to 2024-05-01 12:20:00, NULL in about 1, "
        "late by at most 16 minutes"
    )
    started = console.run(
        "CREATE LIVE TABLE u AS SELECT window, count(*) AS n FROM w GROUP BY window(at, '1 minute');"
    )
    [note] = [text for text in notes_of(started[-1]) if "late" in text]
    assert note == (
        "rows of w came up to 16 minutes late, and its delay is 10 minutes: WITH WATERMARK at DELAY OF "
        "INTERVAL 17 MINUTES keeps them all; SHOW LATENESS OF STREAM w; tells how many"
    )
    clause = note.partition("minutes: ")[2].partition(" keeps")[0]
    started = console.run(
        f"""CREATE OR REPLACE STREAM w (at TIMESTAMP) USING values {clause};
        CREATE OR REPLACE LIVE TABLE u AS SELECT window, count(*) AS n FROM w GROUP BY window(at, '1 minute');"""
    )
    assert [text for text in notes_of(started[-1]) if "late" in text] == []
    for second in (10, 20, 5):
        console.run(f"INSERT INTO w VALUES ('2024-05-01 15:00:{second:02}');")
    started = console.run(
        """AWAIT QUERY u IDLE;
        CREATE OR REPLACE STREAM w (at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 DAYS;
        CREATE LIVE TABLE filtered AS SELECT at FROM w;
        CREATE LIVE TABLE v AS SELECT window, count(*) AS n FROM w GROUP BY window(at, '1 minute');"""
    )
    assert [text for text in notes_of(started[-2]) if "late" in text] == []  # it drops no late rows
    [note] = [text for text in notes_of(started[-1]) if "late" in text]
    assert note == (
        "rows of w came at most 16 minutes late, and windows wait for its delay, 10 days: WITH WATERMARK at DELAY OF "
        "INTERVAL 32 MINUTES keeps rows twice as late"
    )
    clause = note.partition(": ")[2].partition(" keeps")[0]
    started = console.run(
        f"""CREATE OR REPLACE STREAM w (at TIMESTAMP) USING values {clause};
        CREATE OR REPLACE LIVE TABLE v AS SELECT window, count(*) AS n FROM w GROUP BY window(at, '1 minute');"""
    )
    assert [text for text in notes_of(started[-1]) if "late" in text] == []
