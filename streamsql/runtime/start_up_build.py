"""The process that builds the start-up cache of aot_cache.py: it runs typical work once."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.results import RowStream
from streamsql.runtime.engine.aot_cache import (
    BUILD_TIMEOUT,
    cache_file,
    complete,
    failed_file,
    size_file,
)
from streamsql.runtime.engine.file_lock import Lock, Locked
from streamsql.runtime.engine.java import Java, find_java
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

KEEP = 2
"""The number of caches to keep, about 250 MB each; more than one, for users of two Javas."""

OPTIONS = "spark.driver.extraJavaOptions"
WITHOUT_C2 = tuple(
    f"-XX:Tier4{threshold}Threshold=1000000000"
    for threshold in ("Invocation", "MinInvocation", "Compile", "BackEdge")
)
"""Java optimizes at once what the run that it was trained by has optimized: 704 methods until a first row,
without it 440.
"""

ROWS = "".join(
    f'{{"k": "k{number % 7}", "v": {number}, "ts": "2026-01-01T00:{number % 60:02}:00Z"}}\n'
    for number in range(300)
)
STATEMENTS = """
CREATE STREAM clicks (k STRING, v BIGINT, ts TIMESTAMP) USING json OPTIONS (path '{folder}/in');
SELECT window, k, count(*) AS n, avg(v) AS a FROM clicks GROUP BY window(ts, '10 minutes'), k;
SELECT k, v, ts FROM clicks WHERE v > 10;
CREATE STREAM late_clicks (k STRING, v BIGINT, ts TIMESTAMP) USING json OPTIONS (path '{folder}/in')
  WITH WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE LIVE TABLE counts TRIGGER AVAILABLE NOW AS
  SELECT window.start AS since, k, count(*) AS n, sum(v) AS s FROM late_clicks
  GROUP BY window(ts, '10 minutes'), k;
CREATE LIVE TABLE ranks TRIGGER AVAILABLE NOW AS
  SELECT k, count(*) AS n FROM clicks GROUP BY k ORDER BY n DESC;
AWAIT QUERY counts;
AWAIT QUERY ranks;
SELECT * FROM counts ORDER BY n DESC LIMIT 20;
SELECT count(*) AS n FROM counts;
COPY (SELECT k, v, ts FROM json.`{folder}/in`) TO '{folder}/old.parquet';
COPY (SELECT k, n FROM counts) TO '{folder}/old.csv';
SELECT * FROM parquet.`{folder}/old.parquet`;
CREATE SINK copied USING parquet OPTIONS (path '{folder}/copied');
INSERT INTO copied AS QUERY copying TRIGGER AVAILABLE NOW
  SELECT c.k, c.v + o.v AS u, c.ts FROM late_clicks AS c JOIN parquet.`{folder}/old.parquet` AS o USING (k);
CREATE SINK summed USING json OPTIONS (path '{folder}/summed');
INSERT INTO summed AS QUERY summing TRIGGER AVAILABLE NOW
  SELECT window.start AS since, k, count(*) AS n FROM late_clicks GROUP BY window(ts, '5 minutes'), k;
AWAIT QUERY copying;
AWAIT QUERY summing;
SHOW QUERIES;
DESCRIBE QUERY counts;
SHOW TABLES;
SELECT * FROM range(1000);
"""
"""What a session usually does. It loads the classes that a session needs and compiles the hot ones."""


def main(arguments: list[str]) -> int:
    """`python -m streamsql.runtime.start_up_build JAVA_HOME CACHE`: build the cache, if there is none."""
    java, cache = find_java(arguments[0]), Path(arguments[1])
    os.nice(19)
    file = cache_file(java, cache)
    try:
        lock = Lock(cache / "build.lock", 0)  # the system releases it even if this process is killed
    except Locked:
        return 0  # another build runs
    try:
        if not complete(file):
            _build(java, cache, file)
            failed_file(file).unlink(missing_ok=True)
            _discard_old(cache)
    except Exception as error:
        failed_file(file).write_text(f"{str(error) or type(error).__name__}\n", "utf-8")
        return 1
    finally:
        lock.release()
    return 0


def _build(java: Java, cache: Path, file: Path) -> None:
    """Run typical work, at whose end Java writes the cache."""
    scratch = Path(tempfile.mkdtemp(prefix="build-", dir=cache))
    log = cache / "build.log"
    log.unlink(missing_ok=True)
    new = scratch / file.name
    try:
        flag = "AOTCacheOutput" if file.suffix == ".aot" else "ArchiveClassesAtExit"
        options = " ".join([shlex.quote(f"-XX:{flag}={new}"), *WITHOUT_C2])
        _run(java, cache, log, scratch / "work", {OPTIONS: options})
        if not new.is_file():
            raise OSError(f"Java wrote no cache, see {log}")
        with new.open("rb") as stream:
            os.fsync(stream.fileno())
        size_file(file).write_text(str(new.stat().st_size), "ascii")
        new.replace(file)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(java: Java, cache: Path, log: Path, folder: Path, conf: dict[str, str]) -> None:
    """Typical work in a JVM of its own; the JVM has ended when this returns. conf: settings of Spark."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "rows.json").write_text(ROWS, "utf-8")
    home = str(java.path.parent.parent)
    session = Session(Config(Settings.make("local[2]", conf), folder / "console", log, cache, home))
    process: Any = None
    try:
        process = session.spark.sparkContext._gateway.proc
        for written in split_script(Source("typical work", STATEMENTS.format(folder=folder))):
            result = session.execute(parse(written, session.variables))
            if isinstance(result, RowStream):
                result.whole()
        session.close()
        process.stdin.close()  # the JVM writes its file and ends
        process.wait(BUILD_TIMEOUT / 2)
    finally:
        if process is not None and process.poll() is None:
            process.kill()


def _discard_old(cache: Path) -> None:
    files = [*cache.glob("spark-java*.aot"), *cache.glob("spark-java*.jsa")]
    for file in sorted(files, key=lambda f: f.stat().st_mtime, reverse=True)[KEEP:]:
        for part in (file, size_file(file)):
            part.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
