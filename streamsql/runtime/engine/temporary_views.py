"""Views, tables and functions in SQL: they end with their Spark, and are created again on a new one."""

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
from streamsql.language.names_read import calls_of, relations_of
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


def _drop(definition: Definition, spark: Any) -> None:
    """Drop a view or function that a statement has created, if it is in Spark."""
    is_function = definition.kind == "function"
    kind = "TEMPORARY FUNCTION" if is_function and definition.temporary else definition.kind.upper()
    spark.sql(f"DROP {kind} IF EXISTS {quote_name(definition.creates)}")


class TemporaryViews:
    """The statements that created the session's views, tables and functions in SQL, by `Definition.key`. The
    files of tables last.

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
        """Record an executed statement that created or dropped something of the default schema."""
        if definition.creates and "." not in definition.creates:
            self._statements[definition.key] = with_full_paths(statement)
            self._missing.discard(definition.key)
        if definition.drops:
            self.forget(definition.key)

    def change(self, statement: Statement, definition: Definition, spark: Any) -> None:
        """Put another statement in the place of the one that created a view or function. spark: the session
        in which that is, None if Spark does not run. What cannot be created is missing then.
        """
        self.remember(statement, definition)
        if spark is not None:
            _drop(definition, spark)
            if self._try(definition.key, spark) is not None:
                self._missing.add(definition.key)

    def drop(self, key: str, spark: Any) -> None:
        """Remove a view or function, if it is there, and from Spark, if that runs (else None)."""
        statement = self._statements.get(key.casefold())
        self.forget(key)
        if spark is not None and statement is not None:
            _drop(definition_of(statement.text), spark)

    def statements(self) -> list[tuple[str, Statement]]:
        """(key, statement) of each view, table and function."""
        return list(self._statements.items())

    def forget(self, key: str) -> None:
        """Remove what is dropped."""
        self._statements.pop(key.casefold(), None)
        self._missing.discard(key.casefold())
        field, name = ("sql_functions", key[:-2]) if key.endswith("()") else ("tables", key)
        self._catalog.update(lambda catalog: catalog.without(field, name))

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
                what = f"{self._kind(name)} {name.removesuffix('()')}"
                self._untold[name] = Note(
                    "VIEW_NOT_RESTORED",
                    f"the {what} could not be restored: {fault.message}; "
                    "the next statement that names it retries",
                )

    def news(self) -> tuple[Note, ...]:
        """The notes of `restore`, once."""
        lines = tuple(self._untold.values())
        self._untold.clear()
        return lines

    def check(self, statement: Statement, spark: Callable[[], Any]) -> None:
        """Create the missing views and functions that a statement names. spark: returns the Spark session.

        Raises EngineFault for one that cannot be created, unless the statement drops or replaces it.
        """
        relations = relations_of(statement) if self._statements else ()
        named = {relation.name.casefold(): relation.span for relation in relations}
        named |= {f"{name}()": span for name, span in calls_of(statement)} if self._statements else {}
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
            elif definition.drops and definition.key == name:
                self.forget(name)
            elif not definition.creates:
                kind, plain = self._kind(name), name.removesuffix("()")
                drop = kind.split()[-1].upper()
                raise EngineFault(
                    f"the {kind} {plain} cannot be restored: {fault.message}",
                    detail="it ended with the Spark in which it was created",
                    hint=f"CREATE OR REPLACE {kind.upper()} {plain} …, or DROP {drop} IF EXISTS {plain};",
                    span=named[name],
                    code="VIEW_NOT_RESTORED",
                )

    def create_for(self, program: Program, spark: Any) -> None:
        """Create what is missing, as far as possible, if a program names one of them."""
        if not self._missing:
            return
        literals = (value for call in calls_in(program) for value in call.args if isinstance(value, Lit))
        texts = [str(literal.value).casefold() for literal in literals]
        with self._creating:
            if not self._is_creating and any(
                name.removesuffix("()") in text for text in texts for name in self._missing
            ):
                self._make_missing(spark, set())

    def _kind(self, name: str) -> str:
        statement = self._statements[name]
        if is_table(statement):
            return "table"
        definition = definition_of(statement.text)
        return f"temporary {definition.kind}" if definition.temporary else definition.kind

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
