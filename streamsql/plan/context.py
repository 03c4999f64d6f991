"""The input of planning, and helpers that all plans share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.connectors.registry import connector
from streamsql.definitions import ON_SERVER, Sink, Stream, is_before, is_staged
from streamsql.errors import NameFault, RuleFault, Span, did_you_mean
from streamsql.language.nested_queries import in_queries
from streamsql.language.query import read_query
from streamsql.language.statements.base import Fragment, Name, Statement
from streamsql.plan.basic_plans import Plan
from streamsql.plan.lowering.as_written import as_written
from streamsql.plan.lowering.lower import Lowered, lower, node_and_shape
from streamsql.plan.lowering.read_instead import read_instead
from streamsql.plan.lowering.sources import Sources
from streamsql.plan.plans import Reads, Run
from streamsql.plan.sink_relations import read_of_sink


@dataclass(frozen=True)
class Server:
    """A server that runs the queries, as far as planning knows it; a feature tells what it lacks.

    address: its URL; checkpoints: its folder for checkpoints, "" if none is set; others: the folded names of
    active queries that the catalog does not have.
    """

    address: str
    checkpoints: str = ""
    others: frozenset[str] = frozenset()

    def check_statement(self, statement: Statement) -> None:
        """Raise RuleFault for a statement, or a clause of it, that the server does not take."""

    def check_plan(self, plan: Plan, statement: Statement) -> Plan:
        """The plan as the server executes it. Raises RuleFault for one that it cannot execute."""
        return plan

    def check_run(self, plan: Run, span: Span) -> Run:
        """The same for the plan of a query; also that of START QUERY."""
        return plan

    def check_followed(self, span: Span) -> None:
        """Raise RuleFault for a live table over live tables and streams, if it would not follow these."""


EXTENSIONS = "spark.sql.extensions"
"""The setting of classes that can bring another parser."""


@dataclass(frozen=True)
class Context:
    """The input of planning besides the statement: the catalog, the console's folders, the folder of the
    current script (here), the server, if the console runs on one, the settings of Spark that change what a
    text means (lowering/as_written.py), and whether Spark may have the parser of an extension. staged_rate:
    how many files or messages of a stream a staged change reads in a second, 0 for no limit; zone: the
    session's time zone, "" for that of this machine; open_change: the set that BEGIN CHANGE has opened, ""
    for none.
    """

    catalog: Catalog
    places: Places = Places("streamsql")
    here: str = ""
    stages: bool = True
    times: bool = True
    staged_rate: int = 0
    zone: str = ""
    open_change: str = ""
    server: Server | None = None
    changed_language: tuple[str, ...] = ()
    extended: bool = False

    def live_table(self, sink: Sink) -> Sink:
        """A new live table, kept where this console keeps them."""
        return replace(sink, stands_for=ON_SERVER) if self.server else sink

    def of_staged_change(self, *, reads_changes: bool = True) -> Context:
        """The context of a staged change: it reads the staged changes of the live tables that it names
        (reads_changes), and streams at its own rate.
        """
        catalog = self.catalog.with_changes() if reads_changes else self.catalog
        if self.staged_rate:
            streams = {key: self._at_rate(stream) for key, stream in catalog.streams.items()}
            catalog = replace(catalog, streams=streams)
        return replace(self, catalog=catalog)

    def of_definition(self, name: str) -> Context:
        """The context of a definition: of a view that is not in use, the one with which it was in use."""
        if is_staged(name):
            return replace(self, catalog=self.catalog.with_changes())
        if is_before(name):
            names = [n for n in self.catalog.aside if is_before(n)]
            return replace(self, catalog=self.catalog.reading(names))
        return self

    def beginning_at(self, since: str) -> Context:
        """The context of a query whose streams begin at a moment, where their source can. since: see Query;
        "" for the context as it is.
        """
        if not since:
            return self
        moment = datetime.fromisoformat(since)
        begun = {}
        for key, stream in self.catalog.streams.items():
            at = connector(Name(stream.connector)).beginning_at(stream, moment) if stream.connector else ""
            begun[key] = stream if isinstance(at, str) else at
        return replace(self, catalog=replace(self.catalog, streams=begun))

    def _at_rate(self, stream: Stream) -> Stream:
        option = connector(Name(stream.connector)).rate_option(stream) if stream.connector else ""
        if not option:
            return stream
        most = min(self.staged_rate, int(stream.option(option) or self.staged_rate))
        others = tuple(pair for pair in stream.options if pair[0].casefold() != option.casefold())
        return replace(stream, options=(*others, (option, str(most))))

    def sources(self, *, counts: bool = True, batched: bool = True) -> Sources:
        """The empty sources of a new program. counts: whether it counts malformed messages; batched: whether
        it runs in micro-batches.
        """
        return Sources(
            self.catalog,
            self.places,
            node_and_shape,
            counts=counts,
            times=self.times,
            batched=batched,
            changed_language=self.changed_language,
        )


def lower_fragment(body: Fragment, sources: Sources) -> Lowered:
    """Lower a query; spans of its errors and shape are those of the source. One that reads no stream and no
    live table goes to Spark as it was written.
    """
    with body.origin.errors():
        text = read_instead(body.text, sources.catalog)[0]
        lowered = as_written(text, sources) or lower(body.text, sources)
    if lowered.shape.streaming and sources.states:
        raise RuleFault(
            "a streaming query cannot read the state or the late rows of another query",
            detail="it would read the state of the same micro-batch each time, until Spark removes it",
            hint="SELECT … FROM STATE OF QUERY … without streams; or a live table, which has the result",
            span=body.origin.span(sources.states[0]),
            code="STATE_IN_A_STREAM",
        )
    if lowered.shape.streaming and not lowered.shape.complete:
        _check_in(body, sources.catalog)
    return replace(lowered, shape=lowered.shape.placed(body.origin))


def unknown_stream(body: Fragment, context: Context, hint: str) -> NameFault | RuleFault | None:
    """The error for a query that reads no stream and names a relation that the catalog does not have, at its
    name: a misspelt stream before others. None if the catalog has all relations.

    hint: what to type unless a stream has a similar name. Spark may have a table of that name: planning does
    not ask it, so the message is about streams only.
    """
    query = read_query(body.text)
    # In a text that was not parsed, what follows FROM is not always a relation.
    relations = query.relations if query.tree is not None else ()
    unknown = [r for r in relations if "." not in r.name and not context.catalog.reads(r.name)]
    catalog = context.catalog
    names = [e.name for entries in (catalog.streams, catalog.sinks) for e in entries.values()]
    names += [table.name for table in catalog.tables.values() if table.follows]
    similar = {r: did_you_mean(r.name, names) for r in unknown}
    for relation in sorted(unknown, key=lambda r: not similar[r]):
        written = read_of_sink(catalog, relation.name, body.origin.span(relation.span))
        if written:
            return written
        return NameFault(
            f"there is no stream {relation.name}",
            detail=f"the query reads no stream: {relation.name} does not exist, or is a table of Spark",
            hint=similar[relation] or hint,
            span=body.origin.span(relation.span),
            code="UNKNOWN_STREAM",
        )
    return None


def _check_in(body: Fragment, catalog: Catalog) -> None:
    """Raise RuleFault for IN (SELECT … FROM stream), at the IN: Spark has none on streams."""
    query = read_query(body.text)
    for span in in_queries(query):
        names = [r.name for r in query.relations if span.start <= r.span.start < span.end]
        if any(isinstance(catalog.relation(name), Stream) for name in names):
            inner = body.text[span.start : span.end].partition("(")[2].removesuffix(")").strip()
            raise RuleFault(
                "IN (SELECT …) over a stream is not supported",
                detail="Spark does not allow a streaming query in a sub-query of an expression",
                hint=f"CREATE LIVE TABLE wanted AS {inner}; and IN (SELECT * FROM wanted)",
                span=body.origin.span(span),
                condition="INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY",
                code="NOT_ON_STREAMS",
            )


def reads_of(sources: Sources) -> Reads:
    """The relations that a program reads, and the functions written in Python that it calls."""
    streams = tuple(sources.streams.values())
    live, functions = tuple(sources.live.values()), tuple(sources.functions.values())
    return Reads(live, functions, streams, staged=tuple(sources.staged.values()))
