"""Directories of XML and Avro files as streams and sinks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console, notes_of

from streamsql.errors import QueryFault, StreamsqlError
from streamsql.output.error_text import format_error

ROOMS = ("streamsql/connectors/",)

STREAM = "CREATE STREAM v (id INT, word STRING, at TIMESTAMP) USING values;\n"
ROWS = "INSERT INTO v VALUES (1, 'a', '2024-01-01 10:00:00'), (2, 'b', '2024-01-01 10:01:00');\n"
TIMES = [dt.datetime(2024, 1, 1, 10, minute) for minute in (0, 1)]


@pytest.fixture(autouse=True)
def avro(packages: Callable[[str], None], request: pytest.FixtureRequest) -> None:
    if "avro" in request.node.name:
        packages("avro")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("format", "options", "columns"),
    [
        ("xml", "rowTag 'click', rootTag 'clicks'", "at timestamp, id bigint, word string"),
        ("avro", "recordName 'click'", "id int, at timestamp, word string"),
    ],
)
def test_what_is_written_is_read_with_its_types(
    console: Console, tmp_path: Path, format: str, options: str, columns: str
) -> None:
    read = "rowTag 'click'," if format == "xml" else ""
    created = console.run(
        f"""{STREAM} CREATE SINK out USING {format} PARTITIONED BY (word)
          OPTIONS (path '{tmp_path}/out', {options}, compression 'deflate');
        INSERT INTO out SELECT * FROM v;
        {ROWS} AWAIT QUERY out IDLE;
        CREATE STREAM back USING {format} OPTIONS ({read} path '{tmp_path}/out')
          WITH WATERMARK at DELAY '1 minute';"""
    )[-1]
    assert notes_of(created) == (f"columns of back, as inferred and recorded: {columns}",)
    assert sorted(console.rows("SELECT id, word, at FROM back;")) == [(1, "a", TIMES[0]), (2, "b", TIMES[1])]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("format", ["xml", "avro"])
def test_a_restart_reads_only_what_is_new(console: Console, tmp_path: Path, format: str) -> None:
    row = "rowTag 'r'," if format == "xml" else ""
    console.run(
        f"""{STREAM} CREATE SINK files USING {format} OPTIONS ({row} path '{tmp_path}/files');
        INSERT INTO files SELECT id, word FROM v; {ROWS} AWAIT QUERY files IDLE;
        CREATE STREAM s (id INT, word STRING) USING {format}
          OPTIONS ({row} path '{tmp_path}/files', maxFilesPerTrigger 1);
        CREATE LIVE TABLE n AS SELECT word, count(*) AS c FROM s GROUP BY word;
        AWAIT QUERY n IDLE; STOP QUERY n;
        INSERT INTO v VALUES (3, 'a', NULL), (4, 'c', NULL); AWAIT QUERY files IDLE;
        START QUERY n; AWAIT QUERY n IDLE;"""
    )
    assert sorted(console.rows("SELECT word, c FROM n;")) == [("a", 2), ("b", 1), ("c", 1)]


def test_xml_attributes_are_columns(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text(
        "<books><book id='7'><title> Faust </title></book><book><title>Woyzeck</title></book></books>"
    )
    console.run(
        f"CREATE STREAM s (_id INT, title STRING) USING xml OPTIONS (rowTag 'book', path '{tmp_path}/in');"
    )
    assert sorted(console.rows("SELECT _id, title FROM s;"), key=str) == [(7, "Faust"), (None, "Woyzeck")]


def test_avro_reads_with_a_newer_schema(console: Console, tmp_path: Path) -> None:
    newer = (
        '{"type":"record","name":"topLevelRecord","fields":[{"name":"id","type":["int","null"]},'
        '{"name":"more","type":"string","default":"none"}]}'
    )
    console.run(
        f"""{STREAM} CREATE SINK out USING avro OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT id FROM v; {ROWS} AWAIT QUERY out IDLE;
        CREATE STREAM s USING avro OPTIONS (path '{tmp_path}/out', avroSchema '{newer}');"""
    )
    assert sorted(console.rows("SELECT id, more FROM s;")) == [(1, "none"), (2, "none")]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("CREATE STREAM s USING xml OPTIONS (path '{in}')", "xml needs the option rowTag"),
        ("CREATE STREAM s USING xml OPTIONS (path '{in}', rowTag 'r', indent ' ')", "no option indent"),
        (
            "CREATE STREAM s USING xml OPTIONS (path '{in}', rowTag 'r')",
            "the columns of s cannot be inferred",
        ),
        ("CREATE SINK s USING avro OPTIONS (path '{in}', recursiveFieldMaxDepth 2)", "no option recursive"),
        ("CREATE STREAM s USING avro OPTIONS (path '{in}')", "no Avro files found"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    console: Console, tmp_path: Path, statement: str, says: str
) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(StreamsqlError) as caught:
        console.run(statement.replace("{in}", f"{tmp_path}/in") + ";")
    assert says in format_error(caught.value)
    assert "^" in format_error(caught.value)


def test_avro_that_is_none_is_said(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.avro").write_text("not avro")
    console.run(
        f"CREATE STREAM s (id INT) USING avro OPTIONS (path '{tmp_path}/in');"
        "CREATE SINK nothing USING noop; INSERT INTO nothing AS QUERY q SELECT * FROM s;"
    )
    with pytest.raises(QueryFault) as caught:
        console.run("AWAIT QUERY q IDLE; AWAIT QUERY q;")
    said = format_error(caught.value)
    assert "a.avro cannot be read" in said
    assert "it is not a file of that format" in said


OF_FILES = {
    "plain": "SELECT n, _metadata.file_name AS f FROM {s}",
    "star": "SELECT *, _metadata.file_name AS f FROM {s}",
    "filter": "SELECT * FROM {s} WHERE _metadata.file_name = 'a'",
    "qualified": "SELECT x.n, x._metadata.file_name AS f FROM {s} x JOIN VALUES (1), (3) v(n) ON x.n = v.n",
    "groups": "SELECT _metadata.file_name AS f, count(*) AS c FROM {s} GROUP BY _metadata.file_name",
    "distinct": "SELECT DISTINCT _metadata.file_name AS f FROM {s}",
    "in_stages": "SELECT n, _metadata.file_name AS f, rank() OVER (ORDER BY n) AS r FROM {s}",
    "sub_query": "SELECT n FROM {s} WHERE _metadata.file_name = (SELECT max(_metadata.file_name) FROM {s})",
    "pipe": "FROM {s} |> WHERE _metadata.file_size > 0 |> SELECT n, _metadata.file_name AS f",
    "fields": "SELECT _metadata.* EXCEPT (file_modification_time) FROM {s}",
}
"""SELECTs that read what Spark knows of the file of a row."""


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_the_file_of_a_row(console: Console, tmp_path: Path, format: str) -> None:
    spark, folder = console.session.spark, tmp_path / "in"
    folder.mkdir()
    for name, numbers in (("a", (1, 2)), ("b", (3,))):
        rows = spark.createDataFrame([(n,) for n in numbers], "n INT").coalesce(1)
        rows.write.format(format).save(str(tmp_path / name))
        next((tmp_path / name).glob("part-*")).rename(folder / name)
    spark.sql(f"CREATE TABLE files_at_rest (n INT) USING {format} LOCATION '{folder}'")
    console.run(f"CREATE STREAM s (n INT) USING {format} OPTIONS (path '{folder}', maxFilesPerTrigger 1);")
    for name, select in OF_FILES.items():
        console.run(f"CREATE LIVE TABLE {name} AS {select.format(s='s')};")
    console.run("AWAIT QUERY ALL IDLE;")
    for name, select in OF_FILES.items():
        expected = spark.sql(select.format(s="files_at_rest")).collect()
        assert sorted(console.rows(f"SELECT * FROM {name};")) == sorted(map(tuple, expected)), name
    starred = "CREATE LIVE TABLE t AS SELECT *, rank() OVER (ORDER BY _metadata.file_name) AS r FROM s;"
    with pytest.raises(StreamsqlError) as caught:
        console.run(starred)
    assert caught.value.hint.endswith("or name the columns in place of *: then the query runs in stages")
    console.run(starred.replace("*", "n"))
    console.run("VERIFY QUERY groups; STOP QUERY groups; START QUERY groups; DROP TABLE files_at_rest;")
    console.run(f"CREATE STREAM own (_metadata STRING) USING json OPTIONS (path '{folder}');")  # of its rows
