"""CREATE OR REPLACE STREAM, VIEW and FUNCTION … STAGED, to their plan: a definition beside the one in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from streamsql.catalog import Catalog, unknown
from streamsql.connectors.registry import connector
from streamsql.definition_sql import column_sql
from streamsql.definitions import (
    Aside,
    Function,
    OfSpark,
    Query,
    Stream,
    Table,
    in_use_name,
    kind_of,
    promoted_name,
    staged_name,
)
from streamsql.errors import NameFault, RuleFault, Source, Span, StreamsqlError
from streamsql.features.change.affected import (
    affected_tables,
    in_spark_over,
    reads_through,
    staged_inserts,
    temporary_in_spark,
)
from streamsql.language.edits import with_points
from streamsql.language.parser import parse
from streamsql.language.redaction import holds_secret
from streamsql.language.script import split_script
from streamsql.language.spark_definitions import definition_named, definition_of, head_of_definition
from streamsql.language.statements.base import Name
from streamsql.language.statements.function import CreateFunction
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.statements.spark import Spark
from streamsql.language.statements.stream import CreateStream
from streamsql.language.tokens import quote_name
from streamsql.plan import planner
from streamsql.plan.basic_plans import Plan
from streamsql.plan.context import Context
from streamsql.plan.plans import Collect, DefineFunction, DefineStream
from streamsql.plan.statements.definitions import create_function, create_stream
from streamsql.plan.statements.existing import entries_of
from streamsql.plan.statements.queries import create_live_table
from streamsql.plan.statements.staged_tables import staging_of

Define = DefineStream | DefineFunction | Collect


@dataclass(frozen=True)
class Staging(Plan):
    """A stream, view or function is defined beside the one in use. in_spark: the statements that stage the
    views and functions in SQL that read it; statements: those that stage the live tables that read it, None
    in a set of changes; staged: the catalog with all of that, as far as planning knows.
    """

    define: Define
    in_spark: tuple[Spark, ...]
    statements: tuple[CreateLiveTable, ...] | None
    staged: Catalog

    def applied(self, catalog: Catalog) -> Catalog:
        return self.staged


def stage_definition(statement: CreateStream | CreateFunction | Spark, context: Context) -> Plan:
    """The plan of CREATE STREAM, VIEW or FUNCTION … STAGED, or of the statement in a set of changes. While
    that is open, END CHANGE stages what reads the definition. Raises faults for a definition that cannot be
    staged, or a live table that cannot be computed from it.
    """
    written, catalog, in_set = written_definition(statement), context.catalog, bool(context.open_change)
    kind, name = written.kind, written.name
    old = catalog.definition_in_use(kind, name.value)
    _check_is_of_one(written, old, context)
    _check_is_as_lasting(written, old)
    plain = replace(context, catalog=catalog.with_changes(), open_change="")
    if isinstance(statement, Spark):
        define: Define = _planned_in_spark(statement, written, plain)
    else:
        create: Any = create_stream if isinstance(statement, CreateStream) else create_function
        own = replace(name, value=old.name if old else name.value)
        define = create(replace(statement, name=own, or_replace=old is not None, staged=False), plain)
    entry = _entry_of(define)
    if isinstance(entry, OfSpark) and not written.temporary:
        _check_lasts(entry, catalog, name)
    _check_can_be_staged(old, entry, name.span)
    changed, inserts = catalog.with_changes(), staged_inserts(catalog)
    if reading := [q for q in inserts if old and reads_through(q.text, old.name, changed)]:
        query = quote_name(promoted_name(reading[0].name))
        raise NameFault(
            f"the staged change of {query} reads {name}, and has begun with it as it is",
            hint=f"PROMOTE {query}; or DROP STAGED {query}; first",
            span=name.span,
            code="IN_USE",
        )
    after = catalog.having(entry)
    views = tuple(again_in_spark(e, catalog) for e in in_spark_over([in_use_name(entry.name)], after))
    for view in views:
        try:
            after = planner.plan(view, replace(context, catalog=after, open_change="")).applied(after)
        except StreamsqlError as fault:
            raise cannot_follow(*staged_in_spark(view), fault, name.span) from fault
    if in_set:
        return Staging(define, views, None, after, notes=define.notes)
    affected = affected_tables([in_use_name(entry.name)], after)
    statements, after = planned_staging(affected, replace(context, catalog=after), name.span)
    return Staging(define, views, statements, after, notes=define.notes)


@dataclass(frozen=True)
class Written:
    """What a statement says of a definition. kind: stream, view or function; temporary: of a view and a
    function in SQL; in_sql: whether it is one of these.
    """

    kind: str
    name: Name
    or_replace: bool
    temporary: bool = True
    in_sql: bool = False


def written_definition(statement: CreateStream | CreateFunction | Spark) -> Written:
    """What a statement defines. Raises RuleFault for one of another schema, and a global view."""
    if not isinstance(statement, Spark):
        kind = "stream" if isinstance(statement, CreateStream) else "function"
        return Written(kind, statement.name, statement.or_replace)
    new, place = definition_of(statement.text), statement.span
    if new.written != quote_name(new.creates):
        name = quote_name(new.creates.rpartition(".")[2])
        reads = f"FROM {name}_2 …" if new.kind == "view" else f"SELECT … {name}_2(…) …"
        raise RuleFault(
            f"the {new.kind} {new.creates} cannot be staged",
            detail=f"a {new.kind} is staged that is temporary, and not global, or is in the schema default",
            hint=f"CREATE OR REPLACE TEMPORARY {new.kind.upper()} {name}_2 …;\n"
            f"and CREATE OR REPLACE LIVE TABLE … STAGED AS … {reads}",
            span=place,
            code="NOT_STAGEABLE",
        )
    return Written(new.kind, Name(new.creates, place), new.replaces, new.temporary, in_sql=True)


def _check_is_of_one(written: Written, old: Aside | None, context: Context) -> None:
    """Raise RuleFault for a definition that does not exist or is not replaced, or has the name of another
    entry: PROMOTE would not say which.
    """
    catalog, kind, name = context.catalog, written.kind, written.name
    quoted, head = quote_name(name.value), f"CREATE OR REPLACE {kind.upper()}"
    if old is None and not context.open_change:
        fault = unknown(kind, name, catalog.names_in_use(kind))
        fault.hint = "\nor ".join(p for p in (fault.hint, f"leave out STAGED: it changes a {kind}") if p)
        raise fault
    if old is not None and not written.or_replace:
        raise RuleFault(
            f"STAGED changes the {kind} {old.name}: write CREATE OR REPLACE",
            hint=f"{head} {quote_name(old.name)} STAGED …",
            span=name.span,
            code="CLAUSE_CONFLICT",
        )
    if old is not None and isinstance(old, OfSpark) != written.in_sql:
        languages = ("Python", "SQL") if written.in_sql else ("SQL", "Python")
        raise RuleFault(
            f"the {kind} {old.name} is written in {languages[0]}, and cannot become one in {languages[1]}",
            hint=f"CREATE FUNCTION {quoted}_2 …, which the changed query uses",
            span=name.span,
            code="NOT_STAGEABLE",
        )
    taken = [
        k for k in ("stream", "view", "function") if k != kind and catalog.definition_in_use(k, name.value)
    ]
    taken += ["table"] if not isinstance(old, Table) and name.value.casefold() in catalog.tables else []
    taken += ["query"] if name.value.casefold() in catalog.queries else []
    taken += ["sink or live table"] if name.value.casefold() in catalog.sinks else []
    for other in taken:
        raise RuleFault(
            f"the {kind} {name} cannot be staged: there is a {other} of that name, too",
            detail="PROMOTE names what is staged by its name alone",
            hint=f"CREATE {kind.upper()} {quoted}_2 …, which the changed query uses",
            span=name.span,
            code="NOT_STAGEABLE",
        )


def _check_is_as_lasting(written: Written, old: Aside | None) -> None:
    """Raise RuleFault for a temporary view or function in the place of one that Spark's catalog keeps, or the
    reverse.
    """
    name, kind, temporary = quote_name(written.name.value), written.kind, True
    if isinstance(old, OfSpark):
        temporary = definition_of(old.text).temporary
    if temporary != written.temporary:
        what = f"a temporary {kind}" if temporary else f"no temporary {kind}"
        raise RuleFault(
            f"{name} is {what}" if old else f"{name} is a new {kind}, which is staged as a temporary one",
            hint=f"CREATE OR REPLACE {'TEMPORARY ' if temporary else ''}{kind.upper()} {name} STAGED …",
            span=written.name.span,
            code="CLAUSE_CONFLICT",
        )


def _check_lasts(entry: OfSpark, catalog: Catalog, name: Name) -> None:
    """Raise RuleFault for a view or function that Spark's catalog keeps, and that would read a temporary one:
    Spark would not take it with PROMOTE.
    """
    if temporary := temporary_in_spark(entry, catalog):
        raise RuleFault(
            f"the {kind_of(entry)} {name} is no temporary one, and would read {', '.join(temporary)}",
            detail="Spark keeps it in its catalog, where no temporary view or function is",
            hint=f"CREATE OR REPLACE TEMPORARY {kind_of(entry).upper()} {quote_name(name.value)}_2 …;",
            span=name.span,
            code="NOT_STAGEABLE",
        )


def _planned_in_spark(statement: Spark, written: Written, context: Context) -> Collect:
    """The plan of the staged definition, which is a temporary view or function. Raises faults also for what
    one that lasts could not read.
    """
    if not written.temporary:
        planner.plan(_in_spark_as(statement, written.name.value, temporary=False), context)
    plan = planner.plan(staging_in_spark(statement), context)
    assert isinstance(plan, Collect)
    return plan


def _entry_of(define: Define) -> Aside:
    """The staged definition of a plan, as far as planning knows it."""
    if isinstance(define, Collect):
        (entry,) = define.applied(Catalog()).aside.values()
        return entry
    plain = define.stream if isinstance(define, DefineStream) else define.function
    return replace(plain, name=staged_name(plain.name))


def staging_in_spark(statement: Spark) -> Spark:
    """The statement that creates the staged definition of a view or function."""
    name = staged_name(definition_of(statement.text).creates)
    return _in_spark_as(statement, name, temporary=True)


def _in_spark_as(statement: Spark, name: str, *, temporary: bool) -> Spark:
    """The statement of a view or function with another name; the places of its errors are those of what was
    written.
    """
    head = head_of_definition(statement.text, name, temporary=temporary)
    text, points = with_points(statement.text, [head])
    return replace(spark_statement(text), origin=statement.origin.behind(points), span=statement.span)


def spark_statement(text: str) -> Spark:
    """The statement of a view or function, from its text."""
    statement = parse(split_script(Source("catalog.sql", f"{text};"))[0], {}, literal=True)
    assert isinstance(statement, Spark)
    return statement


def staged_in_spark(statement: Spark) -> tuple[str, str]:
    """(view or function, its name in use) of what a statement stages."""
    definition = definition_of(statement.text)
    return definition.kind, in_use_name(definition.creates)


def again_in_spark(entry: OfSpark, catalog: Catalog) -> Spark:
    """The statement that stages a view or function: with its staged definition, if it has one."""
    staged = catalog.staged_definition(entry.name)
    text = staged.text if isinstance(staged, OfSpark) else entry.text
    return spark_statement(definition_named(text, staged_name(entry.name), temporary=True))


def planned_staging(
    tables: Iterable[Query], context: Context, place: Span
) -> tuple[tuple[CreateLiveTable, ...], Catalog]:
    """(the statements that stage live tables, the catalog with them). place: of what they read, for faults.
    Raises RuleFault for a live table that cannot be computed from that.
    """
    catalog = context.catalog
    statements = tuple(staging_of(query, catalog) for query in tables)
    names = [statement.name.value for statement in statements]
    changes = [catalog.staged(name) for name in names if not catalog.is_new(name)]
    for change in filter(None, changes):
        for kind, entry in entries_of(change, catalog):
            catalog = catalog.without(kind, entry)
    for statement in statements:
        try:
            planned = create_live_table(statement, replace(context, catalog=catalog))
        except StreamsqlError as fault:
            raise cannot_follow("live table", statement.name.value, fault, place) from fault
        catalog = planned.applied(catalog)
    return statements, catalog


def cannot_follow(kind: str, name: str, fault: StreamsqlError, place: Span) -> RuleFault:
    """The error of a live table, a view or a function (kind) that is staged because of what it reads, and
    cannot be computed from that.
    """
    return RuleFault(
        f"the {kind} {name} cannot be computed from the change",
        detail="\n".join(filter(None, (fault.message, fault.detail))),
        hint=fault.hint
        if fault.code == "IN_USE"
        else f"BEGIN CHANGE name; …; CREATE OR REPLACE {kind.upper()} {quote_name(name)} …; END CHANGE;",
        span=place,
        code=fault.code,
    )


def _check_can_be_staged(old: Aside | None, new: Aside, span: Span) -> None:
    """Raise RuleFault for a definition that has no place beside the one in use."""
    why = hint = ""
    if isinstance(new, Stream):
        assert not isinstance(old, (OfSpark, Function))
        why, hint = _stream_refused(old, new)
    elif isinstance(new, Function) and isinstance(old, Function):
        if (old.module, old.attribute) == (new.module, new.attribute):
            why = "its Python is that of the function in use, and a module is there once"
            hint = f"put the changed code beside it: AS '{new.module}.{new.attribute}_2'"
    elif isinstance(new, OfSpark) and holds_secret(new.text):
        why = "it holds a secret, which a workspace does not keep"
        hint = "write a reference: '${env:NAME}'"
    if why:
        fact = f"the {kind_of(new)} {in_use_name(new.name)} cannot be staged"
        raise RuleFault(fact, detail=why, hint=hint, span=span, code="NOT_STAGEABLE")


def _stream_refused(old: Stream | None, new: Stream) -> tuple[str, str]:
    """(why the rows of a stream have no place beside those of the stream in use, what to type); empty where
    they have.
    """
    name, why, hint = quote_name(in_use_name(new.name)), "", ""
    both = [stream for stream in (old, new) if stream is not None]
    if any(stream.connector and connector(Name(stream.connector)).received for stream in both):
        why = "it receives its rows under its name, and each of them once"
        hint = f"CREATE STREAM {name}_2 AS SELECT … FROM {name}; and stage that and what reads it"
    elif any(stream.malformed_sink for stream in both):
        why = "ON MALFORMED INTO would write malformed messages twice"
        hint = "leave out ON MALFORMED INTO in both"
    elif new.connector == "values" and (old is None or old.connector != "values"):
        why = "a stream USING values has the rows that are inserted into it, and this one has none"
        hint = f"CREATE OR REPLACE STREAM {name} …; without STAGED"
    elif new.connector == "values" and old is not None:
        before, after = ([column_sql(c).casefold() for c in s.columns] for s in (old, new))
        if before != after[: len(before)]:
            why = "the rows of a stream USING values keep their columns: new ones may stand behind these"
            hint = f"CREATE OR REPLACE STREAM {name} …; without STAGED begins anew, without rows"
    return why, hint
