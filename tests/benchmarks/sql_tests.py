"""100 small TESTs in one session: a stream with a watermark, a windowed count, one GIVEN and one EXPECT each.

Prints the seconds from the start of the process to Spark's, of all tests together, and the median of one; and the
processor seconds of all tests, which a busy machine changes less. A number as argument: that many tests.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import processor

from streamsql.features.testing.cases import collect
from streamsql.features.testing.sessions import SessionFactory
from streamsql.features.testing.test_run import load_pipeline, run_case
from streamsql.runtime.engine.settings import Settings

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 100
PIPELINE = """
CREATE STREAM words (word STRING, at TIMESTAMP) USING kafka FORMAT json OPTIONS (servers 'nowhere:1', topic 'words')
  WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE LIVE TABLE counts AS
SELECT window.start AS since, word, count(*) AS n FROM words GROUP BY window(at, '10 minutes'), word;
"""
TEST = """
TEST 'number {0}' BEGIN
  GIVEN words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00'), ('n{0}', '2024-05-01 12:07:00');
  EXPECT counts (word, n) VALUES ('cat', 1), ('dog', 1), ('n{0}', 1);
END TEST;
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "words.test.sql"
        file.write_text(PIPELINE + "".join(TEST.format(number) for number in range(COUNT)))
        began = time.monotonic()
        factory = SessionFactory(Settings.make("local[*]", {}))
        with factory.session():
            started, before = time.monotonic(), processor.seconds()
        seconds = list[float]()
        for case in collect([str(file)], []).cases:
            with factory.session() as session:
                start = time.monotonic()
                load_pipeline(case, session)
                run_case(case, session)
                seconds.append(time.monotonic() - start)
        ended, used = time.monotonic(), processor.seconds() - before
        factory.close()
    one = statistics.median(seconds)
    print(
        f"Spark {started - began:.1f} s, {COUNT} tests {ended - started:.1f} s ({used:.1f} s of processor), "
        f"median of one {one:.2f} s"
    )


if __name__ == "__main__":
    main()
