"""OVER clauses that Spark does not have, or computes wrongly, are refused; what is proposed gives the rows."""

from __future__ import annotations

import pytest
from conftest import Console
from test_habits import DEFINED, last_notes

from streamsql.errors import StreamsqlError

SESSION = "session_window(ts, '5 minutes')"


def refusal(query: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as caught:
        last_notes(f"{DEFINED}{query};")
    return caught.value


@pytest.mark.parametrize(
    ("frame", "own"),
    [
        ("BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        ("BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        ("UNBOUNDED PRECEDING", "RANGE UNBOUNDED PRECEDING"),
    ],
)
@pytest.mark.parametrize(
    "query",
    ["SELECT sum(n) OVER ({}) AS s FROM counts", "SELECT sum(n) OVER w AS s FROM counts WINDOW w AS ({})"],
)
def test_a_groups_frame_is_answered_with_the_frame_that_spark_has(query: str, frame: str, own: str) -> None:
    written = query.format(f"PARTITION BY n ORDER BY id GROUPS {frame}")
    fault = refusal(written)
    assert (fault.message, fault.hint) == ("Spark has no GROUPS frame", own)
    assert fault.span and f"{DEFINED}{written}"[fault.span.start : fault.span.end] == "GROUPS"
    last_notes(DEFINED + written.replace(f"GROUPS {frame}", own) + ";")


def test_groups_is_a_name_elsewhere() -> None:
    last_notes(
        f"{DEFINED}SELECT sum(groups) OVER (ORDER BY groups) AS n FROM (SELECT id AS groups FROM counts) WHERE groups BETWEEN 1 AND 2;"
    )


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (f"SELECT id, row_number() OVER (PARTITION BY {SESSION} ORDER BY ts) AS n FROM clicks", f"GROUP BY {SESSION}, …"),
        (f"SELECT id, count(*) OVER w FROM clicks WINDOW w AS (PARTITION BY id, {SESSION})", f"GROUP BY {SESSION}, …"),
        (f"SELECT id + 1 AS i, count(*) OVER (PARTITION BY {SESSION}) AS n FROM clicks", f"GROUP BY {SESSION}, …"),
        (f"SELECT id, count(*) OVER (PARTITION BY {SESSION}) AS n, sum(id) OVER (PARTITION BY id) AS s FROM clicks", f"GROUP BY {SESSION}, …"),
        ("CREATE TEMPORARY VIEW v AS SELECT count(*) OVER (PARTITION BY SESSION(ts, INTERVAL 5 MINUTES)) AS n FROM clicks",
         "GROUP BY SESSION(ts, INTERVAL 5 MINUTES), …"),
    ],
)  # fmt: skip
def test_a_session_window_in_over_is_refused_at_its_call(query: str, hint: str) -> None:
    fault = refusal(query)
    assert (fault.message, fault.hint) == ("a session window cannot be a key of OVER", hint)
    assert fault.span
    at_fault = f"{DEFINED}{query}"[fault.span.start : fault.span.end]
    assert fault.hint.startswith(f"GROUP BY {at_fault}")


def test_what_is_proposed_for_it_counts_the_rows_of_each_session(console: Console) -> None:
    console.run(
        "CREATE STREAM seen (user STRING, n INT, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 minute';"
        "INSERT INTO seen VALUES ('a', 1, '2026-01-01 00:00:00'), ('a', 2, '2026-01-01 00:01:00'), "
        "('b', 4, '2026-01-01 00:21:00'), ('c', 8, '2026-01-01 01:00:00');"
    )
    over = f"OVER (PARTITION BY user, {SESSION})"
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"SELECT user, ts, sum(s.n) {over} AS n, count(*) {over} AS m FROM seen s WHERE n > 0;")
    rows = console.rows(caught.value.proposal)
    assert sorted((user, n, m, (end - start).seconds) for start, end, user, n, m in rows) == [
        ("a", 3, 2, 360),
        ("b", 4, 1, 300),
    ]


def test_a_time_window_in_over_stays(console: Console) -> None:
    times = "SELECT timestamp_seconds(n * 60) AS ts FROM (SELECT explode(sequence(0, 7)) AS n)"
    query = f"SELECT DISTINCT count(*) OVER (PARTITION BY window(ts, '5 minutes')) AS m FROM ({times})"
    assert sorted(console.rows(f"{query};")) == [(3,), (5,)]


def test_a_window_of_no_name_is_refused_by_spark(console: Console) -> None:
    for over in ("w", "(w)"):
        with pytest.raises(StreamsqlError) as caught:
            console.run(f"SELECT sum(n) OVER {over} AS s FROM (SELECT 1 AS n);")
        assert caught.value.code == "MISSING_WINDOW_SPECIFICATION"


def test_windows_that_spark_reads_stay() -> None:
    for over, window in (
        ("(w)", "w AS (PARTITION BY n)"),
        ("W", "w AS (ORDER BY n ROWS 1 PRECEDING)"),
        ("()", ""),
    ):
        clause = f" WINDOW {window}" if window else ""
        last_notes(
            f"{DEFINED}SELECT sum(n) OVER {over} AS s, n AS over, over + 1 AS o FROM (SELECT 1 AS over, * FROM counts){clause};"
        )
