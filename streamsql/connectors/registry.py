"""All connectors by name. To add one, add a line here, a feature with connectors, or an entry point of
streamsql.connectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from streamsql import plug_in_loader
from streamsql.connectors.avro import Avro
from streamsql.connectors.base import Connector
from streamsql.connectors.console import Console
from streamsql.connectors.csv import Csv
from streamsql.connectors.datagen import Datagen
from streamsql.connectors.foreach import Foreach
from streamsql.connectors.foreach_batch import ForeachBatch
from streamsql.connectors.given import Given
from streamsql.connectors.jdbc import Jdbc
from streamsql.connectors.json import Json
from streamsql.connectors.kafka import Kafka
from streamsql.connectors.memory import Memory
from streamsql.connectors.noop import Noop
from streamsql.connectors.orc import Orc
from streamsql.connectors.packages import PACKAGES
from streamsql.connectors.parquet import Parquet
from streamsql.connectors.python import Python
from streamsql.connectors.rate import Rate
from streamsql.connectors.rate_micro_batch import RateMicroBatch
from streamsql.connectors.socket import Socket
from streamsql.connectors.spark import Spark
from streamsql.connectors.text import Text
from streamsql.connectors.xml import Xml
from streamsql.errors import EngineFault, NameFault, RuleFault, did_you_mean
from streamsql.feature_registry import connector_classes
from streamsql.language.statements.base import Name
from streamsql.plug_in_loader import CONNECTORS, loaded

_BUILT_IN: tuple[type[Connector], ...] = (
    Csv, Json, Parquet, Orc, Text, Xml, Avro, Kafka, Socket, Rate, RateMicroBatch, Given, Datagen,
    Memory, Console, Jdbc, Foreach, ForeachBatch, Python, Spark, Noop,
)  # fmt: skip
ENDLESS = ("rate", "rate-micro-batch")
"""The connectors of streams that always have new rows: a query over one is never idle."""


@cache
def connectors() -> dict[str, Connector]:
    """Connector name (folded) → connector."""
    by_name: dict[str, Connector] = {c.name: c() for c in (*_BUILT_IN, *connector_classes())}
    for _, made in loaded(CONNECTORS, lambda kind: _checked(kind(), by_name)):
        by_name[made.name.casefold()] = made
    return by_name


def _checked(made: Any, by_name: Mapping[str, Connector]) -> Connector:
    """The connector of a plug-in. Raises TypeError for what is none, ValueError for a name that is taken."""
    if not isinstance(made, Connector):
        raise TypeError(f"{type(made).__name__} is no Connector")
    if not re.fullmatch(r"[A-Za-z][\w-]*", made.name) or made.name.casefold() in by_name:
        raise ValueError(f"its name {made.name} is taken, or no name of a connector")
    return made


def connector(name: Name, purpose: str = "") -> Connector:
    """The connector of that name. purpose "read" or "write" also asks that it can do that.

    Raises NameFault with the nearest name.
    """
    all_connectors = connectors()
    named = all_connectors.get(name.value.casefold())
    can = {"read": lambda c: c.reads is not None, "write": lambda c: c.writes is not None}.get(
        purpose, lambda c: True
    )
    package = PACKAGES.get(name.value.casefold())
    if named is None and package is not None and package.unreleased:
        raise RuleFault(
            f"{package.name} has no release for Spark 4.3",
            detail=package.unreleased,
            span=name.span,
            code="PACKAGE_NOT_AVAILABLE",
        )
    if named is None and (reason := plug_in_loader.reason(CONNECTORS, name.value)):
        raise EngineFault(
            f"the plug-in of the connector {name.value} cannot be loaded",
            detail=reason,
            span=name.span,
            code="MISSING_MODULE",
        )
    usable = [c.name for c in all_connectors.values() if can(c)] if named is None or not can(named) else []
    if named is None:
        raise NameFault(
            f"there is no connector {name.value}",
            hint=did_you_mean(name.value, usable)
            or f"connectors: {', '.join(usable)}; another format of Spark: USING spark OPTIONS (format '…')",
            span=name.span,
            code="UNKNOWN_CONNECTOR",
        )
    if not can(named):
        verb = "read from" if purpose == "read" else "written to"
        raise NameFault(
            f"{named.name} cannot be {verb}",
            hint=f"connectors for it: {', '.join(usable)}",
            span=name.span,
            code="CONNECTOR_NOT_SUPPORTED",
        )
    return named


def plug_in_warnings() -> list[str]:
    """The warnings about plug-ins that cannot be used. Loads all plug-ins, if there are any."""
    if not plug_in_loader.are_there():
        return []
    from streamsql.language.statements.registry import STATEMENTS

    assert connectors() and STATEMENTS
    return plug_in_loader.warnings()
