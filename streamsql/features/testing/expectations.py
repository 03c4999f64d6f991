"""The EXPECT statements: each compares what is there with what is expected, and raises where they differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamsql.definitions import Query
from streamsql.errors import RuleFault, Span, StreamsqlError, UnmetExpectation
from streamsql.features.testing import statement as statements
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.further_rows import prepared
from streamsql.features.testing.tables import Row, Table, expected_rows, rows_of_sink, selected, table_of
from streamsql.language.origin import Origin
from streamsql.language.statements.base import Fragment, Name, Statement
from streamsql.language.tokens import quote, quote_name
from streamsql.runtime.engine.moments import shown, watermark_of
from streamsql.runtime.engine.row_differences import differences, same_row
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.explanations import explanations
from streamsql.runtime.queries.run import Running

MISSING, EXTRA = "missing", "too many"


def _rows(bench: Bench, statement: statements.ExpectRows) -> None:
    _compare(bench, statement, table_of(bench, statement.name), others=statement.contains)


def _changes(bench: Bench, statement: statements.ExpectChanges) -> None:
    sink, rows = rows_of_sink(bench, statement.name)
    columns = tuple((f.name, f.dataType.simpleString()) for f in rows.schema.fields)
    own = columns[0][0].casefold() == "_op"  # what is written into the sink are changes
    table = Table(
        columns if own else (("_op", "string"), *columns),
        [row[1:] if own else row for row in bench.changes(sink.name.casefold())],
    )
    _compare(bench, statement, table, "the changes of ")


def _no_changes(bench: Bench, statement: statements.ExpectNoChanges) -> None:
    sink, rows = rows_of_sink(bench, statement.name)
    changes = bench.changes(sink.name.casefold())
    if not changes:
        return
    table = Table((("_op", ""), *((f.name, "") for f in rows.schema.fields)), changes)
    number = f"{len(changes)} change{'' if len(changes) == 1 else 's'}"
    raise _unmet(bench, f"{statement.name} has changed: {number}", statement.name, table, [], list(changes))


def _late_rows(bench: Bench, statement: statements.ExpectLateRows) -> None:
    query = query_of(bench, statement.name)
    table = selected(bench, f"SELECT * FROM LATE ROWS OF QUERY {quote_name(query.name)}")
    columns = statement.columns or tuple(Name(n) for n in table.names if not n.startswith("_"))
    _compare(bench, replace(statement, columns=columns), table, "the late rows of ")


def _compare(
    bench: Bench, statement: statements.ExpectedRows, table: Table, what: str = "", *, others: bool = False
) -> None:
    """Raise UnmetExpectation for rows that are missing, too many (unless there may be others), or in another
    order. what: of the table, for messages.
    """
    table = table.of(statement.columns, statement.name)
    expected = expected_rows(bench, statement.query, table.columns, statement.name)
    missing, extra = differences(expected, table.rows, statement.tolerance, table.digits)
    extra = [] if others else extra
    if missing or extra:
        parts = [f"{len(rows)} {word}" for rows, word in ((missing, MISSING), (extra, EXTRA)) if rows]
        fact = f"{what}{statement.name} {'are' if what else 'is'} not as expected: {', '.join(parts)}"
        raise _unmet(bench, fact, statement.name, table, missing, extra)
    pairs = zip(expected, table.rows, strict=False)
    if statement.ordered and not all(same_row(a, b, statement.tolerance, table.digits) for a, b in pairs):
        fact = f"the rows of {statement.name} are in another order"
        fault = _unmet(bench, fact, statement.name, table, [], [])
        fault.columns = ("", *table.names)
        fault.rows = (
            *(("expected", *row) for row in expected),
            *(("there", *row) for row in table.rows),
        )
        raise fault


def _unmet(
    bench: Bench, fact: str, name: Name, table: Table, missing: list[Row], extra: list[Row]
) -> UnmetExpectation:
    """The error of rows that differ: when that was, and why rows are missing where WHY knows it."""
    running = _feeding(bench, name)
    lines, proposal = [], ""
    if running is not None:
        lines.append(_moment(bench, running))
        if missing and not running.is_refresh:
            sentence, proposal = explanations().missing_rows(bench.parts, running)
            lines += [f"why: {sentence}"] if sentence else []
    fault = UnmetExpectation(fact, detail="\n".join(lines), hint=proposal, span=name.span)
    fault.columns = ("", *table.names)
    fault.rows = (*((MISSING, *row) for row in missing), *((EXTRA, *row) for row in extra))
    return fault


def _feeding(bench: Bench, name: Name) -> Running | None:
    """The run of the query that writes into a table, or of the query of that name."""
    queries = bench.session.parts.queries.all
    feeding = [q.name for q in bench.session.catalog.queries_into(name.value)]
    return next((queries[n.casefold()] for n in (*feeding, name.value) if n.casefold() in queries), None)


def _moment(bench: Bench, running: Running) -> str:
    """The last micro-batch of a query, and the watermark after it."""
    if running.is_refresh:
        return f"computed from {', '.join(running.plan.query.inputs)}"
    number, moment = _last(bench, running)
    if number is None:
        return f"{running.name} has run no micro-batch"
    at = f", watermark {shown(moment, bench.zone)}" if moment is not None else ""
    return f"after micro-batch {number} of {running.name}{at}"


def _last(bench: Bench, running: Running) -> tuple[int | None, int | None]:
    """The number of a query's last micro-batch, None before the first, and its watermark in milliseconds,
    None before the first event time. Of a query that was started again, and has run none, its checkpoint
    tells.
    """
    reports = running.progress()
    if reports:
        return reports[-1].get("batchId"), watermark_of(reports[-1])
    log = Evidence(bench.parts, running.plan, running).checkpoint
    batch = next(iter(log.batches(1)), None) if log else None
    if batch is None:
        return None, None
    return batch.number, batch.planned.watermark if batch.planned else None


def query_of(bench: Bench, name: Name) -> Query:
    """The query of that name, or the only one that writes into the sink of that name. Raises NameFault."""
    catalog = bench.session.catalog
    feeding = catalog.queries_into(name.value)
    if name.value.casefold() not in catalog.queries and len(feeding) == 1:
        return feeding[0]
    return catalog.query(name)


def _watermark(bench: Bench, statement: statements.ExpectWatermark) -> None:
    query = query_of(bench, statement.name)
    running = bench.session.parts.queries.all[query.name.casefold()]
    if running.is_refresh:
        raise RuleFault(
            f"{query.name} is computed from live tables and has no watermark",
            hint=f"EXPECT WATERMARK OF {quote_name(query.inputs[0])} = '…'",
            span=statement.name.span,
            code="MISSING_WATERMARK",
        )
    _, moment = _last(bench, running)
    actual = shown(moment, bench.zone) if moment is not None else ""
    expected = _time(bench, statement.to) if statement.to.value else ""
    if actual != expected:
        raise UnmetExpectation(
            f"the watermark of {query.name} is {actual or 'not known yet'}, not {expected or 'NULL'}",
            detail=_moment(bench, running),
            span=statement.to.span,
        )


def _time(bench: Bench, written: Name) -> str:
    """A timestamp as watermarks are shown. Raises what Spark says of it."""
    text = f"SELECT unix_millis(CAST({quote(written.value)} AS TIMESTAMP))"
    query = Fragment(text, written.span, Origin.of(written.span))
    rows = expected_rows(bench, query, (("time", "bigint"),), written)
    return shown(int(rows[0][0]), bench.zone)


def _failure(bench: Bench, statement: statements.ExpectFailure) -> None:
    query = query_of(bench, statement.name)
    running = bench.session.parts.queries.all[query.name.casefold()]
    code = statement.error_code
    if running.status() != "FAILED" or running.fault is None:
        raise UnmetExpectation(
            f"{query.name} has not failed: it is {running.status()}", span=statement.name.span
        )
    bench.failures = [r for r in bench.failures if r is not running]
    check_code(running.fault, code, f"{query.name} has failed with")


def check_code(fault: StreamsqlError, code: Name, subject: str) -> None:
    """Raise UnmetExpectation for an error with another code. A code of Spark may name a part of the code."""
    codes = {fault.code, fault.condition, *_parents(fault.condition)}
    if code.value.upper() not in {c.upper() for c in codes if c}:
        raise UnmetExpectation(
            f"{subject} {fault.condition or fault.code}, not {code}",
            detail=fault.message,
            span=code.span,
        )


def _parents(condition: str) -> list[str]:
    """CLASS of the condition CLASS.PART."""
    return [condition.partition(".")[0]] if "." in condition else []


def _error(bench: Bench, statement: statements.ExpectError) -> None:
    assert statement.body
    try:
        bench.execute(prepared(bench.session, statement.body))
    except StreamsqlError as fault:
        if bench.cancel.cancelled:
            raise
        check_code(fault, statement.error_code, "the error is")
        return
    raise UnmetExpectation(
        "the statement was executed without an error",
        span=Span(statement.body.span.start, statement.body.span.end),
    )


Expectation = Callable[[Bench, Any], None]
EXPECTATIONS: dict[type[Statement], Expectation] = {
    statements.ExpectRows: _rows,
    statements.ExpectChanges: _changes,
    statements.ExpectNoChanges: _no_changes,
    statements.ExpectLateRows: _late_rows,
    statements.ExpectWatermark: _watermark,
    statements.ExpectFailure: _failure,
    statements.ExpectError: _error,
}
