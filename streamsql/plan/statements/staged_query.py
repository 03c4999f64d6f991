"""INSERT … STAGED, to its plan: a hidden live table keeps what a changed query would write into its sink, and
another one what the query of now writes.
"""

from __future__ import annotations

from dataclasses import replace

from streamsql.connectors.registry import connector
from streamsql.definitions import Query, before_name, is_before, is_staged, staged_name
from streamsql.error_codes import OUTPUT_MODE
from streamsql.errors import NameFault, RuleFault, Span
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.insert import Insert
from streamsql.language.tokens import quote_name
from streamsql.plan.changes_plan import Changes
from streamsql.plan.context import Context
from streamsql.plan.lowering.shape import STATEFUL
from streamsql.plan.plans import Plan, Run
from streamsql.plan.statements import inserts
from streamsql.plan.statements.queries import restart
from streamsql.plan.statements.query_run import beginning, kept_beside
from streamsql.plan.statements.staged_inserts import insert_again


def insert(statement: Insert, context: Context) -> Plan:
    """The plan of INSERT. Raises faults."""
    return _staged(statement, context) if statement.staged else inserts.insert(statement, context)


def _staged(statement: Insert, context: Context) -> Run:
    """The plan that builds the staged change of an INSERT, and the rows before. Raises NameFault,
    RuleFault.
    """
    query = changed_query(statement, context)
    written = statement.query_name or Name(query.name, statement.targets[0].span)
    _check_clauses(statement, query)
    before = is_before(written.value)
    own = context.of_staged_change(reads_changes=not before)
    own = replace(own, catalog=own.catalog.without("queries", query.name))
    plain = replace(statement, staged=False, begins="", retain=None)
    if query.inputs:  # its stages are named after it
        named = staged_name(written.value)
        plain = replace(plain, query_name=Name(named, written.span), retain=statement.retain)
        own = replace(own, catalog=own.catalog.without("queries", named))
    run = _checked(inserts.insert(plain, own), query, statement.query.span)
    run = replace(run, query=replace(run.query, retain=statement.retain or 0))
    change = kept_beside(run, staged_name(written.value), context)
    begins = statement.begins or "beginning"
    if before:  # of a workspace that is opened: it has both
        return beginning(change, begins)
    before_now, rates = staged_name(before_name(query.name)), context.of_staged_change(reads_changes=False)
    if context.catalog.stages_of(query.name):
        sink, body = context.catalog.sinks[query.sinks[0].casefold()], Fragment(query.text)
        as_now: Run = insert_again(replace(query, name=before_now), sink, body, rates, None)
    elif query.inputs:
        as_now = restart(query, rates)
    else:
        as_now = restart(replace(query, retain=statement.retain or 0), rates)
    of_now = kept_beside(as_now, before_now, context)
    return replace(beginning(change, begins), before=beginning(replace(of_now, notes=()), begins))


def changed_query(statement: Insert, context: Context) -> Query:
    """The query of the catalog that an INSERT changes. Raises NameFault where it is none, or writes into
    other sinks.
    """
    targets = statement.targets
    name = statement.query_name or replace(targets[0], value="_".join(t.value for t in targets))
    key = name.value.casefold()
    query = context.catalog.queries.get(key.removesuffix(before_name("")) if is_before(key) else key)
    if query is None or query.live_table or is_staged(query.name):
        into = [q for target in targets for q in context.catalog.queries_into(target.value)]
        named = next((q.name for q in into if not q.live_table), "")
        written = ", ".join(quote_name(target.value) for target in targets)
        what = f"{name} is a live table" if query else f"there is no query {name}"
        if query and query.live_table:
            hint = f"CREATE OR REPLACE LIVE TABLE {quote_name(query.name)} STAGED AS SELECT …"
        elif named:
            hint = f"INSERT INTO {written} STAGED AS QUERY {quote_name(named)} SELECT …"
        else:
            hint = "leave out STAGED: it changes a query that is there"
        code = "WRONG_KIND" if query else "UNKNOWN_QUERY"
        raise NameFault(what, detail="STAGED changes a query", hint=hint, span=name.span, code=code)
    if {t.value.casefold() for t in targets} != {sink.casefold() for sink in query.sinks}:
        raise NameFault(
            f"the query {query.name} writes into {query.sink}",
            detail="a staged change writes into the same sinks",
            hint=f"INSERT INTO {', '.join(map(quote_name, query.sinks))} STAGED AS QUERY"
            f" {quote_name(query.name)} SELECT …",
            span=targets[0].span,
            code="OTHER_SINK",
        )
    return query


