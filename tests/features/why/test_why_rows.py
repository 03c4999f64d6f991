"""WHY about rows: they cannot be read, have wrong times, are filtered, find no partner, are late, or hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from data_files import put_whole
from test_why import WATERMARK
from why_answers import resolved, texts, why

from streamsql.results import Why
from streamsql.runtime.session_summary import silent_query

ROOMS = (
    "streamsql/features/why/",
    "streamsql/runtime/",
)

TWO = f"""CREATE STREAM a (id STRING, at TIMESTAMP) USING values {WATERMARK};
CREATE STREAM b (id STRING, bt TIMESTAMP) USING values WITH WATERMARK bt DELAY OF INTERVAL 10 MINUTES;
"""
JOIN = "ON a.id = b.id AND bt BETWEEN at AND at + INTERVAL 1 HOUR"
HOURLY = "SELECT window.start AS since, count(*) AS n FROM s GROUP BY window(at, '1 hour')"


def files(folder: Path, **contents: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        put_whole(folder / name.replace("__", "."), text)
    return folder


@pytest.mark.slow
def test_c_event_times_that_cannot_be_read(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__csv="a,05/01/2024 12:00:00\nb,25/01/2024 12:01:00\n")
    console.run(
        f"""CREATE STREAM s (k STRING, at TIMESTAMP) USING csv OPTIONS (path '{folder}') {WATERMARK};
        CREATE LIVE TABLE t AS {HOURLY}; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "EVENT_TIME_UNREADABLE"
    assert shown.verdict == "the event time at of s is NULL in 2 of 2 rows: those rows are in no window"
    assert facts["value that cannot be read"] == "05/01/2024 12:00:00"
    assert facts["would be read by"] == "timestampFormat 'dd/MM/yyyy HH:mm:ss'"
    assert why(console, "STREAM s")[0].verdict == shown.verdict
    assert texts(resolved(console, shown, "t")) == [
        ("2024-01-05 12:00:00", "1"),
        ("2024-01-25 12:00:00", "1"),
    ]


