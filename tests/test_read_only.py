"""A second console looks into a workspace that another one holds, as it is now, and changes nothing in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import drop_tables, notes_of
from scripts import run_process

from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.output.error_text import format_error
from streamsql.results import Live, Result, Rows
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.folder import Workspace
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import Store

ROOMS = ("streamsql/runtime/", "streamsql/cli/")

pytestmark = pytest.mark.usefixtures("processes")

DEFINED = """
CREATE STREAM words (word STRING) USING values;
CREATE SINK out USING json OPTIONS (path '{folder}/out');
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;
INSERT INTO out AS QUERY copied SELECT word FROM words;
INSERT INTO words VALUES ('cat'), ('dog');
AWAIT QUERY ALL IDLE;
"""


class Two:
    """The console that holds a workspace, and one that reads it."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.held = Workspace(folder / "w")
        self.folder = folder / "w"
        settings = Settings.make("local[2]", {})
        self.owner = Session(
            Config(settings, self.held.run, folder / "log", folder, store=Store(self.folder)), spark
        )
        reopen(self.owner.parts)
        run(self.owner, DEFINED.format(folder=folder))
        scratch = folder / "scratch"
        scratch.mkdir()
        config = Config(settings, scratch, folder / "log", folder, store=Store(self.folder), read_only=True)
        self.reader = Session(config, spark)
        opened = reopen(self.reader.parts)
        self.words, self.warnings = opened.words, list(opened.warnings)

    def rows(self, script: str) -> list[tuple[Any, ...]]:
        """What the reader answers."""
        result = run(self.reader, script)[-1]
        assert isinstance(result, Rows), result
        return sorted(tuple(r) for r in result.rows)


