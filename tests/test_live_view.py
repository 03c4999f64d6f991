"""Refreshing results: what is seen of them, without a terminal."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from scripts import run_here

from streamsql.errors import NameFault, RuleFault, Source, SyntaxFault, cells
from streamsql.output.chart import chart
from streamsql.output.cursor_places import one_by_one
from streamsql.output.live_frames import View, frame
from streamsql.query_facts import Account, Amount, QueryFacts
from streamsql.results import Live, Snapshot
from streamsql.runtime.checkpoints.checkpoint_files import batch_under_way

ROWS = [(i, f"name {i}", i * 1.5) for i in range(100)]


def live(rows: list[tuple[object, ...]] = ROWS, **status: object) -> Live:  # type: ignore[assignment]
    def take(count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        at = max(0, len(rows) - count) if first is None else first
        return Snapshot(("id", "name", "price"), (True, False, True), rows[at : at + count], len(rows), at)

    return Live(title="prices", take=take, changes=take, status=lambda: QueryFacts("prices", **status))  # type: ignore[arg-type]


def test_a_frame_fits_its_window_and_tells_what_it_shows_of_how_much() -> None:
    made = frame(live(account=Account(Amount(1234))), View(width=80, height=20), keys=((0, "q leave"),))
    assert len(made.lines) + len(made.footer) == 20
    assert made.footer == ("prices: rows 86-100 of 100 · running · 1,234 rows in · q leave",)
    for width, footer in (
        (40, "prices: rows 86-100 of 100 · q leave"),
        (30, "prices: rows 86-100… · q leave"),
    ):
        assert frame(
            live(account=Account(Amount(1234))), View(width=width, height=20), keys=((0, "q leave"),)
        ).footer == (footer,)
    assert "|   99 | name 99 |" in "\n".join(made.lines)
    assert "· 1 row/s" in frame(live(rows_per_second=1.2), View(width=80, height=20)).footer[0]
    # Rows may come before Spark's report about them.
    assert frame(live(), View(width=80, height=20)).footer == ("prices: rows 86-100 of 100 · running",)


@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_no_line_of_a_frame_is_wider_than_its_window(width: int) -> None:
    wide = [(i, "日本語 " * 10, 1.0) for i in range(5)]
    made = frame(
        live(wide, watermark="2026-01-01 00:00:00", account=Account(state=(("dedupe", 5),))),
        View(width=width, height=12),
    )
    assert max(cells(line) for line in (*made.lines, *made.footer)) <= width


def test_long_texts_are_cut_before_a_column_is_left_out() -> None:
    long = [(1, "a text that goes on and on", 1.5), (2, "short", 2.5)]
    assert frame(live(long), View(width=36, height=12)).lines[1:5] == (
        "|   id | name            |   price |",
        "|------+-----------------+---------|",
        "|    1 | a text that go… |     1.5 |",
        "|    2 | short           |     2.5 |",
    )
    assert "…" not in "".join(frame(live(long), View(width=60, height=12)).lines)
    number = [(10**16, "a text that goes on and on", 1.5)]  # numbers are never cut
    assert "| 10000000000000000 | a text …" in frame(live(number), View(width=42, height=12)).lines[3]


def test_emoji_of_several_characters_take_the_cells_that_a_screen_counts() -> None:
    for emoji, shown in (("👨‍👩‍👧", "👨"), ("👍🏽!", "👍!"), ("🇳🇴", "NO"), ("❤️.", "❤ ."), ("日本", "日本")):
        assert one_by_one(f"| {emoji} |") == f"| {shown} |"
        assert cells(emoji) == sum(map(cells, shown))


def test_columns_are_scrolled() -> None:
    made = frame(live(), View(width=80, height=20, column=1))
    assert "name" in made.lines[1]
    assert "id" not in made.lines[1]
    assert "from column 2 of 3" in made.footer[0]


def test_a_failed_query_says_so_in_the_frame() -> None:
    made = frame(live([], status="FAILED", error="query prices failed: division by zero"), View())
    assert made.footer[0] == "prices: 0 rows · FAILED: division by zero"
    last = frame(live([], status="FAILED", error="query prices failed"), View(), with_error=False)
    assert last.footer[0].endswith("FAILED · 0 rows in")
    narrow = frame(live([], status="FAILED", error="query prices failed: division by zero"), View(width=40))
    assert narrow.footer == ("prices: 0 rows · FAILED", "division by zero")
    assert len(narrow.lines) + len(narrow.footer) <= View().height


def test_an_empty_result_says_why() -> None:
    assert "waiting for rows" in frame(live([]), View()).footer[0]
    reading = frame(live([], reading="the first micro-batch: 1,900 files"), View()).footer[0]
    assert "reading the first micro-batch: 1,900 files" in reading


def test_the_micro_batch_under_way_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    assert batch_under_way(str(tmp_path)) == ""
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    (log / "0").write_text('v1\n{"path": "a"}\n{"path": "b"}')
    assert batch_under_way(f"file:{tmp_path}") == "the first micro-batch: 2 files"
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0").touch()
    assert batch_under_way(str(tmp_path)) == ""
    (tmp_path / "offsets" / "1").touch()
    assert batch_under_way(str(tmp_path)) == "micro-batch 1"


def test_a_frame_as_a_chart() -> None:
    made = frame(replace(live(), chart=("id", "price")), View(width=60, height=16, mode="chart"), ((0, "q"),))
    assert "price over id" in made.lines[0]
    assert made.lines[-1].strip() == "x: id   y: price"
    assert len(made.lines) + len(made.footer) <= 16
    assert max(map(cells, made.lines)) <= 60


def test_a_chart_over_windows_tells_their_times() -> None:
    rows = [({"start": dt.datetime(2026, 1, 1, 12, i), "end": None}, i, None) for i in range(10)]
    lines = chart(rows, 70, 12, axes=("w", "n"))
    assert lines[-2].split() == ["12:00", "12:02", "12:04", "12:06", "12:08"]
    assert (lines[-1].strip(), len(lines)) == ("x: w (2026-01-01)   y: n", 12)


def test_a_chart_over_texts_has_bars_the_largest_on_top() -> None:
    rows = [("low", 1, None), ("high", 9, None), (None, 5, None), ("none", None, None), ("日本", -3, None)]
    assert chart(rows, 40, 12, "n over word", ("word", "n")) == [
        "              n over word",
        "high │        " + "█" * 23 + "▎ 9",
        "low  │        ██▋ 1",
        "日本 │████████ -3",
        "             x: n   y: word",
    ]
    lines = chart([(f"word {i}", i * 0.5, None) for i in range(9)], 40, 6, "n over word", ("word", "n"))
    assert len(lines) == 6
    assert lines[1].strip() == "the 3 largest of 9 bars are drawn"
    assert lines[2].endswith("█ 4.0")


def test_several_values_of_one_x_are_added_up() -> None:
    rows = [("a", 1, None), ("b", 2, None), ("a", Decimal("2.5"), None), ("b", 3, None)]
    lines = chart(rows, 40, 6, axes=("k", "n"))
    assert [line.split()[-1] for line in lines[:2]] == ["5", "3.5"]
    assert lines[-1].strip() == "x: sum(n)   y: k"
    hours = [(hour, 10, kind) for hour in range(3) for kind in ("x", "x", "y")]
    assert "y: sum(n)" in chart(hours, 60, 12, axes=("h", "n"))[-1]
    assert "sum" not in "".join(chart(hours[::3] + hours[2::3], 60, 12, axes=("h", "n")))


@pytest.mark.parametrize(
    ("combine", "values"),
    [("", ["9", "7"]), ("sum", ["9", "7"]), ("min", ["3", "1"]), ("max", ["6", "4"]), ("avg", ["4.500000", "2.333333"]),
     ("count", ["3", "2"]), ("count(*)", ["4", "2"])],
)  # fmt: skip
def test_what_becomes_of_several_values_of_one_x(combine: str, values: list[str]) -> None:
    rows = [("a", 3, None), ("a", 6, None), ("b", 1, None), ("b", 4, None), ("b", 2, None), ("b", None, None)]
    lines = chart(rows, 60, 6, axes=("k", "n"), combine=combine)
    assert [line.split()[-1] for line in lines[:2]] == values


def test_an_endless_number_is_not_drawn() -> None:
    lines = chart([("a", 1.0, None), ("b", float("inf"), None), ("c", float("nan"), None)], 40, 6)
    assert [line.split()[0] for line in lines] == ["a"]


def test_a_legend_of_numbers_has_no_endless_fractions() -> None:
    lines = chart([(x, x * n, n) for x in range(4) for n in (0.1 + 0.2, 2 / 3)], 40, 12, "y over x")
    assert lines[1].strip() == "• 0.3   x 0.666667"


def test_a_chart_of_several_lines_names_each() -> None:
    text = "\n".join(chart([(i, i * k, f"line {k}") for i in range(5) for k in (1, 2)], 60, 12))
    assert "line 1" in text
    assert "line 2" in text


def test_few_points_far_away_do_not_squeeze_the_others() -> None:
    start = dt.datetime(2026, 1, 1, 12)
    rows = [(start + dt.timedelta(minutes=i), i, None) for i in range(30)]
    lines = chart([(start - dt.timedelta(days=40), 7, None), *rows], 70, 14, "n over at")
    assert [line.strip() for line in lines[:2]] == ["n over at", "not drawn, far away: 1 before"]
    assert lines[-1].split() == ["12:00", "12:10", "12:20"]
    assert len(lines) == 14


def test_a_chart_draws_as_many_lines_as_can_be_told_apart_the_largest() -> None:
    rows = [(i, k, f"key {k:02}") for i in range(5) for k in range(12)]
    note, legend = chart(rows, 110, 14, "n over i")[1:3]
    assert "key 11" in legend and "key 04" in legend and "key 03" not in legend
    assert note.strip() == "the 8 largest of 12 lines are drawn"


def test_a_chart_of_several_rows_for_a_value_names_the_column_that_tells_them_apart() -> None:
    rows = [(i, name, i * 1.0) for i in range(5) for name in ("ann", "bob")]
    made = frame(replace(live(rows), chart=("id", "price")), View(width=90, height=20, mode="chart"))
    assert "AS CHART (id, price, name) draws a line for each name" in made.lines[0]


@pytest.mark.parametrize(
    ("minutes", "width", "labels"),
    [
        (40, 80, "08:00 08:10 08:20 08:30 08:40"),
        (40, 110, "08:00 08:10 08:20 08:30 08:40"),
        (40, 40, "08:00 08:30"),
        (2, 60, "08:00 08:01 08:02"),
        (0.5, 60, "08:00:00 08:00:10 08:00:20 08:00:30"),
        (600, 60, "09:00 12:00 15:00 18:00"),
        (2_000, 80, "05-01 12:00 05-02 00:00 05-02 12:00"),
        (20_000, 60, "2024-05-02 2024-05-07 2024-05-12"),
    ],
)
def test_the_labels_of_an_axis_of_times_are_round_times(minutes: float, width: int, labels: str) -> None:
    start = dt.datetime(2024, 5, 1, 8)
    rows = [(start + dt.timedelta(minutes=minutes * i / 8), i, None) for i in range(9)]
    assert " ".join(chart(rows, width, 14)[-1].split()) == labels


def test_ticks_are_in_the_units_of_the_data() -> None:
    text = "\n".join(chart([(i, i * 1000, None) for i in range(20)], 60, 14))
    assert "10,000┤" in text
    assert "0.00" not in text


def test_a_chart_without_rows() -> None:
    assert chart([], 60, 12)[-1] == "(no rows to draw yet)"


# ---- against Spark ------------------------------------------------------------------------------


def watched(console: Console, statement: str) -> Live:
    result = console.run(statement)[-1]
    assert isinstance(result, Live)
    return result


def every_row(found: Snapshot) -> list[tuple[object, ...]]:
    return [tuple(r) for r in found.rows]


def test_watching_a_keyed_table_as_rows_and_as_changes(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;
        INSERT INTO words VALUES ('b', 1), ('a', 2); AWAIT QUERY counts IDLE;"""
    )
    view = watched(console, "WATCH counts;")
    assert every_row(view.take(10, None, None)) == [("a", 2), ("b", 1)]
    assert every_row(view.take(10, None, ("total", False))) == [("b", 1), ("a", 2)]
    assert every_row(view.take(1, None, None)) == [("b", 1)]
    assert sorted(every_row(view.changes(10, None, None))) == [("+I", "a", 2), ("+I", "b", 1)]
    console.run("INSERT INTO words VALUES ('a', 5), ('c', 1), ('b', 0); AWAIT QUERY counts IDLE;")
    changes = view.changes(10, None, None)
    # b came again with the same total: no change.
    assert sorted(every_row(changes)[2:]) == [("+I", "c", 1), ("+U", "a", 7), ("-U", "a", 2)]
    assert view.status().status == "running"
    assert view.status().account.read == Amount(5)
    view.close()
    console.run("INSERT INTO words VALUES ('d', 1); AWAIT QUERY counts IDLE;")
    assert view.changes(10, None, None).total == changes.total


