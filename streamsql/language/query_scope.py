"""The blocks of a complete query, from its tree: the columns of streams and queries that are kept as text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from streamsql.errors import Span, StreamsqlError
from streamsql.language.console_clauses import PLACEHOLDER
from streamsql.language.expression import TIME_WINDOWS, Expression
from streamsql.language.query import read_query
from streamsql.language.unfinished.blocks import WINDOW_TYPE, Block, Relation, SelectItem
from streamsql.language.unfinished.query_reader import read_unfinished

_COUNTS = frozenset(("count", "count_if", "approx_count_distinct"))


@lru_cache(maxsize=256)
def block_of(text: str) -> Block:
    """The first block of a query; from the tolerant reader if sqlglot cannot parse it."""
    from sqlglot import exp

    try:
        tree = read_query(text).tree
    except StreamsqlError:
        tree = None
    if not isinstance(tree, exp.Query):
        return read_unfinished(text)
    return _Blocks(text).block(tree, None)


class _Blocks:
    """Converts sqlglot's tree to blocks."""

    def __init__(self, text: str) -> None:
        from sqlglot import exp

        self.text = text
        self.exp = exp

    def block(self, tree: Any, parent: Block | None) -> Block:
        block = Block(parent)
        self.fill(block, tree)
        return block

    def fill(self, block: Block, tree: Any) -> None:
        """Fill a block with the parts of a query; for a set operation, those of its first SELECT."""
        exp = self.exp
        with_clause = tree.args.get("with_")
        for cte in with_clause.expressions if with_clause else ():
            # Only later queries can use a name, so it is added after its own query.
            block.ctes[cte.alias.casefold()] = self.cte(cte, block)
        if isinstance(tree, exp.SetOperation):
            self.fill(block, tree.left)
        elif isinstance(tree, exp.Subquery):
            self.fill(block, tree.this)
        elif isinstance(tree, exp.Select):
            self.select(block, tree)

    def cte(self, cte: Any, block: Block) -> Block:
        inner = self.block(cte.this, block)
        names = self.column_names(cte)
        if not names:
            return inner
        renamed = Relation(block=inner, column_names=names)
        return Block(block, relations=[renamed], items=[SelectItem(star=True)], selects=True)

    def select(self, block: Block, tree: Any) -> None:
        first = tree.args.get("from_")
        for node in (first.this if first else None, *(j.this for j in tree.args.get("joins") or ())):
            self.relations(block, node)
        for view in tree.args.get("laterals") or ():
            block.relations.append(Relation(alias=view.alias, column_names=self.column_names(view)))
        items = [self.item(node) for node in tree.expressions]
        block.items = [item for item in items if item is not None]
        block.selects = True

    # ---- relations ------------------------------------------------------------------------

    def relations(self, block: Block, node: Any) -> None:
        """Add the relation of a node, and those joined with it in parentheses."""
        exp = self.exp
        if node is None:
            return
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self.relations(block, node.this)
        else:
            block.relations.append(self.relation(block, node))
        for join in node.args.get("joins") or ():
            self.relations(block, join.this)

    def relation(self, block: Block, node: Any) -> Relation:
        exp = self.exp
        relation = Relation(alias=node.alias, column_names=self.column_names(node))
        query = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(query, exp.Subquery):
            relation.block = self.block(query.this, block)
        elif isinstance(node, exp.Table) and all(isinstance(p, exp.Identifier) for p in node.parts):
            name = ".".join(part.name for part in node.parts)
            # The columns of console relations and of table functions are not known here.
            relation.name = "" if name.startswith(PLACEHOLDER) else name
        return relation

    def column_names(self, node: Any) -> tuple[str, ...]:
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, self.exp.TableAlias) else None
        return tuple(column.name for column in columns or ())

    # ---- items ----------------------------------------------------------------------------

    def item(self, node: Any) -> SelectItem | None:
        exp = self.exp
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(star, exp.Star):
            left_out = frozenset(c.name.casefold() for c in star.args.get("except_") or ())
            qualifier = node.table if isinstance(node, exp.Column) else ""
            return SelectItem(star=True, qualifier=qualifier, left_out=left_out)
        inner = node.this if isinstance(node, exp.Alias) else node
        expression = Expression(self.text, Span(0, 0), inner)
        window = expression.call if expression.call in TIME_WINDOWS else ""
        name = node.alias if isinstance(node, exp.Alias) else expression.output_name or window
        if not name:
            return None
        qualifier, column = expression.column or ("", "")
        path = tuple(part for part in (qualifier, column) if part)
        return SelectItem(name, path, self.type_of(expression))

    def type_of(self, expression: Expression) -> str:
        """The type of an expression, if its tree determines it."""
        if expression.call in TIME_WINDOWS or expression.column_name in TIME_WINDOWS:
            return WINDOW_TYPE
        if expression.call in _COUNTS:
            return "BIGINT"
        if isinstance(expression.tree, self.exp.Cast):
            return str(expression.tree.to.sql(dialect="spark"))
        return ""
