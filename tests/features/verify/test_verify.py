"""VERIFY: a query's rows are those of its SELECT as a batch, and not when one is taken away, changed or added."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from test_advance import refusal

from streamsql.errors import InputFault, RuleFault
from streamsql.results import Done

ROOMS = ("streamsql/features/verify/", "streamsql/runtime/")

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"


def said(console: Console, text: str) -> str:
    done = console.run(text)[-1]
    assert isinstance(done, Done)
    return done.message


@pytest.mark.slow
def test_rows_of_files_and_live_tables(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE SINK out (n BIGINT, until TIMESTAMP) USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO s VALUES (1, '2024-05-01 12:01:00'), (2, '2024-05-01 12:07:00');
        INSERT INTO out AS QUERY q SELECT count(*), window.end FROM s GROUP BY window(at, '5 minutes');
        CREATE LIVE TABLE t AS SELECT n % 2 AS odd, count(*) AS c FROM s WHERE n < 9 GROUP BY n % 2;
        AWAIT QUERY ALL IDLE;"""
    )
    assert said(console, "VERIFY LIVE TABLE t;").startswith(
        "t is verified: 2 rows, those of its SELECT as a batch"
    )
    with pytest.raises(InputFault) as raised:
        console.run("VERIFY QUERY q;")
    assert raised.value.message == "q has 0 rows, 2 missing and 0 too many against its SELECT as a batch"
    assert "2 of these in groups that are still open: FLUSH QUERY q; emits them" in raised.value.detail
    console.run("FLUSH QUERY q;")
    assert said(console, "VERIFY QUERY q;").startswith("q is verified: 2 rows")
    console.run("INSERT INTO s VALUES (3, '2024-05-01 12:02:00'); AWAIT QUERY ALL IDLE;")
    assert said(console, "VERIFY QUERY t;").startswith("t is verified: 2 rows")
    with pytest.raises(InputFault) as raised:
        console.run("VERIFY QUERY q;")
    assert raised.value.message == "q has 2 rows, 1 missing and 1 too many against its SELECT as a batch"
    assert raised.value.detail == (
        "missing: 2, 2024-05-01 12:05:00\ntoo many: 1, 2024-05-01 12:05:00\n"
        "2 of these by 1 late row: SELECT * FROM LATE ROWS OF QUERY q;"
    )
    # A row that is taken out by hand.
    console.run("STOP QUERY q;")
    for file in (tmp_path / "out").glob("part-*.json"):
        lines = file.read_text().splitlines()
        file.write_text("".join(f"{line}\n" for line in lines if "12:05" in line))
        Path(f"{file.parent}/.{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises(InputFault, match="q has 1 row, 2 missing and 1 too many") as raised:
        console.run("VERIFY QUERY q;")
    assert raised.value.detail.endswith("1 of these for neither reason")
    console.run("STOP QUERY t; START QUERY t FROM NOW; AWAIT QUERY t IDLE; INSERT INTO s VALUES (4, now());")
    assert said(console, "VERIFY QUERY t;").startswith("t is verified: 1 row")


@pytest.mark.slow
def test_messages_of_kafka_from_the_latest_on(console: Console, kafka: Broker) -> None:
    topic = kafka.topic("before")
    console.run(
        f"""CREATE STREAM s USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}',
          startingOffsets 'latest');
        CREATE LIVE TABLE t AS SELECT value, count(*) AS n FROM s GROUP BY value; AWAIT QUERY t IDLE;"""
    )
    kafka.produce(topic, ["a", "b", "a"])
    assert said(console, "AWAIT QUERY t IDLE; VERIFY QUERY t;").startswith("t is verified: 2 rows")
    copies, newest = kafka.topic(), kafka.topic()
    console.run(
        f"""CREATE SINK copies USING kafka OPTIONS (servers '{kafka.servers}', topic '{copies}');
        CREATE SINK newest USING kafka FORMAT csv KEY (value) OPTIONS (servers '{kafka.servers}', topic '{newest}');
        INSERT INTO copies TRIGGER AVAILABLE NOW SELECT value, timestamp(_timestamp) AS at FROM s;
        INSERT INTO newest OUTPUT MODE UPDATE SELECT value, count(*) AS n FROM s GROUP BY value;
        AWAIT QUERY ALL IDLE;"""
    )
    kafka.produce(topic, ["b", "c"])
    assert said(console, "AWAIT QUERY newest IDLE; VERIFY QUERY newest;").startswith(
        "newest is verified: 2 rows"
    )
    assert said(console, "START QUERY copies; AWAIT QUERY copies; VERIFY QUERY copies;").startswith(
        "copies is verified: 2 rows"
    )
    kafka.produce(copies, ['{"value":"by hand"}'])
    with pytest.raises(InputFault, match="copies has 3 rows, 0 missing and 1 too many"):
        console.run("VERIFY QUERY copies;")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("top", "top is computed from live tables, whole, after their micro-batches"),
        ("q", "the rows of q cannot be verified: its rows are discarded"),
        ("firsts", "firsts cannot be verified: its SELECT does not run as a batch of DataFrame calls"),
        ("ticks", "the rows of r cannot be read again: its source is rate"),
        ("calls", "the rows of calls cannot be verified: a Python function receives its rows"),
        ("shown", "the rows of shown cannot be verified: its rows are printed"),
    ],
)
def test_what_cannot_be_verified_is_refused(query: str, message: str) -> None:
    fault = refusal(
        f"""CREATE STREAM s (n INT) USING values; CREATE STREAM r USING rate OPTIONS (rampUpTime '5s'); CREATE SINK out USING noop;
        CREATE LIVE TABLE t AS SELECT n FROM s; CREATE LIVE TABLE top AS SELECT count(*) AS n FROM t;
        CREATE STREAM w (n INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE firsts AS SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM w;
        CREATE LIVE TABLE ticks AS SELECT value FROM r;
        CREATE SINK calls USING foreach_batch OPTIONS (function 'some.module.function');
        CREATE SINK shown USING console; INSERT INTO calls SELECT n FROM s; INSERT INTO shown SELECT n FROM s;
        INSERT INTO out AS QUERY q SELECT n FROM s; VERIFY QUERY {query};"""
    )
    assert fault.message == message


