"""Live tables: rows by key in update mode, the whole result in complete mode, a bounded tail in append mode."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from conftest import Console, notes_of
from pyspark.sql.types import LongType, StructType

from streamsql.errors import StreamsqlError
from streamsql.output.cells import text
from streamsql.results import Started
from streamsql.runtime.embedded.live_rows import LiveRows, RowsAt

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

WORDS = "CREATE STREAM words (word STRING, n INT) USING values;"


def mode_of(console: Console, name: str) -> str:
    return console.session.parts.queries.all[name].mode


def test_update_mode_shows_each_group_once_and_its_newest_row(console: Console) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE counts AS SELECT word, sum(n) AS n FROM words GROUP BY word;")
    for values in ("('a', 1), ('b', 2)", "('a', 10)", "('c', 5), ('b', NULL)"):
        console.run(f"INSERT INTO words VALUES {values}; AWAIT QUERY counts IDLE;")
    assert mode_of(console, "counts") == "update"
    assert console.rows("SELECT * FROM counts ORDER BY word;") == [("a", 11), ("b", 2), ("c", 5)]


def test_keys_may_be_null_and_structs_and_hold_any_text(console: Console) -> None:
    console.run(
        f"""{WORDS}
        CREATE LIVE TABLE counts AS
        SELECT word, named_struct('x', word, 'n', n) AS s, count(*) AS c
        FROM words GROUP BY word, named_struct('x', word, 'n', n);"""
    )
    rows = "(NULL, 1), ('a, b', 1), ('a', NULL), ('\"', 1), ('{}', 1)"
    for _ in range(2):
        console.run(f"INSERT INTO words VALUES {rows}; AWAIT QUERY counts IDLE;")
    assert mode_of(console, "counts") == "update"
    assert console.rows("SELECT c, count(*) FROM counts GROUP BY c;") == [(2, 5)]


@pytest.mark.slow
def test_group_by_all_has_the_mode_and_the_rows_of_its_keys(console: Console) -> None:
    console.run(
        """CREATE STREAM g (k STRING, v INT, at TIMESTAMP) USING values
          WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
        INSERT INTO g VALUES ('a', 1, '2024-05-01 12:00:00'), ('a', 2, '2024-05-01 12:10:00'),
          ('b', 3, '2024-05-01 12:20:00');
        CREATE LIVE TABLE t AS SELECT k, count(*) AS n FROM g GROUP BY ALL;
        CREATE LIVE TABLE w OUTPUT MODE APPEND AS
          SELECT window(at, '10 minutes').start AS since, window(at, '10 minutes').end AS until, upper(k) AS k,
            sum(v) AS n FROM g GROUP BY ALL;
        CREATE LIVE TABLE one AS SELECT 1 AS one, k, count(*) AS n FROM g GROUP BY ALL;
        AWAIT QUERY ALL IDLE;"""
    )
    assert mode_of(console, "t") == "update"
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 2), ("b", 1)]
    # The watermark closes its windows.
    closed = console.rows(
        "SELECT date_format(since, 'HH:mm'), date_format(until, 'HH:mm'), k, n FROM w ORDER BY 1;"
    )
    assert closed == [("12:00", "12:10", "A", 1)]
    assert sorted(console.rows("SELECT * FROM one;")) == [(1, "a", 2), (1, "b", 1)]
    assert sorted(console.rows("SELECT k, max(n) FROM t GROUP BY ALL;")) == [("a", 2), ("b", 1)]


def test_a_global_aggregation_is_one_row(console: Console) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE total AS SELECT count(*) AS c, sum(n) AS s FROM words;")
    for _ in range(2):
        console.run("INSERT INTO words VALUES ('a', 1), ('b', 2); AWAIT QUERY total IDLE;")
    assert console.rows("SELECT * FROM total;") == [(4, 6)]


def test_a_group_that_a_filter_takes_out_again_is_not_kept(console: Console) -> None:
    """HAVING count(*) < 2: the rows of output mode update say themselves whether they are kept."""
    started = console.run(
        f"""{WORDS} CREATE LIVE TABLE once AS
        SELECT word, count(*) AS c FROM words GROUP BY word HAVING count(*) < 2;"""
    )[-1]
    assert isinstance(started, Started)
    assert "output mode update: " in notes_of(started)[0]
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY once IDLE;")
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY once IDLE;")
    assert console.rows("SELECT * FROM once;") == [("b", 1)]


def test_keys_that_are_renamed_or_left_out_behind_the_aggregation(console: Console) -> None:
    console.run(
        f"""{WORDS}
        CREATE LIVE TABLE renamed AS
        SELECT w AS name, c * 2 AS twice FROM (SELECT word AS w, count(*) AS c FROM words GROUP BY word);
        CREATE LIVE TABLE left_out AS
        SELECT c FROM (SELECT word AS w, count(*) AS c FROM words GROUP BY word);"""
    )
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY ALL IDLE;")
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY ALL IDLE;")
    assert (mode_of(console, "renamed"), mode_of(console, "left_out")) == ("update", "update")
    assert console.rows("SELECT * FROM renamed ORDER BY name;") == [("a", 4), ("b", 2)]
    assert console.rows("SELECT * FROM left_out ORDER BY c;") == [(1,), (2,)]


def test_groups_of_two_sides_of_a_union_are_not_mixed_up(console: Console) -> None:
    console.run(
        f"""{WORDS}
        CREATE LIVE TABLE both AS
        SELECT word, count(*) AS c FROM words GROUP BY word
        UNION ALL SELECT word, sum(n) AS c FROM words GROUP BY word;
        INSERT INTO words VALUES ('a', 7); AWAIT QUERY both IDLE;"""
    )
    assert console.rows("SELECT * FROM both ORDER BY c;") == [("a", 1), ("a", 7)]


def test_an_aggregation_joined_with_a_table_keeps_all_matches(console: Console) -> None:
    console.run(
        f"""{WORDS}
        CREATE TEMPORARY VIEW tags AS SELECT * FROM VALUES ('a', 'x'), ('a', 'y'), ('b', 'z') AS t(word, tag);
        CREATE LIVE TABLE tagged AS
        SELECT c.word, t.tag, c.n FROM (SELECT word, count(*) AS n FROM words GROUP BY word) c
        JOIN tags t ON c.word = t.word;"""
    )
    for _ in range(2):
        console.run("INSERT INTO words VALUES ('a', 1), ('b', 1); AWAIT QUERY tagged IDLE;")
    assert console.rows("SELECT * FROM tagged ORDER BY word, tag;") == [
        ("a", "x", 2),
        ("a", "y", 2),
        ("b", "z", 2),
    ]


def test_key_keeps_the_last_row_of_each_value(console: Console) -> None:
    console.run(
        f"{WORDS} CREATE LIVE TABLE newest OUTPUT MODE UPDATE KEY (word) AS SELECT word, n FROM words;"
    )
    console.run("INSERT INTO words VALUES ('a', 1), ('b', 1), ('a', 2); AWAIT QUERY newest IDLE;")
    console.run("INSERT INTO words VALUES ('b', 3); AWAIT QUERY newest IDLE;")
    assert console.rows("SELECT * FROM newest ORDER BY word;") == [("a", 2), ("b", 3)]


def test_complete_mode_replaces_the_whole_result_and_can_be_sorted(console: Console) -> None:
    console.run(
        f"""{WORDS} CREATE LIVE TABLE top AS
        SELECT word, count(*) AS c FROM words GROUP BY word ORDER BY c DESC LIMIT 1;"""
    )
    console.run("INSERT INTO words VALUES ('a', 1), ('a', 1), ('b', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("a", 2)]
    console.run("INSERT INTO words VALUES ('b', 1), ('b', 1); AWAIT QUERY top IDLE;")
    assert console.rows("SELECT * FROM top;") == [("b", 3)]
    assert mode_of(console, "top") == "complete"


def test_append_mode_keeps_a_bounded_tail_and_says_so(console: Console) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE tail RETAIN 3 ROWS AS SELECT n FROM words;")
    for n in range(5):
        console.run(f"INSERT INTO words VALUES ('a', {n}); AWAIT QUERY tail IDLE;")
    assert console.rows("SELECT * FROM tail;") == [(2,), (3,), (4,)]
    shown = console.rows("SHOW LIVE TABLES;")
    assert shown[0][:4] == ("tail", 3, 2, "append")


def test_an_empty_live_table_has_its_columns(console: Console) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE t AS SELECT word, n FROM words;")
    result = console.run("SELECT * FROM t;")[0]
    assert result.columns == ("word", "n")  # type: ignore[attr-defined]
    assert result.rows == []  # type: ignore[attr-defined]


def test_a_live_table_joins_with_tables_and_other_live_tables(console: Console) -> None:
    console.run(
        f"""{WORDS}
        CREATE LIVE TABLE counts AS SELECT word, count(*) AS c FROM words GROUP BY word;
        CREATE LIVE TABLE sums AS SELECT word, sum(n) AS s FROM words GROUP BY word;
        INSERT INTO words VALUES ('a', 3), ('a', 4), ('b', 1); AWAIT QUERY ALL IDLE;"""
    )
    joined = "SELECT c.word, c.c, s.s FROM counts c JOIN sums s USING (word) WHERE c.c IN (SELECT max(c) FROM counts);"
    assert console.rows(joined) == [("a", 2, 7)]


def test_insert_into_a_memory_sink_feeds_a_live_table(console: Console) -> None:
    console.run(
        f"""{WORDS} CREATE SINK m USING memory RETAIN 2 ROWS;
        INSERT INTO m AS QUERY feeding SELECT n FROM words;
        INSERT INTO words VALUES ('a', 1), ('a', 2), ('a', 3); AWAIT QUERY feeding IDLE;"""
    )
    assert console.rows("SELECT * FROM m;") == [(2,), (3,)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "INSERT INTO m AS QUERY feeding SELECT n FROM words",
            "INSERT INTO m AS QUERY other SELECT n + 10 FROM words",
        ),
        ("INSERT INTO m SELECT n FROM words", "INSERT INTO m SELECT n + 10 FROM words"),
        (
            "CREATE LIVE TABLE m AS WITH w AS (SELECT n FROM words) SELECT n FROM w",
            "INSERT INTO m SELECT n + 10 FROM words",
        ),
    ],
)
def test_a_second_insert_is_refused_with_both_written_as_one(
    console: Console, first: str, second: str
) -> None:
    sink = "" if first.startswith("CREATE") else "CREATE SINK m USING memory;"
    console.run(f"{WORDS} {sink} {first}; INSERT INTO words VALUES ('a', 1), ('b', 2);")
    with pytest.raises(StreamsqlError, match="the query (feeding|m) already feeds m") as caught:
        console.run(f"{second};")
    assert "UNION ALL" in caught.value.hint
    console.run(f"{caught.value.hint} AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT * FROM m ORDER BY n;") == [(1,), (2,), (11,), (12,)]


def test_replace_keeps_the_old_table_when_the_new_one_is_refused(console: Console) -> None:
    console.run(f"{WORDS} CREATE LIVE TABLE t AS SELECT n FROM words;")
    console.run("INSERT INTO words VALUES ('a', 1); AWAIT QUERY t IDLE;")
    for bad in (
        "SELECT nn FROM words",
        "SELECT n FROM words ORDER BY n",
        "SELECT count(DISTINCT n) FROM words",
    ):
        with pytest.raises(StreamsqlError):
            console.run(f"CREATE OR REPLACE LIVE TABLE t OUTPUT MODE APPEND AS {bad};")
    assert console.rows("SELECT * FROM t;") == [(1,)]
    assert console.session.parts.queries.all["t"].status() == "running"
    console.run("CREATE OR REPLACE LIVE TABLE t AS SELECT n + 1 AS m FROM words; AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t;") == [(2,)]


def test_a_batch_that_comes_twice_counts_once(spark: Any) -> None:
    """After a failure Spark hands the last micro-batch over again, under the same number."""
    rows = LiveRows(spark.range(0).schema, "append", None, 100)
    rows.feed(spark.range(3), 0)
    rows.feed(spark.range(3), 0)
    rows.feed(spark.range(2), 1)
    assert [r.id for r in rows.frame(spark).collect()] == [0, 1, 2, 0, 1]


def test_a_few_changes_do_not_copy_a_large_table(spark: Any) -> None:
    """Two versions of the rows are there within a micro-batch; they share the rows that have not changed."""
    schema = StructType().add("k", LongType()).add("n", LongType())

    def batch(keys: Iterable[int], n: int) -> Any:
        texts = pa.array([f'{{"k":{k}}}' for k in keys], pa.string())
        numbers = pa.array([n] * len(texts), pa.int64())
        return pa.table({"k": pa.array(keys, pa.int64()), "n": numbers, LiveRows.KEY: texts})

    rows = LiveRows(schema, "update", ["k"], 100)
    for number in range(2):
        rows.take(batch([], 0), number - 2)
        assert rows.table.num_rows == 0
    rows.take(batch(range(100_000), 0), 0)
    empty = pa.total_allocated_bytes()
    grown: list[int] = []
    rows.watch(lambda before, after, new: grown.append(pa.total_allocated_bytes() - empty))
    expected = dict.fromkeys(range(100_000), 0)
    for number in range(1, 8):
        keys = [*range(number, 100_000, 9_973), *range(500, 505), 99_999]
        expected.update(dict.fromkeys(keys, number))
        rows.take(batch(keys, number), number)
        current = rows.table.select(["k", "n"]).to_pydict()
        assert dict(zip(current["k"], current["n"], strict=True)) == expected
        assert rows.table.num_rows == 100_000
    assert max(grown) < rows.table.nbytes / 10
    for number in range(8, 20):
        keys = range(number, 100_000, 1_001)
        expected.update(dict.fromkeys(keys, number))
        rows.take(batch(keys, number), number)
    assert rows.table.column(0).num_chunks <= 101
    assert {r.k: r.n for r in rows.frame(spark).collect()} == expected


def test_limit_reads_as_much_of_a_hundred_thousand_rows_as_of_a_thousand(console: Console) -> None:
    """Only the rows asked for are handed to Spark, so the size of the table does not matter."""
    console.run(f"{WORDS} CREATE LIVE TABLE big AS SELECT n FROM words; AWAIT QUERY big IDLE;")
    live = console.session.parts.live["big"]
    live.table = pa.table({"n": pa.array(range(100_000), pa.int32())})
    handed: list[int] = []
    original = live.frame

    def counting(spark: Any, limit: int | None = None) -> Any:
        frame = original(spark, limit)
        handed.append(frame.count())
        return frame

    live.frame = counting
    assert len(console.rows("SELECT * FROM big LIMIT 20;")) == 20
    assert len(console.rows("SELECT n * 2 AS twice FROM big LIMIT 20;")) == 20
    assert handed == [20, 20]
    assert console.rows("SELECT n FROM big WHERE n >= 99999 LIMIT 20;") == [(99_999,)]
    assert console.rows("SELECT n FROM big ORDER BY n DESC LIMIT 1;") == [(99_999,)]
    assert console.rows("SELECT count(*) FROM big LIMIT 1;") == [(100_000,)]


@pytest.mark.slow
def test_a_running_refresh_is_seen_by_the_next_select(console: Console) -> None:
    console.run(
        "CREATE STREAM r USING rate OPTIONS (rowsPerSecond 50); CREATE LIVE TABLE t AS SELECT value FROM r;"
    )
    deadline = time.monotonic() + 60
    seen = [console.rows("SELECT count(*) FROM t;")[0][0]]
    while len(set(seen)) < 3:
        assert time.monotonic() < deadline, seen
        seen.append(console.rows("SELECT count(*) FROM t;")[0][0])
    assert seen == sorted(seen)


def test_the_hour_that_comes_twice_is_two_keys(console: Console) -> None:
    try:
        console.run(
            """SET spark.sql.session.timeZone = 'Europe/Berlin';
            CREATE STREAM s (at TIMESTAMP) USING values;
            CREATE LIVE TABLE t AS SELECT at, count(*) AS n FROM s GROUP BY at;
            INSERT INTO s VALUES (TIMESTAMP '2024-10-27T00:30:00Z'); AWAIT QUERY t IDLE;
            INSERT INTO s VALUES (TIMESTAMP '2024-10-27T01:30:00Z'); AWAIT QUERY t IDLE;"""
        )
        assert console.rows("SELECT unix_seconds(at) % 86400 AS s, n FROM t ORDER BY at;") == [
            (1800, 1),
            (5400, 1),
        ]
    finally:
        console.session.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_an_empty_part_of_a_table_hides_no_row_behind_it(console: Console) -> None:
    empty, one, two = (pa.table({"n": pa.array(v, pa.int64())}) for v in ([], [1], [2]))
    for parts in ([empty, empty, one, two], [one, empty, two], [empty, one, empty, two]):
        at = RowsAt(StructType().add("n", LongType()), pa.concat_tables(parts), 0)
        assert sorted(r.n for r in at.frame(console.session.spark).collect()) == [1, 2]


def test_shapes_are_shown_with_reference_system_and_bytes(console: Console) -> None:
    point = "0x0101000000000000000000f03f0000000000000040"
    console.run(
        f"""CREATE STREAM s (k STRING) USING values; INSERT INTO s VALUES ('a'), (NULL);
        CREATE LIVE TABLE t AS SELECT st_geomfromwkb(CASE WHEN k = 'a' THEN X'{point[2:]}' END) AS g,
        array(st_geogfromwkb(X'{point[2:]}')) AS l FROM s; AWAIT QUERY t IDLE;"""
    )
    shown = {tuple(map(text, row)) for row in console.rows("SELECT * FROM t;")}
    geometry, geography = (f"{{srid: {srid}, wkb: {point}}}" for srid in (0, 4326))
    assert shown == {(geometry, f"[{geography}]"), ("NULL", f"[{geography}]")}
    assert shown == {tuple(map(text, row)) for row in console.rows("SELECT g, l FROM (SELECT * FROM t);")}
    assert console.rows("SELECT st_srid(g), st_srid(l[0]) FROM t WHERE g IS NOT NULL;") == [(0, 4326)]