def run(session: Session, script: str) -> list[Result]:
    return [session.execute(parse(w, session.variables)) for w in split_script(Source("test.sql", script))]


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that lies in a folder: when it was written, and what is in it."""
    return {
        str(p.relative_to(folder)): (
            p.stat().st_mtime_ns,
            p.stat().st_ino,
            p.read_bytes() if p.is_file() else b"",
        )
        for p in (folder, *folder.rglob("*"))
    }


@pytest.fixture
def two(spark: Any, tmp_path: Path) -> Iterator[Two]:
    made = Two(tmp_path, spark)
    yield made
    made.reader.close()
    made.owner.parts.queries.stop_all()
    made.held.close()
    drop_tables(spark)


def test_it_shows_what_is_there_now(two: Two) -> None:
    assert two.warnings == []
    assert two.words[0] == f"{two.folder} holds 1 stream, 1 sink, 1 live table"
    assert two.words[-1].startswith(f"read-only: it is held by another console (process {os.getpid()}")
    assert two.rows("SELECT * FROM counts;") == [("cat", 1), ("dog", 1)]
    (shown,) = run(two.reader, "SHOW QUERIES;")
    assert isinstance(shown, Rows)
    assert {(r[0], r[1], r[5]) for r in shown.rows} == {
        ("counts", "running elsewhere", 0),
        ("copied", "running elsewhere", 0),
    }
    assert f"queries run in another console (process {os.getpid()}" in notes_of(shown)[0]
    # Whatever the owner does from now on is seen by the next statement.
    run(two.owner, "INSERT INTO words VALUES ('cat'), ('owl'); AWAIT QUERY ALL IDLE; STOP QUERY copied;")
    run(two.owner, "CREATE STREAM later (n INT) USING values;")
    assert two.rows("SELECT * FROM counts;") == [("cat", 2), ("dog", 1), ("owl", 1)]
    assert [r[:2] for r in two.rows("SHOW QUERIES;")] == [
        ("copied", "stopped"),
        ("counts", "running elsewhere"),
    ]
    assert [r[0] for r in two.rows("SHOW STREAMS;")] == ["later", "words"]
    run(two.owner, "CREATE OR REPLACE LIVE TABLE counts AS SELECT word FROM words; AWAIT QUERY counts IDLE;")
    assert two.rows("SELECT * FROM counts;") == [("cat",), ("cat",), ("dog",), ("owl",)]
    run(two.owner, "DROP LIVE TABLE counts; DROP STREAM later;")
    assert [r[0] for r in two.rows("SHOW STREAMS;")] == ["words"]
    assert two.rows("SHOW LIVE TABLES;") == []


@pytest.mark.slow
def test_looking_changes_nothing(two: Two) -> None:
    run(two.owner, "STOP QUERY ALL;")  # what still runs writes by itself
    before = snapshot(two.folder)
    assert two.rows("SELECT word, count(*) AS n FROM words GROUP BY word;") == [("cat", 1), ("dog", 1)]
    run(
        two.reader,
        "SELECT * FROM counts; SHOW QUERIES EXTENDED; DESCRIBE QUERY copied; DESCRIBE LIVE TABLE counts;"
        "SHOW CREATE STREAM words; EXPLAIN PYSPARK SELECT word FROM words; EXPLAIN SELECT word FROM words;"
        "PREVIEW words; SET streamsql.null = '-'; SET spark.sql.ansi.enabled = false;"
        "CREATE TEMPORARY VIEW v AS SELECT 1 AS one; SELECT * FROM v;",
    )
    run(two.reader, "DROP VIEW v; RESET;")
    two.reader.close()
    assert snapshot(two.folder) == before


def test_what_would_change_it_is_refused(two: Two) -> None:
    before = (two.folder / "catalog.sql").read_bytes()
    for statement in (
        "CREATE STREAM s (n INT) USING values;",
        "CREATE SINK s USING noop;",
        "CREATE LIVE TABLE t AS SELECT word FROM words;",
        "INSERT INTO out AS QUERY again SELECT word FROM words;",
        "INSERT INTO words VALUES ('emu');",
        "DROP STREAM words;",
        "DROP LIVE TABLE counts;",
        "DROP QUERY copied;",
        "STOP QUERY ALL;",
        "START QUERY ALL;",
        "AWAIT QUERY ALL IDLE;",
    ):
        with pytest.raises(StreamsqlError) as caught:
            run(two.reader, statement)
        said = format_error(caught.value)
        assert f"this console only reads the workspace {two.folder}" in said
        assert f"held by another console (process {os.getpid()}" in said
        assert "run the statement there, or use another workspace: streamsql -w DIR" in said
    assert (two.folder / "catalog.sql").read_bytes() == before
    assert {q.status() for q in two.owner.parts.queries.all.values()} == {"running"}


@pytest.mark.slow
def test_watch_follows_the_other_console(two: Two, eventually: Callable[..., None]) -> None:
    (live,) = run(two.reader, "WATCH counts;")
    assert isinstance(live, Live)

    def shown() -> list[tuple[Any, ...]]:
        return sorted(tuple(r) for r in live.take(10, 0, None).rows)

    assert shown() == [("cat", 1), ("dog", 1)]
    assert live.status().status == "running"
    (counted,) = run(two.reader, "WATCH SELECT count(*) AS n FROM counts;")
    assert isinstance(counted, Live)
    eventually(lambda: list(counted.take(10, 0, None).rows) == [(2,)])
    run(two.owner, "INSERT INTO words VALUES ('owl'); AWAIT QUERY counts IDLE;")
    eventually(lambda: shown() == [("cat", 1), ("dog", 1), ("owl", 1)])
    eventually(lambda: list(counted.take(10, 0, None).rows) == [(3,)])
    live.close()
    counted.close()


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    held = Workspace(tmp_path / "w")
    (tmp_path / "w" / "catalog.sql").write_text("CREATE STREAM words (word STRING) USING values;")
    before = snapshot(tmp_path / "w")

    def words(*arguments: str) -> tuple[int, str]:
        outcome = run_process("-w", "w", *arguments, cwd=tmp_path)
        return outcome.code, outcome.out + outcome.err

    code, said = words("-e", "SHOW STREAMS;")
    assert code == 2
    assert f"is held by another console (process {os.getpid()}" in said
    assert "hint: another folder: -w DIR; --read-only shows this one" in said
    code, said = words("--read-only", "-e", "SHOW STREAMS; DROP STREAM words;")
    assert (code, "| words" in said, "-e:1:15: error[READ_ONLY]: this console only reads" in said) == (
        1,
        True,
        True,
    )
    code, said = words("--check", "-e", "DESCRIBE STREAM words; SELECT word FROM words; DROP STREAM words;")
    assert (code, said) == (0, "3 statements checked\n")
    code, said = words("--check", "-e", "CREATE STREAM words (n INT) USING values;")
    assert (code, "there is already a stream words" in said) == (1, True)
    code, said = words("--check", "-e", "DROP STREAM wrods;")
    assert (code, "did you mean words?" in said) == (1, True)
    assert snapshot(tmp_path / "w") == before
    assert run_process("--read-only", "-w", "nowhere", "-e", "SHOW STREAMS;", cwd=tmp_path).code == 2
    assert not (tmp_path / "nowhere").exists()
    held.close()
