"""Plans for PREVIEW and SHOW TOPICS, and the programs that read the first records of a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from glob import glob

from streamsql.connectors import debezium
from streamsql.connectors.base import check_value
from streamsql.connectors.kafka import SERVERS, client_settings
from streamsql.connectors.registry import connector
from streamsql.definitions import Stream
from streamsql.errors import InputFault, NameFault, RuleFault, did_you_mean
from streamsql.features.preview.statement import Preview as PreviewStatement
from streamsql.features.preview.statement import ShowTopics
from streamsql.language.file_formats import read_by
from streamsql.language.statements.base import Name, Option
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.context import Context
from streamsql.plan.plans import Plan
from streamsql.plan.statements.definitions import code_of, stream_as_written
from streamsql.plan.statements.schema_guesses import stream_name

_PLACES = ("path", "topic", "subscribe")
"""The options with the location of a source, from which the stream gets its name."""


@dataclass(frozen=True)
class Preview(Plan):
    """The first records of a stream. propose: the stream does not exist yet; infer its columns, event time
    and format, and suggest a CREATE STREAM. place: the option with the location of the records. path, code:
    as in DefineStream, but path can be a file.
    """

    stream: Stream
    limit: int
    propose: bool = False
    place: Name | None = None
    path: Name | None = None
    code: Name | None = None


@dataclass(frozen=True)
class Topics(Plan):
    """The topics of a Kafka cluster. settings: for Kafka's client; like: a pattern; place: the part of the
    statement that names the brokers.
    """

    settings: dict[str, str]
    like: str
    place: Name


def preview(statement: PreviewStatement, context: Context) -> Plan:
    """PREVIEW of an existing stream, or of the stream that CREATE STREAM would define."""
    if statement.path:
        return _preview_of_source(_of_files(statement, statement.path), context)
    if statement.name:
        relation = context.catalog.relation(statement.name.value)
        if relation is not None and not isinstance(relation, Stream):
            raise RuleFault(
                f"{statement.name} is a live table: read its rows with SELECT",
                hint=f"SELECT * FROM {quote_name(relation.name)} LIMIT {statement.limit};",
                span=statement.name.span,
                code="WRONG_KIND",
            )
        return Preview(context.catalog.stream(statement.name), statement.limit, place=statement.name)
    return _preview_of_source(statement, context)


def _check_not_changes(format: Name | None) -> None:
    """Raise RuleFault for Debezium's format: its columns are not those of the payload."""
    if format is not None and format.value.lower() == debezium.FORMAT:
        raise RuleFault(
            "PREVIEW does not tell the columns of changes",
            detail="they are the fields of before and after, and KEY says which of them identify a row",
            hint=f"omit FORMAT {debezium.FORMAT}",
            span=format.span,
            code="CLAUSE_NOT_SUPPORTED",
        )


def _of_files(statement: PreviewStatement, path: Name) -> PreviewStatement:
    """PREVIEW 'path' with the connector that the name of the file tells, or that of a file in the folder."""
    using = next((format for format in map(read_by, _names(path.value)) if format), "")
    if not using:
        raise InputFault(
            "the names of the files do not tell their format",
            hint=f"PREVIEW USING json OPTIONS (path {quote(path.value)}); reads them as JSON; "
            "others: csv, parquet, orc, avro, text",
            span=path.span,
            code="NO_RECORDS",
        )
    options = (Option(Name("path", path.span), path),)
    return replace(statement, path=None, connector=Name(using, path.span), options=options)


def _names(path: str) -> Iterator[str]:
    """The names of the files that a path, a glob or a folder (and those in it) stands for, as for Spark."""
    yield path
    for place in sorted(glob(path)):
        yield place
        for _, folders, files in os.walk(place):
            folders.sort()
            yield from sorted(files)


def _preview_of_source(statement: PreviewStatement, context: Context) -> Preview:
    """PREVIEW USING: the stream that CREATE STREAM would define for this connector and these options."""
    assert statement.connector
    using = connector(statement.connector, "read")
    if using.needs_columns:
        raise RuleFault(
            f"there is nothing to preview: CREATE STREAM determines the rows of {using.name}",
            hint=f"CREATE STREAM name (id INT, …) USING {using.name} …; then PREVIEW name;",
            span=statement.connector.span,
            code="NO_RECORDS",
        )
    if using.received:
        raise RuleFault(
            f"{using.name} has nothing to look at: the console receives messages for streams only",
            hint=f"CREATE STREAM name USING {using.name} …; SELECT * FROM name;",
            span=statement.connector.span,
            code="CONNECTOR_NOT_SUPPORTED",
        )
    _check_not_changes(statement.format)
    given = {option.key.value.casefold(): option.value for option in statement.options}
    place = next((given[name] for name in _PLACES if name in given), None)
    taken = [*context.catalog.relation_names(), *(s.name for s in context.catalog.sinks.values())]
    name = Name(stream_name(place.value.split(",")[0] if place else "", taken, using.name))
    written = CreateStream(
        name=name, connector=statement.connector, format=statement.format, options=statement.options
    )
    stream, options = stream_as_written(written, using, context)
    path = options.get(using.path_option.casefold())
    return Preview(
        stream,
        statement.limit,
        True,
        place,
        path.value if path else None,
        code_of(using.reads or (), options),
    )


def show_topics(statement: ShowTopics, context: Context) -> Plan:
    """SHOW TOPICS: the addresses of the brokers and the settings of the client."""
    for option in statement.options:
        if not option.key.value.casefold().startswith("kafka."):
            raise NameFault(
                f"SHOW TOPICS has no option {option.key}",
                detail="its options are the settings of Kafka's client",
                hint="kafka.security.protocol, kafka.sasl.mechanism, kafka.sasl.jaas.config, …",
                span=option.key.span,
                code="UNKNOWN_OPTION",
            )
    given = [(o.key.value, o.value.value) for o in statement.options]
    if statement.servers:
        check_value(SERVERS[0], statement.servers)
        return Topics(
            client_settings([("servers", statement.servers.value), *given]), statement.like, statement.servers
        )
    assert statement.entry
    entry = context.catalog.target(statement.entry.value)
    if entry is None:
        entries = (context.catalog.streams, context.catalog.sinks)
        names = [e.name for part in entries for e in part.values() if e.connector == "kafka"]
        raise NameFault(
            f"there is no stream or sink {statement.entry}",
            hint=did_you_mean(statement.entry.value, names) or "SHOW TOPICS FROM 'host:port'; names brokers",
            span=statement.entry.span,
            code="UNKNOWN_STREAM",
        )
    if entry.connector != "kafka":
        raise RuleFault(
            f"{entry.name} is not a Kafka stream or sink",
            hint="SHOW TOPICS FROM 'host:port'; names brokers",
            span=statement.entry.span,
            code="WRONG_KIND",
        )
    return Topics(client_settings([*entry.options, *given]), statement.like, statement.entry)


PLANNERS = {PreviewStatement: preview, ShowTopics: show_topics}
