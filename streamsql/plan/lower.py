"""A SELECT to DataFrame calls: one function for each clause.

A relational clause becomes a method; a scalar expression stays the analyst's text in F.expr.
A query whose shape is not known here (Unknown) becomes one spark.sql(text) over registered
views, so nothing that Spark accepts is refused for the lowering's sake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from streamsql.calls import Assign, Attr, Call, Node, Var, expr
from streamsql.catalog import Sink
from streamsql.errors import RuleFault, Source, Span, SyntaxFault
from streamsql.language import functions
from streamsql.language.grammar import Node as Parsed
from streamsql.language.grammar import load, text_of
from streamsql.language.statements.base import watermark_of
from streamsql.language.tokens import Token, quote_name, tokenize, unquote
from streamsql.plan import firsts, ranges, windows
from streamsql.plan.functions import has_python_aggregate, refused_on_a_stream
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources, mentioned, watermarked
from streamsql.plan.stateful import lower_calls
from streamsql.plan.texts import (
    call_name,
    carries,
    column,
    direction,
    is_event_time,
    is_whole,
    names_in,
    ordinal,
)


class Unknown(Exception):
    """A shape that the lowering leaves to Spark; the text says which."""


@dataclass(frozen=True)
class Lowered:
    """node: the calls; shape: what streaming makes of it; as_text: why it went to Spark as text."""

    node: Node
    shape: Shape
    as_text: str = ""


def _without(item: Item, fields: tuple[str, ...]) -> str:
    """An item's text, a `*` without the fields of messages that it would bring."""
    if not item.text.endswith("*"):
        return item.sql
    table = item.text.removesuffix("*").casefold()
    left_out = [f for f in fields if f.casefold().startswith(table)]
    return f"{item.text} EXCEPT ({', '.join(left_out)})" if left_out else item.sql


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list."""

    text: str
    alias: str
    span: Span
    aliases: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        if self.aliases:
            return f"{self.text} AS ({', '.join(map(quote_name, self.aliases))})"
        return f"{self.text} AS {quote_name(self.alias)}" if self.alias else self.text

    @property
    def name(self) -> str:
        """The column name that comes out, as far as it is a plain one."""
        if self.alias:
            return self.alias
        words = tokenize(self.text)
        plain = all(t.kind in ("word", "quoted") or t.text == "." for t in words)
        return words[-1].text.strip("`") if plain and words else ""


def lower(text: str, sources: Sources) -> Lowered:
    """The calls of a query. sources gets the streams it reads.

    Raises placed faults (span in text) for what no reading of the text allows, such as a bad delay.
    """
    sources.words |= mentioned(text, sources.catalog)
    text = lower_calls(text, sources, node_and_shape)
    sources.register_functions(text)
    tokens = tokenize(text)
    body = None if has_python_aggregate(tokens, sources.catalog) else _body(tokens)
    before, kept = len(sources.program), sources.state()
    shape: Shape | None = None
    try:
        if body is None:
            raise Unknown("the query has a clause that is left to Spark")
        lowering = _Lowering(text, sources)
        lowered = lowering.query(body)
        if not lowering.left:
            return lowered
        shape, reason = lowered.shape, Unknown(lowering.left)
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


# Spark's own name for a sub-query without one; it hides the columns that are not given out.
ANONYMOUS = "__auto_generated_subquery_name"
# The methods behind which a DataFrame still finds columns that it does not give out.
_HIDING = frozenset({"select", "agg", "drop"})


@dataclass
class _Frame:
    """A relation being built. hidden: columns to drop once the sort is done, which come first.
    width: how many columns come behind them, None when not known.
    distinct: the names of a SELECT DISTINCT, which alone may sort it; None when all may.
    names: what its relations are called, folded; window: the window table that it is or holds.
    """

    node: Node
    shape: Shape
    hidden: tuple[str, ...] = ()
    aggregated: bool = False
    filtered_groups: bool = False
    width: int | None = None
    distinct: frozenset[str] | None = None
    names: frozenset[str] = frozenset()
    window: windows.WindowTable | None = None

    def then(self, op: Op) -> _Frame:
        """This relation after one more operation."""
        return replace(self, shape=self.shape.then(op))

    @property
    def side(self) -> ranges.Side:
        """What the condition of a join may name of it."""
        columns = self.shape.columns
        folded = None if columns is None else frozenset(c.casefold() for c in columns)
        return ranges.Side(self.names, folded, self.shape.event_time)

    def shown(self) -> _Frame:
        """This relation without its hidden columns; the groups they told apart are gone with them."""
        if not self.hidden:
            return self
        return replace(self, node=self.node.call("drop", *self.hidden), hidden=(), aggregated=False)


def _unmarked(side: _Frame, other: _Frame) -> frozenset[str]:
    """The columns of a side, with the names of its relations, of which only another side's is event time."""
    alone = other.shape.event_time - side.shape.event_time
    return side.shape.unmarked | {f"{name}.{column}" for name in side.names for column in alone}


