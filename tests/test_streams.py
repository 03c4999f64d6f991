"""Streams of every connector, and what is fixed when one is created."""

from __future__ import annotations

import datetime as dt
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole

from streamsql.errors import RuleFault, Source, StreamsqlError
from streamsql.language.parser import parse_text
from streamsql.language.statements.insert import Insert
from streamsql.results import Rows, Text

ROOMS = ("streamsql/connectors/", "streamsql/runtime/", "streamsql/plan/")


def shown(console: Console, statement: str) -> str:
    result = console.run(statement)[-1]
    assert isinstance(result, Text)
    return result.text


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "text"])
def test_a_file_sink_is_read_back_as_a_stream(console: Console, tmp_path: Path, format: str) -> None:
    column = "CAST(n AS STRING) AS value" if format == "text" else "n, word"
    columns = "" if format == "text" else "(n INT, word STRING)"
    console.run(
        f"""CREATE STREAM v (n INT, word STRING) USING values;
        CREATE SINK out USING {format} OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT {column} FROM v;
        INSERT INTO v VALUES (1, 'a'), (2, 'b'); AWAIT QUERY out IDLE;
        CREATE STREAM back {columns} USING {format} OPTIONS (path '{tmp_path}/out');"""
    )
    expected = [("1",), ("2",)] if format == "text" else [(1, "a"), (2, "b")]
    assert sorted(console.rows("SELECT * FROM back;")) == expected


