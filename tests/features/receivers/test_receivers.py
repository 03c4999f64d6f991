"""http, sse and websocket, with real clients and servers: from the wire to the rows of a live table."""

from __future__ import annotations

import asyncio
import gzip
import json
import shlex
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from conftest import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from test_reopened import Open, opened  # noqa: F401 - the fixture
from websockets.sync.server import Server, ServerConnection, serve

from streamsql.errors import InputFault, RuleFault, StreamsqlError
from streamsql.results import Done, InfoRows, Why

ROOMS = ("streamsql/features/receivers/", "streamsql/plan/lowering/")
TOKEN = "0123456789abcdef"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def base() -> str:
    """HOST:PORT of an address that is free."""
    return f"127.0.0.1:{free_port()}"


def clicks(base: str, more: str = "", rest: str = "") -> str:
    options = f"listen '{base}'{more}"
    return f"CREATE STREAM clicks (user STRING, n INT) USING http OPTIONS ({options}) {rest};"


COUNTS = "CREATE LIVE TABLE counts AS SELECT user, sum(n) AS total FROM clicks GROUP BY user;"
SHOWN = "AWAIT QUERY counts IDLE; SELECT * FROM counts ORDER BY user;"


def described(console: Any, stream: str) -> dict[str, str]:
    shown = console.run(f"DESCRIBE STREAM {stream};")[-1]
    assert isinstance(shown, InfoRows)
    return {row[0]: str(row[1]) for row in shown.rows}


def refused(console: Console, statement: str) -> StreamsqlError:
    with pytest.raises(StreamsqlError) as raised:
        console.run(statement)
    return raised.value


def test_what_is_posted_becomes_rows(console: Console, base: str) -> None:
    console.run(clicks(base) + COUNTS)
    url = f"http://{base}/clicks"
    assert httpx.post(url, content=b'{"user": "ann", "n": 1}').json() == {"received": 1}
    assert httpx.post(url, json=[{"user": "ann", "n": 2}, {"user": "bob", "n": 3}]).json() == {"received": 2}
    lines = b'{"user": "cy", "n": 4}\n{"user": "cy", "n": 5}\n'
    packed = httpx.post(url, content=gzip.compress(lines), headers={"Content-Encoding": "gzip"})
    assert packed.json() == {"received": 2}
    assert console.rows(SHOWN) == [("ann", 3), ("bob", 3), ("cy", 9)]
    verified = console.run("VERIFY LIVE TABLE counts;")[-1]
    assert isinstance(verified, Done) and verified.message.startswith("counts is verified: 3 rows")
    rows = console.rows("SELECT user, _received > now() - INTERVAL 1 HOUR FROM clicks ORDER BY n LIMIT 1;")
    assert rows == [("ann", True)]
    facts = described(console, "clicks")
    assert facts["receives at"] == f"{url} (POST)"
    assert facts["received"].startswith("5 since the console has started, the newest 2")


def test_nothing_received(console: Console, base: str, tmp_path: Path) -> None:
    console.run(clicks(base) + COUNTS)
    assert console.rows("SELECT * FROM clicks;") == console.rows("SELECT * FROM clicks ORDER BY n;") == []
    why = console.run("WHY QUERY counts;")[-1]
    assert isinstance(why, Why) and why.code == "NO_DATA"
    assert why.verdict == f"no data: clicks has received no message yet (http://{base}/clicks)"
    console.run("AWAIT QUERY counts IDLE; VERIFY LIVE TABLE counts;")
    assert console.rows("SELECT payload FROM `clicks$malformed`;") == []
    fault = refused(console, f"EXPORT QUERY counts TO '{tmp_path}/job';")
    assert fault.code == "CONNECTOR_NOT_SUPPORTED" and fault.span and not (tmp_path / "job").exists()
    fault = refused(console, f"PREVIEW USING http OPTIONS (listen '{base}');")
    assert fault.code == "CONNECTOR_NOT_SUPPORTED" and fault.span
    assert isinstance(console.run("WHY STREAM clicks;")[-1], Why)


