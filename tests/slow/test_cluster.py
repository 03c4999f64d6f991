"""A standalone cluster on this machine, a master and two workers: what runs on one machine runs there."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from scripts import run_process
from spark_cluster import Cluster
from terminal import Terminal

from streamsql.runtime.engine.cluster import why_no_master
from streamsql.runtime.engine.cluster_cores import EXECUTOR_OPTIONS, tune_executors
from streamsql.runtime.engine.settings import Settings

ROOMS = ("streamsql/runtime/engine/", "streamsql/runtime/preflight/", "streamsql/cli/")

FLAGS = ("-p", "no:cacheprovider", "-q", "-x")
WITH_KAFKA = ["test_examples.py::test_example_with_kafka"] if os.environ.get("STREAMSQL_KILLS") else []
TESTS = (*WITH_KAFKA, "on_a_cluster.py")
"""Kafka, in a long run; then those that kill the cluster."""


@pytest.mark.timeout(600)
def test_scripts_run_on_a_cluster_and_survive_its_faults(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, workers=2, cores=1)
    try:
        cluster.start()
        env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST")},
            "STREAMSQL_TESTS_MASTER": cluster.url,
            "STREAMSQL_TESTS_CONF": " ".join(cluster.conf),
            "STREAMSQL_TESTS_PIDS": json.dumps({n: p.pid for n, p in cluster.processes.items()}),
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [sys.executable, "-m", "pytest", *FLAGS, *TESTS]
        done = subprocess.run(
            command, cwd=ROOT / "tests", env=env, capture_output=True, text=True, timeout=580
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    finally:
        cluster.stop()


def test_a_cluster_is_checked_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("def shout(word: str) -> str:\n    return word.upper()\n")
    (tmp_path / "a.sql").write_text(
        "CREATE STREAM clicks (word STRING) USING json OPTIONS (path 'in');"
        "CREATE FUNCTION shout AS 'words.shout' LANGUAGE PYTHON RETURNS STRING;"
        "CREATE SINK o USING noop; INSERT INTO o SELECT shout(word) AS word FROM clicks;"
        "CREATE STREAM orders USING kafka OPTIONS (servers 'localhost:1', topic 'orders');"
    )
    flags = ("--no-config", "--format", "csv", "--check-cluster")
    asked = run_process(*flags, "--master", "spark://localhost:1", "a.sql", cwd=tmp_path)
    assert asked.code == 3
    for line in (
        "ships,Python words.shout,with each task that calls shout",
        "path,in (clicks),all machines must see it there",
        "setting,spark.sql.shuffle.partitions = 2 for each core of the cluster,from streamsql",
    ):
        assert line in asked.out.splitlines(), asked.out
    assert "master,spark://localhost:1,missing: localhost:1: connection refused" in asked.out
    assert "contacts,localhost:1 (orders),missing: localhost:1: connection refused" in asked.out
    assert "cannot be used yet: spark://localhost:1, localhost:1 (orders)\n" in asked.err
    image = run_process(*flags, "--master", "k8s://https://localhost:1", cwd=tmp_path)
    assert 'image,spark.kubernetes.container.image,"missing: --conf ' in image.out
    refused = run_process("--no-config", "--master", "sc://h:15002", "-e", "SELECT 1;", cwd=tmp_path)
    assert (refused.code, refused.err) == (
        2,
        "error[NO_CONNECT]: the address of a Spark Connect server is no master\nhint: --remote sc://HOST:PORT\n",
    )


def test_executors_compile_as_little_as_the_driver_unless_somebody_chooses() -> None:
    for master, tuned in (("spark://h:1", True), ("local[2]", False)):
        settings = Settings.make(master, {})
        tune_executors(settings)
        shown = {key: value for key, value, _ in settings.rows()}
        assert ("Tier4InvocationThreshold" in shown.get(EXECUTOR_OPTIONS, "")) == tuned
    own = Settings.make("spark://h:1", {EXECUTOR_OPTIONS: "-Xss2m"})
    tune_executors(own)
    assert own.start_conf()[EXECUTOR_OPTIONS] == "-Xss2m"


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it is the server of a web page"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it speaks another protocol"),
        (b"", "it closes the connection"),
        (None, "it has not answered within 0 s"),
        (struct.pack(">qB", 40, 8) + bytes(31), ""),  # Spark: there is no such file
    ],
)
def test_a_server_that_is_no_master_is_told_from_one(answer: bytes | None, word: str) -> None:
    """Spark itself waits a minute."""
    here, there = socket.socketpair()
    with here, there:
        if answer is not None:
            there.sendall(answer)
            there.shutdown(socket.SHUT_WR)
        assert why_no_master(here, 0.3) == word


def test_a_prompt_whose_session_cannot_open_ends_with_the_reason(tmp_path: Path) -> None:
    prompt = Terminal(tmp_path, "-w", "w", "--no-config", "--master", "spark://localhost")
    try:
        prompt.until(r"error\[USAGE\]: spark://localhost names no port\s+hint: spark://localhost:7077")
        assert prompt.exit_code() == 2
        assert "Traceback" not in prompt.scrollback
    finally:
        prompt.kill()