def test_columns_are_inferred_once_and_kept(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,price,at\n1,2.5,2024-01-01 00:00:00\n")
    result = console.run(f"CREATE STREAM s USING csv OPTIONS (path '{tmp_path}/in', header true);")[0]
    assert notes_of(result) == ("columns of s, as inferred and recorded: id int, price double, at timestamp",)
    put_whole(tmp_path / "in" / "b.csv", "id,price,at\n2,3,2024-01-02 00:00:00\n")
    rows = console.run("SELECT * FROM s;")[0]
    assert isinstance(rows, Rows)
    assert rows.columns == ("id", "price", "at")
    text = shown(console, "SHOW CREATE STREAM s;")
    assert text.startswith("CREATE STREAM s (id int, price double, at timestamp)\n  USING csv")
    console.run("DROP STREAM s;")
    console.run(text)
    assert shown(console, "SHOW CREATE STREAM s;") == text


def test_partition_directories_become_columns(console: Console, tmp_path: Path) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        (tmp_path / "in" / f"day={day}" / "a.json").write_text('{"n": 1}\n')
    console.run(f"CREATE STREAM s USING json OPTIONS (path '{tmp_path}/in');")
    assert sorted(console.rows("SELECT n, CAST(day AS STRING) FROM s;")) == [
        (1, "2024-01-01"),
        (1, "2024-01-02"),
    ]


def test_partitioned_by_writes_directories(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM v (n INT, k STRING) USING values;
        CREATE SINK out USING parquet PARTITIONED BY (k) OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT * FROM v; INSERT INTO v VALUES (1, 'a'), (2, 'b'); AWAIT QUERY out IDLE;"""
    )
    assert {p.name for p in (tmp_path / "out").glob("k=*")} == {"k=a", "k=b"}


def test_a_sink_with_columns_casts_to_them(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM v (n INT) USING values;
        CREATE SINK out (total BIGINT, note STRING) USING parquet OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT n, n FROM v; INSERT INTO v VALUES (1); AWAIT QUERY out IDLE;"""
    )
    types = console.rows(f"SELECT typeof(total), typeof(note) FROM parquet.`{tmp_path}/out`;")
    assert types == [("bigint", "string")]


def test_a_static_select_into_a_sink_is_one_batch(console: Console, tmp_path: Path) -> None:
    console.run(f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out'); INSERT INTO out SELECT 1 AS n;")
    assert console.rows(f"SELECT * FROM json.`{tmp_path}/out`;") == [(1,)]
    assert console.rows("SHOW QUERIES;") == []


def test_values_are_cast_and_missing_columns_are_null(console: Console) -> None:
    console.run(
        """CREATE STREAM v (n BIGINT, word STRING, at TIMESTAMP, tags ARRAY<STRING>) USING values;
        INSERT INTO v (at, n) VALUES ('2024-01-01 00:00:00', 1);
        INSERT INTO v SELECT 2, 'x', TIMESTAMP '2024-01-02 00:00:00', array('a', 'b');"""
    )
    assert console.rows("SELECT n, word, CAST(at AS STRING), tags FROM v;") == [
        (1, None, "2024-01-01 00:00:00", None),
        (2, "x", "2024-01-02 00:00:00", ["a", "b"]),
    ]


def test_values_of_the_wrong_number_are_refused(console: Console) -> None:
    console.run("CREATE STREAM v (n INT, word STRING) USING values;")
    with pytest.raises(StreamsqlError, match=r"(?i)number of columns|columns"):
        console.run("INSERT INTO v VALUES (1);")
    console.run("INSERT INTO v VALUES (1, 'a');")
    assert console.rows("SELECT * FROM v;") == [(1, "a")]


def test_each_insert_of_values_is_one_micro_batch(console: Console) -> None:
    console.run("CREATE STREAM v (n INT) USING values; CREATE LIVE TABLE t AS SELECT n FROM v;")
    for n in range(3):
        console.run(f"INSERT INTO v VALUES ({n}), ({n + 10});")
    console.run("AWAIT QUERY t IDLE;")
    progress = console.run("SHOW PROGRESS t;")[0]
    assert isinstance(progress, Rows)
    assert [r[2] for r in progress.rows if r[2]] == [2, 2, 2]
    assert console.rows("SELECT n FROM t;") == [(0,), (10,), (1,), (11,), (2,), (12,)]


def test_a_computed_watermark_column(console: Console) -> None:
    console.run(
        """CREATE STREAM v (t STRING) USING values WITH WATERMARK to_timestamp(t) AS at DELAY '1 minute';
        CREATE LIVE TABLE w AS SELECT window.start AS s, count(*) AS c FROM v GROUP BY window(at, '1 hour');
        INSERT INTO v VALUES ('2024-01-01 10:20:00'), ('2024-01-01 10:40:00'); AWAIT QUERY w IDLE;"""
    )
    assert console.rows("SELECT CAST(s AS STRING), c FROM w;") == [("2024-01-01 10:00:00", 2)]


def test_a_stream_is_a_relation_in_any_query_and_view(console: Console) -> None:
    console.run(
        """CREATE STREAM v (n INT) USING values; INSERT INTO v VALUES (1), (2), (3);
        CREATE STREAM big AS SELECT n FROM v WHERE n > 1;
        CREATE TEMPORARY VIEW tens AS SELECT n * 10 AS ten FROM big;"""
    )
    assert sorted(console.rows("SELECT ten FROM tens;")) == [(20,), (30,)]
    assert sorted(console.rows("SELECT * FROM (SELECT n FROM big) x WHERE x.n < 3;")) == [(2,)]
    assert sorted(console.rows("FROM big |> WHERE n = 3;")) == [(3,)]
    assert sorted(console.rows("SELECT * FROM STREAM v WHERE n = 1;")) == [(1,)]


def test_datagen_gives_the_same_rows_in_every_run(console: Console) -> None:
    statement = """CREATE OR REPLACE STREAM g (id BIGINT, k STRING, r INT, d DOUBLE, s INT, e STRING, at TIMESTAMP)
        USING datagen OPTIONS (rowsPerBatch 100, seed {seed}, 'fields.k' 'choice a, b, c', 'fields.r' 'random 5 to 9',
        'fields.d' 'random 0 to 1', 'fields.s' 'skew 1 to 10', 'fields.e' 'expression concat("x", n)',
        'fields.at' 'event_time every 1 second late up to 5 seconds');"""
    runs = []
    for seed in (1, 1, 2):
        console.run(statement.format(seed=seed))
        runs.append(sorted(console.rows("SELECT * FROM g;")))
    assert runs[0] == runs[1] != runs[2]
    rows = runs[0]
    assert [r[0] for r in rows] == list(range(100))
    assert {r[1] for r in rows} == {"a", "b", "c"}
    assert {r[2] for r in rows} == {5, 6, 7, 8, 9}
    assert all(0 <= r[3] < 1 for r in rows)
    assert sum(r[4] == 1 for r in rows) > 25  # a tenth of the values, far more than a tenth of the rows
    assert rows[7][5] == "x7"
    start = dt.datetime(2024, 1, 1)
    late = [start + dt.timedelta(seconds=r[0]) - r[6] for r in rows]
    assert all(dt.timedelta(0) <= x <= dt.timedelta(seconds=5) for x in late)


def test_rate_micro_batch(console: Console) -> None:
    console.run("CREATE STREAM r USING rate-micro-batch OPTIONS (rowsPerBatch 3);")
    assert sorted(console.rows("SELECT value FROM r;")) == [(0,), (1,), (2,)]


def test_a_select_over_a_source_with_nothing_yet_says_so(console: Console) -> None:
    console.run("CREATE STREAM r USING rate;")
    result = console.run("SELECT * FROM r;")[0]
    assert isinstance(result, Rows)
    assert result.rows == []
    assert notes_of(result)[0].startswith(
        "no data: r had no rows at this moment, and rate gives rows over time"
    )


@pytest.mark.parametrize(("format", "line"), [("json", '{"n": 7, "word": "x"}'), ("csv", "7,x")])
def test_socket_lines_become_columns(console: Console, format: str, line: str) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = server.accept()
        with peer:
            peer.sendall((line + "\n").encode())
            peer.recv(1)  # until the query has ended

    threading.Thread(target=serve, daemon=True).start()
    port = server.getsockname()[1]
    console.run(
        f"""CREATE STREAM s (n INT, word STRING) USING socket FORMAT {format}
            OPTIONS (host '127.0.0.1', port {port}, includeTimestamp true);
        CREATE LIVE TABLE t AS SELECT n, word, _value, _timestamp IS NOT NULL AS stamped FROM s;"""
    )
    rows: list[tuple[Any, ...]] = []
    while not rows:
        console.run("AWAIT QUERY t IDLE TIMEOUT INTERVAL 60 SECONDS;")
        rows = console.rows("SELECT * FROM t;")
    assert rows == [(7, "x", line, True)]
    console.run("STOP QUERY t;")
    server.close()


def test_secrets_are_shown_nowhere(console: Console) -> None:
    statement = (
        "CREATE STREAM s (n INT) USING json OPTIONS (path '/tmp', 'fs.s3a.secret.key' 'hush', locale 'en')"
    )
    with pytest.raises(StreamsqlError) as refused:
        console.run(statement + ";")
    from streamsql.output.error_text import format_error

    assert "hush" not in format_error(refused.value)
    console.run("SET spark.hadoop.fs.s3a.secret.key = hush;")
    for show in ("SET;", "SET spark.hadoop.fs.s3a.secret.key;"):
        assert "hush" not in str(console.rows(show))


def test_settings_tell_where_they_come_from(console: Console) -> None:
    console.run("SET spark.sql.shuffle.partitions = 3;")
    assert console.rows("SET spark.sql.shuffle.partitions;") == [("spark.sql.shuffle.partitions", "3", "SET")]
    assert console.session.spark.conf.get("spark.sql.shuffle.partitions") == "3"
    console.run("RESET spark.sql.shuffle.partitions;")
    assert console.rows("SET spark.sql.shuffle.partitions;") == [
        ("spark.sql.shuffle.partitions", "2", "streamsql")
    ]


def test_timestamps_are_shown_in_the_session_time_zone(console: Console) -> None:
    console.run("SET spark.sql.session.timeZone = Asia/Tokyo;")
    rows = console.rows(
        "SELECT TIMESTAMP '2024-01-01 12:00:00' AS t, struct(TIMESTAMP '2024-01-01 12:00:00' AS x) AS s;"
    )
    noon = dt.datetime(2024, 1, 1, 12)
    assert rows == [(noon, {"x": noon})]
    console.session.spark.conf.set("spark.sql.session.timeZone", "UTC")
    console.session.parts.settings.changed.clear()


def test_define_and_variables(console: Console) -> None:
    assert console.rows("DEFINE n = 5; DEFINE name = 'x y'; SELECT ${n} + 1 AS a, '${name}' AS b;") == [
        (6, "x y")
    ]


def test_the_watermark_of_a_json_stream_without_declared_columns(console: Console, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"ts": "2026-01-01T10:00:00", "code": "2024", "at": "noon"}')
    made = f"CREATE STREAM {{}} USING json OPTIONS (path '{tmp_path}') WITH WATERMARK {{}} DELAY '1 minute';"
    done = console.run(made.format("s", "ts"))[0]
    # Only the watermark's own column: a code such as 2024 stays a text.
    assert "at string, code string, ts timestamp" in notes_of(done)[0]
    assert console.rows("SELECT code, ts FROM s;") == [("2024", dt.datetime(2026, 1, 1, 10))]
    with pytest.raises(RuleFault) as raised:
        console.run(made.format("t", "at"))
    assert raised.value.message == "the watermark's column at is string, not a timestamp"
    assert "to_timestamp(at)" in raised.value.hint


def test_short_units_of_time_are_read_as_spark_takes_them(console: Console) -> None:
    created = "CREATE STREAM s (ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1.5 h';"
    console.run(created + "CREATE SINK n USING noop; INSERT INTO n TRIGGER EVERY '100 ms' SELECT * FROM s;")
    assert console.rows("SHOW STREAMS;")[0][3] == "ts, 5400 seconds"
    assert console.session.parts.queries.all["n"].status() == "running"
    assert "every 100 milliseconds" in console.rows("SHOW QUERIES;")[0]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("10 minutes", "10 minutes"),
        ("interval 10 MINUTES", "10 minutes"),
        ("10min 30s", "10 minutes 30 seconds"),
        ("100ms", "100 milliseconds"),
        ("0.5 ms", "0.0005 seconds"),
        ("1.5 seconds", "1.5 seconds"),
        ("2 d", "2 days"),
        ("3 hrs", "3 hours"),
        ("1 m", "1 minutes"),
        ("7 us", "7 microseconds"),
    ],
)
def test_spark_takes_every_length_of_time_that_is_taken_here(spark: Any, written: str, read: str) -> None:
    statement = parse_text(Source("", f"INSERT INTO t TRIGGER EVERY '{written}' SELECT 1"))
    assert isinstance(statement, Insert)
    assert statement.trigger
    assert statement.trigger.interval == read
    spark._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(read)


