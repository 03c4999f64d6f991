"""A true Spark cluster on this machine, a master and a worker, loses both while a query runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from pipeline import Pipeline, wait_for_end, written
from terminal import Terminal
from test_kills import LONG

from streamsql.runtime.engine.java import JavaNotFound, find_java, spark_home

REGISTERED = "Successfully registered with master"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A master and a worker, started by Spark's own script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:  # the bundled one lacks a module that Spark's own script asks for
            self.java = str(find_java("system").path.resolve().parent.parent)
        except JavaNotFound as error:
            pytest.skip(error.message)
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        self._start("Master", "--port", str(self.port), "--webui-port", str(free_port()))
        work = str(self.folder / "work")
        flags = ("--webui-port", str(free_port()), "--cores", "2", "--memory", "1g", "--work-dir", work)
        said = self._words("Worker").count(REGISTERED)
        self._start("Worker", *flags, self.url)
        deadline = time.monotonic() + 60
        while self._words("Worker").count(REGISTERED) == said:
            assert time.monotonic() < deadline, self._words("Worker")
            time.sleep(0.05)

    def _words(self, what: str) -> str:
        log = self.folder / f"{what}.log"
        return log.read_text() if log.exists() else ""

    def _start(self, what: str, *flags: str) -> None:
        home = spark_home()
        env = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": self.java, "SPARK_LOCAL_IP": "127.0.0.1"}
        script = str(home / "bin" / "spark-class")
        with (self.folder / f"{what}.log").open("ab") as log:
            self.processes[what] = subprocess.Popen(
                [script, f"org.apache.spark.deploy.{what.lower()}.{what}", "--host", "127.0.0.1", *flags],
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, what: str) -> None:
        process = self.processes.pop(what)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for_end([process.pid])


@pytest.mark.skipif(not LONG, reason="takes a minute: STREAMSQL_KILLS=50 runs it")
def test_a_lost_cluster_is_said_and_the_query_goes_on_with_the_next_one(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start()
    pipeline = Pipeline(tmp_path, seed=3)
    pipeline.feed()
    conf = (
        "spark.driver.host=127.0.0.1", "spark.executor.memory=512m", "spark.sql.shuffle.partitions=1",
        "spark.ui.enabled=false",
    )  # fmt: skip
    flags = [word for pair in conf for word in ("--conf", pair)]
    prompt = Terminal(tmp_path, "-w", "w", "--master", cluster.url, *flags, columns=120, lines=44)
    definitions = (
        f"CREATE STREAM clicks (id INT, user STRING, ts TIMESTAMP) USING json OPTIONS (path '{tmp_path}/clicks');"
        f"CREATE SINK copies USING json OPTIONS (path '{tmp_path}/copies');"
        "CREATE LIVE TABLE counts AS SELECT user, count(*) AS n, sum(id) AS total FROM clicks GROUP BY user;"
        "INSERT INTO copies SELECT id, user FROM clicks; AWAIT QUERY ALL IDLE;"
    )
    (tmp_path / "all.sql").write_text(definitions)
    try:
        prompt.prompt()
        prompt.run("SOURCE 'all.sql';", "^idle")
        cluster.kill("Worker")
        pipeline.feed()
        prompt.until(rf"no worker of {cluster.url} accepts tasks: statements and queries wait for one")
        cluster.kill("Master")
        prompt.until(rf"Spark has ended: the master {cluster.url} is lost, and no worker is left.*resumes")
        prompt.clear()
        prompt.run("SHOW QUERIES;", rf"query copies ended with Spark: the master {cluster.url} is lost")
        prompt.run(
            "START QUERY ALL;", rf"error: no Spark master answers at {cluster.url}.*hint: is it running"
        )
        cluster.start()
        prompt.clear()
        prompt.run("START QUERY ALL;", "started: counts, copies")
        prompt.run("AWAIT QUERY ALL IDLE;", "^idle")
        prompt.run("SELECT count(*) AS users, sum(n) AS n, sum(total) AS total FROM counts;", r"\(1 row, ")
        clicks = pipeline.input["clicks"]
        users, total = len({u for _, u, _ in clicks}), sum(i for i, _, _ in clicks)
        prompt.until(rf"\| +{users} \| +{len(clicks)} \| +{total} \|")
        assert written(tmp_path / "copies", "id", "user") == pipeline.expected()["copies"]
        for hidden in ("Traceback", "java.", "\tat ", "py4j"):
            assert hidden not in prompt.scrollback, prompt.scrollback
    finally:
        prompt.kill()
        for what in list(cluster.processes):
            cluster.kill(what)
