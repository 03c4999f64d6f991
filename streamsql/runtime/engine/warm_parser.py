"""Asks the Spark of a warm engine whether it can parse a text; the engine waits on for the next console.

The keeper (warm_keeper.py) answers each connection on a thread: a line of JSON for a text, and one for the
answer. `--check` asks so for what the grammar alone does not tell: the value of a literal, a unit,
a clause that is written twice.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from streamsql.errors import EngineFault
from streamsql.runtime.engine.spark_errors import parse_fault
from streamsql.runtime.engine.unix_sockets import connect_to
from streamsql.runtime.engine.warm_engine import (
    ANSWER_TIMEOUT,
    Wanted,
    read_message,
    send_message,
    socket_path,
)

_MOST = 30_000
"""The characters of the longest text that is asked about: a message has a limit."""


class WarmParser:
    """A connection to the keeper of the wanted engine; without one, nothing is known of any text."""

    def __init__(self, wanted: Wanted) -> None:
        self._connection = _connected(wanted)

    def fault(self, text: str, settings: Mapping[str, str]) -> EngineFault | None:
        """What Spark's parser has against a text, placed in it; None if it has nothing, or was not asked.

        settings: those of a session in which the text runs.
        """
        if self._connection is None or len(text) > _MOST:
            return None
        try:
            send_message(self._connection, {"text": text, "settings": dict(settings)})
            said = str(read_message(self._connection)["fault"])
        except (OSError, ValueError, KeyError):
            self.close()
            return None
        return parse_fault(said, text) if said else None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _connected(wanted: Wanted) -> socket.socket | None:
    try:
        connection = connect_to(socket_path(wanted.cache), ANSWER_TIMEOUT)
    except OSError:
        return None  # none waits
    try:
        send_message(connection, {"parse": wanted.key})
        if read_message(connection).get("parses"):
            return connection
    except (OSError, ValueError):
        pass
    connection.close()
    return None


def answer_texts(connection: socket.socket, spark: Any) -> None:
    """Answer what a client asks of texts until it ends the connection. spark: the session of the engine."""
    session = spark.newSession()
    connection.settimeout(None)
    with connection:
        try:
            send_message(connection, {"parses": True})
            while True:
                asked = read_message(connection)
                send_message(connection, {"fault": what_is_wrong(session, asked["text"], asked["settings"])})
        except (OSError, ValueError, KeyError):
            pass  # the client has ended


def what_is_wrong(session: Any, text: str, settings: Mapping[str, str]) -> str:
    """What Spark says of a text that it cannot parse; "" for one that it can. The settings stay in the
    session, which is the active one of this thread.
    """
    from pyspark.errors import PySparkException

    for key, value in settings.items():
        try:
            session.conf.set(key, value)
        except PySparkException:
            pass  # it will be refused by SET
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    try:
        session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except PySparkException as error:
        return str(error)
    return ""
