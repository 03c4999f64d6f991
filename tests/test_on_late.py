"""ON LATE INTO: the rows that the watermark has dropped are in another sink, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Console
from test_advance import refusal

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"
STREAM = f"CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};"
COUNTS = "SELECT window.end AS until, count(*) AS n FROM s GROUP BY window(at, '5 minutes')"


def put(console: Console, *events: tuple[int, str]) -> None:
    listed = ", ".join(f"({n}, '2024-05-01 {at}')" for n, at in events)
    console.run(f"INSERT INTO s VALUES {listed}; AWAIT QUERY ALL IDLE;")


def test_late_rows_are_in_a_live_table_and_stay_after_a_restart(console: Console) -> None:
    console.run(
        f"""{STREAM} CREATE SINK too_late USING memory;
        CREATE LIVE TABLE t OUTPUT MODE UPDATE ON LATE INTO too_late AS {COUNTS};"""
    )
    put(console, (1, "12:00"), (2, "13:00"))
    shown = console.run("WHY LIVE TABLE too_late;")[0]
    assert shown.verdict == (
        "nothing is wrong: too_late takes the rows of t that come late, and none has come late so far"
    )
    put(console, (3, "12:44"), (4, "12:50"))
    late = "SELECT n, _batch, _late_by_seconds FROM too_late ORDER BY n;"
    # The window of 12:44 ends before the watermark, 12:50; that of 12:00 was there before it.
    batch = console.rows("SELECT max(_batch) FROM LATE ROWS OF QUERY t;")[0][0]
    assert console.rows(late) == [(3, batch, 300.0)]
    [kept] = console.rows("SHOW LIVE TABLES;")[:1]
    assert kept[:2] == ("too_late", 1) and kept[6] == "t"
    console.run("STOP QUERY t;")
    put(console, (5, "12:20"), (6, "14:00"))
    console.run("START QUERY t; AWAIT QUERY t IDLE;")
    put(console, (7, "13:10"))
    console.run("STOP QUERY t WITH DRAIN;")
    assert [row[0] for row in console.rows(late)] == [3, 5, 7]
    assert console.rows(late) == console.rows(late.replace("too_late", "LATE ROWS OF QUERY t"))
    described = dict(console.rows("DESCRIBE QUERY t;"))
    assert described["late rows into"].startswith("too_late, up to micro-batch ")
    assert "ON LATE INTO too_late" in console.run("SHOW CREATE LIVE TABLE t;")[-1].text
    with pytest.raises(Exception, match="the query t writes to too_late"):
        console.run("DROP SINK too_late;")


def test_late_rows_in_files_of_a_query_that_ends(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""{STREAM} CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        CREATE SINK too_late (n INT, _late_by_seconds DOUBLE) USING json OPTIONS (path '{tmp_path}/late');"""
    )
    put(console, (1, "13:00"))
    put(console, (2, "12:50"), (3, "12:51"))
    put(console, (4, "12:00"))
    console.run(
        """INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW ON LATE INTO too_late
          SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s; AWAIT QUERY q;"""
    )
    lines = [
        json.loads(x) for f in sorted(tmp_path.glob("late/*/*.json")) for x in f.read_text().splitlines()
    ]
    # The second micro-batch runs without a watermark: Spark learns it from the first one.
    assert lines == [{"n": 4, "_late_by_seconds": 3000.0}]
    program = console.run("EXPLAIN PYSPARK QUERY q;")[-1]
    assert "late_writer.follow(query)" in program.text


def test_a_sink_that_fails_fails_the_query_and_gets_its_rows_at_the_next_start(
    console: Console, tmp_path: Path
) -> None:
    place = tmp_path / "late"
    place.write_text("a file, where the folder would be")
    console.run(
        f"""{STREAM} CREATE SINK out USING noop; CREATE SINK too_late USING json OPTIONS (path '{place}');
        INSERT INTO out AS QUERY q ON LATE INTO too_late SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s;"""
    )
    put(console, (1, "13:00"))
    with pytest.raises(Exception, match="query q failed: its late rows could not be written into too_late"):
        put(console, (2, "12:00"))
    place.unlink()
    console.run("START QUERY q; AWAIT QUERY q IDLE;")
    [file] = place.glob("*/*.json")
    assert json.loads(file.read_text())["n"] == 2


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO out ON LATE INTO k SELECT DISTINCT * FROM s;", "a kafka sink takes no late rows"),
        ("INSERT INTO out ON LATE INTO out SELECT DISTINCT * FROM s;", "a noop sink takes no late rows"),
        ("INSERT INTO f ON LATE INTO f SELECT DISTINCT * FROM s;", "f is the sink of the query itself"),
        ("INSERT INTO out ON LATE INTO none SELECT DISTINCT * FROM s;", "there is no sink none"),
        ("INSERT INTO out ON LATE INTO f SELECT * FROM s;", "this query drops no late rows"),
        ("INSERT INTO out ON LATE INTO f SELECT DISTINCT * FROM plain;", "ON LATE INTO needs a watermark"),
        (
            "INSERT INTO out ON LATE INTO f SELECT value FROM c WATERMARK now() AS ts DELAY OF INTERVAL 1 SECOND "
            "GROUP BY window(ts, '1 minute'), value;",
            "the rows of c cannot be read again: its source is socket",
        ),
        ("CREATE LIVE TABLE u ON LATE INTO f AS SELECT count(*) AS n FROM t;", "needs a stream"),
        (
            "INSERT INTO out OUTPUT MODE COMPLETE ON LATE INTO f SELECT at, count(*) AS n FROM s GROUP BY at;",
            "ON LATE INTO is not supported in output mode complete",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(statement: str, said: str) -> None:
    fault = refusal(
        f"""{STREAM} CREATE STREAM plain (n INT) USING values;
        CREATE STREAM c USING socket OPTIONS (host 'localhost', port 9999);
        CREATE SINK out USING noop; CREATE SINK f USING json OPTIONS (path '/tmp/f');
        CREATE SINK k USING kafka FORMAT json OPTIONS (servers 'localhost:9092', topic 'k');
        CREATE LIVE TABLE t AS SELECT DISTINCT n FROM s;
        {statement}"""
    )
    assert said in fault.message
