"""Every example runs and shows what its golden file holds; the socket one against a real server."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import Broker
from conftest import ROOT
from scripts import command, run_here
from sql_cases import results_of

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker, read_all
from streamsql.cli.findings import Reporter
from streamsql.config.preferences import Preferences
from streamsql.features.testing.cases import ENDING
from streamsql.features.testing.sessions import SessionFactory
from streamsql.output.printer import Printer
from streamsql.output.script_runner import read_file
from streamsql.plan.context import Context
from streamsql.runtime.engine.settings import Settings

ROOMS = ("examples/", "streamsql/features/testing/", "streamsql/plan/")

EXAMPLES = ROOT / "examples"
GOLDEN = Path(__file__).parent / "golden" / "examples"
BY_SOCKET = {"word_count_socket.sql"}
BY_KAFKA = {"kafka_orders_paid.sql"}
ALL = sorted(p.name for p in EXAMPLES.glob("*.sql") if not p.name.endswith(ENDING))
SCRIPTS = [name for name in ALL if name not in BY_SOCKET | BY_KAFKA]


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name: str, spark: Any, tmp_path: Path) -> None:
    check_example(name, spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_KAFKA))
def test_example_with_kafka(name: str, spark: Any, kafka: Broker, tmp_path: Path) -> None:
    for topic in ("orders", "payments"):
        kafka.topic(name=topic, partitions=2)
    try:
        check_example(name, spark, tmp_path, servers=kafka.servers)
    finally:
        for topic in ("orders", "payments"):
            kafka.delete(topic)


def check_example(name: str, spark: Any, tmp_path: Path, **variables: str) -> None:
    source = read_file(str(EXAMPLES / name))
    outcome = run_here(spark, tmp_path, source, out=str(tmp_path / "out"), **variables)
    golden = GOLDEN / name.replace(".sql", ".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(outcome.out)
    assert outcome.code == 0, outcome.err
    assert outcome.out == golden.read_text()


@pytest.mark.parametrize("name", ALL)
def test_example_checks_without_spark(name: str) -> None:
    said = io.StringIO()
    printer = Printer(Preferences(), said, said)
    code = read_all([read_file(str(EXAMPLES / name))], {}, Reporter(printer), Checker(Context(Catalog())))
    assert code == 0, said.getvalue()


@pytest.mark.slow
def test_each_example_is_tested_in_sql(spark: Any) -> None:
    """All in one session of Spark, without a server."""
    files = [str(EXAMPLES / name.replace(".sql", ENDING)) for name in ALL]
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    try:
        results = results_of(files, factory)
    finally:
        factory.close()
    assert results and not "\n".join(filter(None, results.values()))


def test_files_to_parquet_resumes_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    """The example's promise: run again, it reads only what is new and writes nothing twice."""
    source = read_file(str(EXAMPLES / "files_to_parquet.sql"))
    first = run_here(spark, tmp_path, source, out=str(tmp_path / "out"))
    again = run_here(spark, tmp_path, source, out=str(tmp_path / "out"))
    assert (first.code, again.code) == (0, 0), again.err
    assert first.out == again.out


@pytest.fixture
def line_server() -> Iterator[tuple[int, Any]]:
    """A listening socket, and a function that sends lines to whoever has connected."""
    server = socket.create_server(("127.0.0.1", 0))
    connected = threading.Event()
    peers: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            peers.append(peer)
            connected.set()

    def send(*lines: str) -> None:
        assert connected.wait(60), "nobody connected"
        for peer in peers:
            peer.sendall("".join(line + "\n" for line in lines).encode())

    threading.Thread(target=accept, daemon=True).start()
    yield server.getsockname()[1], send
    server.close()
    for peer in peers:
        peer.close()


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_word_count_over_a_real_socket(line_server: tuple[int, Any]) -> None:
    port, send = line_server
    arguments = command("--format", "csv", "-D", f"port={port}", str(EXAMPLES / "word_count_socket.sql"))
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        counts: dict[str, int] = {}
        kill = threading.Timer(120, process.kill)
        kill.start()
        send("apple banana apple", "cherry")
        sent_more = False
        assert process.stdout
        for line in process.stdout:
            word, _, n = line.strip().partition(",")
            if n.isdigit():
                counts[word] = int(n)
            if counts == {"apple": 2, "banana": 1, "cherry": 1} and not sent_more:
                send("banana banana")
                sent_more = True
            if counts.get("banana") == 3:
                break
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=60)
        kill.cancel()
    assert counts == {"apple": 2, "banana": 3, "cherry": 1}
    assert process.returncode == 0, words
    assert "Traceback" not in words