VIEW = """CREATE STREAM s (k STRING, n INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
    CREATE TEMPORARY VIEW big AS SELECT k, n, at FROM s WHERE n > 1;"""
OVER_VIEW = """CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT window.start AS w, k, sum(n) AS total FROM bigger
    GROUP BY window(at, '1 minute'), k;
    INSERT INTO s VALUES ('a', 2, '2024-05-01 12:00:00'), ('b', 3, '2024-05-01 12:10:00'); AWAIT QUERY ALL IDLE;
    INSERT INTO s VALUES ('a', 7, '2024-05-01 12:00:00'), ('b', 3, '2024-05-01 12:20:00'); AWAIT QUERY ALL IDLE;"""


def test_a_view_over_streams_is_read_as_its_query(console: Console) -> None:
    """Its watermark, late rows and batch are known, also through another view."""
    console.run(f"{VIEW} CREATE TEMPORARY VIEW bigger AS SELECT * FROM big; {OVER_VIEW}")
    assert console.rows("SELECT k, n FROM LATE ROWS OF QUERY t;") == [("a", 7)]
    with pytest.raises(InputFault) as raised:
        console.run("VERIFY QUERY t;")
    assert "2 of these by 1 late row" in raised.value.detail
    assert "1 of these in groups that are still open" in raised.value.detail
    console.run("FLUSH QUERY t;")
    assert sorted(console.rows("SELECT k, total FROM t;")) == [("a", 2), ("b", 3), ("b", 3)]
    console.run("CREATE LIVE TABLE u AS SELECT k, sum(n) AS total FROM big GROUP BY k; AWAIT QUERY u IDLE;")
    console.run("VERIFY LIVE TABLE u;")
    graph = console.run("SHOW GRAPH;")[-1].text  # type: ignore[attr-defined]
    assert [line.strip("└├─│ ") for line in graph.splitlines()[:3]] == [
        "stream s (values)",
        "view big",
        "view bigger",
    ]


def test_a_view_that_only_spark_reads_is_named(console: Console) -> None:
    """What such a view reads is looked up in the schema in which it was created."""
    console.run(
        f"{VIEW} CREATE TABLE wanted (k STRING) USING parquet; INSERT INTO wanted VALUES ('a'); CREATE TEMPORARY"
        f" VIEW bigger AS SELECT big.* FROM big LEFT SEMI JOIN wanted ON big.k = wanted.k; {OVER_VIEW}"
    )
    for statement in (
        "SELECT * FROM LATE ROWS OF QUERY t;",
        "VERIFY LIVE TABLE t;",
        "FLUSH QUERY t;",
    ):
        with pytest.raises(RuleFault) as raised:
            console.run(statement)
        assert raised.value.message == "t reads streams through the view bigger, which only Spark reads"


def test_the_rows_that_differ_are_shown_as_sql_shows_them(console: Console) -> None:
    console.run(
        """CREATE STREAM w (k STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT k, window(at, '5 minutes') AS w, true AS b FROM w
        GROUP BY k, window(at, '5 minutes'); INSERT INTO w VALUES (NULL, '2024-05-01 12:01:00');
        AWAIT QUERY t IDLE;"""
    )
    with pytest.raises(InputFault) as raised:
        console.run("VERIFY LIVE TABLE t;")
    shown = "missing: NULL, {start: 2024-05-01 12:00:00, end: 2024-05-01 12:05:00}, true\n"
    assert raised.value.detail.startswith(shown)
    assert "1 of these in groups that are still open: FLUSH QUERY t; emits them" in raised.value.detail