def test_a_view_that_a_new_spark_cannot_make_again_is_said_and_tried_again(
    console: Console, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"a": 1}')
    console.run(
        f"CREATE TEMPORARY VIEW v (a INT) USING json OPTIONS (path '{tmp_path}/in');"
        "CREATE TEMPORARY VIEW w AS SELECT 2 AS b; CREATE TEMPORARY VIEW gone AS SELECT 3 AS c; DROP VIEW gone;"
    )
    (tmp_path / "in").rename(tmp_path / "away")
    session = console.session
    for name in ("v", "w"):
        session.spark.catalog.dropTempView(name)
    session.parts.temporary.restore(session.spark)  # as on a new Spark
    (said,) = notes_of(console.run("SELECT b FROM w;")[0])
    assert said.startswith("the temporary view v could not be restored: ")
    assert "that names it retries" in said
    with pytest.raises(StreamsqlError, match="the temporary view v cannot be restored: .*") as caught:
        console.run("SELECT a FROM v;")
    assert "CREATE OR REPLACE TEMPORARY VIEW v" in caught.value.hint
    (tmp_path / "away").rename(tmp_path / "in")
    assert console.rows("SELECT a FROM v;") == [(1,)]
    assert not any(t.name == "gone" for t in session.spark.catalog.listTables())


