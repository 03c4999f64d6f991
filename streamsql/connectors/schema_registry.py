"""The options of a schema registry, which stores the Avro schemas of messages."""

from __future__ import annotations

import urllib.parse

from streamsql.calls import Call, Node, Var, lit
from streamsql.connectors.base import OptionSpec, conflict, missing, option_table, with_options
from streamsql.definitions import Sink, Stream
from streamsql.errors import RuleFault
from streamsql.language.statements.base import Option
from streamsql.language.tokens import refers

ADDRESS = "schemaRegistry"
_SETTING = f"{ADDRESS}."
_WITH_ADDRESS = f"OPTIONS (…, {ADDRESS} 'http://host:8081')"
# The settings of its client: confluent-kafka, SchemaRegistryClient.
OPTIONS = option_table("""
    schemaRegistry: list of http://host:port -- the registry of the Avro schemas: http://host:8081, …
    subject -- the subject of the schema; default: TOPIC-value
    schemaRegistry.basic.auth.user.info: secret -- the login: user:password
    schemaRegistry.ssl.ca.location: path -- a PEM file with the certificates to trust
    schemaRegistry.ssl.certificate.location: path -- a PEM file with the client's certificate
    schemaRegistry.ssl.key.location: path -- a PEM file with its key
    schemaRegistry.ssl.key.password: secret -- the key's password
    schemaRegistry.bearer.auth.credentials.source: cased, OAUTHBEARER, STATIC_TOKEN -- source of the bearer
        token
    schemaRegistry.bearer.auth.token: secret -- the bearer token
    schemaRegistry.bearer.auth.logical.cluster -- the registry's cluster
    schemaRegistry.bearer.auth.identity.pool.id -- the identity pool
    schemaRegistry.bearer.auth.issuer.endpoint.url -- the token endpoint (OAuth)
    schemaRegistry.bearer.auth.client.id -- the OAuth client id
    schemaRegistry.bearer.auth.client.secret: secret -- the OAuth client secret
    schemaRegistry.bearer.auth.scope -- the OAuth scope
    schemaRegistry.proxy -- the proxy to reach the registry
    schemaRegistry.timeout: positive integer = 10 -- time limit for an answer, in seconds
    schemaRegistry.max.retries: integer from 0 = 2 -- number of retries
""")
AUTO_REGISTER = OptionSpec(
    "autoRegister",
    "register the schema of a sink; false: use the newest registered schema",
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
        not_yet = "json and protobuf schemas of a registry are not supported yet"
        why = not_yet if form in ("json", "protobuf") else ""
        raise conflict(given, f"a schema registry needs FORMAT avro, not {form}", "FORMAT avro", why)
    if given and not address:
        raise missing(given.key, f"{given.key} needs the option {ADDRESS}", _WITH_ADDRESS)
    _check_wire(options, entry)
    if address is None:
        return
    _check_address(address)
    if subject(entry) or (isinstance(entry, Stream) and {"avroschema", "avroschemafile"} & set(options)):
        return
    several, hint = "rows go to several topics", "OPTIONS (…, subject 'name-value')"
    if isinstance(entry, Stream):
        several = "each topic has a subject of its own"
        hint += ", or avroSchema, to read all of them with one schema"
    raise missing(address.key, f"it is not clear which schema of the registry to use: {several}", hint)


def _check_wire(options: dict[str, Option], entry: Stream | Sink) -> None:
    """Raise a placed error for a wire format that does not go with a registry, or without one."""
    address = options.get(ADDRESS.casefold())
    wire = options.get("wireformat")
    confluent = wire is not None and wire.value.value.casefold() == "confluent"
    if wire and address and not confluent:
        fact = "messages with a schema registry have the wire format confluent"
        raise conflict(wire, fact, "omit wireFormat")
    if wire and confluent and not address and isinstance(entry, Sink):
        raise missing(wire.key, "the schema id in these messages needs a schema registry", _WITH_ADDRESS)


def _check_address(address: Option) -> None:
    for url in address.value.value.split(","):
        if refers(url):
            continue
        place = urllib.parse.urlsplit(url.strip())
        if place.username is not None:
            raise RuleFault(
                "the address of a schema registry must not contain a login",
                hint=f"{_SETTING}basic.auth.user.info '${{env:REGISTRY_LOGIN}}'",
                span=address.key.span,
                code="SECRET_SHOWN",
            )
