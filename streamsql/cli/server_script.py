"""The scripts of a server, which run each time it starts: a definition that is there already is kept."""

from __future__ import annotations

from dataclasses import replace

from streamsql.connectors.option_values import in_full, placed
from streamsql.definitions import Function, Query, Sink, Stream
from streamsql.errors import NameFault, StartFault, StreamsqlError
from streamsql.language.statements.base import Name, QueryClauses, Statement
from streamsql.language.statements.insert import Insert
from streamsql.plan import planner
from streamsql.results import Done, Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.session import StatementSession

ATTEMPTS = 3
"""How often a statement is executed at most, while Spark ends under it."""
_KINDS = {
    "stream": ("streams",),
    "sink": ("sinks",),
    "function": ("functions",),
    "live_table": ("sinks", "queries"),
    "query": ("queries",),
}
"""What a statement defines → the fields of the catalog that hold it."""


class ServerScripts(StatementSession):
    """A session for the scripts of a server. A statement that defines what the workspace holds, word for
    word, is no error: the server has been started with this script before. One that was cut short by the end
    of Spark is executed again.
    """

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement. Raises StreamsqlError."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._execute_once(statement, cancel)
            except StreamsqlError as error:
                repeatable = statement.defines or isinstance(error, StartFault)
                if error.code != "SPARK_LOST" or not repeatable:
                    raise
        return self._execute_once(statement, cancel)

    def _execute_once(self, statement: Statement, cancel: CancelToken | None) -> Result:
        try:
            return super().execute(statement, cancel)
        except NameFault as error:
            names = _names(statement)
            if error.code != "ALREADY_EXISTS" or not statement.defines or not self._same(statement, names):
                raise
            return Done(message=f"{', '.join(names)}: defined already")

    def _same(self, statement: Statement, names: list[str]) -> bool:
        """Whether the entries of these names are what the statement defines."""
        catalog, kinds = self.catalog, _KINDS[statement.defines]
        without = catalog
        for kind in kinds:
            for name in names:
                without = without.without(kind, name)
        try:
            plan = planner.plan(statement, replace(self.parts.context(), catalog=without))
            defined = plan.applied(without)
        except StreamsqlError:
            return False
        pairs = [
            (getattr(catalog, kind).get(key), getattr(defined, kind).get(key))
            for kind in kinds
            for key in map(str.casefold, names)
        ]
        entries = [(old, new) for old, new in pairs if old is not None or new is not None]
        return bool(entries) and all(old and new and _text(old) == _text(new) for old, new in entries)


def _names(statement: Statement) -> list[str]:
    """The names that a statement may define."""
    name = getattr(statement, "name", None)
    names = [name] if isinstance(name, Name) else []
    if isinstance(statement, QueryClauses):
        targets = statement.targets if isinstance(statement, Insert) else ()
        names += [statement.query_name] if statement.query_name else targets
    return [name.value for name in names]


def _text(entry: Stream | Sink | Query | Function) -> str:
    """The statement that makes an entry, with absolute paths and without columns that were inferred."""
    if isinstance(entry, Stream) and entry.inferred:
        entry = replace(entry, columns=(), inferred=False)
    if isinstance(entry, (Stream, Sink)):
        return str(placed(entry).sql())
    if isinstance(entry, Query) and entry.checkpoint:
        entry = replace(entry, checkpoint=in_full(entry.checkpoint))
    return entry.sql()
