"""What `--check` says of columns: a name that no relation of its SELECT has cannot be resolved.

Only names whose relations are all known are judged: streams, live tables by their queries, queries in FROM
and WITH, and window tables. The others are left to Spark, as is everything in a sub-query of an expression,
which can also read the columns around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamsql.catalog import Catalog
from streamsql.definitions import Stream
from streamsql.errors import NameFault, Span, StreamsqlError, did_you_mean
from streamsql.language.dialect_words import known_words
from streamsql.language.expression import TIME_WINDOWS, Expression
from streamsql.language.query import Block, Body, ConsoleRelation, Item, Relation, read_query
from streamsql.language.spark_syntax import queries_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.spark import Spark
from streamsql.plan.lowering import window_tables
from streamsql.plan.lowering.sources import columns_of

# Functions without parentheses, and the units of others.
_NO_COLUMNS = frozenset(
    "current_catalog current_database current_date current_schema current_time current_timestamp "
    "current_user localtimestamp session_user user grouping__id default year years quarter quarters month "
    "months week weeks dayofyear day days hour hours minute minutes second seconds millisecond milliseconds "
    "microsecond microseconds".split()
)
# A stream can read another and, after changes, itself.
_MOST_LEVELS = 20
_SHOWN = 12

# Names of columns as written; None where they are not all known.
Columns = tuple[str, ...] | None


class UnknownColumns:
    """Checks the columns of queries, statement by statement."""

    def __init__(self) -> None:
        self._variables = False

    def check(self, statement: Statement, catalog: Catalog) -> list[NameFault]:
        """The errors, with their positions in the source, for the columns that do not exist."""
        if isinstance(statement, Explain) and statement.body is not None:
            statement = statement.body
        if isinstance(statement, Spark):
            self._variables = self._variables or statement.declares_variables
        faults = []
        for query in () if self._variables else queries_of(statement):
            body = read_query(query.text).body
            for span, known in _Names(catalog).unknown(body) if body else ():
                name = query.text[span.start : span.end]
                listed = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
                faults.append(
                    NameFault(
                        f"there is no column {name}",
                        hint=did_you_mean(name.rpartition(".")[2], known) or f"columns: {listed}",
                        span=query.origin.span(span),
                        code="UNKNOWN_COLUMN",
                    )
                )
        return faults


class _Names:
    """The columns of the blocks of a query. missing: for each that does not exist its position in the
    query, and those that there are.
    """

    def __init__(self, catalog: Catalog, level: int = 0) -> None:
        self.catalog = catalog
        self.level = level
        self.missing: list[tuple[Span, list[str]]] = []

    def unknown(self, body: Body) -> list[tuple[Span, list[str]]]:
        self.of_body(body, {})
        return self.missing

    def of_body(self, body: Body, outer: Mapping[str, Columns]) -> Columns:
        ctes = dict(outer)
        for cte in body.ctes:
            columns = self.of_body(cte.query, ctes)
            ctes[cte.name.casefold()] = cte.columns or columns
        columns, *_ = [self.of_term(term, ctes) for term in (body.term, *(tail.term for tail in body.tails))]
        return columns

    def of_term(self, term: Block | Body, ctes: Mapping[str, Columns]) -> Columns:
        return self.of_body(term, ctes) if isinstance(term, Body) else self.of_block(term, ctes)

    def of_block(self, block: Block, ctes: Mapping[str, Columns]) -> Columns:
        relations = [r for r in (block.relation, *(j.relation for j in block.joins)) if r is not None]
        scope = [(_qualifier(r), self.of_relation(r, ctes)) for r in relations]
        known = {name: columns for name, columns in scope if columns is not None}
        judged = len(known) == len(relations) > 0 and not block.views and not block.other
        if judged:
            aliases = {alias.casefold() for item in block.items for alias in item.aliases}
            for expression in _expressions(block):
                self.judge(expression, known, aliases)
        return _selected(block.items, known if judged else None)

    def of_relation(self, relation: Relation, ctes: Mapping[str, Columns]) -> Columns:
        columns: Columns = None
        if relation.query is not None:
            columns = self.of_body(relation.query, ctes)
        elif relation.own is not None:
            columns = self.of_window_table(relation.own, ctes)
        elif relation.name.casefold() in ctes:
            columns = ctes[relation.name.casefold()]
        elif relation.name:
            columns = self.of_name(relation.name)
        mark = relation.watermark
        if mark is not None and mark.computed and columns is not None:
            columns = (*columns, mark.column.value)
        return None if relation.pivot else relation.columns or columns

    def of_window_table(self, own: ConsoleRelation, ctes: Mapping[str, Columns]) -> Columns:
        call = own.node.get("WindowCall") if own.kind == "WindowTable" else None
        data = call.get("Data") if call else None
        named = data.get("RelationName") if data else None
        if named is None or named.value.casefold() in ctes:
            return None
        columns = self.of_name(named.value)
        return None if columns is None else (*columns, *window_tables.COLUMNS)

    def of_name(self, name: str) -> Columns:
        entry = self.catalog.relation(name)
        if entry is None or self.level > _MOST_LEVELS:
            return None
        if isinstance(entry, Stream):
            columns = None if entry.rejected or entry.stands_for else columns_of(entry)
            return columns or (self.of_text(entry.query) if entry.query and not entry.watermark else None)
        feeding = self.catalog.queries_into(name)
        return self.of_text(feeding[0].text) if len(feeding) == 1 and feeding[0].live_table else None

    def of_text(self, text: str) -> Columns:
        """The columns of the query of a stream or live table, which was checked itself."""
        try:
            body = read_query(text).body
        except StreamsqlError:
            return None
        return _Names(self.catalog, self.level + 1).of_body(body, {}) if body else None

    def judge(self, expression: Expression, known: Mapping[str, Columns], aliases: set[str]) -> None:
        every = [column for columns in known.values() for column in columns or ()]
        folded = {column.casefold() for column in every}
        for qualifier, name, span in expression.free_columns():
            if qualifier in folded or name.startswith("_"):
                continue  # a field of a struct; of a message or a file
            if qualifier:
                there = known.get(qualifier)
                exists = there is None or name in {c.casefold() for c in there}
            else:
                exists = name in folded or name in aliases or name in _NO_COLUMNS
                exists = exists or name in TIME_WINDOWS or name in known or name in known_words()
            if not exists:
                self.missing.append((span, list((known[qualifier] if qualifier else every) or ())))


def _qualifier(relation: Relation) -> str:
    return (relation.alias or relation.name.rpartition(".")[2]).casefold()


def _expressions(block: Block) -> Iterator[Expression]:
    yield from (item.expression for item in block.items)
    yield from (join.condition for join in block.joins if join.condition is not None)
    yield from (clause.expression for clause in (block.where, block.having, block.qualify) if clause)
    for key in block.group_by.keys if block.group_by else ():
        yield from key.expressions
    yield from block.distinct.on if block.distinct else ()


def _selected(items: tuple[Item, ...], known: Mapping[str, Columns] | None) -> Columns:
    """The columns of a SELECT list. known: those of its relations, None where not all are known."""
    columns: list[str] = []
    for item in items:
        if item.aliases:
            columns += item.aliases
        elif item.expression.is_star:
            if known is None or item.expression.text != "*":
                return None
            columns += [column for of_relation in known.values() for column in of_relation or ()]
        elif item.expression.generates:
            return None
        else:
            window = item.expression.call if item.expression.call in TIME_WINDOWS else ""
            name = item.expression.output_name or window
            if not name:
                return None  # Spark names it
            columns.append(name)
    return tuple(columns)
