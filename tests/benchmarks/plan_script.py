"""(a) Parse and plan a script of 1,000 statements without a JVM. Prints processor seconds; wanted: 1.3 at most."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from streamsql.__main__ import collect_seldom
from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import Source
from streamsql.language import tokens
from streamsql.language.parser import parse, split_script
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


def once(text: Source) -> float:
    began = time.process_time()
    checker = Checker(Context(Catalog()))
    count = 0
    for written in split_script(text):
        checker.check(parse(written))
        count += 1
    assert count == 1000, count
    return time.process_time() - began


def tokenized(text: Source) -> tuple[int, int]:
    """How often the tokenizer is called for the script, and for how many characters in all."""
    lengths: list[int] = []
    read = tokens.raw_tokens

    def counted(text: str) -> tuple[list[Any], int | None]:
        lengths.append(len(text))
        return read(text)

    tokens.raw_tokens = counted
    try:
        once(text)
    finally:
        tokens.raw_tokens = read
    return len(lengths), sum(lengths)


def script(run: int) -> Source:
    """1,000 statements; others in each run, so that nothing is remembered from the one before."""
    return Source("big.sql", "".join(BLOCK.format(n=1000 * run + n) for n in range(200)))


def main() -> None:
    collect_seldom()
    calls, characters = tokenized(script(0))
    times = [once(script(run)) for run in range(1, 6)]
    assert "pyspark" not in sys.modules
    shown = ", ".join(f"{t:.2f}" for t in times)
    print(
        f"1,000 statements parsed and planned: median {statistics.median(times):.2f} s of processor ({shown})"
    )
    again = characters / len(script(0).text)
    print(
        f"for each statement {calls / 1000:.1f} calls of the tokenizer; each character is read {again:.1f} times"
    )


if __name__ == "__main__":
    main()
