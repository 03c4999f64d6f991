"""Servers, their Spark and their clients are killed while queries run: nothing is lost, nothing comes twice.

A short run is a part of the suite. The long one is
`STREAMSQL_SERVER_KILLS=200 python -m pytest tests/faults/test_kills_of_servers.py -s`; it prints its figures.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline import DEFINITIONS, PATIENCE, QUERIES, RESULT, VERIFIED, Console, Pipeline
from scripts import command

from streamsql.server.running_servers import status_of

ROOMS = ("streamsql/runtime/", "streamsql/server/", "streamsql/cli/")

KILLS = int(os.environ.get("STREAMSQL_SERVER_KILLS", "1"))
LONG = KILLS >= 10
CLIENTS = ("insert", "select", "stop", "read"), ("insert", "stream", "select", "stop")
ROUNDS = (
    ("server",), ("opening",), *CLIENTS,
    ("jvm",), ("dying",), *CLIENTS,
)  # fmt: skip
"""What is killed, in turn. server, jvm: in a micro-batch, while a client inserts rows; opening, dying: the server,
its JVM, before the queries run again; the others: clients at the same time, by what they do.
"""
MORE = """
CREATE STREAM notes (n INT) USING values;
CREATE LIVE TABLE noted AS SELECT n AS note, count(*) AS times FROM notes GROUP BY n;
CREATE LIVE TABLE newest AS SELECT user, id FROM
  (SELECT *, row_number() OVER (PARTITION BY user ORDER BY id DESC) AS rn FROM clicks) WHERE rn <= 2;
"""
NAMES = {*QUERIES, "noted", "newest"}
"""newest runs in stages."""
SCRIPTS = {
    "select": "SELECT count(*) FROM range(1000000000000) WHERE rand() < 0.1;",
    "stream": "SELECT user, count(*) AS n FROM clicks GROUP BY user; " * 9,
    "read": "SELECT count(*) FROM range(1000000000000) WHERE rand() < 0.1;",
    "stop": "".join(f"STOP QUERY {name}; START QUERY {name};" for name in QUERIES),
}
CLIENT_ENDS = 20.0
"""The seconds within which a client must have ended when its server is killed."""


class Notes:
    """Rows that clients insert one by one. What was confirmed must stay; at most the last one that was sent may
    be there without.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.confirmed = set[int]()
        self.unknown = set[int]()

    def script(self, count: int = 12) -> str:
        return "".join(f"INSERT INTO notes VALUES ({n});" for n in range(self.sent, self.sent + count))

    def take(self, client: Console, count: int = 12) -> None:
        """Once a client has ended: which of its rows were confirmed."""
        known = client.words.count("one micro-batch for notes")
        self.confirmed |= set(range(self.sent, self.sent + known))
        self.unknown |= {self.sent + known} if known < count else set()
        self.sent += count

    def compare(self, rows: list[dict[str, object]]) -> None:
        times = {row["note"]: row["times"] for row in rows}
        assert set(times.values()) <= {1}, times
        assert self.confirmed <= times.keys() <= self.confirmed | self.unknown


