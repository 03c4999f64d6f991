"""The dialect of SQLAlchemy: reflection, pandas and the probes of dashboards; and SQLAlchemy's own tests."""

from __future__ import annotations

import datetime as dt
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

from streamsql import Struct
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
    assert isinstance(kept["l"], sa.ARRAY)
    assert (kept["d"].precision, kept["d"].scale, kept["s"].length) == (10, 2, 5)
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
    written.to_sql("written", engine)
    written.to_sql("written", engine, if_exists="append", method="multi")
    read = pd.read_sql_table("written", engine, index_col="index").sort_values("a", kind="stable")
    assert read.to_dict("list") == pd.concat([written, written]).sort_values("a").to_dict("list")
    sa.Table("written", sa.MetaData()).drop(engine)


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


def test_what_superset_asks_of_a_dialect(engine: sa.Engine) -> None:
    """As db_engine_specs/base.py of Superset does for a database that it does not know."""
    inspector = sa.inspect(engine)
    schema = inspector.default_schema_name
    assert schema in inspector.get_schema_names()
    assert not set(inspector.get_table_names(schema)) & set(inspector.get_view_names(schema))
    for name in ("counts", "kept", "words"):
        columns = inspector.get_columns(name, schema)
        assert all(column["type"].compile(dialect=engine.dialect) for column in columns)
        for ask in (inspector.get_indexes, inspector.get_foreign_keys, inspector.get_unique_constraints):
            assert ask(name, schema) == []
        assert inspector.get_table_comment(name, schema) == {"text": None}
    grain = sa.literal_column("DATE_TRUNC('DAY', at)")
    table = sa.table("counts", sa.column("n"), schema=schema)
    day = sa.select(grain.label("__timestamp"), sa.func.sum(sa.column("n")).label("SUM(n)")).select_from(
        sa.select(table, sa.cast(dt.datetime(2024, 5, 1, 12), sa.TIMESTAMP).label("at")).subquery(
            "virtual_table"
        )
    )
    written = day.where(sa.literal("50%") != "x").group_by(grain).order_by(sa.desc("SUM(n)")).limit(100)
    sql = str(written.compile(engine, compile_kwargs={"literal_binds": True}))
    raw = engine.raw_connection()
    assert engine.dialect.do_ping(raw.dbapi_connection)
    cursor = raw.cursor()
    cursor.execute(sql)
    assert [(name, code) for name, code, *_ in cursor.description] == [
        ("__timestamp", "TIMESTAMP"),
        ("SUM(n)", "BIGINT"),
    ]
    assert cursor.fetchmany(10) == [(dt.datetime(2024, 5, 1), 3)]


KINDS = """
a TINYINT, b FLOAT, c DECIMAL(38, 10), d BINARY, e TIMESTAMP_NTZ, f INTERVAL DAY TO SECOND,
g INTERVAL YEAR TO MONTH, h ARRAY<ARRAY<INT>>, i MAP<STRING, INT>, j STRUCT<x: INT>, k VARIANT
"""


def test_types_of_columns(engine: sa.Engine) -> None:
    """A type that SQLAlchemy has, or else Spark's; a column of it can be made again."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE TABLE kinds ({KINDS}) USING parquet")
    kinds = sa.Table("kinds", sa.MetaData(), autoload_with=engine)
    assert [type(column.type) for column in kinds.columns] == [
        sa.SmallInteger, sa.Float, sa.Numeric, sa.LargeBinary, sa.DateTime, sa.Interval,
        SparkType, sa.ARRAY, SparkType, SparkType, SparkType,
    ]  # fmt: skip
    written = str(sa.schema.CreateTable(kinds).compile(engine))
    assert all(f"{name} {kind}" in written for name, kind in [
        ("f", "INTERVAL DAY TO SECOND"), ("g", "INTERVAL YEAR TO MONTH"), ("h", "ARRAY<ARRAY<INT>>"),
        ("i", "MAP<STRING, INT>"), ("k", "VARIANT"),
    ])  # fmt: skip
    row = {"a": 1, "f": dt.timedelta(days=1, microseconds=1), "h": [[1], []], "j": Struct(x=1), "i": {"k": 1}}
    with engine.connect() as connection:
        connection.execute(kinds.insert(), row)
        read = connection.execute(sa.select(kinds).where(kinds.c.f > dt.timedelta(1))).one()
    assert {name: value for name, value in read._asdict().items() if value is not None} == row
    kinds.drop(engine)


def test_returning_and_unique_indexes_are_refused(engine: sa.Engine) -> None:
    kept = sa.Table("kept", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        with pytest.raises(sa.exc.NotSupportedError, match="no RETURNING"):
            connection.execute(kept.insert().values(a=1).returning(kept.c.a))
        assert connection.execute(sa.select(sa.func.count()).select_from(kept)).scalar() == 0
        with pytest.raises(sa.exc.CompileError, match="no unique indexes"):
            sa.Index("one", kept.c.a, unique=True).create(connection)
        sa.Index("faster", kept.c.a).create(connection)


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


@pytest.mark.slow
@pytest.mark.timeout(2000)
@pytest.mark.usefixtures("processes")
def test_sqlalchemys_own_tests_of_a_dialect(tmp_path: Path) -> None:
    """All of them, on a server: requirements.py and suite_plugin.py say which do not apply, and why."""
    suite = Path(__file__).parent / "sqlalchemy_suite"
    folder, path = tmp_path / "w", os.pathsep.join([str(ROOT), str(suite)])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": str(tmp_path)}
    conf = ("--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.sql.timeType.enabled=true")
    serving = ("serve", "-w", str(folder), "--no-config", *conf)
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
        "-rfE",
        "--tb=line",
        "test_suite.py",
    )
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *address, *options],
            capture_output=True,
            text=True,
            cwd=suite,
            env=environment,
            timeout=1900,
        )
    finally:
        stop = command("-w", str(folder), "--no-config", "-e", "STOP SERVER")
        subprocess.run(stop, cwd=tmp_path, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 500
