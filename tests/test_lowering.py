"""What the lowering makes of a SELECT against what Spark makes of the same text.

tests/lowering/*.sql holds the queries, each below a line `-- name` (`-- name, ordered` when its
ORDER BY leaves no ties). Both ways must give the same columns, types and rows; what Spark refuses
(refused.sql) must fail both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, cases_of, fresh_console
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row

from streamsql.calls import Assign, run
from streamsql.catalog import Catalog
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import split_script
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.lowering.lower import Lowered, lower
from streamsql.results import Rows

ROOMS = ("streamsql/language/", "streamsql/plan/", "tests/lowering/")

FOLDER = Path(__file__).parent / "lowering"


@dataclass(frozen=True)
class Case:
    """One query of the corpus. ordered: its rows come in one order only."""

    name: str
    text: str
    ordered: bool


def cases(file: str) -> list[Case]:
    parts = re.split(
        r"^-- ([a-z0-9-]+)(, ordered)?$", (FOLDER / f"{file}.sql").read_text("utf-8"), flags=re.M
    )
    return [
        Case(f"{file}/{name}", text.strip().removesuffix(";").rstrip(), ordered is not None)
        for name, ordered, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    ]


FILES = ("basics", "names", "joins", "groups", "queries", "star")
CORPUS = [case for file in FILES for case in cases(file)]
REFUSED = cases("refused")


def named(case: Case) -> str:
    return case.name


def make_tables(spark: Any) -> None:
    """The tables of the corpus; made anew when another test's console has dropped them."""
    if not spark.catalog.tableExists("store_sales"):
        for statement in split_script(Source("tables.sql", (FOLDER / "tables.sql").read_text("utf-8"))):
            spark.sql(statement.text)


@pytest.fixture
def tables(spark: Any) -> Any:
    make_tables(spark)
    return spark


def lowered(text: str) -> tuple[Lowered, tuple[Assign, ...]]:
    sources = Context(Catalog()).sources()
    made = lower(text, sources)
    return made, (*sources.program, Assign("result", made.node))


def frame_of(spark: Any, text: str) -> Any:
    from pyspark.sql import functions

    return run(lowered(text)[1], {"spark": spark, "F": functions})


def columns(frame: Any) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in frame.schema.fields]


def same_plan(frame: Any, other: Any) -> bool:
    """Whether Spark itself takes two frames for one: then no rows are needed to tell."""
    if frame.sameSemantics(other):
        return True
    plans = [f._jdf.queryExecution().optimizedPlan() for f in (frame, other)]
    return bool(plans[0].sameResult(plans[1]))


def texts(found: Iterable[Any], ordered: bool) -> list[str]:
    """Rows as texts: floats to the last digit, NaN equal to itself, -0.0 not to 0.0."""
    listed = [repr([v.asDict(True) if isinstance(v, Row) else v for v in row]) for row in found]
    return listed if ordered else sorted(listed)


def rows(frame: Any, ordered: bool) -> list[str]:
    return texts(frame.collect(), ordered)


@pytest.mark.parametrize("case", cases_of({case.name: case for case in CORPUS}, 4))
def test_same_as_spark(tables: Any, case: Case) -> None:
    expected = tables.sql(case.text)
    actual = frame_of(tables, case.text)
    assert columns(actual) == columns(expected)
    if not same_plan(actual, expected):
        assert rows(actual, case.ordered) == rows(expected, case.ordered)


def failure(frame: Any) -> str:
    """Why a query fails, when made or when its rows are read; empty when it does not."""
    try:
        frame().collect()
    except (PySparkException, Py4JJavaError) as error:
        return str(error)
    except StreamsqlError as error:
        return error.message
    return ""


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_refused_as_by_spark(tables: Any, case: Case) -> None:
    expected = failure(lambda: tables.sql(case.text))
    actual = failure(lambda: frame_of(tables, case.text))
    assert expected
    assert actual


def test_share_that_is_lowered() -> None:
    """Most queries become DataFrame calls and not one spark.sql(text)."""
    as_calls = [case for case in CORPUS if not lowered(case.text)[0].as_text]
    share = len(as_calls) / len(CORPUS)
    print(f"{len(as_calls)} of {len(CORPUS)} queries are lowered to calls: {share:.1%}")
    assert share >= 0.85


STREAMS = {
    "clicks": ("clicks", ""),
    "impressions": ("impressions", ""),
    "sales": ("store_sales", ""),
    "events": ("clicks", "WITH WATERMARK ts DELAY OF INTERVAL 2 HOURS"),
    "views": ("impressions", "WITH WATERMARK ts DELAY OF INTERVAL 2 HOURS"),
    "odd one": ("impressions", ""),
    "checkpoint": ("clicks", ""),
}


@pytest.fixture(scope="module")
def as_tables(spark: Any) -> Any:
    """A session of Spark in which each of STREAMS is a table."""
    session = spark.newSession()
    make_tables(session)
    for name, table in ((name, table) for name, (table, _) in STREAMS.items() if name != table):
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quote_name(name)} AS SELECT * FROM {table}")
    return session


@pytest.fixture(scope="module")
def as_streams(spark: Any, as_tables: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console in which each of STREAMS is a stream of files with the rows of its table."""
    root = tmp_path_factory.mktemp("streams")
    for table in ("clicks", "impressions", "store_sales"):
        as_tables.table(table).write.parquet(str(root / table))
    session = spark.newSession()  # its streams are no tables of the other tests
    make_tables(session)
    with fresh_console(session, root) as console:
        for name, (table, watermark) in STREAMS.items():
            options = f"OPTIONS (path '{root / table}')"
            console.run(f"CREATE STREAM {quote_name(name)} USING parquet {options} {watermark};")
        yield console


@pytest.mark.parametrize("case", cases_of({case.name: case for case in cases("streams")}, 6))
def test_a_stream_gives_the_rows_of_a_table(as_tables: Any, as_streams: Console, case: Case) -> None:
    expected = as_tables.sql(case.text)
    result = as_streams.run(case.text + ";")[-1]
    assert isinstance(result, Rows)
    assert list(result.columns) == expected.columns
    assert texts(result.rows, case.ordered) == rows(expected, case.ordered)
