"""Private fields of Spark that are used: without one of them only a nicety is missing, and the log says so."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from conftest import Console
from test_queries import status

from streamsql.runtime.queries import report_listener, stop


def renamed(*arguments: Any) -> Any:
    raise RuntimeError("java.lang.NoSuchFieldException: renamed")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "streamsql"]


def test_reports_come_without_the_queue_of_the_listener_bus(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(report_listener, "_queue", renamed)
    monkeypatch.setattr("pyspark.java_gateway.ensure_callback_server_started", lambda gateway: None)
    spark = MagicMock(_streamsql_monitor=None)
    monitor = report_listener.Monitor.of(spark)
    spark._jsparkSession.streams().addListener.assert_called_once()
    assert monitor.catch_up() is False
    assert logged(caplog) == ["[INTERNAL] what informs is omitted: java.lang.NoSuchFieldException: renamed"]


def test_an_idle_query_asks_as_often_as_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(report_listener, "_set_delay", renamed)
    execution = Mock(pollingDelayMs=lambda: 10)
    streams = Mock(get=lambda query: Mock(streamingQuery=lambda: execution))
    polling = report_listener.IdlePolling(streams)
    for query in ("a", "b", "a"):
        polling.idle(Mock(toString=lambda query=query: query))
        polling.has_rows(query)
    assert len(logged(caplog)) == 1


def test_a_query_is_stopped_within_its_micro_batch(
    console: Console, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    console.run("CREATE STREAM s (n INT) USING values; CREATE LIVE TABLE t AS SELECT n FROM s;")
    console.run("INSERT INTO s VALUES (1); AWAIT QUERY t IDLE;")
    monkeypatch.setattr(stop, "_terminated", renamed)
    console.run("STOP QUERY t;")
    assert status(console, "t")["status"] == "stopped"
    assert not console.session.parts.queries.all["t"].is_active()
    assert any(
        "t is stopped within its micro-batch, which is retried on restart" in m for m in logged(caplog)
    )
    monkeypatch.undo()
    console.run("START QUERY t; INSERT INTO s VALUES (2); AWAIT QUERY t IDLE;")
    assert sorted(console.rows("SELECT n FROM t;")) == [(1,), (2,)]
