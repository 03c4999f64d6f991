"""One SELECT block to DataFrame calls: its list, WHERE, DISTINCT, and the first row of each key."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import expr
from streamsql.errors import Span
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import text_of
from streamsql.language.tokens import quote_name, tokenize, unquote
from streamsql.plan import firsts, ranges, windows
from streamsql.plan.frames import Frame, Item, RuleUnknown, Unknown
from streamsql.plan.grouping import Grouping
from streamsql.plan.relations import Relations
from streamsql.plan.shape import Op, Shape
from streamsql.plan.texts import (
    column,
    is_event_time,
)


class Blocks(Relations, Grouping):
    """The clauses of a block, in the order in which they happen."""

    def select(self, select: Parsed, limit: int | None) -> Frame:
        outer, outer_filtered = self.window, self.filtered
        self.window, self.filtered = None, select.has("Where")
        try:
            return self.block(select, limit)
        finally:
            self.window, self.filtered = outer, outer_filtered

    def block(self, select: Parsed, limit: int | None) -> Frame:
        first = self.first_of_subquery(select)
        frame = self.from_clause(select, limit)
        if frame.window and frame.window.session:
            self.check_session(frame.window, select)
            self.window = frame
        frame = self.where(frame, select)
        items = [self.item(i) for i in select.all("SelectItem")]
        groups, having = select.get("GroupBy"), select.get("Having")
        aggregated = any(functions.has_aggregate(i.text) for i in items) or bool(
            having and functions.has_aggregate(self.text(having, "Expression"))
        )
        aggregated = aggregated or groups is not None
        if select.has("Qualify"):
            frame = self.qualify(frame, select, items, aggregated)
        if first and frame.shape.streaming and not aggregated:
            frame, items = self.numbered(frame, items, first)
        for item in items:
            if functions.has_window_function(item.text):
                frame = frame.then(Op("over", item.span))
        within = select.get("DistinctOn") or select.get("DistinctWithin")
        if aggregated:
            if within:
                raise RuleUnknown("DISTINCT ON stands beside an aggregation", within.span)
            frame = self.aggregate(frame, items, groups, having, select)
        else:
            if having:
                raise Unknown("HAVING without an aggregation")
            if within:
                frame = self.distinct_on(frame, within)
            frame = self.project(frame, items)
        distinct = select.get("Distinct")
        if distinct:
            frame = self.distinct(frame, items, distinct)
        starred = any("*" in (i.text[:1], i.text[-1:]) for i in items)
        return frame if starred else replace(frame, width=len(items))

    def where(self, frame: Frame, select: Parsed) -> Frame:
        where = select.get("Where")
        if where is None:
            return frame
        text = self.text(where, "Expression")
        frame = replace(frame, node=frame.node.call("where", expr(text)))
        if functions.has_now(text):
            frame = frame.then(Op("now", where.span))
        return frame.then(Op("filter", where.span)) if frame.shape.aggregates else frame

    def distinct(self, frame: Frame, items: list[Item], node: Parsed) -> Frame:
        """SELECT DISTINCT: Spark groups by all columns, which is not what DataFrame.distinct does on a
        stream (it deduplicates), so there the text goes to Spark.
        """
        every = any(i.text == "*" for i in items)
        names = None if every else frozenset(i.name.casefold() for i in items)
        frame = frame.shown()
        shape = frame.shape
        if shape.streaming:
            self.leave("SELECT DISTINCT is an aggregation in Spark")
            self.caution_distinct("SELECT DISTINCT", shape)
            shape = replace(
                shape.then(Op("distinct", node.span, 0, bool(shape.event_time))), keys=shape.columns
            )
        made = frame.node.call("distinct")
        return replace(frame, node=made, shape=shape, aggregated=False, distinct=names)

    def caution_distinct(self, words: str, shape: Shape) -> None:
        """Say of an aggregation by all columns that nothing ever ends its groups."""
        if not shape.event_time:
            self.sources.cautions.append(
                f"{words} groups by all columns and remembers every row for ever: its state grows without "
                "bound. The event time of a watermark among the columns, or SELECT DISTINCT ON (…) WITHIN "
                "WATERMARK, would let it forget"
            )

    def qualify(self, frame: Frame, select: Parsed, items: list[Item], aggregated: bool) -> Frame:
        """QUALIFY over a stream: it can only mean the first row of each key; see firsts.py."""
        clause = select.get("Qualify")
        assert clause
        if not frame.shape.streaming:
            raise Unknown("QUALIFY")
        text = self.text(clause, "Expression")
        number = firsts.number_of(text, {i.alias.casefold(): i.text for i in items if i.alias})
        numbered = any(functions.has_window_function(t) for t in (text, *(i.text for i in items)))
        if number is None and not numbered:
            raise Unknown("QUALIFY without a window function")
        if number is None or aggregated:
            raise firsts.refused(
                "QUALIFY numbers groups, which go on changing"
                if aggregated
                else "QUALIFY holds another condition than that the row_number() of a key is 1",
                "keep the rows in a live table, and QUALIFY when reading that",
                clause.span,
            )
        items[:] = [replace(i, text="1") if firsts.row_number(i.text) == number else i for i in items]
        return self.first(frame, number, clause.span, "QUALIFY row_number() … = 1")

    def first_of_subquery(self, select: Parsed) -> Item | None:
        """The row_number() of this block that the block around it wants to be 1."""
        wanted, self.wanted = self.wanted, frozenset[str]()
        where = select.get("Where")
        if where and _is_over_a_block(select):
            conditions = ranges.conjuncts(self.source.text[where.parts[-1].span.start : where.span.end])
            names = [firsts.wants_first(c) for c in conditions]
            self.wanted = frozenset(unquote(tokenize(n)[-1]).casefold() for n in names if n)
        if not wanted:
            return None
        items = [self.item(i) for i in select.all("SelectItem")]
        return next((i for i in items if i.alias.casefold() in wanted and firsts.row_number(i.text)), None)

    def numbered(self, frame: Frame, items: list[Item], item: Item) -> tuple[Frame, list[Item]]:
        """The block with the row_number() that is wanted to be 1: only those rows, and the number is 1."""
        number = firsts.row_number(item.text)
        assert number
        frame = self.first(frame, number, item.span, f"the row_number() {item.alias} = 1")
        return frame, [replace(i, text="1") if i == item else i for i in items]

    def first(self, frame: Frame, number: firsts.RowNumber, span: Span, words: str) -> Frame:
        def is_time(name: str) -> bool:
            return name in frame.shape.event_time or self.sources.is_time(name)

        names = firsts.columns_to_keep(number, is_time, span)
        listed = ", ".join(map(quote_name, names))
        self.sources.notes.append(
            f"{words} is read as SELECT DISTINCT ON ({listed}): the first row to arrive is kept, "
            "which need not be the earliest"
        )
        return self.keep_first(frame, names, False, span)

    def item(self, node: Parsed) -> Item:
        text = self.text(node, "Expression")
        alias = node.get("AsAlias")
        if alias:
            names = tuple(a.value for a in alias.all("Alias"))
            # Spark allows parentheses behind a generator only, so they are kept.
            return Item(text, "", node.span, names) if alias.has("(") else Item(text, names[0], node.span)
        bare, implicit = functions.implicit_alias(text)
        if self.window and not implicit:
            # The name that comes out is the one asked for, whatever stands for it while grouping.
            part = node.get("Expression")
            _, implicit = windows.column_in(text_of(self.source, part) if part else "", self.window.names)
        return Item(bare, implicit, node.span)

    def distinct_on(self, frame: Frame, node: Parsed) -> Frame:
        texts = [text_of(self.source, e) for e in node.all("Expression")]
        names = [Item(t, "", node.span).name for t in texts]
        if not all(names):
            raise RuleUnknown(
                "DISTINCT ON takes columns; compute an expression in a sub-query first", node.span
            )
        return self.keep_first(frame, names, node.has("WithinWatermark"), node.span)

    def keep_first(self, frame: Frame, names: list[str], within: bool, span: Span) -> Frame:
        """The first row to arrive for each value of these columns (Spark guide, Streaming Deduplication)."""
        method = "dropDuplicatesWithinWatermark" if within else "dropDuplicates"
        marks = frame.shape.event_time
        if frame.shape.streaming and not within and not marks & {n.casefold() for n in names}:
            keys = f"ON ({', '.join(map(quote_name, names))})"
            self.sources.cautions.append(
                f"DISTINCT {keys} remembers every key for ever: its state grows without bound. "
                + ("WITHIN WATERMARK" if marks else "A watermark and WITHIN WATERMARK")
                + " would let it forget"
            )
        timed = bool(marks & {n.casefold() for n in names}) if names else bool(marks)
        window = "within" if within else ""
        op = Op("distinct_on", span, watermarked=bool(marks), window=window, timed=timed)
        arguments = (names,) if names else ()
        return replace(frame, node=frame.node.call(method, *arguments)).then(op)

    def project(self, frame: Frame, items: list[Item]) -> Frame:
        shape = frame.shape
        columns: list[str] | None = []
        event_time: set[str] = set()
        for item in items:
            if functions.has_generator(item.text):
                shape = shape.then(Op("generate", item.span))
            if functions.has_now(item.text):
                shape = shape.then(Op("now", item.span))
            if "*" in (item.text[:1], item.text[-1:]):
                known = item.text == "*" and shape.columns is not None and columns is not None
                columns = [*(columns or ()), *(shape.columns or ())] if known else None
                event_time |= shape.event_time
                continue
            if columns is not None:
                columns = [*columns, *(item.aliases or (item.name,))]
            marked = is_event_time(item.text, shape.event_time, shape.unmarked)
            if marked and (item.alias or item.name):
                event_time.add((item.alias or item.name).casefold())
        shape = replace(
            shape,
            columns=tuple(columns) if columns is not None and all(columns) else None,
            event_time=frozenset(event_time),
            unmarked=frozenset(),
        )
        if len(items) == 1 and items[0].sql.strip() == "*" and not shape.fields:
            return replace(frame, shape=shape)
        star = any(i.text.rstrip().endswith("*") for i in items)
        out = {column(i.text): i.alias or i.name for i in items if column(i.text)}
        shape = shape.with_keys(lambda name: out.get(name.casefold()) or (name if star else None))
        shown = (expr(i.without(shape.fields)) for i in items)
        return replace(frame, node=frame.node.call("select", *shown), shape=replace(shape, fields=()))


def _is_over_a_block(select: Parsed) -> bool:
    """Whether a block reads nothing but a sub-query that is one block."""
    start = select.get("From")
    if start is None or len(start.parts) != 2 or len(start.parts[1].parts) != 1:
        return False
    relation = start.parts[1].get("Relation")
    nested = relation.get("Nested") if relation else None
    body = nested.get("QueryBody") if nested else None
    operation = body.get("SetOperation") if body and len(body.parts) == 1 else None
    return operation is not None and len(operation.parts) == 1 and operation.parts[0].has("SelectBlock")
