"""The connections by which threads of Spark's JVM call Python."""

from __future__ import annotations

import threading
from typing import Any


class CallbackConnections:
    """Closes the connections of queries whose threads have ended.

    py4j opens one for each thread of the JVM that calls Python, with a socket and a thread on this side, and
    never closes it. Each run of a query has a thread of its own, so that a console that starts and stops
    queries would end at the limit of open files.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        # Of each run, by the thread here that serves its connection: (thread of the JVM, client, connection).
        self._opened: dict[int, tuple[Any, Any, Any]] = {}

    def opened(self) -> None:
        """To be called in a callback of a query's thread: its connection is to be closed after it."""
        from py4j.clientserver import ClientServer

        if not isinstance(self._gateway, ClientServer):
            return  # PYSPARK_PIN_THREAD=false: threads share their connections
        client = self._gateway.java_gateway_server.getCallbackClient()
        thread = self._gateway.jvm.java.lang.Thread.currentThread()
        self._opened[threading.get_ident()] = thread, client, client.getPerThreadConnection()

    def close_ended(self) -> None:
        """Close the connections of the threads that have ended. Not to be called by several threads."""
        for served_by, (thread, client, connection) in list(self._opened.items()):
            if not thread.isAlive():
                del self._opened[served_by]  # first: once it is closed, another thread can have the number
                client.connectionStopped(connection)  # removes it from those that the client keeps
                connection.shutdown()
