"""ADVANCE STREAM and FLUSH QUERY: event time moves on, and no row of that is in a result, a state or a count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from data_files import put_whole

from streamsql.errors import Cancelled, NameFault, RuleFault
from streamsql.results import Done
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.handlers import flush

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

WATERMARK = "WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES"


def rows(console: Console, text: str) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in console.rows(text)]


@pytest.mark.slow
def test_advance_closes_windows_and_is_in_no_result_state_or_count(console: Console) -> None:
    # Spark drops a row of NULLs by NOT NULL and by the WHERE before the watermark, unless that is prevented.
    console.run(
        f"""CREATE STREAM w (k STRING NOT NULL, at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT window.end AS until, count(*) AS n FROM w WHERE k = 'a'
          GROUP BY window(at, '5 minutes');
        CREATE LIVE TABLE every_row AS SELECT * FROM w;
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00'), ('b', '2024-05-01 12:02:00'),
          ('a', '2024-05-01 12:07:00');
        ADVANCE STREAM w TO TIMESTAMP '2024-05-01 12:15:00';
        AWAIT QUERY ALL IDLE;"""
    )
    assert rows(console, "SELECT * FROM t;") == [("2024-05-01 12:05:00", "1")]
    assert len(rows(console, "SELECT * FROM STATE OF QUERY t;")) == 1
    assert len(console.rows("SELECT * FROM every_row;")) == 3
    assert rows(console, "SELECT count(*) AS n, count(k) AS k FROM w;") == [("3", "3")]
    running = console.session.parts.queries.all["t"]
    assert (running.reports.run.read.number, sum(dict(running.reports.run.streams).values())) == (3, 3)
    assert sum(r["numInputRows"] for r in running.reports.newest()) == 3
    [flushed] = console.run("FLUSH QUERY t;")
    assert isinstance(flushed, Done)
    assert flushed.message == (
        "t flushed: 1 row emitted, 0 rows left in state, watermark 2024-05-01 12:20:00.001"
    )
    console.run("INSERT INTO w VALUES ('a', '2024-05-01 12:30:00'); AWAIT QUERY t IDLE;")
    assert rows(console, "SELECT n FROM t ORDER BY until;") == [("1",), ("1",)]
    assert len(rows(console, "SELECT * FROM STATE OF QUERY t;")) == 1


@pytest.mark.slow
def test_advance_of_a_computed_event_time_read_twice(console: Console) -> None:
    console.run(
        """CREATE STREAM w (t STRING) USING values
          WITH WATERMARK to_timestamp(t) AS at DELAY OF INTERVAL 1 MINUTE;
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT session_window.end AS until, count(*) AS n
          FROM (SELECT * FROM w UNION ALL SELECT * FROM w) GROUP BY session_window(at, '5 minutes'), t;
        INSERT INTO w VALUES ('2024-05-01 12:01:00');
        AWAIT QUERY t IDLE;
        ADVANCE STREAM w TO '2024-05-01 12:07:00';
        AWAIT QUERY t IDLE;"""
    )
    assert rows(console, "SELECT * FROM t;") == [("2024-05-01 12:06:00", "2")]
    running = console.session.parts.queries.all["t"]
    assert sum(r["numInputRows"] for r in running.reports.newest()) == 2


@pytest.mark.slow
def test_a_script_names_the_advance_that_completes_its_select(console: Console) -> None:
    console.run(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        INSERT INTO w VALUES ('a', '2024-05-01 12:01:00');"""
    )
    select = "SELECT k, session_window.end AS until FROM w GROUP BY k, session_window(at, '4 minutes')"
    result = console.run(f"{select};")[-1]
    [note] = result.notes
    said, _, proposal = note.text.partition("; resolve it with: ")
    assert "closes when w receives an event of 2024-05-01 12:15:00 or later" in said
    assert proposal == f"ADVANCE STREAM w TO TIMESTAMP '2024-05-01 12:15:00'; {select};"
    assert rows(console, proposal) == [("a", "2024-05-01 12:05:00")]


@pytest.mark.slow
def test_flush_emits_outer_rows_of_a_join(console: Console) -> None:
    console.run(
        f"""CREATE STREAM l (id INT, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM r (rid INT, rat TIMESTAMP) USING values WITH WATERMARK rat DELAY OF INTERVAL 1 HOUR;
        CREATE LIVE TABLE t AS SELECT id, rid FROM l LEFT JOIN r
          ON id = rid AND rat BETWEEN at AND at + INTERVAL 2 HOURS;
        INSERT INTO l VALUES (1, '2024-05-01 12:00:00'), (2, '2024-05-01 12:30:00');
        INSERT INTO r VALUES (1, '2024-05-01 13:00:00');
        AWAIT QUERY t IDLE;"""
    )
    assert rows(console, "SELECT * FROM t;") == [("1", "1")]
    console.run("FLUSH QUERY t; AWAIT QUERY t IDLE;")
    assert rows(console, "SELECT * FROM t ORDER BY id;") == [("1", "1"), ("2", "None")]
    assert not rows(console, "SELECT * FROM STATE OF QUERY t SIDE LEFT;")


