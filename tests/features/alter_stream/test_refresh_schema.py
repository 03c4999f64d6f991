"""ALTER STREAM … REFRESH SCHEMA of files: new, missing, moved and retyped columns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of

from streamsql.catalog import Catalog
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.struct_types import is_wider
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.results import Done

ROOMS = ("streamsql/features/alter_stream/", "streamsql/runtime/preflight/")

REFRESH = "ALTER STREAM s REFRESH SCHEMA;"


class Files:
    """A folder of files of a format, each with the row of a SELECT, and a stream s that has inferred its columns."""

    def __init__(self, console: Console, spark: Any, folder: Path, form: str) -> None:
        self.console, self.spark, self.folder, self.form = console, spark, folder, form
        self.options = {"csv": {"header": "true"}, "xml": {"rowTag": "r"}}.get(form, {})
        self.number = 0

    def put(self, select: str) -> None:
        place = self.folder.with_name(f"{self.folder.name}-part")
        frame = self.spark.sql(select).coalesce(1)
        frame.write.mode("overwrite").options(**self.options).format(self.form).save(str(place))
        [file] = (f for f in place.iterdir() if f.name.startswith("part-"))
        self.folder.mkdir(exist_ok=True)
        self.number += 1
        number = self.number
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        file.rename(self.folder / f"{number}.{self.form}")

    def stream(self) -> str:
        options = "".join(f", {key} '{value}'" for key, value in self.options.items())
        return f"CREATE STREAM s USING {self.form} OPTIONS (path '{self.folder}'{options});"

    def refreshed(self) -> str:
        result = self.console.run(REFRESH)[-1]
        assert isinstance(result, Done)
        return "\n".join((result.message, *notes_of(result)))

    def fault(self, statement: str = REFRESH) -> StreamsqlError:
        with pytest.raises(StreamsqlError) as caught:
            self.console.run(statement)
        return caught.value


@pytest.fixture
def files(
    console: Console, spark: Any, tmp_path: Path, packages: Callable[[str], None]
) -> Callable[[str], Files]:
    def made(form: str) -> Files:
        if form == "avro":
            packages("avro")
        return Files(console, spark, tmp_path / "in", form)

    return made


FORMATS = [
    "json",
    "parquet",
    *(pytest.param(f, marks=pytest.mark.slow) for f in ("csv", "orc", "avro", "xml")),
]


@pytest.mark.parametrize("form", FORMATS)
def test_a_new_column_is_taken(files: Callable[[str], Files], console: Console, form: str) -> None:
    there = files(form)
    there.put("SELECT 1 AS a, 'x' AS b")
    console.run(f"{there.stream()} CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;")
    assert there.refreshed().startswith("the columns of s are as they were: a ")
    there.put("SELECT 2 AS a, 'y' AS b, 5 AS c")
    if form == "csv":
        assert there.fault("AWAIT QUERY t IDLE;").code == "HEADER_MISMATCH"
    else:
        console.run("AWAIT QUERY t IDLE;")
    altered, note = there.refreshed().split("\n")
    assert altered in ("stream s altered: c int added", "stream s altered: c bigint added")
    assert note == "t goes on from the checkpoint: new columns are NULL in earlier rows"
    there.put("SELECT 3 AS a, 'z' AS b, 6 AS c")
    console.run("AWAIT QUERY t IDLE;")
    second = 5 if form == "csv" else None  # read before, where it could be
    assert console.rows("SELECT a, b, c FROM t ORDER BY a;") == [
        (1, "x", None),
        (2, "y", second),
        (3, "z", 6),
    ]


@pytest.mark.parametrize(
    "form", [*FORMATS[:2], *(pytest.param(f, marks=pytest.mark.slow) for f in ("orc", "avro"))]
)
def test_missing_and_moved_columns_are_found_by_their_names(
    files: Callable[[str], Files], console: Console, form: str
) -> None:
    there = files(form)
    there.put("SELECT 1 AS a, 'x' AS b")
    console.run(f"{there.stream()} CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;")
    there.put("SELECT 'y' AS b, 2 AS a")
    there.put("SELECT 3 AS a")
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT a, b FROM t ORDER BY a;") == [(1, "x"), (2, "y"), (3, None)]
    said = there.refreshed()
    assert said.startswith("the columns of s are as they were: a ")
    # JSON is inferred from all files, of the others from the newest.
    gone = "b is no longer in the source of s: it stays, and is NULL where it is missing"
    assert (gone in said) == (form != "json")


def test_a_csv_column_that_moves_is_noticed(files: Callable[[str], Files], console: Console) -> None:
    there = files("csv")
    there.put("SELECT 1 AS a, 2 AS b")
    console.run(f"{there.stream()} CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;")
    there.put("SELECT 20 AS b, 10 AS a")
    for statement, what in (
        (
            "AWAIT QUERY t IDLE;",
            f"the header of {there.folder}/2.csv is not that of the columns of the stream",
        ),
        (REFRESH, f"the columns of {there.folder}/2.csv are in another order than those of s"),
    ):
        fault = there.fault(statement)
        assert fault.code == "HEADER_MISMATCH" and fault.message.endswith(what)
        assert fault.detail == "the header: b, a\nthe columns: a, b"
        assert "move the file to a folder of its own, for another stream" in fault.hint
    assert console.rows("SELECT * FROM t;") == [(1, 2)]
    # What is typed: once the file is elsewhere, the query goes on.
    (there.folder / "2.csv").rename(there.folder.with_name("2.csv"))
    console.run("START QUERY t;")
    there.put("SELECT 3 AS a, 4 AS b")
    console.run("AWAIT QUERY t IDLE;")
    assert console.rows("SELECT * FROM t ORDER BY a;") == [(1, 2), (3, 4)]
    there.put("SELECT 5 AS a, 7 AS c, 6 AS b")
    fault = there.fault()
    assert fault.message.endswith("are not those of s, with new ones behind them")


@pytest.mark.parametrize("form", FORMATS[:2])
def test_a_column_of_another_type_is_refused(
    files: Callable[[str], Files], console: Console, form: str
) -> None:
    there = files(form)
    there.put("SELECT 1 AS a, 'x' AS b")
    console.run(f"{there.stream()} CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;")
    there.put("SELECT 'two' AS a, 'y' AS b")
    if form == "json":  # counted as malformed, NULL in its place
        console.run("AWAIT QUERY t IDLE;")
        assert console.rows("SELECT * FROM t ORDER BY b;") == [(1, "x"), (None, "y")]
        assert console.rows("SELECT count(*) FROM s$malformed;") == [(1,)]
    else:
        fault = there.fault("AWAIT QUERY t IDLE;")
        assert fault.code == "WRONG_TYPE"
        assert fault.message.endswith(
            f"the columns of {there.folder}/2.{form} have other types than those of the stream"
        )
        assert fault.detail == "a is int in the stream, and BINARY of Parquet in the file"
        assert console.rows("SELECT * FROM t;") == [(1, "x")]
    before = console.session.catalog.streams
    fault = there.fault()
    assert fault.message in (
        "columns of s have another type now: a bigint → string",
        "columns of s have another type now: a int → string",
    )
    assert fault.span and REFRESH[fault.span.start : fault.span.end] == "REFRESH SCHEMA"
    assert fault.proposal.startswith("CREATE OR REPLACE STREAM s (a string, b string)")
    assert console.session.catalog.streams == before
    # What is typed.
    console.run(fault.proposal)
    console.run("STOP QUERY t; START QUERY t FROM BEGINNING;")
    if form == "json":
        console.run("AWAIT QUERY t IDLE;")
        assert console.rows("SELECT * FROM t ORDER BY b;") == [("1", "x"), ("two", "y")]


def test_a_wider_type_is_taken(files: Callable[[str], Files], console: Console) -> None:
    there = files("parquet")
    there.put("SELECT 1 AS a")
    console.run(
        f"""{there.stream()} CREATE LIVE TABLE t AS SELECT * FROM s;
        CREATE LIVE TABLE sums AS SELECT sum(a) AS a FROM s; AWAIT QUERY ALL IDLE;"""
    )
    there.put("SELECT 3000000000L AS a")
    assert (
        there.fault("AWAIT QUERY t IDLE;").detail
        == "a is int in the stream, and INT64 of Parquet in the file"
    )
    altered, taken_up, left = there.refreshed().split("\n")
    assert altered == "stream s altered: a int → bigint"
    assert taken_up.startswith("t goes on from the checkpoint")
    assert left.startswith("sums does not run: the query sums has changed since its checkpoint was created")
    console.run("AWAIT QUERY t IDLE; START QUERY sums FROM BEGINNING; AWAIT QUERY sums IDLE;")
    assert console.rows("SELECT a FROM t ORDER BY a;") == [(1,), (3_000_000_000,)]
    assert console.rows("SELECT a FROM sums;") == [(3_000_000_001,)]


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("int", "BIGINT", True),
        ("bigint", "int", False),
        ("bigint", "double", False),
        ("decimal(5,2)", "decimal(7,3)", True),
        ("decimal(5,2)", "decimal(5,3)", False),
        ("struct<a:int>", "struct<b:string,a:bigint>", True),
        ("struct<a:int,b:int>", "struct<a:int>", False),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", True),
        ("array<int>", "string", False),
        ("int", "array<int>", False),
        ("map<string,int>", "map<string,bigint>", False),
    ],
)
def test_which_types_hold_all_values_of_another(old: str, new: str, wider: bool) -> None:
    assert is_wider(old, new) is wider


def test_a_stream_whose_columns_check_does_not_know_is_no_error() -> None:
    catalog = Catalog()
    script = """CREATE STREAM s USING json OPTIONS (path 'in') WITH WATERMARK ts DELAY '1 minute';
        ALTER STREAM s REFRESH SCHEMA; ALTER STREAM s ADD COLUMN c INT; CREATE LIVE TABLE t AS SELECT c FROM s;"""
    for written in split_script(Source("test.sql", script)):
        catalog = plan(parse(written, {}), Context(catalog)).applied(catalog)
    assert catalog.streams["s"].columns == ()
