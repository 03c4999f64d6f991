"""Servers, their Spark and their clients are killed while queries run: nothing is lost, nothing comes twice.

A short run is a part of the suite. The long one is
`STREAMSQL_SERVER_KILLS=200 python -m pytest tests/faults/test_kills_of_servers.py -s`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pipeline import DEFINITIONS, PATIENCE, QUERIES, RESULT, Console, Pipeline
from scripts import command

from streamsql.server.registry import status_of

KILLS = int(os.environ.get("STREAMSQL_SERVER_KILLS", "1"))
KINDS = ("server", "client", "jvm")
ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE rand() < 0.1;"


class Servers:
    """One server after the other on one workspace, each with the same script."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.folder = pipeline.folder
        (self.folder / "definitions.sql").write_text(DEFINITIONS)
        self.words = self.folder / "server words"
        self.begin()

    def begin(self) -> None:
        with self.words.open("wb") as words:
            self.process = subprocess.Popen(
                command("serve", "-w", "w", "definitions.sql"), cwd=self.folder, stdout=words, stderr=words
            )

    def status(self) -> dict[str, Any]:
        try:
            return status_of(self.folder / "w") or {}
        except OSError:
            return {}

    def until(self, seen: Any, pause: float = 0.05) -> None:
        deadline = time.monotonic() + PATIENCE
        while not seen():
            assert self.process.poll() is None, self.words.read_text()
            assert time.monotonic() < deadline, self.words.read_text()
            time.sleep(pause)

    def running(self) -> bool:
        """Whether all queries run."""
        queries = self.status().get("queries", {})
        return sorted(queries) == sorted(QUERIES) and set(queries.values()) == {"running"}

    def wait_inside(self, query: str) -> None:
        """Wait for a micro-batch that is under way; one that is never caught is no reason to wait longer."""
        deadline = time.monotonic() + 10
        self.until(
            lambda: self.pipeline.under_way(query) is not None or time.monotonic() > deadline, pause=0.001
        )

    def kill(self, kind: str, number: int) -> None:
        self.until(self.running)
        if kind == "client":
            before = self.status()["clients"]
            client = subprocess.Popen(
                command("-w", "w", "-e", ENDLESS), cwd=self.folder, stderr=subprocess.DEVNULL
            )
            self.until(lambda: self.status()["clients"] > before)
            client.kill()
            client.wait()
            self.until(lambda: self.status()["clients"] == before)
            assert self.running()
            return
        jvm = self._jvm()
        self.wait_inside(QUERIES[number % len(QUERIES)])
        if kind == "jvm":  # the server starts another one, and the queries
            os.kill(jvm, signal.SIGKILL)
            self.until(lambda: not self.running())
            return
        self.process.kill()
        self.process.wait()
        self.begin()

    def _jvm(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        processes = [int(p) for file in children for p in file.read_text().split()]
        return next(p for p in processes if b"PythonGatewayServer" in Path(f"/proc/{p}/cmdline").read_bytes())

    def compare(self) -> None:
        """What a client reads is that of the whole input, row for row."""
        self.until(self.running)
        client = Console(self.folder, RESULT)
        assert client.process.wait(5 * PATIENCE) == 0, client.words
        assert client.words.count(" is verified: ") == len(QUERIES), client.words
        assert self.pipeline.results(client) == self.pipeline.expected()

    def end(self) -> None:
        """SIGTERM: the micro-batches complete."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.words.read_text()


def test_killed_servers_and_clients_lose_nothing(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, seed=int(os.environ.get("STREAMSQL_SEED", "11")))
    pipeline.feed()
    servers, counted, began = Servers(pipeline), Counter[str](), time.monotonic()
    try:
        for number in range(KILLS):
            kind = KINDS[number % len(KINDS)]
            servers.kill(kind, number)
            counted[kind] += 1
            pipeline.feed()
            if number % 10 == 9:
                servers.compare()
                counted["comparisons"] += 1
        servers.compare()
        servers.end()
    finally:
        servers.process.kill()
        servers.process.wait()
    assert json.loads((tmp_path / "w" / "status.json").read_text())["queries"].keys() == set(QUERIES)
    print(f"\n{dict(counted)}, {(time.monotonic() - began) / 60:.1f} min", file=sys.stderr)