@pytest.mark.slow
def test_flush_of_files_that_were_read_to_their_end(console: Console, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("a,2024-05-01 12:01:00\nb,2024-05-01 12:07:00\n")
    console.run(
        f"""CREATE STREAM s (k STRING, at TIMESTAMP) USING csv OPTIONS (path '{folder}') {WATERMARK};
        CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW
          SELECT window.end AS until, count(*) AS n FROM s GROUP BY window(at, '5 minutes');
        AWAIT QUERY q; FLUSH QUERY q;"""
    )
    ends = f"SELECT CAST(until AS TIMESTAMP) AS until, n FROM json.`{tmp_path}/out` ORDER BY 1;"
    closed = [("2024-05-01 12:05:00", "1"), ("2024-05-01 12:10:00", "1")]
    assert rows(console, ends) == closed
    assert {r[0]: r[1] for r in console.rows("SHOW QUERIES;")} == {"q": "finished"}
    # The query resumes: an event before the flush is late, a later one counts.
    put_whole(folder / "b.csv", "a,2024-05-01 12:08:00\na,2024-05-01 13:01:00\n")
    console.run("FLUSH QUERY q;")
    assert rows(console, ends) == [*closed, ("2024-05-01 13:05:00", "1")]
    # Another FLUSH does not move event time on any further.
    [again] = console.run("FLUSH QUERY q;")
    assert isinstance(again, Done)
    assert again.message == "q holds nothing back: its watermark is 2024-05-01 13:06:00.001"


def test_a_flush_that_is_cancelled_leaves_the_query_running(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.run(
        f"""CREATE STREAM w (at TIMESTAMP) USING values {WATERMARK};
        CREATE LIVE TABLE t OUTPUT MODE APPEND AS SELECT window.end AS until, count(*) AS n FROM w
          GROUP BY window(at, '5 minutes');
        INSERT INTO w VALUES ('2024-05-01 12:01:00'); AWAIT QUERY t IDLE;"""
    )
    token, plan = CancelToken(), flush.plan_no_data_batch

    def cancel(*arguments: Any) -> int:
        token.cancel()  # the query is stopped at this moment
        return plan(*arguments)

    monkeypatch.setattr(flush, "plan_no_data_batch", cancel)
    with pytest.raises(
        Cancelled, match="too late, .*micro-batch 2 (is planned: t emits now|has emitted) what it"
    ):
        console.run("FLUSH QUERY t;", token)
    assert [row[1] for row in console.rows("SHOW QUERIES;")] == ["running"]
    assert rows(console, "AWAIT QUERY t IDLE; SELECT * FROM t;") == [("2024-05-01 12:05:00", "1")]


@pytest.mark.parametrize(
    ("statement", "said", "hint"),
    [
        (
            "ADVANCE STREAM f TO '2024-05-01';",
            "the event time of f cannot be advanced: it reads rate",
            "FLUSH QUERY q;",
        ),
        (
            "ADVANCE STREAM over TO '2024-05-01';",
            "the event time of over cannot be advanced: it reads a query",
            "ADVANCE STREAM w TO TIMESTAMP '2024-05-01';",
        ),
        ("ADVANCE STREAM plain TO '2024-05-01';", "the stream plain has no watermark", "CREATE OR REPLACE"),
        ("FLUSH QUERY none;", "the query none has no watermark", "WHY QUERY none;"),
        (
            "FLUSH QUERY lines;",
            "lines cannot be flushed: a restart loses input of the socket source of c",
            "",
        ),
        ("FLUSH QUERY top;", "top is computed from live tables and holds nothing back", "FLUSH QUERY t;"),
        ("FLUSH QUERY nobody;", "there is no query nobody", ""),
    ],
)
def test_what_cannot_be_moved_on_is_refused_with_a_hint(statement: str, said: str, hint: str) -> None:
    fault = refusal(
        f"""CREATE STREAM w (k STRING, at TIMESTAMP) USING values {WATERMARK};
        CREATE STREAM plain (k STRING) USING values;
        CREATE STREAM over AS SELECT * FROM w;
        CREATE STREAM f USING rate WITH WATERMARK timestamp DELAY OF INTERVAL 1 MINUTE;
        CREATE STREAM c USING socket OPTIONS (host 'localhost', port 9999);
        CREATE SINK out USING noop;
        CREATE LIVE TABLE t AS SELECT k, count(*) AS n FROM w GROUP BY k;
        CREATE LIVE TABLE top AS SELECT * FROM t LIMIT 3;
        INSERT INTO out AS QUERY q SELECT * FROM f;
        INSERT INTO out AS QUERY none SELECT * FROM plain;
        INSERT INTO out AS QUERY lines SELECT * FROM c WATERMARK now() AS ts DELAY OF INTERVAL 1 SECOND;
        {statement}"""
    )
    assert said in fault.message
    assert hint in fault.hint


def refusal(script: str) -> Any:
    """The error with which the planning of a script ends; Spark is not started."""
    from streamsql.catalog import Catalog
    from streamsql.errors import Source
    from streamsql.language.parser import parse, split_script
    from streamsql.plan.context import Context
    from streamsql.plan.planner import plan

    catalog = Catalog()
    with pytest.raises((RuleFault, NameFault)) as raised:
        for written in split_script(Source("", script)):
            catalog = plan(parse(written, {}), Context(catalog)).applied(catalog)
    return raised.value
