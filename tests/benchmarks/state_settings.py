"""Settings of Spark over queries with much state: seconds of processor, wall seconds and the memory of the JVM, each in
a JVM of its own. `state_settings.py [ROWS] [NAME …]` takes some of the settings.

A group by of a third as many keys as rows, deduplication, and a windowed count, from Parquet files in ten micro-batches.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processor

from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
SETTINGS: dict[str, dict[str, str]] = {
    "default": {},
    "pages of 64 MB": {"spark.buffer.pageSize": "64m"},
    "pages of 1 MB": {"spark.buffer.pageSize": "1000k"},
    "RocksDB": ROCKSDB,
}
QUERIES = {
    "groups": "SELECT k, count(*) AS c, sum(v) AS t FROM s GROUP BY k",
    "deduplication": "SELECT DISTINCT ON (k) k, v FROM s",
    "windows": "SELECT window.start, g, count(*) AS c FROM s GROUP BY window(at, '1 minute'), g",
}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2 and sys.argv[2] == "--one":
        measure(rows, sys.argv[3])
        return
    for name in sys.argv[2:] or SETTINGS:
        subprocess.run([sys.executable, __file__, str(rows), "--one", name], check=True)


def measure(rows: int, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        config = Config(Settings.make("local[*]", SETTINGS[name]), place / "w", place / "log", place)
        session = Session(config)
        values = (
            "CAST(hash(id) AS BIGINT) % {n} AS k, id AS v, id % 100 AS g, timestamp_seconds(id / 100) AS at"
        )
        frame = session.spark.range(rows).selectExpr(*values.format(n=rows // 3).split(", "))
        frame.repartition(10).write.parquet(f"{folder}/in")
        run(session, f"""
            CREATE STREAM s (k BIGINT, v BIGINT, g BIGINT, at TIMESTAMP)
              USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1') WITH WATERMARK at DELAY '1 hour';
            CREATE SINK out USING noop;""")  # fmt: skip
        for what, query in QUERIES.items():
            began, before = time.perf_counter(), processor.seconds()
            mode = "UPDATE" if "GROUP" in query else "APPEND"
            run(session, f"""
                INSERT INTO out AS QUERY q OUTPUT MODE {mode} TRIGGER AVAILABLE NOW {query};
                AWAIT QUERY q; DROP QUERY q;""")  # fmt: skip
            used, wall = processor.seconds() - before, time.perf_counter() - began
            print(
                f"{name:15} {what:14} {used:6.1f} s of processor, {wall:6.1f} s, JVM {processor.megabytes()[1]} MB",
                flush=True,
            )
        session.close()


def run(session: Session, script: str) -> None:
    for written in split_script(Source("benchmark", script)):
        session.execute(parse(written))


if __name__ == "__main__":
    main()
