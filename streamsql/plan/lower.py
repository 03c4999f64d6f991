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
from streamsql.plan.functions import has_python_aggregate, refused_on_a_stream
from streamsql.plan.shape import Op, Shape
from streamsql.plan.sources import Sources, watermarked
from streamsql.plan.stateful import lower_calls


class Unknown(Exception):
    """A shape that the lowering leaves to Spark; the text says which."""


@dataclass(frozen=True)
class Lowered:
    """node: the calls; shape: what streaming makes of it; as_text: why it went to Spark as text."""

    node: Node
    shape: Shape
    as_text: str = ""


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
    text = lower_calls(text, sources, node_and_shape)
    sources.register_functions(text)
    tokens = tokenize(text)
    body = None if has_python_aggregate(tokens, sources.catalog) else _body(tokens)
    before = len(sources.program)
    kept, kept_views, kept_live = dict(sources.shapes), set(sources.views), dict(sources.live)
    kept_functions = dict(sources.functions)
    try:
        if body is None:
            raise Unknown("the query has a clause that is left to Spark")
        return _Lowering(text, sources).query(body)
    except (Unknown, RecursionError) as problem:
        reason = problem if isinstance(problem, Unknown) else Unknown("the query is nested very deeply")
        if body is not None and _own_words(body):
            raise RuleFault(
                f"DISTINCT ON cannot stand here: {reason}",
                hint="put it into a sub-query: SELECT … FROM (SELECT DISTINCT ON (id) * FROM …)",
                span=getattr(reason, "span", None),
            ) from None
        del sources.program[before:]
        sources.shapes, sources.views, sources.live = kept, kept_views, kept_live
        sources.functions = kept_functions
        streaming = sources.register_views(text) or "STREAM" in {t.upper for t in tokens if t.kind == "word"}
        refusal = refused_on_a_stream(tokens, sources.catalog) if streaming else None
        if refusal:
            raise refusal from None
        node = Var("spark").call("sql", text)
        words = {t.upper for t in tokens if t.kind == "word"}
        called = {name for name, _ in functions.calls(tokens)}
        groups = bool(words & {"GROUP", "DISTINCT", "AGGREGATE"} or called & functions.AGGREGATES)
        shape = Shape(streaming, known=False, groups=groups, ops=sources.stateful_ops())
        return Lowered(node, shape, str(reason))


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


def _own_words(node: Parsed) -> bool:
    """Whether a query has a word that Spark itself would not understand."""
    return node.name in ("DistinctOn", "DistinctWithin") or any(_own_words(p) for p in node.parts)


# Spark's own name for a sub-query without one; it hides the columns that are not given out.
ANONYMOUS = "__auto_generated_subquery_name"
# The methods behind which a DataFrame still finds columns that it does not give out.
_HIDING = frozenset({"select", "agg", "drop"})
MOST_ROWS = 2**31 - 1


@dataclass
class _Frame:
    """A relation being built. hidden: columns to drop once the sort is done, which come first.
    width: how many columns come behind them, None when not known.
    distinct: the names of a SELECT DISTINCT, which alone may sort it; None when all may.
    """

    node: Node
    shape: Shape
    hidden: tuple[str, ...] = ()
    aggregated: bool = False
    filtered_groups: bool = False
    width: int | None = None
    distinct: frozenset[str] | None = None

    def shown(self) -> _Frame:
        """This relation without its hidden columns; the groups they told apart are gone with them."""
        if not self.hidden:
            return self
        return replace(self, node=self.node.call("drop", *self.hidden), hidden=(), aggregated=False)


