"""Lowers FROM to DataFrame calls: relations, joins, window tables, LATERAL VIEW."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Attr, Node, Var, expr, links_of
from streamsql.definitions import Sink
from streamsql.errors import Note, RuleFault, Span
from streamsql.language.origin import Origin
from streamsql.language.query import Block, Body, ConsoleRelation, Join, LateralView, Relation, read_query
from streamsql.language.tokens import quote_name
from streamsql.language.tree_nodes import names_of_kind
from streamsql.plan.lowering import window_tables
from streamsql.plan.lowering.event_time import is_event_time
from streamsql.plan.lowering.frames import Frame, Unknown, with_own_names
from streamsql.plan.lowering.hidden_keys import HiddenKeys, without_hidden_columns
from streamsql.plan.lowering.own_relations import lower_own_relations
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.sources import watermarked
from streamsql.plan.streaming import join_bounds

# Spark's own name for a sub-query without one; it hides the columns that are not selected.
ANONYMOUS = "__auto_generated_subquery_name"
# Methods after which a DataFrame can still resolve columns that it does not select.
_HIDING = frozenset({"select", "agg", "drop"})


def _unmarked(side: Frame, other: Frame) -> frozenset[str]:
    """The qualified columns of a side that are not event time, though the other side's of that name are."""
    alone = other.shape.event_time - side.shape.event_time
    return side.shape.unmarked | {f"{name}.{column}" for name in side.names for column in alone}


def _columns_of_both(left: Shape, right: Shape) -> tuple[str, ...]:
    """The columns by which NATURAL joins two sides. Raises Unknown where they are not known."""
    if left.columns is None or right.columns is None:
        raise Unknown("a NATURAL join of columns that are not known")
    others = {column.casefold() for column in right.columns}
    names = tuple(column for column in left.columns if column.casefold() in others)
    if not names:
        raise Unknown("a NATURAL join without a common column")
    return names


