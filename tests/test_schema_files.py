"""The file with the Avro schema of messages is read when a stream or sink is created, and not by planning."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamsql.errors import InputFault, Source
from streamsql.language.parser import parse_script
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}'
OPTIONS = "USING kafka FORMAT avro OPTIONS (servers 'h:1', topic 't', avroSchemaFile '{file}')"


def session_in(folder: Path) -> Session:
    """A console that has not started Spark."""
    return Session(Config(Settings.make("local[2]", {}), folder, folder / "log", folder))


def execute(session: Session, text: str) -> None:
    for statement in parse_script(Source("a.sql", text)):
        session.execute(statement)


def test_the_schema_is_that_of_the_file_when_it_was_created(tmp_path: Path) -> None:
    file, session = tmp_path / "a.avsc", session_in(tmp_path)
    file.write_text(SCHEMA)
    options = OPTIONS.format(file=file)
    execute(session, f"CREATE STREAM s (id INT) {options}; CREATE SINK k {options};")
    file.unlink()
    entries = session.catalog.streams["s"], session.catalog.sinks["k"]
    assert [entry.option("avroSchema") for entry in entries] == [SCHEMA] * 2
    assert "avroSchemaFile" not in entries[0].sql()
    session.close()


@pytest.mark.parametrize("kind", ["STREAM s (id INT)", "SINK k"])
@pytest.mark.parametrize(
    ("content", "message", "code"),
    [
        (None, "cannot read {file}: no such file or directory", "MISSING_PATH"),
        ("{", "{file} is not JSON: ", "BAD_SCHEMA"),
    ],
)
def test_a_file_that_is_not_there_or_no_json(
    tmp_path: Path, kind: str, content: str | None, message: str, code: str
) -> None:
    file, session = tmp_path / "a.avsc", session_in(tmp_path)
    if content is not None:
        file.write_text(content)
    text = f"CREATE {kind} {OPTIONS.format(file=file)};"
    with pytest.raises(InputFault) as raised:
        execute(session, text)
    span = raised.value.span
    assert raised.value.message.startswith(message.format(file=file))
    assert raised.value.code == code and raised.value.hint
    assert span is not None and text[span.start : span.end] == f"'{file}'"
    session.close()
