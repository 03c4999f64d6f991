"""Spark's own queries through the console, beside the same through `spark.sql`: equal names and rows."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checked_session import without_comments_before
from conftest import Console, fresh_console
from golden_files import GoldenFiles, GoldenStatement, fetched_files

from streamsql.errors import StreamsqlError
from streamsql.results import Rows, RowStream
from streamsql.runtime.engine.row_values import collect

ROOMS = ("streamsql/language/", "streamsql/plan/", "streamsql/runtime/")

PARTS = 4
"""The parts that the files are tried in: each is a test, with a time limit of its own."""
FILES, QUERIES = 10, 2
"""One in so many files is tried, and one in so many queries of it: the statements before a query, which create
its tables, take longer than the query, so that queries of few files are more than queries of many.
"""
OWN_FUNCTIONS = ("udf/", "udaf/", "udtf/")
"""The folders whose statements call functions that Spark's test suite defines."""

_QUERY = re.compile(r"[\s(]*(SELECT|WITH|VALUES|TABLE|FROM)\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_SET_UP = re.compile(
    r"(ALTER|CACHE|CREATE|DECLARE|DELETE|DROP|INSERT|MERGE|REPLACE|RESET|SET|TRUNCATE|UPDATE|USE|WITH)\b",
    re.IGNORECASE,
)
_ABOVE_A_SORT = {"GlobalLimit", "LocalLimit", "Offset", "UnresolvedWith", "Project"}


@pytest.fixture(scope="module")
def golden() -> GoldenFiles:
    return fetched_files()


@dataclass(frozen=True)
class Answer:
    """The answer to a query. rows: as texts; ordered: whether the query has ORDER BY at its top."""

    names: tuple[str, ...]
    rows: tuple[str, ...]
    ordered: bool = False

    def difference(self, other: Answer) -> tuple[str, str] | None:
        """The kind of the difference to the console's answer, and a sentence; None if there is none."""
        if self.names != other.names:
            return "names", f"columns {other.names}, in Spark {self.names}"
        ours, sparks = Counter(other.rows), Counter(self.rows)
        if ours != sparks:
            more, fewer = list((ours - sparks).elements()), list((sparks - ours).elements())
            return "rows", f"{len(more)} rows that Spark has not: {more[:3]}; {len(fewer)} lack: {fewer[:3]}"
        if self.ordered and self.rows != other.rows:
            return "order", f"{other.rows[:3]}, in Spark {self.rows[:3]}"
        return None


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, PARTS))])
def test_queries_have_the_answers_of_spark(
    golden: GoldenFiles, spark: Any, tmp_path: Path, part: int
) -> None:
    wrong, compared = list[str](), 0
    for number, file in enumerate(_files(golden)):
        if number % PARTS != part:
            continue
        statements = _needed([s for s in golden.statements(file) if not s.error])
        expected = _spark_answers(spark, golden.settings(file), statements)
        different = {}
        with fresh_console(_session(spark, golden.settings(file)), tmp_path / str(number)) as console:
            for statement, kind, told in _differences(console, statements, expected):
                different[statement] = (kind, told)
        _clean(spark)
        if different:  # some answers are never the same, such as the current time
            again = _spark_answers(spark, golden.settings(file), statements)
            different = {s: d for s, d in different.items() if again.get(s) == expected.get(s)}
        compared += len(expected)
        wrong += [f"{kind}: {s.shown(said)}" for s, (kind, said) in different.items()]
    assert compared
    assert not wrong, "\n\n".join(wrong)


def _files(golden: GoldenFiles) -> list[str]:
    files = [file for file in golden.names if not file.startswith(OWN_FUNCTIONS)]
    return [file for file in files if zlib.crc32(file.encode()) % FILES == 0]


def _is_query(statement: GoldenStatement) -> bool:
    text = without_comments_before(statement.text)
    return bool(_QUERY.match(text)) and not _WRITES.search(text)


def _needed(statements: list[GoldenStatement]) -> list[GoldenStatement]:
    """The queries that are tried, and the statements before the last of them that set up what they read."""
    needed = [
        s
        for s in statements
        if (
            zlib.crc32(s.key.encode()) % QUERIES == 0
            if _is_query(s)
            else _SET_UP.match(without_comments_before(s.text))
        )
    ]
    while needed and not _is_query(needed[-1]):
        needed.pop()
    return needed


def _session(spark: Any, settings: dict[str, str]) -> Any:
    """A session of its own, without views and variables of others."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _spark_answers(
    spark: Any, settings: dict[str, str], statements: list[GoldenStatement]
) -> dict[GoldenStatement, Answer]:
    """The answers of `spark.sql` to the queries that this Spark runs."""
    session, answers = _session(spark, settings), {}
    for statement in statements:
        with suppress(Exception):  # Spark has another release than its golden files
            frame = session.sql(statement.text)
            if _is_query(statement):
                rows = collect(frame)
                answers[statement] = Answer(rows.columns, tuple(map(str, rows.rows)), _is_sorted(frame._jdf))
    _clean(spark)
    return answers


def _is_sorted(frame: Any) -> bool:
    """Whether the query of a DataFrame of Java has ORDER BY at its top."""
    node = frame.queryExecution().logical()
    while node.nodeName() in _ABOVE_A_SORT:
        node = node.children().head()
    return bool(node.nodeName() == "Sort" and getattr(node, "global")())


def _differences(
    console: Console, statements: list[GoldenStatement], expected: dict[GoldenStatement, Answer]
) -> Iterator[tuple[GoldenStatement, str, str]]:
    """Run the statements through a console. Gives each that has another answer, the kind, and a sentence."""
    for statement in statements:
        if _is_query(statement) and statement not in expected:
            continue
        try:
            result = console.run(f"{statement.text}\n;")[-1]
            if statement in expected:
                rows = result.whole() if isinstance(result, RowStream) else result
                assert isinstance(rows, Rows), rows
                answer = Answer(rows.columns, tuple(map(str, map(tuple, rows.rows))))
                if difference := expected[statement].difference(answer):
                    yield statement, *difference
        except StreamsqlError as error:
            if statement in expected:
                yield statement, "refused", f"[{error.code}] {error.message} {error.detail}"
        except Exception as error:
            yield statement, "raised", f"{type(error).__name__}: {error}"


def _clean(spark: Any) -> None:
    """Drop all that statements have created in Spark's catalog."""
    session = spark.newSession()  # it shows no temporary views and functions
    for row in session.sql("SHOW DATABASES").collect():
        if row[0] != "default":
            session.sql(f"DROP DATABASE `{row[0]}` CASCADE")
    for row in session.sql("SHOW VIEWS").collect():
        session.sql(f"DROP VIEW IF EXISTS `{row.viewName}`")
    for row in session.sql("SHOW TABLES").collect():
        session.sql(f"DROP TABLE IF EXISTS `{row.tableName}`")
    for row in session.sql("SHOW USER FUNCTIONS").collect():
        session.sql(f"DROP FUNCTION IF EXISTS {row[0]}")
