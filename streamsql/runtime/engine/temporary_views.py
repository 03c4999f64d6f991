"""Temporary views: they end with their Spark, and a new Spark gets them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamsql.catalog import CurrentCatalog
from streamsql.errors import EngineFault, Note, StreamsqlError
from streamsql.language.names_read import relations_of
from streamsql.language.spark_definitions import definition_of
from streamsql.language.statements.base import Statement
from streamsql.runtime.engine.spark_errors import translate

Make = Callable[[Statement, Any, bool], None]


class Deferred(Exception):
    """A view that calls Python of the workspace is made when a statement names it, not with Spark's start."""


class TemporaryViews:
    """The statements that made the session's temporary views, by folded name of the view.

    make: carries such a statement out on a Spark session; when it must not import Python for that, it
    raises Deferred.
    """

    def __init__(self, catalog: CurrentCatalog, make: Make) -> None:
        self._catalog = catalog
        self._make = make
        self._made: dict[str, Statement] = {}
        self._missing: set[str] = set()
        self._untold: dict[str, Note] = {}

    def remember(self, statement: Statement, creates: str) -> None:
        """Take notice of a statement that was carried out. creates: the view or table that it makes."""
        definition = definition_of(statement.text)
        if creates and definition.temporary:
            self._made[creates.casefold()] = statement
            self._missing.discard(creates.casefold())
        if definition.drops:
            self.forget(definition.drops)

    def statements(self) -> list[tuple[str, Statement]]:
        """(name, statement) of each view."""
        return list(self._made.items())

    def forget(self, name: str) -> None:
        """A view that is dropped."""
        self._made.pop(name.casefold(), None)
        self._missing.discard(name.casefold())
        self._catalog.update(lambda catalog: catalog.without("tables", name))

    def restore(self, spark: Any) -> None:
        """Make them all again on a new Spark; what cannot be made is told by `news`."""
        self._missing.clear()
        deferred = False
        for name in list(self._made):
            try:
                fault = self._try(name, spark, imports=False)
            except Deferred:
                self._missing.add(name)
                deferred = True
                continue
            if fault:
                self._missing.add(name)
            if fault and not deferred:  # else it may read one that is made later
                self._untold[name] = Note(
                    "VIEW_NOT_RESTORED",
                    f"the temporary view {name} could not be made again: {fault.message}; the next statement "
                    "that names it tries again",
                )

    def news(self) -> tuple[Note, ...]:
        """What `restore` has to tell, once."""
        lines = tuple(self._untold.values())
        self._untold.clear()
        return lines

    def check(self, statement: Statement, spark: Callable[[], Any]) -> None:
        """Try again to make those missing views that a statement names. spark: gives the Spark session.

        Raises EngineFault for one that cannot be made, unless the statement drops or replaces it.
        """
        relations = relations_of(statement) if self._made else ()
        named = {relation.name.casefold(): relation.span for relation in relations}
        views = [name for name in self._made if name in named]
        session = spark() if views else None  # one that starts now makes the views
        if any(name in self._missing for name in views):
            self._make_missing(session, set(views))
        for name in [name for name in views if name in self._missing]:
            self._untold.pop(name, None)
            fault = self._try(name, session)
            definition = definition_of(statement.text)
            if fault is None:
                self._missing.discard(name)
            elif definition.drops.casefold() == name:
                self.forget(name)
            elif not definition.temporary:
                raise EngineFault(
                    f"the temporary view {name} cannot be made again: {fault.message}",
                    detail="it ended with the Spark that it was made in",
                    hint=f"CREATE OR REPLACE TEMPORARY VIEW {name} AS …, or DROP VIEW IF EXISTS {name};",
                    span=named[name],
                    code="VIEW_NOT_RESTORED",
                )

    def _make_missing(self, spark: Any, but: set[str]) -> None:
        """Make what may be read by views that a statement names, as far as it can be made."""
        for name in [name for name in self._made if name in self._missing and name not in but]:
            if self._try(name, spark) is None:
                self._missing.discard(name)
                self._untold.pop(name, None)

    def _try(self, name: str, spark: Any, *, imports: bool = True) -> StreamsqlError | None:
        try:
            self._make(self._made[name], spark, imports)
        except Deferred:
            raise
        except Exception as error:
            return translate(error)
        return None
