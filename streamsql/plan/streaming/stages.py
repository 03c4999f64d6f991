"""A query that Spark refuses on streams, split: the largest parts of it that run as streaming queries become
hidden live tables, the stages, and the rest reads those.

A part is a query in parentheses, a WITH query, a side of a set operation or a SELECT without its ORDER BY
and LIMIT. Where none of these can be a stage, the rows of the stream itself are kept: in one stage for all
places that read the stream so, with the rows that any of them needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connector
from streamsql.definitions import Stream
from streamsql.errors import Span
from streamsql.language.nested_queries import queries_in_parentheses, reads_all_columns, stands_alone
from streamsql.language.origin import edited
from streamsql.language.query import TOO_DEEP, Block, Body, Query, Relation, read_query
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.sources import columns_of
from streamsql.plan.lowering.window_tables import window_table

Ctes = tuple[tuple[str, str], ...]
"""WITH queries: the folded name of each, and the whole as it is written."""


class CannotSplit(Exception):
    """The text of the query cannot be taken apart; the reason. way: how to write it so that it can be."""

    def __init__(self, reason: str, way: str = "") -> None:
        super().__init__(reason)
        self.way = way


@dataclass
class Split:
    """stages: the SELECT of each stage by the name of its live table; text: the query over these."""

    stages: dict[str, str] = field(default_factory=dict)
    text: str = ""


def split(
    text: str,
    name: str,
    catalog: Catalog,
    runs: Callable[[str], bool],
    separator: str = "$",
    *,
    whole: bool = False,
) -> Split:
    """Split a query of that name. runs: whether the console runs a SELECT as a stage, with exact rows after
    each micro-batch; separator: stands in the names of the stages; whole: all of it may be one stage. Raises
    CannotSplit.
    """
    splitter = _Splitter(name + separator, catalog, runs)
    rest = splitter.text_over_stages(text, top=not whole)
    if not splitter.stages:
        raise CannotSplit("it reads no stream of the console")
    return Split(
        {name: part if isinstance(part, str) else part.text for name, part in splitter.stages.items()}, rest
    )


@dataclass
class _Rows:
    """The rows of a stream that a stage keeps. columns: None for all, also those that are not known; written:
    the SELECT of the only place that reads them, which may name an alias; filters: without it, the conditions
    of which each row meets one, None if all rows are kept.
    """

    stream: str
    columns: tuple[str, ...] | None
    filters: tuple[str, ...] | None
    written: str

    @property
    def text(self) -> str:
        """The SELECT of the stage."""
        if self.written:
            return self.written
        text = f"SELECT {_listed(self.columns)} FROM {quote_name(self.stream)}"
        return text if self.filters is None else f"{text} WHERE {' OR '.join(f'({f})' for f in self.filters)}"

    def may_join(self, other: _Rows, fields: tuple[str, ...]) -> bool:
        """Whether one stage can be both. `*` would take the fields of messages for columns."""
        named = {*(self.columns or ()), *(other.columns or ())}
        whole = self.columns is None or other.columns is None
        return self.stream == other.stream and not (whole and named & set(fields))

    def with_those_of(self, other: _Rows, ordered: tuple[str, ...]) -> _Rows:
        """The rows that either needs. ordered: the columns of the stream and the fields of its messages."""
        if other.text == self.text:
            return self
        columns = None
        if self.columns is not None and other.columns is not None:
            columns = tuple(c for c in ordered if c in {*self.columns, *other.columns})
        filters = None
        if self.filters is not None and other.filters is not None:
            filters = tuple(dict.fromkeys((*self.filters, *other.filters)))
        return _Rows(self.stream, columns, filters, "")


class _Splitter:
    """stages: by its name the SELECT of each stage, or which rows of a stream it keeps."""

    def __init__(self, name: str, catalog: Catalog, runs: Callable[[str], bool]) -> None:
        self.name = name
        self.catalog = catalog
        self.runs = runs
        self.stages: dict[str, str | _Rows] = {}
        self.hidden = frozenset[str]()

    def text_over_stages(self, text: str, ctes: Ctes = (), *, top: bool = False) -> str:
        """A query with its stages in place of its parts. ctes: the WITH queries around it; they hide streams
        of their names.
        """
        query = read_query(text)
        if len(query.own_clauses) > sum(own.kind == "WindowTable" for own in query.own):
            raise CannotSplit("it has clauses that Spark does not have over tables")
        around, self.hidden = self.hidden, frozenset(name for name, _ in ctes)
        try:
            if query.body is None:
                return self.unread(query)
            edits: dict[Span, str] = {}
            self.body(query, query.body, ctes, edits, top=top)
            return edited(text, edits)
        finally:
            self.hidden = around

    def stage(self, part: str | _Rows) -> str:
        """The quoted name of the stage that a SELECT, or the rows of a stream, become. A SELECT that is
        written twice is one stage, and so are all rows of a stream.
        """
        for name, planned in self.stages.items():
            if planned == part:
                return quote_name(name)
            if (
                isinstance(planned, _Rows)
                and isinstance(part, _Rows)
                and planned.may_join(part, self.fields(part.stream))
            ):
                self.stages[name] = self.together(planned, part)
                return quote_name(name)
        name = f"{self.name}{len(self.stages) + 1}"
        self.stages[name] = part
        return quote_name(name)

    def together(self, rows: _Rows, others: _Rows) -> _Rows:
        """The rows that either needs, as one stage."""
        ordered = (*(self.columns(rows.stream) or ()), *self.fields(rows.stream))
        both = rows.with_those_of(others, ordered)
        return both if self.runs(both.text) else replace(both, filters=None, written="")

    # ---- the parts ------------------------------------------------------------------------

    def body(
        self, query: Query, body: Body, ctes: Ctes, edits: dict[Span, str], *, top: bool = False
    ) -> None:
        """ctes: the WITH queries that may be named in it."""
        if not self.reads_stream(query, body.span):
            return
        if not top and self.as_stage(query, body.span, ctes, edits):
            return
        for cte in body.ctes:
            self.body(query, cte.query, ctes, edits)
            ctes = (*ctes, (cte.name.casefold(), query.text[cte.span.start : cte.span.end]))
        terms = (body.term, *(tail.term for tail in body.tails))
        for term in terms:
            if isinstance(term, Body):
                self.body(query, term, ctes, edits)
            elif self.reads_stream(query, term.span):
                alone = top and len(terms) == 1 and term.span == body.span
                keys = _sorting(body, term) if len(terms) == 1 else {}
                if alone or keys is None or not self.as_stage(query, term.span, ctes, edits):
                    self.block(query, term, ctes, edits)
                else:
                    edits |= keys

    def as_stage(self, query: Query, span: Span, ctes: Ctes, edits: dict[Span, str]) -> bool:
        """Make a part a stage, if it can be one."""
        part = self.alone(query.text[span.start : span.end], ctes)
        if part:
            edits[span] = part
        return bool(part)

    def alone(self, text: str, ctes: Ctes) -> str:
        """A part as the SELECT of its stage; "" where it cannot be one."""
        if read_query(text).words & {name for name, _ in ctes}:
            text = f"WITH {', '.join(written for _, written in ctes)} {text}"
        if not stands_alone(read_query(text), self.columns) or not self.runs(text):
            return ""
        return f"SELECT * FROM {self.stage(text)}"

    def block(self, query: Query, block: Block, ctes: Ctes, edits: dict[Span, str]) -> None:
        inside = [r.span for r in block.relations]
        for relation in block.relations:
            if relation.query is not None:
                self.body(query, relation.query, ctes, edits)
            elif self.is_stream(relation.name):
                self.rows_of(query, relation, block if len(inside) == 1 else None, edits)
            elif relation.own is not None and self.reads_stream(query, relation.span):
                self.window_table(query, relation, ctes, edits)
        done = Span(0, 0)
        for span in queries_in_parentheses(query):
            nested = any(_within(span, other) for other in (*inside, done))
            if (
                _within(span, block.span)
                and span != block.span
                and not nested
                and self.reads_stream(query, span)
            ):
                text = query.text[span.start : span.end]
                edits[span] = self.alone(text, ctes) or self.text_over_stages(text, ctes, top=True)
                done = span

    def rows_of(self, query: Query, relation: Relation, block: Block | None, edits: dict[Span, str]) -> None:
        """Keep the rows of a stream. block: the SELECT, if it reads nothing else: its WHERE filters them."""
        name = next((n for n in query.relations if _within(n.span, relation.span)), None)
        if name is None:
            return  # a WITH query of that name
        named = relation.alias or relation.sample  # TABLESAMPLE stands before an alias
        alias = "" if named else f" AS {quote_name(relation.name.rpartition('.')[2])}"
        if relation.watermark or relation.stream:
            raise CannotSplit(f"FROM {relation.name} has a clause of its own")
        columns = None if relation.pivot else self.columns_in(query, relation.name)
        if relation.pivot or relation.sample:
            block = None  # WHERE filters what these give
        filtered = self.filtered(query, relation, block, columns) if block is not None else None
        edits[name.span] = self.rows(relation.name, filtered, columns=columns) + alias

    def filtered(
        self, query: Query, relation: Relation, block: Block, columns: tuple[str, ...] | None
    ) -> _Rows | None:
        """The rows of a stream that the WHERE of the only SELECT that reads them keeps; None where a stage
        cannot have the condition.
        """
        where = block.where
        if where is None or where.expression.has_subquery:
            return None
        alias = f" AS {quote_name(relation.alias)}" if relation.alias else ""
        clause = query.text[where.span.start : where.span.end]
        text = f"SELECT {_listed(columns)} FROM {quote_name(relation.name)}{alias} {clause}"
        if not stands_alone(read_query(text), self.columns) or not self.runs(text):
            return None
        names = {relation.alias.casefold(), relation.name.casefold(), ""}
        named = [c for c in where.expression.columns() if c[0] and c[0].casefold() in names]
        edits = {span: quote_name(column) for _, column, span in named}
        condition = edited(where.expression.text, edits, where.expression.span.start)
        if read_query(f"SELECT {condition}").words & (names - {""}):
            return _Rows(relation.name.casefold(), columns, None, text)  # such as alias.struct.field
        return _Rows(relation.name.casefold(), columns, (condition,), text)

    def rows(self, name: str, filtered: _Rows | None = None, *, columns: tuple[str, ...] | None) -> str:
        """What FROM reads in place of a stream: the stage with its rows, or the query of a stream that has
        one, in parentheses. filtered: the rows that are needed, if not all are.
        """
        text = f"SELECT {_listed(columns)} FROM {quote_name(name)}"
        stream = self.catalog.streams.get(name.casefold())
        if filtered is not None or self.runs(text):
            return self.stage(filtered or _Rows(name.casefold(), columns, None, text))
        if stream is None or not stream.query:
            raise CannotSplit(f"the rows of {name} cannot be kept")
        query_over = f"({self.text_over_stages(stream.query)})"
        watermark = stream.watermark
        if watermark is None or not watermark.computed:
            return query_over
        return (
            f"(SELECT *, {watermark.computed.text} AS {quote_name(watermark.column.value)} FROM {query_over})"
        )

    def window_table(self, query: Query, relation: Relation, ctes: Ctes, edits: dict[Span, str]) -> None:
        """Keep the rows that a window table reads. Over tables, TUMBLE and HOP become calls of window()."""
        own = relation.own
        if own is None or own.kind != "WindowTable":
            raise CannotSplit("a stateful processor is in its FROM")
        table = window_table(query.text, own.node)
        place, default = table.source.span, table.source_name
        text = query.text[place.start : place.end]
        if not default:
            source = self.alone(text, ctes) or self.text_over_stages(text, ctes)
        elif self.is_stream(default):
            source = self.rows(default, columns=self.columns_in(query, default))
        else:
            source = quote_name(default)
        alias = f" AS {quote_name(default)}" if default and not relation.alias else ""
        if table.session:
            edits[place] = source
            return
        source = f"{source} AS {quote_name(default)}" if default else f"({source})"
        edits[own.span] = f"({table.over(source)}){alias}"

    def unread(self, query: Query) -> str:
        """A query with clauses that are left to Spark: its queries in parentheses become stages, and the rows
        of the streams that it reads besides are kept, as WITH queries of their names.
        """
        if query.own or query.has_stream or query.reason == TOO_DEEP:
            raise CannotSplit(query.reason)
        edits: dict[Span, str] = {}
        for span in queries_in_parentheses(query):
            part = query.text[span.start : span.end]
            if any(_within(span, other) for other in edits) or read_query(part).words & query.named_queries:
                continue
            alone = self.reads_stream(query, span) and stands_alone(read_query(part), self.columns)
            if alone and self.runs(part):
                edits[span] = f"SELECT * FROM {self.stage(part)}"
        rest = [n for n in query.relations if not any(_within(n.span, span) for span in edits)]
        other_streams = dict[str, str]()
        for name in dict.fromkeys(n.name.casefold() for n in rest if self.is_stream(n.name)):
            rows = self.rows(name, columns=self.columns_in(query, name))
            other_streams[name] = f"{quote_name(name)} AS (SELECT * FROM {rows})"
        return _with_queries(query, other_streams, edits)

    # ---- questions ------------------------------------------------------------------------

    def is_stream(self, name: str) -> bool:
        return name.casefold() not in self.hidden and isinstance(self.catalog.relation(name), Stream)

    def reads_stream(self, query: Query, span: Span) -> bool:
        """Whether a part reads a stream, or a WITH query of which that is not known."""
        ctes = self.hidden | ({c.name.casefold() for c in query.body.ctes} if query.body else set())
        text = query.text[span.start : span.end]
        names = [n.name for n in query.relations if _within(n.span, span)]
        return any(map(self.is_stream, names)) or bool(ctes & read_query(text).words)

    def columns(self, name: str) -> tuple[str, ...] | None:
        entry = self.catalog.relation(name)
        return columns_of(entry) if isinstance(entry, Stream) else None

    def fields(self, name: str) -> tuple[str, ...]:
        """The fields of the messages of a stream."""
        entry = self.catalog.relation(name)
        if not isinstance(entry, Stream) or not entry.connector:
            return ()
        return tuple(f.name for f in connector(Name(entry.connector)).metadata(entry))

    def columns_in(self, query: Query, name: str) -> tuple[str, ...] | None:
        """The columns of a stream that a query may name, and the fields of messages; None for all columns.
        Raises CannotSplit.
        """
        columns = self.columns(name)
        fields = tuple(f for f in self.fields(name) if f.casefold() in query.words)
        if columns is None or reads_all_columns(query):
            if fields:
                way = "name the columns in place of *: then the query runs in stages"
                raise CannotSplit(f"it has * beside {fields[0]}", way)
            return None
        return (*(c for c in columns if c.casefold() in query.words), *fields) or columns[:1]


def _listed(columns: tuple[str, ...] | None) -> str:
    """Columns as a SELECT list."""
    return "*" if columns is None else ", ".join(map(quote_name, columns))


def _sorting(body: Body, block: Block) -> dict[Span, str] | None:
    """The keys of ORDER BY that are written otherwise over a stage of the SELECT: `t.k` as `k`. None where
    one is not a column that the SELECT gives.
    """
    given: dict[tuple[str, str], str] = {}
    for item in block.items:
        column, names = item.expression.column, item.aliases or (item.expression.output_name,)
        given |= {("", name.casefold()): "" for name in names if name}
        if column and column[0] and len(names) == 1:
            given[column[0].casefold(), column[1].casefold()] = quote_name(names[0])
    edits = dict[Span, str]()
    for key in body.order_by.keys if body.order_by else ():
        if key.expression.ordinal is not None:
            continue
        column = key.expression.column
        written = given.get((column[0].casefold(), column[1].casefold())) if column else None
        if written is None:
            return None
        if written:
            edits[key.expression.span] = written
    return edits


def _with_queries(query: Query, ctes: Mapping[str, str], edits: dict[Span, str]) -> str:
    """The edited text of a query with WITH queries around it, by their folded names."""
    listed, first = ", ".join(ctes.values()), query.tokens[0]
    if not ctes:
        return edited(query.text, edits)
    if ctes.keys() & query.named_queries:
        return f"WITH {listed} SELECT * FROM ({edited(query.text, edits).strip()})"
    if first.upper != "WITH":
        return f"WITH {listed} {edited(query.text, edits).strip()}"
    begin = query.tokens[1] if query.tokens[1].upper == "RECURSIVE" else first
    return edited(query.text, edits | {Span(begin.end, begin.end): f" {listed},"})


def _within(span: Span, outer: Span) -> bool:
    return outer.start <= span.start and span.end <= outer.end
