"""USING spark: formats of Spark, of Python Data Sources and of packages of Maven, with their options as written."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from test_explain import program
from test_python_source import SOURCE

from streamsql.calls import Assign
from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.config.folders import cache_folder
from streamsql.connectors.base import Places
from streamsql.connectors.packages import Package, Release, needed
from streamsql.errors import EngineFault, Source, StreamsqlError
from streamsql.language.parser import parse_text
from streamsql.output.error_text import format_error
from streamsql.plan.context import Context
from streamsql.plan.planner import plan
from streamsql.plan.plans import DefineStream
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.package_loader import Packages

ROOMS = ("streamsql/connectors/", "streamsql/runtime/engine/package_loader.py")

MONGO = "org.mongodb.spark:mongo-spark-connector_2.13:10.5.0"
SERVER = Package("mongo", "", matching=Release(("de.bwaldvogel:mongo-java-server:1.47.0",)))
"""A server of MongoDB's protocol that keeps everything in memory."""


def checked(statement: str) -> tuple[str, ...]:
    """The notes of --check."""
    checker = Checker(Context(Catalog(), Places("/w")))
    return tuple(note.text for note in checker.check(parse_text(Source("a.sql", statement))))


def test_a_program_names_the_packages_of_its_formats() -> None:
    text = f"CREATE STREAM s USING spark OPTIONS (format 'mongodb', packages 'a.b:c_2.13:1.0, {MONGO}')"
    planned = plan(parse_text(Source("a.sql", text)), Context(Catalog(), Places("/w")))
    assert isinstance(planned, DefineStream) and planned.infer is not None
    both = (Assign("a", planned.infer), Assign("b", planned.infer))
    assert needed(both) == [Package("mongodb", "", matching=Release(("a.b:c_2.13:1.0", MONGO)))]


def test_a_check_says_what_it_leaves_to_spark() -> None:
    assert checked("CREATE STREAM s USING spark OPTIONS (format 'mongodb', anything 1)") == (
        "not checked: the format, options and columns of s, which only Spark knows",
    )
    assert checked("CREATE STREAM s (a INT) USING spark OPTIONS (format 'mongodb')") == (
        "not checked: the format and options of s, which only Spark knows",
    )
    assert checked("CREATE SINK k USING spark OPTIONS (format 'mongodb')") == (
        "not checked: the format and options of k, which only Spark knows",
    )


