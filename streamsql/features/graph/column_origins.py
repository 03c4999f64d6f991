"""From which columns the columns of a query are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamsql.language import sqlglot_nodes as exp
from streamsql.language.console_clauses import PLACEHOLDER
from streamsql.language.expression import TIME_WINDOWS
from streamsql.language.query_columns import QueryColumns, free_columns
from streamsql.language.tree_nodes import name_of, span_of

Origin = tuple[str, str]
"""A relation that the query does not define, and one of its columns."""
Origins = list[tuple[str, frozenset[Origin]]]
"""The columns of a result in their order: the name of each, and what its value is computed from."""
NONE: frozenset[Origin] = frozenset()


class ColumnOrigins(QueryColumns):
    """The same resolver, asked for the origins of the result's columns. What is not known is left out."""

    def origins(self) -> Origins:
        """Those of the result."""
        self._origins_by_scope: dict[int, Origins] = {}
        return self._of_scope(self._scopes[-1]) if self._scopes else []

    def _of_scope(self, scope: Any) -> Origins:
        key = id(scope)
        if key not in self._origins_by_scope:
            self._origins_by_scope[key] = []  # of a recursive WITH, inside of itself
            if isinstance(scope.expression, exp.SetOperation):
                branches = [self._of_scope(branch) for branch in scope.set_operation_scopes]
                self._origins_by_scope[key] = [
                    (columns[0][0], _together(origins for _, origins in columns))
                    for columns in zip(*branches, strict=False)
                ]
            elif isinstance(scope.expression, exp.Select):
                items = scope.expression.expressions
                self._origins_by_scope[key] = [
                    pair for item in items for pair in self._of_expression(item, scope)
                ]
        return self._origins_by_scope[key]

    def _of_expression(self, item: Any, scope: Any) -> Iterator[tuple[str, frozenset[Origin]]]:
        """Those of one item of the SELECT list."""
        columns = self._of_item(item, scope)
        if isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star):
            qualifier = item.table.casefold() if isinstance(item, exp.Column) else ""
            for node in self._nodes_read(scope)[0]:
                if not qualifier or node.alias_or_name.casefold() == qualifier:
                    for name, _ in self._of_relation(node, scope).named:
                        yield name, self._of_column(node, name.casefold(), scope)
            return
        span = span_of(item)
        text = " ".join(self.query.text[span.start : span.end].split())
        origins = self._of_tree(item, scope)
        for name, _ in columns.named or ((text, ""),):
            yield name, origins

    def _of_tree(self, tree: Any, scope: Any) -> frozenset[Origin]:
        """The columns that an expression names, also in the queries in it."""
        inner = list(tree.find_all(exp.Query))
        queries = [s for s in self._scopes if any(s.expression is query for query in inner)]
        named = (self._named(qualifier, name, scope) for qualifier, name, _ in free_columns(tree))
        return _together([*named, *(origins for s in queries for _, origins in self._of_scope(s))])

    def _named(self, qualifier: str, name: str, scope: Any) -> frozenset[Origin]:
        """Those of a name of a SELECT, folded."""
        nodes = self._nodes_read(scope)[0]
        for node in nodes:
            if qualifier in ("", node.alias_or_name.casefold()):
                columns = {column.casefold() for column, _ in self._of_relation(node, scope).named}
                if name in columns or (qualifier or len(nodes) == 1) and not columns:
                    return self._of_column(node, name, scope)
        if qualifier in TIME_WINDOWS or (name in TIME_WINDOWS and not qualifier):
            return self._of_windows(scope)
        return self._named("", qualifier, scope) if qualifier else NONE  # a field of a struct

    def _of_windows(self, scope: Any) -> frozenset[Origin]:
        """Those of the time windows of GROUP BY."""
        group = scope.expression.args.get("group")
        calls = [n for n in (group.walk() if group else ()) if name_of(n, self.query.text) in TIME_WINDOWS]
        return _together(self._of_tree(call, scope) for call in calls)

    def _of_column(self, node: Any, name: str, scope: Any) -> frozenset[Origin]:
        """Those of a column of a relation that a SELECT reads. name: folded."""
        subquery = node.this if isinstance(node, exp.Lateral) else node
        source = scope.sources.get(node.alias_or_name)
        if isinstance(subquery, exp.Subquery):
            inner = subquery.unnest()
            source = next((s for s in self._scopes if s.expression is inner), None)
        elif not isinstance(node, exp.Table):
            return NONE
        elif source is None or isinstance(source, exp.Expr):
            relation = ".".join(part.name for part in node.parts)
            return NONE if relation.startswith(PLACEHOLDER) else frozenset({(relation, name)})
        if source is None:
            return NONE
        origins = self._of_scope(source)
        names = [column.casefold() for column, _ in self._of_relation(node, scope).named]
        if len(names) != len(origins):  # WITH q(a, b) and AS x(a, b) rename by position
            names = [column.casefold() for column, _ in origins]
        return _together(of for column, (_, of) in zip(names, origins, strict=True) if column == name)


def _together(parts: Iterable[frozenset[Origin]]) -> frozenset[Origin]:
    return frozenset[Origin]().union(*parts)
