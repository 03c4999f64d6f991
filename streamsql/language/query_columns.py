"""The columns of a query, and the names in it that no relation has: one resolver for planning, `--check` and
completion.

The scopes are sqlglot's (optimizer.scope): each SELECT with the relations that its names can mean. What
cannot be known is unknown, never an error: the columns of a relation that nobody has described, and
those of a SELECT with an item that has no name of its own: Spark names `CAST(id AS STRING)` `id`, `id + 1`
`(id + 1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamsql.errors import Span
from streamsql.language import sqlglot_nodes as exp
from streamsql.language.console_clauses import PLACEHOLDER
from streamsql.language.expression import TIME_WINDOWS, WINDOW_TYPE, Expression
from streamsql.language.query_tree import ConsoleRelation, Query
from streamsql.language.struct_types import struct_fields
from streamsql.language.tree_nodes import free_columns, is_named, leaves_of, name_of, span_of

NameAndType = tuple[str, str]
"""A column: its name as written and its type, "" where that is not known."""


class Columns(NamedTuple):
    """The columns of a relation, as far as they are known (named). complete: whether there are no others."""

    named: tuple[NameAndType, ...] = ()
    complete: bool = False


UNKNOWN = Columns()


class Visible(NamedTuple):
    """A relation that a SELECT reads. name: "" for a query in parentheses; qualifier: of its columns, "" for
    none; start: its place in the text.
    """

    qualifier: str
    name: str
    columns: tuple[NameAndType, ...]
    start: int


@dataclass(frozen=True)
class Surroundings:
    """What a name in a query can mean. relations: those of its SELECT, and of each SELECT around it; queries:
    the names of WITH queries; names_window: whether its SELECT list has the word WINDOW; start: the place of
    the name; find_outputs: gives the columns of its SELECT's result.
    """

    relations: tuple[tuple[Visible, ...], ...] = ((),)
    queries: tuple[str, ...] = ()
    names_window: bool = False
    start: int = 0
    find_outputs: Callable[[], Columns] = lambda: UNKNOWN

    @property
    def outputs(self) -> tuple[NameAndType, ...]:
        """The columns of its SELECT's result, as far as they are known."""
        return self.find_outputs().named


_NO_COLUMNS = frozenset(
    "current_catalog current_database current_date current_schema current_time current_timestamp "
    "current_user localtimestamp session_user user grouping__id default year years quarter quarters month "
    "months week weeks dayofyear day days hour hours minute minutes second seconds millisecond milliseconds "
    "microsecond microseconds".split()
)
"""Functions without parentheses, and the units of others."""
_COUNTS = frozenset(("count", "count_if", "approx_count_distinct"))


