"""Sinks of a test into which several statements write: the rows of each are kept apart, compared as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.insert import Insert
from streamsql.plan.stand_ins import in_test
from streamsql.runtime.session import Session


def prepared(session: Session, statement: Statement) -> Statement:
    """A statement as a test executes it. The INSERT of a second query into a sink writes into one of its own,
    since the rows of a live table count once by the micro-batches of one query.
    """
    statement = in_test(statement)
    if not isinstance(statement, Insert) or statement.query_name is None:
        return statement
    targets = tuple(_own(session, name, statement.query_name.value) for name in statement.targets)
    return replace(statement, targets=targets)


def _own(session: Session, name: Name, query: str) -> Name:
    catalog = session.catalog
    sink = catalog.sinks.get(name.value.casefold())
    if sink is None or sink.stands_for is None:
        return name
    feeding = {q.name.casefold() for q in catalog.queries_into(sink.name)}
    if not feeding or query.casefold() in feeding:
        return name
    own = replace(sink, name=f"{sink.name}$${query}", owner=sink.name)
    session.parts.define(own)
    return replace(name, value=own.name)


def all_rows(session: Session, name: str) -> list[Any]:
    """All LiveRows of a sink: of its queries, and of what was inserted by itself."""
    own = name.casefold()
    return [rows for key, rows in session.parts.live.items() if key == own or key.startswith(f"{own}$$")]
