"""Runs the statements of one TEST."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamsql.definitions import Query
from streamsql.errors import Source, StreamsqlError
from streamsql.features.testing import statement as statements
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.expectations import EXPECTATIONS
from streamsql.features.testing.further_rows import prepared
from streamsql.features.testing.statement import ExpectFailure, Test
from streamsql.language.statements.base import Name, Statement
from streamsql.language.statements.query import StartQuery, StopQuery
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.queries.run import BUSY


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
        running = bench.session.queries.all.get(query.name.casefold())
        if running is not None and running.status() in BUSY:
            bench.execute(StopQuery(name=name, text=f"STOP QUERY {quote_name(query.name)}"))
        bench.failures = [r for r in bench.failures if r is not running]
        bench.execute(StartQuery(name=name, text=f"START QUERY {quote_name(query.name)}"))


def _kill(bench: Bench, statement: statements.KillQuery) -> None:
    """End queries at once. The commit of the last micro-batch is removed, as if it had not been written."""
    for query in reversed(_named(bench, statement.name)):
        running = bench.session.queries.all.get(query.name.casefold())
        if running is None or running.status() not in BUSY:
            continue
        bench.session.queries.stop(running, bench.cancel, 0)
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
