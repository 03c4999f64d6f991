"""A sink that stands in FROM: it is written to, and where its rows can be read, PREVIEW reads them."""

from __future__ import annotations

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connector
from streamsql.definition_sql import options_sql
from streamsql.definitions import Sink
from streamsql.errors import NameFault, RuleFault, Span
from streamsql.language.statements.base import Name
from streamsql.secrets import HIDDEN, redact_option

_PLACES = {"path": "path", "topic": "subscribe"}
"""The option with the place that a sink writes to, and the one with which a source reads it."""


def read_of_sink(catalog: Catalog, name: str, span: Span | None) -> NameFault | RuleFault | None:
    """The error for FROM with the name of a sink that is not a live table, or of what is only staged; None
    for other names. span: of the name.
    """
    sink = catalog.sinks.get(name.casefold())
    if catalog.reads(name):
        return None
    if sink is None:
        return catalog.only_staged(Name(name, span or Span(0, 0)))
    return RuleFault(
        f"{sink.name} is a sink: queries write to it, and FROM cannot read it",
        proposal=_preview(sink),
        span=span,
        code="WRONG_KIND",
    )


def _preview(sink: Sink) -> str:
    """PREVIEW of what a sink has written, with the options that its source has, too; "" where that is not
    known, or needs a secret.
    """
    place = next((key for key in _PLACES if sink.option(key)), None)
    read_options = {spec.name.casefold() for spec in connector(Name(sink.connector)).reads or ()}
    if place is None or _PLACES[place] not in read_options:
        return ""
    options = [(_PLACES.get(key.casefold(), key), value) for key, value in sink.options]
    options = [
        (k, v) for k, v in options if k.casefold() in read_options or k.casefold().startswith("kafka.")
    ]
    if any(redact_option(key, value) == HIDDEN for key, value in options):
        return ""
    return f"PREVIEW USING {sink.connector} {options_sql(tuple(options))};"
