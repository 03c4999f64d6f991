"""Any sequence of changes, rollbacks, stops, kills, new columns and new rows: a live table has the rows of its
SELECT.

More of them: `STREAMSQL_CHANGES=50 python -m pytest -m slow tests/features/change/test_change_machine.py`.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import drop_tables
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from test_reopened import Opened

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")
EXAMPLES = int(os.environ.get("STREAMSQL_CHANGES", "3"))
KEPT = 2

Rows = list[tuple[str, int]]


def totals(rows: Rows) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for k, n in rows:
        found[k] += n
    return found


def ranked(rows: Rows) -> list[tuple[Any, ...]]:
    sums = totals(rows)
    return [(k, v, 1 + sum(other > v for other in sums.values())) for k, v in sums.items()]


SELECTS: dict[str, Callable[[Rows], list[tuple[Any, ...]]]] = {
    "SELECT k, n FROM s": lambda rows: list(rows),
    "SELECT k, sum(n) AS v FROM s GROUP BY k": lambda rows: list(totals(rows).items()),
    "SELECT k, sum(n) AS v FROM s WHERE n > 2 GROUP BY k": lambda rows: list(
        totals([row for row in rows if row[1] > 2]).items()
    ),
    "SELECT k, v, rank() OVER (ORDER BY v DESC) AS r FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)": ranked,
    "SELECT max(v) AS v FROM (SELECT k, sum(n) AS v FROM s GROUP BY k)": lambda rows: [
        (max(totals(rows).values(), default=None),)
    ],
    "SELECT * FROM s": lambda rows: list(rows),
    "SELECT count(*) AS c FROM base": lambda rows: [(len(rows),)],
}
OF_A_STREAM = list(SELECTS)[:3]


@dataclass(frozen=True)
class Generation:
    """select: its query; begins: the row of the stream with which it begins; number: counts generations."""

    select: str
    begins: int = 0
    number: int = field(default=0)


class Changes(RuleBasedStateMachine):
    """One live table of one workspace, and two tables that read it, one of them all its columns."""

    folder: Path
    spark: Any

    def __init__(self) -> None:
        super().__init__()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.console = Opened(self.folder / "w", self.spark)
        self.rows: Rows = []
        self.added = 0
        self.stopped = False
        self.in_use: Generation = Generation("")
        self.staged: Generation | None = None
        self.left: list[Generation] = []

    @initialize(select=st.sampled_from(list(SELECTS)))
    def define(self, select: str) -> None:
        self.run(
            "CREATE STREAM s (k STRING, n INT) USING values; CREATE LIVE TABLE base AS SELECT k, n FROM s;"
        )
        self.insert([("a", 1)])
        self._create(select)
        self.check()

    def _create(self, select: str) -> None:
        self.run(
            f"CREATE LIVE TABLE t AS {select}; CREATE LIVE TABLE reader AS SELECT count(*) AS c FROM t;"
            "CREATE LIVE TABLE whole AS SELECT * FROM t;"
        )
        self.in_use = Generation(select)

    @rule(rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), min_size=1, max_size=3))
    def insert(self, rows: Rows) -> None:
        self.run("INSERT INTO s (k, n) VALUES " + ", ".join(f"('{k}', {n})" for k, n in rows) + ";")
        self.rows += rows

    @rule(select=st.sampled_from(list(SELECTS)))
    def stage(self, select: str) -> None:
        self.run(f"CREATE OR REPLACE LIVE TABLE t STAGED AS {select};")
        self.staged = Generation(select)

    @rule(select=st.sampled_from(OF_A_STREAM))
    def stage_from_now(self, select: str) -> None:
        self.run(f"CREATE OR REPLACE LIVE TABLE t STAGED FROM NOW AS {select};")
        self.staged = Generation(select, len(self.rows))

    @rule(select=st.sampled_from(list(SELECTS)))
    def replace(self, select: str) -> None:
        self.run(f"CREATE OR REPLACE LIVE TABLE t AS {select};")
        self.run("STOP QUERY whole; START QUERY whole;")  # which reads all columns
        self._put_in_use(Generation(select))
        self.stopped = False

    @precondition(lambda self: self.staged)
    @rule()
    def promote(self) -> None:
        self.run("PROMOTE t;")
        assert self.staged
        self._put_in_use(self.staged)
        self.staged = None

    @precondition(lambda self: self.left)
    @rule()
    def rollback(self) -> None:
        self.run("ROLLBACK t;")
        self._put_in_use(self.left.pop(0))

    @precondition(lambda self: self.staged)
    @rule()
    def drop_staged(self) -> None:
        self.run("DROP STAGED t;")
        self.staged = None

    @precondition(lambda self: self.added < 2)
    @rule()
    def new_column(self) -> None:
        self.added += 1
        self.run(f"ALTER STREAM s ADD COLUMN x{self.added} INT;")

    @rule(select=st.sampled_from(list(SELECTS)))
    def drop(self, select: str) -> None:
        self.run("DROP LIVE TABLE whole; DROP LIVE TABLE reader; DROP LIVE TABLE t;")
        self.staged, self.left, self.stopped = None, [], False
        self._create(select)

    @precondition(lambda self: not self.stopped)
    @rule()
    def stop(self) -> None:
        self.run("STOP QUERY t;")
        self.stopped = True

    @precondition(lambda self: self.stopped)
    @rule()
    def start(self) -> None:
        self.run("START QUERY t;")
        self.stopped = False

    @precondition(lambda self: self.staged and not self.stopped)
    @rule()
    def compare(self) -> None:
        assert self.staged
        before, after = self.in_use, self.staged
        if not set(self._columns(before)) & set(self._columns(after)):
            with pytest.raises(StreamsqlError, match="no column in common"):
                self.run("COMPARE LIVE TABLE t;")
            return
        rows = self.console.rows("COMPARE LIVE TABLE t LIMIT 1000;")
        if self._columns(before) == self._columns(after):
            sides = [sorted((r[2:] for r in rows if side in r[0]), key=repr) for side in ("before", "after")]
            answers = self._answer(before), self._answer(after)
            assert sides == [_more(*answers), _more(*reversed(answers))]

    @rule(killed=st.booleans())
    def next_day(self, killed: bool) -> None:
        self.run("AWAIT QUERY ALL IDLE;")
        if killed:
            shutil.copytree(self.folder / "w", self.folder / "left", symlinks=True)
        self.console.session.close()
        if killed:
            shutil.rmtree(self.folder / "w")
            (self.folder / "left").rename(self.folder / "w")
        self.console = Opened(self.folder / "w", self.spark)
        assert self.console.warnings == []
        self.run("START QUERY ALL; START QUERY t;")
        self.stopped = False

    def check(self) -> None:
        if not self.in_use.select:
            return
        self.run("AWAIT QUERY ALL IDLE;")
        if not self.stopped:
            assert self._shown("t") == self._answer(self.in_use)
            assert self._shown("whole") == self._answer(self.in_use)
            assert self.console.rows("SELECT c FROM reader;") == [(len(self._answer(self.in_use)),)]
        assert [row[0] for row in self.console.rows("SHOW STAGED;")] == (["t"] if self.staged else [])
        if self.staged:
            assert self._shown("t$staged") == self._answer(self.staged)
        generations = self.console.rows("SHOW GENERATIONS OF t;")
        assert sum(row[2] == "left" for row in generations) == len(self.left)

    def check_invariants(self, settings: Any, *more: Any) -> None:
        self.check()
        super().check_invariants(settings, *more)

    def teardown(self) -> None:
        self.console.session.close()
        drop_tables(self.spark)

    def run(self, script: str) -> None:
        self.console.run(script)

    def _put_in_use(self, generation: Generation) -> None:
        self.left = [self.in_use, *self.left][:KEPT]
        self.in_use = generation

    def _answer(self, generation: Generation) -> list[Any]:
        rows = SELECTS[generation.select](self.rows[generation.begins :])
        added = (None,) * self.added if "*" in generation.select.split() else ()
        return sorted(((*row, *added) for row in rows), key=repr)

    def _columns(self, generation: Generation) -> list[str]:
        head = generation.select.partition(" FROM ")[0].removeprefix("SELECT ")
        if head == "*":
            return ["k", "n", *(f"x{number + 1}" for number in range(self.added))]
        return [part.split(" AS ")[-1].strip() for part in head.split(", ")]

    def _shown(self, table: str) -> list[Any]:
        return sorted(self.console.rows(f"SELECT * FROM {table};"), key=repr)


def _more(rows: list[Any], others: list[Any]) -> list[Any]:
    """The rows that are not among the others, each as often as it is there more often."""
    left = list(others)
    more = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            more.append(row)
    return sorted(more, key=repr)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_any_sequence_of_changes(spark: Any, tmp_path: Path) -> None:
    machine = type("OfTheTest", (Changes,), {"folder": tmp_path / "of", "spark": spark})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=checks,
            phases=(Phase.generate,),
        ),
    )