def test_lists_show_the_columns_of_a_stream_that_is_a_query_and_comments(console: Console) -> None:
    console.run(
        """CREATE STREAM a (id INT, n INT) USING values COMMENT 'all of it';
        CREATE STREAM b AS SELECT id, n * 2 AS twice FROM a;
        CREATE STREAM c AS SELECT * FROM b WHERE twice > 1;
        CREATE LIVE TABLE t COMMENT 'kept' AS SELECT id, count(*) AS c FROM a GROUP BY id;"""
    )
    columns = {name: (shown, comment) for name, _, shown, _, comment in console.rows("SHOW TABLES;")}
    assert columns == {
        "a": ("id, n", "all of it"), "b": ("id, twice", ""), "c": ("id, twice", ""), "t": ("id, c", "kept"),
    }  # fmt: skip
    assert [row[2] for row in console.rows("SHOW STREAMS;")] == ["id, n", "id, twice", "id, twice"]
    assert ("columns", "id, twice") in console.rows("DESCRIBE STREAM c;")
    assert ("comment", "kept") in console.rows("DESCRIBE LIVE TABLE t;")
    console.run("DROP STREAM c; DROP STREAM b; DROP LIVE TABLE t; DROP STREAM a;")


def test_columns_with_the_names_of_literals(console: Console) -> None:
    console.run(
        """CREATE STREAM s (`true` STRING, `null` INT, `not` INT) USING values;
        CREATE LIVE TABLE ranked AS SELECT *, rank() OVER (ORDER BY `not`) AS `all` FROM s;
        CREATE LIVE TABLE counts AS SELECT `true`, count(*) AS `null` FROM s GROUP BY `true`;
        INSERT INTO s VALUES ('x', 1, 2); AWAIT QUERY ALL IDLE;"""
    )
    assert console.rows("SELECT * FROM ranked;") == [("x", 1, 2, 1)]
    assert console.rows("SELECT `true`, `null` FROM counts;") == [("x", 1)]
