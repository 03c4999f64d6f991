"""COPY to and from files, SUMMARIZE, and JSON arrows: habits of psql and DuckDB."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import stat
import threading
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Console

from streamsql.config.preferences import Preferences
from streamsql.errors import EngineFault, InputFault, RuleFault, StreamsqlError
from streamsql.language.short_forms import expand
from streamsql.output.copy_file import copy_to_file
from streamsql.output.printer import Printer
from streamsql.results import Copied, Rows

ROOMS = ("streamsql/features/copy/", "streamsql/runtime/", "streamsql/output/", "streamsql/plan/")


def copy(console: Console, statement: str) -> str:
    """What is said after a COPY."""
    words = io.StringIO()
    for result in console.run(statement):
        Printer("table", io.StringIO(), words).show(result)
    return words.getvalue().strip()


ROWS = [(1, 'a "b", c', 0.5), (2, None, None), (3, "", 1.5), (4, 'x\n"y"\t\\t', 2.0)]


def test_a_table_goes_into_files_and_comes_back(console: Console, tmp_path: Path) -> None:
    console.run(
        "CREATE TABLE kept (id INT, s STRING, d DOUBLE) USING parquet;"
        """INSERT INTO kept VALUES (1, 'a "b", c', 0.5), (2, NULL, NULL), (3, '', 1.5),"""
        " (4, concat('x', char(10), '\"y\"', char(9), char(92), 't'), 2.0);"
    )
    for format in ("csv", "tsv", "json", "jsonl", "parquet"):
        path = tmp_path / f"f.{format}"
        assert copy(console, f"COPY kept TO '{path}';") == f"4 rows copied to {path}"
        console.run("CREATE TABLE back (id INT, s STRING, d DOUBLE);")
        assert copy(console, f"COPY back FROM '{path}';") == "4 rows copied into back"
        assert console.rows("SELECT * FROM back ORDER BY id;") == ROWS, format
        console.run("DROP TABLE back;")
    assert (
        tmp_path / "f.csv"
    ).read_text() == 'id,s,d\n1,"a ""b"", c",0.5\n2,,\n3,"",1.5\n4,"x\n""y""\t\\t",2.0\n'
    other = tmp_path / "g.csv"
    short = f"\\copy (SELECT id, s FROM kept WHERE id < 3) TO '{other}' (DELIMITER ';')"
    statement = expand(short, Preferences())
    assert statement is not None
    copy(console, statement)
    assert other.read_text() == 'id;s\n1;"a ""b"", c"\n2;\n'
    copy(console, f"COPY kept TO '{other}' (HEADER false);")
    assert other.read_text().startswith('1,"a ')
    with pytest.raises(RuleFault, match="does not know the format xlsx") as refused:
        console.run("COPY kept TO 'f.xlsx';")
    assert "csv" in refused.value.hint
    for format in ("csv", "parquet"):
        with pytest.raises(InputFault, match="there is no folder /nowhere") as missing:
            copy(console, f"COPY kept TO '/nowhere/f.{format}';")
        assert missing.value.hint == "\\! mkdir -p '/nowhere'"
        assert missing.value.span is not None and missing.value.span.start == len("COPY kept TO ")
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(InputFault, match="cannot write .*: is a directory") as taken:
        copy(console, f"COPY kept TO '{tmp_path}/taken.csv';")
    assert taken.value.span is not None


@pytest.mark.slow
def test_a_file_of_gzip_is_written_and_read(console: Console, tmp_path: Path) -> None:
    console.run("CREATE TABLE packed (id INT, s STRING) USING parquet; INSERT INTO packed VALUES (1, 'a');")
    for format, text in (
        ("csv", "id,s\n1,a\n"),
        ("jsonl", '{"id": 1, "s": "a"}\n'),
        ("tsv", "id\ts\n1\ta\n"),
    ):
        path = tmp_path / f"f.{format}.gz"
        assert copy(console, f"COPY packed TO '{path}';") == f"1 row copied to {path}"
        assert gzip.decompress(path.read_bytes()).decode() == text
        console.run("CREATE TABLE unpacked (id INT, s STRING);")
        assert copy(console, f"COPY unpacked FROM '{path}';") == "1 row copied into unpacked"
        assert console.rows("SELECT * FROM unpacked;") == [(1, "a")]
        console.run("DROP TABLE unpacked;")
    with pytest.raises(RuleFault, match="a parquet file is not compressed as a whole") as refused:
        console.run(f"COPY packed TO '{tmp_path}/f.parquet.gz';")
    assert refused.value.hint == f"'{tmp_path}/f.parquet'"
    with pytest.raises(RuleFault, match="the format is not said"):
        console.run(f"COPY packed TO '{tmp_path}/f';")


def test_a_copy_that_fails_leaves_the_file_as_it_was(console: Console, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("before")
    (result,) = console.run(
        f"COPY (SELECT 1 / (id - 10500) AS x FROM range(0, 11000, 1, 3)) TO '{tmp_path}/f.csv';"
    )
    assert isinstance(result, Copied)
    with pytest.raises(StreamsqlError, match="(?i)division by zero"):
        Printer("table", io.StringIO(), io.StringIO()).show(result)
    assert [p.name for p in tmp_path.glob("*.csv*")] + [p.name for p in tmp_path.glob(".*")] == ["f.csv"]
    assert (tmp_path / "f.csv").read_text() == "before"


def test_a_stream_is_copied_and_summarized_as_far_as_it_is_there(console: Console, tmp_path: Path) -> None:
    console.run(
        "CREATE STREAM w (word STRING, n INT) USING values;"
        "INSERT INTO w VALUES ('a', 1), ('b', 2), ('b', 3), (NULL, 6);"
    )
    copy(console, f"COPY (SELECT word, n FROM w WHERE n < 3) TO '{tmp_path}/w.jsonl';")
    lines = [json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()]
    assert lines == [{"word": "a", "n": 1}, {"word": "b", "n": 2}]
    assert console.rows("SUMMARIZE w;") == [
        ("word", "STRING", "a", "b", 2, None, None, None, None, None, 4, 25.0),
        ("n", "INT", 1, 6, 4, 3.0, 2.160247, 1, 2, 3, 4, 0.0),
    ]
    with pytest.raises(RuleFault, match="w is a stream"):
        console.run(f"COPY w FROM '{tmp_path}/w.jsonl';")


def test_a_summary_rounds_numbers_and_keeps_small_ones(console: Console) -> None:
    rows = console.rows("SUMMARIZE SELECT 1 / 3D AS third, 2e-9 / 3 AS small, 10 / 3D AS more, 1.5 AS exact;")
    assert [(row[0], row[5], row[8]) for row in rows] == [
        ("third", 0.333333, 0.333333),
        ("small", 6.66667e-10, 6.66667e-10),
        ("more", 3.333333, 3.333333),
        ("exact", Decimal("1.500000"), Decimal("1.5")),
    ]


def test_a_summary_that_does_not_fit_is_shown_as_cards_and_breaks_no_value(console: Console) -> None:
    [summary] = console.run(
        "SUMMARIZE SELECT * FROM VALUES (1, 'ann', timestamp'2024-05-01 12:00:00', 'x'),"
        " (500, 'a_user_of_whom_the_name_is_long', timestamp'2024-05-01 12:40:00.123456', NULL)"
        " AS t(n, user, arrived_at_the_gateway, empty_or_x);"
    )
    assert isinstance(summary, Rows)
    for width in (40, 60, 80):
        out = io.StringIO()
        Printer("table", out, io.StringIO(), width=lambda: width, height=lambda: 99).show(summary)  # noqa: B023
        lines = out.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert [line for line in lines if not line.startswith(" ")] == [
            "n", "user", "arrived_at_the_gateway", "empty_or_x"
        ]  # fmt: skip
        words = out.getvalue().split()
        for whole in ("approx_unique", "null_percentage", "12:40:00.123456", "ann", "TIMESTAMP"):
            assert whole in words
        assert "2024-05-01 12:00:00\n" in out.getvalue()
        assert "2024-05-01 12:40:00.123456\n" in out.getvalue()
    for width in (110, 200):
        out = io.StringIO()
        Printer("table", out, io.StringIO(), width=lambda: width, height=lambda: 99).show(summary)  # noqa: B023
        rules, header, *_ = out.getvalue().splitlines()
        assert rules.startswith("+-") and len(rules) <= width
        assert header.replace("|", " ").split()[:4] == ["column_name", "column_type", "min", "max"]


@pytest.mark.parametrize(
    ("written", "value"),
    [("j -> 'a'", '{"b":5}'), ("t.j -> 'a' ->> 'b'", "5"), ("coalesce(j -> 'l' -> 0, 'x')", "7")],
)
def test_json_arrows_are_answered_with_what_spark_has(console: Console, written: str, value: str) -> None:
    view = """CREATE TEMPORARY VIEW t AS SELECT '{"a": {"b": 5}, "l": [7, 8]}' AS j;"""
    with pytest.raises(EngineFault) as refused:
        console.run(f"{view} SELECT {written} AS x FROM t;")
    assert "get_json_object" in refused.value.proposal.casefold()
    assert console.rows(refused.value.proposal) == [(value,)]
    assert console.rows("SELECT transform(array(1), x -> 'a') AS x;") == [(["a"],)]


def into(path: str) -> Copied:
    return Copied(rows=Rows((), ("n",), ((1,), (2,)), frozenset()), path=path)


def test_a_symbolic_link_and_the_mode_of_a_file_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "data.csv", tmp_path / "newest.csv"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    assert copy_to_file(into(str(link)), lambda: None) == f"2 rows copied to {link}"
    assert link.is_symlink() and file.read_text() == "n\n1\n2\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "newest.csv"]


def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    read = list[str]()
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    copy_to_file(into(str(fifo)), lambda: None)
    reader.join(60)
    assert read == ["n\n1\n2\n"]
    assert fifo.is_fifo()


@pytest.mark.parametrize("path", ["/", "."])
def test_a_folder_is_not_written(path: str) -> None:
    with pytest.raises(InputFault, match=f"cannot write {re.escape(path)}: is a directory"):
        copy_to_file(into(path), lambda: None)
