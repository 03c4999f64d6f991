"""The cases of the guide, of learn-spark and of Spark's own suites. Each was replayed on plain PySpark 4.3.0.

They run as TESTs in SQL, one after the other on one Spark. What a TEST does not express is played through a console:
streams of files, with real files in real folders, and errors that are known by their words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, in_main_run
from sql_cases import results_of
from truth.cases import Case, definitions, groups, is_test, sql_test

from streamsql.calls import Node
from streamsql.connectors.base import Connector
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink
from streamsql.errors import StreamsqlError
from streamsql.features.testing.sessions import SessionFactory
from streamsql.runtime.engine.settings import Settings

ROOMS = ("streamsql/plan/", "streamsql/runtime/", "streamsql/features/testing/", "tests/truth/")

ALL = {name: case for group in groups().values() for name, case in group.items()}
INFERRED = "file_json_needs_schema"
"""Spark refuses a stream of files without columns unless schemaInference is set. The language infers them once, at
CREATE STREAM, and keeps them.
"""
BY_WORDS = [n for n, c in ALL.items() if not is_test(c) and "expected_error" in c and n != INFERRED]
OF_FILES = [n for n, c in ALL.items() if "file_source" in c and "expected_error" not in c]
AS_TESTS = [name for name, case in ALL.items() if is_test(case)]


def grouped_tests(chosen: Collection[str]) -> dict[str, list[str]]:
    """The chosen cases as TESTs, by their groups."""
    tests = {
        group: [sql_test(case) for name, case in cases.items() if name in chosen]
        for group, cases in groups().items()
    }
    return {group: listed for group, listed in tests.items() if listed}


PHASES = ("define", "start", "run")


def test_every_case_is_asserted() -> None:
    """Once, by its name; and none was lost on the way into the repository."""
    names = sorted([*BY_WORDS, *OF_FILES, INFERRED, *AS_TESTS])
    assert names == sorted(case["name"] for group in groups().values() for case in group.values())
    assert {group: len(cases) for group, cases in groups().items()} == {
        "learn_spark": 7, "guide": 9, "aggregation": 10, "dedup": 15, "event_time": 20, "file_source": 18,
        "unsupported": 22,
    }  # fmt: skip


# ---- as TESTs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def factory(spark: Any) -> Iterator[SessionFactory]:
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    yield factory
    factory.close()


MAIN = [name for name in AS_TESTS if in_main_run(name, 6)]
NIGHTLY = [name for name in AS_TESTS if name not in MAIN]


@pytest.mark.parametrize(
    ("group", "tests"),
    [
        *(pytest.param(*group, id=group[0]) for group in grouped_tests(MAIN).items()),
        *(
            pytest.param(*group, id=f"others of {group[0]}", marks=pytest.mark.slow)
            for group in grouped_tests(NIGHTLY).items()
        ),
    ],
)
def test_cases_pass_as_tests(group: str, tests: list[str], factory: SessionFactory, tmp_path: Path) -> None:
    file = tmp_path / f"{group}.test.sql"
    file.write_text("SET spark.sql.session.timeZone = UTC;\n\n" + "\n".join(tests), "utf-8")
    results = results_of([str(file)], factory)
    assert len(results) == len(tests)
    assert not "\n".join(filter(None, results.values()))


# ---- errors that are known by their words -------------------------------------------------------


@pytest.mark.parametrize("name", BY_WORDS)
def test_what_is_refused_says_why(name: str, console: Console, tmp_path: Path) -> None:
    """All words are in what the user sees. Refusing earlier than Spark is as good."""
    *before, insert = definitions(ALL[name], path=str(tmp_path))
    expected = ALL[name]["expected_error"]
    statements = {"define": before, "start": [insert], "run": ["AWAIT QUERY out IDLE"]}
    with pytest.raises(StreamsqlError) as raised:
        for phase in PHASES[: PHASES.index(expected["phase"]) + 1]:
            for statement in statements[phase]:
                console.run(statement)
    error = raised.value
    seen = "\n".join((error.condition, error.message, error.detail, error.hint))
    missing = [word for word in expected["message_contains"] if word.casefold() not in seen.casefold()]
    assert not missing, seen
    assert error.condition == expected.get("error_class", error.condition)


# ---- streams of files ---------------------------------------------------------------------------


class Collector(Connector):
    """A sink that keeps the rows of each micro-batch that has some."""

    name = "collector"
    help = "keeps the rows of each micro-batch; for the tests"
    writes = ()

    def __init__(self) -> None:
        self.batches: list[list[tuple[Any, ...]]] = []

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return writer.call("foreachBatch", self.keep)

    def keep(self, batch: Any, batch_id: int) -> None:
        rows = [tuple(row) for row in batch.collect()]
        self.batches += [rows] if rows else []

    def taken(self) -> list[list[tuple[Any, ...]]]:
        """The micro-batches since the last call."""
        taken, self.batches = self.batches, []
        return taken


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    collector = Collector()
    monkeypatch.setitem(connectors(), "collector", collector)
    return collector


class Files:
    """A folder of files, each a second younger than the one before: the source goes by their age."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            self.written += 1
            age = time.time() - 1000 + self.written
            os.utime(path, (age, age))