class QueryColumns:
    """Resolves the names of one query that sqlglot can read.

    of_name: the columns of a relation that the query does not define; of_own: those of a console relation.
    """

    def __init__(
        self,
        query: Query,
        of_name: Callable[[str], Columns],
        of_own: Callable[[ConsoleRelation], Columns] = lambda own: UNKNOWN,
    ) -> None:
        self.query = query
        self.of_name = of_name
        self.own = {own.name: own for own in query.own}
        self.of_own = of_own
        self._columns_by_scope: dict[int, Columns] = {}
        self._outsides: dict[int, tuple[Any, bool]] = {}
        self._scopes = _scopes_of(query)

    def outputs(self) -> Columns:
        """The columns of the result."""
        return self._outputs(self._scopes[-1]) if self._scopes else UNKNOWN

    def missing(self) -> list[tuple[Span, list[str]]]:
        """For each name that no relation has: its place in the query, and the columns that there are."""
        found: dict[Span, list[str]] = {}
        for scope in self._scopes:
            if isinstance(scope.expression, exp.Select):
                here = dict(self._missing_in(scope))
                if here:  # what the query around it misses may be what was meant here
                    self._columns_by_scope[id(scope)] = Columns(self._outputs(scope).named)
                found |= here
        return sorted(found.items(), key=lambda item: item[0].start)

    def around(self, name: str) -> Surroundings:
        """What a name of the query can mean, whose first place is meant."""
        for scope in self._scopes:
            named = (n for n in scope.expression.find_all(exp.Identifier) if n.name == name)
            if isinstance(scope.expression, exp.Select) and (place := next(named, None)) is not None:
                return self._around(scope, name, span_of(place, Span(0, 0)).start)
        return Surroundings()

    def _around(self, scope: Any, name: str, start: int) -> Surroundings:
        relations, around = list[tuple[Visible, ...]](), scope
        while around is not None:
            nodes = self._nodes_read(around)[0] if isinstance(around.expression, exp.Select) else []
            visible = [self._visible(node, around, name) for node in nodes]
            relations.append(tuple(relation for relation in visible if relation.name != name))
            around = around.parent
        items = scope.expression.expressions if "window" in self.query.words else ()
        return Surroundings(
            tuple(relations),
            tuple(scope.cte_sources),
            any("window" in _words_of(item, self.query.text) for item in items),
            start,
            lambda: self._outputs(scope),
        )

    def _visible(self, node: Any, scope: Any, unfinished: str) -> Visible:
        name = ".".join(part.name for part in node.parts) if isinstance(node, exp.Table) else ""
        columns = tuple(c for c in self._of_relation(node, scope).named if c[0] != unfinished)
        return Visible(node.alias_or_name, name, columns, span_of(node).start)

    # ---- the columns of a scope

    def _outputs(self, scope: Any) -> Columns:
        if id(scope) not in self._columns_by_scope:
            self._columns_by_scope[id(scope)] = UNKNOWN  # of a recursive WITH, inside of itself
            if isinstance(scope.expression, exp.SetOperation) and scope.set_operation_scopes:
                self._columns_by_scope[id(scope)] = self._outputs(scope.set_operation_scopes[0])
            elif isinstance(scope.expression, exp.Select):
                items = (self._of_item(item, scope) for item in scope.expression.expressions)
                self._columns_by_scope[id(scope)] = _joined(items)
        return self._columns_by_scope[id(scope)]

    def _of_item(self, item: Any, scope: Any) -> Columns:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            return self._of_star(star, item.table if isinstance(item, exp.Column) else "", scope)
        if isinstance(item, exp.Aliases):
            return Columns(tuple((name, "") for name in _names_of(item)))
        if isinstance(item, exp.QueryTransform):
            return UNKNOWN
        inner = item.this if isinstance(item, exp.Alias) else item
        expression = Expression(self.query.text, Span(0, 0), inner)
        window = expression.call if expression.call in TIME_WINDOWS else ""
        name = _alias(item) if isinstance(item, exp.Alias) else expression.output_name or window
        return Columns(((name, self._type_of(expression, scope)),), True) if name else UNKNOWN

    def _of_star(self, star: Any, qualifier: str, scope: Any) -> Columns:
        folded = qualifier.casefold()
        relations, complete = self._relations(scope)
        chosen = [columns for name, columns in relations if not qualifier or name.casefold() == folded]
        every = _joined(chosen)
        left_out = {name.name.casefold() for name in star.args.get("except_") or ()}
        remaining = tuple(column for column in every.named if column[0].casefold() not in left_out)
        renamed = star.args.get("replace") or star.args.get("rename")
        return Columns(remaining, complete and bool(chosen) and every.complete and not renamed)

    def _relations(self, scope: Any) -> tuple[list[tuple[str, Columns]], bool]:
        """The relations of a SELECT, each by the qualifier of its columns; whether there are no others."""
        nodes, complete = self._nodes_read(scope)
        return [(node.alias_or_name, self._of_relation(node, scope)) for node in nodes], complete

    def _nodes_read(self, scope: Any) -> tuple[list[Any], bool]:
        """The nodes of the relations of a SELECT; whether their columns are all that it reads."""
        select = scope.expression
        read = [part.this for part in (select.args.get("from_"), *(select.args.get("joins") or ())) if part]
        read = [node for node in read if node is not None]
        nodes, laterals = [other for node in read for other in _joined_in(node)], select.args.get("laterals")
        plain = all(isinstance(node, (exp.Table, exp.Subquery)) for node in nodes)
        return [*nodes, *(laterals or ())], plain and not laterals and len(nodes) == len(read)

    def _of_relation(self, node: Any, scope: Any) -> Columns:
        columns = self._columns_of(node, scope)
        if node.args.get("pivots"):  # it has some of these columns, and others
            columns = Columns(columns.named)
        alias = node.args.get("alias")
        return _renamed(columns, (alias.args.get("columns") or ()) if alias else ())

    def _columns_of(self, node: Any, scope: Any) -> Columns:
        subquery = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(subquery, exp.Subquery):
            inner = subquery.unnest()
            of_query = next((s for s in self._scopes if s.expression is inner), None)
            return self._outputs(of_query) if of_query is not None else UNKNOWN
        if not isinstance(node, exp.Table) or not all(is_named(part) for part in node.parts):
            return UNKNOWN
        name = ".".join(part.name for part in node.parts)
        if name.startswith(PLACEHOLDER):
            return self.of_own(self.own[name]) if name in self.own else UNKNOWN
        source = scope.sources.get(node.alias_or_name)
        if source is None or isinstance(source, exp.Expr):
            return self.of_name(name)
        cte = source.expression.parent
        while isinstance(cte, exp.SetOperation):  # a recursive WITH reads its first SELECT
            cte = cte.parent
        listed = cte.args["alias"].args.get("columns") if isinstance(cte, exp.CTE) else None
        return _renamed(self._outputs(source), listed or ())

    def _type_of(self, expression: Expression, scope: Any) -> str:
        """The type of an expression, as far as its tree determines it."""
        if expression.call in TIME_WINDOWS or expression.column_name in TIME_WINDOWS:
            return WINDOW_TYPE
        if expression.call in _COUNTS:
            return "BIGINT"
        if isinstance(expression.tree, exp.Cast) and expression.tree.to is not None:
            return str(expression.tree.to.sql(dialect="spark"))
        column = expression.column
        if column is None:
            return ""
        qualifier, name = column[0].casefold(), column[1].casefold()
        relations = self._relations(scope)[0]
        chosen = [columns for other, columns in relations if not qualifier or other.casefold() == qualifier]
        if chosen or not qualifier:
            return type_in(_joined(chosen).named, name)
        every = _joined(columns for _, columns in relations).named
        struct = WINDOW_TYPE if qualifier in TIME_WINDOWS else type_in(every, qualifier)
        return type_in(struct_fields(struct), name)

    # ---- names that no relation has

    def _outside(self, scope: Any) -> tuple[Any, bool]:
        """The scope around a query, past the set operations that it is a part of (of a chain of UNION, each
        is a part of the next); and whether its relations are seen there: by a query in an expression, and
        not by one in FROM or WITH.
        """
        passed, around = [scope], scope.parent
        while around is not None and _is_set_operation(around) and id(around) not in self._outsides:
            passed.append(around)
            around = around.parent
        if around is not None and _is_set_operation(around):
            outside = self._outsides[id(around)]
        else:
            outside = around, not (passed[-1].is_derived_table or passed[-1].is_cte)
        self._outsides.update((id(part), outside) for part in passed)
        return outside

    def _missing_in(self, scope: Any) -> Iterator[tuple[Span, list[str]]]:
        around, found, complete, seen = scope, dict[str, Columns](), True, True
        while around is not None:
            if seen and isinstance(around.expression, exp.Select):
                relations, alone = self._relations(around)
                if around is scope and not relations:
                    return
                complete = complete and alone
                found = {name.casefold(): columns for name, columns in relations} | found
            around, seen = self._outside(around)
        complete = complete and all(columns.complete for columns in found.values())
        every = [name for columns in found.values() for name, _ in columns.named]
        folded = {name.casefold() for name in every} | _aliases(scope) | self.query.computed
        readable = folded | found.keys() | _NO_COLUMNS | TIME_WINDOWS
        for qualifier, name, column in free_columns(scope.expression):
            if qualifier in folded or name.startswith("_"):
                continue  # a field of a struct; of a message or a file
            if qualifier:
                columns = found.get(qualifier, UNKNOWN)
                if columns.complete and name not in {n.casefold() for n, _ in columns.named}:
                    yield span_of(column), [other for other, _ in columns.named]
            elif complete and name not in readable:
                yield span_of(column), every


