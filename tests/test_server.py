"""Queries outlive the console: a server shares its session with clients, over a socket in the workspace."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import drop_tables, notes_of
from scripts import run_process
from terminal import Terminal

from streamsql import __version__
from streamsql.cli.hosting_loop import HostingLoop
from streamsql.config.preferences import Preferences
from streamsql.errors import Cancelled, Source, Span, StreamsqlError, UsageFault
from streamsql.language.parser import parse, split_script
from streamsql.results import Leave, Live, Result, Rows, RowStream, Started, discard
from streamsql.runtime.engine import row_fetch
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Events, SparkLost
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.folder import Workspace, holder
from streamsql.runtime.workspace.store import Store
from streamsql.server import client_calls as calls_module
from streamsql.server import listener as listener_module
from streamsql.server.client import RemoteSession
from streamsql.server.client_calls import Calls
from streamsql.server.encoding import PROTOCOL, TYPE_KEY, Message, decode
from streamsql.server.listener import Server
from streamsql.server.running_servers import register, servers, status_of
from streamsql.server.socket_frames import MAGIC, SOCKET, Disconnected, FrameSocket, connect, listen

ROOMS = ("streamsql/server/", "streamsql/cli/", "streamsql/shell/")

DEFINED = """
CREATE STREAM words (word STRING) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
INSERT INTO words VALUES ('cat'), ('dog'), ('cat');
AWAIT QUERY counts IDLE;
"""


class Host:
    """A server in this process. said: its log."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.workspace = Workspace(folder)
        self.folder = folder
        self.said: list[str] = []
        config = Config(
            Settings.make("local[2]", {}), self.workspace.run, folder / "log", folder, store=Store(folder)
        )
        self.session = Session(config, spark)
        self.server = Server(self.session, folder, self.said.append)
        self.clients: list[RemoteSession] = []

    def attach(self, *, interactive: bool = False, read_only: bool = False) -> RemoteSession:
        preferences = Preferences()
        hello = {"interactive": interactive, "read_only": read_only, "preferences": preferences.layers()}
        self.clients.append(RemoteSession(Calls(self.folder, hello), preferences))
        return self.clients[-1]

    def raw(self) -> FrameSocket:
        """A connection that has not greeted."""
        return FrameSocket(connect(self.folder))

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.session.close(0)
        self.server.close()
        self.workspace.close()


def run(session: Any, script: str, cancel: CancelToken | None = None) -> Result:
    """The result of the last statement of a script."""
    results = [
        session.execute(parse(w, session.variables), cancel) for w in split_script(Source("-e", script))
    ]
    last: Result = results[-1]
    return last


def rows_of(session: Any, script: str) -> list[tuple[Any, ...]]:
    result = run(session, script)
    assert isinstance(result, (Rows, RowStream)), result
    return [tuple(row) for row in result.whole().rows]


