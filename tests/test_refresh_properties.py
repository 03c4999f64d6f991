"""Random SELECTs over streams, live tables and tables, as live tables and INSERTs in stages: after every micro-batch
the rows, and what all changes together give, are those of the same SELECT over all rows in Spark.

Two seeds are slow tests. The long form is
`STREAMSQL_REFRESHES=50 python -m pytest -s tests/test_refresh_properties.py`; it prints each SELECT. Seeds from
another number on: STREAMSQL_FIRST_SEED.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from typing import Any

import pytest
from conftest import Console

from streamsql.errors import StreamsqlError
from streamsql.runtime.queries import start_refresh
from streamsql.runtime.queries.start_refresh import computed

ROOMS = ("streamsql/plan/", "streamsql/runtime/")

SEEDS = int(os.environ.get("STREAMSQL_REFRESHES", "2"))
FIRST = int(os.environ.get("STREAMSQL_FIRST_SEED", "0"))
LONG = SEEDS > 2
VIEWS = 5
NO_ROW = "('', 0)"
# Each row of s changes their rows, so that all views over them are computed again.
FIRST_VIEWS = (
    "SELECT k, v FROM s",
    "SELECT k, count(*) AS v FROM s GROUP BY k",
    "SELECT max(k) AS k, count(*) AS v FROM s",
)
QUERIES, BATCHES = 3, 3
KEYS = ("'a'", "'b'", "'c'", "NULL")


class Generator:
    """Random SELECTs with the columns k and v, over leaves: {s} and {r} stand for the streams."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.leaves = ("SELECT k, v FROM {s}", "SELECT k, w AS v FROM {r}")

    def select(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(self.leaves)
        kinds = (
            self.filtered, self.grouped, self.grouped, self.joined, self.joined, self.numbered, self.within,
            self.compared, self.distinct, self.combined, self.top,
        )  # fmt: skip
        return self.random.choice(kinds)(depth - 1)

    def of(self, depth: int) -> str:
        return f"({self.select(self.random.randint(0, depth))})"

    def filtered(self, depth: int) -> str:
        return f"SELECT k, v FROM {self.of(depth)} WHERE {self.condition()}"

    def condition(self) -> str:
        return self.random.choice(("v > 2", "v <= 3", "k = 'a'", "k IS NOT NULL", "v % 2 = 0"))

    def grouped(self, depth: int) -> str:
        value = self.random.choice(("count(*)", "sum(v)", "max(v)", "min(v)", "count(DISTINCT v)"))
        having = self.random.choice(("", "", f" HAVING {value} > 1", " HAVING count(*) < 3"))
        if self.random.random() < 0.2:
            return f"SELECT max(k) AS k, v FROM {self.of(depth)} GROUP BY v"
        return f"SELECT k, {value} AS v FROM {self.of(depth)} GROUP BY k{having}"

    def joined(self, depth: int) -> str:
        how = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        on = self.random.choice(("a.k = b.k", "a.k = b.k AND a.v <= b.v", "a.v = b.v"))
        columns = (
            "a.k, a.v"
            if how.endswith(("SEMI JOIN", "ANTI JOIN"))
            else "coalesce(a.k, b.k) AS k, b.v - a.v AS v"
        )
        return f"SELECT {columns} FROM {self.of(depth)} a {how} {self.of(depth)} b ON {on}"

    def numbered(self, depth: int) -> str:
        number = "row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST)"
        rows = f"SELECT *, {number} AS rn FROM {self.of(depth)}"
        return f"SELECT k, v FROM ({rows}) WHERE rn <= {self.random.randint(1, 2)}"

    def within(self, depth: int) -> str:
        some = f"SELECT v FROM {self.of(depth)} WHERE v IS NOT NULL"
        return f"SELECT k, v FROM {self.of(depth)} WHERE v {self.random.choice(('IN', 'NOT IN'))} ({some})"

    def compared(self, depth: int) -> str:
        return f"SELECT k, v FROM {self.of(depth)} WHERE v >= (SELECT avg(v) FROM {self.of(depth)})"

    def distinct(self, depth: int) -> str:
        return f"SELECT DISTINCT k, v FROM {self.of(depth)}"

    def combined(self, depth: int) -> str:
        word = self.random.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
        return f"SELECT k, v FROM {self.of(depth)} {word} SELECT k, v FROM {self.of(depth)}"

    def top(self, depth: int) -> str:
        return f"SELECT k, v FROM {self.of(depth)} ORDER BY v DESC NULLS LAST, k NULLS LAST LIMIT 3"

    def rows(self) -> list[str]:
        """The rows of a micro-batch, as SQL."""
        count = self.random.randint(1, 4)
        return [f"({self.random.choice(KEYS)}, {self.random.randint(1, 5)})" for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.timeout(600)
def test_a_live_table_equals_its_select_over_all_rows(console: Console, seed: int) -> None:
    generator = Generator(seed)
    console.run(
        "CREATE STREAM s (k STRING, v INT) USING values; CREATE STREAM r (k STRING, w INT) USING values;"
    )
    selects, inserted = {}, ""
    while len(selects) < QUERIES:
        text, name = generator.select(3 if LONG else 2), f"t{len(selects)}"
        query = text.format(s="s", r="r")
        if (seed + len(selects)) % 3 == 2:  # by way of a stream that is a query
            query = f"SELECT * FROM {name}_rows"
        try:
            console.run(f"CREATE OR REPLACE STREAM {name}_rows AS {text.format(s='s', r='r')};")
            console.run(f"CREATE LIVE TABLE {name} AS {query};")
        except StreamsqlError as error:
            if LONG:
                print(f"-- {seed}: {error.code} {error.message}: {text}", flush=True)
            continue  # some run neither on a stream nor in stages
        selects[name] = text
        if not inserted:
            sink = f"CREATE SINK changes USING memory; INSERT INTO changes {text.format(s='s', r='r')};"
            staged = console.run(sink)[-1]
            inserted = name if any(note.code == "CHANGES_WRITTEN" for note in staged.notes) else ""
            if not inserted:
                console.run("DROP QUERY changes; DROP SINK changes;")
        if LONG:
            print(f"-- {seed}: {text}", flush=True)
    spark, known = console.session.spark, {"s": list[str](), "r": list[str]()}
    for _ in range(BATCHES):
        for name in generator.random.choice((("s",), ("r",), ("s", "r"))):
            rows = generator.rows()
            known[name] += rows
            console.run(f"INSERT INTO {name} VALUES {', '.join(rows)};")
        console.run("AWAIT QUERY ALL IDLE;")
        of = {
            name: f"(SELECT CAST(k AS STRING) AS k, {value} FROM VALUES {', '.join(rows)} t(k, {value}))"
            if rows
            else f"(SELECT CAST('' AS STRING) AS k, 1 AS {value} WHERE false)"
            for (name, rows), value in zip(known.items(), "vw", strict=True)
        }
        for name, text in selects.items():
            expected = Counter(map(tuple, spark.sql(text.format(**of)).collect()))
            assert Counter(console.rows(f"SELECT * FROM {name};")) == expected, (text, known)
            if name == inserted:
                given = Counter[object]()
                for op, *row in console.rows("SELECT * FROM changes;"):
                    given[tuple(row)] += 1 if op in ("+I", "+U") else -1
                assert +given == expected, (text, known)


class Chain:
    """Live tables over each other, streams and a table: v1 reads a stream, each other one the one before it and
    more. rows: what the streams s and r, and the table t, have been given, as SQL.
    """

    def __init__(self, console: Console, generator: Generator) -> None:
        self.console = console
        self.generator = generator
        self.rows: dict[str, list[str]] = {"s": [], "r": [], "t": ["('a', 2)"]}
        self.views: dict[str, str] = {}

    def define(self) -> None:
        """Create the live tables; a SELECT that does not run is replaced by another."""
        streams = self.generator.leaves
        while len(self.views) < VIEWS:
            name, chance = f"v{len(self.views) + 1}", self.generator.random
            before = tuple(f"SELECT k, v FROM {view}" for view in self.views)
            # A table beside a stream is read with each micro-batch, once; with live tables at each refresh.
            others = chance.choice((streams, streams, ("SELECT k, v FROM t",))) if before else streams
            self.generator.leaves = (*before[-1:] * 2, *before, *others)
            text = self.generator.select(2 if LONG else 1) if before else chance.choice(FIRST_VIEWS)
            if before and before[-1] not in text:
                text = f"SELECT k, v FROM ({text}) UNION ALL {before[-1]}"
            text = text.replace("{s}", "s").replace("{r}", "r")
            try:
                self.console.run(f"CREATE LIVE TABLE {name} AS {text};")
            except StreamsqlError as error:
                assert error.code in ("NOT_ON_STREAMS", "OUTPUT_MODE_NOT_SUPPORTED"), (text, error)
                continue
            self.views[name] = text
            if LONG:
                print(f"-- {name}: {text}", flush=True)

    def insert(self) -> None:
        """Give one of the streams, or the table, some rows."""
        name = self.generator.random.choice("ssrrt")
        rows = self.generator.rows()
        self.rows[name] += rows
        self.console.run(f"INSERT INTO {name} VALUES {', '.join(rows)};")

    def expected(self, name: str) -> Counter[tuple[object, ...]]:
        """The rows of a live table, as Spark computes them over all rows."""
        ctes = []
        for relation, rows in self.rows.items():
            column = "w" if relation == "r" else "v"
            given = f"VALUES {', '.join(rows) or NO_ROW} g(k, {column})"
            where = "" if rows else " WHERE false"
            ctes.append(f"{relation} AS (SELECT CAST(k AS STRING) AS k, {column} FROM {given}{where})")
        ctes += [f"{view} AS ({text})" for view, text in self.views.items()]
        return Counter(
            map(
                tuple,
                self.console.session.spark.sql(f"WITH {', '.join(ctes)} SELECT * FROM {name}").collect(),
            )
        )

    def check(self) -> None:
        for name in self.views:
            rows = Counter(self.console.rows(f"SELECT * FROM {name};"))
            assert rows == self.expected(name), (name, self.views, self.rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.timeout(900)
def test_views_over_views_streams_and_tables_equal_their_selects(
    console: Console, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come in any order; a refresh may take longer than several micro-batches."""
    generator, free = Generator(seed), threading.Event()
    free.set()

    def slow(*arguments: Any) -> Any:
        free.wait(60)
        return computed(*arguments)

    monkeypatch.setattr(start_refresh, "computed", slow)
    console.run(
        """CREATE STREAM s (k STRING, v INT) USING values; CREATE STREAM r (k STRING, w INT) USING values;
        CREATE TABLE t (k STRING, v INT) USING parquet; INSERT INTO t VALUES ('a', 2);"""
    )
    chain = Chain(console, generator)
    for _ in range(generator.random.choice((0, 1))):
        chain.insert()
    chain.define()
    for _ in range(BATCHES):
        if generator.random.random() < 0.5:
            free.clear()
        for _ in range(generator.random.choice((1, 1, 3))):
            chain.insert()
        # A table announces no change: the next micro-batch of a stream brings it.
        for name, rows in (("s", "('c', 9)"), ("r", "('c', 8)")):
            chain.rows[name].append(rows)
            console.run(f"INSERT INTO {name} VALUES {rows};")
        free.set()
        console.run("AWAIT QUERY ALL IDLE;")
        chain.check()
