"""The connections by which threads of Spark's JVM call Python."""

from __future__ import annotations

from typing import Any


class CallbackConnections:
    """Closes the connections of queries whose threads have ended.

    py4j opens one for each thread of the JVM that calls Python, with a socket and a thread on this side, and
    never closes it. Each run of a query has a thread of its own, so that a console that starts and stops
    queries would end at the limit of open files.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        # By run id, and of runs that have ended: (thread of the JVM, client, connection).
        self._opened: dict[str, tuple[Any, Any, Any]] = {}
        self._ending: list[tuple[Any, Any, Any]] = []

    def opened(self, run_id: str) -> None:
        """To be called in a callback of a run's thread: its connection is to be closed after the run."""
        from py4j.clientserver import ClientServer

        if not isinstance(self._gateway, ClientServer):
            return  # PYSPARK_PIN_THREAD=false: threads share their connections
        client = self._gateway.java_gateway_server.getCallbackClient()
        thread = self._gateway.jvm.java.lang.Thread.currentThread()
        self._opened[run_id] = thread, client, client.getPerThreadConnection()

    def ended(self, run_id: str) -> None:
        """Close the connections of runs that have ended, and whose threads have. Not for several threads."""
        opened = self._opened.pop(run_id, None)
        before, self._ending = [*self._ending, *([opened] if opened else [])], []
        for thread, client, connection in before:
            if thread.isAlive():
                self._ending.append((thread, client, connection))
                continue
            client.connectionStopped(connection)  # removes it from those that the client keeps
            connection.shutdown()
