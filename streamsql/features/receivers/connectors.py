"""http, sse and websocket: messages that the console itself receives, into the spool of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from streamsql.calls import Call, Node, Var, lit
from streamsql.cli.addresses import is_loopback
from streamsql.connectors import debezium, messages, schema_registry
from streamsql.connectors.base import OptionSpec, Places, missing, option_table
from streamsql.definitions import REJECTED, Stream
from streamsql.errors import Note, RuleFault
from streamsql.language.statements.base import Column, Name, Option
from streamsql.language.tokens import refers

if TYPE_CHECKING:
    from streamsql.features.receivers.connections import Connection
    from streamsql.features.receivers.spool import Spool

SPOOL = "streamsql.features.receivers.spool_source.Spool"
SHORTEST_TOKEN = 16
_OF_REGISTRY = frozenset(spec.name for spec in schema_registry.OPTIONS)
_SPOOLED = option_table("""
    retention: duration -- how long messages stay in the spool of the stream; by default as long as the stream
    maxRowsPerTrigger: positive integer -- maximum number of messages in a micro-batch
""")
_TOKEN = OptionSpec("token", "the bearer token that the console sends", secret=True)


class Received(messages.MessageConnector):
    """What the three have in common."""

    received = True
    offset_options = ("startingOffsets", "endingOffsets")
    formats = ("json", "csv", "text", "raw", "avro", "protobuf", debezium.FORMAT)
    fields: tuple[Column, ...] = (Column("_received", "TIMESTAMP"),)
    place = "concat('the message received at ', received)"
    own: ClassVar[tuple[OptionSpec, ...]] = ()
    packages = ("avro",)

    def __init__(self) -> None:
        payload = (s for s in messages.ALL_OPTIONS if s.name not in _OF_REGISTRY)
        self.reads = (*self.own, *_SPOOLED, *payload)

    def connection(self, stream: Stream, spool: Spool, value: Callable[[str], str]) -> Connection | None:
        """What brings the messages of a stream into its spool; None where a listener does. value: gives an
        option without references. Raises ImportError for a package that is not installed, InputFault.
        """
        return None

    def rate_option(self, stream: Stream) -> str:
        return "maxRowsPerTrigger"

    def source(self, stream: Stream, places: Places) -> Node:
        reader = _spool("readStream", stream, places)
        if most := stream.option("maxRowsPerTrigger"):
            reader = reader.call("option", "maxRowsPerTrigger", most)
        return self.decoded(reader.call("load"), stream)

    def now(self, stream: Stream, places: Places) -> Node:
        return _spool("read", stream, places).call("load")


class Http(Received):
    name = "http"
    help = "messages that programs send with POST; they are on the disk before the answer 200"
    own = option_table("""
        listen: required, host:port -- the address on which the console listens
        path -- the path of the URL; by default / and the name of the stream
        token: secret -- the bearer token that requests must have; 16 characters or more
        certificate: path -- a file with the certificate of TLS, in PEM
        privateKeyFile: path -- a file with its private key
        maxBodyBytes: positive number of bytes = 16777216 -- maximum size of a request
    """)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        super().check_stream(stream, options, at)
        listen, path, token = options["listen"], options.get("path"), options.get("token")
        if path and not re.fullmatch(r"/[\w.~/%-]*", path.value.value):
            raise RuleFault(
                f"{path.value.value} is no path of a URL",
                hint=f"path '/{stream.name.casefold()}'",
                span=path.value.span,
                code="BAD_OPTION_VALUE",
            )
        host = listen.value.value.rpartition(":")[0].strip("[]")
        if token is None and not is_loopback(host):
            fact = f"other machines reach {host}, and {stream.name} has no token"
            hint = "OPTIONS (…, token '${env:NAME}'), or listen '127.0.0.1:PORT'"
            raise missing(listen.value, fact, hint)
        if token and not refers(token.value.value) and len(token.value.value) < SHORTEST_TOKEN:
            raise RuleFault(
                f"the token has less than {SHORTEST_TOKEN} characters",
                hint="a long one: openssl rand -hex 16",
                span=token.value.span,
                code="BAD_OPTION_VALUE",
            )
        pair = [name for name in ("certificate", "privatekeyfile") if name in options]
        if len(pair) == 1:
            given = options[pair[0]].key
            raise missing(given, "TLS needs certificate and privateKeyFile", "give both, or none")

    def notes_of(self, stream: Stream) -> tuple[Note, ...]:
        host = stream.option("listen").rpartition(":")[0].strip("[]")
        if is_loopback(host) or stream.option("certificate"):
            return ()
        text = (
            f"other machines reach {host}, and what they send is not encrypted: the options certificate and"
        )
        return (Note("NOT_ENCRYPTED", f"{text} privateKeyFile turn on TLS"),)


class ServerSentEvents(Received):
    name = "sse"
    help = "server-sent events of an HTTP server; after a break it goes on with the event after the last"
    fields = (Column("_received", "TIMESTAMP"), Column("_event", "STRING"), Column("_id", "STRING"))
    own = (
        OptionSpec("url", "the address of the events: http://… or https://…", required=True),
        _TOKEN,
    )

    def connection(self, stream: Stream, spool: Spool, value: Callable[[str], str]) -> Connection:
        import httpx_sse  # noqa: F401

        from streamsql.features.receivers.connections import EventConnection

        form = self.format_of(stream)
        return EventConnection(stream.name, value("url"), form, spool, value("token"))

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        super().check_stream(stream, options, at)
        _check_scheme(options["url"], ("http", "https"))


class WebSocket(Received):
    name = "websocket"
    help = "messages of a WebSocket server, while the console is connected to it"
    own = (
        OptionSpec("url", "the address of the server: ws://… or wss://…", required=True),
        OptionSpec("subscribe", "a text to send after each connection, such as a subscription in JSON"),
        _TOKEN,
    )

    def connection(self, stream: Stream, spool: Spool, value: Callable[[str], str]) -> Connection:
        import websockets  # noqa: F401

        from streamsql.features.receivers.connections import WebSocketConnection

        url, token, subscribe = map(value, ("url", "token", "subscribe"))
        return WebSocketConnection(stream.name, url, self.format_of(stream), spool, token, subscribe)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        super().check_stream(stream, options, at)
        _check_scheme(options["url"], ("ws", "wss"))

    def notes_of(self, stream: Stream) -> tuple[Note, ...]:
        text = f"messages that the server sends while {stream.name} is not connected are missing from it"
        return (Note("NOT_REPLAYED", text),)


CONNECTORS = (Http, ServerSentEvents, WebSocket)


def _spool(kind: str, stream: Stream, places: Places) -> Node:
    """The reader of the spool of a stream. kind: read or readStream."""
    name = stream.name.removesuffix(f"${REJECTED}") if stream.rejected else stream.name
    source = Call(Var("data_source"), (Var("spark"), lit(SPOOL), lit(".")))
    reader = Var("spark").attr(kind).call("format", source)
    return reader.call("option", "path", places.values(name))


def _check_scheme(url: Option, schemes: tuple[str, ...]) -> None:
    """Raise RuleFault for an address of another scheme, or without a host."""
    if refers(url.value.value):
        return
    try:
        place = urlsplit(url.value.value)
        good = place.scheme in schemes and bool(place.hostname) and place.port != 0
    except ValueError:
        good = False
    if not good:
        raise RuleFault(
            f"url is no address of the form {schemes[-1]}://host/path",
            hint=" or ".join(f"{scheme}://…" for scheme in schemes),
            span=url.value.span,
            code="BAD_OPTION_VALUE",
        )
