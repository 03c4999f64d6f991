"""--metrics: what Prometheus scrapes, against the rows that were given."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.error import HTTPError

import pytest
from conftest import ROOT, Console
from prometheus_client.parser import text_string_to_metric_families
from scripts import run_process

from streamsql.cli.addresses import address_of
from streamsql.errors import UsageFault
from streamsql.features.metrics.endpoint import TOKEN, open_endpoint
from streamsql.features.metrics.query_metrics import QueryMetrics, behind

ROOMS = ("streamsql/features/metrics/", "streamsql/runtime/")

AWAY = """
import os
def write(batch, batch_id):
    batch.collect()
    if not os.path.exists("{0}/failed"):
        open("{0}/failed", "w").close()
        raise ConnectionError("the database is away")
"""


def scraped(url: str) -> dict[Any, float]:
    """The samples of a page, by name and, if it has labels, the name of the query."""
    with urllib.request.urlopen(url) as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    samples = (sample for family in families for sample in family.samples)
    return {(s.name.removeprefix("streamsql_query_"), s.labels.get("query")): s.value for s in samples}


@pytest.mark.slow
def test_the_numbers_of_queries(console: Console, tmp_path: Path, eventually: Callable[..., None]) -> None:
    (tmp_path / "away.py").write_text(AWAY.format(tmp_path))
    console.session.variables["here"] = str(tmp_path)
    endpoint = open_endpoint(console.session.parts, "0")
    try:
        assert endpoint.url.startswith("http://127.0.0.1:")
        assert list(scraped(endpoint.url)) == [
            ("streamsql_spark_running", None),
            ("streamsql_rule_fallbacks_total", None),
        ]
        console.run(
            "CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY '1 minute';"
            "CREATE LIVE TABLE counts AS SELECT word, window.start AS s, count(*) AS n FROM words GROUP BY word, window(at, '1 minute');"
            "INSERT INTO words VALUES ('a', '2024-05-01 12:00:00'), ('b', '2024-05-01 12:30:00'), ('b', '2024-05-01 12:30:10');"
            "AWAIT QUERY counts IDLE;"
            "INSERT INTO words VALUES ('late', '2024-05-01 12:00:00'); AWAIT QUERY counts IDLE;"
            "CREATE SINK received USING foreach_batch OPTIONS (function 'away.write');"
            "INSERT INTO received RESTART 3 TIMES EVERY '10 milliseconds' SELECT word FROM words;"
        )
        eventually(lambda: scraped(endpoint.url)["restarts_total", "received"] == 1)
        console.run("AWAIT QUERY received IDLE; STOP QUERY received;")
        samples = scraped(endpoint.url)
        assert samples["running", "counts"] == 1 and samples["running", "received"] == 0
        assert samples["rows_total", "counts"] == 4 and samples["late_rows_total", "counts"] == 1
        assert samples["state_rows", "counts"] == 1  # the window of 12:30 is open, that of 12:00 closed
        assert samples["state_bytes", "counts"] > 0 and samples["batch_seconds", "counts"] > 0
        assert samples["watermark_lag_seconds", "counts"] > 86_400  # its events are of 2024
        assert samples["failures_total", "received"] == 1 and samples["failures_total", "counts"] == 0
        console.run("STOP QUERY counts; START QUERY counts; AWAIT QUERY counts IDLE;")
        assert scraped(endpoint.url)["rows_total", "counts"] == 4  # over both runs
    finally:
        endpoint.close()


def test_the_backlog_of_a_source() -> None:
    kafka = {"endOffset": {"t": {"0": 5, "1": 7}}, "latestOffset": {"t": {"0": 9, "1": 7, "2": 3}}}
    assert behind(kafka) == {"offsets": 7}
    assert behind(
        {"endOffset": {"logOffset": 3}, "latestOffset": None, "metrics": {"numFilesOutstanding": "2"}}
    ) == {"files": 2}
    assert behind({"endOffset": 5, "latestOffset": 8}) == {"offsets": 3}


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_addresses_and_mistakes(console: Console) -> None:
    assert [address_of(a, "--metrics", 9464) for a in ("9464", ":9464", "0.0.0.0:1", "[::1]:2")] == [
        ("127.0.0.1", 9464), ("127.0.0.1", 9464), ("0.0.0.0", 1), ("::1", 2),
    ]  # fmt: skip
    with pytest.raises(UsageFault, match="--metrics takes an address, not localhost"):
        address_of("localhost", "--metrics", 9464)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        asked = run_process("--no-config", "--metrics", str(port), "-e", "SHOW STREAMS;")
    said = f"error[BAD_ADDRESS]: --metrics cannot listen on 127.0.0.1:{port}: address already in use\n"
    assert (asked.code, asked.err.startswith(said)) == (2, True), asked.err
    opened = run_process("--no-config", "--metrics", "0", "-e", "SHOW STREAMS;")
    assert opened.code == 0 and opened.err.startswith("metrics: http://127.0.0.1:"), opened.err


def test_other_machines_need_a_token(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(UsageFault, match="without a secret") as refused:
        open_endpoint(console.session.parts, "0.0.0.0:0")
    assert refused.value.hint.startswith(f"export {TOKEN}=")
    monkeypatch.setenv(TOKEN, "a secret")
    endpoint = open_endpoint(console.session.parts, "0.0.0.0:0")
    try:
        url = endpoint.url.replace("0.0.0.0", "127.0.0.1")
        for header in ({}, {"Authorization": "Bearer a"}, {"Authorization": "Basic a secret"}):
            with pytest.raises(HTTPError) as error:
                urllib.request.urlopen(urllib.request.Request(url, headers=header))
            assert error.value.code == 401
        given = urllib.request.Request(url, headers={"Authorization": "Bearer a secret"})
        with urllib.request.urlopen(given) as page:
            assert b"streamsql_spark_running" in page.read()
    finally:
        endpoint.close()


def test_the_dashboard_shows_each_metric_and_no_other() -> None:
    parts = MagicMock()
    parts.catalog.named.return_value = []
    parts.engine.started = False
    names = set()
    for metric in QueryMetrics(parts).collect():
        names.add(f"{metric.name}_total" if metric.type == "counter" else metric.name)
    board = json.loads((ROOT / "examples" / "grafana_dashboard.json").read_text("utf-8"))
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for expression in shown for name in re.findall(r"streamsql_\w+", expression)} == names
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len(places)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in board["panels"])
