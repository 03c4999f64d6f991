"""Four queries over files in a workspace, what they must have made of their input, and how they stand on disk."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from scripts import command

USERS = ("ann", "bob", "cid", "dan")
QUERIES = ("copies", "counts", "joined", "totals")
DEFINITIONS = """
CREATE STREAM churn (n0 INT) USING values;
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
LONG = any(int(os.environ.get(name, "0")) >= 10 for name in ("STREAMSQL_KILLS", "STREAMSQL_SERVER_KILLS"))
VERIFIED = QUERIES if LONG else ("copies",)
"""Those that the console itself verifies, too; all are compared with what Python computes."""
VERIFY = " ".join(f"VERIFY QUERY {name};" for name in VERIFIED)
RESULT = f"AWAIT QUERY ALL IDLE; {VERIFY} SELECT * FROM counts;"
PATIENCE = 180.0

Results = dict[str, list[tuple[object, ...]]]


class Console:
    """A process of streamsql on a workspace, its words and rows in files beside it."""

    def __init__(self, folder: Path, script: str, *flags: str, workspace: str = "w") -> None:
        self.words_file, self.rows_file = folder / "words", folder / "rows"
        with self.words_file.open("wb") as words, self.rows_file.open("wb") as rows:
            self.process = subprocess.Popen(
                command("-w", workspace, "--format", "jsonl", *flags, "-e", script),
                cwd=folder,
                stdout=rows,
                stderr=words,
                start_new_session=True,
            )
        self.folder = folder

    @property
    def words(self) -> str:
        return self.words_file.read_text("utf-8", "replace")

    def rows(self, column: str) -> list[dict[str, object]]:
        """The rows so far that have such a column."""
        lines = self.rows_file.read_text("utf-8", "replace").splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]
        return [row for row in found if column in row]

    def until(self, seen: Callable[[], object], pause: float = 0.01, patience: float = PATIENCE) -> None:
        """Wait for something while the console runs."""
        deadline = time.monotonic() + patience
        while not seen():
            assert self.process.poll() is None, self.words
            assert time.monotonic() < deadline, f"waited in vain; {self.words}"
            time.sleep(pause)

    def said(self, pattern: str) -> bool:
        return re.search(pattern, self.words) is not None

    def jvm(self) -> list[int]:
        """The processes of the console's JVM: one, or none as yet."""
        done = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "PythonGatewayServer"],
            capture_output=True,
            text=True,
        )
        return [int(pid) for pid in done.stdout.split()]

    def kill(self, what: str, jvm: list[int]) -> None:
        """SIGKILL to python, jvm or both, at once; waits for Python's end, the JVM may go on a moment."""
        if what != "jvm" or not jvm:
            os.kill(self.process.pid, signal.SIGKILL)
        if what != "python":
            for pid in jvm:
                os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        for hidden in ("Traceback", "\tat ", "py4j", "Py4J", "java."):
            assert hidden not in self.words, self.words


def wait_for_end(processes: list[int]) -> float:
    """Wait until they have ended. Returns the seconds that it took."""
    began = time.monotonic()
    while any(_runs(pid) for pid in processes):
        assert time.monotonic() - began < 60, "the JVM outlived its console"
        time.sleep(0.02)
    return time.monotonic() - began


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def newest(folder: Path) -> int:
    """The last number in a log folder of Spark's, -1 without one."""
    try:
        return max((int(n) for n in os.listdir(folder) if n.isdigit()), default=-1)
    except OSError:
        return -1


class Pipeline:
    """A workspace, its input, and what its queries must have made of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.input: dict[str, list[tuple[int, str, int]]] = {"clicks": [], "buys": []}
        for name in self.input:
            (folder / name).mkdir()

    def feed(self, files: int = 2, rows: int = 10) -> None:
        """More input, each file whole from the moment that it is there."""
        for name, known in self.input.items():
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

    # ---- how the queries stand on disk ----------------------------------------------------

    def _logs(self, query: str) -> tuple[int, int]:
        checkpoint = self.folder / "w" / "run" / "queries" / query / "current" / "checkpoint"
        commits = newest(checkpoint / "commits")  # first: what is committed has offsets for sure
        return newest(checkpoint / "offsets"), commits

    def under_way(self, query: str) -> int | None:
        """The micro-batch that was begun (its offsets are there) and not done (no commit), if there is one."""
        offsets, commits = self._logs(query)
        return offsets if offsets > commits else None

    def batches(self) -> int:
        return sum(self._logs(query)[1] + 1 for query in QUERIES)

    def sink_has(self, query: str, batch: int) -> bool:
        """Whether the sink of a query holds that micro-batch already."""
        if query == "counts":
            kept = self.folder / "w" / "run" / "queries" / "counts" / "current" / "rows" / "counts"
            return any((kept / f"{batch}{end}").exists() for end in (".new", ".all"))
        if query == "totals":
            try:
                with sqlite3.connect(self.folder / "totals.db", timeout=30) as connection:
                    return (str(batch),) in connection.execute(
                        "SELECT batch FROM streamsql_batches"
                    ).fetchall()
            except sqlite3.OperationalError:  # no table yet
                return False
        log = self.folder / query / "_spark_metadata"
        return (log / str(batch)).exists() or (log / f"{batch}.compact").exists()

    # ---- results --------------------------------------------------------------------------

    def expected(self) -> Results:
        """What the whole input makes, each row once: computed here, in Python."""
        clicks, buys = self.input["clicks"], self.input["buys"]
        number = Counter(u for _, u, _ in clicks)
        by_user = [(u, number[u], sum(i for i, v, _ in clicks if v == u)) for u in sorted(number)]
        pairs = sorted((c, b) for c, u, s in clicks for b, v, t in buys if u == v and s <= t <= s + 10)
        copies = sorted((i, u) for i, u, _ in clicks)
        return {"counts": by_user, "totals": by_user, "copies": copies, "joined": pairs}  # type: ignore[dict-item]

    def results(self, console: Console) -> Results:
        """What is there once the console has shown the live table."""
        counts = sorted((str(r["user"]), r["n"], r["total"]) for r in console.rows("total"))
        return {
            "counts": counts,  # type: ignore[dict-item]
            "totals": sorted_totals(self.folder),
            "copies": written(self.folder / "copies", "id", "user"),
            "joined": written(self.folder / "joined", "click", "buy"),
        }


def sorted_totals(folder: Path) -> list[tuple[object, ...]]:
    """The rows of the database's table."""
    with sqlite3.connect(folder / "totals.db", timeout=30) as connection:
        return sorted(connection.execute("SELECT user, n, total FROM totals"))


def written(sink: Path, *columns: str) -> list[tuple[object, ...]]:
    """The rows of a file sink, by its own log of the files that count."""
    found = []
    files: dict[str, None] = {}
    log = (p for p in (sink / "_spark_metadata").iterdir() if p.name[0].isdigit())
    for batch in sorted(log, key=lambda p: int(p.stem)):
        if batch.suffix == ".compact":
            files.clear()
        for line in batch.read_text().splitlines()[1:]:
            files[json.loads(line)["path"]] = None
    for file in files:
        for line in Path(file.removeprefix("file://")).read_text().splitlines():
            row = json.loads(line)
            found.append(tuple(row[c] for c in columns))
    return sorted(found)  # type: ignore[type-var]