@contextmanager
def held(console: Console) -> Iterator[None]:
    """Keep the query from looking for new files meanwhile, so that it finds all of a step at once. Spark's own suites
    take the same lock for that (StreamProgressLockedActions); it belongs to the JVM thread of this Python thread.
    """
    lock = console.session.parts.queries.all["out"].handle._jsq.streamingQuery().awaitProgressLock()
    lock.lock()
    try:
        yield
    finally:
        lock.unlock()


def schema_of(console: Console, stream: str) -> str:
    """The columns of a stream as the cases write them."""
    rows = console.rows(f"DESCRIBE STREAM {stream}")
    found = [(name.removeprefix("column "), kind) for name, kind in rows if name.startswith("column ")]
    return f"struct<{','.join(f'{name}:{kind.lower()}' for name, kind in found)}>"


def in_any_order(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


@pytest.mark.parametrize("name", OF_FILES)
def test_a_stream_of_files(name: str, console: Console, collector: Collector, tmp_path: Path) -> None:
    case, files = ALL[name], Files(tmp_path / "input")
    files.folder.mkdir()
    files.write(case.get("existing", {}))
    *before, insert = definitions(case, "collector", str(files.folder))
    for statement in before:
        console.run(statement)
    if "expected_schema" in case:
        assert schema_of(console, "input") == case["expected_schema"]
    files.write(case.get("after_define", {}))
    console.run(insert)
    console.run("AWAIT QUERY out IDLE")
    for number, step in enumerate(case["steps"]):
        check_step(console, collector, files, case, number, step)


def check_step(
    console: Console, collector: Collector, files: Files, case: Case, number: int, step: dict[str, str]
) -> None:
    """Write the files of a step, and compare what comes out."""
    if number in case.get("restart_before", []):
        console.run("STOP QUERY out; START QUERY out")
    with held(console):
        files.write(step)
    console.run("AWAIT QUERY out IDLE")
    batches = collector.taken()
    if "expected" in case:
        rows = [row for batch in batches for row in batch]
        assert in_any_order(rows) == in_any_order(case["expected"][number]), f"step {number}"
    if "expected_batches" in case:
        wanted = case["expected_batches"][number]
        assert [in_any_order(b) for b in batches] == [in_any_order(b) for b in wanted], f"step {number}"


def test_columns_of_files_are_inferred_at_create(console: Console, tmp_path: Path) -> None:
    case = ALL[INFERRED]
    Files(tmp_path).write(case["existing"])
    create, *_ = definitions(case, path=str(tmp_path))
    console.run(create)
    assert schema_of(console, "input") == "struct<c:string>"
    assert console.rows("SELECT * FROM input") == [("1",)]