class _Lowering:
    def __init__(self, text: str, sources: Sources) -> None:
        self.source = Source("", text)
        self.sources = sources
        self.ctes: dict[str, tuple[Node, Shape]] = {}
        self.sorted = False
        self.left = ""
        # Of the block at hand: its SESSION table, and whether it has a WHERE; names that it wants to be 1.
        self.window: _Frame | None = None
        self.filtered = False
        self.wanted = frozenset[str]()
        tokens = tokenize(text)
        # Words that stand before a dot anywhere: relations (or structs) asked for by name.
        self.qualified = {
            unquote(t).casefold()
            for t, after in pairwise(tokens)
            if t.kind in ("word", "quoted") and after.text == "."
        }

    def leave(self, reason: str) -> None:
        """The whole text goes to Spark, but what streaming makes of it is still found out here."""
        self.left = self.left or reason

    def query(self, body: Parsed) -> Lowered:
        frame = self.body(body)
        return Lowered(frame.node, frame.shape)

    def body(self, body: Parsed) -> _Frame:
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

    def nested(self, node: Parsed) -> _Frame:
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

    def text(self, node: Parsed, rule: str) -> str:
        part = node.get(rule)
        assert part
        return self.checked(text_of(self.source, part))

    def checked(self, text: str) -> str:
        """An expression's text; what it needs around it is seen to here."""
        if functions.has_subquery(text):
            if self.ctes:
                raise Unknown("an expression reads a WITH query")
            if self.sources.register_views(text):
                raise Unknown("an expression reads a stream")
        if any(t.kind == "hint" for t in tokenize(text)):
            raise Unknown("the query has a hint")
        return windows.with_session_columns(text, self.window.names) if self.window else text

    # ---- FROM -----------------------------------------------------------------------------

    def set_operation(self, node: Parsed, limit: int | None) -> _Frame:
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
                ops.append(Op("distinct", tail.span, len(ops), bool(frame.shape.event_time)))
            elif not tail.has("ALL"):
                union = union.call("distinct")
        shape = Shape(streaming, frame.shape.columns, frame.shape.event_time, tuple(ops), known)
        return _Frame(union, shape)

    def term(self, node: Parsed, limit: int | None) -> _Frame:
        nested = node.get("Nested")
        if nested:
            return self.nested(nested)
        select = node.get("SelectBlock")
        assert select
        return self.select(select, limit)

    def from_clause(self, select: Parsed, limit: int | None) -> _Frame:
        start = select.get("From")
        if start is None:
            self.leave("a SELECT without FROM")
            return _Frame(Var("spark"), Shape())
        joined = start.all("Joined")
        alone = len(joined) == 1 and not joined[0].has("Join")
        sealed = not alone or select.has("Where") or self.sorted or bool(self.qualified)
        frame: _Frame | None = None
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

    def joined(self, frame: _Frame, node: Parsed) -> _Frame:
        for join in node.all("Join"):
            relation, condition, kind = join.get("Relation"), join.get("JoinCondition"), join.get("JoinKind")
            assert relation
            right = self.relation(relation, False, True, None)
            words = [p.name for p in kind.parts if p.name != "OUTER"] if kind else ["INNER"]
            how = "_".join(words).lower()
            how = {"semi": "left_semi", "anti": "left_anti"}.get(how, how)
            frame = self.combine(frame, right, how, join, condition)
        return frame

    def combine(
        self, left: _Frame, right: _Frame, how: str, place: Parsed, condition: Parsed | None
    ) -> _Frame:
        for side in (left, right):
            if side.window and side.window.session:
                raise side.window.refuse("a SESSION table cannot be joined", _SESSION_ONLY)
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
        return _Frame(
            node, shape.then(op), names=left.names | right.names, window=left.window or right.window
        )

    def relation(self, node: Parsed, alone: bool, sealed: bool, limit: int | None) -> _Frame:
        """sealed: whether the block could see columns or names that the relation does not give out."""
        nested, named, stream = node.get("Nested"), node.get("NamedTable"), node.get("StreamTable")
        table = node.get("WindowTable")
        default = ANONYMOUS
        if nested:
            inner = self.nested(nested)
            frame = _Frame(inner.node, inner.shape)
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
            frame = _Frame(watermarked(frame.node, mark), shape.then(Op("watermark", node.span)))
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

    def sampled(self, frame: _Frame, node: Parsed) -> _Frame:
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

    def window_table(self, node: Parsed) -> tuple[_Frame, str]:
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
        frame = _Frame(frame.node, frame.shape, window=table)
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

    def named(self, part: Parsed, as_stream: bool, limit: int | None) -> _Frame:
        name, written = part.text("RelationName"), self.text(part, "RelationName")
        if name.casefold() in self.ctes:
            return _Frame(*self.ctes[name.casefold()])
        found = self.sources.catalog.relation(name)
        table = written if "`" in written else name
        if as_stream and (found is None or isinstance(found, Sink)):
            view = self.sources.catalog.tables.get(name.casefold())
            shape = Shape(True, known=view is None or not view.streaming)
            return _Frame(Var("spark").attr("readStream").call("table", table), shape)
        node, shape = self.sources.relation(name, limit, table)
        return _Frame(node, shape.at(part.span))

    def lateral_view(self, frame: _Frame, view: Parsed) -> _Frame:
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

    # ---- SELECT ---------------------------------------------------------------------------

    def select(self, select: Parsed, limit: int | None) -> _Frame:
        outer, outer_filtered = self.window, self.filtered
        self.window, self.filtered = None, select.has("Where")
        try:
            return self.block(select, limit)
        finally:
            self.window, self.filtered = outer, outer_filtered

    def block(self, select: Parsed, limit: int | None) -> _Frame:
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

    def where(self, frame: _Frame, select: Parsed) -> _Frame:
        where = select.get("Where")
        if where is None:
            return frame
        text = self.text(where, "Expression")
        frame = replace(frame, node=frame.node.call("where", expr(text)))
        if functions.has_now(text):
            frame = frame.then(Op("now", where.span))
        return frame.then(Op("filter", where.span)) if frame.shape.aggregates else frame

    def distinct(self, frame: _Frame, items: list[Item], node: Parsed) -> _Frame:
        """SELECT DISTINCT: Spark groups by all columns, which is not what DataFrame.distinct does on a
        stream (it deduplicates), so there the text goes to Spark.
        """
        every = any(i.text == "*" for i in items)
        names = None if every else frozenset(i.name.casefold() for i in items)
        frame = frame.shown()
        shape = frame.shape
        if shape.streaming:
            self.leave("SELECT DISTINCT is an aggregation in Spark")
            shape = replace(
                shape.then(Op("distinct", node.span, 0, bool(shape.event_time))), keys=shape.columns
            )
        made = frame.node.call("distinct")
        return replace(frame, node=made, shape=shape, aggregated=False, distinct=names)

    # ---- the first row of each key ----------------------------------------------------------

    def qualify(self, frame: _Frame, select: Parsed, items: list[Item], aggregated: bool) -> _Frame:
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

    def numbered(self, frame: _Frame, items: list[Item], item: Item) -> tuple[_Frame, list[Item]]:
        """The block with the row_number() that is wanted to be 1: only those rows, and the number is 1."""
        number = firsts.row_number(item.text)
        assert number
        frame = self.first(frame, number, item.span, f"the row_number() {item.alias} = 1")
        return frame, [replace(i, text="1") if i == item else i for i in items]

    def first(self, frame: _Frame, number: firsts.RowNumber, span: Span, words: str) -> _Frame:
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

    def distinct_on(self, frame: _Frame, node: Parsed) -> _Frame:
        texts = [text_of(self.source, e) for e in node.all("Expression")]
        names = [Item(t, "", node.span).name for t in texts]
        if not all(names):
            raise RuleUnknown(
                "DISTINCT ON takes columns; compute an expression in a sub-query first", node.span
            )
        return self.keep_first(frame, names, node.has("WithinWatermark"), node.span)

    def keep_first(self, frame: _Frame, names: list[str], within: bool, span: Span) -> _Frame:
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

    def project(self, frame: _Frame, items: list[Item]) -> _Frame:
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
        shown = (expr(_without(i, shape.fields)) for i in items)
        return replace(frame, node=frame.node.call("select", *shown), shape=replace(shape, fields=()))

    # ---- GROUP BY -------------------------------------------------------------------------

    def aggregate(
        self, frame: _Frame, items: list[Item], groups: Parsed | None, having: Parsed | None, block: Parsed
    ) -> _Frame:
        if any(functions.has_generator(i.text) for i in items):
            raise Unknown("a generator beside an aggregation")
        keys = self.window_keys(frame, self.group_keys(frame, items, groups))
        leading = len(keys) <= len(items) and all(
            functions.same(key, item.text) for key, item in zip(keys, items, strict=False)
        )
        rest = items[len(keys) :] if leading else items
        if leading and rest:
            shown = [expr(i.sql) for i in items[: len(keys)]]
            hidden: tuple[str, ...] = ()
        else:
            rest = items
            hidden = tuple(f"__key{n}" for n in range(1, len(keys) + 1))
            shown = [expr(k).call("alias", h) for k, h in zip(keys, hidden, strict=True)]
        node = frame.node.call("groupBy", *shown).call("agg", *(expr(i.sql) for i in rest))
        having_text = self.text(having, "Expression") if having else ""
        renamed = {i.alias.casefold() for i in items if i.alias and not functions.same(i.text, i.alias)}
        if functions.has_aggregate(having_text) and names_in(having_text) & renamed:
            raise Unknown("HAVING aggregates a column whose name is given to another")
        if having and any(functions.has_window_function(i.text) for i in items):
            raise Unknown("HAVING comes before a window function")
        if having:
            node = node.call("where", expr(having_text))
        shape = self.grouped_shape(frame.shape, items, keys, groups or block)
        if having:
            shape = shape.then(Op("filter", having.span))
        return _Frame(node, shape, hidden, True, functions.has_aggregate(having_text), names=frame.names)

    def group_keys(self, frame: _Frame, items: list[Item], groups: Parsed | None) -> list[str]:
        texts = [self.checked(text_of(self.source, e)) for e in groups.all("Expression")] if groups else []
        for text in texts:
            tokens = tokenize(text)
            sets = any(a.upper == "GROUPING" and b.upper == "SETS" for a, b in pairwise(tokens))
            if (
                sets
                or text.upper() == "ALL"
                or [t.upper for t in tokens[-2:]] in (["WITH", "CUBE"], ["WITH", "ROLLUP"])
            ):
                raise Unknown(f"GROUP BY {'GROUPING SETS' if sets else tokens[-1].upper}")
        texts = [inner for text in texts for inner in self.several(text)]
        keys = [self.group_key(t, frame.shape, items) for t in texts]
        if frame.window and frame.window.session:
            keys = self.session_keys(frame, frame.window, keys, groups)
        if any(functions.has_aggregate(k) for k in keys):
            raise Unknown("an aggregation as grouping key")
        return keys

    def several(self, text: str) -> list[str]:
        """The keys in ROLLUP (a, b) or CUBE (a, b), which is left to Spark; another key as it is."""
        tokens = tokenize(text)
        if tokens[0].upper not in ("ROLLUP", "CUBE") or len(tokens) < 3 or tokens[1].text != "(":
            return [text]
        self.leave(f"GROUP BY {tokens[0].upper}")
        if any(a.text == b.text == "(" for a, b in pairwise(tokens)):
            raise Unknown(f"GROUP BY {tokens[0].upper} of several columns at once")
        return [text[p[0].start : p[-1].end] for p in ranges.split(tokens[2:-1], (",",)) if p]

    def window_keys(self, frame: _Frame, keys: list[str]) -> list[str]:
        """The keys, with the window's time where its start or end is one: only that carries the watermark
        (it stands for the same window, so the groups are the same).
        """
        if not frame.window or frame.window.session:
            return keys
        found = [windows.column_in(k, frame.names) for k in keys]
        times = [q + windows.TIME for q, name in found if name in (windows.START, windows.END)]
        there = {name for _, name in found}
        return keys + times[:1] if times and windows.TIME not in there else keys

    def check_session(self, table: windows.WindowTable, select: Parsed) -> None:
        """A SESSION table is grouped by its window, at once."""
        if not select.has("GroupBy"):
            raise table.refuse("a SESSION table wants GROUP BY window_start, window_end", _SESSION_ONLY)
        where = select.get("Where")
        if where:
            raise table.refuse(
                "WHERE beside a SESSION table would filter behind the sessions",
                "Spark filters rows before it makes sessions: SESSION(TABLE (SELECT … WHERE …), …) does that",
                where.span,
            )

    def session_keys(
        self, frame: _Frame, table: windows.WindowTable, keys: list[str], groups: Parsed | None
    ) -> list[str]:
        """The grouping keys of Spark for those of a SESSION table: the session, and its partition."""
        assert groups
        mine = set(windows.session_fields())
        rest = [k for k in keys if k not in mine]
        if len(rest) == len(keys):
            raise table.refuse(
                "a SESSION table wants GROUP BY window_start, window_end", _SESSION_ONLY, groups.span
            )
        if {windows.column_in(k, frame.names)[1] for k in rest} != table.keys:
            raise table.refuse(
                "GROUP BY and PARTITION BY of a SESSION table name different columns",
                "Spark makes the sessions of each group, so both have to be the same",
                groups.span,
            )
        return [table.call, *rest]

    def group_key(self, text: str, shape: Shape, items: list[Item]) -> str:
        """A grouping key with ordinals and aliases put in, as Spark's analyzer does it."""
        place = ordinal(text)
        if place is not None:
            if not 1 <= place <= len(items):
                raise Unknown("GROUP BY names an item that is not there")
            return items[place - 1].text
        tokens = tokenize(text)
        if len(tokens) == 1 and tokens[0].kind in ("word", "quoted"):
            name = tokens[0].text.strip("`").casefold()
            aliased = [i for i in items if i.alias.casefold() == name and not functions.same(i.text, text)]
            if aliased:
                if shape.columns is None:
                    raise Unknown("a grouping key may be an alias or a column")
                if name not in (c.casefold() for c in shape.columns):
                    return aliased[0].text
        return text

    def grouped_shape(self, shape: Shape, items: list[Item], keys: list[str], place: Parsed) -> Shape:
        names = tuple(i.alias or i.name or call_name(i.text) for i in items)
        # A window of event time is event time, under its own name too.
        marked = [k for k in keys if is_event_time(k, shape.event_time, shape.unmarked)]
        marks = shape.event_time | {call_name(k) for k in marked} - {""}
        event_time = {
            n.casefold()
            for n, i in zip(names, items, strict=True)
            if is_event_time(i.text, marks, shape.unmarked)
        }
        # One of a window's columns tells it from others.
        told = [k for k in keys if column(k) not in windows.COLUMNS]
        out = [
            next((n for n, i in zip(names, items, strict=True) if n and carries(i.text, key)), None)
            for key in told
        ]
        if len(told) < len(keys):
            shown = (n for n, i in zip(names, items, strict=True) if column(i.text) in windows.COLUMNS)
            out.append(next(shown, None))
        window = next((w for k in keys for w in functions.WINDOWS if call_name(k) == w), "")
        op = Op(
            "aggregate",
            place.span,
            watermarked=bool(marked),
            window=window,
            only_window=len(keys) == 1,
            distinct=any(functions.has_distinct(i.text) for i in items),
        )
        found = [o for o in out if o]
        return replace(
            shape.then(op),
            fields=(),
            columns=names if all(names) else None,
            event_time=frozenset(event_time),
            keys=tuple(found) if len(found) == len(out) and not self.left else None,
            unmarked=frozenset(),
        )

    # ---- ORDER BY, LIMIT ------------------------------------------------------------------

    def order(self, frame: _Frame, clause: Parsed | None) -> _Frame:
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

    def count_clause(self, frame: _Frame, clause: Parsed, method: str) -> _Frame:
        text = self.text(clause, "Expression")
        if not is_whole(text):
            raise Unknown(f"{method.upper()} {text}")
        op = Op(method, clause.span)
        return replace(frame, node=frame.node.call(method, int(text)), shape=frame.shape.then(op))


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


_SESSION_ONLY = "Spark makes session windows only while grouping"


class RuleUnknown(Unknown):
    """Something of our own language that has no reading; it becomes an error, not a fallback."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span
