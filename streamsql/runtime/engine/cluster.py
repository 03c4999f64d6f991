"""Monitors a cluster (`spark://host:port`): whether its master answers and its workers accept tasks.

Spark itself waits silently: for a minute for a missing master, forever for workers. A master that was lost
and restarted does not know the console's application any more.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from streamsql.errors import StartFault, reason_of

EVERY = 1.0
"""The seconds between two checks."""
PATIENCE = 5.0
"""The seconds that tasks may wait for a worker before that is reported."""
CONNECTING = 3.0
"""The seconds that a server has to accept a connection."""


def servers(master: str) -> list[tuple[str, int]]:
    """(host, port) of each master in a `spark://…` URL; none for other masters."""
    if not master.startswith("spark://"):
        return []
    matches = (re.fullmatch(r"(.+):(\d+)", part) for part in master.removeprefix("spark://").split(","))
    return [(m.group(1).strip("[]"), int(m.group(2))) for m in matches if m]


def _kubernetes(master: str) -> list[tuple[str, int]]:
    """(host, port) of the API server in a `k8s://…` URL; none for other masters."""
    match = re.fullmatch(r"k8s://(?:(https?)://)?([^/:]+|\[.+\])(?::(\d+))?/?", master)
    return [(match[2].strip("[]"), int(match[3] or (80 if match[1] == "http" else 443)))] if match else []


def connect(addresses: Iterable[tuple[str, int]]) -> tuple[socket.socket | None, str]:
    """(a connection to one of the servers, ""), or (None, the reasons) when none accepts it."""
    why = []
    for host, port in addresses:
        try:
            return socket.create_connection((host, port), CONNECTING), ""
        except OSError as error:
            why.append(f"{host}:{port}: {reason_of(error)}")
    return None, "; ".join(why)


def check_master(master: str, *, authenticated: bool = False) -> None:
    """Raise StartFault when no master answers, or what Spark needs to find it is missing. Spark itself would
    say so after a minute, or in words of Java. authenticated: whether Spark has a secret to show first.
    """
    if master == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise StartFault(
            "the folder with the configuration of YARN is not known",
            detail="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set in the environment",
            hint="export HADOOP_CONF_DIR=/etc/hadoop/conf",
            code="CLUSTER_INCOMPLETE",
        )
    kubernetes = _kubernetes(master)
    connection, why = connect(kubernetes or servers(master))
    fact = f"no {'Kubernetes API server' if kubernetes else 'Spark master'} answers at {master}"
    hint = "is it running? the next statement that needs Spark retries; --master names another"
    if kubernetes:
        hint = "kubectl cluster-info shows its address: --master k8s://https://HOST:PORT"
    if connection is not None:
        with connection:
            host, port = connection.getpeername()[:2]
            why = "" if kubernetes or authenticated else why_no_master(connection)
        fact = f"the server at {host}:{port} is no Spark master"
        hint = (
            "a master tells its address, spark://HOST:7077, on its web page and in its log; --master names it"
        )
    if why:
        raise StartFault(fact, detail=why, hint=hint, code="NO_SERVER")


class ClusterWatch:
    """Checks the cluster every second, on its own thread, until Spark ends.

    tell: called with a message for the user; lost: called with the cause when this Spark is unusable.
    """

    def __init__(
        self, spark: Any, master: str, tell: Callable[[str], None], lost: Callable[[str], None]
    ) -> None:
        self.spark = spark
        self.master = master
        self.tell = tell
        self.lost = lost
        self._link, _ = connect(servers(master))
        self._waiting_since: float | None = None
        self._last_message = ""
        threading.Thread(target=self._run, daemon=True, name="watch-cluster").start()

    def _run(self) -> None:
        while True:
            time.sleep(EVERY)
            try:
                cause = self._check()
            except Exception:
                return  # the JVM has ended, which Engine reports
            if cause:
                self.lost(cause)
                return

    def _check(self) -> str:
        """Report changes. Returns the cause when this Spark is unusable, else an empty text."""
        context = self.spark.sparkContext._jsc.sc()
        if context.isStopped():
            return f"the cluster of {self.master} has ended it"
        executors = len(context.statusTracker().getExecutorInfos()) - 1  # one of them is the driver
        if not self._has_master():
            if executors <= 0:
                return f"the master {self.master} is lost, and no worker is left"
            self._say(f"the master {self.master} is lost; queries keep running on the remaining workers")
            return ""
        busy = len(context.statusTracker().getActiveStageIds()) > 0
        self._waiting_since = (self._waiting_since or time.monotonic()) if busy and executors <= 0 else None
        if self._waiting_since and time.monotonic() - self._waiting_since > PATIENCE:
            self._say(f"no worker of {self.master} accepts tasks: statements and queries wait for one")
        elif self._last_message and executors > 0:
            self._say("")
            self.tell(f"a worker of {self.master} accepts tasks again")
        return ""

    def _say(self, words: str) -> None:
        if words and words != self._last_message:
            self.tell(words)
        self._last_message = words

    def _has_master(self) -> bool:
        """Whether the connection to the master still exists. A restarted master at the same address does
        not know this application; if there are several, another one has taken over.
        """
        if self._link is not None and not select.select([self._link], [], [], 0)[0]:
            return True
        if self._link is not None:
            self._link.close()
            self._link = None
        if len(servers(self.master)) > 1:
            self._link, _ = connect(servers(self.master))
        return self._link is not None


ANSWERS = 5.0
"""The seconds within which a master answers."""
_STREAM_REQUEST, _STREAM_RESPONSE, _STREAM_FAILURE = 6, 7, 8
"""The kinds of Spark's messages (org.apache.spark.network.protocol.Message.Type)."""
_TLS = (0x15, 0x16)
"""The first byte of a server that wants TLS, as a master may (spark.ssl.rpc.enabled)."""
_FRAME = struct.Struct(">qB")


def why_no_master(connection: socket.socket, seconds: float = ANSWERS) -> str:
    """Why the server of a connection is no master of Spark; empty if it is one. It is asked for a file that
    no master has, and tells so.
    """
    name = b"/files/streamsql"
    frame = _FRAME.pack(_FRAME.size + 4 + len(name), _STREAM_REQUEST) + struct.pack(">i", len(name)) + name
    answer = b""
    connection.settimeout(seconds)
    try:
        connection.sendall(frame)
        while len(answer) < _FRAME.size and (part := connection.recv(64)):
            answer += part
            if answer[0] in _TLS:
                return ""
    except TimeoutError:
        return f"it has not answered within {seconds:.0f} s"
    except OSError:
        pass
    if not answer:
        return "it closes the connection"
    if len(answer) >= _FRAME.size and _FRAME.unpack(answer[: _FRAME.size])[1] in (
        _STREAM_RESPONSE,
        _STREAM_FAILURE,
    ):
        return ""
    return "it is the server of a web page" if answer.startswith(b"HTTP/") else "it speaks another protocol"
