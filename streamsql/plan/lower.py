"""A SELECT to DataFrame calls: one method for each clause (FROM in relations.py, GROUP BY in grouping.py, the
rest of a block in blocks.py; here what stands around blocks).

A relational clause becomes a method; a scalar expression stays the analyst's text in F.expr.
A query whose shape is not known here (Unknown) becomes one spark.sql(text) over registered
views, so nothing that Spark accepts is refused for the lowering's sake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamsql.calls import Assign, Node, Var, expr
from streamsql.errors import RuleFault, SyntaxFault
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import load, text_of
from streamsql.language.tokens import Token, tokenize
from streamsql.plan.blocks import Blocks
from streamsql.plan.frames import Frame, Unknown
from streamsql.plan.functions import has_python_aggregate, refused_on_a_stream
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources, mentioned
from streamsql.plan.stateful import lower_calls
from streamsql.plan.texts import (
    direction,
    is_whole,
    names_in,
    ordinal,
)


@dataclass(frozen=True)
class Lowered:
    """node: the calls; shape: what streaming makes of it; as_text: why it went to Spark as text."""

    node: Node
    shape: Shape
    as_text: str = ""


def lower(text: str, sources: Sources) -> Lowered:
    """The calls of a query. sources gets the streams it reads.

    Raises placed faults (span in text) for what no reading of the text allows, such as a bad delay.
    """
    sources.words |= mentioned(text, sources.catalog)
    text = lower_calls(text, sources)
    sources.register_functions(text)
    tokens = tokenize(text)
    body = None if has_python_aggregate(tokens, sources.catalog) else _body(tokens)
    before, kept = len(sources.program), sources.state()
    told: tuple[list[str], list[str]] | None = None
    shape: Shape | None = None
    try:
        if body is None:
            raise Unknown("the query has a clause that is left to Spark")
        lowering = _Lowering(text, sources)
        lowered = lowering.query(body)
        if not lowering.left:
            return lowered
        shape, reason = lowered.shape, Unknown(lowering.left)
        told = list(sources.notes), list(sources.cautions)
    except (Unknown, RecursionError) as problem:
        reason = problem if isinstance(problem, Unknown) else Unknown("the query is nested very deeply")
    own = _own_word(body) if body is not None else None
    if own:
        raise RuleFault(
            f"{_OWN[own.name]} cannot stand here: {reason}",
            hint=_OWN_HINTS[own.name],
            span=getattr(reason, "span", own.span),
        ) from None
    del sources.program[before:]
    sources.restore(kept)
    if told:
        sources.notes, sources.cautions = told
    words = {t.upper for t in tokens if t.kind == "word"}
    streaming = sources.register_views(text) or "STREAM" in words
    refusal = refused_on_a_stream(tokens, sources.catalog) if streaming else None
    if refusal:
        raise refusal from None
    node = Var("spark").call("sql", text)
    if shape is not None:
        return Lowered(node, shape, str(reason))
    called = {name for name, _ in functions.calls(tokens)}
    groups = bool(words & {"GROUP", "DISTINCT", "AGGREGATE"} or called & functions.AGGREGATES)
    unknown = Shape(streaming, known=False, groups=groups, ops=sources.stateful_ops())
    return Lowered(node, unknown, str(reason))


def node_and_shape(text: str, sources: Sources) -> tuple[Node, Shape]:
    """The calls of a query and its shape, as `lower` gives them."""
    lowered = lower(text, sources)
    return lowered.node, lowered.shape


def _body(tokens: list[Token]) -> Parsed | None:
    """The clauses of a query; None when it has others than those of query.gram."""
    try:
        return load().match("QueryBody", tokens)[0]
    except SyntaxFault:
        return None


_OWN = {"DistinctOn": "DISTINCT ON", "DistinctWithin": "DISTINCT ON", "WindowTable": "a window table"}
_OWN_HINTS = {
    **dict.fromkeys(_OWN, "put it into a sub-query: SELECT … FROM (SELECT DISTINCT ON (id) * FROM …)"),
    "WindowTable": "GROUP BY window(ts, '10 minutes') is Spark's form of it",
}


def _own_word(node: Parsed) -> Parsed | None:
    """The first part of a query that Spark itself would not understand."""
    if node.name in _OWN:
        return node
    return next(filter(None, map(_own_word, node.parts)), None)


class _Lowering(Blocks):
    def query(self, body: Parsed) -> Lowered:
        frame = self.body(body)
        return Lowered(frame.node, frame.shape)

    def body(self, body: Parsed) -> Frame:
        outer, outer_sorted = dict(self.ctes), self.sorted
        self.sorted = body.has("OrderBy")
        with_clause = body.get("With")
        for cte in with_clause.all("Cte") if with_clause else []:
            self.cte(cte)
        operation = body.get("SetOperation")
        assert operation
        frame = self.set_operation(operation, self.pushed_limit(body))
        frame = self.order(frame, body.get("OrderBy")).shown()
        sort = body.get("SortBy")
        if sort:
            self.leave("SORT BY")
            frame = frame.then(Op("order", sort.span))
        for rule, method in (("Offset", "offset"), ("Limit", "limit")):
            clause = body.get(rule)
            if clause:
                frame = self.count_clause(frame, clause, method)
        self.ctes, self.sorted = outer, outer_sorted
        return frame

    def cte(self, cte: Parsed) -> None:
        nested, alias = cte.get("Nested"), cte.get("Alias")
        assert nested and alias
        frame = self.nested(nested)
        name = self.sources.free_variable(alias.value)
        self.sources.program.append(Assign(name, frame.node))
        self.ctes[alias.value.casefold()] = (Var(name), frame.shape)

    def nested(self, node: Parsed) -> Frame:
        body = node.get("QueryBody")
        assert body
        return self.body(body)

    def pushed_limit(self, body: Parsed) -> int | None:
        """The LIMIT that may go into the reading of a live table: row by row work above it only."""
        limit, operation = body.get("Limit"), body.get("SetOperation")
        assert operation
        if limit is None or body.has("OrderBy") or body.has("Offset") or len(operation.parts) > 1:
            return None
        select = operation.parts[0].get("SelectBlock")
        if select is None or any(select.has(r) for r in ("Where", "GroupBy", "Having", "Distinct")):
            return None
        texts = [text_of(self.source, i) for i in select.all("SelectItem")]
        grows = (functions.has_aggregate, functions.has_generator, functions.has_window_function)
        one_to_one = not any(test(t) for t in texts for test in grows)
        start = select.get("From")
        single = start is not None and len(start.parts) == 2 and len(start.parts[1].parts) == 1
        text = self.text(limit, "Expression")
        return int(text) if one_to_one and single and is_whole(text) else None

    def set_operation(self, node: Parsed, limit: int | None) -> Frame:
        terms = node.all("SetTerm")
        frame = self.term(terms[0] if terms else node.parts[0], limit)
        tails = node.all("SetTail")
        if not tails:
            return frame
        frame = frame.shown()
        union, streaming, known = frame.node, frame.shape.streaming, frame.shape.known
        ops = list(frame.shape.ops)
        # As in Spark, the names and the event time are those of the first side. A group of one side
        # cannot be told from one of another side by its keys.
        for tail in tails:
            right = self.term(tail.parts[-1], None).shown()
            sides = (streaming, right.shape.streaming)
            streaming, known = any(sides), known and right.shape.known
            ops += right.shape.ops
            kind = tail.parts[0].name.lower().replace("minus", "except")
            if streaming:
                ops.append(Op(kind, tail.span, len(ops), sides=sides))
            union = union.call("union", right.node)
            if kind != "union":
                self.leave(kind.upper())
                if tail.has("ALL"):
                    raise Unknown(f"{kind.upper()} ALL")
            elif not tail.has("ALL") and streaming:
                self.leave("UNION without ALL is Spark's distinct")
                self.caution_distinct("UNION without ALL", frame.shape)
                ops.append(Op("distinct", tail.span, len(ops), bool(frame.shape.event_time)))
            elif not tail.has("ALL"):
                union = union.call("distinct")
        shape = Shape(streaming, frame.shape.columns, frame.shape.event_time, tuple(ops), known)
        return Frame(union, shape)

    def term(self, node: Parsed, limit: int | None) -> Frame:
        nested = node.get("Nested")
        if nested:
            return self.nested(nested)
        select = node.get("SelectBlock")
        assert select
        return self.select(select, limit)

    def order(self, frame: Frame, clause: Parsed | None) -> Frame:
        if clause is None:
            return frame
        keys: list[Node] = []
        for part in clause.all("Expression"):
            text, method = direction(self.checked(text_of(self.source, part)))
            if text.upper() == "ALL":
                raise Unknown("ORDER BY ALL")
            if functions.has_aggregate(text) and (not frame.aggregated or frame.filtered_groups):
                raise Unknown("ORDER BY an aggregation that is not in the SELECT list")
            if frame.distinct is not None and not names_in(text) <= frame.distinct:
                raise Unknown("ORDER BY what SELECT DISTINCT may not give out")
            place = ordinal(text)
            if place is not None and frame.hidden:
                # Ordinals count the hidden columns too, and those come first.
                if frame.width is None or place > frame.width:
                    raise Unknown("ORDER BY names an item that is not there")
                text = str(place + len(frame.hidden))
            keys.append(expr(text).call(method))
        return replace(
            frame, node=frame.node.call("orderBy", *keys), shape=frame.shape.then(Op("order", clause.span))
        )

    def count_clause(self, frame: Frame, clause: Parsed, method: str) -> Frame:
        text = self.text(clause, "Expression")
        if not is_whole(text):
            raise Unknown(f"{method.upper()} {text}")
        op = Op(method, clause.span)
        return replace(frame, node=frame.node.call(method, int(text)), shape=frame.shape.then(op))
