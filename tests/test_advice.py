"""Advice before a query starts: planned, so that `--check` and EXPLAIN give it, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import Console

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import Note, Source
from streamsql.language.parser import parse_script
from streamsql.plan.context import Context
from streamsql.plan.planner import plan

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

WINDOWS = "(SELECT id, window, window.end AS e, window.start AS s, count(*) AS n FROM {0} GROUP BY id, window({1}, '1 hour'))"
STREAMS = """CREATE STREAM a (id INT, ts TIMESTAMP, day STRING) USING values WITH WATERMARK ts DELAY '5 minutes';
CREATE STREAM b (id INT, bt TIMESTAMP) USING values;
CREATE STREAM c (id INT, ct TIMESTAMP) USING values WITH WATERMARK ct DELAY '5 minutes'; CREATE SINK o USING json OPTIONS (path 'o');
"""


def advice(statement: str) -> list[Note]:
    """The notes of the last statement, without that on the output mode."""
    context = Context(Catalog(), Places("run"))
    for parsed in parse_script(Source("a.sql", STREAMS + statement)):
        made = plan(parsed, context)
        context = replace(context, catalog=made.applied(context.catalog))
    return list(made.notes)


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        (
            "INSERT INTO o SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '10 minutes')",
            "FIRST_WINDOW",
            "the window from 12:00 to 12:10, for example, when an event of 12:15 or later arrives",
        ),
        (
            "INSERT INTO o SELECT window.start AS w, count(*) AS n FROM a JOIN c ON a.id = c.id AND ts = ct "
            "GROUP BY window(ts, '10 minutes')",
            "FIRST_WINDOW",
            "once it is closed, and the join of streams holds the watermark back by the time range of its condition",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT a.id, bt FROM a JOIN b ON a.id = b.id",
            "UNBOUNDED_STATE",
            "WITH WATERMARK bt DELAY OF INTERVAL 10 MINUTES on b, and AND b.bt BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
        ),
        (
            f"CREATE LIVE TABLE t AS SELECT x.n FROM {WINDOWS.format('a', 'ts')} x JOIN {WINDOWS.format('c', 'ct')} y"
            " ON x.id = y.id",
            "UNBOUNDED_STATE",
            "unbounded. AND x.window = y.window in its condition, of windows that both sides select, would bound it",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM b GROUP BY id",
            "UNBOUNDED_STATE",
            "WITH WATERMARK bt DELAY OF INTERVAL 10 MINUTES on b, and GROUP BY window(bt, '1 hour'), … would bound it",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT window, count(*) AS n FROM b GROUP BY window(bt, '1 hour')",
            "UNBOUNDED_STATE",
            "WITH WATERMARK bt DELAY OF INTERVAL 10 MINUTES on b would bound it",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(id, '1 hour')",
            "TIME_AS_TEXT",
            "WITH WATERMARK timestamp_seconds(id) AS ts DELAY OF INTERVAL 10 MINUTES uses it as event time",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT DISTINCT ON (id) id FROM b",
            "UNBOUNDED_STATE",
            "A watermark and WITHIN WATERMARK would bound the state",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT a.id FROM a JOIN c ON a.id = c.id AND ct BETWEEN ts AND ts + INTERVAL 7 DAYS",
            "LONG_RANGE",
            "2,016 times as long as rows may be late: AND ct <= ts + INTERVAL 1 HOUR in its condition would keep ",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id",
            "WATERMARK_UNUSED",
            "GROUP BY window(ts, '1 hour'), … would bound it",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(day, '1 hour')",
            "TIME_AS_TEXT",
            "WITH WATERMARK to_timestamp(day) AS ts DELAY OF INTERVAL 10 MINUTES uses it as event time",
        ),
    ],
)
def test_advice_has_the_fix_typed_out(statement: str, code: str, words: str) -> None:
    notes = [n for n in advice(statement) if n.code == code]
    assert len(notes) == 1
    assert words in str(notes[0])


@pytest.mark.parametrize(
    "key",
    [
        "id > 3",
        "CASE WHEN id > 3 THEN 'big' ELSE 'small' END",
        "if(id > 3, 'a', 'b')",
        "hour(ts)",
        "flag",
        "id IS NULL",
    ],
)
def test_few_groups_are_not_called_a_state_without_bound(key: str) -> None:
    other = "CREATE STREAM d (id INT, ts TIMESTAMP, flag BOOLEAN) USING values;"
    marked = other.replace("values;", "values WITH WATERMARK ts DELAY '5 minutes';")
    for stream in (other, marked):
        for group in (
            f"{key} AS k, count(*) AS n FROM d GROUP BY k",
            f"{key}, count(*) AS n FROM d GROUP BY 1",
        ):
            assert advice(f"{stream} CREATE LIVE TABLE t AS SELECT {group}") == []
    # A column may have any number of values: the advice is a condition.
    [note] = advice(
        f"{other} CREATE LIVE TABLE t AS SELECT id, {key} AS k, count(*) AS n FROM d GROUP BY id, {key}"
    )
    assert "If new values of the keys never stop coming, WITH WATERMARK ts" in note.text


def test_one_group_for_all_rows_needs_no_watermark() -> None:
    assert advice("CREATE LIVE TABLE t AS SELECT count(*) AS n FROM a") == []


def test_a_join_of_window_tables_or_sessions_is_not_told_to_compare_columns_that_they_lack() -> None:
    """What is proposed bounds the state; nothing is proposed for sessions."""
    table = "(SELECT id, window_end, count(*) AS n FROM TUMBLE(TABLE {0}, DESCRIPTOR({1}), INTERVAL 1 HOUR) GROUP BY id, window_start, window_end)"
    session = "(SELECT id, count(*) AS n FROM {0} GROUP BY id, session_window({1}, '1 hour'))"
    equality = (
        "An equality of window_time, or of another event time by which both sides are grouped, would bound it"
    )
    for side, end in ((table, equality), (session, "the state is unbounded")):
        joined = f"CREATE LIVE TABLE t AS SELECT x.n FROM {side.format('a', 'ts')} x JOIN {side.format('c', 'ct')} y ON x.id = y.id"
        [text] = [n.text for n in advice(joined) if n.code == "UNBOUNDED_STATE"]
        assert text.endswith(end)
        for column, bounded in (("window_end", False), ("window_time", True)):
            notes = advice(
                f"{joined} AND x.{column} = y.{column}".replace("window_end, count", f"{column}, count")
            )
            assert side == session or any(n.code == "UNBOUNDED_STATE" for n in notes) is not bounded


def test_a_range_that_fits_the_delays_is_not_advised_on() -> None:
    joined = "CREATE LIVE TABLE t AS SELECT a.id FROM a JOIN c ON a.id = c.id AND ct BETWEEN ts AND ts + INTERVAL 1 HOUR"
    assert advice(joined) == []


JOINED = """CREATE STREAM e (id INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '{0}';
CREATE STREAM f (id INT, ft TIMESTAMP) USING values WITH WATERMARK ft DELAY '{0}';
CREATE LIVE TABLE t AS SELECT e.id FROM e JOIN f ON e.id = f.id AND ft BETWEEN ts AND ts + INTERVAL {1}"""


def test_streams_without_delay_are_joined_on_a_range() -> None:
    assert "LONG_RANGE" not in [n.code for n in advice(JOINED.format("0 seconds", "1 HOUR"))]


@pytest.mark.parametrize(
    ("length", "proposed"),
    [("7 DAYS", "1 HOUR"), ("1 HOUR", "1 MINUTE"), ("30 MINUTES", "1 MINUTE"), ("20 SECONDS", "1 SECOND")],
)
def test_the_proposed_range_is_shorter(length: str, proposed: str) -> None:
    (note,) = [n for n in advice(JOINED.format("100 milliseconds", length)) if n.code == "LONG_RANGE"]
    assert f"AND ft <= ts + INTERVAL {proposed} in its condition" in note.text


def fix(notes: list[Note], code: str, start: str, end: str) -> str:
    """The part of the note of that code which is to be typed; fails if there is another number of them."""
    [text] = [n.text for n in notes if n.code == code]
    return start + text.partition(start)[2].partition(end)[0]


@pytest.mark.parametrize(
    ("statement", "code", "parts", "typed"),
    [
        (
            "CREATE LIVE TABLE t AS SELECT a.id, bt FROM a JOIN b ON a.id = b.id",
            "UNBOUNDED_STATE",
            [("WITH WATERMARK", "on b,"), ("AND b.bt", "in its")],
            "CREATE OR REPLACE STREAM b (id INT, bt TIMESTAMP) USING values {0}; {statement} {1}",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM b GROUP BY id",
            "UNBOUNDED_STATE",
            [("WITH WATERMARK", "on b,"), ("GROUP BY", ", …")],
            "CREATE OR REPLACE STREAM b (id INT, bt TIMESTAMP) USING values {0}; "
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM b {1}, id",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT DISTINCT ON (id) id FROM a",
            "UNBOUNDED_STATE",
            [("WITHIN WATERMARK", " would")],
            "CREATE LIVE TABLE t AS SELECT DISTINCT ON (id) {0} id FROM a",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT a.id FROM a JOIN c ON a.id = c.id AND ct BETWEEN ts AND ts + INTERVAL 7 DAYS",
            "LONG_RANGE",
            [("AND ct", "in its")],
            "CREATE LIVE TABLE t AS SELECT a.id FROM a JOIN c ON a.id = c.id AND ct >= ts {0}",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id",
            "WATERMARK_UNUSED",
            [("GROUP BY", ", …")],
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM a {0}, id",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(day, '1 hour')",
            "TIME_AS_TEXT",
            [("WITH WATERMARK", "uses it")],
            "CREATE OR REPLACE STREAM a (id INT, day STRING) USING values {0}; "
            "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '1 hour')",
        ),
    ],
)  # fmt: skip
def test_the_fix_of_a_plan_ends_the_advice(
    statement: str, code: str, parts: list[tuple[str, str]], typed: str
) -> None:
    words = [fix(advice(statement), code, start, end) for start, end in parts]
    assert code not in [n.code for n in advice(typed.format(*words, statement=statement))]


@pytest.mark.slow
def test_advice_at_a_start_ends_when_it_is_typed(console: Console) -> None:
    console.run(STREAMS.partition("CREATE SINK")[0])
    console.run("SET spark.sql.shuffle.partitions = 200;")
    started = console.run("CREATE LIVE TABLE m AS SELECT id, count(*) AS n FROM b GROUP BY id;")[-1]
    typed = fix(list(started.notes), "MANY_PARTITIONS", "SET spark.sql.shuffle.partitions", " runs fewer")
    assert typed.startswith("SET spark.sql.shuffle.partitions = ") and typed.endswith("FROM BEGINNING;")
    assert "MANY_PARTITIONS" not in [n.code for n in console.run(typed)[-1].notes]
    console.run("DROP LIVE TABLE m; SET spark.sql.shuffle.partitions = 1;")
    console.run(
        """CREATE LIVE TABLE t TRIGGER EVERY INTERVAL 1 MILLISECOND AS SELECT ts FROM a;
        CREATE LIVE TABLE u AS SELECT ct FROM c;
        INSERT INTO a VALUES (1, '2024-05-01 12:00:00', ''); INSERT INTO a VALUES (1, '2024-05-01 12:00:00', '');
        INSERT INTO a VALUES (1, '2024-05-01 12:00:00', ''); INSERT INTO c VALUES (1, '1999-05-01 12:00:00');
        AWAIT QUERY ALL IDLE; STOP QUERY t;"""
    )
    started = console.run("START QUERY t;")[-1]
    trigger = fix(list(started.notes), "TRIGGER_TOO_SHORT", "TRIGGER EVERY", " leaves time")
    replaced = f"CREATE OR REPLACE LIVE TABLE t {trigger} AS SELECT ts FROM a;"
    assert "TRIGGER_TOO_SHORT" not in [n.code for n in console.run(replaced)[-1].notes]
    joined = "a.id = c.id AND ct BETWEEN ts AND ts + INTERVAL 1 HOUR"
    console.run("AWAIT QUERY t IDLE;")
    started = console.run(f"CREATE LIVE TABLE j AS SELECT ts FROM a JOIN c ON {joined};")[-1]
    assert [n.text for n in started.notes if n.code == "EVENT_TIMES_APART"] == [
        "the event times of c end at 1999-05-01 12:00:00, those of a at 2024-05-01 12:00:00: rows of both meet in "
        "no time range, and the watermark stays behind; WHY STREAM c; and WHY STREAM a; examine them"
    ]


@pytest.mark.parametrize(
    ("zone", "size", "words"),
    [
        (
            "Asia/Kolkata",
            "1 day",
            "00:00 UTC, which is 05:30 in Asia/Kolkata: GROUP BY date_trunc('DAY', ts)",
        ),
        ("Asia/Kolkata", "1 hour", "window(ts, '1 hour', '1 hour', '30 minutes') begins at midnight there"),
        ("UTC", "7 days", "00:00 UTC on Thursday, which is 00:00 in UTC: GROUP BY date_trunc('WEEK', ts)"),
        ("UTC", "1 day", ""),
        ("Asia/Tokyo", "1 hour", ""),
    ],
)
def test_windows_that_do_not_begin_at_midnight(console: Console, zone: str, size: str, words: str) -> None:
    console.run("CREATE STREAM w (ts TIMESTAMP) USING values WITH WATERMARK ts DELAY OF 1 MINUTE;")
    console.run(f"SET spark.sql.session.timeZone = '{zone}';")
    try:
        [started] = console.run(
            f"CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM w GROUP BY window(ts, '{size}');"
        )
    finally:
        console.run("RESET spark.sql.session.timeZone;")
    said = [n.text for n in started.notes if n.code == "WINDOWS_IN_UTC"]
    assert (words in said[0]) if words else (said == [])


@pytest.mark.slow
def test_queries_that_go_on_with_an_old_definition_are_named(console: Console) -> None:
    create = "STREAM s (id STRING, n INT) USING values;"
    console.run(
        f"""CREATE {create} CREATE LIVE TABLE c AS SELECT id, count(*) AS n FROM s GROUP BY id;
        CREATE LIVE TABLE f AS SELECT id FROM s; CREATE LIVE TABLE stopped AS SELECT n FROM s; STOP QUERY stopped;"""
    )

    def said(statement: str) -> list[str]:
        return [n.text for n in console.run(statement)[-1].notes if n.code == "OLD_DEFINITION"]

    new = "starts with the new one"
    assert said("SET spark.sql.shuffle.partitions = 2;") == [
        "c still runs with spark.sql.shuffle.partitions as it was before: "
        f"STOP QUERY c; START QUERY c FROM BEGINNING; {new}"
    ]
    assert said("SET spark.sql.ansi.enabled = false;") == [
        "c, f still run with spark.sql.ansi.enabled as it was before: "
        f"STOP QUERY c; START QUERY c; {new} (and so for the others)"
    ]
    console.run("RESET spark.sql.shuffle.partitions; RESET spark.sql.ansi.enabled;")
    assert said("SET streamsql.null = '-';") == []
    console.run("RESET streamsql.null;")
    assert said("CREATE STREAM other (n INT) USING values;") == []
    assert said(f"CREATE OR REPLACE {create}") == [
        "c, f still run with the stream s as it was before: "
        f"STOP QUERY c; START QUERY c; {new} (and so for the others)"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE LIVE TABLE t AS SELECT id FROM a WHERE id > 1",
        "CREATE LIVE TABLE t AS SELECT count(*) AS n FROM b",
        "CREATE LIVE TABLE t OUTPUT MODE COMPLETE AS SELECT id, count(*) AS n FROM b GROUP BY id",
        "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '1 hour')",
        "SELECT id, count(*) AS n FROM a GROUP BY id",
    ],
)
def test_nothing_is_said_of_a_query_that_needs_no_advice(statement: str) -> None:
    assert advice(statement) == []


def test_never_more_than_three() -> None:
    joined = "CREATE LIVE TABLE t AS SELECT DISTINCT a.id, day, bt FROM a JOIN b ON a.id = b.id"
    assert len(advice(joined)) <= 3


TEN_MINUTES = "ts, '10 minutes'"


@pytest.mark.parametrize(("other", "twice"), [("ts, '10 minutes'", True), ("ts, '5 minutes'", False)])
def test_windows_that_both_sides_of_a_join_count_are_told(other: str, twice: bool) -> None:
    counts = "(SELECT window AS w, id, count(*) AS n FROM a GROUP BY window({}), id)"
    most = f"(SELECT w, max(n) AS n FROM {counts.format(other)} GROUP BY w)"
    text = f"SELECT x.id, x.n FROM {counts.format(TEN_MINUTES)} x JOIN {most} y ON x.w = y.w AND x.n = y.n"
    codes = [note.code for note in advice(f"CREATE LIVE TABLE t AS {text}")]
    assert ("GROUPS_TWICE" in codes) == twice
