"""Columns that a format of files does not take are refused before a query starts, as Spark's batch refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Console

from streamsql.connectors.files import FileConnector
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink
from streamsql.errors import RuleFault, Span, StreamsqlError
from streamsql.runtime.preflight.file_columns import check_file_columns

ROOMS = ("streamsql/runtime/preflight/", "streamsql/connectors/", "streamsql/plan/statements/")

VALUES = """
true; 1Y; 1S; 1; 1L; 1.5F; 1.5D; 1.5BD; DATE'2024-01-01'; TIMESTAMP'2024-01-01 00:00:00';
TIMESTAMP_NTZ'2024-01-01 00:00:00'; 'a'; 'a' COLLATE UNICODE; X'01'; NULL; parse_json('1'); make_ym_interval(1);
make_dt_interval(1); array(1); map('a', 1); named_struct('a', 1); array(named_struct('a', NULL));
named_struct('a', 'a' COLLATE UNICODE)
"""
NAMES = """
'a' AS a, 'b' AS A; 'a' AS a, 'b' AS a; 'a' || 'b'; 'a' AS `a b`; 'a' AS `a.b`; 'a' AS `größe`; 'a' AS `1`;
'a' AS `_a`; 'a' AS `-a`; 'a' AS `a-b`; 'a' AS `a{}()=,`; 'a' AS `a"b`; 'a' AS `a:b`; 'a' AS `a<b`
"""
FORMATS = ("csv", "json", "parquet", "orc", "text", "xml", "avro")


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_refused_is_what_a_batch_refuses(
    spark: Any, packages: Any, name: str, tmp_path: Path
) -> None:
    if name == "avro":
        packages("avro")
    sink = Sink("f", name, options=(("path", str(tmp_path)),))
    options = {"rowTag": "row"} if name == "xml" else {}
    values = [f"{value.strip()} AS x" for value in VALUES.split(";")]
    names = [name.strip() for name in NAMES.split(";")]
    for value in (*values, *names):
        rows = spark.sql(f"SELECT {value}")
        try:
            check_file_columns(spark, sink, rows.schema, Span(0, 0))
            refused = False
        except RuleFault:
            refused = True
        try:
            rows.write.format(name).options(**options).mode("overwrite").save(str(tmp_path / "out"))
            fails = False
        except Exception:
            fails = True
        assert refused == fails, (value, refused, fails)


def test_two_columns_of_one_name_are_not_written_into_files(console: Console, tmp_path: Path) -> None:
    """Spark's streaming writer writes them, and nobody can read the files."""
    console.run(
        f"""CREATE STREAM s (k STRING, v INT) USING values; INSERT INTO s VALUES ('a', 1);
        CREATE SINK f USING parquet OPTIONS (path '{tmp_path}/f');"""
    )
    with pytest.raises(StreamsqlError, match="the query has two columns K, which") as caught:
        console.run("INSERT INTO f SELECT k, v AS K FROM s;")
    assert (caught.value.code, caught.value.hint) == ("DUPLICATE_NAME", "K AS K_2")
    console.run("INSERT INTO f SELECT k, v AS K_2 FROM s; AWAIT QUERY f IDLE;")
    assert console.rows(f"SELECT * FROM parquet.`{tmp_path}/f`;") == [("a", 1)]


@pytest.mark.parametrize("kind", ["xml", "avro"])
def test_a_name_that_files_do_not_take_is_refused_with_another(
    console: Console, packages: Any, tmp_path: Path, kind: str
) -> None:
    if kind == "avro":
        packages("avro")
    more = ", rowTag 'row'" if kind == "xml" else ""
    console.run(
        f"""CREATE STREAM s (v INT) USING values; INSERT INTO s VALUES (1);
        CREATE SINK f USING {kind} OPTIONS (path '{tmp_path}/f'{more});"""
    )
    with pytest.raises(StreamsqlError, match="does not take the name of the column") as caught:
        console.run("INSERT INTO f SELECT v + 1 FROM s;")
    assert caught.value.hint == "`(v + 1)` AS v_1"
    console.run("INSERT INTO f SELECT `(v + 1)` AS v_1 FROM (SELECT v + 1 FROM s); AWAIT QUERY f IDLE;")
    assert len(list((tmp_path / "f").glob("part-*"))) == 1


@pytest.mark.parametrize("name", ["csv", "json", "xml"])
def test_columns_that_cannot_be_read_are_refused_when_the_stream_is_created(
    spark: Any, console: Console, name: str, tmp_path: Path
) -> None:
    reader = connectors()[name]
    assert isinstance(reader, FileConnector)
    package = getattr(spark._jvm, reader.file_format.rpartition(".")[0])
    takes = getattr(package, reader.file_format.rpartition(".")[2])().supportReadDataType
    more = ", rowTag 'row'" if name == "xml" else ""
    for kind in ("INT", "STRING", "DATE", "BINARY", "VOID", "ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<a: INT>",
                 "STRUCT<array: INT>", "ARRAY<STRUCT<a: GEOMETRY(4326)>>", "GEOMETRY(4326)",
                 "GEOGRAPHY(4326)", "VARIANT"):  # fmt: skip
        create = f"CREATE OR REPLACE STREAM s (x {kind}) USING {name} OPTIONS (path '{tmp_path}'{more});"
        if takes(spark._jvm.org.apache.spark.sql.types.DataType.fromDDL(kind)):
            console.run(create)
            assert console.rows("SELECT x FROM s;") == []
        else:
            with pytest.raises(StreamsqlError, match=f"{name} has no values of type") as caught:
                console.run(create)
            assert caught.value.code == "WRONG_TYPE"


