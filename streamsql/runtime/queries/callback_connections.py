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
        self._opened: list[tuple[Any, Any, Any]] = []

    def opened(self) -> None:
        """To be called in a callback of a query's thread: its connection is to be closed after it."""
        from py4j.clientserver import ClientServer

        if not isinstance(self._gateway, ClientServer):
            return  # PYSPARK_PIN_THREAD=false: threads share their connections
        client = self._gateway.java_gateway_server.getCallbackClient()
        thread = self._gateway.jvm.java.lang.Thread.currentThread()
        self._opened.append((thread, client, client.getPerThreadConnection()))

    def close_ended(self) -> None:
        """Close the connections of the threads that have ended. Not to be called by several threads."""
        ended = [each for each in self._opened if not each[0].isAlive()]
        for each in ended:
            _, client, connection = each
            client.connectionStopped(connection)  # removes it from those that the client keeps
            connection.shutdown()
            self._opened.remove(each)