@pytest.mark.parametrize(
    ("statement", "says", "at"),
    [
        ("CREATE STREAM s USING spark OPTIONS (path 'x')", "spark needs the option format", "spark"),
        ("CREATE SINK s USING spark", "spark needs the option format", "spark"),
        (
            "CREATE STREAM s USING spark OPTIONS (format 'x', packages 'mongo')",
            "option packages takes a list of group:artifact:version, not 'mongo'",
            "'mongo'",
        ),
        (
            "CREATE STREAM s USING mongodb OPTIONS (database 'd')",
            "another format of Spark: USING spark OPTIONS (format '…')",
            "mongodb",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(statement: str, says: str, at: str) -> None:
    with pytest.raises(StreamsqlError) as caught:
        checked(statement)
    assert says in format_error(caught.value)
    span = caught.value.span
    assert span is not None and statement[span.start : span.end] == at


def test_a_format_of_spark(console: Console) -> None:
    created = console.run("CREATE STREAM r USING spark OPTIONS (format 'rate-micro-batch', rowsPerBatch 3);")
    assert notes_of(created[0]) == (
        "columns of r, as inferred and recorded: timestamp timestamp, value bigint",
    )
    shown = dict(console.rows("DESCRIBE STREAM r;"))
    assert shown["option rowsPerBatch"] == "3"
    assert shown["replay"].startswith("not known: ") and shown["read input"].startswith("not known: ")
    assert "not known: a micro-batch may be written again after a failure" in str(
        console.rows("DESCRIBE CONNECTOR spark;")
    )
    console.run("CREATE LIVE TABLE t TRIGGER ONCE AS SELECT value FROM r; AWAIT QUERY t;")
    assert sorted(console.rows("SELECT * FROM t;")) == [(0,), (1,), (2,)]


def test_options_reach_the_format_as_they_are_written(console: Console) -> None:
    console.run(
        "CREATE STREAM r (x INT) USING spark OPTIONS (format 'F', `Some.Key` ' A b ', some_Password 'hush');"
        f"CREATE SINK k USING spark OPTIONS (format 'G', packages '{MONGO}', uri 'x://me:hush@h/', `K.k` 'V');"
    )
    text = program(console, "INSERT INTO k SELECT x FROM r")
    for line in ('.format("F")', '.schema("x INT")', '.option("Some.Key", " A b ")', '.option("K.k", "V")'):
        assert line in text
    assert f'"spark.jars.packages", "{MONGO}"' in text or "mongo-spark-connector" in text
    assert "hush" not in text + str(console.rows("DESCRIBE STREAM r;") + console.rows("DESCRIBE SINK k;"))
    assert '"packages"' not in text and '.option("format"' not in text


def test_refusals_are_in_the_words_of_spark(console: Console) -> None:
    script = "CREATE STREAM s USING spark OPTIONS (format 'no_such');"
    with pytest.raises(StreamsqlError) as caught:
        console.run(script)
    shown = format_error(caught.value)
    assert "error[DATA_SOURCE_NOT_FOUND]: failed to find the data source: no_such" in shown
    assert "hint: its package: USING spark OPTIONS (…, packages 'group:artifact:version')" in shown
    assert script[caught.value.span.start : caught.value.span.end] == "'no_such'"
    with pytest.raises(StreamsqlError, match="schema must be specified when creating a streaming source"):
        console.run("CREATE STREAM s USING spark OPTIONS (format 'csv', path '/tmp');")
    console.run("CREATE STREAM v (a INT) USING values; CREATE SINK k USING spark OPTIONS (format 'no_such');")
    with pytest.raises(StreamsqlError, match="failed to find the data source: no_such"):
        console.run("INSERT INTO k SELECT a FROM v;")


def test_a_package_that_is_nowhere_is_said_at_its_place(console: Console) -> None:
    console.run("SET streamsql.offline = on;")
    script = "CREATE STREAM s USING spark OPTIONS (format 'rate', packages 'org.no.where:at-all:1.0');"
    with pytest.raises(EngineFault) as caught:
        console.run(script)
    shown = format_error(caught.value)
    assert "rate needs the package org.no.where:at-all:1.0" in shown and "streamsql.offline is on" in shown
    span = caught.value.span
    assert span is not None and script[span.start : span.end] == "'org.no.where:at-all:1.0'"


@pytest.mark.slow
def test_a_python_data_source_by_the_name_of_its_format(console: Console, tmp_path: Path) -> None:
    """A class that another statement, or a package, has registered with Spark."""
    (tmp_path / "cities.py").write_text(SOURCE)
    (tmp_path / "out").mkdir()
    console.session.variables["here"] = str(tmp_path)
    console.run(
        "CREATE STREAM c USING python OPTIONS (class 'cities.Cities', city 'Oslo'); DROP STREAM c;"
        "CREATE STREAM c USING spark OPTIONS (format 'cities', city 'Bergen');"
        "CREATE LIVE TABLE t AS SELECT city FROM c WHERE n > 3; AWAIT QUERY t IDLE;"
    )
    assert console.rows("SELECT * FROM t ORDER BY city;") == [("Bergen 4",), ("Bergen 5",)]


@pytest.fixture
def mongo(spark: Any) -> Iterator[str]:
    """The address of a server of MongoDB's protocol, in Spark's JVM. Skips the test where it cannot be had."""
    packages = Packages(dict, cache_folder(), lambda: False, lambda doing: None)
    coordinates = (SERVER, Package("mongodb", "", matching=Release((MONGO,))))
    try:
        for package in coordinates:
            packages.load(spark, package, CancelToken())
    except EngineFault as error:
        pytest.skip(f"{error.message}: {error.detail}")
    backend = java_class(spark, "de.bwaldvogel.mongo.backend.memory.MemoryBackend")()
    server = java_class(spark, "de.bwaldvogel.mongo.MongoServer")(backend)
    try:
        yield f"mongodb://127.0.0.1:{server.bind().getPort()}/"
    finally:
        server.shutdownNow()


@pytest.mark.slow
def test_the_connector_of_mongodb_writes_and_tells_its_columns(console: Console, mongo: str) -> None:
    database = f"d{uuid.uuid4().hex}"
    options = f"format 'mongodb', packages '{MONGO}', connection.uri '{mongo}', database '{database}'"
    console.run(
        "CREATE STREAM v (a INT, w STRING) USING values;"
        f"CREATE SINK k USING spark OPTIONS ({options}, collection 'c');"
        "INSERT INTO k SELECT a, w FROM v; INSERT INTO v VALUES (1, 'x'), (2, 'y'); AWAIT QUERY k IDLE;"
        f"CREATE TEMPORARY VIEW back USING mongodb OPTIONS (connection.uri '{mongo}', database '{database}',"
        " collection 'c', partitioner 'com.mongodb.spark.sql.connector.read.partitioner.SinglePartitionPartitioner');"
    )
    assert sorted(console.rows("SELECT a, w FROM back;")) == [(1, "x"), (2, "y")]
    whole = "change.stream.publish.full.document.only true"
    created = console.run(f"CREATE STREAM m USING spark OPTIONS ({options}, collection 'c', {whole});")
    assert notes_of(created[0]) == ("columns of m, as inferred and recorded: _id string, a int, w string",)
    with pytest.raises(StreamsqlError, match="missing configuration for: collection"):
        console.run(f"CREATE STREAM n USING spark OPTIONS ({options});")
