"""Lowers a SELECT to DataFrame calls, with one method for each clause: FROM in relations.py, GROUP BY in
grouping.py, other clauses of a block in select_block.py, and the clauses around blocks here.

A relational clause becomes a method call; a scalar expression stays the analyst's text in F.expr. A query
that the lowering does not support (Unknown) becomes one spark.sql(text) over registered views, so that every
query that Spark accepts is accepted here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Assign, Node, Var, expr
from streamsql.definitions import Stream
from streamsql.errors import Note, RuleFault, Span
from streamsql.language.distinct_on import check_distinct_on
from streamsql.language.likely_mistakes import likely_mistakes
from streamsql.language.query import Block, Body, Clause, Cte, OrderBy, Query, SetTail, read_query
from streamsql.language.spark_definitions import has_query
from streamsql.language.spark_writes import executed_texts
from streamsql.language.window_functions import check_window_functions
from streamsql.plan.lowering.frames import Frame, Unknown, with_own_names
from streamsql.plan.lowering.hidden_keys import ctes_on_the_way, is_plain_body
from streamsql.plan.lowering.own_relations import lower_own_relations
from streamsql.plan.lowering.python_functions import has_python_aggregate, refused_on_a_stream
from streamsql.plan.lowering.read_instead import read_instead, relations_instead, view_instead
from streamsql.plan.lowering.select_block import Blocks
from streamsql.plan.lowering.shape import Op, Shape
from streamsql.plan.lowering.sources import Sources, mentioned
from streamsql.plan.lowering.window_tables import groups_by_window


@dataclass(frozen=True)
class Lowered:
    """node: the calls; shape: its streaming operations; as_text: why it goes to Spark as text, if it does."""

    node: Node
    shape: Shape
    as_text: str = ""


def lower(text: str, sources: Sources) -> Lowered:
    """The calls of a query. The relations that it reads are added to sources.

    Raises faults, with spans in text, for errors that Spark could not accept either, such as a bad delay.
    """
    own, origin = read_instead(text, sources.catalog)
    if own == text:
        return _lower_text(text, sources)
    with origin.errors():
        lowered = _lower_text(own, sources)
    return replace(lowered, shape=lowered.shape.placed(origin))


def _lower_text(text: str, sources: Sources) -> Lowered:
    query = read_query(text)
    check_window_functions(query)
    check_distinct_on(query)
    for sentence in likely_mistakes(query):
        sources.note(Note("OTHER_MEANING", sentence))
    keeps_keys, sources.keeps_keys = sources.keeps_keys, False
    if not sources.depth:
        # These words include those of the queries of the streams below.
        sources.words |= mentioned(query, sources.catalog)
    sources.depth += 1
    try:
        if sources.depth == 1:
            sources.define_deep_streams(query)
        return _lower(query, sources, keeps_keys)
    finally:
        sources.depth -= 1


def _lower(query: Query, sources: Sources, keeps_keys: bool) -> Lowered:
    names = lower_own_relations(query, sources)
    sources.register_functions(query.calls)
    before = sources.state()
    try:
        lowering = _Lowering(query, names, sources, keeps_keys=keeps_keys)
        lowered = lowering.whole()
        if not lowering.left:
            return lowered
        if keeps_keys:  # the text hides nothing
            sources.restore(before)
            lowering = _Lowering(query, names, sources)
            lowered = lowering.whole()
        reason, shape = Unknown(lowering.left), lowered.shape
        messages = list(sources.notes), list(sources.cautions)
    except (Unknown, RecursionError) as problem:
        reason = problem if isinstance(problem, Unknown) else Unknown("the query is nested too deeply")
        shape, messages = None, None
    for words, span in query.own_clauses:
        streaming = any(isinstance(sources.catalog.relation(r.name), Stream) for r in query.relations)
        raise RuleFault(
            f"{words} is not supported here: {reason}",
            hint=_OWN_HINTS[words],
            span=getattr(reason, "span", span),
            # Over tables a window table is a call of Spark's, which is supported anywhere.
            code="NOT_ON_STREAMS" if streaming and words == WINDOW_TABLE else "CLAUSE_NOT_SUPPORTED",
        ) from None
    sources.restore(before)
    if messages:
        sources.notes, sources.cautions = messages
    return _as_text(query, names, sources, shape, str(reason))


def _as_text(
    query: Query, names: dict[str, str], sources: Sources, shape: Shape | None, reason: str
) -> Lowered:
    """One spark.sql over views. shape: the shape of the query, if it is known."""
    streaming = sources.register_views(query, own=names) or query.has_stream
    refusal = refused_on_a_stream(query, sources.catalog) if streaming else None
    if refusal:
        raise refusal from None
    text = relations_instead(with_own_names(query, names), (r.name for r in query.relations), sources.catalog)
    node = Var("spark").call("sql", text)
    if shape is None:
        filters = (Op("filter", Span(0, len(query.text))),) if query.seems_to_filter_groups else ()
        processors = (op for _, of in sources.calls.values() for op in of.ops if op.kind == "stateful")
        ops = (*processors, *filters)
        shape = Shape(streaming, complete=False, groups=query.seems_to_group, ops=ops)
    shape = replace(shape, ops=tuple(replace(op, reads=()) for op in shape.ops))
    return Lowered(node, shape, reason)


def lower_statement(text: str, sources: Sources) -> tuple[str, bool]:
    """The text of a Spark statement with names in place of console relations, and whether it reads a stream.
    Each stream and live table that it can read is registered as a view.
    """
    query = read_query(view_instead(text, sources.catalog))
    names = lower_own_relations(query, sources)
    queries = [query, *map(read_query, executed_texts(text))]
    for inner in queries:
        sources.register_functions(inner.calls)
    named = [n.name for inner in queries for n in inner.names]
    streaming = sources.register_names([*named, *names.values()])
    relations = [r.name for inner in queries for r in inner.relations]
    if streaming and relations:
        # Not by a column or an alias that has the name of a stream.
        streaming = sources.register_names([*relations, *names.values()])
    own = with_own_names(query, names)
    if has_query(text) and (names or sources.views or sources.live):
        check_window_functions(query)
    return own, streaming


def node_and_shape(text: str, sources: Sources) -> tuple[Node, Shape]:
    """The calls and the shape of a query; see `lower`."""
    lowered = lower(text, sources)
    return lowered.node, lowered.shape


WINDOW_TABLE = "a window table"
_OWN_HINTS = {
    "DISTINCT ON": "put it into a sub-query: SELECT … FROM (SELECT DISTINCT ON (id) * FROM …)",
    WINDOW_TABLE: "GROUP BY window(ts, '10 minutes') is Spark's form of it",
}


class _Lowering(Blocks):
    def whole(self) -> Lowered:
        if self.read.body is None:
            raise Unknown(self.read.reason)
        if self.sources.changed_language:
            raise Unknown(f"{self.sources.changed_language[0]} changes what the text means")
        if has_python_aggregate(self.read.calls, self.sources.catalog):
            raise Unknown("the query has a clause that is left to Spark")
        frame = self.body(self.read.body)
        return Lowered(frame.node, frame.shape)

    def body(self, body: Body) -> Frame:
        outer, outer_sorted, keeps_keys = dict(self.ctes), self.sorted, self.keeps_keys
        self.sorted, carries_time = body.order_by is not None, self.carries_time
        on_the_way = ctes_on_the_way(body) if keeps_keys and body.ctes else frozenset[str]()
        for cte in body.ctes:
            self.keeps_keys = cte.name.casefold() in on_the_way
            self.carries_time = body.block is not None and groups_by_window(body.block)
            self.cte(cte)
        self.carries_time = carries_time
        self.keeps_keys = keeps_keys and is_plain_body(body)
        frame = self.term(body.term, self.pushed_limit(body))
        if body.tails:
            frame = self.set_operation(frame, body.tails)
        frame = self.order(frame, body.order_by).shown()
        if body.sort_by:
            self.leave("SORT BY")
            frame = frame.then(Op("order", body.sort_by))
        for clause, method in ((body.offset, "offset"), (body.limit, "limit")):
            if clause:
                frame = self.count_clause(frame, clause, method)
        self.ctes, self.sorted, self.keeps_keys = outer, outer_sorted, keeps_keys
        return frame

    def cte(self, cte: Cte) -> None:
        frame = self.body(cte.query)
        if cte.columns:
            frame = self.with_names(frame, cte.columns)
        name = self.sources.free_variable(cte.name)
        self.sources.program.append(Assign(name, frame.node))
        self.ctes[cte.name.casefold()] = (Var(name), frame.shape)

    def pushed_limit(self, body: Body) -> int | None:
        """The LIMIT that can be pushed down to a live table: only if all other work is row by row."""
        select = body.block
        if body.limit is None or body.order_by or body.offset or select is None:
            return None
        if select.where or select.group_by or select.having or select.distinct:
            return None
        expressions = [i.expression for i in select.items]
        one_to_one = not any(e.aggregates or e.generates or e.has_window_function for e in expressions)
        return body.limit.expression.whole_number if one_to_one and select.reads_one_relation else None

    def set_operation(self, frame: Frame, tails: tuple[SetTail, ...]) -> Frame:
        frame = frame.shown()
        union, streaming, complete = frame.node, frame.shape.streaming, frame.shape.complete
        ops, grouped = list(frame.shape.ops), bool(frame.shape.aggregates)
        # As in Spark, the names and the event time are those of the first side. Keys do not identify a group,
        # because both sides can have a group with the same keys.
        for tail in tails:
            right = self.term(tail.term, None).shown()
            sides = (streaming, right.shape.streaming)
            streaming, complete = any(sides), complete and right.shape.complete
            ops += right.shape.ops
            half = grouped != bool(right.shape.aggregates)
            grouped = grouped and not half
            if streaming:
                ops.append(Op(tail.kind, tail.span, len(ops), sides=sides, half=half))
            union = union.call("union", right.node)
            if tail.kind != "union":
                self.leave(tail.kind.upper())
                if tail.every:
                    raise Unknown(f"{tail.kind.upper()} ALL")
            elif not tail.every and streaming:
                self.leave("UNION without ALL is Spark's distinct")
                self.caution_distinct("UNION without ALL", frame.shape)
                ops.append(Op("distinct", tail.span, len(ops), bool(frame.shape.event_time)))
            elif not tail.every:
                union = union.call("distinct")
        shape = Shape(streaming, frame.shape.columns, frame.shape.event_time, tuple(ops), complete)
        return Frame(union, shape)

    def term(self, term: Block | Body, limit: int | None) -> Frame:
        return self.body(term) if isinstance(term, Body) else self.select(term, limit)

    def order(self, frame: Frame, clause: OrderBy | None) -> Frame:
        if clause is None:
            return frame
        keys: list[Node] = []
        for key in clause.keys:
            expression = self.checked(key.expression)
            text = expression.text
            if text.upper() == "ALL":
                raise Unknown("ORDER BY ALL")
            if expression.aggregates and (not frame.aggregated or frame.filtered_groups):
                raise Unknown("ORDER BY an aggregation that is not in the SELECT list")
            if frame.distinct is not None and not expression.column_names() <= frame.distinct:
                raise Unknown("ORDER BY an expression that SELECT DISTINCT may not select")
            place = expression.ordinal
            if place is not None and frame.hidden:
                # Ordinals also count the hidden columns, which come first.
                if frame.width is None or place > frame.width:
                    raise Unknown("ORDER BY has an ordinal that is out of range")
                text = str(place + len(frame.hidden))
            keys.append(expr(text).call(key.method))
        return replace(
            frame, node=frame.node.call("orderBy", *keys), shape=frame.shape.then(Op("order", clause.span))
        )

    def count_clause(self, frame: Frame, clause: Clause, method: str) -> Frame:
        number = clause.expression.whole_number
        if number is None:
            raise Unknown(f"{method.upper()} {clause.expression.text}")
        op = Op(method, clause.span)
        return replace(frame, node=frame.node.call(method, number), shape=frame.shape.then(op))
