"""The dialect of SQLAlchemy: reflection, pandas and the probes of dashboards; and SQLAlchemy's own tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from conftest import ROOT, drop_tables
from console import command
from sqlalchemy.dialects import registry

from streamsql.features.dbapi import cursors
from streamsql.features.dbapi.sqlalchemy_dialect import SparkType, StreamsqlDialect, type_of

ROOMS = ("streamsql/features/dbapi/", "streamsql/api/", "tests/features/dbapi/")


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[sa.Engine]:
    registry.register("streamsql", StreamsqlDialect.__module__, StreamsqlDialect.__name__)
    own = spark.newSession()
    engine = sa.create_engine("streamsql://", creator=lambda: cursors.connect(spark=own, config=False))
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE STREAM words (word STRING, n INT COMMENT 'how often') USING values;"
            "CREATE LIVE TABLE counts AS SELECT word, sum(n) AS n FROM words GROUP BY word;"
            "INSERT INTO words VALUES ('cat', 1), ('it''s', 2); AWAIT QUERY counts IDLE;"
            "CREATE TABLE kept (a INT, d DECIMAL(10, 2), s VARCHAR(5), l ARRAY<STRING>) USING parquet;"
            "CREATE TEMPORARY VIEW one AS SELECT 1 AS a"
        )
    yield engine
    engine.dispose()
    drop_tables(spark)


def test_reflection(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "default"
    assert "default" in inspector.get_schema_names()
    assert inspector.get_table_names() == ["counts", "kept"]
    assert (inspector.get_view_names(), inspector.get_temp_view_names()) == (["words"], ["one"])
    columns = {
        name: {c["name"]: c["type"] for c in inspector.get_columns(name)} for name in ("counts", "kept")
    }
    assert isinstance(columns["counts"]["n"], sa.BigInteger)
    kept = columns["kept"]
    assert isinstance(kept["a"], sa.Integer)
    assert isinstance(kept["d"], sa.Numeric)
    assert isinstance(kept["s"], sa.VARCHAR)
    assert isinstance(kept["l"], SparkType)
    assert (kept["d"].precision, kept["d"].scale, kept["s"].length, kept["l"].name) == (
        10,
        2,
        5,
        "ARRAY<STRING>",
    )
    assert [c["comment"] for c in inspector.get_columns("words")] == [None, "how often"]
    assert inspector.has_table("COUNTS") and not inspector.has_table("nothing")
    assert (inspector.get_pk_constraint("kept")["constrained_columns"], inspector.get_indexes("kept")) == (
        [],
        [],
    )
    assert "CREATE STREAM words" in inspector.get_view_definition("words")
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("nothing")


def test_queries(engine: sa.Engine) -> None:
    counts = sa.Table("counts", sa.MetaData(), autoload_with=engine)
    largest = sa.select(counts).where(counts.c.word.like("%t%")).order_by(counts.c.n.desc())
    with engine.connect() as connection:
        assert connection.execute(largest.limit(1)).all() == [("it's", 2)]
        assert connection.execute(largest.offset(1)).all() == [("cat", 1)]
        literal = sa.select(sa.literal("it's \\", literal_execute=True))
        assert connection.execute(literal).scalar() == "it's \\"
        assert connection.execute(sa.select(counts).where(counts.c.word.in_([]))).all() == []
        with pytest.raises(sa.exc.ProgrammingError, match="did you mean counts") as raised:
            connection.execute(sa.text("SELECT * FROM cuonts"))
    assert raised.value.orig.place == (1, 15)


def test_pandas(engine: sa.Engine) -> None:
    frame = pd.read_sql("SELECT * FROM counts ORDER BY n", engine)
    assert frame.to_dict("list") == {"word": ["cat", "it's"], "n": [1, 2]}
    some = pd.read_sql(sa.text("SELECT n FROM counts WHERE word = :word"), engine, params={"word": "it's"})
    assert some["n"].tolist() == [2]


@pytest.mark.slow
def test_pandas_writes_and_reads_a_table(engine: sa.Engine) -> None:
    written = pd.DataFrame(
        {"a": [1, 2], "b": ["x", None], "t": pd.to_datetime(["2024-01-01 12:00", "1969-12-31 23:00"])}
    )
    written.to_sql("written", engine, index=False)
    read = pd.read_sql_table("written", engine).sort_values("a", ignore_index=True)
    assert read.to_dict("list") == written.to_dict("list")


PROBES = {
    "ping": "SELECT 1",
    "superset: the limit around a query": "SELECT * FROM (SELECT * FROM counts) AS virtual_table LIMIT 1000",
    "superset: by day": "SELECT date_trunc('DAY', current_timestamp()) AS __timestamp, count(*) AS `COUNT(*)` FROM counts GROUP BY 1",
    "superset: schemas": "SHOW SCHEMAS",
    "jupysql: describe": "DESCRIBE counts",
    "jupysql: a snippet": "WITH big AS (SELECT * FROM counts WHERE n > 1) SELECT * FROM big",
    "version": "SELECT version()",
}


@pytest.mark.parametrize("probe", PROBES)
def test_probes(engine: sa.Engine, probe: str) -> None:
    with engine.connect() as connection:
        assert connection.exec_driver_sql(PROBES[probe]).all()


@pytest.mark.parametrize(
    ("address", "arguments", "options"),
    [
        ("streamsql:////data/w?read_only=true", ["/data/w"], {"conf": {}, "read_only": True, "master": None}),
        (
            "streamsql:///w?master=local[1]&spark.ui.enabled=true",
            ["w"],
            {"conf": {"spark.ui.enabled": "true"}, "read_only": False, "master": "local[1]"},
        ),
        ("streamsql://", [None], {"conf": {}, "read_only": False, "master": None}),
    ],
)
def test_addresses(address: str, arguments: list[str], options: dict[str, object]) -> None:
    assert StreamsqlDialect().create_connect_args(sa.make_url(address)) == (arguments, options)


@pytest.mark.parametrize("address", ["streamsql://host/w", "streamsql:///w?color=red"])
def test_an_address_that_is_wrong(address: str) -> None:
    with pytest.raises(sa.exc.ArgumentError, match="names a workspace"):
        StreamsqlDialect().create_connect_args(sa.make_url(address))


def test_a_type_that_sqlalchemy_has_not_keeps_its_name() -> None:
    assert str(type_of("MAP<STRING, INT>").compile(dialect=StreamsqlDialect())) == "MAP<STRING, INT>"
    assert isinstance(type_of("TIME(6)"), sa.Time)


CLASSES = (
    "CompoundSelectTest DistinctOnTest ExistsTest HasTableTest LikeFunctionsTest OrderByLabelTest StringTest"
)
"""Those of SQLAlchemy's tests that are run: they are about queries and texts."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("processes")
def test_sqlalchemys_own_tests_of_a_dialect(tmp_path: Path) -> None:
    """As far as they apply, on a server."""
    suite = Path(__file__).parent / "sqlalchemy_suite"
    folder, path = tmp_path / "w", os.pathsep.join([str(ROOT), str(suite)])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": str(tmp_path)}
    serving = ("serve", "-w", str(folder), "--no-config", "--conf", "spark.sql.shuffle.partitions=1")
    script = ("-e", "CREATE SCHEMA IF NOT EXISTS test_schema", "--detach")
    subprocess.run(command(*serving, *script), check=True, cwd=tmp_path, env=environment, timeout=120)
    address = ("--dburi", f"streamsql:///{folder}", "-c", "setup.cfg", "--rootdir", ".")
    options = (
        "-p",
        "no:streamsql",
        "-p",
        "no:cacheprovider",
        "-p",
        "suite_plugin",
        "-q",
        "--tb=line",
        "test_suite.py",
    )
    chosen = ("-k", " or ".join(CLASSES.split()))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *address, *options, *chosen],
            capture_output=True,
            text=True,
            cwd=suite,
            env=environment,
            timeout=800,
        )
    finally:
        stop = command("-w", str(folder), "--no-config", "-e", "STOP SERVER")
        subprocess.run(stop, cwd=tmp_path, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 40