class _Lowering:
    def __init__(self, text: str, sources: Sources) -> None:
        self.source = Source("", text)
        self.sources = sources
        self.ctes: dict[str, tuple[Node, Shape]] = {}
        self.sorted = False
        tokens = tokenize(text)
        # Words that stand before a dot anywhere: relations (or structs) asked for by name.
        self.qualified = {
            unquote(t).casefold()
            for t, after in pairwise(tokens)
            if t.kind in ("word", "quoted") and after.text == "."
        }

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
            self.sources.register_views(text)
        if any(t.kind == "hint" for t in tokenize(text)):
            raise Unknown("the query has a hint")
        return text

    # ---- FROM -----------------------------------------------------------------------------

    def set_operation(self, node: Parsed, limit: int | None) -> _Frame:
        terms = node.all("SetTerm")
        frame = self.term(terms[0] if terms else node.parts[0], limit)
        for tail in node.all("SetTail"):
            frame = frame.shown()
            right = self.term(tail.parts[-1], None).shown()
            shape = frame.shape.beside(right.shape)
            # A group of one side cannot be told from one of the other side by its keys.
            shape = replace(shape, columns=frame.shape.columns).with_keys(lambda name: None)
            shape = shape.then(Op("union", tail.span, sides=(frame.shape.streaming, right.shape.streaming)))
            both_time = frame.shape.event_time & right.shape.event_time
            shape = replace(shape, event_time=both_time or shape.event_time)
            union = frame.node.call("union", right.node)
            if not tail.has("ALL"):
                if shape.streaming:
                    raise Unknown("UNION without ALL is Spark's distinct")
                union = union.call("distinct")
            frame = _Frame(union, shape)
        return frame

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
            raise Unknown("a SELECT without FROM")
        joined = start.all("Joined")
        alone = len(joined) == 1 and not joined[0].has("Join")
        sealed = not alone or select.has("Where") or self.sorted or bool(self.qualified)
        frame: _Frame | None = None
        for node in joined:
            first = node.get("Relation")
            assert first
            right = self.relation(first, alone, sealed, limit)
            # As in Spark, the joins behind a comma see all that stands before it.
            frame = self.combine(frame, right, "cross", node, None) if frame else right
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
        shape = left.shape.beside(right.shape)
        equi = True
        if condition is None:
            if how not in ("cross", "inner"):
                raise Unknown(f"a {how} join without condition")
            node, equi = left.node.call("crossJoin", right.node), False
        else:
            using = condition.get("JoinUsing")
            if using:
                node = left.node.call("join", right.node, [c.value for c in using.all("ColumnName")], how)
                shape = replace(shape, columns=None)
            else:
                text = self.text(condition, "Expression")
                node = left.node.call("join", right.node, expr(text), how)
                equi = any(t.text in ("=", "==", "<=>") for t in tokenize(text))
        if how in ("left_semi", "left_anti"):
            shape = replace(shape, columns=left.shape.columns, event_time=left.shape.event_time)
        op = Op("join", place.span, how=how, sides=(left.shape.streaming, right.shape.streaming), equi=equi)
        return _Frame(node, shape.then(op))

    def relation(self, node: Parsed, alone: bool, sealed: bool, limit: int | None) -> _Frame:
        """sealed: whether the block could see columns or names that the relation does not give out."""
        nested, named, stream = node.get("Nested"), node.get("NamedTable"), node.get("StreamTable")
        default = ANONYMOUS
        if nested:
            inner = self.nested(nested)
            frame = _Frame(inner.node, inner.shape)
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
            frame = _Frame(watermarked(frame.node, mark), shape)
        alias = node.get("TableAlias")
        name = alias.text("RelationAlias") if alias else default
        derived = bool(nested) or default.casefold() in self.ctes or self.hides_columns(frame.node)
        wanted = not alone or default.casefold() in self.qualified or (sealed and derived)
        # A table of Spark brings its own, longer qualifier, which `db.t.c` may ask for.
        if alias or (wanted and (nested or not self.is_spark_table(default))):
            frame = replace(frame, node=frame.node.call("alias", name))
        return frame

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
            return _Frame(Var("spark").attr("readStream").call("table", table), Shape(True))
        return _Frame(*self.sources.relation(name, limit, table))

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
        return _Frame(frame.node.call("select", expr("*"), expr(item)), replace(frame.shape, columns=columns))

    # ---- SELECT ---------------------------------------------------------------------------

    def select(self, select: Parsed, limit: int | None) -> _Frame:
        if select.has("Qualify"):
            raise Unknown("QUALIFY")
        frame = self.from_clause(select, limit)
        where = select.get("Where")
        if where:
            text = self.text(where, "Expression")
            frame = replace(frame, node=frame.node.call("where", expr(text)))
            if frame.shape.aggregates:
                frame = replace(frame, shape=frame.shape.then(Op("filter", where.span)))
        items = [self.item(i) for i in select.all("SelectItem")]
        groups, having = select.get("GroupBy"), select.get("Having")
        for item in items:
            if functions.has_window_function(item.text):
                frame = replace(frame, shape=frame.shape.then(Op("over", item.span)))
        within = select.get("DistinctOn") or select.get("DistinctWithin")
        aggregated = any(functions.has_aggregate(i.text) for i in items)
        if groups or aggregated or (having and functions.has_aggregate(self.text(having, "Expression"))):
            if within:
                raise RuleUnknown("DISTINCT ON stands beside an aggregation", within.span)
            frame = self.aggregate(frame, items, groups, having, select)
        else:
            if having:
                raise Unknown("HAVING without an aggregation")
            if within:
                frame = self.distinct_on(frame, within)
            frame = self.project(frame, items)
        if select.has("Distinct"):
            if frame.shape.streaming:
                raise Unknown("SELECT DISTINCT is an aggregation in Spark")
            every = any(i.text == "*" for i in items)
            names = None if every else frozenset(i.name.casefold() for i in items)
            frame = frame.shown()
            frame = replace(frame, node=frame.node.call("distinct"), aggregated=False, distinct=names)
        starred = any("*" in (i.text[:1], i.text[-1:]) for i in items)
        return frame if starred else replace(frame, width=len(items))

    def item(self, node: Parsed) -> Item:
        text = self.text(node, "Expression")
        alias = node.get("AsAlias")
        if alias:
            names = tuple(a.value for a in alias.all("Alias"))
            # Spark allows parentheses behind a generator only, so they are kept.
            return Item(text, "", node.span, names) if alias.has("(") else Item(text, names[0], node.span)
        bare, implicit = functions.implicit_alias(text)
        return Item(bare, implicit, node.span)

    def distinct_on(self, frame: _Frame, node: Parsed) -> _Frame:
        texts = [text_of(self.source, e) for e in node.all("Expression")]
        names = [Item(t, "", node.span).name for t in texts]
        if not all(names):
            raise RuleUnknown(
                "DISTINCT ON takes columns; compute an expression in a sub-query first", node.span
            )
        method = "dropDuplicatesWithinWatermark" if node.has("WithinWatermark") else "dropDuplicates"
        op = Op(
            "distinct_on",
            node.span,
            watermarked=bool(frame.shape.event_time),
            window="within" if node.has("WithinWatermark") else "",
        )
        arguments = (names,) if names else ()
        return replace(frame, node=frame.node.call(method, *arguments), shape=frame.shape.then(op))

    def project(self, frame: _Frame, items: list[Item]) -> _Frame:
        shape = frame.shape
        columns: list[str] | None = []
        event_time: set[str] = set()
        for item in items:
            if "*" in (item.text[:1], item.text[-1:]):
                known = item.text == "*" and shape.columns is not None and columns is not None
                columns = [*(columns or ()), *(shape.columns or ())] if known else None
                event_time |= shape.event_time
                continue
            if columns is not None:
                columns = [*columns, *(item.aliases or (item.name,))]
            if is_event_time(item.text, shape.event_time) and (item.alias or item.name):
                event_time.add((item.alias or item.name).casefold())
        shape = replace(
            shape,
            columns=tuple(columns) if columns is not None and all(columns) else None,
            event_time=frozenset(event_time),
        )
        if len(items) == 1 and items[0].sql.strip() == "*":
            return replace(frame, shape=shape)
        star = any(i.text.rstrip().endswith("*") for i in items)
        out = {_column(i.text): i.alias or i.name for i in items if _column(i.text)}
        shape = shape.with_keys(lambda name: out.get(name.casefold()) or (name if star else None))
        return replace(frame, node=frame.node.call("select", *(expr(i.sql) for i in items)), shape=shape)

    # ---- GROUP BY -------------------------------------------------------------------------

    def aggregate(
        self, frame: _Frame, items: list[Item], groups: Parsed | None, having: Parsed | None, block: Parsed
    ) -> _Frame:
        if any(functions.has_generator(i.text) for i in items):
            raise Unknown("a generator beside an aggregation")
        keys = self.group_keys(frame, items, groups)
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
        if functions.has_aggregate(having_text) and _names_in(having_text) & renamed:
            raise Unknown("HAVING aggregates a column whose name is given to another")
        if having and any(functions.has_window_function(i.text) for i in items):
            raise Unknown("HAVING comes before a window function")
        if having:
            node = node.call("where", expr(having_text))
        shape = self.grouped_shape(frame.shape, items, keys, groups or block)
        if any(functions.has_distinct(i.text) for i in items):
            last = shape.ops[-1] if shape.streaming else None
            if last:
                shape = replace(shape, ops=(*shape.ops[:-1], replace(last, distinct=True)))
        if having:
            shape = shape.then(Op("filter", having.span))
        return _Frame(node, shape, hidden, True, functions.has_aggregate(having_text))

    def group_keys(self, frame: _Frame, items: list[Item], groups: Parsed | None) -> list[str]:
        texts = [self.checked(text_of(self.source, e)) for e in groups.all("Expression")] if groups else []
        for text in texts:
            tokens = tokenize(text)
            sets = any(a.upper == "GROUPING" and b.upper == "SETS" for a, b in pairwise(tokens))
            for word in (tokens[0].upper, tokens[-1].upper):
                if sets or word in ("ROLLUP", "CUBE") or text.upper() == "ALL":
                    raise Unknown(f"GROUP BY {'GROUPING SETS' if sets else word}")
        keys = [self.group_key(t, frame.shape, items) for t in texts]
        if any(functions.has_aggregate(k) for k in keys):
            raise Unknown("an aggregation as grouping key")
        return keys

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
        out: list[str] = []
        event_time: set[str] = set()
        for item in items:
            name = item.alias or item.name
            if is_event_time(item.text, shape.event_time):
                event_time.add((name or "window").casefold())
        names = tuple(i.alias or i.name or _call_name(i.text) for i in items)
        for key in keys:
            found = next((n for n, i in zip(names, items, strict=True) if n and _carries(i.text, key)), None)
            if found:
                out.append(found)
        window = next((w for k in keys for w in functions.WINDOWS if _call_name(k) == w), "")
        op = Op(
            "aggregate",
            place.span,
            watermarked=any(is_event_time(k, shape.event_time) for k in keys),
            window=window,
            only_window=len(keys) == 1,
            keys=tuple(out) if len(out) == len(keys) else None,
        )
        return replace(
            shape.then(op),
            columns=names if all(names) else None,
            event_time=frozenset(event_time),
        )

    # ---- ORDER BY, LIMIT ------------------------------------------------------------------

    def order(self, frame: _Frame, clause: Parsed | None) -> _Frame:
        if clause is None:
            return frame
        keys: list[Node] = []
        for part in clause.all("Expression"):
            text, method = _direction(self.checked(text_of(self.source, part)))
            if text.upper() == "ALL":
                raise Unknown("ORDER BY ALL")
            if functions.has_aggregate(text) and (not frame.aggregated or frame.filtered_groups):
                raise Unknown("ORDER BY an aggregation that is not in the SELECT list")
            if frame.distinct is not None and not _names_in(text) <= frame.distinct:
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


