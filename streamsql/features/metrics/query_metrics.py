"""What the metrics endpoint tells of queries: their progress reports as samples of Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.moments import watermark_of
from streamsql.runtime.engine.spark_classes import RULES
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON, Running

_GAUGES = {
    "running": "whether the query runs: 1 or 0",
    "rows_per_second": "rows read per second over the last ten seconds",
    "batch_seconds": "duration of the last micro-batch",
    "watermark_lag_seconds": "how far the watermark is behind the clock",
    "state_rows": "rows of the state",
    "state_bytes": "memory that the state uses on the workers",
}
_COUNTERS = {
    "rows": "rows read",
    "late_rows": "rows dropped because they came behind the watermark",
    "malformed_rows": "messages and rows that could not be read",
    "restarts": "restarts of the query after a failure",
    "failures": "failures of the query",
}
_BACKLOG = "what the source has and the query has not read yet, by unit: offsets, files or bytes"


class QueryMetrics:
    """A collector of prometheus_client: computes all samples when it is asked, from what Spark has reported.
    Counters of rows count from the start of the query's checkpoint, the others from that of the console.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client.registry.Collector."""
        kinds = ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS))
        families = {
            name: kind(f"streamsql_query_{name}", text, labels=["query"])
            for kind, texts in kinds
            for name, text in texts.items()
        }
        backlog = GaugeMetricFamily("streamsql_query_backlog", _BACKLOG, labels=["query", "source", "unit"])
        for query in self.parts.catalog.named(None):
            running = self.parts.queries.all.get(query.name.casefold())
            for name, value in (self._values(running) | self._totals(query.name)).items():
                families[name].add_metric([query.name], value)
            sources = running.reports.latest.get("sources", []) if running else []
            for number, source in enumerate(sources):
                for unit, amount in behind(source).items():
                    backlog.add_metric([query.name, str(number), unit], amount)
        yield from (*families.values(), backlog)
        spark = GaugeMetricFamily("streamsql_spark_running", "whether Spark runs: 1 or 0")
        spark.add_metric([], float(self.parts.engine.started))
        yield spark
        fallbacks = CounterMetricFamily(
            "streamsql_rule_fallbacks", "failures of the console's rules, after which Spark's plan was used"
        )
        failures = self._fallbacks()
        if failures is not None:
            fallbacks.add_metric([], failures)
        yield fallbacks

    def _fallbacks(self) -> float | None:
        """How often rules have failed in the Spark that runs; None without one, or on a server."""
        if not self.parts.engine.started or self.parts.server() is not None:
            return None
        try:
            return float(java_class(self.parts.spark, RULES).fallbacks())
        except Exception:  # Spark has ended
            return None

    def _values(self, running: Running | None) -> dict[str, float]:
        if running is None:
            return {"running": 0.0}
        values = {"running": float(running.status() in GOING_ON), "rows_per_second": running.reports.rate()}
        report = running.reports.latest
        if "batchDuration" in report:
            values["batch_seconds"] = report["batchDuration"] / 1000
        watermark = watermark_of(report)
        if watermark is not None:
            values["watermark_lag_seconds"] = time.time() - watermark / 1000
        states = report.get("stateOperators", [])
        if states:
            values["state_rows"] = float(sum(s.get("numRowsTotal", 0) for s in states))
            values["state_bytes"] = float(sum(s.get("memoryUsedBytes", 0) for s in states))
        return values

    def _totals(self, name: str) -> dict[str, float]:
        """The counters of a query: those of rows since its checkpoint began, which may be too small where the
        account says at least.
        """
        key, account = name.casefold(), self.parts.facts(name).account
        return {
            "rows": account.read.number,
            "late_rows": account.late.number,
            "malformed_rows": account.malformed.number,
            "failures": self.parts.queries.failure_counts[key],
            "restarts": self.parts.queries.restart_counts[key],
        }


def behind(source: dict[str, Any]) -> dict[str, float]:
    """The backlog of a source in a report, by unit; empty where the source does not tell."""
    metrics = source.get("metrics") or {}
    backlog: dict[str, float] = {}
    for unit, key in (("files", "numFilesOutstanding"), ("bytes", "numBytesOutstanding")):
        if key in metrics:
            backlog[unit] = float(metrics[key])
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if latest:
        backlog["offsets"] = float(sum(max(0, latest[place] - end.get(place, 0)) for place in latest))
    return backlog


def _offsets(value: Any) -> dict[str, int]:
    """The offsets of a source by partition."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if isinstance(value, int):
        return {"": value}
    places: dict[str, int] = {}
    for topic, partitions in value.items() if isinstance(value, dict) else ():
        if isinstance(partitions, dict):
            places |= {f"{topic}/{n}": offset for n, offset in partitions.items() if isinstance(offset, int)}
    return places
