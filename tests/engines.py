"""The JVMs that the consoles of a test run use, one console after the other (console.py is their side)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

from console import ENGINE

from streamsql.config.folders import cache_folder
from streamsql.errors import StartFault
from streamsql.runtime.engine import jvm
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.java_command import spark_defaults


class Engine:
    """A JVM with a SparkContext; a console makes a Spark session of its own in it, with a catalog of its own."""

    def __init__(self, conf: dict[str, str], log: Path) -> None:
        self.gateway = jvm.launch({**spark_defaults(), **conf}, log, cache_folder(), find_java())
        self.process = self.gateway.proc
        self.context = self.gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
        self.home = self.gateway.jvm.System.getProperty("user.dir")
        parameters = self.gateway.gateway_parameters
        self.address = {"port": parameters.port, "secret": parameters.auth_token, "pid": self.process.pid}

    def begin(self, folder: str) -> None:
        """Relative paths of the next console are below its folder."""
        view = self.gateway.jvm
        view.System.setProperty("user.dir", folder)
        view.org.apache.hadoop.fs.FileSystem.closeAll()

    def clear(self) -> bool:
        """Forget the session of the console that has ended. Returns whether nothing of it still runs."""
        view = self.gateway.jvm
        sessions = view.org.apache.spark.sql.classic.SparkSession
        session = sessions.getDefaultSession()
        if session.isDefined():
            queries = session.get().sharedState().activeStreamingQueries()
            for query in list(queries.values()):
                query.stop()
        sessions.clearDefaultSession()
        sessions.clearActiveSession()
        self.context.cancelAllJobs()
        view.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        return not list(self.context.statusTracker().getActiveJobIds()) and self.process.poll() is None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Engines:
    """Listens for the consoles of one worker. An engine is started when the first console asks for it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="streamsql-engines-"))
        self.idle: dict[str, Engine] = {}
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.folder / "socket"))
        self.listener.listen(16)
        os.environ[ENGINE] = str(self.folder / "socket")
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Lend an engine until the console closes the connection, or ends."""
        with connection:
            wanted = json.loads(connection.makefile().readline() or "null")
            if wanted is None:
                return
            folder = wanted.pop("folder")
            key = json.dumps(wanted, sort_keys=True)
            if any(os.environ.get(name) != value for name, value in wanted["variables"].items()):
                return
            with self.lock:
                engine = self.idle.pop(key, None)
            try:
                engine = engine or Engine(wanted["conf"], self.folder / "engine.log")
            except StartFault:
                return  # the console tries it too, and reports it
            engine.begin(folder)
            try:
                connection.sendall(json.dumps(engine.address).encode() + b"\n")
                while data := connection.recv(1024):
                    if b"kill" in data:
                        engine.end()
                        break
            except OSError:
                pass
        try:
            clear = engine.clear()
        except Exception:  # the console has killed it
            clear = False
        with self.lock:
            spare = self.idle.get(key) if clear else engine
            if clear and spare is None:
                self.idle[key] = engine
            elif clear:
                spare = engine
        if spare is not None:
            spare.end()

    def close(self) -> None:
        os.environ.pop(ENGINE, None)
        self.listener.close()
        with self.lock:
            for engine in self.idle.values():
                engine.end()
        shutil.rmtree(self.folder, ignore_errors=True)
