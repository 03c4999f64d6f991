"""The keys of groups that are not selected travel hidden to a live table, which keeps one row of each group.

They are columns `__key1`, …, before those that are selected. A condition over groups (HAVING, or WHERE around
the aggregation) becomes the column `__kept`, so that a group that leaves the result is removed from it:
output mode update would not say so. Both only where nothing but projections, filters and joins with tables
stands between the groups and the live table: there each row belongs to one group.
"""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Node, expr
from streamsql.language.expression import Expression
from streamsql.language.origin import edited
from streamsql.language.query import Block, Body, Join, read_expression
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.frames import Clauses, Frame, Item
from streamsql.plan.lowering.shape import IN_RESULT, Op, Shape


def hidden_names(count: int) -> tuple[str, ...]:
    """Names for so many hidden keys."""
    return tuple(f"__key{n}" for n in range(1, count + 1))


def is_row_by_row(select: Block) -> bool:
    """Whether each row of a block is made of one row of what it reads (joins with tables aside)."""
    expressions = [i.expression for i in select.items]
    if select.group_by or select.having or select.distinct or select.qualify:
        return False
    return not any(e.aggregates or e.has_window_function for e in expressions)


def is_plain_body(body: Body) -> bool:
    """Whether a query is one block, without set operations, sorting and limits around it."""
    return body.block is not None and not (body.order_by or body.sort_by or body.limit or body.offset)


def ctes_on_the_way(body: Body) -> frozenset[str]:
    """The WITH queries of a body, folded, whose rows reach its result row by row."""
    ctes = {c.name.casefold(): c.query for c in body.ctes}
    names: set[str] = set()
    bodies = [body]
    while bodies:
        at = bodies.pop()
        block = at.block
        row_by_row = block is not None and is_plain_body(at) and is_row_by_row(block)
        for relation in block.relations if block and row_by_row else ():
            name = relation.name.casefold()
            if relation.query is not None:
                bodies.append(relation.query)
            elif name in ctes and name not in names:
                names.add(name)
                bodies.append(ctes[name])
    return frozenset(names)