class RuleUnknown(Unknown):
    """Something of our own language that has no reading; it becomes an error, not a fallback."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as Spark takes it for LIMIT and for an item's place."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MOST_ROWS


def ordinal(text: str) -> int | None:
    """The place of an item in the SELECT list that `2` or `(2)` names."""
    inside = [t.text for t in tokenize(text) if t.text not in ("(", ")")]
    return int(inside[0]) if len(inside) == 1 and is_whole(inside[0]) else None


def _names_in(text: str) -> set[str]:
    """The words of an expression that may be columns (the last one of a dotted name), folded."""
    tokens = tokenize(text)
    after = [t.text for t in tokens[1:]] + [""]
    return {
        unquote(t).casefold()
        for t, follows in zip(tokens, after, strict=True)
        if t.kind in ("word", "quoted") and follows not in ("(", ".")
    }


def _direction(text: str) -> tuple[str, str]:
    """`x DESC NULLS LAST` → ("x", "desc_nulls_last")."""
    tokens = tokenize(text)
    nulls, method = "", "asc"
    if len(tokens) > 2 and tokens[-2].upper == "NULLS":
        nulls = f"_nulls_{tokens[-1].text.lower()}"
        tokens = tokens[:-2]
    if len(tokens) > 1 and tokens[-1].upper in ("ASC", "DESC"):
        method = tokens[-1].text.lower()
        tokens = tokens[:-1]
    return text[: tokens[-1].end], method + nulls


def _column(text: str) -> str:
    """The folded name of the column that an expression is: k for `k` and `t.k`; empty for others."""
    tokens = tokenize(text)
    plain = len(tokens) in (1, 3) and tokens[0].kind in ("word", "quoted")
    if not plain or (len(tokens) == 3 and tokens[1].text != "."):
        return ""
    return tokens[-1].text.strip("`").casefold()


def _call_name(text: str) -> str:
    """`window` for `window(ts, '5 minutes')`; empty when the text is not one call."""
    tokens = tokenize(text)
    if len(tokens) > 2 and tokens[1].text == "(" and functions.closing(tokens, 1) == len(tokens) - 1:
        return tokens[0].text.lower()
    return ""


def _carries(item: str, key: str) -> bool:
    """Whether an output column tells the groups of a key apart: it is the key, or for a window its
    start or end (a session's start, since sessions of one key do not overlap).
    """
    if functions.same(item, key):
        return True
    last = functions.normal(item)
    name = _call_name(key) or functions.normal(key)[-1]
    fields = (("start",), ("end",))
    if len(last) == 3 and last[0] == name and last[1] == "." and (last[2],) in fields:
        return True
    # t.k and k name the same column when one of them is bare.
    a, b = functions.normal(item), functions.normal(key)
    return len(a) + len(b) == 4 and a[-1] == b[-1] and (len(a) == 1 or len(b) == 1)


def is_event_time(text: str, event_time: frozenset[str]) -> bool:
    """Whether an expression holds the event time of a watermark: the column, or a window of it."""
    tokens = tokenize(text)
    names = [t.text.strip("`").casefold() for t in tokens]
    if len(tokens) in (1, 3) and names[-1] in event_time and (len(tokens) == 1 or tokens[1].text == "."):
        return True
    if _call_name(text) in ("window", "session_window", "window_time") and len(tokens) > 3:
        comma = next((i for i, t in enumerate(tokens) if t.text == ","), len(tokens) - 1)
        return is_event_time(text[tokens[2].start : tokens[comma - 1].end], event_time)
    return False
