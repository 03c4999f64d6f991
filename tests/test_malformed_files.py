"""Rows of files that cannot be read: counted, left out, brought to a sink; and files that cannot be read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console
from data_files import put_whole
from test_queries import status
from test_stopping import Gate, numbers

from streamsql.errors import QueryFault, RuleFault

ROOMS = ("streamsql/connectors/", "streamsql/runtime/")

JSON = '{"a": 1, "b": "x"}\n{"a": "no", "b": "y"}\n{"a":\n'
CSV = "1,x\nno,y\n3\n"
XML = '<r><row id="7"><a>1</a></row><row id="8"><a>no</a></row></r>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def malformed(console: Console, query: str) -> int:
    described = dict(console.rows(f"DESCRIBE QUERY {query};"))
    return int(described.get("malformed", 0))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("connector", "text", "bad", "rows"),
    [
        ("json", JSON, 2, [(1, "x"), (None, "y"), (None, None)]),
        ("csv", CSV, 2, [(1, "x"), (None, "y"), (3, None)]),
        ("json", JSON, 2, [(1, "x")]),
        ("csv", CSV, 2, [(1, "x")]),
    ],
)
def test_rows_that_cannot_be_read_are_counted_in_both_modes(
    console: Console, folder: Path, connector: str, text: str, bad: int, rows: list[tuple[object, ...]]
) -> None:
    (folder / "in" / "1").write_text(text)
    mode = "PERMISSIVE" if len(rows) > 1 else "DROPMALFORMED"
    console.run(
        f"""CREATE STREAM s (a INT, b STRING) USING {connector} OPTIONS (path '{folder}/in', mode '{mode}');
        CREATE LIVE TABLE t AS SELECT * FROM s; CREATE LIVE TABLE n AS SELECT count(*) AS n FROM s;
        AWAIT QUERY ALL IDLE;"""
    )
    key = lambda row: str(row)  # noqa: E731
    assert sorted(console.rows("SELECT * FROM t;"), key=key) == sorted(rows, key=key)
    assert console.rows("SELECT * FROM n;") == [(len(rows),)]
    assert malformed(console, "t") == malformed(console, "n") == bad
    [shown] = [r for r in console.run("SHOW QUERIES EXTENDED;")[0].rows if r[0] == "t"]  # type: ignore[attr-defined]
    assert shown[18] == bad
    (why,) = console.run("WHY t;")
    done = "the values that cannot be read are NULL" if mode == "PERMISSIVE" else "were skipped"
    assert why.verdict.startswith(  # type: ignore[attr-defined]
        f"2 rows of s cannot be read as declared, and {done}; {len(rows)} row"
    )


def test_on_malformed_into_brings_each_row_once_to_a_sink_with_its_file(
    console: Console, folder: Path
) -> None:
    (folder / "in" / "1.json").write_text(JSON)
    console.run(
        f"""CREATE SINK bad USING json OPTIONS (path '{folder}/bad');
        CREATE STREAM s (b STRING, a INT) USING json OPTIONS (path '{folder}/in') ON MALFORMED INTO bad;
        CREATE LIVE TABLE t AS SELECT a, b FROM s; CREATE LIVE TABLE u AS SELECT b FROM s;
        AWAIT QUERY ALL IDLE;"""
    )
    assert console.rows("SELECT * FROM t;") == [(1, "x")]
    assert malformed(console, "t") == malformed(console, "u") == 2
    lines = [x for p in (folder / "bad").glob("*.json") for x in p.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    assert sorted(r["payload"].strip() for r in rows) == ['{"a":', '{"a": "no", "b": "y"}']
    assert {Path(r["file"]).name for r in rows} == {"1.json"}
    console.run("STOP QUERY ALL;")
    console.run("CREATE LIVE TABLE direct AS SELECT count(*) FROM s$malformed; AWAIT QUERY direct IDLE;")
    assert console.rows("SELECT * FROM direct;") == [(2,)]


def test_on_malformed_fail_names_the_file_and_reaches_no_other_query(
    console: Console, folder: Path, eventually: Callable[..., None]
) -> None:
    (folder / "in" / "orders.csv").write_text(CSV)
    console.run(
        f"""CREATE STREAM strict (a INT, b STRING) USING csv OPTIONS (path '{folder}/in') ON MALFORMED FAIL;
        CREATE STREAM s (a INT, b STRING) USING csv OPTIONS (path '{folder}/in') ON MALFORMED SKIP;
        CREATE LIVE TABLE good AS SELECT * FROM s; CREATE LIVE TABLE bad AS SELECT * FROM strict;"""
    )
    with pytest.raises(QueryFault) as raised:
        console.run("AWAIT QUERY bad;")
    assert raised.value.message.startswith("query bad failed: a row of ")
    assert raised.value.message.endswith("/in/orders.csv cannot be read")
    assert raised.value.hint.startswith("ON MALFORMED SKIP")
    console.run("AWAIT QUERY good IDLE;")
    assert console.rows("SELECT * FROM good;") == [(1, "x")]
    assert status(console, "good")["status"] == "running"


def test_a_column_that_takes_the_row_stays_when_it_is_declared(console: Console, folder: Path) -> None:
    (folder / "in" / "1.json").write_text(JSON)
    console.run(
        f"""CREATE STREAM s (a INT, _corrupt_record STRING) USING json OPTIONS (path '{folder}/in');
        CREATE LIVE TABLE t AS SELECT * FROM s; AWAIT QUERY t IDLE;
        CREATE STREAM i USING json OPTIONS (path '{folder}/in');
        CREATE LIVE TABLE u AS SELECT * FROM i; AWAIT QUERY u IDLE;"""
    )
    rows = console.rows("SELECT * FROM t;")
    assert sorted(row[1].strip() for row in rows if row[1]) == ['{"a":', '{"a": "no", "b": "y"}']
    assert malformed(console, "t") == 2
    assert malformed(console, "u") == 1  # by the types that were inferred
    described = dict(console.rows("DESCRIBE STREAM i;"))
    assert [name for name in described if name.startswith("column ")] == ["column a", "column b"]


@pytest.mark.parametrize("prefix", ["_", ""])
def test_xml_with_any_attribute_prefix(console: Console, folder: Path, prefix: str) -> None:
    (folder / "in" / "1.xml").write_text(XML)
    console.run(
        f"""CREATE STREAM s (a INT, `{prefix}id` INT) USING xml
        OPTIONS (path '{folder}/in', rowTag 'row', attributePrefix '{prefix}');
        CREATE LIVE TABLE t AS SELECT `{prefix}id` AS id, a FROM s; AWAIT QUERY t IDLE;"""
    )
    assert (7, 1) in console.rows("SELECT * FROM t;")
    assert malformed(console, "t") == 1


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("connector", "name", "data", "said"),
    [
        (
            "json",
            "cut.json.gz",
            gzip.compress(b'{"a": 1}\n' * 1000, mtime=0)[:-12],
            "cut.json.gz cannot be read",
        ),
        ("parquet", "no.parquet", b"this is none", "no.parquet cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_or_left_out(
    console: Console, folder: Path, connector: str, name: str, data: bytes, said: str
) -> None:
    (folder / "in" / name).write_bytes(data)
    console.run(
        f"""CREATE STREAM s (a INT) USING {connector} OPTIONS (path '{folder}/in');
        CREATE STREAM lenient (a INT) USING {connector} OPTIONS (path '{folder}/in', ignoreCorruptFiles true);
        CREATE LIVE TABLE good AS SELECT * FROM lenient; CREATE LIVE TABLE bad AS SELECT * FROM s;"""
    )
    with pytest.raises(QueryFault) as raised:
        console.run("AWAIT QUERY bad;")
    assert said in raised.value.message
    assert "ignoreCorruptFiles" in raised.value.hint
    assert "\n\tat " not in raised.value.detail
    console.run("AWAIT QUERY good IDLE;")
    assert status(console, "good")["status"] == "running"


def test_a_file_that_goes_before_its_turn_is_left_out(
    console: Console, folder: Path, eventually: Callable[..., None]
) -> None:
    """As Spark does it: the files of a micro-batch are looked up again when it begins."""
    for number in (1, 2):
        file = folder / "in" / f"{number}.json"
        put_whole(file, f'{{"a": {number}}}\n')
        os.utime(file, (number, number))  # the older one is read first
    gate = Gate(console, folder)
    console.run(
        f"""CREATE STREAM s (a INT) USING json OPTIONS (path '{folder}/in', maxFilesPerTrigger 1);
        CREATE SINK out USING json OPTIONS (path '{folder}/out');
        INSERT INTO out AS QUERY q TRIGGER AVAILABLE NOW SELECT slow(a) AS n FROM s;"""
    )
    eventually(gate.begun.exists)
    (folder / "in" / "2.json").unlink()  # it is listed already
    gate.open()
    console.run("AWAIT QUERY q TIMEOUT INTERVAL 1 MINUTE;")
    assert status(console, "q")["status"] == "finished"
    assert numbers(folder / "out") == [1]


def test_on_malformed_is_refused_where_it_says_nothing(console: Console, folder: Path) -> None:
    for text, said in (
        ("USING parquet OPTIONS (path 'x') ON MALFORMED SKIP", "ON MALFORMED is for messages"),
        ("USING csv OPTIONS (path 'x', mode 'FAILFAST') ON MALFORMED SKIP", "cannot be used together"),
    ):
        with pytest.raises(RuleFault, match=said):
            console.run(f"CREATE STREAM s (a INT) {text};")


def test_a_stream_that_a_query_reads_twice_is_counted_all_the_same(console: Console, folder: Path) -> None:
    (folder / "in" / "1.json").write_text(JSON)
    console.run(
        f"""CREATE STREAM s (a INT, b STRING) USING json OPTIONS (path '{folder}/in') ON MALFORMED SKIP;
        CREATE LIVE TABLE both AS SELECT a FROM s UNION ALL SELECT a + 1 FROM s WHERE b = 'x';
        CREATE LIVE TABLE joined AS SELECT l.a, r.b FROM s l JOIN s r ON l.a = r.a;
        AWAIT QUERY ALL IDLE;"""
    )
    assert sorted(console.rows("SELECT * FROM both;")) == [(1,), (2,)]
    assert console.rows("SELECT * FROM joined;") == [(1, "x")]
    assert malformed(console, "joined") == malformed(console, "both") == 2