class HiddenKeys(Clauses):
    """What of a block's clauses keeps the groups apart."""

    def keeps_groups(self, frame: Frame) -> bool:
        """Whether the rows of a relation are those of groups that a live table is to tell apart."""
        shape = frame.shape
        return self.keeps_keys and shape.streaming and bool(shape.replacing) and shape.keys is not None

    def with_hidden_keys(self, frame: Frame, select: Block) -> Frame:
        """One side of a join with the keys of its groups hidden beside them, if not all are selected: behind
        the join their names may be those of another side, too.
        """
        names = {i.expression.column_name for i in select.items}
        keys = frame.shape.keys
        if not self.keeps_groups(frame) or frame.shape.hidden or not keys or not select.joins:
            return frame
        if any(i.expression.is_star for i in select.items) or {k.casefold() for k in keys} <= names:
            return frame
        hidden, shown = self.hide(frame.shape)
        node = frame.node.call("select", *shown, expr("*"))
        return replace(frame, node=node, shape=replace(frame.shape, hidden=hidden))

    def loses_groups(self, left: Frame, right: Frame, join: Join) -> bool:
        """Whether a join of groups with a table can lose a group again: by a condition on more than its
        keys.
        """
        if left.shape.streaming == right.shape.streaming or not (
            left.shape.replacing or right.shape.replacing
        ):
            return False
        grouped = left if left.shape.streaming else right
        preserved = "left" if grouped is left else "right"
        if join.kind in (preserved, f"{preserved}_outer", "cross"):
            return False
        keys = {k.casefold() for k in grouped.shape.keys or ()}
        if join.using:
            return not {u.casefold() for u in join.using} <= keys
        if join.condition is None:
            return False
        columns = grouped.side.columns
        return not all(
            name in keys
            for table, name in join.condition.references()
            if (table in grouped.names if table else columns is None or name in columns)
        )

    def hide(self, shape: Shape) -> tuple[tuple[str, ...], list[Node]]:
        """The names of a shape's keys once they are hidden, and the columns that they then are."""
        keys = shape.keys or ()
        if shape.hidden:
            return shape.hidden, [expr(h) for h in shape.hidden]
        hidden = hidden_names(len(keys))
        self.sources.keeps_hidden = True
        return hidden, [expr(quote_name(k)).call("alias", h) for k, h in zip(keys, hidden, strict=True)]

    def group_filter(self, frame: Frame, condition: Expression, select: Block) -> Frame | None:
        """A condition over groups: their keys alone leave a group in or out for good; else its rows say
        whether they are kept. None when that cannot be.
        """
        if not self.keeps_groups(frame) or not _depends_on_group(condition):
            return None
        if any(j.comma or (j.condition is None and not (j.using or j.natural)) for j in select.joins):
            return None  # it may be what joins
        if self.is_over_keys(frame.shape, condition):
            return replace(frame, node=frame.node.call("where", expr(condition.text)))
        in_result = f"coalesce({condition.text}, false)"
        in_result = f"{IN_RESULT} AND {in_result}" if frame.shape.has_flag else in_result
        self.sources.keeps_hidden = True
        node = frame.node.call("withColumn", IN_RESULT, expr(in_result))
        return replace(frame, node=node, shape=replace(frame.shape, has_flag=True))

    def is_over_keys(self, shape: Shape, condition: Expression) -> bool:
        """Whether a condition names nothing but the keys of groups."""
        names = condition.column_names()
        return bool(names) and not condition.aggregates and names <= {k.casefold() for k in shape.keys or ()}

    def having_flag(self, having: Expression, items: list[Item]) -> str | None:
        """HAVING as a column of the aggregation: names of items stand for what they are there. None when it
        cannot be one.
        """
        if not _depends_on_group(having):
            return None
        forms = {i.alias.casefold(): f"({i.text})" for i in items if i.alias}
        edits = {span: forms[n] for q, n, span in having.columns() if not q and n in forms}
        return f"coalesce({edited(having.text, edits, having.span.start)}, false)"

    def hidden_columns(self, before: Shape, after: Shape) -> tuple[list[Node], Shape]:
        """The keys that a projection hides, and its shape with them. before, after: the shapes of what it is
        made of, and of its items.
        """
        grouped = self.keeps_keys and before.streaming and before.replacing
        if not before.hidden and not (grouped and before.keys and after.keys is None):
            return [], after
        hidden, columns = self.hide(before)
        return columns, replace(after, keys=hidden, hidden=hidden)


def _depends_on_group(condition: Expression) -> bool:
    """Whether a condition over a group changes only when the group does."""
    return not (condition.has_subquery or condition.asks_the_time or condition.has_window_function)


def without_hidden_columns(frame: Frame, op: Op) -> Frame:
    """A relation without hidden columns: its groups are not told apart any more, and those that are not kept
    are filtered out (op).
    """
    shape = frame.shape
    node = frame.node
    if shape.has_flag:
        node = node.call("where", expr(IN_RESULT))
    gone = (*shape.hidden, *((IN_RESULT,) if shape.has_flag else ()))
    if not gone:
        return frame
    if shape.has_flag:
        shape = shape.then(op)
    return replace(
        frame, node=node.call("drop", *gone), shape=replace(shape, hidden=(), has_flag=False, keys=None)
    )


def computed_in_result(items: list[Item]) -> list[Item] | None:
    """Items that are computed only for the rows with IN_RESULT, as behind a filter. None when one of them
    cannot be computed so.
    """
    guarded: list[Item] = []
    for item in items:
        plain = item.expression.column or item.expression.is_star
        if not plain and (not item.alias or item.expression.generates):
            return None
        if not plain:
            text = f"CASE WHEN {IN_RESULT} THEN {item.text} END"
            item = replace(item, expression=read_expression(text))
        guarded.append(item)
    return guarded


def is_star_of(frame: Frame, item: Item) -> bool:
    """Whether an item is all columns of a relation; `s.*` of a struct is not."""
    qualifier, _, star = item.text.rpartition("*")
    if not item.expression.is_star or star:
        return False
    return not qualifier or qualifier.strip().removesuffix(".").strip("`").casefold() in frame.names