def test_watching_a_whole_result(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE top AS SELECT word, sum(n) AS total FROM words GROUP BY word
          ORDER BY total DESC, word LIMIT 2;
        INSERT INTO words VALUES ('a', 1), ('b', 2); AWAIT QUERY top IDLE;"""
    )
    view = watched(console, "WATCH top AS CHANGES;")
    assert view.mode == "changes"
    view.changes(10, None, None)
    console.run("INSERT INTO words VALUES ('c', 5); AWAIT QUERY top IDLE;")
    assert every_row(view.take(10, None, None)) == [("c", 5), ("b", 2)]
    assert sorted(every_row(view.changes(10, None, None))[2:]) == [("+I", "c", 5), ("-D", "a", 1)]


def test_watching_a_growing_table(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE tail RETAIN 3 ROWS AS SELECT n FROM words;
        INSERT INTO words VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4); AWAIT QUERY tail IDLE;"""
    )
    view = watched(console, "WATCH tail EVERY INTERVAL 2 SECONDS;")
    assert view.every == 2
    found = view.take(2, None, None)
    assert (every_row(found), found.total, found.dropped) == ([(3,), (4,)], 3, 1)


def test_frames_and_changes_cost_no_job(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;
        INSERT INTO words VALUES ('b', 1), ('a', 2); AWAIT QUERY counts IDLE;"""
    )
    view = watched(console, "WATCH counts;")
    jobs = console.session.spark._jsc.sc().dagScheduler().numTotalJobs
    console.run("STOP QUERY counts;")
    before = jobs()
    for mode in ("table", "changes"):
        for _ in range(20):
            assert frame(view, View(mode=mode)).snapshot.total == 2
    console.run("SHOW QUERIES; DESCRIBE QUERY counts; SHOW LIVE TABLES;")
    assert jobs() == before
    console.run("SELECT total, count(*) FROM counts GROUP BY total;")
    assert jobs() > before


def test_rows_that_come_too_late_are_counted(console: Console) -> None:
    console.run(
        """CREATE STREAM s (ts TIMESTAMP, n INT) USING values WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
        CREATE LIVE TABLE t AS SELECT window(ts, '1 minute') AS w, count(*) AS n FROM s
          GROUP BY window(ts, '1 minute');
        INSERT INTO s VALUES (TIMESTAMP '2026-01-01 10:00:00', 1); AWAIT QUERY t IDLE;
        INSERT INTO s VALUES (TIMESTAMP '2026-01-01 10:10:00', 1); AWAIT QUERY t IDLE;
        INSERT INTO s VALUES (TIMESTAMP '2026-01-01 09:00:00', 1), (TIMESTAMP '2026-01-01 09:01:00', 1);
        AWAIT QUERY t IDLE;"""
    )
    view = watched(console, "WATCH t;")
    described = dict(console.rows("DESCRIBE QUERY t;"))
    assert described["late rows"] == str(view.status().account.late) == "at least 2"
    assert "at least 2 late rows dropped in this batch" in str(described["state of groups"])
    assert frame(view, View(width=60)).footer[0].startswith("at least 2 late rows · ")


def test_times_and_nested_values_are_shown_as_select_shows_them(console: Console) -> None:
    console.run(
        """CREATE STREAM s (ts TIMESTAMP, n INT) USING values;
        CREATE LIVE TABLE t AS SELECT ts, map('k', n) AS m, array(n, NULL) AS a, struct(ts, n) AS st,
          CAST(n AS DECIMAL(9, 2)) AS d FROM s;
        INSERT INTO s VALUES (TIMESTAMP '2026-01-01 10:00:00', 1); AWAIT QUERY t IDLE;"""
    )
    view = watched(console, "WATCH t;")
    shown = "\n".join(frame(view, View(width=200)).lines)
    direct = console.run("SELECT * FROM t;")[-1]
    from streamsql.output.row_formats import FORMATS

    assert shown == "\n".join(FORMATS["table"](direct))
    assert "2026-01-01 10:00:00" in shown


WORDS = """CREATE STREAM words (word STRING, n INT) USING values;
INSERT INTO words VALUES ('b', 1), ('a', 2);
INSERT INTO words VALUES ('a', 5);
CREATE LIVE TABLE counts TRIGGER AVAILABLE NOW AS SELECT word, sum(n) AS total FROM words GROUP BY word;
"""


def test_watching_in_a_script_writes_what_changed_until_the_query_ends(spark: Any, tmp_path: Path) -> None:
    outcome = run_here(spark, tmp_path, Source("s.sql", WORDS + "WATCH counts;"))
    assert outcome.code == 0
    blocks = outcome.out.split("+--------+---------+\n| word   |   total |\n")[1:]
    assert "| a      |       7 |" in blocks[-1]
    assert "| b      |       1 |" in blocks[-1]
    assert "(2 rows, batch " in outcome.err


def test_changes_in_a_script_are_records(spark: Any, tmp_path: Path) -> None:
    outcome = run_here(spark, tmp_path, Source("s.sql", WORDS + "WATCH counts AS CHANGES;"), format="jsonl")
    total, batches = {}, list[int]()
    for line in outcome.out.splitlines():
        change = json.loads(line)
        assert change["batch_id"] >= 0
        batches.append(change["batch_id"])
        if change["op"] in ("+I", "+U"):
            total[change["word"]] = change["total"]
    assert (outcome.code, total) == (0, {"a": 7, "b": 1})
    assert batches == sorted(batches)


def test_a_watched_query_that_fails_ends_the_script(spark: Any, tmp_path: Path) -> None:
    script = WORDS.replace("sum(n)", "sum(1 / (n - 5))") + "WATCH counts; SELECT 'not reached';"
    outcome = run_here(spark, tmp_path, Source("s.sql", script))
    assert outcome.code == 5
    assert "query counts failed: division by zero" in outcome.err
    assert "not reached" not in outcome.out


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("WATCH wrods;", "there is no live table wrods", ""),
        ("WATCH words;", "words is a stream, not a live table", "SELECT * FROM words;"),
        ("WATCH counts AS CHART (word, totl);", "counts has no column totl", "did you mean total?"),
        ("WATCH counts AS CHART (word);", "expected ','", ""),
        (
            "WATCH counts AS CHART (word, median(total));",
            "a chart has no function median",
            "it has sum, min, max, avg, count",
        ),
        ("WATCH counts AS CHART (word, summ(total));", "a chart has no function summ", "it has sum"),
        ("WATCH counts AS CHART (word, sum(*));", "a chart has no sum(*)", "and count(*)"),
        ("WATCH SELECT 1 AS x;", "this one reads neither", "\\watch 2 repeats the last statement"),
        (
            "WATCH SELECT * FROM counts PIVOT (sum(total) FOR word);",
            "PIVOT without IN is not supported",
            "IN ('a', 'b', …)",
        ),
        (
            "WATCH SELECT word, total FROM counts AS CHART (word, sum(total));",
            "AS CHART behind a SELECT needs parentheses around the SELECT",
            "WATCH (SELECT …) AS CHART (word, sum(total))",
        ),
        (
            "WATCH SELECT 1 FROM counts EVERY INTERVAL 2 SECONDS;",
            "EVERY INTERVAL behind a SELECT needs",
            "WATCH (",
        ),
        ("WATCH pairs AS CHART;", "pairs has no column of numbers to draw", "WATCH pairs;"),
        (
            "WATCH pairs AS CHART (word, again);",
            "the y of a chart is a number, and again is string",
            "count(again)",
        ),
        ("WATCH pairs AS CHART (word, max(again));", "the y of a chart is a number", "count(again)"),
    ],
)
def test_what_cannot_be_watched(console: Console, statement: str, message: str, hint: str) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT) USING values;
        CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;
        CREATE LIVE TABLE pairs AS SELECT word, word AS again FROM words;"""
    )
    with pytest.raises((NameFault, RuleFault, SyntaxFault)) as raised:
        console.run(statement)
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert raised.value.span is not None


