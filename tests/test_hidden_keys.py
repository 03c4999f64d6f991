"""Groups are told apart in output mode update, whether their keys are selected or not, and leave a live table
when a condition takes them out. Each live table is compared with the same SELECT over all rows as a batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_reopened import Open, opened  # noqa: F401  a fixture

from streamsql.errors import StreamsqlError
from streamsql.output.live_frames import View, frame
from streamsql.results import Live

ROOMS = ("streamsql/plan/lowering/",)

WORDS = "CREATE STREAM words (word STRING, n INT, `a.b` STRING, who STRUCT<name: STRING>) USING values;"
TIMES = (
    "CREATE STREAM times (id INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;"
)
TAGS = (
    "CREATE TEMPORARY VIEW tags AS SELECT * FROM VALUES ('a', 'x'), ('a', 'y'), ('b', 'z') AS t(word, tag);"
)

BATCHES = (
    (("a", 1, "p", "u"), ("b", 2, "q", "u"), ("a", 3, "p", "v")),
    (("a", 4, "p", "u"), ("c", None, "p", "v")),
    (("b", 5, "q", "v"), ("b", 0, "q", "v"), (None, 1, None, "u")),
)
TIME_BATCHES = (
    ((1, "2024-05-01 12:01:00"), (1, "2024-05-01 12:02:00"), (2, "2024-05-01 12:07:00")),
    ((1, "2024-05-01 12:03:00"), (2, "2024-05-01 12:11:00")),
)

OVER_WORDS = {
    "unselected": "SELECT count(*) AS n FROM words GROUP BY word",
    "expressions": "SELECT n % 2, count(*) FROM words GROUP BY 1",
    "dotted": "SELECT `a.b`, count(*) AS n FROM words GROUP BY `a.b`, n",
    "fields": "SELECT who.name AS `w.h`, count(*) AS n FROM words GROUP BY who.name",
    "left_out": "SELECT c * 2 AS m FROM (SELECT word AS w, count(*) AS c FROM words GROUP BY word)",
    "by_cte": "WITH g AS (SELECT word AS w, count(*) AS c FROM words GROUP BY word) SELECT c, * FROM g WHERE c < 3",
    "by_stream": "SELECT c FROM grouped WHERE c > 1 AND w <> 'c'",
    "having_count": "SELECT word, count(*) AS c FROM words GROUP BY word HAVING count(*) < 2",
    "having_name": "SELECT word, sum(n) AS n FROM words GROUP BY word HAVING sum(n) > 2 AND count(*) < 3",
    "having_alias": "SELECT sum(n) AS total FROM words GROUP BY word HAVING total < 6",
    "having_key": "SELECT word, count(*) AS c FROM words GROUP BY word HAVING word <> 'b'",
    "guarded": "SELECT w, 12 / (c - 2) AS q FROM (SELECT word AS w, count(*) AS c FROM words GROUP BY word) "
    "WHERE c <> 2",
    "joined": "SELECT t.tag, g.c FROM (SELECT word, count(*) AS c FROM words GROUP BY word) g "
    "JOIN tags t ON g.word = t.word WHERE g.c < 3",
}
OVER_TIMES = {
    "window_cast": "SELECT CAST(window.start AS LONG) AS s, count(*) AS n FROM times "
    "GROUP BY id, window(at, '5 minutes')",
    "window_renamed": "SELECT window.start, n FROM (SELECT window(at, '5 minutes') AS window, count(*) AS n "
    "FROM times GROUP BY 1)",
}


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def values_of(batches: tuple[Any, ...]) -> str:
    """The rows of batches as VALUES."""

    def cell(value: object) -> str:
        return "NULL" if value is None else repr(value)

    def row(cells: tuple[Any, ...]) -> str:
        if len(cells) == 2:
            return f"({cells[0]}, TIMESTAMP '{cells[1]}')"
        return f"({', '.join(map(cell, cells[:3]))}, named_struct('name', {cell(cells[3])}))"

    return ", ".join(row(r) for batch in batches for r in batch)


def batch_rows(
    console: Console, query: str, stream: str, columns: str, batches: tuple[Any, ...]
) -> list[str]:
    """What the query gives over all rows at once."""
    spark = console.session.spark
    rows = f"SELECT * FROM VALUES {values_of(batches)} AS t({columns})"
    grouped = "SELECT word AS w, count(*) AS c FROM words GROUP BY word"
    head = f"{stream} AS ({rows})" + (f", grouped AS ({grouped})" if stream == "words" else "")
    text = query.replace("WITH ", f"WITH {head}, ") if query.startswith("WITH") else f"WITH {head} {query}"
    return shown([tuple(r) for r in spark.sql(text).collect()])


def check(
    console: Console, queries: dict[str, str], stream: str, columns: str, batches: tuple[Any, ...]
) -> None:
    """Each query as a live table over these micro-batches, and as a batch."""
    for at in range(len(batches)):
        console.run(f"INSERT INTO {stream} VALUES {values_of(batches[at : at + 1])};")
    for name, query in queries.items():
        console.run(f"CREATE LIVE TABLE {name} TRIGGER AVAILABLE NOW AS {query}; AWAIT QUERY {name};")
        assert console.session.parts.queries.all[name].mode == "update", name
        wanted = batch_rows(console, query, stream, columns, batches)
        assert shown(console.rows(f"SELECT * FROM {name};")) == wanted, name


@pytest.mark.slow
def test_groups_are_told_apart_whatever_is_selected(console: Console) -> None:
    grouped = "CREATE STREAM grouped AS SELECT word AS w, count(*) AS c FROM words GROUP BY word;"
    console.run(f"{WORDS} {TAGS} {grouped}")
    check(console, OVER_WORDS, "words", "word, n, `a.b`, who", BATCHES)
    described = console.rows("DESCRIBE LIVE TABLE having_alias;")
    assert not any("__" in str(cell) for row in described for cell in row)


@pytest.mark.slow
def test_windows_that_are_not_selected_leave_the_state_when_the_watermark_passes(console: Console) -> None:
    console.run(TIMES)
    check(console, OVER_TIMES, "times", "id, at", TIME_BATCHES)
    console.run(
        "INSERT INTO times VALUES (3, '2024-05-01 15:00:00'); START QUERY window_cast; AWAIT QUERY ALL;"
    )
    assert len(console.rows("SELECT * FROM window_cast;")) == 4
    [live] = console.run("WATCH window_cast;")
    assert isinstance(live, Live)
    assert len(frame(live, View(width=80)).lines) > 4  # none of its keys is shown
    live.close()
    last = console.session.parts.queries.all["window_cast"].progress()[-1]
    assert last["stateOperators"][0]["numRowsTotal"] == 1


def test_a_group_that_leaves_the_result_is_a_deletion(console: Console) -> None:
    console.run(
        f"{WORDS} CREATE LIVE TABLE once AS SELECT word FROM words GROUP BY word HAVING count(*) < 2;"
    )
    [live] = console.run("WATCH once AS CHANGES;")
    assert isinstance(live, Live)
    for at in range(2):
        console.run(f"INSERT INTO words VALUES {values_of(BATCHES[at : at + 1])}; AWAIT QUERY once IDLE;")
    assert live.changes(10, None, None).rows == [("+I", "b"), ("+I", "c")]
    console.run(f"INSERT INTO words VALUES {values_of(BATCHES[2:])}; AWAIT QUERY once IDLE;")
    assert sorted(live.changes(10, None, None).rows[2:], key=repr) == [("+I", None), ("-D", "b")]


def test_an_insert_names_the_columns_of_its_sink(console: Console) -> None:
    console.run(
        f"""{WORDS} CREATE SINK m (a INT, b BIGINT) USING memory; CREATE SINK swapped (a INT, b BIGINT) USING memory;
        INSERT INTO m (a, b) SELECT n % 5, count(*) FROM words GROUP BY 1;
        INSERT INTO swapped (b) SELECT count(*) FROM words GROUP BY word HAVING count(*) > 1;"""
    )
    for at in range(2):
        console.run(f"INSERT INTO words VALUES {values_of(BATCHES[at : at + 1])}; AWAIT QUERY ALL IDLE;")
    assert {q.mode for q in console.session.parts.queries.all.values()} == {"update"}
    assert shown(console.rows("SELECT * FROM m;")) == shown([(1, 1), (2, 1), (3, 1), (4, 1), (None, 1)])
    assert console.rows("SELECT * FROM swapped;") == [(None, 3)]
    with pytest.raises(StreamsqlError, match="the sink m has no column c"):
        console.run("INSERT INTO m (a, c) SELECT n, n FROM words;")


def test_a_table_of_an_earlier_version_goes_on_in_its_output_mode(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    one = opened()
    one.run(
        f"""{WORDS} CREATE LIVE TABLE t OUTPUT MODE COMPLETE AS SELECT count(*) AS n FROM words GROUP BY word;
        INSERT INTO words (word) VALUES ('a'), ('b'); AWAIT QUERY t IDLE; STOP QUERY t;"""
    )
    # That version chose the mode itself.
    [catalog] = tmp_path.rglob("catalog.sql")
    one.session.close()
    catalog.write_text(catalog.read_text().replace("OUTPUT MODE COMPLETE", ""))
    two = opened()
    [started] = two.run("START QUERY t;")
    assert notes_of(started) == (
        "output mode complete: as when t was created; "
        "CREATE OR REPLACE LIVE TABLE computes it in a faster one",
    )
    two.run("INSERT INTO words (word) VALUES ('a'), ('c'); AWAIT QUERY t IDLE;")
    assert sorted(two.rows("SELECT * FROM t;")) == [(1,), (1,), (2,)]
    two.run("STOP QUERY t; START QUERY t FROM BEGINNING; AWAIT QUERY t IDLE;")
    assert sorted(two.rows("SELECT * FROM t;")) == [(1,), (1,), (2,)]
    assert dict(two.rows("DESCRIBE QUERY t;"))["output mode"].startswith("update")
