"""WHY at the source: sub-folders, a silent socket, limits of a micro-batch with the time that is left, rows that
are not as declared.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker
from conftest import Console
from test_why_rows import files
from why_answers import resolved, why

from streamsql.results import Rows

ROOMS = ("streamsql/features/why/", "streamsql/runtime/", "streamsql/connectors/")


def test_a_files_older_than_the_newest_by_more_than_max_file_age(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__csv="a\n", c__csv="c\n")
    old = (folder / "a.csv").stat().st_mtime - 2 * 3_600
    os.utime(folder / "c.csv", (old, old))  # the first micro-batch reads files of any age
    console.run(
        f"""CREATE STREAM s (k STRING) USING csv OPTIONS (path '{os.path.relpath(folder)}', maxFileAge '1h');
        CREATE LIVE TABLE t AS SELECT k FROM s; AWAIT QUERY t IDLE;"""
    )
    files(folder, b__csv="b\n")
    os.utime(folder / "b.csv", (old, old))
    console.run("AWAIT QUERY t IDLE;")
    shown, facts = why(console, "QUERY t")
    assert (shown.code, facts["rows in"]) == ("FILES_TOO_OLD", 2)
    assert shown.verdict == (
        "1 file of s is never read: older than the newest file by more than maxFileAge, 1h"
    )
    assert facts["files not read: older than maxFileAge allows"] == "1, such as b.csv"
    assert facts["older than the newest file by"] == "2 hours"
    assert resolved(console, shown, "t") == [("a",), ("b",), ("c",)]


@pytest.mark.slow
def test_a_wrong_globs_and_folders_sub_folders_and_files_that_are_being_written(
    console: Console, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "in" / "monday").mkdir(parents=True)
    files(tmp_path / "in" / "monday", a__csv="a\n")
    files(tmp_path / "orders", a__csv="a\n")
    (tmp_path / "order").mkdir()
    glob, hidden = files(tmp_path / "glob", a__txt="a\n"), files(tmp_path / "hidden", _a__csv="a\n")
    (hidden / "b.csv._COPYING_").write_text("b\n")
    paths = {"g": f"{glob}/*.csv", "h": str(hidden), "e": f"{tmp_path}/empty"}
    paths |= {"n": f"{tmp_path}/in", "o": f"{tmp_path}/order"}
    for name, path in paths.items():
        console.run(
            f"""CREATE STREAM {name} (k STRING) USING csv OPTIONS (path '{path}');
            CREATE LIVE TABLE t_{name} AS SELECT k FROM {name};"""
        )
    console.run("AWAIT QUERY ALL IDLE;")
    shown, facts = why(console, "QUERY t_n")
    assert (shown.code, facts["files not read: in sub-folders"]) == ("NO_DATA", "1, such as a.csv")
    assert shown.verdict.endswith("has no file that n reads; 1 file there is in sub-folders")
    assert resolved(console, shown, "t_n") == [("a",)]
    shown, facts = why(console, "QUERY t_o")
    assert (shown.code, shown.verdict) == ("NO_DATA", f"no data: the folder {tmp_path}/order of o is empty")
    assert facts["similar folder with files"] == f"{tmp_path}/orders"
    assert resolved(console, shown, "t_o") == [("a",)]
    shown, facts = why(console, "QUERY t_g")
    assert (shown.code, shown.verdict) == (
        "NO_DATA",
        f"no data: the folder {glob} has no file that g reads; 1 file there is not matched by the path",
    )
    assert facts["files not read: not matched by the path"] == "1, such as a.txt"
    assert resolved(console, shown, "t_g") == [("a",)]
    # No statement writes a file, or renames one: the proposal shows what the source gives then.
    shown, facts = why(console, "QUERY t_h")
    assert (
        facts["files not read: hidden, or still being written (names with _ or . in front)"]
        == "2, such as _a.csv"
    )
    assert facts["to resolve it"] == "a complete file needs a name without _ or . in front: mv _a.csv a.csv"
    assert console.rows(shown.proposal) == []
    (hidden / "_a.csv").rename(hidden / "a.csv")
    assert console.rows(shown.proposal) == [("a",)]
    assert console.rows("AWAIT QUERY t_h IDLE; SELECT * FROM t_h;") == [("a",)]
    shown, facts = why(console, "QUERY t_e")
    assert shown.verdict == f"no data: the folder {tmp_path}/empty of e is empty"
    assert (shown.proposal, console.rows(shown.proposal)) == ("PREVIEW e;", [])


def test_b_a_micro_batch_that_is_under_way(
    console: Console, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    (tmp_path / "slow_sink.py").write_text(
        "import pathlib, time\ndef write(batch, batch_id):\n"
        f"    while not pathlib.Path('{tmp_path}/go').exists():\n        time.sleep(0.02)\n"
    )
    folder = files(tmp_path / "in", a__csv="a\n")
    console.run(
        f"""CREATE STREAM s (k STRING) USING csv OPTIONS (path '{folder}');
        CREATE SINK o USING foreach_batch OPTIONS (function 'slow_sink.write', folder '{tmp_path}');
        INSERT INTO o AS QUERY q SELECT k FROM s;"""
    )
    try:
        verdict = "the first micro-batch of 1 file has run for "
        eventually(lambda: why(console, "QUERY q")[0].verdict.startswith(verdict))
        files(folder, b__csv="b\n")
        shown, facts = why(console, "QUERY q")
        assert shown.code == "NOT_READ_YET"
        assert shown.verdict.startswith("1 file of s is not read yet: a micro-batch has run for ")
        assert facts["files not read yet"] == 1
    finally:
        (tmp_path / "go").touch()
    console.run(shown.proposal)  # it is stopped when all is read, and started
    shown, facts = why(console, "QUERY q")
    assert shown.code == "ALL_READ_BEFORE"


def send_to_all(server: socket.socket, connections: contextlib.ExitStack) -> None:
    """Send a line to each new connection; one is that of the check before the start."""
    with contextlib.suppress(BlockingIOError):
        while True:
            connection = connections.enter_context(server.accept()[0])
            with contextlib.suppress(OSError):
                connection.sendall(b"one\n")


@pytest.mark.slow
def test_a_a_socket_that_sends_nothing(console: Console, eventually: Callable[..., None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        host, port = place.split(":")
        console.run(
            f"""CREATE STREAM s USING socket OPTIONS (host '{host}', port {port});
            CREATE LIVE TABLE t AS SELECT value FROM s; AWAIT QUERY t IDLE;"""
        )
        shown, facts = why(console, "QUERY t")
        assert shown.code == "NO_DATA"
        assert shown.verdict == f"no data: {place} is connected and has sent no line since the query started"
        assert facts["source"] == f"socket {place}"
        assert facts["to resolve it"].startswith("the server has to send a line")
        server.setblocking(False)
        with contextlib.ExitStack() as connections:
            send_to_all(server, connections)
            shown_line: list[object] = []
            typed = threading.Thread(target=lambda: shown_line.extend(console.rows(shown.proposal)))
            typed.start()  # PREVIEW s has a connection of its own
            while typed.is_alive():
                send_to_all(server, connections)
                typed.join(0.05)
            assert shown_line == [("one",)]
            eventually(lambda: console.rows("SELECT * FROM t;") == [("one",)])
            assert why(console, "QUERY t")[0].code == "NOTHING_WRONG"
            console.run("STOP QUERY t;")


@pytest.mark.parametrize("source", ["files", "kafka"])
def test_b_a_limit_and_the_time_that_is_left(
    console: Console,
    processes: None,  # the broker
    source: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    eventually: Callable[..., None],
) -> None:
    if source == "kafka":
        broker: Broker = request.getfixturevalue("kafka")
        options = (
            f"servers '{broker.servers}', topic '{broker.topic('a', 'b', 'c')}', startingOffsets 'earliest'"
        )
        using, what, limit = (
            f"kafka OPTIONS ({options}, maxOffsetsPerTrigger 1)",
            "message",
            "maxOffsetsPerTrigger",
        )
    else:
        folder = files(tmp_path / "in", a__txt="a\n", b__txt="b\n", c__txt="c\n")
        using, what, limit = (
            f"text OPTIONS (path '{folder}', maxFilesPerTrigger 1)",
            "file",
            "maxFilesPerTrigger",
        )
    console.run(
        f"""CREATE STREAM s USING {using};
        CREATE LIVE TABLE t TRIGGER EVERY INTERVAL 10 HOURS AS SELECT value FROM s;"""
    )
    running = console.session.parts.newest.run
    assert running is not None
    eventually(lambda: bool(running.reports.last))
    shown, facts = why(console, "QUERY t")
    assert shown.code == "NOT_READ_YET"
    assert shown.verdict.startswith(f"2 {what}s of s are not read yet: the next micro-batch begins in ")
    assert (facts[f"{what}s not read yet"], facts[limit], facts["done in about"]) == (2, "1", "20 h")
    console.run(shown.proposal)
    assert console.rows("SELECT * FROM t ORDER BY 1;") == [("a",), ("b",), ("c",)]


def test_c_other_columns_than_declared(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__json='{"name": "a"}\n{"name": "b"}\n')
    console.run(
        f"""CREATE STREAM s (k STRING, n INT) USING json OPTIONS (path '{folder}');
        CREATE LIVE TABLE t AS SELECT k FROM s WHERE k > ''; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert (shown.code, facts["declared columns"]) == ("ROWS_UNREADABLE", "k, n")
    assert (
        shown.verdict == "all columns of s are NULL in all 2 rows: its data has other columns than declared"
    )
    [preview] = console.run(shown.proposal)
    assert isinstance(preview, Rows)
    assert preview.columns == ("name",)


def test_c_no_row_can_be_read(console: Console, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__csv="one\ntwo\n")
    console.run(
        f"""CREATE STREAM s (n INT) USING csv OPTIONS (path '{folder}') ON MALFORMED SKIP;
        CREATE LIVE TABLE t AS SELECT n FROM s; AWAIT QUERY t IDLE;"""
    )
    shown, facts = why(console, "QUERY t")
    assert shown.code == "ROWS_UNREADABLE"
    assert shown.verdict == "none of the 2 rows of s can be read as declared"
    assert (facts["rows in"], facts["malformed"]) == (2, 2)
    assert facts["n is not INT in"] == "2, such as 'one'"
    assert resolved(console, shown, "t") == [("one",), ("two",)]
