"""Runs the statements of one TEST."""

from __future__ import annotations

from streamsql.errors import Source, StreamsqlError
from streamsql.features.testing.actions import ACTIONS
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.expectations import EXPECTATIONS
from streamsql.features.testing.further_rows import prepared
from streamsql.features.testing.statement import ExpectFailure, Test
from streamsql.language.statements.base import Statement
from streamsql.runtime.engine.spark_errors import translate


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
