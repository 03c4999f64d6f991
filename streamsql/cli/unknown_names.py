"""What `--check` says of names that a script does not know: of tables, which Spark must have or which cannot
exist, and of columns that no relation of their SELECT has.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.catalog import Catalog
from streamsql.errors import NameFault, Note, Span, did_you_mean
from streamsql.language.query import read_query
from streamsql.language.query_tree import Named
from streamsql.language.spark_definitions import cached_as, changes_schema, definition_of, in_default
from streamsql.language.spark_syntax import queries_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.insert import Insert
from streamsql.language.statements.session import Set
from streamsql.language.statements.spark import Spark
from streamsql.plan.resolver import Resolver, hint_of_columns
from streamsql.plan.statements.inserts import no_target, target_names


def brings_tables(conf: dict[str, str]) -> bool:
    """Whether Spark has tables under these settings that the console does not know."""
    hive = conf.get("spark.sql.catalogImplementation", "").casefold() == "hive"
    return hive or any(map(_names_catalog, conf))


class UnknownNames:
    """Checks the names of relations and columns, statement by statement. closed: Spark has no table but those
    of the catalog, as in a workspace. A table that the script has dropped or renamed does not exist in any
    case.
    """

    def __init__(self, closed: bool) -> None:
        self.closed = closed
        self._elsewhere = False
        self._gone: dict[str, str] = {}
        self._cached: set[str] = set()
        self._noted: set[str] = set()
        self._variables = False

    def check(
        self, statement: Statement, catalog: Catalog
    ) -> tuple[list[NameFault], list[tuple[Note, Span | None]]]:
        """Errors for names that cannot exist, and a note with its place for each unknown name that Spark must
        have.
        """
        faults, notes = list[NameFault](), list[tuple[Note, Span | None]]()
        for named, certain in _read(statement):
            if self._exists(named.name, catalog):
                continue
            # In a query that could not be parsed, a name after FROM may be no relation.
            if certain and self._missing(named.name):
                faults.append(self._no_relation(named, catalog))
            else:
                notes += self._note(named.name, named.span, catalog.relation_names())
        for name in statement.targets if isinstance(statement, Insert) else ():
            if self._exists(name.value, catalog) or catalog.target(name.value) is not None:
                continue
            if self._missing(name.value):
                faults.append(no_target(name, catalog))
            else:
                notes += self._note(name.value, name.span, target_names(catalog))
        return [*faults, *self._columns(statement, catalog)], notes

    def _columns(self, statement: Statement, catalog: Catalog) -> Iterator[NameFault]:
        """The errors for the columns that do not exist."""
        if isinstance(statement, Explain) and statement.body is not None:
            statement = statement.body
        if isinstance(statement, Spark):
            self._variables = self._variables or statement.declares_variables
        if self._variables:
            return  # a name can be a variable, too
        for query in queries_of(statement):
            for span, columns in Resolver(catalog).missing(read_query(query.text)):
                name = query.text[span.start : span.end]
                yield NameFault(
                    f"there is no column {name}",
                    hint=hint_of_columns(name, columns),
                    span=query.origin.span(span),
                    code="UNKNOWN_COLUMN",
                )

    def follow(self, statement: Statement) -> None:
        """Take note of what a statement drops and renames, and of a change to another schema."""
        if isinstance(statement, Set) and statement.key and _names_catalog(statement.key.value):
            self.closed = False
        if not isinstance(statement, Spark):
            return
        if changes_schema(statement.text):
            self.closed, self._elsewhere = False, True
            self._gone.clear()
        if view := cached_as(statement.text):
            self._cached.add(view.casefold())
        definition = definition_of(statement.text)
        if definition.renames:
            self._gone[definition.renames.casefold()] = definition.renamed
        elif definition.drops:
            name = in_default(definition.drops).casefold()
            self._cached.discard(name)
            if definition.kind == "table":
                self._gone[name] = ""

    def _exists(self, name: str, catalog: Catalog) -> bool:
        return "." in name or catalog.reads(name) or name.casefold() in self._cached

    def _missing(self, name: str) -> bool:
        return self.closed or name.casefold() in self._gone

    def _like(self, name: str, names: list[str]) -> str:
        """A hint that names the nearest known name; "" where the script has left the default schema."""
        return "" if self._elsewhere else did_you_mean(name, names)

    def _no_relation(self, named: Named, catalog: Catalog) -> NameFault:
        """The error for a relation that cannot exist."""
        hint, detail = self._like(named.name, catalog.relation_names()), ""
        gone = self._gone.get(named.name.casefold())
        if gone is not None:
            detail = f"the script has {f'renamed it to {gone}' if gone else 'dropped it'}"
            hint = f"did you mean {gone}?" if gone else ""
        return NameFault(
            f"there is no stream, table or view {named.name}",
            detail=detail,
            hint=hint or "SHOW STREAMS; and SHOW TABLES; list them",
            span=named.span,
            code="UNKNOWN_RELATION",
        )

    def _note(self, name: str, span: Span, names: list[str]) -> list[tuple[Note, Span | None]]:
        """The note for a name, once."""
        if name.casefold() in self._noted:
            return []
        self._noted.add(name.casefold())
        like = self._like(name, names)
        text = f"table {name} is not known to the script; Spark must have it{f'; {like}' if like else ''}"
        return [(Note("ASSUMED_TABLE", text), span)]


def _names_catalog(key: str) -> bool:
    """Whether a setting names another catalog of tables."""
    return key.startswith("spark.sql.catalog.") or key == "spark.sql.defaultCatalog"


def _read(statement: Statement) -> Iterator[tuple[Named, bool]]:
    """The relations that a statement reads, each with its place in the source, and whether it is certain to
    be a relation.
    """
    if isinstance(statement, Explain):
        yield from _read(statement.body) if statement.body else ()
    for query in queries_of(statement):
        written = read_query(query.text)
        for relation in written.relations:
            yield Named(relation.name, query.origin.span(relation.span)), written.tree is not None
    defines = definition_of(statement.text) if isinstance(statement, Spark) else None
    if defines and (defines.temporary or defines.view_query or defines.table_query):
        written = read_query(statement.text)
        for relation in written.relations:
            if relation.name.casefold() != defines.creates.casefold():
                yield Named(relation.name, statement.origin.span(relation.span)), written.tree is not None
