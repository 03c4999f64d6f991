"""SET spark.hadoop.NAME in a Spark that runs: Hadoop is told at once, for the console and for each client."""

from __future__ import annotations

import pytest
from conftest import Console

from streamsql.config.preferences import Preferences
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse_text
from streamsql.runtime.session import StatementSession
from streamsql.server.client_session import ClientSession

ROOMS = ("streamsql/runtime/", "streamsql/server/")
KEY = "spark.hadoop.fs.testfs.impl"


def fault(session: StatementSession) -> str:
    """Why a file of the file system `testfs` cannot be read."""
    with pytest.raises(StreamsqlError) as raised:
        session.execute(
            parse_text(Source("", "CREATE TEMPORARY VIEW v USING text OPTIONS (path 'testfs://host/file');"))
        )
    text = str(raised.value)
    return text.partition("class ")[2] if "class " in text else "unknown" if "testfs" in text else text


def test_a_setting_of_hadoop_counts_at_once(console: Console) -> None:
    console_session = console.session
    assert fault(console_session) == "unknown"
    console.run(f"SET {KEY} = 'no.One';")
    assert fault(console_session) == "no.One"
    client = ClientSession(
        console_session.parts, interactive=False, read_only=False, preferences=Preferences()
    )
    assert fault(client) == "no.One"
    client.execute(parse_text(Source("", f"SET {KEY} = 'no.Two'")))
    assert (fault(client), fault(console_session)) == ("no.Two", "no.One")
    client.execute(parse_text(Source("", f"RESET {KEY}")))
    assert (fault(client), fault(console_session)) == ("unknown", "no.One")
    console.run(f"RESET {KEY};")
    assert fault(console_session) == "unknown"
