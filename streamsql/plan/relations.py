"""FROM to DataFrame calls: relations, joins, window tables, LATERAL VIEW."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import Attr, Call, Node, Var, expr
from streamsql.catalog import Sink
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import text_of
from streamsql.language.statements.base import watermark_of
from streamsql.language.tokens import quote_name
from streamsql.plan import ranges, windows
from streamsql.plan.frames import Clauses, Frame, Unknown
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import watermarked
from streamsql.plan.texts import (
    is_event_time,
)

# Spark's own name for a sub-query without one; it hides the columns that are not given out.
ANONYMOUS = "__auto_generated_subquery_name"
# The methods behind which a DataFrame still finds columns that it does not give out.
_HIDING = frozenset({"select", "agg", "drop"})


def _unmarked(side: Frame, other: Frame) -> frozenset[str]:
    """The columns of a side, with the names of its relations, of which only another side's is event time."""
    alone = other.shape.event_time - side.shape.event_time
    return side.shape.unmarked | {f"{name}.{column}" for name in side.names for column in alone}


class Relations(Clauses):
    """The clauses of FROM."""

    def nested(self, node: Parsed) -> Frame:
        """A query in parentheses."""
        raise NotImplementedError

    def from_clause(self, select: Parsed, limit: int | None) -> Frame:
        start = select.get("From")
        if start is None:
            self.leave("a SELECT without FROM")
            return Frame(Var("spark"), Shape())
        joined = start.all("Joined")
        alone = len(joined) == 1 and not joined[0].has("Join")
        sealed = not alone or select.has("Where") or self.sorted or bool(self.qualified)
        frame: Frame | None = None
        for node in joined:
            first = node.get("Relation")
            assert first
            right = self.relation(first, alone, sealed, limit)
            # As in Spark, the joins behind a comma see all that stands before it.
            frame = self.combine(frame, right, "inner", node, None) if frame else right
            frame = self.joined(frame, node)
        assert frame
        for view in start.all("LateralView"):
            frame = self.lateral_view(frame, view)
        return frame

    def joined(self, frame: Frame, node: Parsed) -> Frame:
        for join in node.all("Join"):
            relation, condition, kind = join.get("Relation"), join.get("JoinCondition"), join.get("JoinKind")
            assert relation
            right = self.relation(relation, False, True, None)
            words = [p.name for p in kind.parts if p.name != "OUTER"] if kind else ["INNER"]
            how = "_".join(words).lower()
            how = {"semi": "left_semi", "anti": "left_anti"}.get(how, how)
            frame = self.combine(frame, right, how, join, condition)
        return frame

    def combine(self, left: Frame, right: Frame, how: str, place: Parsed, condition: Parsed | None) -> Frame:
        for side in (left, right):
            if side.window and side.window.session:
                raise side.window.refuse("a SESSION table cannot be joined", windows.SESSION_ONLY)
        shape = left.shape.beside(right.shape)
        read = ranges.Condition(False, False, False, False)
        if condition is None:
            if how not in ("cross", "inner"):
                raise Unknown(f"a {how} join without condition")
            node = left.node.call("crossJoin" if how == "cross" else "join", right.node)
        else:
            using = condition.get("JoinUsing")
            if using:
                names = [c.value for c in using.all("ColumnName")]
                node = left.node.call("join", right.node, names, how)
                shape = replace(shape, columns=None)
                read = ranges.of_using(names, left.side, right.side)
            else:
                text = self.text(condition, "Expression")
                node = left.node.call("join", right.node, expr(text), how)
                read = ranges.of_condition(text, left.side, right.side)
        shape = replace(shape, unmarked=_unmarked(left, right) | _unmarked(right, left))
        if how in ("left_semi", "left_anti"):
            shape = replace(shape, columns=left.shape.columns, event_time=left.shape.event_time)
        sides = (left.shape.streaming, right.shape.streaming)
        # The comma is an inner join that a WHERE may give its equality; a CROSS JOIN stays one.
        equi = read.equi is not False or (how == "inner" and condition is None and self.filtered)
        op = Op("join", place.span, how=how, sides=sides, equi=equi, timed=read.timed(how))
        return Frame(node, shape.then(op), names=left.names | right.names, window=left.window or right.window)

    def relation(self, node: Parsed, alone: bool, sealed: bool, limit: int | None) -> Frame:
        """sealed: whether the block could see columns or names that the relation does not give out."""
        nested, named, stream = node.get("Nested"), node.get("NamedTable"), node.get("StreamTable")
        table = node.get("WindowTable")
        default = ANONYMOUS
        if nested:
            inner = self.nested(nested)
            frame = Frame(inner.node, inner.shape)
        elif table:
            frame, default = self.window_table(table)
            nested = table
        else:
            part = named or stream
            assert part
            default = part.text("RelationName")
            frame = self.named(part, bool(stream), limit)
        mark = watermark_of(self.source, node.get("InWatermark"))
        if mark:
            shape = frame.shape
            shape = replace(shape, event_time=shape.event_time | {mark.column.value.casefold()})
            if mark.computed and shape.columns is not None:
                shape = replace(shape, columns=(*shape.columns, mark.column.value))
            frame = Frame(watermarked(frame.node, mark), shape.then(Op("watermark", node.span)))
        frame = self.sampled(frame, node)
        alias = node.get("TableAlias")
        name = alias.text("RelationAlias") if alias else default
        derived = bool(nested) or default.casefold() in self.ctes or self.hides_columns(frame.node)
        wanted = not alone or default.casefold() in self.qualified or (sealed and derived)
        # A table of Spark brings its own, longer qualifier, which `db.t.c` may ask for.
        if alias or (wanted and (nested or not self.is_spark_table(default))):
            named_so = frame.shape.under(quote_name(name))
            frame = replace(frame, node=frame.node.call("alias", name), shape=named_so)
        return replace(frame, names=frozenset({name.rpartition(".")[2].casefold()}))

    def sampled(self, frame: Frame, node: Parsed) -> Frame:
        """A relation with its TABLESAMPLE and PIVOT, which are left to Spark."""
        sample, pivot = node.get("Sample"), node.get("Pivot")
        if sample:
            self.leave("TABLESAMPLE")
            frame = frame.then(Op("sample", sample.span))
        if pivot:
            self.leave("PIVOT")
            if frame.shape.event_time:
                raise Unknown("PIVOT may group by event time")
            # Spark groups twice: by the values turned into columns, and by the rest.
            frame = frame.then(Op("aggregate", pivot.span)).then(Op("aggregate", pivot.span))
            frame = replace(frame, shape=replace(frame.shape, columns=None, keys=None))
        return frame

    def window_table(self, node: Parsed) -> tuple[Frame, str]:
        """TUMBLE or HOP: the rows with the columns of their windows; SESSION: the rows alone, since
        Spark makes sessions only while grouping. Also the name that the relation has.
        """
        table = windows.window_table(self.source, node)
        call = node.get("WindowCall")
        data = call.get("Data") if call else None
        assert data
        nested = data.get("Nested")
        frame = self.nested(nested) if nested else self.named(data, False, None)
        name = data.text("RelationName") or ANONYMOUS
        self.sources.notes.append(table.note)
        frame = Frame(frame.node, frame.shape, window=table)
        if table.session:
            return frame, name
        marked = is_event_time(table.call, frame.shape.event_time)
        shape = replace(
            frame.shape,
            columns=None if frame.shape.columns is None else (*frame.shape.columns, *windows.COLUMNS),
            event_time=frame.shape.event_time | ({windows.TIME} if marked else set()),
        )
        made = frame.node.call("select", expr("*"), expr(f"{table.call} AS __window"))
        made = made.call(
            "select",
            expr("*"),
            expr(f"__window.start AS {windows.START}"),
            expr(f"__window.end AS {windows.END}"),
            expr(f"window_time(__window) AS {windows.TIME}"),
        )
        return replace(frame, node=made.call("drop", "__window"), shape=shape), name

    def hides_columns(self, node: Node) -> bool:
        """Whether a DataFrame gives out fewer columns than WHERE and ORDER BY could still find in it."""
        while isinstance(node, (Call, Attr)):
            if isinstance(node, Attr) and node.name in _HIDING:
                return True
            node = node.function if isinstance(node, Call) else node.target
        name = node.name if isinstance(node, Var) else ""
        return any(self.hides_columns(step.node) for step in self.sources.program if step.name == name != "")

    def is_spark_table(self, name: str) -> bool:
        ours = name.casefold() in self.ctes or name.casefold() in self.sources.calls
        return not ours and self.sources.catalog.relation(name) is None

    def named(self, part: Parsed, as_stream: bool, limit: int | None) -> Frame:
        name, written = part.text("RelationName"), self.text(part, "RelationName")
        if name.casefold() in self.ctes:
            return Frame(*self.ctes[name.casefold()])
        found = self.sources.catalog.relation(name)
        table = written if "`" in written else name
        if as_stream and (found is None or isinstance(found, Sink)):
            view = self.sources.catalog.tables.get(name.casefold())
            shape = Shape(True, known=view is None or not view.streaming)
            return Frame(Var("spark").attr("readStream").call("table", table), shape)
        node, shape = self.sources.relation(name, limit, table)
        return Frame(node, shape.at(part.span))

    def lateral_view(self, frame: Frame, view: Parsed) -> Frame:
        call = view.get("GeneratorCall")
        assert call
        if view.text("RelationAlias").casefold() in self.qualified:
            raise Unknown("a LATERAL VIEW's columns are asked for by its name")
        text = self.checked(text_of(self.source, call))
        name = call.text("FunctionName")
        if name.lower() not in functions.GENERATORS:
            raise Unknown(f"LATERAL VIEW {name}")
        if view.has("OUTER"):
            if name.lower() not in ("explode", "posexplode", "inline"):
                raise Unknown(f"LATERAL VIEW OUTER {name}")
            text = f"{name}_outer{text[len(name) :]}"
        names = [a.value for a in view.all("Alias")]
        listed = ", ".join(map(quote_name, names))
        item = f"{text} AS ({listed})" if len(names) > 1 else f"{text} AS {listed}" if names else text
        columns = frame.shape.columns
        columns = (*columns, *names) if columns is not None and names else None
        made = frame.node.call("select", expr("*"), expr(item))
        return replace(frame, node=made, shape=replace(frame.shape, columns=columns)).then(
            Op("generate", view.span)
        )
