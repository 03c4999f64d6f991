"""(a) Parse and plan a script of 1,000 statements without a JVM. Prints seconds; wanted: under 1."""

from __future__ import annotations

import statistics
import sys
import time

from streamsql.catalog import Catalog
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.plan.check import Checker
from streamsql.plan.context import Context

BLOCK = """
CREATE STREAM clicks_{n} (user STRING, url STRING, n INT, ts TIMESTAMP)
  USING json OPTIONS (path 'in/{n}', maxFilesPerTrigger 10) WITH WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE STREAM words_{n} AS SELECT ts, user, explode(split(url, '/')) AS word FROM clicks_{n} WHERE n > {n};
CREATE SINK out_{n} USING parquet PARTITIONED BY (user) OPTIONS (path 'out/{n}');
INSERT INTO out_{n} TRIGGER EVERY INTERVAL 5 SECONDS
  SELECT window.start AS since, user, count(*) AS c, max(n) AS top FROM clicks_{n}
  GROUP BY window(ts, '10 minutes'), user HAVING count(*) > 1;
CREATE LIVE TABLE live_{n} AS
  WITH busy AS (SELECT user, count(*) AS c FROM clicks_{n} GROUP BY user)
  SELECT user, c FROM busy WHERE c > 3;
"""


def once(script: Source) -> float:
    began = time.perf_counter()
    checker = Checker(Context(Catalog()))
    count = 0
    for written in split_script(script):
        checker.check(parse(written))
        count += 1
    assert count == 1000, count
    return time.perf_counter() - began


def main() -> None:
    script = Source("big.sql", "".join(BLOCK.format(n=n) for n in range(200)))
    times = [once(script) for _ in range(5)]
    assert "pyspark" not in sys.modules
    shown = ", ".join(f"{t:.2f}" for t in times)
    print(f"1,000 statements parsed and planned: median {statistics.median(times):.2f} s ({shown})")


if __name__ == "__main__":
    main()
