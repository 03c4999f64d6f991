"""Consoles are killed at any moment, and after each kill the workspace opens and nothing is lost or twice.

A short run is a part of the suite. The long one is
`STREAMSQL_KILLS=50 python -m pytest tests/faults -s`; it prints its figures.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from scripts import command

KILLS = int(os.environ.get("STREAMSQL_KILLS", "1"))
USERS = ("ann", "bob", "cid", "dan")
DEFINITIONS = """
CREATE STREAM clicks (id INT, user STRING, ts TIMESTAMP) USING json
  OPTIONS (path 'clicks', maxFilesPerTrigger '1') WITH WATERMARK ts DELAY OF INTERVAL 1 DAY;
CREATE STREAM buys (id INT, user STRING, ts TIMESTAMP) USING json
  OPTIONS (path 'buys', maxFilesPerTrigger '1') WITH WATERMARK ts DELAY OF INTERVAL 1 DAY;
CREATE SINK copies USING json OPTIONS (path 'copies');
CREATE SINK joined USING json OPTIONS (path 'joined');
CREATE SINK totals USING jdbc KEY (user) OPTIONS (url 'jdbc:sqlite:totals.db', table 'totals');
CREATE LIVE TABLE counts AS SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user;
INSERT INTO copies SELECT id, user FROM clicks;
INSERT INTO totals SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user;
INSERT INTO joined SELECT c.id AS click, b.id AS buy FROM clicks c JOIN buys b
  ON c.user = b.user AND b.ts BETWEEN c.ts AND c.ts + INTERVAL 10 SECONDS;