class Servers:
    """One server after the other on one workspace, each with the same script."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.folder = pipeline.folder
        self.notes = Notes()
        self.counted = Counter[str]()
        self.stopping = False
        """Whether a client has stopped queries: a server resumes only those that ran."""
        (self.folder / "definitions.sql").write_text(DEFINITIONS + MORE)
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

    def until(self, seen: Callable[[], object], pause: float = 0.05) -> None:
        deadline = time.monotonic() + PATIENCE
        while not seen():
            assert self.process.poll() is None, self.words.read_text()
            assert time.monotonic() < deadline, f"{self.status()}\n{self.words.read_text()}"
            time.sleep(pause)

    def running(self) -> bool:
        """Whether all queries run."""
        queries = self.status().get("queries", {})
        return queries.keys() >= NAMES and set(queries.values()) == {"running"}

    def wait_inside(self, query: str) -> None:
        """Wait for a micro-batch that is under way; one that is never caught is no reason to wait longer."""
        deadline = time.monotonic() + 5
        self.until(
            lambda: self.pipeline.under_way(query) is not None or time.monotonic() > deadline, pause=0.001
        )

    # ---- kills ----------------------------------------------------------------------------

    def kill(self, kinds: tuple[str, ...], number: int) -> None:
        kind = kinds[0]
        if kind == "opening":
            self.until(lambda: self.status() or self.words.stat().st_size)
            time.sleep(self.pipeline.random.random() * 6)  # the moment of the fault is what is tried
            self.kill_server()
        elif kind == "dying":
            self.until(self._jvms)
            time.sleep(self.pipeline.random.random() * 6)
            os.kill(self._jvms()[0], signal.SIGKILL)
        else:
            self.await_running()
            if kind in ("server", "jvm"):
                self.kill_with_a_client(kind, QUERIES[number // len(ROUNDS) % len(QUERIES)])
            else:
                self.kill_clients(kinds)

    def kill_with_a_client(self, kind: str, query: str) -> None:
        """Kill the server, or its JVM, while a client waits for the result of an INSERT."""
        jvm = self._jvms()[0]
        client = Console(self.folder, self.notes.script())
        self.until(lambda: client.said("one micro-batch for notes"), 0.001)
        self.pipeline.feed(1)
        self.wait_inside(query)
        self.counted["cut"] += sum(self.pipeline.under_way(q) is not None for q in QUERIES)
        if kind == "jvm":  # the server starts another one, and the queries
            os.kill(jvm, signal.SIGKILL)
            self.until(lambda: not self.running())
        else:
            self.kill_server()
        try:
            client.process.wait(CLIENT_ENDS if kind == "server" else PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the client hangs: {client.words}") from None
        self.notes.take(client)
        for hidden in ("Traceback", "\tat ", "py4j", "Py4J", "java."):
            assert hidden not in client.words, client.words

    def kill_server(self) -> None:
        self.process.kill()
        self.process.wait()
        self.begin()

    def kill_clients(self, kinds: tuple[str, ...]) -> None:
        """Kill clients at their work: nothing of the server ends with them."""
        before, clients = self.status()["clients"], dict[str, Console]()
        for kind in kinds:
            (self.folder / kind).mkdir(exist_ok=True)
            flags = ("--read-only",) if kind == "read" else ()
            script = SCRIPTS.get(kind) or self.notes.script()
            clients[kind] = Console(self.folder / kind, script, *flags, workspace=str(self.folder / "w"))
        self.until(
            lambda: (
                self.status()["clients"] >= before + len(clients)
                or any(client.process.poll() is not None for client in clients.values())
            )
        )
        time.sleep(self.pipeline.random.random() * 2)  # the moment of the fault is what is tried
        for client in clients.values():
            client.process.kill()
        for client in clients.values():
            client.process.wait()
        if "insert" in clients:
            self.notes.take(clients["insert"])
        self.until(lambda: self.status()["clients"] == before)
        self.stopping |= "stop" in clients
        self.await_running()

    def await_running(self) -> None:
        """Wait until all queries run. What a client has stopped is started again: a statement of a killed client
        that had arrived completes, and may do so late.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.running():
            assert self.process.poll() is None, self.words.read_text()
            assert time.monotonic() < deadline, f"{self.status()}\n{self.words.read_text()}"
            queries = self.status().get("queries", {})
            stopped = [name for name, status in queries.items() if status == "stopped"]
            if self.stopping and stopped and "stopping" not in queries.values():
                again = Console(self.folder, "".join(f"START QUERY {name};" for name in stopped))
                assert again.process.wait(PATIENCE) == 0 or again.said("is still stopping"), again.words
            time.sleep(0.1)

    def _jvms(self) -> list[int]:
        """The process of the server's JVM, if it has one now."""
        done = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "PythonGatewayServer"],
            capture_output=True,
            text=True,
        )
        return [int(pid) for pid in done.stdout.split()]

    # ---- results --------------------------------------------------------------------------

    def compare(self) -> None:
        """What a client reads is that of the whole input, row for row."""
        self.await_running()
        more = "SELECT note, times FROM noted; SELECT user, id AS newest FROM newest;"
        client = Console(self.folder, RESULT + more)
        assert client.process.wait(5 * PATIENCE) == 0, client.words
        assert client.words.count(" is verified: ") == len(VERIFIED), client.words
        assert self.pipeline.results(client) == self.pipeline.expected()
        self.notes.compare(client.rows("times"))
        ids = [(user, i) for i, user, _ in self.pipeline.input["clicks"]]
        newest = {(u, i) for u, i in ids if sum(v == u and j > i for v, j in ids) < 2}
        assert sorted((r["user"], r["newest"]) for r in client.rows("newest")) == sorted(newest)
        self.counted["comparisons"] += 1

    def end(self) -> None:
        """SIGTERM: the micro-batches complete."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.words.read_text()


@pytest.mark.timeout(300 + 60 * KILLS)
def test_killed_servers_and_clients_lose_nothing(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, seed=int(os.environ.get("STREAMSQL_SEED", "11")))
    pipeline.feed()
    servers, began, killed = Servers(pipeline), time.monotonic(), 0
    try:
        for number in itertools.count():
            kinds = ROUNDS[number % len(ROUNDS)]
            servers.kill(kinds, number)
            servers.counted.update(kinds)
            killed += len(kinds)
            if kinds[0] in ("server", "jvm"):
                pipeline.feed(1)
            if LONG:
                words = f"{killed:4} {', '.join(kinds):30} {time.monotonic() - began:6.0f} s"
                print(words, file=sys.stderr, flush=True)
            if killed >= KILLS:
                break
            if number % 20 == 19:
                servers.compare()
        servers.compare()
        servers.end()
    finally:
        servers.process.kill()
        servers.process.wait()
    kept = json.loads((tmp_path / "w" / "status.json").read_text())["queries"].keys()
    assert kept >= NAMES
    print(
        f"\n{dict(servers.counted)}, {pipeline.batches()} micro-batches, {len(servers.notes.confirmed)} rows confirmed "
        f"to clients, {len(servers.notes.unknown)} without an answer, {(time.monotonic() - began) / 60:.1f} min",
        file=sys.stderr,
    )
