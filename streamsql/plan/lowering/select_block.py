"""Lowers a SELECT block to DataFrame calls: its list, WHERE, DISTINCT, and the first row of each key."""

from __future__ import annotations

from dataclasses import replace

from streamsql.calls import expr
from streamsql.errors import Note, Span
from streamsql.language.expression import TIME_WINDOWS, RowNumber
from streamsql.language.query import Block, Distinct, read_expression
from streamsql.language.query import Item as Written
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering import row_number_dedup, window_tables
from streamsql.plan.lowering.event_time import is_event_time
from streamsql.plan.lowering.frames import Frame, Item, RuleUnknown, Unknown
from streamsql.plan.lowering.grouping import Grouping
from streamsql.plan.lowering.hidden_keys import (
    computed_in_result,
    is_row_by_row,
    is_star_of,
    without_hidden_columns,
)
from streamsql.plan.lowering.relations import Relations
from streamsql.plan.lowering.shape import IN_RESULT, Op, Shape


class Blocks(Relations, Grouping):
    """The clauses of a block, in the order of their evaluation."""

    def select(self, select: Block, limit: int | None) -> Frame:
        outer = self.window, self.filter, self.keeps_keys, self.event_time
        self.window, self.filter = None, select.where.expression if select.where else None
        if select.distinct or select.qualify or self.wanted:
            self.keeps_keys = False
        try:
            return self.block(select, limit)
        finally:
            self.window, self.filter, self.keeps_keys, self.event_time = outer

    def block(self, select: Block, limit: int | None) -> Frame:
        if select.other:
            self.leave(select.other)
        first = self.first_of_subquery(select)
        frame = self.input_rows(select, limit)
        items = [self.item(i) for i in select.items]
        self.advise(frame, items)
        having = select.having
        aggregated = any(i.expression.aggregates for i in items) or bool(
            having and having.expression.aggregates
        )
        aggregated = aggregated or select.group_by is not None
        if select.qualify:
            frame = self.qualify(frame, select, items, aggregated)
        if first and frame.shape.streaming and not aggregated:
            frame, items = self.numbered(frame, items, first, select)
        for item in items:
            if item.expression.has_window_function:
                frame = frame.then(Op("over", item.span))
        distinct = select.distinct
        if aggregated:
            if distinct and distinct.keeps_first:
                raise RuleUnknown("DISTINCT ON cannot be combined with an aggregation", distinct.span)
            frame = self.aggregate(frame, items, select)
        else:
            if having:
                raise Unknown("HAVING without an aggregation")
            if distinct and distinct.keeps_first:
                frame = self.distinct_on(frame, distinct)
            frame = self.project(frame, items)
        if distinct and not distinct.keeps_first:
            frame = self.distinct(frame, items, distinct.span)
        starred = any(i.expression.is_star for i in items)
        return frame if starred else replace(frame, width=len(items))

    def input_rows(self, select: Block, limit: int | None) -> Frame:
        """The rows of FROM that satisfy WHERE."""
        keeps_keys = self.keeps_keys
        carries_time, self.carries_time = self.carries_time, window_tables.groups_by_window(select)
        self.keeps_keys = keeps_keys and is_row_by_row(select)
        frame = self.from_clause(select, limit)
        if frame.window and frame.window.session:
            self.check_session(frame.window, select)
            self.window = frame
        times = frame.shape.event_time
        self.event_time = next(iter(times)) if len(times) == 1 else ""
        frame = self.where(frame, select)
        self.keeps_keys, self.carries_time = keeps_keys, carries_time
        return frame

    def where(self, frame: Frame, select: Block) -> Frame:
        where = select.where
        if where is None:
            return frame
        condition = self.checked(where.expression)
        filtered = self.group_filter(frame, condition, select)
        if filtered is not None:
            return filtered
        frame = without_hidden_columns(frame, Op("filter", where.span)) if frame.shape.has_flag else frame
        frame = replace(frame, node=frame.node.call("where", expr(condition.text)))
        if condition.asks_the_time:
            frame = frame.then(Op("now", where.span))
        return frame.then(Op("filter", where.span)) if frame.shape.aggregates else frame

    def distinct(self, frame: Frame, items: list[Item], span: Span) -> Frame:
        """SELECT DISTINCT: Spark SQL groups by all columns, DataFrame.distinct deduplicates on a stream. A
        streaming query with it therefore goes to Spark as text.
        """
        every = any(i.text == "*" for i in items)
        names = None if every else frozenset(i.name.casefold() for i in items)
        frame = frame.shown()
        shape = frame.shape
        if shape.streaming:
            self.leave("SELECT DISTINCT is an aggregation in Spark")
            self.caution_distinct("SELECT DISTINCT", shape)
            shape = replace(shape.then(Op("distinct", span, 0, bool(shape.event_time))), keys=shape.columns)
        node = frame.node.call("distinct")
        return replace(frame, node=node, shape=shape, aggregated=False, distinct=names)

    def caution_distinct(self, words: str, shape: Shape) -> None:
        """Warn that the state of an aggregation by all columns is unbounded."""
        if not shape.event_time:
            self.sources.cautions.append(
                Note(
                    "UNBOUNDED_STATE",
                    f"{words} groups by all columns and keeps every row in state: the state is unbounded. "
                    "The event time of a watermark among the columns, or SELECT DISTINCT ON (…) WITHIN "
                    "WATERMARK, would bound the state",
                )
            )

    def qualify(self, frame: Frame, select: Block, items: list[Item], aggregated: bool) -> Frame:
        """QUALIFY over a stream can only keep the first row of each key; see row_number_dedup.py."""
        if not frame.shape.streaming:
            raise Unknown("QUALIFY")
        clause = select.qualify
        assert clause
        condition = self.checked(clause.expression)
        aliases = {i.alias.casefold(): i.expression for i in items if i.alias}
        number = row_number_dedup.number_of(condition, aliases)
        numbered = any(e.has_window_function for e in (condition, *(i.expression for i in items)))
        if number is None and not numbered:
            raise Unknown("QUALIFY without a window function")
        if number is None or aggregated:
            raise row_number_dedup.refused(
                "QUALIFY numbers groups, which keep changing"
                if aggregated
                else "QUALIFY has a condition other than row_number() … = 1",
                "write the rows to a live table, and use QUALIFY when reading it",
                clause.span,
            )
        items[:] = [_first(i) if number.same(i.expression.row_number()) else i for i in items]
        return self.first(frame, number, clause.span, "QUALIFY row_number() … = 1", select)

    def first_of_subquery(self, select: Block) -> Item | None:
        """The row_number() of this block that the outer block requires to be 1."""
        wanted, self.wanted = self.wanted, frozenset[str]()
        if select.where and _is_over_a_block(select):
            names = [c.wanted_first() for c in select.where.expression.conjuncts()]
            self.wanted = frozenset(n.output_name.casefold() for n in names if n)
        if not wanted:
            return None
        items = [self.item(i) for i in select.items]
        return next((i for i in items if i.alias.casefold() in wanted and i.expression.row_number()), None)

    def numbered(
        self, frame: Frame, items: list[Item], item: Item, select: Block
    ) -> tuple[Frame, list[Item]]:
        """The block with only the rows whose row_number() is 1, and the number replaced by 1."""
        number = item.expression.row_number()
        assert number
        frame = self.first(frame, number, item.span, f"the row_number() {item.alias} = 1", select)
        return frame, [_first(i) if i == item else i for i in items]

    def first(self, frame: Frame, number: RowNumber, span: Span, words: str, select: Block) -> Frame:
        def type_of(name: str) -> str:
            return "TIMESTAMP" if name in frame.shape.event_time else self.sources.type_of(name)

        names = row_number_dedup.columns_to_keep(number, type_of, self.text_of_from(select), span)
        listed = ", ".join(map(quote_name, names))
        self.sources.notes.append(
            Note(
                "FIRST_ROW_KEPT",
                f"{words} runs as SELECT DISTINCT ON ({listed}): the first row to arrive is kept, "
                "which is not always the earliest",
            )
        )
        return self.keep_first(frame, names, False, span)

    def advise(self, frame: Frame, items: list[Item]) -> None:
        """Note what Spark reads otherwise than other dialects do."""
        columns = {c.casefold() for c in frame.shape.columns or ()}
        for item in items:
            name = item.text.strip('"')
            column = name.casefold() in columns or (not columns and name.isidentifier())
            if item.text.startswith('"') and column and self.read.relations:
                self.sources.note(Note("READ_AS", f"{item.text} is a string; the column is `{name}`"))
            for whole, left, right in item.expression.divisions() if frame.shape.streaming else ():
                if left.is_whole(self.sources.type_of) and right.is_whole(self.sources.type_of):
                    slash = whole.text.rindex("/", 0, whole.text.rindex(right.text))
                    own = f"{whole.text[:slash].rstrip()} div {whole.text[slash + 1 :].lstrip()}"
                    text = f"{whole.text} has a fraction in Spark; {own} has none"
                    self.sources.note(Note("READ_AS", text))

    def text_of_from(self, select: Block) -> str:
        """What stands behind FROM in a block, with its WHERE, as written."""
        assert select.relation
        spans = [select.relation.span, *(j.span for j in select.joins), *(v.span for v in select.views)]
        end = select.where.span.end if select.where else max(s.end for s in spans)
        return self.read.text[select.relation.span.start : end]

    def item(self, written: Written) -> Item:
        expression = self.checked(written.expression)
        if written.aliases:
            # Spark allows parentheses only after a generator, so they are kept.
            if written.listed:
                return Item(expression, "", written.span, written.aliases)
            return Item(expression, written.aliases[0], written.span)
        implicit = ""
        if self.window:
            # The output column has the name in the query, not that of its replacement in the grouping.
            _, implicit = window_tables.column_in(written.expression, self.window.names)
        elif expression.text != written.expression.text and expression.call not in TIME_WINDOWS:
            implicit = written.expression.call if expression.generates else written.expression.text
        return Item(expression, implicit, written.span)

    def distinct_on(self, frame: Frame, distinct: Distinct) -> Frame:
        names = [e.output_name for e in distinct.on]
        if not all(names):
            raise RuleUnknown(
                "DISTINCT ON takes columns; compute an expression in a sub-query first", distinct.span
            )
        return self.keep_first(frame, names, distinct.within, distinct.span)

    def keep_first(self, frame: Frame, names: list[str], within: bool, span: Span) -> Frame:
        """The first row to arrive for each value of the columns (Spark guide, "Streaming Deduplication")."""
        method = "dropDuplicatesWithinWatermark" if within else "dropDuplicates"
        marks = frame.shape.event_time
        if frame.shape.streaming and not within and not marks & {n.casefold() for n in names}:
            keys = f"ON ({', '.join(map(quote_name, names))})"
            bound = "WITHIN WATERMARK" if marks else "A watermark and WITHIN WATERMARK"
            self.sources.cautions.append(
                Note(
                    "UNBOUNDED_STATE",
                    f"DISTINCT {keys} keeps every key in state: the state is unbounded. {bound} would bound "
                    "the state",
                )
            )
        timed = bool(marks & {n.casefold() for n in names}) if names else bool(marks)
        window = "within" if within else ""
        reads = frame.shape.first_input(frame.node)
        op = Op("distinct_on", span, watermarked=bool(marks), window=window, timed=timed, reads=reads)
        arguments = (names,) if names else ()
        return replace(frame, node=frame.node.call(method, *arguments)).then(op)

    def project(self, frame: Frame, items: list[Item]) -> Frame:
        computed = computed_in_result(items) if frame.shape.has_flag else items
        partial_star = any(i.expression.is_star and not i.text.endswith("*") for i in items)
        if computed is None or partial_star:
            frame = without_hidden_columns(frame, Op("filter", items[0].span))
        items = items if computed is None else computed
        shape = frame.shape
        columns: list[str] | None = []
        event_time: set[str] = set()
        for item in items:
            if item.expression.generates:
                shape = shape.then(Op("generate", item.span))
            if item.expression.asks_the_time:
                shape = shape.then(Op("now", item.span))
            if item.expression.is_star:
                all_listed = item.text == "*" and shape.columns is not None and columns is not None
                columns = [*(columns or ()), *(shape.columns or ())] if all_listed else None
                event_time |= shape.event_time
                continue
            if columns is not None:
                columns = [*columns, *(item.aliases or (item.name,))]
            if is_event_time(item.expression, shape.event_time, shape.unmarked) and item.name:
                event_time.add(item.name.casefold())
        shape = replace(
            shape,
            columns=tuple(columns) if columns is not None and all(columns) else None,
            items=tuple(columns or ()),
            event_time=frozenset(event_time),
            unmarked=frozenset(),
        )
        if len(items) == 1 and items[0].sql.strip() == "*" and not shape.fields:
            return replace(frame, shape=shape)
        star = any(is_star_of(frame, i) for i in items)
        out = {i.expression.column_name: i.name for i in items if i.expression.column_name}
        shape = shape.with_keys(lambda name: out.get(name.casefold()) or (name if star else None))
        shown, shape = self.hidden_columns(frame.shape, shape)
        flag = (IN_RESULT,) if shape.has_flag else ()
        gone = (*shape.hidden, *flag)
        shown += [expr(i.without(shape.fields, gone if is_star_of(frame, i) else ())) for i in items]
        node = frame.node.call("select", *shown, *map(expr, flag))
        return replace(frame, node=node, shape=replace(shape, fields=()))


def _first(item: Item) -> Item:
    """The literal 1 in place of a row_number() that is known to be 1."""
    return replace(item, expression=read_expression("1"))


def _is_over_a_block(select: Block) -> bool:
    """Whether the only relation of a block is a sub-query with one block."""
    body = select.relation.query if select.relation and select.reads_one_relation else None
    return body is not None and body.plain_block is not None
