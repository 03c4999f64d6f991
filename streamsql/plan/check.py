"""`--check`: read and plan a whole script without Spark, keeping account of what each names."""

from __future__ import annotations

from streamsql.catalog import Catalog, Table
from streamsql.errors import NameFault, Span, did_you_mean
from streamsql.language.dialect import check_query
from streamsql.language.grammar import load
from streamsql.language.statements.base import Fragment, Statement
from streamsql.language.statements.books import DescribeCheckpoint, ShowBatches
from streamsql.language.statements.function import DropFunction, ShowCreateFunction
from streamsql.language.statements.insert import Insert, InsertSet
from streamsql.language.statements.live_table import CreateLiveTable, DropLiveTable
from streamsql.language.statements.query import AwaitQuery, DescribeQuery, DropQuery, StartQuery, StopQuery
from streamsql.language.statements.select import Select
from streamsql.language.statements.session import Set
from streamsql.language.statements.sink import DropSink
from streamsql.language.statements.stream import DropStream
from streamsql.language.statements.watch import Watch
from streamsql.language.tokens import tokenize, unquote
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.plan.plans import Collect, DefineFunction, DefineSink, DefineStream, Direct, Plan, Run
from streamsql.plan.stateful import without_calls
from streamsql.plan.states import state_tables, without_states
from streamsql.preferences import Preferences, is_preference


class Checker:
    """Plans statements one after the other; the catalog holds what they define."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.catalog: Catalog = context.catalog

    def check(self, statement: Statement) -> list[str]:
        """Plan one statement and take over what it defines. Returns notes; raises placed faults."""
        made = plan(statement, self.context)
        if isinstance(made, Direct):
            self._direct(made.statement)
            return []
        notes = [*made.notes, *self._unknown_relations(statement)]
        for part in statement.inserts if isinstance(statement, InsertSet) else ():
            self._read(part.query, "")
        if isinstance(statement, (Select, Insert, CreateLiveTable)):
            self._read(statement.query, getattr(made, "as_text", ""))
        self._define(made)
        return notes

    def _read(self, query: Fragment, as_text: str) -> None:
        """A query that is left to Spark must at least be readable to sqlglot (which does not know
        Spark's STREAM and WATERMARK, so there our own grammar's reading is enough).
        """
        text = without_calls(query.text, self.catalog)
        tokens = tokenize(text)
        body, _ = load().match("QueryBody", tokens)
        spark_only = {"STREAM", "WATERMARK"} & {t.upper for t in tokens}
        fault = check_query(text) if body is None or (as_text and not spark_only) else None
        if fault:
            fault.span = (fault.span or Span(0, 1)).shift(query.span.start)
            fault.hint = fault.hint or "a name that is also a keyword wants backticks: `from`"
            raise fault

    def _unknown_relations(self, statement: Statement) -> list[str]:
        """Names after FROM and JOIN that nothing in the script makes: a misspelling, or Spark's."""
        states = {table.span.start for table in state_tables(statement.text)}
        tokens = tokenize(without_states(statement.text))
        known = self.catalog.relation_names()
        made_here = {unquote(tokens[i - 1]).casefold() for i, t in enumerate(tokens) if i and t.upper == "AS"}
        notes = []
        for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
            if before.upper not in ("FROM", "JOIN") or token.kind not in ("word", "quoted"):
                continue
            if token.start in states:
                continue
            name = unquote(token)
            dotted = after is not None and after.text in (".", "(")
            reserved = token.upper in ("STREAM", "SELECT", "VALUES", "LATERAL")
            if dotted or reserved or name.casefold() in made_here | {k.casefold() for k in known}:
                continue
            hint = did_you_mean(name, known)
            if hint:
                raise NameFault(f"there is no stream, table or view {name}", hint=hint, span=token.span)
            notes.append(f"{name} is not made by this script: taken for a table of Spark")
        return notes

    def _define(self, made: Plan) -> None:
        if isinstance(made, DefineStream):
            self.catalog.streams[made.stream.name.casefold()] = made.stream
        elif isinstance(made, DefineSink):
            self.catalog.sinks[made.sink.name.casefold()] = made.sink
        elif isinstance(made, DefineFunction):
            self.catalog.functions[made.function.name.casefold()] = made.function
        elif isinstance(made, Run) and not made.transient:
            self.catalog.queries[made.query.name.casefold()] = made.query
            if made.define:
                self.catalog.sinks[made.sink.name.casefold()] = made.sink
        elif isinstance(made, Collect) and made.creates:
            self.catalog.tables[made.creates.casefold()] = Table(made.creates, made.streaming)

    def _direct(self, statement: Statement) -> None:
        catalog = self.catalog
        if isinstance(statement, DropStream) and not statement.if_exists:
            del catalog.streams[catalog.stream(statement.name).name.casefold()]
        elif isinstance(statement, (DropSink, DropLiveTable)) and not statement.if_exists:
            name = catalog.sink(statement.name).name.casefold()
            del catalog.sinks[name]
            catalog.queries = {k: q for k, q in catalog.queries.items() if not q.writes_into(name)}
        elif isinstance(statement, DropQuery) and not statement.if_exists:
            del catalog.queries[catalog.query(statement.name).name.casefold()]
        elif isinstance(statement, (AwaitQuery, StartQuery, StopQuery, DescribeQuery)) and statement.name:
            catalog.query(statement.name)
        elif isinstance(statement, (ShowBatches, DescribeCheckpoint)) and statement.owner.query:
            catalog.query(statement.owner.query)
        elif isinstance(statement, Set) and statement.key and is_preference(statement.key.value):
            if statement.value is not None:
                Preferences().set(statement.key.value, statement.value, span=statement.key.span)
        elif isinstance(statement, DropFunction):
            del self.catalog.functions[statement.name.value.casefold()]
        elif isinstance(statement, ShowCreateFunction):
            catalog.function(statement.name)
        elif isinstance(statement, Watch):
            catalog.live_table(statement.name)
