"""Any sequence of changes of a stream and of the live tables over it: rows are always those of the definitions.

More of them: `STREAMSQL_CHANGES=50 python -m pytest -m slow tests/features/change/test_change_sets_machine.py`.
"""

# ruff: noqa: F811  the fixture `opened` is an argument of the tests
from __future__ import annotations

import os
import random
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from test_reopened import Open, Opened, opened  # noqa: F401  the fixture

from streamsql.errors import StreamsqlError

ROOMS = ("streamsql/features/change/", "streamsql/runtime/")
SEEDS = range(int(os.environ.get("STREAMSQL_CHANGES", "2")))
STEPS = 14
REFUSALS = {"IN_USE", "NO_GENERATION", "NOT_STAGED", "NOT_PROMOTED", "UNKNOWN_CHANGE", "UNKNOWN_LIVE_TABLE"}

STREAM = "CREATE OR REPLACE STREAM s{} AS SELECT k, n FROM base WHERE n > {};"
TABLE = "CREATE OR REPLACE LIVE TABLE t{} AS SELECT k, {}(n) AS v FROM s GROUP BY k;"
FRESH = "CREATE OR REPLACE LIVE TABLE fresh{} AS SELECT k, {}(n) AS v FROM s GROUP BY k;"
AGGREGATES: dict[str, Any] = {"sum": sum, "max": max, "count": len}
OF_NAMES = ["PROMOTE s;", "PROMOTE t;", "PROMOTE s, t;", "ROLLBACK s;", "ROLLBACK t;", "DROP STAGED s;",
            "DROP STAGED t;", "DROP STAGED s, t;", "PROMOTE CHANGE c;", "ROLLBACK CHANGE c;", "DROP CHANGE c;",
            "PROMOTE CHANGE c;", "ROLLBACK CHANGE c;", "PROMOTE s, t, fresh;", "DROP LIVE TABLE fresh;"]  # fmt: skip


class Model:
    """The rows that were inserted, and what the definitions make of them."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []

    def grouped(self, least: int, aggregate: str) -> dict[str, int]:
        found = defaultdict(list)
        for k, n in self.rows:
            if n > least:
                found[k].append(n)
        return {k: AGGREGATES[aggregate](values) for k, values in found.items()}

    def check(self, console: Opened) -> None:
        console.run("AWAIT QUERY ALL IDLE;")
        catalog = console.session.catalog
        least = {"": _least(catalog.streams["s"].query)}
        least["$staged"] = _least(staged.query) if (staged := catalog.staged_definition("s")) else least[""]
        aggregates = {"": _aggregate(catalog.queries["t"].text)}
        if catalog.staged("t"):
            aggregates["$staged"] = _aggregate(catalog.queries["t$staged"].text)
        assert staged is None or (catalog.staged("t") and catalog.staged("u")), "all that reads s is staged"
        assert staged is None or catalog.staged("fresh") or "fresh" not in catalog.queries
        for suffix in ("", "$staged"):
            if suffix in aggregates:
                expected = self.grouped(least[suffix], aggregates[suffix])
                assert dict(console.rows(f"SELECT k, v FROM t{suffix};")) == expected, f"t{suffix}"
            if f"top{suffix}" in catalog.queries:
                of_t = self.grouped(least[suffix], aggregates.get(suffix, aggregates[""]))
                assert console.rows(f"SELECT v FROM top{suffix};") == [(max(of_t.values(), default=None),)]
            if f"fresh{suffix}" in catalog.queries:
                aggregate = _aggregate(catalog.queries[f"fresh{suffix}"].text)
                rows = dict(console.rows(f"SELECT k, v FROM fresh{suffix};"))
                assert rows == self.grouped(least[suffix], aggregate), f"fresh{suffix}"
            if f"u{suffix}" in catalog.queries:
                rows = [n for _, n in self.rows if n > least[suffix]]
                assert console.rows(f"SELECT c FROM u{suffix};") == [(len(rows),)], f"u{suffix}"


def _least(text: str) -> int:
    found = re.search(r"n > (\d)", text)
    assert found
    return int(found[1])


def _aggregate(text: str) -> str:
    found = re.search(r"(\w+)\(n\)", text)
    assert found
    return found[1]


def _step(console: Opened, chance: random.Random, model: Model) -> str:
    """Do something; returns what. A refusal changes nothing, which the next check tells."""
    least, aggregate = chance.randint(0, 3), chance.choice(list(AGGREGATES))
    changes = [STREAM.format("{}", least), TABLE.format("{}", aggregate)]
    kind = chance.choice(["insert", "insert", "stage", "stage", "set", "names", "names", "names", "replace"])
    if kind == "insert":
        rows = [(chance.choice("abc"), chance.randint(1, 5)) for _ in range(chance.randint(1, 3))]
        console.run("INSERT INTO base VALUES " + ", ".join(f"('{k}', {n})" for k, n in rows) + ";")
        model.rows += rows
        return f"insert {rows}"
    script = chance.choice(OF_NAMES)
    if kind == "stage":
        script = chance.choice(changes).format(" STAGED")
    elif kind == "set":
        changes.insert(0, FRESH.format("{}", chance.choice(list(AGGREGATES))))
        chance.shuffle(changes)
        script = f"BEGIN CHANGE c; {''.join(changes[: chance.randint(1, 3)]).format('', '', '')} END CHANGE;"
    elif kind == "replace":
        script = changes[1].format("")
    try:
        console.run(script)
    except StreamsqlError as fault:
        assert fault.code in REFUSALS, (script, fault)
        console.session.parts.open_change.clear()
        return f"{script} {fault.code}: {fault.message}"
    return script


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_any_sequence_of_changes_of_a_stream(opened: Open, tmp_path: Path, seed: int) -> None:
    chance, model, done = random.Random(seed), Model(), list[str]()
    console = opened()
    console.run(
        "CREATE STREAM base (k STRING, n INT) USING values;" + STREAM.format("", 0) + TABLE.format("", "sum")
        + "CREATE LIVE TABLE top AS SELECT max(v) AS v FROM t; CREATE LIVE TABLE u AS SELECT count(*) AS c FROM s;"
        "INSERT INTO base VALUES ('a', 1), ('b', 3);"
    )  # fmt: skip
    model.rows += [("a", 1), ("b", 3)]
    for _ in range(STEPS):
        done.append(_step(console, chance, model))
        try:
            model.check(console)
            if chance.random() < 0.2:
                done.append("the next day")
                killed = chance.random() < 0.5
                if killed:
                    shutil.copytree(tmp_path / "w", tmp_path / "left", symlinks=True)
                console.session.close()
                if killed:
                    shutil.rmtree(tmp_path / "w")
                    (tmp_path / "left").rename(tmp_path / "w")
                console = opened()
                assert console.warnings == []
                console.run("START QUERY ALL;")
                model.check(console)
        except (AssertionError, StreamsqlError) as error:
            raise AssertionError("\n".join(["after", *done])) from error
