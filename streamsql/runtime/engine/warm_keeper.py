"""The process that keeps a warm engine (warm_engine.py) until a console takes it, and while it has it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.typical_work import first_work
from streamsql.runtime.engine.unix_sockets import listen_at, peer_of
from streamsql.runtime.engine.warm_engine import read_message, send_message, socket_path, stop_keeper
from streamsql.runtime.engine.warm_parser import answer_texts

POLL = 0.2
START_TIMEOUT = 300.0


class Keeper:
    """One warm engine. order: see warm_engine._start_keeper."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.cache = Path(order["cache"])
        self.process: Any = None
        self.spark: Any = None
        self.answer: dict[str, Any] = {}
        self.failed = False
        self.deadline = time.monotonic() + START_TIMEOUT

    def start(self) -> None:
        """Start Spark and let it run typical work. Runs on a thread of its own."""
        scratch = Path(tempfile.mkdtemp(prefix="streamsql-warm-"))
        try:
            conf = {**self.order["conf"], "spark.sql.warehouse.dir": str(scratch / "warehouse")}
            java = find_java(self.order["java"])
            spark: Any = jvm.start_session(conf, Path(self.order["log"]), self.cache, java)
            gateway = spark.sparkContext._gateway
            self.process = gateway.proc
            first_work(spark, scratch)
            _leave_nothing(spark)
            self.spark = spark
            parameters = gateway.gateway_parameters
            self.deadline = time.monotonic() + float(self.order["seconds"])
            self.answer = {"port": parameters.port, "secret": parameters.auth_token, "pid": self.process.pid}
        except Exception:
            self.failed = True  # the next console starts a Spark of its own
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def wait(self, listener: socket.socket) -> socket.socket | None:
        """The connection of the console that took the engine; None when none came in time."""
        listener.settimeout(POLL)
        while time.monotonic() < self.deadline and not self.failed:
            if self.process is not None and self.process.poll() is not None:
                return None
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(1.0)
            if peer_of(connection)[1] != os.geteuid():
                connection.close()
                continue
            try:
                request = read_message(connection)
                if "end" in request or ("take" in request and not self.answer):
                    return None  # a console starts now, and needs the processor for itself
                if request.get("parse") == self.order["key"] and self.answer:
                    asked = (connection, self.spark)
                    threading.Thread(target=answer_texts, args=asked, daemon=True).start()
                    continue
                if request.get("take") == self.order["key"]:
                    send_message(connection, self.answer)
                    connection.settimeout(None)
                    return connection
                send_message(connection, self.status())
            except (OSError, ValueError):
                pass
            connection.close()
        return None

    def status(self) -> dict[str, Any]:
        if not self.answer:
            return {"ready": False}
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        left = self.deadline - time.monotonic()
        memory = pages * os.sysconf("SC_PAGE_SIZE") // 2**20
        return {"ready": True, "seconds": left, "megabytes": memory, "pid": self.process.pid}

    def serve(self, connection: socket.socket) -> None:
        """Tell the console when its JVM ends; end the JVM when the console asks for it or has ended."""

        def listen() -> None:
            try:
                while read_message(connection):
                    self.process.kill()
            except (OSError, ValueError):
                self.process.stdin.close()  # the JVM ends as that of a console does

        threading.Thread(target=listen, daemon=True).start()
        code = self.process.wait()
        try:
            send_message(connection, {"code": code})
        except OSError:
            pass  # the console has ended

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()


def _leave_nothing(spark: Any) -> None:
    """Forget the session that ran the typical work: its views, its state stores, its garbage."""
    view = spark._jvm
    view.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    sessions = spark._get_j_spark_session_class(view)
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    view.System.gc()


def main() -> int:
    """`python -m streamsql.runtime.engine.warm_keeper`: the order is JSON on standard input."""
    from filelock import FileLock

    keeper = Keeper(json.load(sys.stdin))
    stop_keeper(keeper.cache)  # one engine per user
    lock = FileLock(keeper.cache / "warm.lock", timeout=10, mode=0o600)
    connection = None
    try:
        with lock:
            listener = listen_at(socket_path(keeper.cache))
            threading.Thread(target=keeper.start, daemon=True).start()
            try:
                connection = keeper.wait(listener)
            finally:
                socket_path(keeper.cache).unlink(missing_ok=True)
                listener.close()
        if connection is not None:
            keeper.serve(connection)
    finally:
        keeper.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
