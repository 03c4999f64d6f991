"""Real data with real lateness, compared with plain Python after each file."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Console
from truth.packed import unpacked

ROOMS = ("streamsql/runtime/", "streamsql/plan/", "tests/truth/")

HOUR, DELAY = timedelta(hours=1), timedelta(hours=1)


def test_earthquakes_are_counted_without_those_that_came_too_late(console: Console, tmp_path: Path) -> None:
    """Reports come in the order of their last change, hours or days after the event in part."""
    (tmp_path / "in").mkdir()
    console.run(
        f"""CREATE STREAM earthquakes (id STRING, time TIMESTAMP, net STRING) USING json
              OPTIONS (path '{tmp_path}/in') WITH WATERMARK time DELAY OF INTERVAL 1 HOUR;
            CREATE LIVE TABLE counts OUTPUT MODE UPDATE AS
              SELECT string(window.start) AS hour, net, count(*) AS n FROM earthquakes
              GROUP BY window(time, '1 hour'), net;"""
    )
    counts: Counter[tuple[str, str]] = Counter()
    late: list[str] = []
    newest = watermark = datetime.min.replace(tzinfo=UTC)
    for file in sorted((unpacked("real") / "earthquakes").iterdir()):
        shutil.copy(file, tmp_path / file.name)
        (tmp_path / file.name).rename(tmp_path / "in" / file.name)
        console.run("AWAIT QUERY counts IDLE;")
        for report in map(json.loads, file.read_text("utf-8").splitlines()):
            time = datetime.fromisoformat(report["time"]).replace(tzinfo=UTC)
            newest = max(newest, time)
            hour = time.replace(minute=0, second=0, microsecond=0)
            if hour + HOUR <= watermark:
                late.append(report["id"])
            else:
                counts[f"{hour:%Y-%m-%d %H:%M:%S}", report["net"]] += 1
        watermark = newest - DELAY
        assert sorted(console.rows("SELECT * FROM counts;")) == sorted((*k, n) for k, n in counts.items())
    assert sorted(console.rows("SELECT id FROM LATE ROWS OF QUERY counts;")) == sorted((id,) for id in late)
    assert late


@pytest.mark.slow
def test_sales_of_each_country_day_by_day(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    console.run(
        f"""CREATE STREAM sales (InvoiceNo STRING, StockCode STRING, Description STRING, Quantity INT,
              InvoiceDate TIMESTAMP, UnitPrice DECIMAL(12, 3), CustomerID DOUBLE, Country STRING)
              USING csv OPTIONS (path '{tmp_path}/in', header 'true', escape '"');
            CREATE LIVE TABLE totals AS
              SELECT Country, count(*) AS n, count(CustomerID) AS known, sum(Quantity * UnitPrice) AS total
              FROM sales GROUP BY Country;"""
    )
    totals: defaultdict[str, list[int | Decimal]] = defaultdict(lambda: [0, 0, Decimal(0)])
    for file in sorted((unpacked("real") / "retail").iterdir()):
        shutil.copy(file, tmp_path / file.name)
        (tmp_path / file.name).rename(tmp_path / "in" / file.name)
        console.run("AWAIT QUERY totals IDLE;")
        with file.open(encoding="utf-8", newline="") as lines:
            for sale in csv.DictReader(lines):
                total = totals[sale["Country"]]
                total[0] += 1
                total[1] += sale["CustomerID"] != ""
                total[2] += int(sale["Quantity"]) * Decimal(sale["UnitPrice"])
        assert sorted(console.rows("SELECT * FROM totals;")) == sorted((c, *t) for c, t in totals.items())