class Relations(HiddenKeys):
    """The clauses of FROM."""

    def body(self, body: Body) -> Frame:
        """A query in parentheses."""
        raise NotImplementedError

    def from_clause(self, select: Block, limit: int | None) -> Frame:
        if select.relation is None:
            self.leave("a SELECT without FROM")
            return Frame(Var("spark"), Shape())
        alone = not select.joins
        sealed = not alone or select.where is not None or self.sorted or bool(self.qualified)
        frame = self.with_hidden_keys(self.relation(select.relation, alone, sealed, limit), select)
        # As in Spark, the joins behind a comma see all that stands before it.
        for join in select.joins:
            right = self.with_hidden_keys(self.relation(join.relation, False, True, None), select)
            frame = self.combine(frame, right, join, alone=len(select.joins) == 1)
        for view in select.views:
            frame = self.lateral_view(frame, view)
        return frame

    def combine(self, left: Frame, right: Frame, join: Join, *, alone: bool) -> Frame:
        """Both sides of a join. alone: whether it is the only join of its block."""
        if join.natural:
            join = replace(join, using=_columns_of_both(left.shape, right.shape))
        for side in (left, right):
            if side.window and side.window.session:
                raise side.window.refuse("a SESSION table cannot be joined", window_tables.SESSION_ONLY)
        if left.shape.streaming and right.shape.streaming:
            # Only one side's groups can be told apart, and only if its rows alone make those of the join.
            left, right = (without_hidden_columns(side, Op("filter", join.span)) for side in (left, right))
        shape = left.shape.beside(right.shape)
        read = join_bounds.Condition(False, False, False, False)
        how = join.kind
        if join.using:
            node = left.node.call("join", right.node, list(join.using), how)
            shape = shape.changed(columns=None)
            read = join_bounds.of_using(join.using, left.side, right.side)
        elif join.condition is not None:
            condition = self.checked(join.condition)
            node = left.node.call("join", right.node, expr(condition.text), how)
            read = join_bounds.of_condition(condition, left.side, right.side)
        else:
            if how not in ("cross", "inner"):
                raise Unknown(f"a {how} join without condition")
            node = left.node.call("crossJoin" if how == "cross" else "join", right.node)
        shape = shape.changed(unmarked=_unmarked(left, right) | _unmarked(right, left))
        if how in ("left_semi", "left_anti"):
            shape = shape.changed(columns=left.shape.columns, event_time=left.shape.event_time)
        sides = (left.shape.streaming, right.shape.streaming)
        bare = how == "inner" and join.condition is None and not join.using
        equi = read.equi is not False or (bare and self.filters_by_equality(left, right, alone=alone))
        op = Op(
            "join",
            join.span,
            how=how,
            sides=sides,
            equi=equi,
            timed=read.timed(how),
        )
        if all(sides) and how != "cross":
            reads = (*left.shape.first_input(left.node), *right.shape.first_input(right.node))
            op = replace(op, reads=reads)
        if self.loses_groups(left, right, join):
            shape = shape.then(Op("filter", join.span))
        return Frame(node, shape.then(op), names=left.names | right.names, window=left.window or right.window)

    def filters_by_equality(self, left: Frame, right: Frame, *, alone: bool) -> bool:
        """Whether WHERE may have the equality of an inner join without ON, such as a comma; that of several
        joins may be between any of their sides.
        """
        if self.filter is None:
            return False
        return not alone or join_bounds.of_condition(self.filter, left.side, right.side).equi is not False

    def relation(self, relation: Relation, alone: bool, sealed: bool, limit: int | None) -> Frame:
        """sealed: whether to hide the columns and names that the relation does not select."""
        derived = True
        default = ANONYMOUS
        if relation.query is not None:
            inner = self.body(relation.query)
            frame = Frame(inner.node, inner.shape)
        elif relation.own is not None and relation.own.kind == "WindowTable":
            frame, default = self.window_table(relation.own)
        else:
            default = self.name_of(relation)
            frame = self.named(default, relation.written or default, relation.span, relation.stream, limit)
            derived = default.casefold() in self.ctes or self.hides_columns(frame.node)
        anonymous = relation.query is not None or (relation.own and relation.own.kind == "WindowTable")
        watermark = relation.watermark
        if watermark:
            shape = frame.shape
            shape = replace(shape, event_time=shape.event_time | {watermark.column.value.casefold()})
            if watermark.computed and shape.columns is not None:
                shape = replace(shape, columns=(*shape.columns, watermark.column.value))
            frame = Frame(watermarked(frame.node, watermark), shape.then(Op("watermark", relation.span)))
        frame = self.sampled(frame, relation)
        if relation.columns:
            frame = self.with_names(frame, relation.columns)
        name = relation.alias or default
        wanted = not alone or default.casefold() in self.qualified or (sealed and derived)
        # A Spark table has its own, longer qualifier, which `db.t.c` can use.
        if relation.alias or (wanted and (anonymous or not self.is_spark_table(default))):
            named_so = frame.shape.under(quote_name(name))
            frame = replace(frame, node=frame.node.call("alias", name), shape=named_so)
        return replace(frame, names=frozenset({name.rpartition(".")[2].casefold()}))

    def with_names(self, frame: Frame, names: tuple[str, ...]) -> Frame:
        """A relation with other names for its columns, by their places."""
        shape = frame.shape.renamed(names)
        if shape is None:
            raise Unknown("a list of names for columns that are not known")
        if frame.shape.hidden or frame.window:
            self.leave("a list of names for the columns of a relation")
        return replace(frame, node=frame.node.call("toDF", *names), shape=shape)

    def name_of(self, relation: Relation) -> str:
        """The name of a relation in sources: its own, or the replacement of a call or a state."""
        if relation.own is None:
            return relation.name
        name = self.own_names.get(relation.own.name)
        if name is None:
            raise Unknown("a table function")
        return name

    def sampled(self, frame: Frame, relation: Relation) -> Frame:
        """A relation with TABLESAMPLE and PIVOT, which are left to Spark."""
        if relation.sample:
            self.leave("TABLESAMPLE")
            frame = frame.then(Op("sample", relation.sample))
        if relation.pivot:
            self.leave("PIVOT")
            if frame.shape.event_time:
                raise Unknown("PIVOT may group by event time")
            # Spark groups twice: by the pivot values, and by the other columns.
            frame = frame.then(Op("aggregate", relation.pivot)).then(Op("aggregate", relation.pivot))
            frame = replace(frame, shape=replace(frame.shape, columns=None, keys=None))
        return frame

    def window_table(self, own: ConsoleRelation) -> tuple[Frame, str]:
        """The rows of a window table, and the relation's name. TUMBLE and HOP add the columns of the windows;
        SESSION does not, because Spark builds sessions only in GROUP BY.
        """
        table = window_tables.window_table(self.read.text, own.node)
        self.carries_time = False  # this table adds a window_time of its own
        place, name = table.source.span, table.source_name
        if name:
            written = self.read.text[place.start : place.end]
            frame = self.named(name, written, place, False, None)
        else:
            frame, name = self.inner_query(place), ANONYMOUS
        self.sources.note(table.note)
        frame = Frame(frame.node, frame.shape, window=table)
        if table.session:
            return frame, name
        marked = is_event_time(table.window, frame.shape.event_time)
        shape = replace(
            frame.shape,
            columns=None if frame.shape.columns is None else (*frame.shape.columns, *window_tables.COLUMNS),
            event_time=frame.shape.event_time | ({window_tables.TIME} if marked else set()),
        )
        node = frame.node.call("select", expr("*"), expr(f"{table.call} AS __window"))
        node = node.call(
            "select",
            expr("*"),
            expr(f"__window.start AS {window_tables.START}"),
            expr(f"__window.end AS {window_tables.END}"),
            expr(f"window_time(__window) AS {window_tables.TIME}"),
        )
        return replace(frame, node=node.call("drop", "__window"), shape=shape), name

    def inner_query(self, span: Span) -> Frame:
        """A query inside a console relation."""
        inner = read_query(self.read.text[span.start : span.end])
        if inner.body is None:
            raise Unknown(inner.reason)
        outer = self.read, self.text, self.own_names, self.qualified
        keeps_keys, self.keeps_keys = self.keeps_keys, False
        names = lower_own_relations(inner, self.sources)
        self.read, self.own_names, self.qualified = inner, names, inner.qualifiers
        self.text = with_own_names(inner, names)
        try:
            frame = self.body(inner.body)
        finally:
            self.read, self.text, self.own_names, self.qualified = outer
            self.keeps_keys = keeps_keys
        return replace(frame, shape=frame.shape.placed(Origin(((0, span.start),))))

    def hides_columns(self, node: Node) -> bool:
        """Whether WHERE and ORDER BY could resolve columns that a DataFrame does not select."""
        first, links = links_of(node)
        if any(isinstance(link, Attr) and link.name in _HIDING for link in links):
            return True
        name = first.name if isinstance(first, Var) else ""
        return any(self.hides_columns(step.node) for step in self.sources.program if step.name == name != "")

    def is_spark_table(self, name: str) -> bool:
        ours = name.casefold() in self.ctes or name.casefold() in self.sources.calls
        return not ours and self.sources.catalog.relation(name) is None

    def named(self, name: str, written: str, span: Span, as_stream: bool, limit: int | None) -> Frame:
        if name.casefold() in self.ctes:
            return Frame(*self.ctes[name.casefold()])
        entry = self.sources.catalog.relation(name)
        table = written if "`" in written else name
        if as_stream and isinstance(entry, Sink) and entry.is_live:
            raise RuleFault(
                f"{name} is a live table, not a stream",
                detail="a query over a live table follows it",
                hint=f"WATCH {quote_name(entry.name)}; or FROM {quote_name(entry.name)} without STREAM",
                span=span,
                code="WRONG_KIND",
            )
        if as_stream and (entry is None or isinstance(entry, Sink)):
            view = self.sources.catalog.tables.get(name.casefold())
            shape = Shape(True, complete=view is None or not view.streaming)
            return Frame(Var("spark").attr("readStream").call("table", table), shape)
        node, shape = self.sources.relation(name, limit, table, keeps_keys=self.keeps_keys)
        return Frame(node, shape.at(span))

    def lateral_view(self, frame: Frame, view: LateralView) -> Frame:
        if view.name and view.name.casefold() in self.qualified:
            self.leave("columns of a LATERAL VIEW are qualified with its name")
        generator = self.checked(view.generator)
        name = generator.call
        text = generator.text
        if name not in names_of_kind("generator"):
            raise Unknown(f"LATERAL VIEW {name}")
        if view.ordinality:
            name, values = "inline", text.partition("(")[2].removesuffix(")")
            text = f"inline(transform({values}, (each, place) -> struct(each, place + 1)))"
            self.sources.note(Note("READ_AS", f"UNNEST WITH ORDINALITY is read as {text}"))
        if view.outer:
            if name not in ("explode", "posexplode", "inline"):
                raise Unknown(f"LATERAL VIEW OUTER {name}")
            text = f"{text[: len(name)]}_outer{text[len(name) :]}"
        names = view.columns
        listed = ", ".join(map(quote_name, names))
        item = f"{text} AS ({listed})" if len(names) > 1 else f"{text} AS {listed}" if names else text
        columns = frame.shape.columns
        columns = (*columns, *names) if columns is not None and names else None
        node = frame.node.call("select", expr("*"), expr(item))
        return replace(frame, node=node, shape=replace(frame.shape, columns=columns)).then(
            Op("generate", view.span)
        )
