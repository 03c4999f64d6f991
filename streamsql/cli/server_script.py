"""The scripts of a server, which run each time it starts: a definition that is there already is kept."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.definitions import Function, Query, Sink, Stream
from streamsql.errors import NameFault, StreamsqlError
from streamsql.language.statements.base import Name, QueryClauses, Statement
from streamsql.plan import planner
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import StatementSession

_KINDS = ("streams", "sinks", "queries", "functions")


class ServerScripts(StatementSession):
    """A session for the scripts of a server. A statement that defines what the workspace holds, word for
    word, is no error: the server has been started with this script before.
    """

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement. Raises StreamsqlError."""
        try:
            return super().execute(statement, cancel)
        except NameFault as error:
            names = _names(statement)
            if error.code != "ALREADY_EXISTS" or not self._same(statement, names):
                raise
            return Done(message=f"{', '.join(names)}: defined already")

    def _same(self, statement: Statement, names: list[str]) -> bool:
        """Whether the entries of these names are what the statement defines."""
        there = self.catalog
        without = _without(there, names)
        try:
            plan = planner.plan(statement, replace(self.parts.context(), catalog=without))
            defined = plan.applied(without)
        except StreamsqlError:
            return False
        pairs = [
            (getattr(there, kind).get(key), getattr(defined, kind).get(key))
            for kind in _KINDS
            for key in map(str.casefold, names)
        ]
        known = [(old, new) for old, new in pairs if old is not None or new is not None]
        return bool(known) and all(old and new and _text(old) == _text(new) for old, new in known)


def _names(statement: Statement) -> list[str]:
    """The names that a statement may define."""
    name = getattr(statement, "name", None)
    names = [name] if isinstance(name, Name) else []
    if isinstance(statement, QueryClauses) and statement.query_name:
        names.append(statement.query_name)
    return [name.value for name in names]


def _without(catalog: Catalog, names: list[str]) -> Catalog:
    for kind in _KINDS:
        for name in names:
            catalog = catalog.without(kind, name)
    return catalog


def _text(entry: Stream | Sink | Query | Function) -> str:
    """The statement that makes an entry, as it is written: without columns that were inferred."""
    if isinstance(entry, Stream) and entry.inferred:
        entry = replace(entry, columns=(), inferred=False)
    return entry.sql()
