"""How long a query takes to resume from a checkpoint with many micro-batches, in a console that runs: from
START to the end of a micro-batch of one file, and DESCRIBE CHECKPOINT.

Usage: resume.py [micro-batches …]. The checkpoint of a query that has read one file is extended by as many
micro-batches in Spark's logs, and by as many files in the log of its source. Prints seconds, the least of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from streamsql.config.folders import cache_folder
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

DEFINE = """
SET spark.sql.streaming.minBatchesToRetain = 10000000;
CREATE STREAM s_{n} (n INT) USING json OPTIONS (path '{place}/in', maxFilesPerTrigger 1);
CREATE SINK o_{n} USING noop;
INSERT INTO o_{n} AS QUERY q_{n} TRIGGER AVAILABLE NOW CHECKPOINT '{place}/c' SELECT n FROM s_{n};
AWAIT QUERY q_{n};
"""
START = "START QUERY q_{n}; AWAIT QUERY q_{n};"
DESCRIBE = "DESCRIBE CHECKPOINT OF QUERY q_{n};"


def run(session: Session, text: str) -> float:
    """Run statements. Returns the seconds that they took."""
    began = time.monotonic()
    for written in split_script(Source("b", text)):
        session.execute(parse(written))
    return time.monotonic() - began


def extend(place: Path, count: int) -> None:
    """Add micro-batches to the logs of a checkpoint that has one."""
    offsets, commits, files = (place / "c" / name for name in ("offsets", "commits", "sources/0"))
    planned = (offsets / "0").read_text().rpartition("\n")[0]
    committed = (commits / "0").read_text()
    for number in range(1, count):
        (offsets / str(number)).write_text(f'{planned}\n{{"logOffset":{number}}}')
        (commits / str(number)).write_text(committed)
    read = (f'{{"path":"file://{place}/in/{n}.json","timestamp":1,"batchId":{n}}}' for n in range(count))
    for each in files.iterdir():  # the checksum, too
        each.unlink()
    name = f"{count - 1}.compact" if count % 10 == 0 else str(count - 1)
    (files / name).write_text("\n".join(["v1", *read]))


def measure(session: Session, count: int, place: Path) -> tuple[float, float]:
    """(seconds of a resume, seconds of DESCRIBE CHECKPOINT)."""
    (place / "in").mkdir(parents=True)
    (place / "in" / "0.json").write_text('{"n": 1}')
    run(session, DEFINE.format(n=count, place=place))
    extend(place, count)
    resumed, described = [], []
    for number in range(count, count + 3):
        (place / "in" / f"{number}.json").write_text('{"n": 1}')
        resumed.append(run(session, START.format(n=count)))
        described.append(run(session, DESCRIBE.format(n=count)))
    assert (place / "c" / "commits" / str(count + 2)).exists()
    return min(resumed), min(described)


def main() -> None:
    counts = [int(word) for word in sys.argv[1:]] or [10, 1_000, 10_000, 100_000]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        session = Session(Config(Settings.make("local[*]", {}), place / "w", place / "log", cache_folder()))
        measure(session, 1, place / "warm-up")
        for count in counts:
            resumed, described = measure(session, count, place / str(count))
            print(f"{count:8,} micro-batches: resume {resumed:.2f} s, DESCRIBE CHECKPOINT {described:.2f} s")
        session.close()


if __name__ == "__main__":
    main()
