"""A staged change reads its streams from a moment on, where their source can begin there."""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from test_change import IDLE, refusal
from test_reopened import Open, opened  # noqa: F401  the fixture

ROOMS = ("streamsql/plan/statements/since.py", "streamsql/connectors/")


def test_messages_from_a_moment_on(opened: Open, kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["a", "b", "a"])
    moment = datetime.now(UTC)
    kafka.produce(topic, ["a", "c"])
    console = opened()
    console.run(
        f"CREATE STREAM s USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}');"
        "CREATE LIVE TABLE t AS SELECT value, count(*) AS n FROM s GROUP BY value;"
        f"CREATE OR REPLACE LIVE TABLE t STAGED FROM TIMESTAMP '{moment.isoformat()}'"
        " AS SELECT value, count(*) AS n FROM s GROUP BY value;" + IDLE
    )
    assert sorted(console.rows("SELECT * FROM t;")) == [("a", 3), ("b", 1), ("c", 1)]
    assert sorted(console.rows("SELECT * FROM t$staged;")) == [("a", 1), ("c", 1)]
    assert console.rows("SHOW STAGED;")[0][5:7] == (None, None), (
        "of these rows it does not know how many there are"
    )
    again = opened()
    assert again.warnings == []
    kafka.produce(topic, ["d"])
    again.run("START QUERY ALL;" + IDLE + "PROMOTE t;" + IDLE + "VERIFY LIVE TABLE t;")
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 1), ("c", 1), ("d", 1)]
    assert "FROM TIMESTAMP '" in again.text("SHOW CREATE LIVE TABLE t;")
    again.run("ROLLBACK t;" + IDLE)
    assert sorted(again.rows("SELECT * FROM t;")) == [("a", 3), ("b", 1), ("c", 1), ("d", 1)]


def test_a_moment_after_all_messages(console: Console, kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.produce(topic, ["a"])
    console.run(
        f"CREATE STREAM s USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}');"
        f"CREATE LIVE TABLE t FROM TIMESTAMP '{datetime.now(UTC).isoformat()}' AS SELECT value FROM s;" + IDLE
    )
    kafka.produce(topic, ["b"])
    console.run(IDLE)
    assert console.rows("SELECT * FROM t;") == [("b",)]


@pytest.mark.parametrize("source", ["values", "json", "rate"])
def test_a_source_that_cannot_begin_there(console: Console, tmp_path: Path, source: str) -> None:
    options = {"values": "(n INT) USING values", "rate": "USING rate"}.get(
        source, f"(n INT) USING json OPTIONS (path '{tmp_path}')"
    )
    column = "value" if source == "rate" else "n"
    console.run(
        f"CREATE STREAM s {options}; CREATE STREAM over AS SELECT {column} FROM s; CREATE LIVE TABLE t AS SELECT {column} FROM over;"
    )
    text = f"CREATE OR REPLACE LIVE TABLE t STAGED FROM TIMESTAMP '2024-05-01' AS SELECT {column} FROM over;"
    fault = refusal(console, text)
    assert (fault.code, fault.message) == ("CLAUSE_NOT_SUPPORTED", "the stream s cannot begin at a moment")
    assert fault.detail and fault.span is not None
    assert text[fault.span.start : fault.span.end] == "'2024-05-01'"
    assert console.rows("SHOW STAGED;") == []


def test_what_is_no_moment(console: Console) -> None:
    console.run("CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE t AS SELECT n FROM s;")
    for clause, code in (
        ("FROM TIMESTAMP 'yesterday'", "BAD_TIMESTAMP"),
        ("FROM TIMESTAMP '2024-05-01' FROM NOW", "CLAUSE_CONFLICT"),
    ):
        assert (
            refusal(console, f"CREATE OR REPLACE LIVE TABLE t STAGED {clause} AS SELECT n FROM s;").code
            == code
        )
    text = "CREATE OR REPLACE LIVE TABLE u FROM TIMESTAMP '2024-05-01' AS SELECT max(n) AS m FROM t;"
    assert "live tables only" in refusal(console, text).message