def test_fields_may_have_the_name_of_a_type(console: Console, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"geometry": {"geometry": "x", "geography": [1]}}\n')
    for inner in ("geometry STRING, geography: ARRAY<INT>", "`geometry`: STRING, `geography` ARRAY<INT>"):
        create = f"CREATE OR REPLACE STREAM s (geometry STRUCT<{inner}>)"
        console.run(f"{create} USING json OPTIONS (path '{tmp_path}');")
        assert console.rows("SELECT geometry.geometry, geometry.geography[0] FROM s;") == [("x", 1)]


def test_a_hint_for_a_column_of_csv_helps(console: Console, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"[1, 2]"\n')
    with pytest.raises(StreamsqlError) as caught:
        console.run(f"CREATE STREAM s (x ARRAY<INT>) USING csv OPTIONS (path '{tmp_path}');")
    assert caught.value.hint == "x STRING, and from_json(x, 'ARRAY<INT>') in a query"
    console.run(f"CREATE STREAM s (x STRING) USING csv OPTIONS (path '{tmp_path}');")
    assert console.rows("SELECT from_json(x, 'ARRAY<INT>')[1] FROM s;") == [(2,)]


def test_event_time_without_a_time_zone_is_refused_when_the_stream_is_created(console: Console) -> None:
    columns = "(n TIMESTAMP_NTZ) USING values WITH WATERMARK"
    with pytest.raises(StreamsqlError, match="n is timestamp_ntz, not a timestamp") as caught:
        console.run(f"CREATE STREAM s {columns} n DELAY '1 minute';")
    hint = (caught.value.hint or "").removeprefix("WITH WATERMARK")
    console.run(f"CREATE STREAM s {columns} {hint};")
    console.run("INSERT INTO s VALUES (TIMESTAMP_NTZ'2024-01-01 10:01:00');")
    assert console.rows("SELECT count(*) FROM s GROUP BY window(event_time, '1 hour');") == [(1,)]


@pytest.mark.parametrize(
    ("kind", "select", "fact"),
    [
        ("csv", "SELECT k, array(v) AS l FROM s", "csv does not take the column l, which is ARRAY<INT>"),
        ("csv", "SELECT k, l FROM t", "csv does not take the column l, which is ARRAY<INT>"),
        ("text", "SELECT v FROM s", "text does not take the column v, which is INT"),
        ("text", "SELECT k, v || '' AS w FROM s", "text takes one column, and the query has 2"),
    ],
)
def test_an_insert_whose_rows_the_files_do_not_take_is_refused(
    console: Console, tmp_path: Path, kind: str, select: str, fact: str
) -> None:
    console.run(
        f"""CREATE STREAM s (k STRING, v INT) USING values; INSERT INTO s VALUES ('a', 1);
        CREATE LIVE TABLE t AS SELECT k, collect_list(v) AS l FROM s GROUP BY k; AWAIT QUERY t IDLE;
        CREATE SINK f USING {kind} OPTIONS (path '{tmp_path}/f');"""
    )
    with pytest.raises(StreamsqlError, match=fact) as caught:
        console.run(f"INSERT INTO f {select};")
    assert caught.value.span is not None
    assert [name for name, *_ in console.rows("SHOW QUERIES;")] == ["t"]
    value, _, name = (caught.value.hint or "").rpartition(" AS ")
    kept = "" if kind == "text" else "k, "
    source = select.rpartition("FROM ")[2]
    inner = f"(SELECT {select.removeprefix('SELECT ').rpartition(' FROM ')[0]} FROM {source})"
    console.run(f"INSERT INTO f SELECT {kept}{value} AS {name} FROM {inner}; AWAIT QUERY f IDLE;")
    assert any("1" in file.read_text() for file in (tmp_path / "f").rglob("part-*"))


def test_partition_columns_may_have_other_types(console: Console, tmp_path: Path) -> None:
    console.run(
        f"""CREATE STREAM s (k STRING, v INT) USING values; INSERT INTO s VALUES ('a', 1);
        CREATE SINK f USING text PARTITIONED BY (v) OPTIONS (path '{tmp_path}/f');
        INSERT INTO f SELECT k, v FROM s; AWAIT QUERY f IDLE;"""
    )
    [file] = (tmp_path / "f" / "v=1").glob("part-*")
    assert file.read_text() == "a\n"
