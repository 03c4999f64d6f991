"""Rows in progress reports that are no input: those of ADVANCE STREAM, which move the watermark on, and those
of a source that a query reads again.
"""

from __future__ import annotations

from typing import Any

from streamsql.connectors.base import file_name
from streamsql.connectors.event_metrics import ADVANCES, MEASURED, ROWS

_RATES = ("inputRowsPerSecond", "processedRowsPerSecond")


def counted_once(report: dict[str, Any]) -> dict[str, Any]:
    """A progress report in which the rows of a source count once where a query reads it several times, such
    as in a join with itself; changed in place. The sources keep their own counts. Sources of type rate do not
    tell in their description which stream they are, so that each of them counts.
    """
    sources, rows = report.get("sources", []), report.get("numInputRows", 0)
    each: dict[str, int] = {}
    for number, source in enumerate(sources):
        name = source.get("description", "")
        name = f"{name} {number}" if name.startswith("Rate") else name
        each[name] = max(each.get(name, 0), source.get("numInputRows", 0))
    if len(each) < len(sources) and rows:
        report["numInputRows"] = sum(each.values())
        for rate in _RATES:
            if isinstance(report.get(rate), (int, float)):
                report[rate] = report[rate] * report["numInputRows"] / rows
    return report


def without_advances(report: dict[str, Any]) -> dict[str, Any]:
    """A progress report whose counts do not include the rows of ADVANCE STREAM; changed in place."""
    for name, counts in report.get("observedMetrics", {}).items():
        if name.startswith(MEASURED) and counts.get(ADVANCES):
            folder = f"/{file_name(name.removeprefix(f'{MEASURED} '))}]"
            for source in report.get("sources", []):
                if source.get("description", "").endswith(folder):
                    _leave_out(report, source, counts)
    return report


def _leave_out(report: dict[str, Any], source: dict[str, Any], counts: dict[str, Any]) -> None:
    # A query may read a stream several times, and Spark counts its rows as often.
    times = source.get("numInputRows", 0) // max(1, counts.get(ROWS) or 1)
    advances = times * counts[ADVANCES]
    for entry in (source, report):
        before = entry.get("numInputRows", 0)
        after = max(0, before - advances)
        entry["numInputRows"] = after
        for rate in _RATES:
            if before and isinstance(entry.get(rate), (int, float)):
                entry[rate] = entry[rate] * after / before
    source["onlyAdvances"] = not source["numInputRows"]
