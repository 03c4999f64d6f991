"""PREVIEW: the first records of a source, and the CREATE STREAM that they suggest; DESCRIBE CONNECTOR."""

from __future__ import annotations

import contextlib
import csv
import json
import socket
import threading
from collections.abc import Iterator
from datetime import date, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from conftest import Console, notes_of
from data_files import put_whole
from previews import look, taken
from scripts import run_here

from streamsql.errors import Source, StreamsqlError
from streamsql.output.printer import Printer
from streamsql.results import Rows
from streamsql.shell.bare_terminal import Interrupt
from streamsql.shell.statement_runner import Desk

ROOMS = (
    "streamsql/features/preview/",
    "streamsql/connectors/",
    "streamsql/plan/statements/",
    "streamsql/runtime/preflight/",
)


def write(folder: Path, name: str, *lines: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    put_whole(folder / name, "".join(f"{t}\n" for t in texts))
    return folder


def test_json_with_folders_that_name_a_column_and_a_line_that_is_none(
    console: Console, tmp_path: Path
) -> None:
    clicks = tmp_path / "clicks"
    write(clicks / "day=2024-05-01", "a.json", {"user": "ann", "ts": "2024-05-01T12:00:00Z", "n": 1}, "oops")
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{clicks}');")
    assert shown.columns == ("user", "ts", "n", "day")
    assert shown.rows == [
        ("ann", datetime(2024, 5, 1, 12), 1, date(2024, 5, 1)),
        (None, None, None, date(2024, 5, 1)),
    ]
    assert shown.proposal == (
        "CREATE STREAM clicks (user STRING, ts TIMESTAMP, n BIGINT, day DATE)\n"
        f"  USING json\n  OPTIONS (path '{clicks}')\n  WITH WATERMARK ts DELAY '10 minutes';"
    )
    assert notes_of(shown) == ("1 of the first 2 records are not JSON objects, or are empty",)
    assert taken(console, shown) == shown.rows


def test_texts_that_are_no_times_stay_texts(console: Console, tmp_path: Path) -> None:
    """Spark's own inferTimestamp takes a zip code for a year."""
    write(tmp_path / "in", "a.json", {"zip": "9021", "clock": "12:30", "n": None, "deep": {"a b": [1]}})
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');")
    assert "(zip STRING, clock STRING, n STRING, deep STRUCT<`a b`: ARRAY<BIGINT>>)" in shown.proposal
    assert "WATERMARK" not in shown.proposal
    assert "no column looks like an event time" in notes_of(shown)[-1]
    assert len(taken(console, shown)) == 1


def test_event_time_from_a_number_inside_a_column(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", {"e": {"ts": 1714564800123}}, {"e": {"ts": 1714564801123}})
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in') LIMIT 1;")
    assert "WITH WATERMARK timestamp_millis(e.ts) AS event_time DELAY '10 minutes';" in shown.proposal
    assert shown.rows == [({"ts": 1714564800123}, datetime(2024, 5, 1, 12, 0, 0, 123000))]
    assert taken(console, shown)[:1] == shown.rows


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("lines", "columns", "options"),
    [
        (
            ["id,name,at", "1,ann,2024-05-01 12:00:00"],
            "(id INT, name STRING, at TIMESTAMP)",
            ", header 'true'",
        ),
        (['id;"full name"', '1;"a;b"'], "(id INT, `full name` STRING)", ", sep ';', header 'true'"),
        (["1\tann\t2.5", "2\tbob\t3.5"], "(_c0 INT, _c1 STRING, _c2 DOUBLE)", ", sep '\\t'"),
    ],
)
def test_csv_header_and_separator(
    console: Console, tmp_path: Path, lines: list[str], columns: str, options: str
) -> None:
    write(tmp_path / "in", "a.csv", *lines)
    write(tmp_path / "in", "b.csv", *lines)
    shown = look(console, f"PREVIEW USING csv OPTIONS (path '{tmp_path}/in');")
    assert columns in shown.proposal
    assert f"(path '{tmp_path}/in'{options})" in shown.proposal
    assert len(shown.rows) == 2 * (len(lines) - ("header" in options))
    assert sorted(taken(console, shown)) == sorted(shown.rows)


def test_csv_as_it_is_said(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.csv", "id;x", "1;2")
    shown = look(console, f"PREVIEW USING csv OPTIONS (path '{tmp_path}/in', header false, sep ';');")
    assert shown.rows == [("id", "x"), ("1", "2")]
    assert shown.columns == ("_c0", "_c1")


def test_one_file_of_a_folder(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", {"a": 1})
    write(tmp_path / "in", "b.json", {"b": 1})
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in/b.json');")
    assert shown.columns == ("b",)
    assert "CREATE STREAM b (b BIGINT)" in shown.proposal
    assert f"OPTIONS (path '{tmp_path}/in', pathGlobFilter 'b.json')" in shown.proposal
    assert taken(console, shown) == [(1,)]


@pytest.mark.slow
def test_the_names_of_files_tell_their_connector(console: Console, tmp_path: Path) -> None:
    clicks = tmp_path / "clicks"
    write(clicks / "day=2024-05-01", "a.jsonl", {"user": "ann"})
    for path in (clicks, clicks / "*" / "a.jsonl", clicks / "day=2024-05-01" / "a.jsonl"):
        shown = look(console, f"PREVIEW '{path}' LIMIT 1;")
        assert shown.rows[0][0] == "ann"
        assert shown.proposal.split("\n")[1] == "  USING json"
    write(tmp_path / "logs", "a.log", {"user": "bob"})
    with pytest.raises(StreamsqlError) as fault:
        console.run(f"PREVIEW '{tmp_path / 'logs'}';")
    assert fault.value.hint.startswith(
        proposed := f"PREVIEW USING json OPTIONS (path '{tmp_path / 'logs'}');"
    )
    assert look(console, proposed).rows == [("bob",)]


def test_json_of_several_lines(console: Console, tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        "a.json",
        "[",
        '  {"a": 1, "day": "2024-05-01"},',
        '  {"a": 2, "day": "2024-05-02"}',
        "]",
    )
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');")
    assert "multiLine 'true'" in shown.proposal
    assert "WITH WATERMARK to_timestamp(day) AS event_time DELAY '1 day';" in shown.proposal
    assert [row[0] for row in shown.rows] == [1, 2]
    assert taken(console, shown) == shown.rows


def test_names_that_spark_does_not_tell_apart(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", '{"Id": 1, "id": 2, "select": 3}')
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');")
    assert "(Id BIGINT, `select` BIGINT)" in shown.proposal
    assert notes_of(shown)[0] == "id is omitted: Spark does not distinguish it from Id"
    assert len(taken(console, shown)) == 1


def test_parquet(console: Console, tmp_path: Path) -> None:
    console.session.spark.sql(
        "SELECT 1 AS id, TIMESTAMP '2024-05-01 12:00:00' AS seen, named_struct('x', 2.5D) AS s"
    ).write.parquet(str(tmp_path / "pq"))
    shown = look(console, f"PREVIEW USING parquet OPTIONS (path '{tmp_path}/pq');")
    assert "(id INT, seen TIMESTAMP, s STRUCT<x: DOUBLE>)" in shown.proposal
    assert shown.proposal.endswith("WITH WATERMARK seen DELAY '10 minutes';")
    assert taken(console, shown) == shown.rows


def test_it_reads_little_and_makes_nothing(console: Console, tmp_path: Path) -> None:
    """Of many records the first thousand are looked at: what comes behind them is not known."""
    write(tmp_path / "in", "a.json", *({"n": i} for i in range(5000)), {"n": "text", "more": 1})
    shown = look(console, f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');")
    assert "(n BIGINT)" in shown.proposal
    assert [row[0] for row in shown.rows] == list(range(10))
    catalog = console.session.catalog
    assert not (catalog.streams or catalog.sinks or catalog.queries or catalog.tables)
    assert console.session.spark.streams.active == []
    assert not list((tmp_path / "console").rglob("checkpoint"))


def test_a_stream_that_is_there(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", *({"user": u, "ts": "2024-05-01 12:00:00"} for u in "aabbb"))
    console.run(f"CREATE STREAM s (user STRING, ts TIMESTAMP) USING json OPTIONS (path '{tmp_path}/in');")
    shown = look(console, "PREVIEW s LIMIT 3;")
    assert [row[0] for row in shown.rows] == ["a", "a", "b"]
    assert shown.proposal == ""
    console.run("CREATE STREAM n AS SELECT user, count(*) AS n FROM s GROUP BY user;")
    shown = look(console, "PREVIEW STREAM n;")
    assert sorted(shown.rows) == [("a", 2), ("b", 3)]
    assert notes_of(shown) == ("computed from the first 1000 records of what n reads",)


def test_an_operation_that_only_streams_have(console: Console) -> None:
    console.run(
        """CREATE STREAM v (id INT, at TIMESTAMP) USING values WITH WATERMARK at DELAY '1 minute';
        INSERT INTO v VALUES (1, '2024-05-01 12:00:00'), (1, '2024-05-01 12:00:01');
        CREATE STREAM d AS SELECT DISTINCT ON (id) WITHIN WATERMARK * FROM v;"""
    )
    shown = look(console, "PREVIEW d LIMIT 1;")
    assert [row[0] for row in shown.rows] == [1]
    assert console.session.spark.streams.active == []
    assert console.session.parts.queries.all == {}


def test_what_only_comes_as_time_goes_on(console: Console) -> None:
    shown = look(console, "PREVIEW USING rate OPTIONS (rowsPerSecond 50) LIMIT 2;")
    assert len(shown.rows) == 2
    assert shown.proposal.endswith(
        "USING rate\n  OPTIONS (rowsPerSecond '50')\n  WITH WATERMARK timestamp DELAY '10 minutes';"
    )
    assert console.session.spark.streams.active == []


@contextlib.contextmanager
def server(*lines: str) -> Iterator[int]:
    """A TCP server that sends lines to whoever connects; gives its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                held.append(client)
                client.sendall("".join(f"{line}\n" for line in lines).encode())

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()[1]
    for open_socket in (listening, *held):
        open_socket.close()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("lines", "proposed"),
    [
        (
            ['{"user":"ann","ts":"2024-05-01T12:00:00Z"}'] * 3,
            "(user STRING, ts TIMESTAMP)\n  USING socket\n  FORMAT json\n",
        ),
        (["1,ann", "2,bob", "3,cy"], "(_c0 INT, _c1 STRING)\n  USING socket\n  FORMAT csv\n"),
        (["to be or", "not to be", "is it"], "CREATE STREAM socket\n  USING socket\n  OPTIONS"),
    ],
)
def test_the_format_of_messages(console: Console, lines: list[str], proposed: str) -> None:
    with server(*lines) as port:
        shown = look(console, f"PREVIEW USING socket OPTIONS (host '127.0.0.1', port {port}) LIMIT 3;")
    assert [row[0] for row in shown.rows] == lines
    assert proposed in shown.proposal


def test_in_a_script_rows_are_data_and_the_proposal_is_words(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", {"a": 1})
    done = run_here(
        spark, tmp_path, Source("s.sql", f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');"), format="csv"
    )
    assert done.out == "a\r\n1\r\n" or done.out == "a\n1\n"
    assert (
        f"CREATE STREAM `in` (a BIGINT)\n  USING json\n  OPTIONS (path '{tmp_path}/in');"
        in done.err.replace("STREAM in ", "STREAM `in` ")
    )


def test_at_the_prompt_the_proposal_waits_in_the_history(console: Console, tmp_path: Path) -> None:
    write(tmp_path / "in", "a.json", {"a": 1})
    shown = StringIO()
    desk = Desk(console.session, Printer("table", shown, shown), Interrupt(), {})
    assert desk.execute(f"PREVIEW USING json OPTIONS (path '{tmp_path}/in');")
    assert desk.offered.startswith("CREATE STREAM in (a BIGINT)")
    assert desk.offered in shown.getvalue()
    assert shown.getvalue().endswith("note: press ↑ to edit and run this statement\n")


def test_an_empty_folder(console: Console, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for kind in ("json", "csv", "parquet"):
        with pytest.raises(StreamsqlError, match="no records to show yet"):
            console.run(f"PREVIEW USING {kind} OPTIONS (path '{tmp_path}/in');")


def described(console: Console, name: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    result = console.run(f"DESCRIBE CONNECTOR {name};")[0]
    assert isinstance(result, Rows)
    assert result.columns == ("property", "for", "kind", "default", "description")
    assert list(console.rows(f"SHOW CONNECTORS {name};")) == [tuple(r) for r in result.rows]
    return {(r[0], r[1]): tuple(r[2:]) for r in reversed(result.rows)}


def test_describe_connector(console: Console) -> None:
    shown = described(console, "json")
    assert shown["connector", ""] == ("", "", "directories of JSON lines")
    assert shown["triggers", "read"][2] == "default, EVERY, AVAILABLE NOW, ONCE"
    assert shown["output modes", "write"][2] == "append"
    assert shown["path", "read"][0] == "path, required"
    assert shown["cleanSource", "read"][:2] == ("archive | delete | off", "off")
    assert shown["lineSep", "read, write"][0] == "text"
    shown = described(console, "jdbc")
    assert shown["password", "write"][0] == "text, secret"
    assert shown["output modes", "write"][2] == "append, with KEY update"
    assert "org.postgresql:postgresql:" in shown["package", ""][2]
    assert described(console, "rate")["columns", "read"][2] == "timestamp TIMESTAMP, value BIGINT"
    assert described(console, "socket")["formats", ""][2] == "text, raw, json, csv"
    assert not any(use == "read" for _, use in described(console, "noop"))
    shown = described(console, "kafka")
    assert (
        shown["columns", "read"][2]
        == "declared with FORMAT json, csv, avro, protobuf, debezium_json; else value"
    )
    assert "_offset BIGINT" in shown["message fields", "read"][2]
    assert shown["kafka.sasl.jaas.config", "read, write"][0] == "text, secret"
    assert shown["startingOffsets", "read"][1] == "earliest"
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:" in shown["package", ""][2]


@pytest.mark.slow
def test_a_type_that_many_values_have_is_told(console: Console, tmp_path: Path) -> None:
    """One or ten odd values of a hundred: the column stays a STRING, and no row is left out."""
    for name, every in (("calls", 10), ("visits", 100)):
        lines = [f"{'soon' if n % every == 9 else f'2024-05-01T12:00:{n % 60:02}Z'},{n}" for n in range(100)]
        folder = write(tmp_path / name, "a.csv", "ts,n", *lines)
        shown = look(console, f"PREVIEW USING csv OPTIONS (path '{folder}', header 'true');")
        assert shown.proposal == (
            f"CREATE STREAM {name} (ts STRING, n INT)\n  USING csv\n  OPTIONS (path '{folder}', header 'true')\n"
            "  WITH WATERMARK try_to_timestamp(ts) AS event_time DELAY '10 minutes';"
        )
        assert (
            "ts stays STRING: many of 100 records have a TIMESTAMP, but not 'soon'; "
            "as a TIMESTAMP, ON MALFORMED SKIP leaves their rows out"
        ) in list(notes_of(shown))
        assert len(taken(console, shown)) == 100


CSV = {
    "zeros": (
        "zip,phone,big,mixed,nano,ratio\n00501,+49301,12345678901234567890,1,2024-05-01 10:00:00.1234567,0.1\n"
        "10001,49302,2,C2,2024-05-01 10:00:00.5,12.345678901234567890\n",
        "zip STRING, phone STRING, big DECIMAL(20,0), mixed STRING, nano STRING, ratio STRING",
        "",
    ),
    "quotes": (
        'id,txt,more\n1,"a, ""b"" c",\n2,plain,""\n',
        "id INT, txt STRING, more STRING",
        "escape '\"', nullValue '\\\\N', ",
    ),
    "lines": (
        'id,note\n1,"two\n""lines"""\n2,one\n',
        "id INT, note STRING",
        "multiLine 'true', escape '\"', ",
    ),
    "latin": ("id,name\n1,Müller\n", "id INT, name STRING", "encoding 'ISO-8859-1', "),
    "utf16": ("id,name\n1,Müller\n", "id INT, name STRING", "encoding 'UTF-16', multiLine 'true', "),
}
ENCODINGS = {"latin": "latin-1", "utf16": "utf-16"}


@pytest.mark.slow
def test_no_row_of_csv_is_changed_by_what_is_proposed(console: Console, tmp_path: Path) -> None:
    """Each field comes back as its text, with PREVIEW's stream and with CREATE without columns."""
    for name, (text, columns, options) in CSV.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_bytes(text.encode(ENCODINGS.get(name, "utf-8")))
        header, *rows = csv.reader(StringIO(text))
        shown = look(console, f"PREVIEW USING csv OPTIONS (path '{tmp_path}/{name}');")
        assert columns in " ".join(shown.proposal.split()), name
        assert f"(path '{tmp_path}/{name}', {options}header 'true')" in shown.proposal
        console.run(f"CREATE STREAM own_{name} USING csv OPTIONS (path '{tmp_path}/{name}', header 'true');")
        own = console.rows(f"SELECT * FROM own_{name};")
        declared = f"CREATE STREAM declared_{name} ({columns}) USING csv OPTIONS (path '{tmp_path}/{name}');"
        noted = [n.text for n in console.run(declared)[-1].notes if n.code == "CSV_OPTIONS"]
        shown_options = options.removesuffix(", ").replace(
            ", multiLine 'true'", "" if name == "utf16" else ", multiLine 'true'"
        )
        assert [text.partition(" with ")[2] for text in noted] == [f"OPTIONS ({shown_options})"][
            : bool(options)
        ]
        for read in (taken(console, shown), own):
            assert [tuple("" if v is None else str(v) for v in row[: len(header)]) for row in read] == [
                tuple(row) for row in rows
            ], name
    assert console.rows("SELECT more FROM quotes ORDER BY id;") == [(None,), ("",)]


def test_a_header_in_another_order_is_an_error(console: Console, tmp_path: Path) -> None:
    """At CREATE, with the statement in the order of the header; and at a file that lands later."""
    folder = write(tmp_path / "in", "1.csv", "id,first,last", "1,Ann,Lee")
    options = f"USING csv OPTIONS (path '{folder}', header 'true'"
    with pytest.raises(
        StreamsqlError, match="the header of .*1.csv is not that of the columns of p"
    ) as order:
        console.run(f"CREATE STREAM p (id INT, last STRING, first STRING) {options});")
    assert order.value.code == "HEADER_MISMATCH"
    assert order.value.detail == "the header: id, first, last\nthe columns: id, last, first"
    console.run(order.value.proposal)
    with pytest.raises(StreamsqlError) as renamed:
        console.run(f"CREATE STREAM r (nr INT, first STRING, last STRING) {options});")
    assert renamed.value.proposal.startswith("CREATE STREAM r (id INT, first STRING, last STRING)")
    console.run(f"CREATE STREAM r (nr INT, first STRING, last STRING) {options}, enforceSchema 'true');")
    assert console.rows("SELECT * FROM r;") == console.rows("SELECT * FROM p;") == [(1, "Ann", "Lee")]
    write(folder, "2.csv", "id,last,first", "2,Ray,Bob")
    with pytest.raises(StreamsqlError, match="the header of .*2.csv is not that of the columns") as later:
        console.rows("SELECT * FROM p;")
    assert later.value.code == "HEADER_MISMATCH"
    with pytest.raises(StreamsqlError, match="is not that of the columns of p") as mixed:
        console.run(f"CREATE OR REPLACE STREAM p {options});")
    assert "pathGlobFilter" in mixed.value.hint and not mixed.value.proposal


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", ", maxFilesPerTrigger '1'"])
def test_rows_of_csv_equal_those_of_a_batch_read_by_name(
    console: Console, tmp_path: Path, option: str
) -> None:
    """Spark's own batch read with inferred names, the columns chosen by name."""
    for number in range(3):
        lines = [f'{number},"t ""{number}""",0{number},{number}.5' for _ in range(3)]
        write(tmp_path / "in", f"{number}.csv", "id,txt,code,x", *lines)
    console.run(f"CREATE STREAM s USING csv OPTIONS (path '{tmp_path}/in', header 'true'{option});")
    batch = "SELECT CAST(id AS INT), txt, code, CAST(x AS DOUBLE) FROM read_files_as_they_are"
    frame = console.session.parts.spark.read.options(header=True, escape='"').csv(f"{tmp_path}/in")
    frame.createOrReplaceTempView("read_files_as_they_are")
    assert sorted(console.rows("SELECT id, txt, code, x FROM s;")) == sorted(console.rows(batch + ";"))