def test_d_a_filter_drops_all(console: Console) -> None:
    console.run(
        """CREATE STREAM s (event STRING, n INT) USING values;
        CREATE LIVE TABLE t AS SELECT event, n FROM s WHERE event = 'Play' AND n > 1;
        INSERT INTO s VALUES ('play', 1), ('play', 2), ('stop', 3); AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "FILTERED_OUT"
    assert shown.verdict == "the filter drops all rows: 3 rows in, 0 out; event = 'Play' keeps none of them"
    assert facts["kept by event = 'Play'"] == "0 of 3"
    assert facts["kept by n > 1"] == "2 of 3"
    assert facts["values of event"] == "'play', 'stop'"
    # The toolbar names a query that has given nothing for a minute.
    assert silent_query(console.session.parts) is None
    reports = console.session.parts.queries.all["t"].reports
    reports._planned.append(min(reports._planned) - 120)  # as if it had been read two minutes ago
    name, seconds = silent_query(console.session.parts) or ("", 0.0)
    assert name == "t" and seconds > 119
    assert resolved(console, shown, "t") == [("play", 2)]


@pytest.mark.slow
def test_a_select_of_an_empty_live_table_tells_at_the_prompt_what_explains_it(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.run(
        """CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE `my t` AS SELECT n FROM s WHERE n > 10;
        CREATE LIVE TABLE u AS SELECT n FROM s; INSERT INTO s VALUES (1); AWAIT QUERY ALL IDLE;"""
    )
    assert not console.run("SELECT * FROM `my t`;")[0].notes  # a script tells it at its end
    monkeypatch.setattr(console.session.parts.config, "interactive", True)
    (note,) = console.run("SELECT count(*) AS c FROM u JOIN `my t` USING (n) HAVING c > 0;")[0].notes
    assert note.text == "the live table my t has no rows: WHY LIVE TABLE `my t`; explains it"
    explained = console.run(note.text.split(": ")[1].partition(";")[0] + ";")[0]
    assert explained.code == "FILTERED_OUT"
    assert not console.run("SELECT * FROM u WHERE n > 5;")[0].notes  # it has rows
    reports = console.session.parts.queries.all["my t"].reports
    monkeypatch.setattr(reports, "looked", False)  # as before its first report
    monkeypatch.setattr(reports, "took_input", False)
    (note,) = console.run("SELECT * FROM `my t`;")[0].notes
    assert note.text == "the live table my t has no rows yet: its first micro-batch is under way"


def test_d_in_the_definition_of_a_stream(console: Console) -> None:
    console.run(
        """CREATE STREAM s (n INT) USING values; CREATE STREAM big AS SELECT n FROM s WHERE n > 10 AND n < 5;
        CREATE LIVE TABLE t AS SELECT n FROM big; INSERT INTO s VALUES (1), (20); AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == (
        "the filter of stream big drops all rows: 2 rows in, 0 out; no row meets all its conditions"
    )
    assert (facts["kept by n > 10"], facts["kept by n < 5"]) == ("1 of 2", "1 of 2")
    assert resolved(console, shown, "t") == [(1,)]


@pytest.mark.slow
def test_e_no_key_is_on_both_sides(console: Console) -> None:
    console.run(
        f"""{TWO} CREATE LIVE TABLE t AS SELECT a.id, bt FROM a JOIN b {JOIN};
        INSERT INTO a VALUES ('x', '2024-05-01 12:00:00'); INSERT INTO b VALUES ('y', '2024-05-01 12:02:00');
        AWAIT QUERY t IDLE;"""
    )
    # No statement gives such rows a partner: the proposal shows the keys of both sides.
    assert sorted(console.rows(why(console, "QUERY t")[0].proposal)) == [("left", "x"), ("right", "y")]
    console.run("INSERT INTO b VALUES ('X', '2024-05-01 12:01:00'); AWAIT QUERY t IDLE;")
    shown, facts = why(console, "QUERY t")
    assert shown.code == "NO_JOIN_PARTNER"
    assert shown.verdict == "the join finds no partner: no value of a.id is one of b.id"
    assert (facts["rows of a"], facts["rows of b"], facts["pairs with equal keys"]) == (1, 2, 0)
    assert (facts["keys a.id"], facts["keys b.id"]) == ("'x'", "'X', 'y'")
    assert texts(resolved(console, shown, "t")) == [("x", "2024-05-01 12:01:00")]


@pytest.mark.slow
def test_e_one_side_is_empty(console: Console) -> None:
    console.run(
        f"""{TWO} CREATE LIVE TABLE t AS SELECT a.id, bt FROM a JOIN b {JOIN};
        INSERT INTO a VALUES ('x', '2024-05-01 12:00:00'); AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == "the join finds no partner: b has no rows"
    assert (facts["rows of a"], facts["rows of b"]) == (1, 0)
    assert shown.proposal == "WHY STREAM b;"
    stream = console.run(shown.proposal)[0]
    assert isinstance(stream, Why)
    assert "INSERT INTO b VALUES" in stream.verdict + stream.proposal


@pytest.mark.slow
def test_e_the_nearest_miss_of_a_range(console: Console) -> None:
    console.run(
        f"""{TWO} CREATE STREAM c (cid STRING, bt TIMESTAMP) USING values {WATERMARK.replace(" at ", " bt ")};
        CREATE LIVE TABLE t AS SELECT id, bt FROM a JOIN c ON cid = id AND bt BETWEEN at AND at + INTERVAL 1 HOUR;
        INSERT INTO a VALUES ('x', '2024-05-01 12:00:00'); INSERT INTO c VALUES ('x', '2024-05-01 13:05:00');
        AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.verdict == (
        "the join finds no partner: rows have equal keys, but bt <= at + INTERVAL 1 HOUR is true for none of them; "
        "the closest pair of rows misses the range by 5 minutes"
    )
    assert facts["nearest miss"] == "5 minutes"
    assert texts(resolved(console, shown, "t")) == [("x", "2024-05-01 13:05:00")]


def test_h_rows_are_late(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__json='{"at": "2024-05-01 14:00:00"}\n')
    console.run(
        f"""CREATE STREAM s (at TIMESTAMP) USING json OPTIONS (path '{folder}') {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS {HOURLY}; AWAIT QUERY t IDLE;"""
    )
    files(folder, b__json='{"at": "2024-05-01 12:00:00"}\n{"at": "2024-05-01 12:20:00"}\n')
    console.run("AWAIT QUERY t IDLE;")
    shown, facts = why(console, "QUERY t")
    assert shown.code == "ROWS_LATE"
    assert shown.verdict == (
        "at least 1 row came behind the watermark, by up to 1 hour 50 minutes, and was dropped"
    )
    # A row whose lateness is the delay is late, too.
    assert facts["rows late by the delay or more"] == "2 (100.00%)"
    assert (
        facts["delay that keeps all of them"]
        == facts["delay that keeps 99 % of the rows"]
        == facts["delay that keeps 99.9 % of the rows"]
        == "2 hours 1 minute"
    )
    assert texts(console.rows(facts["the late rows"])) == [
        ("2024-05-01 12:00:00", "2", "2024-05-01 13:50:00", "3000.0"),
        ("2024-05-01 12:20:00", "2", "2024-05-01 13:50:00", "3000.0"),
    ]
    assert "also" in facts  # and the window of 14:00 is open
    console.run(f"{shown.proposal} AWAIT QUERY t IDLE;")
    again, facts = why(console, "QUERY t")
    assert again.code == "WINDOW_NOT_CLOSED"
    assert facts["groups still open"] == 2


def test_i_milliseconds_read_as_seconds(console: Console, tmp_path: Path) -> None:
    line = '{{"k": "{}", "at": {}}}\n'
    text = line.format("a", 1_714_564_800_000) + line.format("b", 1_714_564_860_000)
    folder = files(tmp_path / "in", a__json=text)
    console.run(
        f"""CREATE STREAM s (k STRING, at TIMESTAMP) USING json OPTIONS (path '{folder}') {WATERMARK};
        CREATE LIVE TABLE t AS {HOURLY}; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "EVENT_TIME_WRONG"
    assert shown.verdict == "the event times of s are in the far future: milliseconds were read as seconds"
    assert facts["read as milliseconds"] == "2024-05-01 12:01:00"
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:00:00", "2")]


@pytest.mark.slow
def test_i_seconds_read_as_milliseconds(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__json='{"n": 1714564800}\n{"n": 1714564860}\n')
    mark = "WITH WATERMARK timestamp_millis(n) AS at DELAY OF INTERVAL 10 MINUTES"
    console.run(
        f"""CREATE STREAM s (n BIGINT) USING json OPTIONS (path '{folder}') {mark};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS {HOURLY}; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "EVENT_TIME_WRONG"
    assert shown.verdict == (
        "all 2 event times of s lie around 1970: their numbers were read in the wrong unit"
    )
    assert facts["read as seconds"] == "2024-05-01 12:01:00"
    console.run(shown.proposal)
    console.run("FLUSH QUERY t;")
    assert texts(console.rows("SELECT * FROM t;")) == [("2024-05-01 12:00:00", "2")]


@pytest.mark.slow
def test_i_one_row_of_the_future(console: Console) -> None:
    console.run(
        f"""CREATE STREAM s (at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS {HOURLY};
        INSERT INTO s VALUES ('2091-01-01 00:00:00'); AWAIT QUERY t IDLE;
        INSERT INTO s VALUES ('2024-05-01 12:00:00'), ('2024-05-01 13:30:00'); AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "EVENT_TIME_WRONG"
    assert shown.verdict.startswith("1 row of 2091-01-01 00:00:00 has moved the watermark of s ahead by ")
    assert facts["newest of the others"] == "2024-05-01 13:30:00"
    assert facts["arrived in"].startswith("micro-batch 0, 20")
    assert texts(resolved(console, shown, "t")) == [("2024-05-01 12:00:00", "1")]


def test_n_the_rows_are_in_a_folder(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM s (k STRING) USING values; CREATE SINK o USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO o SELECT k FROM s; INSERT INTO s VALUES ('a'), ('b'); AWAIT QUERY o IDLE;"""
    )
    shown, _ = why(console)
    assert shown.code == "ROWS_WRITTEN"
    assert shown.verdict.startswith(f"nothing is wrong: the rows are in {tmp_path}/out, 2 rows in ")
    assert console.rows(shown.proposal) == [("a",), ("b",)]


@pytest.mark.slow
def test_a_n_the_rows_went_to_a_topic(console: Console, kafka: Broker) -> None:
    topic = kafka.topic()
    options = f"OPTIONS (servers '{kafka.servers}', topic '{topic}')"
    console.run(
        f"""CREATE STREAM back USING kafka {options}; CREATE LIVE TABLE t AS SELECT value FROM back;
        CREATE STREAM s (k STRING) USING values; CREATE SINK o USING kafka {options}; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert (shown.code, shown.verdict) == ("NO_DATA", f"no data: the topic {topic} has no messages")
    assert (facts["messages there"], facts["partitions"]) == (0, 1)
    assert (topic, 0) in [(row[0], row[3]) for row in console.rows(shown.proposal)]
    console.run("INSERT INTO o SELECT k FROM s; INSERT INTO s VALUES ('a'), ('b'); AWAIT QUERY ALL IDLE;")
    shown, facts = why(console, "QUERY o")
    assert shown.code == "ROWS_WRITTEN"
    assert shown.verdict == f"nothing is wrong: 2 rows went to the topic {topic}"
    assert topic in [row[0] for row in console.rows(shown.proposal)]
    console.run("AWAIT QUERY t IDLE;")
    assert why(console, "QUERY t")[0].code == "NOTHING_WRONG"


def test_n_o_a_select_hides_the_rows(console: Console) -> None:
    console.run(
        f"""CREATE STREAM s (at TIMESTAMP) USING values; CREATE LIVE TABLE t AS {HOURLY};
        INSERT INTO s VALUES ('2024-05-01 12:01:00'); AWAIT QUERY t IDLE;
        SELECT * FROM t WHERE n > 5;"""
    )
    shown, facts = why(console)
    assert (shown.code, shown.verdict) == (
        "ROWS_HIDDEN",
        "1 row is there, and the WHERE of the SELECT keeps none",
    )
    assert facts["kept by n > 5"] == "0 of 1"
    assert len(console.rows(shown.proposal)) == 1
    console.run("SET spark.sql.session.timeZone = 'America/New_York';")
    assert console.rows("SELECT * FROM t WHERE since = '2024-05-01 12:00:00';") == []
    shown, facts = why(console, "LIVE TABLE t")
    assert shown.code == "TIME_ZONE"
    assert facts["session time zone"] == "America/New_York"
    assert len(console.rows(shown.proposal)) == 1


@pytest.mark.slow
def test_d_having_keeps_no_group(console: Console) -> None:
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t AS SELECT k, count(*) AS n FROM w GROUP BY k HAVING count(*) > 2;
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00'), ('b', '2024-05-01 12:07:00'), ('a', '2024-05-01 12:08:00');
        AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "FILTERED_OUT"
    assert shown.verdict == "HAVING drops all rows: 2 groups, none with count(*) > 2"
    assert resolved(console, shown, "t") == [("a", 2), ("b", 1)]


@pytest.mark.slow
def test_k_a_join_that_keeps_all_rows(console: Console) -> None:
    rows = "".join(f"INSERT INTO a VALUES ('x', '2024-05-01 12:0{n}:00');" for n in range(3))
    console.run(
        f"""{TWO} INSERT INTO b VALUES ('x', '2024-05-01 12:30:00'); {rows}
        CREATE LIVE TABLE t AS SELECT at, bt FROM a JOIN b ON a.id = b.id; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert (shown.code, facts["kept for a partner"]) == ("STATE_GROWS", 4)
    assert "1 more in each micro-batch" in shown.verdict
    assert "ON a.id = b.id AND b.bt BETWEEN a.at AND a.at + INTERVAL 1 HOUR" in shown.proposal
    assert len(resolved(console, shown, "t")) == 3
    assert why(console, "QUERY t")[0].code == "NOTHING_WRONG"
