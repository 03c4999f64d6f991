"""LATE ROWS OF QUERY: the very rows that the watermark has dropped, as a batch over the same data tells them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from data_files import put_whole

from streamsql.errors import InputFault, RuleFault

ROOMS = ("streamsql/runtime/", "streamsql/plan/lowering/")

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"
DELAY = timedelta(minutes=10)
NOON = datetime(2024, 5, 1, 12)
Event = tuple[int, datetime]
Batches = list[list[Event]]


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def boundary(at: datetime) -> datetime:
    """The next full five minutes."""
    return at - (at - NOON) % minutes(5) + minutes(5)


ENDS: dict[str, Callable[[datetime], list[datetime]]] = {
    "tumbling": lambda at: [boundary(at)],
    "sliding": lambda at: [boundary(at), boundary(at) + minutes(5)],
    "sessions": lambda at: [at + minutes(5)],
    "firsts": lambda at: [at],
    "pairs": lambda at: [at],
}
"""By query, until when an event can take part: the ends of its windows, or its own time."""
QUERIES = {
    "tumbling": "SELECT window.end AS until, count(*) AS n FROM s WHERE n < 900 GROUP BY window(at, '5 minutes')",
    "sliding": "SELECT window.end AS until, count(*) AS n FROM s WHERE n < 900 "
    "GROUP BY window(at, '10 minutes', '5 minutes')",
    "sessions": "SELECT k, session_window.end AS until FROM s WHERE n < 900 "
    "GROUP BY session_window(at, '5 minutes'), k",
    "firsts": "SELECT DISTINCT ON (n) WITHIN WATERMARK n, at FROM s WHERE n < 900",
    "pairs": "SELECT s.n, o.n AS other FROM (SELECT * FROM s WHERE n < 900) AS s JOIN o "
    "ON s.n = o.n AND ot BETWEEN at AND at + INTERVAL 1 MINUTE",
}


def late(batches: Batches, ends: Callable[[datetime], list[datetime]]) -> list[tuple[int, int]]:
    """(n, how often it was dropped), by hand: the watermark of a micro-batch is the newest event time of all
    before it, minus the delay.
    """
    dropped, newest = dict[int, int](), None
    for events in batches:
        for n, at in events:
            times = sum(end <= newest - DELAY for end in ends(at)) if newest else 0
            if times and n < 900:  # a WHERE has dropped the others
                dropped[n] = times
        newest = max([at for _, at in events] + ([newest] if newest else []))
    return sorted(dropped.items())


def data() -> Batches:
    """Micro-batches whose event times go on, with rows up to forty minutes late."""
    dice = random.Random(7)
    batches, n = Batches(), 0
    for number in range(5):
        events = []
        for _ in range(8):
            n += 1
            at = NOON + minutes(20 * number) - minutes(dice.choice([0, 1, 3, 9, 14, 15, 22, 31, 40]))
            events.append((n if dice.random() < 0.85 else n + 900, at))
        batches.append(events)
    return batches


@pytest.mark.slow
def test_late_rows_are_those_that_a_batch_tells(console: Console) -> None:
    batches = data()
    tables = "".join(
        f"CREATE SINK late_{name} USING memory; CREATE LIVE TABLE {name} ON LATE INTO late_{name} AS {text};"
        for name, text in QUERIES.items()
    )
    console.run(
        f"""CREATE STREAM s (n INT, k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM o (n INT, ot TIMESTAMP) USING values WITH WATERMARK ot DELAY OF INTERVAL 10 MINUTES;
        {tables}"""
    )
    for events in batches:
        listed = ", ".join(f"({n}, 'k', '{at}')" for n, at in events)
        # The other side of the join has the same times, so that the watermark of both is the same.
        others = ", ".join(f"({n}, '{at}')" for n, at in events)
        console.run(f"INSERT INTO s VALUES {listed}; INSERT INTO o VALUES {others}; AWAIT QUERY ALL IDLE;")
    for name, ends in ENDS.items():
        where = "WHERE ot IS NULL" if name == "pairs" else ""
        rows = console.rows(
            f"SELECT n, count(*) AS times FROM LATE ROWS OF QUERY {name} {where} GROUP BY n ORDER BY n;"
        )
        assert rows == late(batches, ends), name
        assert rows
        kept = f"SELECT n, count(*) AS times FROM late_{name} {where} GROUP BY n ORDER BY n;"
        assert console.rows(kept) == rows, name
    # Spark counts rows where it does not combine those of a group before it drops them.
    dropped = console.session.parts.queries.all["firsts"].reports.run.late.number
    assert console.rows("SELECT count(*) FROM LATE ROWS OF QUERY firsts;") == [(dropped,)]
    batch, mark, by = console.rows(
        "SELECT _batch, CAST(_watermark AS STRING), _late_by_seconds FROM LATE ROWS OF QUERY firsts "
        "ORDER BY _batch DESC, n LIMIT 1;"
    )[0]
    assert console.rows(f"SELECT count(*) > 0 FROM LATE ROWS OF QUERY firsts AT BATCH {batch};") == [(True,)]
    described = dict(console.rows("DESCRIBE QUERY tumbling;"))
    assert described["the late rows"] == (
        "SELECT * FROM LATE ROWS OF QUERY tumbling; lists them; Spark counts groups of them, so there may be more"
    )
    newest = max(at for events in batches[:-1] for _, at in events)
    assert (mark, by >= 0) == (str(newest - DELAY), True)


def test_late_rows_of_files_in_folders_after_a_restart(console: Console, tmp_path: Path) -> None:
    def put(day: int, name: str, *lines: str) -> None:
        folder = tmp_path / "in files" / f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        put_whole(folder / name, "".join(f"{line}\n" for line in lines))

    put(1, "a.csv", "1,2024-05-01 12:00:00", "2,2024-05-01 14:00:00")
    console.run(
        f"""CREATE STREAM s (n INT, at TIMESTAMP, day INT) USING csv OPTIONS (path '{tmp_path}/in files') {WATERMARK};
        CREATE SINK out USING noop;
        INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s;
        AWAIT QUERY q;"""
    )
    put(2, "b.csv", "3,2024-05-01 13:50:00", "4,2024-05-01 13:50:01")
    console.run("START QUERY q; AWAIT QUERY q;")
    rows = console.rows("SELECT n, CAST(at AS STRING), day, _batch FROM LATE ROWS OF QUERY q;")
    assert rows == [(3, "2024-05-01 13:50:00", 2, 2)]


@pytest.mark.slow
def test_late_messages_of_kafka(console: Console, kafka: Broker) -> None:
    topic = kafka.topic('{"n": 1, "at": "2024-05-01 14:00:00"}')
    console.run(
        f"""CREATE STREAM s (n INT, at TIMESTAMP) USING kafka FORMAT json
          OPTIONS (servers '{kafka.servers}', topic '{topic}', startingOffsets 'earliest') {WATERMARK};
        CREATE LIVE TABLE t AS SELECT DISTINCT ON (n) WITHIN WATERMARK n, at FROM s; AWAIT QUERY t IDLE;"""
    )
    kafka.produce(topic, ['{"n": 2, "at": "2024-05-01 13:00:00"}', '{"n": 3, "at": "2024-05-01 14:00:00"}'])
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT n, _late_by_seconds FROM LATE ROWS OF QUERY t;") == [(2, 3000.0)]
    kafka.produce(topic, ['{"n": 4, "at": "2024-05-01 13:30:00"}'])
    console.run("AWAIT QUERY t IDLE;")
    late = console.rows("SELECT n, _late_by_seconds FROM LATE ROWS OF QUERY t ORDER BY n;")
    assert late == [(2, 3000.0), (4, 1200.0)]
    # The same messages in windows: none is late, and FLUSH QUERY closes both.
    console.run(
        """CREATE LIVE TABLE w OUTPUT MODE APPEND AS
        SELECT CAST(window.end AS STRING) AS until, count(*) AS n FROM s GROUP BY window(at, '1 hour');
        FLUSH QUERY w;"""
    )
    assert console.rows("SELECT * FROM w;") == [("2024-05-01 14:00:00", 2), ("2024-05-01 15:00:00", 2)]
    kafka.produce(topic, ['{"n": 5, "at": "2024-05-01 16:00:00"}'])
    console.run("AWAIT QUERY w IDLE; FLUSH QUERY w;")
    assert console.rows("SELECT n FROM w WHERE until LIKE '%17:00:00';") == [(1,)]


@pytest.mark.slow
def test_late_rows_of_a_statement_set(console: Console) -> None:
    console.run(
        f"""CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM once AS SELECT DISTINCT ON (n) WITHIN WATERMARK n, at FROM s;
        CREATE SINK odd USING memory; CREATE SINK even USING memory;
        EXECUTE STATEMENT SET AS QUERY q BEGIN INSERT INTO odd SELECT n FROM once WHERE n % 2 = 1;
          INSERT INTO even SELECT n FROM once WHERE n % 2 = 0; END;
        INSERT INTO s VALUES (1, '2024-05-01 14:00:00'), (2, '2024-05-01 14:00:00'); AWAIT QUERY q IDLE;
        INSERT INTO s VALUES (3, '2024-05-01 13:00:00'), (4, '2024-05-01 13:55:00'); AWAIT QUERY q IDLE;"""
    )
    assert console.rows("SELECT n, _late_by_seconds FROM LATE ROWS OF QUERY q;") == [(3, 3000.0)]
    assert console.rows("SELECT * FROM even;") == [(2,), (4,)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("plain", "the query plain drops no late rows"),
        ("ticks", "the rows of r cannot be read again: its source is rate"),
        ("top", "the late rows of top cannot be read: it is computed from live tables"),
        ("pairs", "the rows of r cannot be read again: its source is rate"),
    ],
)
def test_what_cannot_be_read_again_is_refused(query: str, said: str) -> None:
    from test_advance import refusal

    fault = refusal(
        f"""CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM r USING rate OPTIONS (rampUpTime '5s') WITH WATERMARK timestamp DELAY OF INTERVAL 1 MINUTE;
        CREATE STREAM even USING rate WITH WATERMARK timestamp DELAY OF INTERVAL 1 MINUTE;
        CREATE LIVE TABLE pairs AS SELECT even.value FROM even JOIN r ON even.value = r.value AND even.timestamp = r.timestamp;
        CREATE LIVE TABLE plain AS SELECT * FROM s;
        CREATE LIVE TABLE top AS SELECT count(*) AS n FROM plain;
        CREATE LIVE TABLE ticks AS SELECT window, count(*) AS n FROM r GROUP BY window(timestamp, '1 minute');
        SELECT * FROM LATE ROWS OF QUERY {query};"""
    )
    assert isinstance(fault, RuleFault)
    assert said in fault.message


def test_a_micro_batch_that_is_not_in_the_log(console: Console) -> None:
    console.run(
        f"""CREATE STREAM s (n INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t AS SELECT DISTINCT ON (n) WITHIN WATERMARK * FROM s;
        INSERT INTO s VALUES (1, '2024-05-01 12:00:00'); AWAIT QUERY t IDLE;"""
    )
    with pytest.raises(InputFault, match="the query t has no micro-batch 9 in its log"):
        console.run("SELECT * FROM LATE ROWS OF QUERY t AT BATCH 9;")
    assert console.rows("SELECT * FROM LATE ROWS OF QUERY t;") == []
