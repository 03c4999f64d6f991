"""Random sessions over one workspace: after each step, all live tables and queries have the rows of their SELECTs.

A few short sessions are a part of the suite. The long form is

    STREAMSQL_SESSIONS=50 STREAMSQL_STEPS=40 python -m pytest -s tests/faults/test_sessions.py -k random

With STREAMSQL_KILLED=1 each session has a process of its own, which is killed with its JVM where it crashes. Other
sessions: STREAMSQL_FIRST_SEED. A session that fails prints its story; as a file in tests/faults/stories, made
shorter by hand, it becomes a test.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import drop_tables
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from story import OpenConsole, Story, told
from story_console import Here, Process
from test_refresh_properties import Generator

ROOMS = ("streamsql/runtime/", "streamsql/plan/")

SESSIONS = int(os.environ.get("STREAMSQL_SESSIONS", "2"))
STEPS = int(os.environ.get("STREAMSQL_STEPS", "12"))
FIRST = int(os.environ.get("STREAMSQL_FIRST_SEED", "0"))
KILLED = os.environ.get("STREAMSQL_KILLED") == "1"
LONG = "STREAMSQL_SESSIONS" in os.environ
STORIES = Path(__file__).parent / "stories"
VIEWS, QUERIES, STREAMS = 4, 2, 3
KEYS = ("'a'", "'b'", "'c'", "NULL")

rows = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(1, 5)).map(lambda row: f"({row[0]}, {row[1]})"),
    min_size=1,
    max_size=4,
).map(", ".join)
seeds = st.binary(min_size=6, max_size=6).map(lambda drawn: int.from_bytes(drawn, "big"))


class Selects(Generator):
    """Random SELECTs over some relations; EXISTS among them."""

    def __init__(self, seed: int, relations: list[str]) -> None:
        super().__init__(seed)
        self.leaves = tuple(f"SELECT k, v FROM {name}" for name in relations)

    def select(self, depth: int) -> str:
        if depth and self.random.random() < 0.15:
            return self.existing(depth - 1)
        return super().select(depth)

    def existing(self, depth: int) -> str:
        word = self.random.choice(("EXISTS", "NOT EXISTS"))
        return f"SELECT k, v FROM {self.of(depth)} o WHERE {word} (SELECT 1 FROM {self.of(depth)} i WHERE i.k = o.k)"


class Sessions(RuleBasedStateMachine):
    """opened: opens a console on the workspace in a folder; spark: gives the answers; place: for the folders."""

    opened: Callable[[Path], OpenConsole]
    spark: Any
    place: Path
    number = 0

    def __init__(self) -> None:
        super().__init__()
        Sessions.number += 1
        self.folder = self.place / f"session{Sessions.number}"
        self.folder.mkdir()
        self.story = Story(self.folder, self.opened, self.spark)
        self.made = 0

    def tell(self, line: str) -> str:
        if LONG:
            print(line, file=sys.stderr, flush=True)
        return self.story.tell(line)

    def new(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    # ---- what can be done ------------------------------------------------------------------------

    @initialize(given=rows, seed=seeds)
    def begin(self, given: str, seed: int) -> None:
        self.tell("CREATE STREAM s0 (k STRING, v BIGINT) USING values;")
        self.tell(f"CREATE STREAM f0 (k STRING, v BIGINT) USING json OPTIONS (path '{self.folder}/f0');")
        self.tell(f"CREATE TABLE t0 (k STRING, v BIGINT) USING parquet; INSERT INTO t0 VALUES {given};")
        self.tell("CREATE LIVE TABLE v0 AS SELECT k, count(*) AS v FROM s0 GROUP BY k;")
        self.tell(f"CREATE LIVE TABLE v00 AS {self.select(seed, 1)};")

    @precondition(lambda self: len(self.story.streams) < STREAMS)
    @rule()
    def another_stream(self) -> None:
        name = self.new("f")
        self.tell(
            f"CREATE STREAM {name} (k STRING, v BIGINT) USING json OPTIONS (path '{self.folder}/{name}', "
            "maxFilesPerTrigger '1');"
        )

    @precondition(lambda self: len(self.story.texts) - len(self.story.live) < 2)
    @rule(seed=seeds)
    def stream_over_a_stream(self, seed: int) -> None:
        stream = random.Random(seed).choice(sorted(self.story.streams))
        self.tell(f"CREATE STREAM {self.new('d')} AS SELECT k, v * 2 AS v FROM {stream} WHERE v < 5;")

    def select(self, seed: int, depth: int, without: str = "") -> str:
        """A SELECT over streams, over live tables and a table, or over a mix of them. without: a live table that
        it must not read.
        """
        chance = random.Random(seed)
        streams = [*sorted(self.story.streams), *sorted(self.story.texts.keys() - self.story.live)]
        live = [
            name for name in sorted(self.story.live) if not without or without not in self.story.below(name)
        ]
        relations = chance.choice(
            (
                streams,
                live,
                [*live, *streams],
                [*live, *streams],
                [*live, "t0"],
                [*live, *streams, "t0", "t0"],
            )
            if live
            else (streams,)
        )
        generator = Selects(seed, chance.sample(relations, min(3, len(relations))))
        text = generator.select(max(1, depth))
        words = set(re.findall(r"\w+", text))
        if "t0" in words and not words & set(live):
            text = re.sub(r"\bt0\b", chance.choice(live), text)  # with streams only, Spark reads a table once
        return text

    @precondition(lambda self: len(self.story.live) < VIEWS)
    @rule(seed=seeds, depth=st.integers(1, 2), check=st.booleans())
    def live_table(self, seed: int, depth: int, check: bool) -> None:
        self.tell(f"CREATE LIVE TABLE {self.new('v')} AS {self.select(seed, depth)};")
        self.perhaps(check)

    @precondition(lambda self: self.story.live)
    @rule(seed=seeds, depth=st.integers(1, 2), check=st.booleans())
    def replaced(self, seed: int, depth: int, check: bool) -> None:
        name = random.Random(seed).choice(sorted(self.story.live))
        self.tell(f"CREATE OR REPLACE LIVE TABLE {name} AS {self.select(seed, depth, name)};")
        self.perhaps(check)

    @precondition(lambda self: len(self.story.queries) < QUERIES)
    @rule(seed=seeds, changes=st.booleans())
    def query(self, seed: int, changes: bool) -> None:
        """INSERT into files of some rows of a stream, or of the changes of a live table."""
        chance, name = random.Random(seed), self.new("c" if changes else "q")
        if changes and self.story.live:
            table = chance.choice(sorted(self.story.live))
            self.tell(
                f"CREATE SINK out_{name} USING memory; INSERT INTO out_{name} AS QUERY {name} SELECT k, v FROM {table};"
            )
        elif not changes:
            stream = chance.choice(sorted(self.story.streams))
            self.tell(
                f"CREATE SINK out_{name} USING json OPTIONS (path '{self.folder}/out_{name}'); "
                f"INSERT INTO out_{name} AS QUERY {name} SELECT k, v FROM {stream} WHERE v > 1;"
            )

    @rule(seed=seeds, given=rows, more=rows, check=st.booleans())
    def input(self, seed: int, given: str, more: str, check: bool) -> None:
        """Rows for one or two inputs, at once."""
        chance = random.Random(seed)
        for part in (given, more)[: chance.choice((1, 2))]:
            name = chance.choice([*sorted(self.story.streams), "t0"])
            self.tell(f"-- file {name} {part}" if name[0] == "f" else f"INSERT INTO {name} VALUES {part};")
        self.perhaps(check)

    @precondition(lambda self: self.story.running)
    @rule(seed=seeds)
    def stop(self, seed: int) -> None:
        names = [*sorted(self.story.running), "ALL"]
        self.tell(f"STOP QUERY {random.Random(seed).choice(names)};")

    @precondition(lambda self: {*self.story.live, *self.story.queries} - self.story.running)
    @rule(seed=seeds, check=st.booleans())
    def start(self, seed: int, check: bool) -> None:
        stopped = sorted({*self.story.live, *self.story.queries} - self.story.running)
        self.tell(f"START QUERY {random.Random(seed).choice([*stopped, 'ALL', 'ALL'])};")
        self.perhaps(check)

    @precondition(lambda self: self.story.live)
    @rule(seed=seeds, check=st.booleans())
    def from_beginning(self, seed: int, check: bool) -> None:
        streams = self.story.given.keys() | self.story.texts.keys() - self.story.live
        names = [n for n in sorted(self.story.live) if self.story.below(n) - {n} <= streams]
        if names:
            name = random.Random(seed).choice(names)
            self.tell(f"STOP QUERY {name};")
            self.tell(f"START QUERY {name} FROM BEGINNING;")
            self.perhaps(check)

    @precondition(lambda self: self.story.live)
    @rule(seed=seeds)
    def drop(self, seed: int) -> None:
        self.tell(f"DROP LIVE TABLE {random.Random(seed).choice(sorted(self.story.live))};")

    @rule(how=st.sampled_from(("crash", "restart")), starts=st.booleans(), check=st.booleans())
    def another_console(self, how: str, starts: bool, check: bool) -> None:
        self.tell(f"-- {how}")
        if starts:
            self.tell("START QUERY ALL;")
        self.perhaps(check)

    @precondition(lambda self: KILLED and self.story.live)
    @rule(seed=seeds, depth=st.integers(1, 2), given=rows, seconds=st.integers(0, 20), check=st.booleans())
    def killed(self, seed: int, depth: int, given: str, seconds: int, check: bool) -> None:
        """A kill within a statement."""
        chance = random.Random(seed)
        name, streams = (
            chance.choice(sorted(self.story.live)),
            self.story.given.keys() | self.story.texts.keys(),
        )
        statements = [
            "START QUERY ALL;",
            f"INSERT INTO s0 VALUES {given};",
            f"CREATE OR REPLACE LIVE TABLE {name} AS {self.select(seed, depth, name)};",
        ]
        if not any(name in self.story.below(other) for other in streams - {name}):
            statements.append(f"DROP LIVE TABLE {name};")
        if name not in self.story.running and not self.story.below(name) & self.story.live - {name}:
            statements.append(f"START QUERY {name} FROM BEGINNING;")
        self.tell(f"-- kill {seconds / 10} {chance.choice(statements)}")
        self.tell("START QUERY ALL;")
        self.perhaps(check)

    # ---- what must be true -----------------------------------------------------------------------

    def perhaps(self, check: bool) -> None:
        """Compare all rows; else the next step comes while the queries still process their input."""
        if check:
            self.tell("-- check")

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.tell("START QUERY ALL;")
                self.tell("-- check")
        finally:
            self.story.console.leave()
            drop_tables(self.spark)
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.mark.timeout(36_000)
def test_random_sessions(spark: Any, tmp_path: Path) -> None:
    Sessions.spark, Sessions.place = spark, tmp_path
    Sessions.opened = staticmethod(Process if KILLED else lambda folder: Here(folder, spark))  # type: ignore[assignment]
    run_state_machine_as_test(
        seed(FIRST)(Sessions),
        settings=settings(
            max_examples=SESSIONS,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", sorted(path.stem for path in STORIES.glob("*.story")))
def test_a_session_that_went_wrong_once(spark: Any, tmp_path: Path, story: str) -> None:
    """A line that begins with # is a comment; FOLDER is the folder of the session."""
    lines = (STORIES / f"{story}.story").read_text("utf-8").splitlines()
    session = Story(tmp_path, lambda folder: Here(folder, spark), spark)
    try:
        told(session, [line.replace("FOLDER", str(tmp_path)) for line in lines if not line.startswith("#")])
    finally:
        session.console.leave()
        drop_tables(spark)