def test_a_request_that_is_refused_leaves_nothing(console: Console, base: str) -> None:
    console.run(clicks(base, f", token '{TOKEN}', maxBodyBytes '100'"))
    url, login = f"http://{base}/clicks", {"Authorization": f"Bearer {TOKEN}"}
    cases: list[tuple[int, dict[str, Any]]] = [
        (400, {"content": b'{"user": '}),
        (400, {"content": b""}),
        (400, {"content": b"not gzip", "headers": login | {"Content-Encoding": "gzip"}}),
        (400, {"content": gzip.compress(b"{}")[:-9], "headers": login | {"Content-Encoding": "gzip"}}),
        (413, {"content": b'"' + b"x" * 100 + b'"'}),
        (413, {"content": gzip.compress(b'"' + b"x" * 10_000_000 + b'"'),
               "headers": login | {"Content-Encoding": "gzip"}}),
        (415, {"content": b"{}", "headers": login | {"Content-Encoding": "br"}}),
        (401, {"content": b"{}", "headers": {}}),
        (401, {"content": b"{}", "headers": {"Authorization": f"Bearer {TOKEN}x"}}),
    ]  # fmt: skip
    for status, request in cases:
        answer = httpx.post(url, **({"headers": login} | request))
        assert answer.status_code == status, (request, answer.text)
        assert answer.json()["error"] and TOKEN not in answer.text
    assert httpx.get(url, headers=login).status_code == 405
    assert httpx.post(f"http://{base}/other", headers=login, content=b"{}").status_code == 404
    assert httpx.post(url, headers=login, content=b"{}").json() == {"received": 1}
    assert described(console, "clicks")["received"].startswith("1 since")


def test_a_sender_that_dies_in_the_middle_leaves_nothing(
    console: Console, base: str, eventually: Callable[..., None]
) -> None:
    console.run(clicks(base))
    host, _, port = base.partition(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b'POST /clicks HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n{"user": "half"}')
    with socket.create_connection((host, int(port))) as garbage:
        garbage.sendall(b"\x00\xffnot http\r\n\r\n")
        assert b"400" in garbage.recv(1000)
    assert httpx.post(f"http://{base}/clicks", content=b'{"user": "whole"}').status_code == 200
    assert console.rows("SELECT user FROM clicks;") == [("whole",)]


def test_fifty_senders_at_once(console: Console, base: str) -> None:
    console.run(clicks(base) + COUNTS)

    def send(number: int) -> None:
        with httpx.Client(timeout=60) as client:
            for _ in range(10):
                answer = client.post(f"http://{base}/clicks", json={"user": f"u{number % 5}", "n": 1})
                assert answer.status_code == 200

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(send, range(50)))
    assert console.rows(SHOWN) == [(f"u{n}", 100) for n in range(5)]


def test_streams_share_an_address_and_not_a_path(console: Console, base: str) -> None:
    console.run(clicks(base) + clicks(base, ", path '/v1/more'").replace("clicks", "more", 1))
    assert httpx.post(f"http://{base}/v1/more", content=b"{}").status_code == 200
    taken = refused(console, clicks(base, ", path '/v1/more'").replace("clicks", "other", 1))
    assert isinstance(taken, RuleFault) and taken.code == "IN_USE" and taken.span
    assert str(taken) == f"the stream more receives at http://{base}/v1/more"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        used = f"127.0.0.1:{listener.getsockname()[1]}"
        fault = refused(console, clicks(used).replace("clicks", "other", 1))
        assert isinstance(fault, InputFault) and fault.code == "BAD_ADDRESS" and fault.span
        assert str(fault) == f"the console cannot listen on {used}: address already in use"
    console.run("DROP STREAM more;")
    assert httpx.post(f"http://{base}/v1/more", content=b"{}").status_code == 404
    assert httpx.post(f"http://{base}/clicks", content=b"{}").status_code == 200
    console.run("DROP STREAM clicks;")
    with pytest.raises(httpx.ConnectError):
        httpx.post(f"http://{base}/clicks", content=b"{}")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("listen '0.0.0.0:8090'", "MISSING_OPTION"),
        ("listen '0.0.0.0:8090', token 'short'", "BAD_OPTION_VALUE"),
        ("listen '127.0.0.1:8090', token '${env:NO_SUCH_VARIABLE}'", "BAD_OPTION_VALUE"),
        ("listen '8090'", "BAD_OPTION_VALUE"),
        ("listen '127.0.0.1:0'", "BAD_OPTION_VALUE"),
        ("listen '127.0.0.1:8090', path 'clicks'", "BAD_OPTION_VALUE"),
        ("listen '127.0.0.1:8090', certificate 'c.pem'", "MISSING_OPTION"),
        ("path '/x'", "MISSING_OPTION"),
        ("listen '127.0.0.1:8090', retention 'ever'", "BAD_OPTION_VALUE"),
        ("listen '127.0.0.1:8090', avroSchemaFile 'x.avsc'", "OPTION_CONFLICT"),
    ],
)
def test_options_that_cannot_be_used(console: Console, options: str, code: str) -> None:
    fault = refused(console, f"CREATE STREAM clicks (n INT) USING http OPTIONS ({options});")
    assert fault.code == code and fault.span and console.session.catalog.streams == {}