def _check_clauses(statement: Insert, query: Query) -> None:
    """Raise RuleFault for what a staged change cannot have."""
    trigger, first = statement.trigger, statement.targets[0].span
    several, of_all = query.together or len(query.sinks) > 1, "a query with several sinks"
    ends = trigger is not None and trigger.kind != "every"
    wrong: tuple[tuple[object, str, str, Span | None], ...] = (
        (several, of_all, "each sink would need its own difference", first),
        (statement.late, "ON LATE INTO", "the sink would get late rows twice", _span(statement.late)),
        (statement.checkpoint, "CHECKPOINT", "its checkpoint is a generation of the query",
         _span(statement.checkpoint)),
        (statement.begins == "now" and query.inputs, "FROM NOW",
         "over live tables, PROMOTE writes no row again that is as it was", first),
        (statement.begins == "accept", "ACCEPT CHANGES", "a staged change has its own checkpoint", first),
        (ends, "this TRIGGER", "a staged change runs until it is promoted, in micro-batches",
         trigger.span if trigger else None),
    )  # fmt: skip
    for is_there, what, why, span in wrong:
        if is_there:
            raise RuleFault(
                f"STAGED does not go with {what}",
                detail=why,
                hint=f"leave out STAGED, or {what}" if what != of_all else "",
                span=span,
                code="CLAUSE_CONFLICT",
            )


def _span(name: Name | None) -> Span | None:
    return name.span if name else None


def _checked(plan: Plan, query: Query, span: Span) -> Run:
    """The plan of the INSERT, once it can be staged. Raises RuleFault."""
    if query.inputs and isinstance(plan, Run) and isinstance(plan.otherwise, Changes):
        plan = plan.otherwise  # as the query itself, which runs in stages
    if not isinstance(plan, Run) or bool(query.inputs) != isinstance(plan, Changes):
        was, now = "live tables", "streams"
        was, now = (was, now) if query.inputs else (now, was)
        raise RuleFault(
            f"{query.name} reads {was}, and its change {now}",
            detail="it could not go on from what was written",
            hint=f"CREATE LIVE TABLE rows AS SELECT …; and DROP QUERY {quote_name(query.name)};"
            f" INSERT INTO {quote_name(query.sinks[0])} SELECT * FROM rows;",
            span=span,
            code="NOT_STAGEABLE",
        )
    sink = plan.sink
    if sink.is_live or sink.connector == "table":
        what = "the live table" if sink.is_live else "the table of Spark"
        hint = (
            f"CREATE OR REPLACE LIVE TABLE {quote_name(sink.name)} AS SELECT …; after that STAGED changes it"
            if sink.is_live
            else "a live table; then INSERT INTO the table SELECT … FROM it"
        )
        why = (
            "its rows belong to the checkpoint of the query"
            if sink.is_live
            else "what a new checkpoint writes into it depends on its format"
        )
        raise RuleFault(
            f"STAGED does not write into {what} {sink.name}",
            detail=why,
            hint=hint,
            span=span,
            code="NOT_STAGEABLE",
        )
    if isinstance(plan, Changes):
        return plan
    if connector(Name(sink.connector)).keeps_log and any(
        op.kind in STATEFUL and all(op.sides) for op in plan.shape.ops
    ):
        raise not_into_files(query.name, sink.name, span)
    kept = replace(plan.targets[0], sink=replace(sink, connector="memory"))
    choices = tuple(c for c in plan.choices if c.mode != "update" or kept.keys("update") is not None)
    if choices[:1] != plan.choices[:1]:
        raise RuleFault(
            f"the rows of {query.name} cannot be compared: they do not say which group they are of",
            detail="it writes the newest row of each group, and not all grouping keys are selected",
            hint="add the grouping keys to the SELECT list, or stage it with OUTPUT MODE APPEND or COMPLETE",
            span=span,
            code=OUTPUT_MODE,
        )
    return replace(plan, choices=choices)


def not_into_files(query: str, sink: str, span: Span | None) -> RuleFault:
    """The fault of a query with state that is to go on with another checkpoint in a folder of files."""
    return RuleFault(
        f"{query} keeps state, and cannot go on in the files of {sink} with another checkpoint",
        detail="the log of the folder numbers micro-batches, and Spark skips one that is there; those of a"
        " checkpoint with state cannot be changed",
        hint="CREATE SINK with another path, and INSERT INTO it AS QUERY another_name",
        span=span,
        code="NOT_STAGEABLE",
    )
