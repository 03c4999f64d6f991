"""The packages of connectors find themselves: by Spark's resolver, in the running session, on first use."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from test_explain import program

from streamsql.calls import Assign, Call, Node, Var, expr, lit
from streamsql.connectors.packages import PACKAGES, Release, needed
from streamsql.errors import Cancelled, EngineFault, StreamsqlError
from streamsql.output.error_text import format_error
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.package_loader import Packages

ROOMS = ("streamsql/connectors/",)

AVRO = '{"type":"record","name":"t","fields":[{"name":"a","type":"int"}]}'
ROUND_TRIP = f"SELECT from_avro(to_avro(named_struct('a', 1)), '{AVRO}').a AS a;"


SPARK, READER = Var("spark"), Var("spark").attr("readStream")


@pytest.mark.parametrize(
    ("node", "names"),
    [
        (READER.call("format", "kafka"), ["kafka"]),
        (SPARK.call("sql", "CREATE TABLE t USING kafka OPTIONS (subscribe 'x')"), ["kafka"]),
        (SPARK.call("sql", "SELECT * FROM avro.`/data/x`"), ["avro"]),
        (READER.call("select", expr("from_avro(value, '…')")), ["avro"]),
        (
            SPARK.call("sql", "CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:postgresql://h/d')"),
            ["postgresql"],
        ),
        (Call(Var("JdbcTable"), (lit("t"),)).call("option", "url", "jdbc:sqlite:/x.db"), ["sqlite"]),
        (READER.call("format", "json").call("load", "s3a://bucket/in"), ["s3"]),
        (SPARK.call("sql", "SELECT * FROM parquet.`s3a://bucket/x`"), ["s3"]),
        (SPARK.call("sql", "CREATE TABLE t USING json LOCATION 's3a://bucket/x'"), ["s3"]),
        (SPARK.call("sql", "CREATE TABLE t USING json OPTIONS (path 's3a://bucket/x')"), ["s3"]),
        (SPARK.call("sql", "SELECT 's3a://bucket/x' AS place"), []),
        (SPARK.call("sql", "SELECT kafka, avro FROM delta"), []),
        (READER.call("select", expr("'we are using kafka'"), expr("'using avro'")), []),
        (SPARK.call("sql", "SELECT 'USING kafka', 'jdbc:sqlite:' AS url"), []),
    ],
)
def test_what_a_program_needs_is_seen_in_its_calls(node: Node, names: list[str]) -> None:
    """A text inside quotes is data."""
    assert [p.name for p in needed((Assign("result", node),))] == names


def test_the_release_of_the_running_spark_comes_first() -> None:
    first = PACKAGES["kafka"].releases("9.8.7")[0]
    assert first.coordinates == ("org.apache.spark:spark-sql-kafka-0-10_2.13:9.8.7",)


def test_the_first_use_brings_the_package(console: Console, packages: Callable[[str], None]) -> None:
    packages("avro")  # else skipped
    assert console.rows(ROUND_TRIP) == [(1,)]
    # Another thread has another class loader in Spark's JVM: a prompt carries out each statement on its own.
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(console.rows(ROUND_TRIP)))
    thread.start()
    thread.join()
    assert found == [(1,)]


def test_two_consoles_do_not_fetch_at_once(spark: Any, tmp_path: Path) -> None:
    missing = replace(PACKAGES["avro"], probe="no.such.Class", fallback=None)
    doing, given_up = list[str](), CancelToken()

    def say(what: str) -> None:
        doing.append(what)
        given_up.cancel()

    with open(tmp_path / "packages.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Cancelled):
            Packages(dict, tmp_path, lambda: True, say).load(spark, missing, given_up)
    assert doing == ["waiting for another console, which fetches packages"]


def test_offline_says_what_to_fetch(spark: Any, tmp_path: Path) -> None:
    nothing = Packages(dict, tmp_path, lambda: True, lambda doing: None)
    missing = replace(PACKAGES["avro"], probe="no.such.Class", fallback=None)
    with pytest.raises(EngineFault) as caught:
        nothing.load(spark, missing, CancelToken())
    said = format_error(caught.value)
    assert f"org.apache.spark:spark-avro_2.13:{metadata.version('pyspark')}" in said
    assert "streamsql.offline is on" in said
    assert "--jars" in said


def test_a_registry_that_has_it_not_is_said(spark: Any, tmp_path: Path) -> None:
    conf = {"spark.jars.ivy": str(tmp_path / "ivy")}
    words: list[str] = []
    packages = Packages(lambda: conf, tmp_path, lambda: False, words.append)
    wrong = replace(
        PACKAGES["avro"],
        probe="no.such.Class",
        matching=Release(("org.example.nowhere:no-such-package:1.0",)),
        fallback=None,
    )
    with pytest.raises(EngineFault) as caught:
        packages.load(spark, wrong, CancelToken())
    said = format_error(caught.value)
    assert "avro needs the package org.example.nowhere:no-such-package:1.0" in said
    assert "spark.jars.repositories" in said
    assert words == ["fetching org.example.nowhere:no-such-package:1.0", ""]


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_printed_program_names_its_packages(
    console: Console, packages: Callable[[str], None], tmp_path: Path
) -> None:
    packages("avro")
    text = program(console, ROUND_TRIP.rstrip(";"))
    file = tmp_path / "program.py"
    file.write_text(text)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "|1  |" in done.stdout


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_what_has_no_release_for_this_spark_is_said(console: Console, name: str) -> None:
    for statement in (
        f"CREATE STREAM s USING {name} OPTIONS (path 'x');",
        f"CREATE TABLE t (a INT) USING {name};",
        f"SELECT * FROM {name}.`/x`;",
    ):
        with pytest.raises(StreamsqlError) as caught:
            console.run(statement)
        said = format_error(caught.value)
        assert f"{name} has no release for Spark 4.3" in said
        assert "the newest that works: " in said
        assert "^" in said
