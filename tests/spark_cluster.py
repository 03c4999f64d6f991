"""A standalone Spark cluster on this machine: a master and workers, out of the pyspark package."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from streamsql.config.folders import cache_folder
from streamsql.errors import StartFault
from streamsql.runtime.engine import aot_cache
from streamsql.runtime.engine.java import find_java, spark_home
from streamsql.runtime.engine.java_command import MODULE_OPTIONS, class_path

REGISTERED = "Successfully registered with master"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def java_command(memory: str, *words: str) -> list[str]:
    """The command of a process of Spark, with the start-up cache of consoles. Spark's own scripts start two
    JVMs for each, without one.
    """
    java = find_java()
    cached = aot_cache.use_cache(aot_cache.cache_file(java, cache_folder()))
    options = [*MODULE_OPTIONS, f"-Xmx{memory}", *cached, "-cp", class_path({})]
    return [str(java.path), *options, *words]


class Cluster:
    """A master and workers with so many cores each.

    conf: the settings that a console needs on this machine, as arguments of the command line.
    """

    conf = ("spark.driver.host=127.0.0.1", "spark.executor.memory=512m")

    def __init__(self, folder: Path, workers: int = 1, cores: int = 2) -> None:
        self.folder = folder
        try:  # for executors: the bundled one lacks a module that the worker's command asks for
            self.java = str(find_java("system").path.resolve().parent.parent)
        except StartFault as error:
            pytest.skip(error.message)
        self.workers = [f"Worker{n}" for n in range(1, workers + 1)]
        self.cores = cores
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def flags(self) -> list[str]:
        """The flags with which a console runs on this cluster."""
        return ["--master", self.url, *(word for pair in self.conf for word in ("--conf", pair))]

    def start(self) -> None:
        before = {name: self.words(name).count(REGISTERED) for name in self.workers}  # of an earlier start
        self.start_master()
        for name in self.workers:
            self.start_worker(name)
        for name in self.workers:
            self.await_worker(name, before[name] + 1)

    def start_master(self) -> None:
        self._start("Master", "master.Master", "--port", str(self.port), "--webui-port", str(free_port()))

    def start_worker(self, name: str = "Worker1") -> None:
        flags = ("--webui-port", str(free_port()), "--cores", str(self.cores), "--memory", "1g")
        self._start(name, "worker.Worker", *flags, "--work-dir", str(self.folder / "work" / name), self.url)

    def await_worker(self, name: str, times: int) -> None:
        """Wait until a worker has registered so many times."""
        deadline = time.monotonic() + 60
        while self.words(name).count(REGISTERED) < times:
            assert time.monotonic() < deadline, self.words(name) + self.words("Master")
            time.sleep(0.05)

    def words(self, name: str) -> str:
        """The log of a process."""
        log = self.folder / f"{name}.log"
        return log.read_text() if log.exists() else ""

    def _start(self, name: str, main: str, *flags: str) -> None:
        home = spark_home()
        env = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": self.java, "SPARK_LOCAL_IP": "127.0.0.1"}
        env["SPARK_SCALA_VERSION"] = "2.13"  # which spark-class would set; workers ask for it
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                java_command("256m", f"org.apache.spark.deploy.{main}", "--host", "127.0.0.1", *flags),
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill a process, and with a worker its executors."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in reversed(list(self.processes)):
            self.kill(name)