@pytest.fixture(scope="module")
def host(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    state = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    # A path that is too long for the address of a socket.
    folder = tmp_path_factory.mktemp("workspace") / ("long" * 30)
    running = Host(folder, spark)
    run(running.session, DEFINED)
    yield running
    running.close()
    drop_tables(spark)
    os.environ.pop("XDG_STATE_HOME")
    if state is not None:
        os.environ["XDG_STATE_HOME"] = state


VALUES = (
    1, -(1 << 63), 1 << 70, 1.5, float("inf"), True, None, "x", "\ud800", "", b"\x00\xff", Decimal("1.50"),
    dt.date(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.timedelta(days=-1, microseconds=1),
    [1, [None]], {"a": Decimal("1"), "b": {"c": [dt.date(2024, 5, 1)]}}, {1: "x"},
)  # fmt: skip


@pytest.mark.parametrize("count", [3, 3_000], ids=["in the header", "as Arrow"])
def test_rows_come_as_they_were_sent(count: int) -> None:
    mixed = [tuple(VALUES[(n + k) % len(VALUES)] for k in range(3)) for n in range(count)]
    same = [(value,) * count for value in VALUES]
    for rows in (mixed, list(zip(*same, strict=True)), []):
        sent = Message(Rows(columns=("a", "b", "c"), rows=rows, seconds=0.5))
        received = decode(sent.value, sent.body)
        assert (received.columns, received.seconds) == (("a", "b", "c"), 0.5)
        assert [tuple(row) for row in received.rows] == rows
        assert repr([tuple(row) for row in received.rows]) == repr(rows)  # of the same types


def test_a_client_gets_what_the_session_gives(host: Host) -> None:
    client = host.attach()
    for query in (
        "SELECT * FROM counts ORDER BY word",
        "SELECT array(1, 2) AS a, struct(1.50BD AS k, DATE'2024-05-01' AS d) AS s, map('x', null) AS m, "
        "TIMESTAMP'2024-05-01 12:00:00' AS t, X'01' AS b, 'ü' AS u, INTERVAL 1 DAY AS i",
        "SELECT id, if(id % 7 = 0, null, cast(id AS STRING)) AS s FROM range(25000)",
    ):
        assert rows_of(client, query) == rows_of(host.session, query)
    stream = run(client, "SELECT id FROM range(1000000)")
    assert isinstance(stream, RowStream)  # the rest stays in the server until it is asked for
    discard(stream)
    with pytest.raises(StreamsqlError) as caught:
        run(client, "SELECT 1;\nSELECT nothing FROM counts;")
    assert caught.value.code == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert caught.value.span is not None and caught.value.span.start == len("SELECT 1;\nSELECT ")
    assert notes_of(run(client, "SHOW JOBS;")) == ("read as SHOW QUERIES;",)


def test_settings_and_variables_are_each_clients_own(host: Host) -> None:
    one, other = host.attach(), host.attach()
    key = "spark.sql.session.timeZone"
    run(one, f"SET {key} = Asia/Tokyo; SET streamsql.null = none; DEFINE day = '1';")
    assert rows_of(one, f"SET {key};")[0][1] == "Asia/Tokyo"
    assert rows_of(one, "SELECT current_timezone();") == [("Asia/Tokyo",)]
    assert one.preferences["null"] == "none"
    assert one.variables["day"] == "1"
    assert rows_of(other, "SELECT current_timezone();") == rows_of(host.session, "SELECT current_timezone();")
    assert (other.preferences["null"], "day" in other.variables) == ("NULL", False)
    run(one, "CREATE TEMPORARY VIEW of_one AS SELECT 1 AS a;")
    assert rows_of(other, "SELECT * FROM of_one;") == [(1,)]  # definitions are the server's
    assert key not in host.session.parts.settings.changed
    run(one, f"RESET {key}; DROP VIEW of_one;")
    assert rows_of(one, "SELECT current_timezone();") == rows_of(other, "SELECT current_timezone();")


def test_a_query_starts_with_its_clients_settings_and_no_other_client_sees_them(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other client reads while the first one's query is being started."""
    one, other, seen = host.attach(), host.attach(), list[Any]()
    begin = Queries.launch

    def launch(*arguments: Any) -> Any:
        seen.append(rows_of(other, "SELECT current_timezone(), hour(TIMESTAMP'2024-05-01 00:00:00Z');"))
        return begin(*arguments)

    monkeypatch.setattr(Queries, "launch", launch)
    run(one, "SET spark.sql.session.timeZone = Asia/Tokyo;")
    run(one, "CREATE TEMPORARY VIEW noon AS SELECT hour(TIMESTAMP'2024-05-01 00:00:00Z') AS hour;")
    started = run(one, "CREATE LIVE TABLE hours AS SELECT word, hour(timestamp_seconds(0)) AS h FROM words;")
    assert notes_of(started)[-1] == (
        "hours runs with spark.sql.session.timeZone = Asia/Tokyo of this client; a restart of the server starts "
        "it with its own settings"
    )
    zone = rows_of(host.session, "SELECT current_timezone();")[0][0]
    assert seen == [rows_of(other, f"SELECT '{zone}', hour(TIMESTAMP'2024-05-01 00:00:00Z');")]
    run(one, "AWAIT QUERY hours IDLE;")
    assert {h for _, h in rows_of(other, "SELECT * FROM hours;")} == {9}
    # The view is shared, and keeps the settings with which it was created, as Spark's views do.
    assert rows_of(other, "SELECT * FROM noon;") == [(9,)]
    assert host.session.parts.queries.all["hours"].status() == "running"
    run(other, "CREATE LIVE TABLE over_hours AS SELECT max(h) AS h FROM hours; AWAIT QUERY over_hours IDLE;")
    [note] = notes_of(run(one, "SET spark.sql.ansi.enabled = false;"))
    assert "hours, over_hours still run with spark.sql.ansi.enabled as it was before" in note
    run(other, "DROP QUERY over_hours; DROP QUERY hours; DROP VIEW noon;")


@pytest.mark.slow
def test_why_is_about_the_clients_own_query_and_a_script_is_told_of_its_restarts(
    host: Host, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    one, other, lines = host.attach(), host.attach(), list[str]()
    run(one, "CREATE LIVE TABLE mine AS SELECT word FROM words WHERE word = 'none';")
    (tmp_path / "failing.py").write_text("def write(batch, n):\n    raise RuntimeError('the disk is away')\n")
    other.on_news(lines.append, restarts_only=True)
    other.set_folder(str(tmp_path))
    started = run(
        other,
        "CREATE SINK away USING foreach_batch OPTIONS (function 'failing.write');"
        "INSERT INTO away RESTART 1 TIMES EVERY '100 milliseconds' SELECT word FROM words;",
    )
    assert isinstance(started, Started)
    other.place(started, Source("-e", ""), Span(0, 0))
    assert "mine" in str(run(one, "WHY;"))
    assert "away" in str(run(other, "WHY;"))
    eventually(lambda: any("the disk is away; it restarts at" in line for line in lines))
    run(other, "DROP QUERY away; DROP QUERY mine;")


def test_one_watches_and_the_other_stops(host: Host, eventually: Callable[..., None]) -> None:
    one, other = host.attach(interactive=True), host.attach(interactive=True)
    lines: list[str] = []
    one.open()
    one.on_news(lines.append)
    watched = run(one, "WATCH counts;")
    assert isinstance(watched, Live)
    assert sorted(watched.take(10, 0, None).rows) == [("cat", 2), ("dog", 1)]
    assert sorted(watched.take(10, 0, ("n", True)).rows, reverse=True)[0] == ("dog", 1)
    run(other, "INSERT INTO words VALUES ('cow'); AWAIT QUERY counts IDLE;")
    assert ("cow", 1) in watched.take(10, 0, None).rows
    assert watched.status().status == "running"
    run(other, "STOP QUERY counts;")
    assert watched.status().status == "stopped"
    watched.close()
    run(other, "START QUERY counts;")
    eventually(lambda: one.summary().running == 1 and "counts" in one.catalog.sinks)
    assert one.columns("counts") == [("word", "string"), ("n", "bigint")]
    assert one.query_state("counts") == "running query"


def test_a_client_that_vanishes_takes_its_select_only(host: Host, eventually: Callable[..., None]) -> None:
    client = host.attach(interactive=True)
    shown = run(client, "SELECT word FROM words;")
    assert isinstance(shown, Live)
    before = set(host.session.parts.queries.all)
    assert len(before) == 2
    assert client.calls._frames is not None
    client.calls._frames.connection.shutdown(socket.SHUT_RDWR)  # as when the client is killed
    eventually(lambda: set(host.session.parts.queries.all) == {"counts"})
    assert host.session.parts.queries.all["counts"].status() == "running"


def test_cancel_ends_the_statement_only(host: Host, eventually: Callable[..., None]) -> None:
    client, cancel, caught = host.attach(), CancelToken(), list[BaseException]()

    def work() -> None:
        try:
            run(client, "SELECT count(*) FROM range(1000000000000) WHERE rand() < 0.1;", cancel)
        except StreamsqlError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    eventually(lambda: client.activity(cancel).jobs is not None)
    cancel.cancel()
    thread.join(30)
    assert isinstance(caught[0], Cancelled)
    assert rows_of(client, "SELECT 1;") == [(1,)]
    assert host.session.parts.queries.all["counts"].status() == "running"


@pytest.mark.slow
def test_two_clients_insert_into_one_stream_at_the_same_time(host: Host) -> None:
    clients, errors = [host.attach() for _ in range(3)], list[Exception]()
    run(clients[0], "CREATE STREAM shared (n INT) USING values;")

    def insert(number: int) -> None:
        try:
            script = "".join(f"INSERT INTO shared VALUES ({10 * number + k});" for k in range(3))
            run(clients[number], script)
        except StreamsqlError as error:
            errors.append(error)

    threads = [threading.Thread(target=insert, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    files = host.session.parts.places.values("shared")
    rows = rows_of(host.session, f"SELECT n FROM parquet.`{files}` ORDER BY n;")
    assert rows == [(10 * n + k,) for n in range(3) for k in range(3)]
    run(clients[0], "DROP STREAM shared;")


def test_a_statement_that_is_cancelled_before_its_job_begins_ends(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a client is killed at that moment."""
    cancel, collect = CancelToken(), row_fetch.collect

    def cancelled(frame: Any) -> Any:
        cancel.cancel()
        for thread in threading.enumerate():
            if thread.name == "cancel":
                thread.join()
        return collect(frame)

    monkeypatch.setattr(row_fetch, "collect", cancelled)
    with pytest.raises(Cancelled):
        run(host.session, "SELECT count(*) FROM range(1000000000000) WHERE rand() < 0.1;", cancel)


def test_what_a_client_may_not(host: Host) -> None:
    reader = host.attach(read_only=True)
    for changing in ("DROP STREAM words;", "CREATE TEMPORARY VIEW v AS SELECT 1;", "DROP TABLE IF EXISTS t;"):
        with pytest.raises(StreamsqlError) as caught:
            run(reader, f"SHOW STREAMS; {changing}")
        assert (caught.value.code, caught.value.span and caught.value.span.start) == ("READ_ONLY", None)
    run(reader, "DESCRIBE FUNCTION sum; SHOW FUNCTIONS LIKE 'sum'; EXPLAIN SELECT 1; VALUES (1);")
    for session in (host.attach(), host.session):
        with pytest.raises(StreamsqlError) as caught:
            run(session, "DETACH;")
        assert caught.value.code == "NOT_DETACHED"


def test_the_server_tells_its_status(host: Host) -> None:
    shown = dict(rows_of(host.attach(), "SHOW SERVER;"))
    assert (shown["process"], shown["workspace"], shown["queries"]) == (
        str(os.getpid()), str(host.folder), "1 running",
    )  # fmt: skip
    status = status_of(host.folder)
    assert status is not None and status["queries"] == {"counts": "running"}
    assert [s.workspace for s in servers()] == [host.folder.resolve()]
    assert (host.folder / SOCKET).stat().st_mode & 0o777 == 0o600


GREETING = {"hello": "streamsql", "protocol": PROTOCOL, "version": __version__}


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "this is no frame of streamsql"),
        (struct.pack(">4sII", MAGIC, 2, 2**31) + b"{}", "a frame of 2147483648 bytes is too large"),
        (struct.pack(">4sII", MAGIC, 2, 0) + b"[]", "no JSON object"),
        (struct.pack(">4sII", MAGIC, 9, 0) + b'{"hello":', "no JSON"),
        (struct.pack(">4sII", MAGIC, 2, 0) + b"{}", "no greeting"),
        (MAGIC, "the connection ended within a frame"),
    ],
    ids=["HTTP", "2 GB", "a list", "bad JSON", "no greeting", "half a frame"],
)
def test_what_is_no_client_is_refused_in_words(
    host: Host, sent: bytes, word: str, eventually: Callable[..., None]
) -> None:
    frames = host.raw()
    frames.connection.sendall(sent)
    frames.connection.shutdown(socket.SHUT_WR)
    answer, _ = frames.receive(10)
    assert answer["error"]["code"] == "BAD_FRAME"
    assert word in answer["error"]["message"]
    eventually(lambda: any(word in line for line in host.said))
    frames.close()
    assert rows_of(host.attach(), "SELECT 1;") == [(1,)]


def test_half_a_frame_of_a_client_that_stays_has_a_limit(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "HELLO", 0.1)
    frames, silent = host.raw(), host.raw()
    frames.connection.sendall(struct.pack(">4sII", MAGIC, 99, 0) + b'{"hello":')
    for client in (frames, silent):
        answer, _ = client.receive(10)
        assert "a frame has not come completely within 0.1 s" in answer["error"]["message"]
        with pytest.raises(Disconnected):
            client.receive(10)
        client.close()


OTHER_USER = """
import os, sys
import socket
from streamsql.server.socket_frames import FrameSocket
os.chdir(sys.argv[1])  # while nobody may not walk there
os.setgid(65534); os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect("server.sock")
    print(FrameSocket(connection).receive(5)[0]["error"]["message"])
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.usefixtures("processes")
def test_another_user_is_refused(host: Host) -> None:
    """By the socket's mode, and, where somebody has changed that, by the kernel's word about the other side."""

    def ask() -> str:
        command = [sys.executable, "-c", OTHER_USER, str(host.folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

    assert ask() == "Permission denied\n"
    try:
        host.folder.chmod(0o711)
        (host.folder / SOCKET).chmod(0o666)
        assert "user 65534" in (answer := ask()) and "is not the user of the server" in answer
    finally:
        (host.folder / SOCKET).chmod(0o600)
        host.folder.chmod(0o700)


def test_after_a_machine_restart_another_process_may_have_the_number_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    listen(tmp_path).close()  # a stale socket; the number is that of this process
    file = register(tmp_path, "2026-01-01 00:00:00")
    assert file.exists()
    assert not list(servers()) and not file.exists()


def test_calls_that_are_none_cut_a_client_off(host: Host) -> None:
    frames = host.raw()
    frames.send({**GREETING, "preferences": {}})
    assert frames.receive(10)[0]["protocol"] == PROTOCOL
    frames.send({"id": 7, "call": "os.system", "args": []})
    assert frames.receive(10)[0]["error"]["code"] == "BAD_FRAME"
    frames.close()


DEEP = "[" * 900 + "]" * 900
ODD = {
    "a list for a mark": b'{"id": 7, "call": "execute", "args": [{"f": [1]}]}',
    "an infinite number of a call": b'{"id": Infinity, "call": "execute", "args": []}',
    "900 levels": b'{"id": 7, "call": "execute", "args": ' + DEEP.encode() + b"}",
    "a decimal that is none": b'{"id": 7, "call": "execute", "args": [{"MARK": "decimal", "v": "one"}]}'.replace(
        b"MARK", TYPE_KEY.encode()
    ),
}


@pytest.mark.parametrize("header", ODD.values(), ids=ODD)
def test_a_call_with_odd_values_is_answered(host: Host, header: bytes) -> None:
    frames = host.raw()
    frames.send({**GREETING, "preferences": {}})
    assert frames.receive(10)[0]["protocol"] == PROTOCOL
    frames.connection.sendall(struct.pack(">4sII", MAGIC, len(header), 0) + header)
    assert "error" in frames.receive(10)[0]
    frames.close()
    assert rows_of(host.attach(), "SELECT 1;") == [(1,)]


@pytest.mark.parametrize("preferences", [[1], 7, "x", {"session": 3}, {"session": [1]}])
def test_a_greeting_with_odd_values_is_refused_in_words(host: Host, preferences: Any) -> None:
    frames = host.raw()
    frames.send({**GREETING, "preferences": preferences})
    answer, _ = frames.receive(10)
    assert answer["error"]["code"] == "BAD_FRAME"
    frames.close()


def test_fifty_clients_attach_and_vanish(host: Host, eventually: Callable[..., None]) -> None:
    for number in range(50):
        frames = host.raw()
        if number % 2:
            frames.send({**GREETING, "preferences": {}})
        frames.close()
    eventually(lambda: (status_of(host.folder) or {}).get("clients") == len(host.server._clients))
    eventually(lambda: len(host.server._clients) <= len(host.clients))
    assert rows_of(host.attach(), "SELECT 1;") == [(1,)]


def test_another_version_is_told_how_to_restart(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "__version__", "9.9")
    with pytest.raises(UsageFault) as caught:
        host.attach()
    assert (caught.value.code, caught.value.detail) == (
        "SERVER_VERSION", f"it is {__version__}, this is 9.9",
    )  # fmt: skip
    assert f"kill -TERM {os.getpid()}" in caught.value.hint
    monkeypatch.undo()
    monkeypatch.setattr(calls_module, "PROTOCOL", "other fields")
    with pytest.raises(UsageFault) as caught:
        host.attach()
    assert caught.value.detail == f"both are {__version__}, but of different builds"


def test_a_server_that_ends_leaves_no_client_waiting(spark: Any, tmp_path: Path) -> None:
    host = Host(tmp_path / "w", spark)
    client = host.attach()
    number = client.calls.begin("news", [False])  # not answered while nothing happens
    writes = client.calls.begin("news", [False], reads=False)
    host.server.close()
    for call, detail in (
        (number, ""),
        (writes, "whether a statement that was running took effect is not known"),
    ):
        with pytest.raises(StreamsqlError) as caught:
            client.calls.answer(call)
        assert (caught.value.code, caught.value.detail) == ("SERVER_LOST", detail)
    with pytest.raises(StreamsqlError, match="has ended") as caught:
        run(client, "SELECT 1;")
    assert ("streamsql serve -w" in caught.value.hint, caught.value.detail) == (
        True,
        "the statement was not sent",
    )
    assert isinstance(run(client, "EXIT;"), Leave)
    again = Server(host.session, host.folder, host.said.append)
    host.server = again
    assert isinstance(run(client, "SHOW SERVER;"), Rows)  # attached again
    host.close()


def test_a_query_that_needs_more_memory_than_spark_has_is_not_resumed_for_ever(tmp_path: Path) -> None:
    """Else the server would only start Spark again and again, and the other query would not go on."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()  # a micro-batch is under way

    def run_of(name: str, *reports: object) -> Any:
        plan = SimpleNamespace(checkpoint=str(tmp_path))
        return SimpleNamespace(
            name=name, plan=plan, ended_with_spark=True, reports=SimpleNamespace(last=reports)
        )

    events, ended, lines, resumed = Events(), threading.Event(), list[str](), list[list[str]]()
    runs = {"big": run_of("big"), "small": run_of("small", {})}
    parts = SimpleNamespace(events=events, queries=SimpleNamespace(all=runs))
    catalog = SimpleNamespace(named=lambda which: list(runs.values()))
    session: Any = SimpleNamespace(parts=parts, catalog=catalog)
    server: Any = SimpleNamespace(ended=ended)
    loop = HostingLoop(session, server, SimpleNamespace(warn=lines.append))  # type: ignore[arg-type]
    loop._recover = resumed.append  # type: ignore[method-assign]
    for _ in range(3):
        assert not lines
        events.publish(SparkLost("its memory was full", memory=True))
    assert lines[0].startswith("big is not resumed: Spark's memory was full 3 times while it ran.")
    for thread in threading.enumerate():
        if thread.name == "recover":
            thread.join()
    assert sorted(resumed) == [["big", "small"], ["big", "small"], ["small"]]


IN_BACKGROUND = """
import sys
from pathlib import Path
from streamsql.cli.serve_command import _Background
background = _Background(Path(sys.argv[1]))
background.begin()
print("error: there is no table nowhere", flush=True)
background.begun(int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "word"),
    [(1, "error: there is no table nowhere\n"), (0, "it goes on in the background: streamsql -w")],
)
@pytest.mark.usefixtures("processes")
def test_a_server_in_the_background_tells_how_its_scripts_end(tmp_path: Path, code: int, word: str) -> None:
    command = [sys.executable, "-c", IN_BACKGROUND, str(tmp_path), str(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.startswith(word)) == (code, True), done.stderr


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    listen(tmp_path).close()
    assert (tmp_path / SOCKET).is_socket()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path)
    again = listen(tmp_path)
    connect(tmp_path).close()
    again.close()


@pytest.mark.usefixtures("processes")
def test_attaching_imports_no_spark(host: Host) -> None:
    """In a process of its own: the client of a statement with a few rows loads neither Spark nor Arrow."""
    code = (
        "import sys; from streamsql.cli.main import main; code = main(sys.argv[1:]); "
        "print(sorted({'pyspark', 'py4j', 'pandas', 'pyarrow', 'prompt_toolkit'} & set(sys.modules)), code)"
    )
    words = ["-w", str(host.folder), "--format", "csv", "-e", "SELECT n FROM counts WHERE word = 'dog';"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("n\n1\n[] 0\n", f"(1 row, {done.stderr[8:12]} s)\n")


@pytest.mark.usefixtures("processes")
def test_queries_outlive_console_and_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """A console detaches; its server is killed, started again with the same script, and told to end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, script = tmp_path / "w", tmp_path / "s.sql"
    script.write_text("SELECT nothing FROM nowhere;" + DEFINED.partition("INSERT")[0])

    def ask(sql: str) -> str:
        return run_process("-w", str(folder), "--format", "csv", "-e", sql).out

    def holder_process() -> int:
        return int(json.loads((folder / "holder.json").read_text())["pid"])

    try:
        console = Terminal(tmp_path, "-w", "w")
        try:
            console.prompt()
            console.run(" ".join(DEFINED.split()), "^idle$")
            process = holder_process()
            began = time.monotonic()
            console.type("DETACH;\r")
            assert console.exit_code() == 0  # the terminal is free
            assert time.monotonic() - began < 10  # two seconds on a quiet machine
        finally:
            console.kill()
        assert holder_process() == process  # the same process goes on
        assert ask("SELECT n FROM counts WHERE word = 'cat';") == "n\n2\n"
        os.kill(process, signal.SIGKILL)
        eventually(lambda: not holder(folder))
        status = tmp_path / "status.json"
        flags = ("--detach", "--on-error", "continue", "--status-file", str(status))
        started = run_process("serve", "-w", str(folder), *flags, str(script))
        assert started.code == 0
        assert "attaches, STOP SERVER; ends it" in started.err
        assert (
            ask("INSERT INTO words VALUES ('cat'); AWAIT QUERY counts IDLE; SELECT sum(n) AS n FROM counts;")
            == "n\n4\n"
        )
        again = run_process("serve", "-w", str(folder))
        assert (again.code, "holds" in again.err) == (2, True)
        os.kill(holder_process(), signal.SIGTERM)
        eventually(lambda: json.loads(status.read_text())["status"] == "ended" and not holder(folder))
        ended = json.loads(status.read_text())
        assert (ended["spark"], ended["queries"]) == ("Spark has ended", {"counts": "stopped"})
        log = (folder / "server.log").read_text()
        when = r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d "
        assert re.search(when + r".*there is no stream, table or view nowhere$", log, re.MULTILINE)
        assert re.search(when + r".*counts: defined already", log, re.MULTILINE)
    finally:
        with suppress(OSError, ValueError):
            os.kill(holder_process(), signal.SIGKILL)