def _is_set_operation(scope: Any) -> bool:
    return isinstance(scope.expression, exp.SetOperation)


def _joined_in(node: Any) -> list[Any]:
    """A relation, or those that are joined in its parentheses, and those that are joined to it there."""
    inside = node.this if isinstance(node, exp.Subquery) and not node.alias else None
    first = _joined_in(inside) if isinstance(inside, (exp.Table, exp.Subquery)) else [node]
    return [*first, *(other for join in node.args.get("joins") or () for other in _joined_in(join.this))]


def _words_of(item: Any, source: str) -> set[str]:
    """The folded names of an item, and of the functions that it calls."""
    names = (node.name.casefold() for node in item.find_all(exp.Identifier))
    return {*names, *(name_of(node, source) for node in item.walk())}


def type_in(columns: Iterable[NameAndType], name: str) -> str:
    """The type of the first column of that name; "" where there is none."""
    folded = name.casefold()
    return next((kind for other, kind in columns if other.casefold() == folded), "")


def _joined(parts: Iterable[Columns]) -> Columns:
    """The columns of several, one after the other."""
    columns = list(parts)
    named = tuple(column for part in columns for column in part.named)
    return Columns(named, all(part.complete for part in columns))


def _renamed(columns: Columns, names: Sequence[Any]) -> Columns:
    """Columns under other names, if there are any. names: sqlglot's nodes."""
    if not names:
        return columns
    kinds = [kind for _, kind in columns.named]
    kinds = kinds if len(kinds) == len(names) else [""] * len(names)
    return Columns(tuple((node.name, kind) for node, kind in zip(names, kinds, strict=True)), True)


def _scopes_of(query: Query) -> list[Any]:
    """The scopes of a query, the inner ones first; none where sqlglot finds none."""
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    if not isinstance(query.tree, exp.Query):
        return []
    try:
        return list(traverse_scope(query.tree.unnest()))
    except (SqlglotError, RecursionError, AttributeError):  # a node of an unfinished query can be missing
        return []


def _aliases(scope: Any) -> set[str]:
    """The folded names that the SELECT list of a scope gives, which its other clauses and items can use."""
    items = scope.expression.expressions
    names = {_alias(item).casefold() for item in items if isinstance(item, exp.Alias)}
    several = (item for item in items if isinstance(item, exp.Aliases))
    return names | {name.casefold() for item in several for name in _names_of(item)}


def _alias(item: Any) -> str:
    """The name after AS; "" for one that sqlglot has made up, as for `doc:name`."""
    return str(item.alias) if leaves_of(item.args["alias"]) else ""


def _names_of(aliases: Any) -> list[str]:
    """The names of `AS (a, b)`."""
    return [alias if isinstance(alias, str) else alias.name for alias in aliases.aliases]