"""


class Pipeline:
    """A workspace, its input, and what its queries must have made of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.rows: dict[str, list[tuple[int, str, int]]] = {"clicks": [], "buys": []}
        for name in self.rows:
            (folder / name).mkdir()

    def feed(self, files: int = 2, rows: int = 10) -> None:
        """More input, each file whole from the moment that it is there."""
        for name, known in self.rows.items():
            for _ in range(files):
                new = [
                    (len(known) + n, self.random.choice(USERS), self.random.randrange(600))
                    for n in range(rows)
                ]
                known += new
                lines = [
                    json.dumps({"id": i, "user": u, "ts": f"2026-01-01T10:{s // 60:02}:{s % 60:02}"})
                    for i, u, s in new
                ]
                part = self.folder / f"{name}.part"
                part.write_text("\n".join(lines) + "\n")
                part.rename(self.folder / name / f"{len(known):06}.json")

    def start(self, script: str, *flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command("-w", "w", *flags, "-e", script),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def commits(self) -> int:
        return sum(1 for _ in (self.folder / "w").glob("run/queries/*/checkpoint/commits/[0-9]*"))

    def wait_for_commits(self, more_than: int, console: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + 120
        while self.commits() <= more_than:
            assert console.poll() is None, console.communicate()[1]
            assert time.monotonic() < deadline, "no micro-batch was done"
            time.sleep(0.02)

    def check(self, counts: list[dict[str, object]]) -> None:
        """The results are those of the whole input, each row once."""
        clicks, buys = self.rows["clicks"], self.rows["buys"]
        number = Counter(u for _, u, _ in clicks)
        total = {u: sum(i for i, v, _ in clicks if v == u) for u in number}
        by_user = sorted((u, number[u], total[u]) for u in number)
        assert sorted((str(r["user"]), r["n"], r["total"]) for r in counts) == by_user
        with sqlite3.connect(self.folder / "totals.db") as connection:
            assert sorted(connection.execute("SELECT user, n, total FROM totals")) == by_user
        assert self.written("copies", "id", "user") == sorted((i, u) for i, u, _ in clicks)
        pairs = sorted((c, b) for c, u, s in clicks for b, v, t in buys if u == v and s <= t <= s + 10)
        assert self.written("joined", "click", "buy") == pairs

    def written(self, sink: str, *columns: str) -> list[tuple[object, ...]]:
        """The rows of a file sink, by its own log of the files that count."""
        found = []
        log = self.folder / sink / "_spark_metadata"
        files: dict[str, None] = {}
        for batch in sorted((p for p in log.iterdir() if p.name[0].isdigit()), key=lambda p: int(p.stem)):
            if batch.suffix == ".compact":
                files.clear()
            for line in batch.read_text().splitlines()[1:]:
                files[json.loads(line)["path"]] = None
        for file in files:
            for line in Path(file.removeprefix("file://")).read_text().splitlines():
                row = json.loads(line)
                found.append(tuple(row[c] for c in columns))
        return sorted(found)  # type: ignore[type-var]


def jvm_of(console: subprocess.Popen[str]) -> list[int]:
    done = subprocess.run(
        ["pgrep", "-P", str(console.pid), "-f", "PythonGatewayServer"], capture_output=True, text=True
    )
    return [int(pid) for pid in done.stdout.split()]


def kill(console: subprocess.Popen[str], what: str) -> None:
    """SIGKILL to Python, to the JVM, or to both; returns when all of the console has ended."""
    jvms = jvm_of(console)
    if what in ("python", "both"):
        os.kill(console.pid, signal.SIGKILL)
    if what in ("jvm", "both"):
        for pid in jvms:
            os.kill(pid, signal.SIGKILL)
    console.communicate(timeout=120)
    deadline = time.monotonic() + 60
    while any(
        Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in jvms
    ):
        assert time.monotonic() < deadline, "the JVM outlived its console"
        time.sleep(0.05)


def test_killed_consoles_lose_nothing(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, seed=7)
    pipeline.feed()
    console = pipeline.start(DEFINITIONS)
    began, kinds = time.monotonic(), Counter[str]()
    for number in range(KILLS):
        done = pipeline.commits()
        pipeline.feed()
        pipeline.wait_for_commits(done, console)
        time.sleep(pipeline.random.random())  # the moment of the fault is what is tried
        what = ("both", "jvm", "python")[number % 3]
        kinds[what] += 1
        kill(console, what)
        console = pipeline.start("SHOW STREAMS;", "--resume")
    kill(console, "both")
    last = pipeline.start(
        "AWAIT QUERY ALL IDLE; SELECT * FROM counts; STOP QUERY ALL;", "--resume", "--format", "jsonl"
    )
    out, words = last.communicate(timeout=300)
    assert last.returncode == 0, words
    rows = [json.loads(line) for line in out.splitlines() if '"total"' in line]
    pipeline.check(rows)
    took = time.monotonic() - began
    print(
        f"\n{sum(kinds.values())} kills ({dict(kinds)}), {pipeline.commits()} micro-batches kept in the logs, "
        f"{sum(map(len, pipeline.rows.values()))} rows in, {took:.0f} s",
        file=sys.stderr,
    )


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_while_the_catalog_is_written_leaves_it_whole(tmp_path: Path, moment: str) -> None:
    """The console dies right before, or right behind, the moment that the new catalog takes the old one's place."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib\n"
        "replace = pathlib.Path.replace\n"
        "def dying(self, target):\n"
        "    last = pathlib.Path(target).name == 'catalog.sql' and 'second' in self.read_text()\n"
        f"    if last and {moment!r} == 'before': os.kill(os.getpid(), 9)\n"
        "    replace(self, target)\n"
        "    if last: os.kill(os.getpid(), 9)\n"
        "pathlib.Path.replace = dying\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    script = "CREATE STREAM first (n INT) USING values; CREATE STREAM second (n INT) USING values;"
    done = subprocess.run(
        command("-w", "w", "-e", script), cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr
    again = subprocess.run(
        command("-w", "w", "--format", "csv", "-e", "SHOW STREAMS;"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    names = [line.split(",")[0] for line in again.stdout.splitlines()[1:]]
    assert names == (["first"] if moment == "before" else ["first", "second"]), again.stderr
