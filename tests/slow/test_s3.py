"""Files in S3: s3a:// paths against a server of that protocol, whose packages the console fetches itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Console

from streamsql.results import Done, Why

ROOMS = (
    "streamsql/connectors/packages.py", "streamsql/connectors/files.py", "streamsql/runtime/engine/package_loader.py",
    "streamsql/runtime/embedded/late_rows_reader.py",
)  # fmt: skip
KEY, SECRET = "AKTEST", "hunter2hunter2"


@pytest.fixture
def bucket() -> Iterator[tuple[str, Any]]:
    """The address of a server, and a client of its bucket `events`."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    session = boto3.session.Session(KEY, SECRET, region_name="us-east-1")
    client = session.resource("s3", endpoint_url=address)
    yield address, client.create_bucket(Bucket="events")
    server.stop()


def test_streams_sinks_and_checkpoints(
    console: Console, packages: Callable[[str], None], bucket: tuple[str, Any]
) -> None:
    packages("s3")  # else skipped
    address, events = bucket
    events.put_object(Key="in/a b=1.json", Body=b'{"user":"ann","at":"2024-01-01 10:00:00"}\n')
    shown = console.run(
        f"""SET spark.hadoop.fs.s3a.endpoint = '{address}';
        SET spark.hadoop.fs.s3a.path.style.access = true;
        SET spark.hadoop.fs.s3a.access.key = '{KEY}';
        SET spark.hadoop.fs.s3a.secret.key = '{SECRET}';
        CREATE STREAM clicks (user STRING, at TIMESTAMP) USING json OPTIONS (path 's3a://events/in')
          WITH WATERMARK at DELAY OF INTERVAL 1 MINUTE;
        CREATE SINK out USING parquet OPTIONS (path 's3a://events/out');
        CREATE LIVE TABLE w AS SELECT window.start AS s, count(*) AS n FROM clicks
          GROUP BY window(at, '1 minute');
        INSERT INTO out AS QUERY copy CHECKPOINT 's3a://events/ck' SELECT user, at FROM clicks;
        AWAIT QUERY ALL IDLE;"""
    )
    assert SECRET not in str(shown)
    for name, time in (("new", "12:00:00"), ("late", "10:00:00")):
        events.put_object(
            Key=f"in/{name}.json", Body=f'{{"user":"{name}","at":"2024-01-01 {time}"}}'.encode()
        )
        console.run("AWAIT QUERY ALL IDLE;")
    assert console.rows("SELECT user FROM parquet.`s3a://events/out` ORDER BY user;") == [
        ("ann",), ("late",), ("new",)
    ]  # fmt: skip
    assert any(entry.key.startswith("ck/offsets/") for entry in events.objects.all())
    assert console.rows("SELECT user FROM LATE ROWS OF QUERY w;") == [("late",)]
    for name, rows in (("copy", 3),):
        verified = console.run(f"VERIFY QUERY {name};")[-1]
        assert isinstance(verified, Done) and verified.message.startswith(f"{name} is verified: {rows} rows")
    why = console.run("WHY QUERY copy;")[-1]
    assert isinstance(why, Why) and ("rows in", 3) in why.rows
