"""The receivers of a session: one for each stream USING http, sse or websocket, until it is dropped."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.catalog import Catalog
from streamsql.cli.addresses import address_of, open_socket, shown_address, tls_of, why_not
from streamsql.connectors.registry import connector
from streamsql.definitions import Stream
from streamsql.errors import EngineFault, InputFault, RuleFault, Span, StreamsqlError, UsageFault, reason_of
from streamsql.features.receivers.connectors import SHORTEST_TOKEN, Received
from streamsql.guard import log
from streamsql.language.durations import length
from streamsql.language.statements.base import Name, Option, Statement
from streamsql.language.statements.stream import CreateStream
from streamsql.runtime.embedded.secret_references import filled
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.source_states import SourceState
from streamsql.runtime.workspace.owned_folders import claim, set_aside
from streamsql.secrets import redact_text

if TYPE_CHECKING:
    from streamsql.features.receivers.connections import Connection
    from streamsql.features.receivers.http_listener import HttpListener
    from streamsql.features.receivers.spool import Spool

FEATURE = "receivers"


def begin(parts: SessionParts) -> Receivers | None:
    """The receivers of a session that runs its queries; None for one that only reads or tests."""
    if parts.config.read_only or parts.config.stand_ins:
        return None
    receivers = Receivers(parts)
    parts.companions[FEATURE] = receivers
    return receivers


def prepare(parts: SessionParts, stream: Stream, statement: Statement) -> None:
    """Let the stream of CREATE STREAM receive. Raises faults."""
    receivers: Receivers | None = parts.companions.get(FEATURE)
    if receivers is None:
        return
    try:
        receivers.open(stream)
    except StreamsqlError as fault:
        if isinstance(statement, CreateStream):
            fault.span = fault.span or _span(statement, fault)
        raise


def state(parts: SessionParts, stream: Stream) -> SourceState | None:
    """How receiving goes; None for other streams."""
    receivers: Receivers | None = parts.companions.get(FEATURE)
    return None if receivers is None else receivers.state(stream)


def _span(statement: CreateStream, fault: StreamsqlError) -> Span | None:
    about: dict[str, str] = {"IN_USE": "path", "FILE_NOT_READ": "certificate", "BAD_ADDRESS": "listen"}
    options: tuple[Option, ...] = statement.options
    named = (o.value.span for o in options if o.key.value.casefold() == about.get(fault.code, "token"))
    return next(named, statement.connector.span if statement.connector else None)


@dataclass
class Receiver:
    """What receives for a stream: a listener, which streams may share, or a connection. path: of the URL."""

    stream: Stream
    spool: Spool
    listener: HttpListener | None = None
    path: str = ""
    connection: Connection | None = None

    @property
    def url(self) -> str:
        if self.connection is not None:
            return redact_text(self.connection.url)
        return self.listener.url(self.path) if self.listener else ""


class Receivers:
    """Follows the catalog. What a stream needs is opened by CREATE STREAM, which reports faults; with a
    workspace that is opened again, faults are part of the state of the stream.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self._lock = threading.RLock()
        self._listeners: dict[tuple[str, int], HttpListener] = {}
        self._receivers: dict[str, Receiver] = {}
        self._faults: dict[str, str] = {}
        self._closed = False
        self._followed: object = None
        parts.current.subscribe(self.follow)

    def open(self, stream: Stream) -> None:
        """Receive for a stream, in place of one of the same name. Raises faults."""
        with self._lock:
            key = stream.name.casefold()
            before = self._receivers.get(key)
            spool = before.spool if before else self._spool(stream)
            try:
                receiver = self._opened(stream, spool)
            except ImportError as error:
                raise UsageFault(
                    f"USING {stream.connector} needs a package that is not installed: {error.name}",
                    hint="pip install 'streamsql-console[receivers]'",
                    code="MISSING_MODULE",
                ) from None
            spool.retention = _seconds(stream.option("retention"))
            self._receivers[key] = receiver
            self._faults.pop(key, None)
            if before is not None:
                self._end(before)
            self._close_unused()

    def _spool(self, stream: Stream) -> Spool:
        try:
            from streamsql.features.receivers.spool import Spool

            folder = Path(self.parts.places.values(stream.name))
            if self._is_defined(stream):
                claim(folder)
            else:
                set_aside(self.parts.store.folder if self.parts.store else None, folder)
            return Spool(folder)
        except (OSError, ValueError) as error:
            raise EngineFault(
                f"the spool of {stream.name} cannot be written: {reason_of(error)}", code="FILE_NOT_WRITTEN"
            ) from None

    def _is_defined(self, stream: Stream) -> bool:
        """Whether the catalog has a stream of this name that receives: its messages stay."""
        defined = self.parts.catalog.streams.get(stream.name.casefold())
        return defined is not None and _receives(defined)

    def _opened(self, stream: Stream, spool: Spool) -> Receiver:
        using = connector(Name(stream.connector))
        assert isinstance(using, Received)
        connection = using.connection(stream, spool, partial(_value, stream))
        if connection is not None:
            return Receiver(stream, spool, connection=connection)
        return self._listening(stream, spool, _value(stream, "token"), using.format_of(stream))

    def _listening(self, stream: Stream, spool: Spool, token: str, form: str) -> Receiver:
        from streamsql.features.receivers.http_listener import Target

        if token and len(token) < SHORTEST_TOKEN:
            raise InputFault(
                f"the token of {stream.name} has less than {SHORTEST_TOKEN} characters",
                hint="a long one: openssl rand -hex 16",
                code="BAD_OPTION_VALUE",
            )
        path = stream.option("path") or f"/{stream.name.casefold()}"
        listener = self._listener(stream)
        target = listener.targets.get(path)
        if target is not None and target.stream.casefold() != stream.name.casefold():
            raise RuleFault(
                f"the stream {target.stream} receives at {listener.url(path)}",
                hint="OPTIONS (…, path '/another')",
                code="IN_USE",
            )
        most = int(stream.option("maxBodyBytes", "16777216"))
        listener.targets[path] = Target(stream.name, form, spool, token, most)
        return Receiver(stream, spool, listener, path)

    def _listener(self, stream: Stream) -> HttpListener:
        """The listener at the address of a stream."""
        from streamsql.features.receivers.http_listener import HttpListener

        host, port = address_of(stream.option("listen"), "listen", 8090)
        listener = self._listeners.get((host, port))
        files = (stream.option("certificate"), stream.option("privateKeyFile"))
        if files[0]:
            tls_of(*files, "the files of TLS cannot be used")
        alone = listener is not None and {t.stream.casefold() for t in listener.targets.values()} <= {
            stream.name.casefold()
        }
        if listener is not None and files != listener.tls and alone:
            self._listeners.pop((host, port)).close()
            listener = None
        if listener is not None and files != listener.tls:
            raise RuleFault(
                f"another stream listens at {shown_address(host, port)}, with other files of TLS",
                hint="the same certificate and privateKeyFile, or another port",
                code="OPTION_CONFLICT",
            )
        if listener is None:
            try:
                listening = open_socket(host, port)
            except OSError as error:
                raise InputFault(
                    f"the console cannot listen on {shown_address(host, port)}: {why_not(error)}",
                    hint="OPTIONS (listen 'HOST:PORT', …) with another port",
                    code="BAD_ADDRESS",
                ) from None
            self._listeners[host, port] = listener = HttpListener((host, port), listening, *files)
        return listener

    def follow(self, catalog: Catalog) -> None:
        """Receive for the streams of a catalog, and for no others."""
        with self._lock:
            if self._closed or catalog.streams is self._followed:
                return  # each definition of a workspace that is opened makes a new catalog
            self._followed = catalog.streams
            wanted = {key: stream for key, stream in catalog.streams.items() if _receives(stream)}
            for key in set(self._receivers) - set(wanted):
                receiver = self._receivers.pop(key)
                self._end(receiver)
                receiver.spool.close()
            self._faults = {key: fault for key, fault in self._faults.items() if key in wanted}
            for key, stream in wanted.items():
                running = self._receivers.get(key)
                if running is None or _source_of(running.stream) != _source_of(stream):
                    try:
                        self.open(stream)
                    except Exception as error:
                        log(error, f"the stream {stream.name} receives nothing")
                        self._faults[key] = str(error)
                else:
                    running.stream = stream
            self._close_unused()

    def _end(self, receiver: Receiver) -> None:
        if receiver.connection is not None:
            receiver.connection.close()
        targets = receiver.listener.targets if receiver.listener else {}
        if receiver.path in targets and not any(
            r.listener is receiver.listener and r.path == receiver.path for r in self._receivers.values()
        ):
            del targets[receiver.path]

    def _close_unused(self) -> None:
        for address in [a for a, listener in self._listeners.items() if not listener.targets]:
            self._listeners.pop(address).close()

    def state(self, stream: Stream) -> SourceState | None:
        """How receiving goes; None for a stream that does not receive."""
        key = stream.name.casefold()
        if key in self._faults:
            self._followed = None  # it may have been mended
            self.follow(self.parts.catalog)
        receiver = self._receivers.get(key)
        if receiver is None:
            return SourceState(fault=self._faults[key]) if key in self._faults else None
        spool, connection = receiver.spool, receiver.connection
        newest = f", the newest {_moment(spool.newest)}" if spool.newest else ""
        facts = [("received", f"{spool.messages} since the console has started{newest}")]
        if connection is None:
            facts.insert(0, ("receives at", f"{receiver.url} (POST)"))
        elif connection.fault:
            facts.insert(0, ("connection", "none: the console tries again"))
        else:
            facts.insert(0, ("connection", f"since {_moment(connection.since)}"))
        fault = (connection.unwritten or connection.fault) if connection else ""
        return SourceState(tuple(facts), fault, receiver.url, spool.is_empty())

    def close(self) -> None:
        """End all; what has come in is on the disk."""
        with self._lock:
            self._closed = True
            for receiver in self._receivers.values():
                if receiver.connection is not None:
                    receiver.connection.close()
            for listener in self._listeners.values():
                listener.close()
            for receiver in self._receivers.values():
                receiver.spool.close()


def _receives(stream: Stream) -> bool:
    return bool(stream.connector) and connector(Name(stream.connector)).received


def _source_of(stream: Stream) -> tuple[object, ...]:
    """What of a stream decides how it receives."""
    return stream.connector, connector(Name(stream.connector)).format_of(stream), stream.options


def _value(stream: Stream, option: str) -> str:
    """An option with what it refers to in place of references. Raises InputFault."""
    try:
        text: str = filled(stream.option(option))
    except ValueError as error:
        raise InputFault(f"option {option}: {error}", code="BAD_OPTION_VALUE") from None
    return text


def _seconds(duration: str) -> float | None:
    return (length(_with_space(duration)) or 0.0) if duration else None


def _with_space(duration: str) -> str:
    """A duration as Spark's options have it, 7d, as SQL writes it, 7 d."""
    number = duration.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f"{number} {duration.strip()[len(number) :] or 'ms'}"


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
