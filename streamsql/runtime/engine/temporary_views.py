"""Views and tables of Spark: they end with their Spark, and are created again on a new one."""

from __future__ import annotations

import glob
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from streamsql.calls import Lit, Program, calls_in
from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.connectors.option_values import in_full
from streamsql.errors import EngineFault, Note, Source, StreamsqlError
from streamsql.language.names_read import relations_of
from streamsql.language.parser import parse
from streamsql.language.script import split_script
from streamsql.language.spark_definitions import Definition, definition_of
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name
from streamsql.language.view_paths import with_paths
from streamsql.runtime.engine.kept_tables import is_table
from streamsql.runtime.engine.spark_errors import translate

if TYPE_CHECKING:
    from streamsql.runtime.engine.lifecycle import Engine

Make = Callable[[Statement, Any, bool], None]


class Deferred(Exception):
    """A view that calls Python of the workspace: it is created only when a statement names it."""


def with_full_paths(statement: Statement) -> Statement:
    """The statement of a view with absolute paths: the workspace may be opened from another folder."""
    text = with_paths(statement.text, in_full, lambda path: bool(glob.glob(path)))
    if text == statement.text:
        return statement
    (written,) = split_script(Source("catalog.sql", f"{text};"))
    return parse(written, {}, literal=True)


class RegisteredRelations:
    """Removes the temporary views by which Spark has read streams and live tables, once these are gone: Spark
    would go on to read them.

    engine: that of the session.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names = frozenset[str]()
        self._lock = threading.Lock()

    def follow(self, catalog: Catalog) -> None:
        """Take the newest snapshot of the catalog. Raises nothing."""
        live = (name for name, sink in catalog.sinks.items() if sink.is_live)
        names = frozenset((*catalog.streams, *live))
        with self._lock:
            gone, self._names = self._names - names - catalog.tables.keys(), names
        spark = self._engine.session
        for name in gone if spark is not None else ():
            with suppress(Exception):  # Spark has ended
                spark.catalog.dropTempView(name)


class TemporaryViews:
    """The statements that created the session's views and tables, by folded name. The files of tables last.

    make: executes such a statement on a Spark session; raises Deferred when it would have to import
    Python and must not.
    """

    def __init__(self, catalog: CurrentCatalog, make: Make) -> None:
        self._catalog = catalog
        self._make = make
        self._statements: dict[str, Statement] = {}
        self._missing: set[str] = set()
        self._untold: dict[str, Note] = {}
        self._creating = threading.RLock()
        self._is_creating = False

    def remember(self, statement: Statement, definition: Definition) -> None:
        """Record an executed statement that created or dropped a view or table of the default schema."""
        if definition.creates and "." not in definition.creates:
            name = definition.creates.casefold()
            self._statements[name] = with_full_paths(statement)
            self._missing.discard(name)
        if definition.drops:
            self.forget(definition.drops)

    def change(self, statement: Statement, definition: Definition, spark: Any) -> None:
        """Put another statement in the place of the one that created a view. spark: the session in which the
        view is, None if Spark does not run. A view that cannot be created is missing then.
        """
        self.remember(statement, definition)
        if spark is not None:
            name = definition.creates.casefold()
            spark.sql(f"DROP VIEW IF EXISTS {quote_name(name)}")
            if self._try(name, spark) is not None:
                self._missing.add(name)

    def drop(self, name: str, spark: Any) -> None:
        """Remove a view, if it is there, and from Spark, if that runs (else None)."""
        there = name.casefold() in self._statements
        self.forget(name)
        if spark is not None and there:
            spark.sql(f"DROP VIEW IF EXISTS {quote_name(name)}")

    def statements(self) -> list[tuple[str, Statement]]:
        """(name, statement) of each view and table."""
        return list(self._statements.items())

    def forget(self, name: str) -> None:
        """Remove a dropped view."""
        self._statements.pop(name.casefold(), None)
        self._missing.discard(name.casefold())
        self._catalog.update(lambda catalog: catalog.without("tables", name))

    def restore(self, spark: Any) -> None:
        """Create all views again on a new Spark; `news` reports those that cannot be created."""
        self._missing.clear()
        deferred = False
        for name in list(self._statements):
            try:
                fault = self._try(name, spark, imports=False)
            except Deferred:
                self._missing.add(name)
                deferred = True
                continue
            if fault:
                self._missing.add(name)
            if fault and not deferred:  # otherwise it may read a deferred view
                self._untold[name] = Note(
                    "VIEW_NOT_RESTORED",
                    f"the {self._kind(name)} {name} could not be restored: {fault.message}; "
                    "the next statement that names it retries",
                )

    def news(self) -> tuple[Note, ...]:
        """The notes of `restore`, once."""
        lines = tuple(self._untold.values())
        self._untold.clear()
        return lines

    def check(self, statement: Statement, spark: Callable[[], Any]) -> None:
        """Create the missing views that a statement names. spark: returns the Spark session.

        Raises EngineFault for one that cannot be created, unless the statement drops or replaces it.
        """
        relations = relations_of(statement) if self._statements else ()
        named = {relation.name.casefold(): relation.span for relation in relations}
        views = [name for name in self._statements if name in named]
        session = spark() if views else None  # a Spark that starts now restores the views
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
            elif not definition.creates:
                kind = self._kind(name)
                drop = "TABLE" if kind == "table" else "VIEW"
                raise EngineFault(
                    f"the {kind} {name} cannot be restored: {fault.message}",
                    detail="it ended with the Spark in which it was created",
                    hint=f"CREATE OR REPLACE {kind.upper()} {name} AS …, or DROP {drop} IF EXISTS {name};",
                    span=named[name],
                    code="VIEW_NOT_RESTORED",
                )

    def create_for(self, program: Program, spark: Any) -> None:
        """Create the missing views, as far as possible, if a program names one of them."""
        if not self._missing:
            return
        literals = (value for call in calls_in(program) for value in call.args if isinstance(value, Lit))
        texts = [str(literal.value).casefold() for literal in literals]
        with self._creating:
            if not self._is_creating and any(name in text for text in texts for name in self._missing):
                self._make_missing(spark, set())

    def _kind(self, name: str) -> str:
        statement = self._statements[name]
        if is_table(statement):
            return "table"
        return "temporary view" if definition_of(statement.text).temporary else "view"

    def _make_missing(self, spark: Any, but: set[str]) -> None:
        """Create the missing views that the views named by a statement may read, as far as possible."""
        for name in [name for name in self._statements if name in self._missing and name not in but]:
            if self._try(name, spark) is None:
                self._missing.discard(name)
                self._untold.pop(name, None)

    def _try(self, name: str, spark: Any, *, imports: bool = True) -> StreamsqlError | None:
        with self._creating:
            outer, self._is_creating = self._is_creating, True
            try:
                self._make(self._statements[name], spark, imports)
            except Deferred:
                raise
            except Exception as error:
                return translate(error)
            finally:
                self._is_creating = outer
        return None
