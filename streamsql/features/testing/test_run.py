"""Runs one TEST: its pipeline, then its statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamsql.definitions import Query
from streamsql.errors import Source, StreamsqlError, UnmetExpectation
from streamsql.features.testing import statement as statements
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.cases import Case
from streamsql.features.testing.expectations import EXPECTATIONS
from streamsql.features.testing.further_rows import prepared
from streamsql.features.testing.pipeline import Pipeline
from streamsql.features.testing.statement import ExpectFailure, Test
from streamsql.language.parser import parse
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.query import StartQuery, StopQuery
from streamsql.language.tokens import quote_name
from streamsql.output.control_characters import harmless
from streamsql.output.document import PLAIN
from streamsql.output.drawn_tables import draw
from streamsql.output.error_text import format_error
from streamsql.results import Rows
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.run import BUSY
from streamsql.runtime.session import Session


def load_pipeline(case: Case, session: Session) -> None:
    """Run the scripts under test, and what stands before the test in its file. session: of this test alone.
    Raises the first error, at its place.
    """
    pipeline = Pipeline(session, CancelToken())
    try:
        for source in case.pipelines:
            pipeline.load(source)
        pipeline.run(case.before)
    except StreamsqlError as error:
        raise error.at(case.source, case.written.span) from error.__cause__


def run_case(case: Case, session: Session) -> None:
    """Run a test in the session that has its pipeline. Raises its first error, at its place."""
    session.variables["here"] = str(Path(case.source.name).parent)
    try:
        test = parse(case.written, session.variables)
        assert isinstance(test, Test)
        run_test(Bench(session, CancelToken()), test, case.source)
    except StreamsqlError as error:
        raise error.at(case.source, case.written.span) from error.__cause__


def explained(error: StreamsqlError) -> str:
    """An error as lines: its place, what is wrong, and the rows that are missing or too many as a table."""
    text = format_error(error)
    if isinstance(error, UnmetExpectation) and error.rows:
        numeric = tuple(all(_is_number(v) for v in column) for column in zip(*error.rows, strict=True))
        text += "\n" + "\n".join(draw(Rows((), error.columns, error.rows, numeric), PLAIN).lines)
    return harmless(text)


def _is_number(value: object) -> bool:
    return value is None or (hasattr(value, "__float__") and not isinstance(value, bool))


def run_test(bench: Bench, test: Test, source: Source) -> None:
    """Run a test, whose pipeline is loaded. source: the file of the test. Raises the first error, an
    UnmetExpectation among them, at its statement; that of a query, at the statement after which it failed.
    """
    last: Statement = test
    try:
        if type(test.body[0]) in EXPECTATIONS:
            bench.settle()
        bench.watch()
        bench.begin_step()
        compared = False
        for statement in test.body:
            if not isinstance(statement, ExpectFailure):
                bench.raise_failure()
            last = statement
            expectation = EXPECTATIONS.get(type(statement))
            if expectation:
                expectation(bench, statement)
                compared = True
                continue
            if compared:
                bench.begin_step()
                compared = False
            _act(bench, statement)
        bench.raise_failure()
    except StreamsqlError as error:
        error.at(source, last.span)
        raise
    except Exception as error:
        raise translate(error, None, bench.session.catalog.relation_names()).at(source, last.span) from error


def _act(bench: Bench, statement: Statement) -> None:
    action = ACTIONS.get(type(statement))
    if action:
        action(bench, statement)
    else:
        bench.execute(prepared(bench.session, statement))
    bench.settle()


def _named(bench: Bench, name: Name | None) -> list[Query]:
    """The query of that name; for None all, those that feed others first. Raises NameFault."""
    queries = bench.session.catalog.named(name)
    return sorted(queries, key=lambda query: bool(query.inputs))


def _restart(bench: Bench, statement: statements.RestartQuery) -> None:
    for query in _named(bench, statement.name):
        name = Name(query.name, statement.name.span if statement.name else statement.span)
        running = bench.session.parts.queries.all.get(query.name.casefold())
        if running is not None and running.status() in BUSY:
            bench.execute(StopQuery(name=name, text=f"STOP QUERY {quote_name(query.name)}"))
        bench.failures = [r for r in bench.failures if r is not running]
        bench.execute(StartQuery(name=name, text=f"START QUERY {quote_name(query.name)}"))


def _kill(bench: Bench, statement: statements.KillQuery) -> None:
    """End queries at once. The commit of the last micro-batch is removed, as if it had not been written."""
    for query in reversed(_named(bench, statement.name)):
        running = bench.session.parts.queries.all.get(query.name.casefold())
        if running is None or running.status() not in BUSY:
            continue
        bench.session.parts.queries.stop(running, bench.cancel, 0)
        if not running.is_refresh:
            _remove_last_commit(Path(running.plan.checkpoint) / "commits")


def _remove_last_commit(folder: Path) -> None:
    batches = sorted((int(f.name), f) for f in folder.glob("*") if f.name.isdigit())
    if batches:
        number, commit = batches[-1]
        commit.unlink()
        (folder / f".{number}.crc").unlink(missing_ok=True)


ACTIONS: dict[type[Statement], Callable[[Bench, Any], None]] = {
    statements.RestartQuery: _restart,
    statements.KillQuery: _kill,
}
