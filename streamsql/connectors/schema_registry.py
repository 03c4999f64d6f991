"""The options of a schema registry, which has the Avro schemas of messages, and what they come to."""

from __future__ import annotations

import urllib.parse

from streamsql.calls import Call, Node, Var, lit
from streamsql.catalog import Sink, Stream
from streamsql.connectors.base import OptionSpec, with_options
from streamsql.errors import RuleFault, SyntaxFault
from streamsql.language.statements.base import Option
from streamsql.language.tokens import refers

ADDRESS = "schemaRegistry"
_SETTING = f"{ADDRESS}."
# The settings of its client: confluent-kafka, SchemaRegistryClient.
OPTIONS = (
    OptionSpec(ADDRESS, "the registry of the Avro schemas: http://host:8081, …; streamsql[registry]"),
    OptionSpec("subject", "the name of the schema in it; else the topic's, and -value"),
    OptionSpec(f"{_SETTING}basic.auth.user.info", "the login there: user:password", secret=True),
    OptionSpec(f"{_SETTING}ssl.ca.location", "a PEM file with the certificates to trust", "path"),
    OptionSpec(f"{_SETTING}ssl.certificate.location", "a PEM file with the client's certificate", "path"),
    OptionSpec(f"{_SETTING}ssl.key.location", "a PEM file with its key", "path"),
    OptionSpec(f"{_SETTING}ssl.key.password", "the key's password", secret=True),
    OptionSpec(
        f"{_SETTING}bearer.auth.credentials.source",
        "where a bearer's token comes from",
        choices=("OAUTHBEARER", "STATIC_TOKEN"),
        cased=True,
    ),
    OptionSpec(f"{_SETTING}bearer.auth.token", "the token", secret=True),
    OptionSpec(f"{_SETTING}bearer.auth.logical.cluster", "the registry's cluster"),
    OptionSpec(f"{_SETTING}bearer.auth.identity.pool.id", "the identity pool"),
    OptionSpec(f"{_SETTING}bearer.auth.issuer.endpoint.url", "who gives tokens"),
    OptionSpec(f"{_SETTING}bearer.auth.client.id", "the client's name there"),
    OptionSpec(f"{_SETTING}bearer.auth.client.secret", "its secret", secret=True),
    OptionSpec(f"{_SETTING}bearer.auth.scope", "what the token is for"),
    OptionSpec(f"{_SETTING}proxy", "the proxy on the way to it"),
    OptionSpec(f"{_SETTING}timeout", "seconds that an answer may take", "positive integer", default="10"),
    OptionSpec(f"{_SETTING}max.retries", "tries after the first", "number", default="2"),
)
AUTO_REGISTER = OptionSpec(
    "autoRegister",
    "false: the schema is in the registry already, and else the newest one is written",
    "boolean",
    default="true",
)
_PLAIN_TOPICS = ("topic", "subscribe")


def uses(entry: Stream | Sink) -> bool:
    return bool(entry.option(ADDRESS))


def client(entry: Stream | Sink) -> Node:
    """The calls that give the helper of that name, with the settings of a stream or sink."""
    settings = ((k, v) for k, v in entry.options if k.casefold().startswith(_SETTING.casefold()))
    address = entry.option(ADDRESS)
    given = Call(Var("filled"), (lit(address),)) if refers(address) else lit(address)
    return with_options(Call(Var("SchemaRegistry"), (given,)), ((k[len(_SETTING) :], v) for k, v in settings))


def subject(entry: Stream | Sink) -> str:
    """The subject of a stream or sink: as said, or that of its one topic; empty when there is none."""
    topic = next((t for name in _PLAIN_TOPICS if (t := entry.option(name))), "")
    return entry.option("subject") or (f"{topic.strip()}-value" if topic and "," not in topic else "")


def servers(entry: Stream | Sink) -> tuple[tuple[str, int], ...]:
    """Hosts and ports of the registry, one of which must take connections; none behind a proxy."""
    address = entry.option(ADDRESS)
    if not address or refers(address) or entry.option(f"{_SETTING}proxy"):
        return ()
    places = map(urllib.parse.urlsplit, (url.strip() for url in address.split(",")))
    return tuple((p.hostname or "", p.port or (443 if p.scheme == "https" else 80)) for p in places)


def check(form: str, entry: Stream | Sink, options: dict[str, Option]) -> None:
    """Raise a placed error for options of a registry that do not go together."""
    address = options.get(ADDRESS.casefold())
    mine = {s.name.casefold() for s in (*OPTIONS, AUTO_REGISTER)}
    given = next((o for key, o in options.items() if key in mine), None)
    if given and form != "avro":
        raise RuleFault(
            f"a schema registry is for FORMAT avro, and the payload is {form}",
            detail="messages in other formats that a registry knows cannot be read yet"
            if form in ("json", "protobuf")
            else "",
            hint="FORMAT avro",
            span=given.key.span,
        )
    if given and not address:
        raise RuleFault(
            f"{given.key} needs the option {ADDRESS}",
            hint=f"OPTIONS (…, {ADDRESS} 'http://host:8081')",
            span=given.key.span,
        )
    wire = options.get("wireformat")
    confluent = wire is not None and wire.value.value.casefold() == "confluent"
    if wire and address and not confluent:
        raise RuleFault(
            "messages of a schema registry have the wire format confluent",
            hint="leave wireFormat out",
            span=wire.key.span,
        )
    if wire and confluent and not address and isinstance(entry, Sink):
        raise RuleFault(
            "the number of the schema in such messages comes from a schema registry",
            hint=f"OPTIONS (…, {ADDRESS} 'http://host:8081')",
            span=wire.key.span,
        )
    if address is None:
        return
    _check_address(address)
    if subject(entry) or (isinstance(entry, Stream) and {"avroschema", "avroschemafile"} & set(options)):
        return
    several = "the topics have a subject each" if isinstance(entry, Stream) else "rows go into many topics"
    raise RuleFault(
        f"which schema of the registry? {several}",
        hint="OPTIONS (…, subject 'name-value')"
        + (", or avroSchema: what all are read by" if isinstance(entry, Stream) else ""),
        span=address.key.span,
    )


def _check_address(address: Option) -> None:
    given = address.value
    for url in given.value.split(","):
        if refers(url):
            continue
        place = urllib.parse.urlsplit(url.strip())
        try:
            right = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
        except ValueError:
            right = False
        if place.username is not None:
            raise RuleFault(
                "the login of a schema registry does not stand in its address",
                hint=f"{_SETTING}basic.auth.user.info '${{env:REGISTRY_LOGIN}}'",
                span=address.key.span,
            )
        if not right:
            raise SyntaxFault(
                f"a schema registry is http://host:port, not '{url.strip()}'",
                hint="http://host:8081",
                span=given.span,
            )
