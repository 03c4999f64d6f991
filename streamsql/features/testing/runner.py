"""Runs tests one after the other, and tells a reporter about each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamsql.errors import Cancelled, StartFault, StreamsqlError
from streamsql.features.testing.bench import Bench
from streamsql.features.testing.cases import Case
from streamsql.features.testing.pipeline import Pipeline
from streamsql.features.testing.sessions import SessionFactory
from streamsql.features.testing.statement import Test
from streamsql.features.testing.test_run import run_test
from streamsql.language.parser import parse
from streamsql.runtime.engine.cancel import CancelToken


@dataclass(frozen=True)
class Outcome:
    """error: why the test has failed; None if it passed. in_test: whether the error is in the test, and not
    in the pipeline.
    """

    case: Case
    seconds: float
    error: StreamsqlError | None = None
    in_test: bool = True

    @property
    def passed(self) -> bool:
        return self.error is None


class Reporter(Protocol):
    """Is told what happens."""

    def begins(self, case: Case, number: int, count: int) -> None: ...

    def ends(self, outcome: Outcome) -> None: ...


def run_case(case: Case, sessions: SessionFactory, cancel: CancelToken) -> Outcome:
    """Run one test in a session of its own. Raises StartFault and Cancelled, no other error."""
    began = time.monotonic()
    in_test = False
    error: StreamsqlError | None = None
    try:
        with sessions.session() as session:
            began = time.monotonic()
            pipeline = Pipeline(session, cancel)
            for source in case.pipelines:
                pipeline.load(source)
            pipeline.run(case.before)
            in_test = True
            session.variables["here"] = str(Path(case.source.name).parent)
            test = parse(case.written, session.variables)
            assert isinstance(test, Test)
            run_test(Bench(session, cancel), test, case.source)
    except (StartFault, Cancelled):
        raise
    except StreamsqlError as fault:
        error = fault.at(case.source, case.written.span)
    return Outcome(case, time.monotonic() - began, error, in_test)


def run_cases(
    cases: Iterable[Case],
    sessions: SessionFactory,
    reporter: Reporter,
    cancel: CancelToken,
    outcomes: list[Outcome],
    *,
    stop_at_failure: bool = False,
) -> None:
    """Run tests in their order, and add their outcomes to a list; with stop_at_failure, up to the first
    failure. Raises StartFault and Cancelled.
    """
    all_cases = list(cases)
    for number, case in enumerate(all_cases, 1):
        reporter.begins(case, number, len(all_cases))
        outcome = run_case(case, sessions, cancel)
        outcomes.append(outcome)
        reporter.ends(outcome)
        if stop_at_failure and not outcome.passed:
            break