def test_tls(console: Console, processes: None, tmp_path: Path, base: str) -> None:
    subprocess.run(
        shlex.split(
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem "
            "-out cert.pem -addext subjectAltName=IP:127.0.0.1"
        ),
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    files = f", certificate '{tmp_path}/cert.pem', privateKeyFile '{tmp_path}/key.pem'"
    fault = refused(console, clicks(base, files.replace("cert.pem", "key.pem")))
    assert fault.code == "FILE_NOT_READ" and fault.span
    console.run(clicks(base, files))
    trusted = ssl.create_default_context(cafile=f"{tmp_path}/cert.pem")
    wrong = clicks(base, files.replace("key.pem", "cert.pem")).replace("CREATE", "CREATE OR REPLACE")
    assert refused(console, wrong).code == "FILE_NOT_READ"  # and what runs goes on
    assert httpx.post(f"https://{base}/clicks", content=b"{}", verify=trusted).json() == {"received": 1}
    console.run(clicks(base).replace("CREATE STREAM", "CREATE OR REPLACE STREAM"))
    assert httpx.post(f"http://{base}/clicks", content=b"{}").status_code == 200


def test_messages_outlive_the_console(opened: Open, base: str) -> None:  # noqa: F811
    first = opened()
    first.run(clicks(base) + COUNTS)
    httpx.post(f"http://{base}/clicks", content=b'{"user": "ann", "n": 1}')
    assert first.rows(SHOWN) == [("ann", 1)]
    second = opened()
    assert httpx.post(f"http://{base}/clicks", content=b'{"user": "bob", "n": 2}').status_code == 200
    second.run("START QUERY counts;")
    assert second.rows(SHOWN) == [("ann", 1), ("bob", 2)]
    second.run("STOP QUERY counts; START QUERY counts FROM BEGINNING;")
    assert second.rows(SHOWN) == [("ann", 1), ("bob", 2)]
    # Another definition goes on with the same messages; a dropped stream takes them along.
    second.run("DROP LIVE TABLE counts;")
    second.run(clicks(base, rest="COMMENT 'x'").replace("CREATE STREAM", "CREATE OR REPLACE STREAM"))
    assert len(second.rows("SELECT * FROM clicks;")) == 2
    second.run("DROP STREAM clicks;" + clicks(base))
    assert second.rows("SELECT * FROM clicks;") == []


def test_a_workspace_opens_though_its_address_is_used(
    opened: Open,  # noqa: F811
    base: str,
) -> None:
    opened().run(clicks(base) + COUNTS)
    opened(started=False)  # receives without Spark
    assert httpx.post(f"http://{base}/clicks", content=b'{"user": "ann", "n": 1}').status_code == 200
    opened().run("STOP QUERY ALL;")
    blocked = opened(started=False)
    blocked.session.close()
    with socket.create_server(("127.0.0.1", int(base.partition(":")[2]))):
        again = opened()
        assert "cannot listen" in described(again, "clicks")["not received"]
        again.run("START QUERY counts;")
        why = again.run("WHY QUERY counts;")[-1]
        assert isinstance(why, Why) and why.code == "NOT_RECEIVED", why
        assert why.verdict.startswith("clicks receives nothing: the console cannot listen on")
        assert again.rows(SHOWN) == [("ann", 1)]
    assert described(again, "clicks")["receives at"] == f"http://{base}/clicks (POST)"


def test_late_and_malformed_messages(console: Console, base: str) -> None:
    console.run(
        f"""CREATE STREAM clicks (user STRING, at TIMESTAMP) USING http OPTIONS (listen '{base}')
          ON MALFORMED SKIP WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
        CREATE LIVE TABLE w AS SELECT window.start AS s, count(*) AS n FROM clicks
          GROUP BY window(at, '1 minute');"""
    )

    def send(*messages: dict[str, Any]) -> None:
        assert httpx.post(f"http://{base}/clicks", json=list(messages)).status_code == 200
        console.run("AWAIT QUERY w IDLE;")

    send({"user": "a", "at": "2024-01-01 10:00:00"}, {"user": "b", "at": "never"})
    send({"user": "b", "at": "2024-01-01 12:00:00"})
    send({"user": "late", "at": "2024-01-01 10:00:00"})
    assert console.rows("SELECT user FROM LATE ROWS OF QUERY w;") == [("late",)]
    assert [row[0] for row in console.rows("SELECT payload FROM `clicks$malformed`;")] == [
        '{"user":"b","at":"never"}'
    ]
    with pytest.raises(InputFault) as raised:
        console.run("VERIFY LIVE TABLE w;")
    assert "2 of these by 1 late row" in raised.value.detail


def test_given_takes_the_place_of_messages(processes: None, tmp_path: Path) -> None:
    script = tmp_path / "clicks.test.sql"
    script.write_text(
        """CREATE STREAM clicks (user STRING, n INT) USING http OPTIONS (listen '127.0.0.1:1');
        CREATE LIVE TABLE counts AS SELECT user, sum(n) AS total FROM clicks GROUP BY user;
        TEST 'sums' BEGIN
          GIVEN clicks VALUES ('ann', 1), ('ann', 2);
          EXPECT counts VALUES ('ann', 3);
        END TEST;"""
    )
    from console import command

    done = subprocess.run(command("test", str(script)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- server-sent events and WebSocket ---------------------------------------------------------


class Events:
    """A server of events. Each connection gets those behind Last-Event-ID, and is then kept, or ended."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.seen: list[tuple[str | None, str | None]] = []
        self.answer: Response | None = None
        self.ends = False
        self.closing = threading.Event()

    async def serve(self, request: Request) -> Response:
        self.seen.append((request.headers.get("last-event-id"), request.headers.get("authorization")))
        if self.answer is not None:
            return self.answer
        first = int(request.headers.get("last-event-id") or 0)

        async def lines() -> AsyncIterator[str]:
            sent = first
            while not self.closing.is_set():
                while sent < len(self.events):
                    sent += 1
                    yield f"id: {sent}\nevent: kind\ndata: {self.events[sent - 1]}\n\n"
                if self.ends:
                    return
                await asyncio.sleep(0.02)

        return StreamingResponse(lines(), media_type="text/event-stream")


@contextmanager
def serving(events: Events, port: int) -> Iterator[str]:
    app = Starlette(routes=[Route("/stream", events.serve)])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/stream"
    finally:
        events.closing.set()
        server.should_exit = server.force_exit = True
        thread.join(10)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken connections are made again at once."""
    monkeypatch.setattr("streamsql.features.receivers.connections.FIRST_DELAY", 0.01)


def test_server_sent_events(
    console: Console, quick: None, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITS_TOKEN", TOKEN)
    port, events = free_port(), Events()
    events.events += ['{"n": 1}', '[{"n": 2}, {"n": 3}]']
    create = f"""CREATE STREAM edits (n INT)
      USING sse OPTIONS (url 'http://127.0.0.1:{port}/stream', token '${{env:EDITS_TOKEN}}');"""
    console.run(create)  # there is no server yet
    console.run("CREATE LIVE TABLE sums AS SELECT _event, max(_id) AS id, sum(n) AS s FROM edits GROUP BY 1;")
    eventually(lambda: "not received" in described(console, "edits"))
    why = console.run("WHY QUERY sums;")[-1]
    assert isinstance(why, Why) and why.code == "NOT_RECEIVED"
    assert why.verdict.startswith(f"edits receives nothing from http://127.0.0.1:{port}/stream: ")
    with serving(events, port):
        eventually(lambda: described(console, "edits")["received"].startswith("3 since"))
        assert described(console, "edits")["connection"].startswith("since ")
        assert events.seen[-1] == (None, f"Bearer {TOKEN}")
    events.closing.clear()
    events.events.append('{"n": 10}')
    with serving(events, port):
        eventually(lambda: described(console, "edits")["received"].startswith("4 since"))
        assert events.seen[-1][0] == "2"
        # An answer that is no stream of events, and one that ends.
        events.ends, events.answer = True, PlainTextResponse("<html>")
        events.closing.set()
        eventually(lambda: "sends no events" in described(console, "edits").get("not received", ""))
        events.answer = Response(status_code=503)
        eventually(lambda: "answers 503" in described(console, "edits").get("not received", ""))
        events.answer = None
        events.closing.clear()
        events.events.append('{"n": 100}')
        eventually(lambda: described(console, "edits")["received"].startswith("5 since"))
    assert console.rows("AWAIT QUERY sums IDLE; SELECT * FROM sums;") == [("kind", "4", 116)]
    assert TOKEN not in str(console.run("DESCRIBE STREAM edits; SHOW CREATE STREAM edits;"))


def test_events_go_on_behind_the_last_one_on_the_disk(
    opened: Open,  # noqa: F811
    quick: None,
    eventually: Callable[..., None],
) -> None:
    port, events = free_port(), Events()
    events.events += ['{"n": 1}', '{"n": 2}']
    with serving(events, port) as url:
        first = opened()
        first.run(f"CREATE STREAM edits (n INT) USING sse OPTIONS (url '{url}');")
        eventually(lambda: described(first, "edits")["received"].startswith("2 since"))
        second = opened()
        events.events.append('{"n": 3}')
        eventually(lambda: described(second, "edits")["received"].startswith("1 since"))
        assert events.seen[-1][0] == "2"
        assert second.rows("SELECT n FROM edits ORDER BY n;") == [(1,), (2,), (3,)]


@contextmanager
def feed(act: Callable[[ServerConnection], None], port: int) -> Iterator[Server]:
    with serve(act, "127.0.0.1", port) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


def test_websocket(console: Console, quick: None, eventually: Callable[..., None]) -> None:
    port, seen = free_port(), list[Any]()

    def act(connection: ServerConnection) -> None:
        assert connection.request
        seen.append((connection.recv(), connection.request.headers.get("Authorization")))
        connection.send(json.dumps({"n": len(seen)}))
        connection.send('[{"n": 10}, {"n": 20}]')
        connection.send(b'{"n": 100}')
        if len(seen) > 1:
            connection.recv()  # until the client leaves

    subscribe = '{"type": "subscribe"}'
    options = f"url 'ws://127.0.0.1:{port}', subscribe '{subscribe}', token '{TOKEN}'"
    created = console.run(f"CREATE STREAM trades (n INT) USING websocket OPTIONS ({options});")[-1]
    assert [note.code for note in created.notes if hasattr(note, "code")] == ["NOT_REPLAYED"]
    with feed(act, port):
        eventually(lambda: described(console, "trades")["received"].startswith("8 since"))
        assert seen == [(subscribe, f"Bearer {TOKEN}")] * 2
        rows = console.rows("SELECT n FROM trades;")
        assert sorted(n for (n,) in rows) == [1, 2, 10, 10, 20, 20, 100, 100]
        console.run("DROP STREAM trades;")


def test_a_full_disk_ends_the_connection_and_loses_no_event(
    console: Console, quick: None, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_spool import FailingOs

    from streamsql.features.receivers import spool

    port, events = free_port(), Events()
    events.events += ['{"n": 1}']
    with serving(events, port) as url:
        console.run(f"CREATE STREAM edits (n INT) USING sse OPTIONS (url '{url}');")
        eventually(lambda: described(console, "edits")["received"].startswith("1 since"))
        with monkeypatch.context() as patch:
            patch.setattr(spool, "os", FailingOs("pwrite"))
            events.events += ['{"n": 2}', '{"n": 3}']
            eventually(
                lambda: (
                    described(console, "edits")
                    .get("not received", "")
                    .endswith(" cannot be written: no space left on device")
                )
            )
        eventually(lambda: described(console, "edits")["received"].startswith("3 since"))
    assert sorted(console.rows("SELECT n FROM edits;")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "connector, url", [("sse", "ws://h/"), ("websocket", "http://h/"), ("sse", "http://")]
)
def test_addresses_of_another_scheme(console: Console, connector: str, url: str) -> None:
    fault = refused(console, f"CREATE STREAM s (n INT) USING {connector} OPTIONS (url '{url}');")
    assert fault.code == "BAD_OPTION_VALUE" and fault.span