def test_a_chart_without_columns_is_over_time(console: Console) -> None:
    console.run(
        """CREATE STREAM words (word STRING, n INT, at TIMESTAMP) USING values;
        CREATE LIVE TABLE per AS
          SELECT word, window(at, '1 minute') AS w, sum(n) AS total FROM words
          GROUP BY word, window(at, '1 minute');
        CREATE LIVE TABLE counts AS SELECT word, sum(n) AS total FROM words GROUP BY word;"""
    )
    assert watched(console, "WATCH per AS CHART;").chart == ("w", "total", "word")
    assert watched(console, "WATCH counts AS CHART;").chart == ("word", "total")


def test_a_picture_is_made_anew_only_when_the_table_has_changed(console: Console) -> None:
    console.run(
        "CREATE STREAM s (x INT, y INT) USING values; CREATE LIVE TABLE t AS SELECT x, y FROM s;"
        "INSERT INTO s VALUES (1, 1), (2, 4); AWAIT QUERY t IDLE;"
    )
    found = watched(console, "WATCH t AS CHART (x, y);")
    view = View(width=90, height=20, mode="chart")
    first = frame(found, view, ((0, "q"),))
    again = frame(found, replace(view, now="updated 12:00:01"), ((0, "q"),), first)
    assert again.snapshot is first.snapshot
    assert again.lines == first.lines
    assert "updated 12:00:01" in again.footer[0]
    wider = frame(found, replace(view, width=100), ((0, "q"),), again)
    assert wider.snapshot is first.snapshot
    assert wider.lines != first.lines
    console.run("INSERT INTO s VALUES (3, 9); AWAIT QUERY t IDLE;")
    newest = frame(found, view, ((0, "q"),), again)
    assert every_row(newest.snapshot)[-1] == (3, 9)
    assert newest.lines != first.lines
