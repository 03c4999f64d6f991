"""A Spark on other machines (`spark://host:port`): is its master there, and does anybody take tasks?

Spark itself waits silently: for a minute for a master that is not there, forever for workers; and
a master that was lost does not know the console again when it is back.
"""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from streamsql.errors import StartFault

EVERY = 1.0
"""Seconds between two looks."""
PATIENCE = 5.0
"""Seconds that tasks may wait for a worker before that is told."""
CONNECTING = 3.0


def servers(master: str) -> list[tuple[str, int]]:
    """(host, port) of each master that a `spark://…` names; none for any other kind."""
    if not master.startswith("spark://"):
        return []
    found = (re.fullmatch(r"(.+):(\d+)", part) for part in master.removeprefix("spark://").split(","))
    return [(m.group(1).strip("[]"), int(m.group(2))) for m in found if m]


def _connect(master: str) -> tuple[socket.socket | None, str]:
    """A connection to one of the masters; else None, and why there is none."""
    why = []
    for host, port in servers(master):
        try:
            return socket.create_connection((host, port), CONNECTING), ""
        except OSError as error:
            why.append(f"{host}:{port}: {(error.strerror or str(error)).lower()}")
    return None, "; ".join(why)


def check_master(master: str) -> None:
    """Raise StartFault when no master takes a connection."""
    if servers(master):
        connection, why = _connect(master)
        if connection is None:
            raise StartFault(
                f"no Spark master answers at {master}",
                detail=why,
                hint="does it run? the next statement that needs Spark tries again; --master names another",
                code="NO_SERVER",
            )
        connection.close()


class ClusterWatch:
    """Looks every second, on a thread of its own, until Spark ends.

    tell: gets what the analyst must know; lost: gets the cause when this Spark can do nothing any more.
    """

    def __init__(
        self, spark: Any, master: str, tell: Callable[[str], None], lost: Callable[[str], None]
    ) -> None:
        self.spark = spark
        self.master = master
        self.tell = tell
        self.lost = lost
        self._link, _ = _connect(master)
        self._waiting_since: float | None = None
        self._told = ""
        threading.Thread(target=self._run, daemon=True, name="watch-cluster").start()

    def _run(self) -> None:
        while True:
            time.sleep(EVERY)
            try:
                cause = self._look()
            except Exception:
                return  # the JVM has ended: told by the one who waits for it
            if cause:
                self.lost(cause)
                return

    def _look(self) -> str:
        """Tell what is new; the cause when all is lost, else empty."""
        context = self.spark.sparkContext._jsc.sc()
        if context.isStopped():
            return f"the cluster of {self.master} has ended it"
        executors = len(context.statusTracker().getExecutorInfos()) - 1  # one of them is the console's own
        if not self._master_is_there():
            if executors <= 0:
                return f"the master {self.master} is lost, and no worker is left"
            self._say(f"the master {self.master} is lost; queries keep running on the remaining workers")
            return ""
        busy = len(context.statusTracker().getActiveStageIds()) > 0
        self._waiting_since = (self._waiting_since or time.monotonic()) if busy and executors <= 0 else None
        if self._waiting_since and time.monotonic() - self._waiting_since > PATIENCE:
            self._say(f"no worker of {self.master} takes tasks: statements and queries wait for one")
        elif self._told and executors > 0:
            self._say("")
            self.tell(f"a worker of {self.master} takes tasks again")
        return ""

    def _say(self, words: str) -> None:
        if words and words != self._told:
            self.tell(words)
        self._told = words

    def _master_is_there(self) -> bool:
        """Whether the master has been there all the time. A new one at the same address does not know us;
        where there are several, another one has taken over.
        """
        if self._link is not None and not select.select([self._link], [], [], 0)[0]:
            return True
        if self._link is not None:
            self._link.close()
            self._link = None
        if len(servers(self.master)) > 1:
            self._link, _ = _connect(self.master)
        return self._link is not None
