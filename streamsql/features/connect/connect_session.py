"""The session of a console on a Spark Connect server. Its queries are the server's, and go on after it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from streamsql.calls import Program
from streamsql.connectors.packages import PACKAGES
from streamsql.errors import EngineFault, Note, StreamsqlError
from streamsql.features.connect.connect_engine import (
    SESSION_TIMEOUT,
    ConnectEngine,
    ConnectionLost,
    ServerAttached,
    SessionRemark,
    connection_lost,
)
from streamsql.features.connect.connect_handlers import ConnectHandlers
from streamsql.features.connect.lacks import ConnectServer
from streamsql.features.connect.server_address import ServerAddress
from streamsql.features.connect.server_queries import ServerQueries
from streamsql.features.connect.session_record import SessionRecord
from streamsql.language.statements.base import Statement
from streamsql.results import Result, Started
from streamsql.runtime.console_session import Summary
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.parts import SessionParts, session_parts
from streamsql.runtime.queries.stop import PATIENCE
from streamsql.runtime.session import DIRECT, PLANS, Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.reopen import reopen

CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_PACKAGES = {"KAFKA_DATA_SOURCE_NOT_ENABLED": "kafka", "AVRO_DATA_SOURCE_NOT_ENABLED": "avro"}
"""Spark's error class for a connector that it does not have → the package of the connector."""


def _missing_package(error: StreamsqlError) -> EngineFault:
    """The error of a connector whose package the server was started without."""
    name = _PACKAGES[error.condition]
    release = PACKAGES[name].releases(version("pyspark"))[0]
    return EngineFault(
        f"the Connect server was started without the package of {name}",
        hint=f"start it with --packages {','.join(release.coordinates)}",
        span=error.span,
        condition=error.condition,
        code="PACKAGE_NOT_AVAILABLE",
    )


class _ServerPackages(Packages):
    """Packages are the server's affair: nothing is fetched here."""

    def provide(self, spark: Any, program: Program, cancel: CancelToken) -> None:
        pass


class ConnectSession(Session):
    """Passes statements to a Connect server. Without a workspace its queries end with it."""

    def __init__(self, config: Config, address: ServerAddress) -> None:
        self.address = address
        self._remarks = list[Note]()
        self._end_announced = False
        folder = config.store.folder if config.store else None
        record = SessionRecord.read(address.shown, folder)
        if session := address.parameters.get("session_id"):
            record.session = session
        self.keeps = folder is not None
        self.connection = engine = ConnectEngine(config, address, record, keeps=self.keeps)
        super().__init__(config, parts=session_parts(config, engine, _ServerPackages, self._server))
        self.on_server = ServerQueries(lambda: self.parts, engine)
        handlers = ConnectHandlers(self.on_server, PLANS, DIRECT)
        self.of_plans, self.of_statements = handlers.plans, handlers.direct
        self.parts.events.subscribe(ServerAttached, lambda event: self.on_server.attached(event.spark))
        self.parts.events.subscribe(ConnectionLost, lambda event: self._forget())
        self.parts.events.subscribe(SessionRemark, lambda event: self._remarks.append(event.note))

    def _server(self) -> ConnectServer:
        """The server, as planning knows it."""
        settings = self.parts.settings
        values = settings.configured | settings.given | settings.changed
        others = frozenset(self.on_server.others)
        return ConnectServer(self.address.shown, values.get(CHECKPOINTS, ""), others)

    def _forget(self) -> None:
        """Forget the runs: the next connection tells what became of them."""
        for name in list(self.parts.queries.all):
            self.parts.queries.forget(name)

    def _execute(self, statement: Statement, parts: SessionParts) -> Result:
        try:
            result = super()._execute(statement, parts)
            remarks, self._remarks[:] = tuple(self._remarks), []
            remarks += self._end_of_session(result)
            return replace(result, notes=(*remarks, *result.notes)) if remarks else result
        except StreamsqlError as error:
            if error.condition in _PACKAGES:
                raise _missing_package(error) from error
            spark = self.connection.session
            if spark is None or error.__cause__ is None or not connection_lost(error.__cause__):
                raise
            self.connection.lost(spark, "during a statement")
            raise self.connection.fault() from error

    def _end_of_session(self, result: Result) -> tuple[Note, ...]:
        """A note where the first query starts that is to go on without the console: when it is ended."""
        lifetime = self.connection.session_lifetime
        if not isinstance(result, Started) or not self.keeps or not lifetime or self._end_announced:
            return ()
        self._end_announced = True
        words = f"without a console, the server ends the session and its queries after {lifetime}"
        return (Note("SESSION_TIMEOUT", f"{words}, unless it was started with --conf {SESSION_TIMEOUT}=-1"),)

    def summary(self) -> Summary:
        seen = super().summary()
        state = (
            ""
            if self.connection.started
            else " (connecting…)"
            if self.connection.starting
            else " (not connected)"
        )
        return Summary(seen.spark, seen.running, seen.failed, seen.rate, seen.silent, seen.stale,
                       server=self.address.shown + state)  # fmt: skip

    def open(self) -> tuple[str, ...]:
        opened = reopen(self.parts)
        self.connection.begin_start()
        return tuple(opened.lines(resumes=True))

    def left_running(self) -> str:
        names = [q.name for q in self.parts.queries.all.values() if not q.over]
        if not self.keeps or not names:
            return ""
        many = "query goes" if len(names) == 1 else "queries go"
        line = f"{len(names)} {many} on at {self.address.shown}: {', '.join(sorted(names))}"
        lifetime = self.connection.session_lifetime
        if not lifetime:
            return line
        end = f"the server ends them {lifetime} after the last console has left, unless it was started with"
        return f"{line}; {end} --conf {SESSION_TIMEOUT}=-1"

    def close(self, limit: float = PATIENCE, cancel: CancelToken | None = None) -> None:
        """Leave the server; without a workspace, stop the queries first."""
        parts = self.parts
        self._supervisor.close()
        self.on_server.close()
        if parts.engine.started and not self.keeps:
            for running in list(parts.queries.all.values()):
                with suppress(Exception):  # a server that is gone has stopped them
                    self.on_server.stop(running, cancel or CancelToken(), limit)
        parts.workspace.save()
        parts.queries.close()
        parts.histories.flush()
        parts.engine.close()
