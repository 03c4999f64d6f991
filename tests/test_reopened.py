"""A workspace keeps what an analyst made: another console finds it again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import drop_tables, notes_of
from data_files import put_whole
from scripts import run_process
from terminal import Terminal

from streamsql.cli.hosting_loop import HostingLoop
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.output.error_text import format_error
from streamsql.results import Done, Result, Rows, Text
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import Store

ROOMS = ("streamsql/runtime/",)


class Opened:
    """A console on a workspace. spark None: one that has not started Spark, and must not."""

    def __init__(self, folder: Path, spark: Any) -> None:
        run = folder / "run"
        run.mkdir(parents=True, exist_ok=True)
        settings = Settings.make("local[2]", {})
        self.session = Session(Config(settings, run, folder / "log", folder, store=Store(folder)), spark)
        opened = reopen(self.session.parts)
        self.words, self.notes, self.warnings = (
            list(lines) for lines in (opened.words, notes_of(opened), opened.warnings)
        )
        self.stopped = opened.stopped

    def run(self, script: str) -> list[Result]:
        return [
            self.session.execute(parse(w, self.session.variables))
            for w in split_script(Source("test.sql", script))
        ]

    def rows(self, script: str) -> list[tuple[Any, ...]]:
        result = self.run(script)[-1]
        assert isinstance(result, Rows), result
        return [tuple(r) for r in result.rows]

    def text(self, script: str) -> str:
        result = self.run(script)[-1]
        assert isinstance(result, Text), result
        return result.text


Open = Callable[..., Opened]


@pytest.fixture
def opened(spark: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens the one workspace of the test; the console before is left first."""
    before: list[Opened] = []
    zone = spark.conf.get("spark.sql.session.timeZone")

    def make(*, started: bool = True) -> Opened:
        for old in before:
            old.session.close()
        before[:] = [Opened(tmp_path / "w", spark if started else None)]
        return before[0]

    yield make
    for old in before:
        old.session.close()
        for key in old.session.parts.settings.changed:
            spark.conf.unset(key)
    spark.conf.set("spark.sql.session.timeZone", zone)
    drop_tables(spark)


DEFINED = """
CREATE STREAM words (word STRING, at TIMESTAMP) USING values WITH WATERMARK at DELAY OF INTERVAL 10 MINUTES;
CREATE SINK out USING json OPTIONS (path '{folder}/out');
CREATE STREAM short AS SELECT word, at FROM words WHERE length(word) < 5;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM short GROUP BY word;
INSERT INTO out AS QUERY copied SELECT word FROM short;
"""
ROWS = "INSERT INTO words VALUES ('cat', '2024-05-01 12:02:00'), ('dog', '2024-05-01 12:07:00');"


def said(console: Opened, statement: str) -> str:
    """What a statement answers."""
    result = console.run(statement)[-1]
    assert isinstance(result, Done)
    return result.message


@pytest.mark.slow
def test_what_drop_query_drops_comes_back(opened: Open, tmp_path: Path) -> None:
    """With its checkpoint and rows: only what has landed since is read."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": "x", "n": 1}\n{"id": "y", "n": 2}\n')
    console = opened()
    console.run(
        f"""CREATE STREAM a (id STRING, n INT) USING json OPTIONS (path '{tmp_path}/in');
        CREATE LIVE TABLE t1 AS SELECT id, sum(n) AS n FROM a GROUP BY id;
        CREATE LIVE TABLE t2 AS SELECT n FROM a;
        AWAIT QUERY ALL IDLE;"""
    )
    assert said(console, "DROP QUERY ALL;").endswith("with the live tables t1, t2; UNDROP; brings them back")
    put_whole(tmp_path / "in" / "b.json", '{"id": "y", "n": 5}\n')
    console = opened()
    assert console.rows("SHOW QUERIES;") == []
    assert said(console, "UNDROP;") == "t1, t2 restored; START QUERY ALL; resumes them"
    assert sorted(console.rows("SELECT * FROM t1;")) == [("x", 1), ("y", 2)]
    console.run("START QUERY ALL; AWAIT QUERY ALL IDLE;")
    assert sorted(console.rows("SELECT * FROM t1;")) == [("x", 1), ("y", 7)]
    assert sorted(console.rows("SELECT * FROM t2;")) == [(1,), (2,), (5,)]
    console.run("DROP QUERY t2; CREATE STREAM t2 (n INT) USING values;")
    with pytest.raises(StreamsqlError) as taken:
        console.run("UNDROP;")
    assert taken.value.code == "ALREADY_EXISTS"
    console.run("DROP STREAM t2;")
    assert said(console, "UNDROP;") == "t2 restored; START QUERY t2; resumes it"
    assert said(console, "UNDROP;") == "no dropped query is in the trash"
    console.run("DROP QUERY ALL; EMPTY TRASH;")
    assert said(console, "UNDROP;") == "no dropped query is in the trash"


def test_all_is_there_again_without_spark(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(
        DEFINED.format(folder=tmp_path) + ROWS + "AWAIT QUERY ALL IDLE; SET spark.sql.ansi.enabled = true;"
    )
    written = {n: first.text(f"SHOW CREATE STREAM {n};") for n in ("words", "short")}
    again = opened(started=False)
    assert again.warnings == []
    assert again.words == [f"{tmp_path}/w holds 2 streams, 1 sink, 1 live table, 2 stopped queries"]
    assert again.stopped == ("counts", "copied")
    assert {n: again.text(f"SHOW CREATE STREAM {n};") for n in ("words", "short")} == written
    queries = {r[0]: (r[1], r[15]) for r in again.rows("SHOW QUERIES;")}
    assert queries == {
        "counts": ("stopped", ""),
        "copied": ("stopped", ""),
    }
    assert ("spark.sql.ansi.enabled", "true", "SET") in again.rows("SET;")
    assert not again.session.parts.engine.started
    again.session.parts.workspace.note_reported()
    assert opened(started=False).words == [
        f"{tmp_path}/w holds 2 streams, 1 sink, 1 live table, 2 stopped queries"
    ]


def test_live_rows_are_there_at_once_and_queries_go_on(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(DEFINED.format(folder=tmp_path) + ROWS + "AWAIT QUERY ALL IDLE;")
    again = opened()
    assert sorted(again.rows("SELECT * FROM counts;")) == [("cat", 1), ("dog", 1)]
    again.run(
        "START QUERY ALL; INSERT INTO words VALUES ('cat', '2024-05-01 12:08:00'); AWAIT QUERY ALL IDLE;"
    )
    assert sorted(again.rows("SELECT * FROM counts;")) == [("cat", 2), ("dog", 1)]
    third = opened()
    assert sorted(third.rows("SELECT * FROM counts;")) == [("cat", 2), ("dog", 1)]
    third.run(f"CREATE TEMPORARY VIEW written USING json OPTIONS (path '{tmp_path}/out');")
    assert sorted(third.rows("SELECT word FROM written;")) == [("cat",), ("cat",), ("dog",)]


def test_the_queries_that_a_server_has_still_to_start_are_resuming(opened: Open, tmp_path: Path) -> None:
    opened().run(DEFINED.format(folder=tmp_path) + "STOP QUERY copied;")
    again = opened()
    again.session.parts.workspace.resuming = True  # as `streamsql serve` begins

    def states() -> dict[str, str]:
        return {row[0]: row[1] for row in again.rows("SHOW QUERIES;")}

    assert states() == {"counts": "resuming", "copied": "stopped"}
    lines: list[str] = []
    server, messages = SimpleNamespace(), SimpleNamespace(say=lines.append)
    HostingLoop(again.session, server, messages).resume()  # type: ignore[arg-type]
    assert (states(), lines) == ({"counts": "running", "copied": "stopped"}, ["resumed: counts"])
    again.run("STOP QUERY counts;")
    assert states() == {"counts": "stopped", "copied": "stopped"}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("mode", ["APPEND", "UPDATE", "COMPLETE"])
def test_the_rows_of_each_output_mode_come_back(opened: Open, mode: str) -> None:
    query = "SELECT word FROM s" if mode == "APPEND" else "SELECT word, count(*) AS n FROM s GROUP BY word"
    first = opened()
    first.run(
        f"CREATE STREAM s (word STRING) USING values; CREATE LIVE TABLE t OUTPUT MODE {mode} AS {query};"
    )
    for word in ("a", "b", "a"):
        first.run(f"INSERT INTO s VALUES ('{word}'); AWAIT QUERY t IDLE;")
    expected = sorted(first.rows("SELECT * FROM t;"))
    assert len(expected) == (3 if mode == "APPEND" else 2)
    assert sorted(opened().rows("SELECT * FROM t;")) == expected


@pytest.mark.slow
def test_hidden_keys_and_groups_that_leave_come_back(opened: Open) -> None:
    first = opened()
    first.run(
        "CREATE STREAM s (word STRING) USING values; INSERT INTO s VALUES ('a'), ('b'), ('b');"
        "CREATE LIVE TABLE t AS SELECT count(*) AS n FROM s GROUP BY word HAVING count(*) < 3;"
        "AWAIT QUERY t IDLE; INSERT INTO s VALUES ('a'), ('c'); AWAIT QUERY t IDLE;"
    )
    again = opened()
    assert again.rows("SELECT * FROM t ORDER BY n;") == [(1,), (2,), (2,)]
    again.run("START QUERY t; INSERT INTO s VALUES ('b'), ('c'); AWAIT QUERY t IDLE;")
    assert again.rows("SELECT * FROM t;") == [(2,), (2,)]
    assert opened().rows("SELECT * FROM t;") == [(2,), (2,)]


@pytest.mark.slow
def test_tables_of_spark_keep_their_rows(opened: Open, spark: Any, tmp_path: Path) -> None:
    first = opened()
    first.run(
        "CREATE TABLE lasting (id INT, k STRING) USING csv PARTITIONED BY (k);"
        "INSERT INTO lasting VALUES (1, 'u'), (2, 'v');"
        "ALTER TABLE lasting ADD COLUMNS (more STRING);"
        "CREATE TABLE gone AS SELECT 1 AS a; DROP TABLE gone;"
        "CREATE VIEW over_it AS SELECT id + 1 AS next FROM lasting;"
        "CREATE TABLE former (a INT) USING csv; ALTER TABLE former RENAME TO latter;"
        "CREATE VIEW one AS SELECT id FROM lasting; ALTER VIEW one RENAME TO first_one;"
        "CREATE TEMPORARY VIEW two AS SELECT 1 AS a; ALTER VIEW two RENAME TO second_one;"
        "ALTER VIEW second_one AS SELECT 2 AS a;"
    )
    kept = (tmp_path / "w" / "catalog.sql").read_text()
    assert "latter" in kept and "former" not in kept
    assert "CREATE VIEW first_one AS SELECT id FROM lasting;" in kept and " one " not in kept
    assert "CREATE TEMPORARY VIEW second_one AS SELECT 2 AS a;" in kept and " two " not in kept
    assert first.rows("SELECT a FROM second_one;") == [(2,)]
    with pytest.raises(StreamsqlError, match="already a stream words"):
        first.run("CREATE STREAM words (w STRING) USING values; ALTER VIEW first_one RENAME TO words;")
    first.run("DROP VIEW first_one; DROP VIEW second_one;")
    first.run("DROP TABLE latter;")
    # A new Spark knows none of them, and their files are there.
    files = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "lasting"
    shutil.copytree(files, tmp_path / "files")
    for kind, name in (("VIEW", "over_it"), ("TABLE", "lasting")):
        spark.sql(f"DROP {kind} {name}")
    shutil.copytree(tmp_path / "files", files)
    again = opened()
    again.session.parts.temporary.restore(spark)
    assert again.rows("SELECT * FROM lasting ORDER BY id;") == [(1, None, "u"), (2, None, "v")]
    again.run("INSERT INTO lasting VALUES (3, 'x', 'u');")
    assert again.rows("SELECT next FROM over_it ORDER BY next;") == [(2,), (3,), (4,)]
    with pytest.raises(StreamsqlError, match="no stream, table or view gone"):
        again.run("SELECT * FROM gone;")
    again.run("DROP VIEW over_it; DROP TABLE lasting;")
    assert "lasting" not in (tmp_path / "w" / "catalog.sql").read_text()


def test_a_view_with_an_alias_like_a_stream_is_no_stream(opened: Open) -> None:
    opened().run(
        "CREATE STREAM v (a INT) USING values; CREATE TEMPORARY VIEW one AS SELECT 1 AS v;"
        "CREATE TABLE two AS SELECT 2 AS v;"
    )
    again = opened()
    assert again.rows("SELECT v FROM one;") == [(1,)]
    again.run("DROP TABLE two;")


def test_what_is_dropped_stays_gone(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(
        DEFINED.format(folder=tmp_path) + "DROP QUERY copied; DROP LIVE TABLE counts; DROP STREAM short;"
    )
    at_once = (tmp_path / "w" / "catalog.sql").read_text()
    assert "words" in at_once
    assert not [name for name in ("copied", "counts", "short") if name in at_once]
    again = opened(started=False)
    assert again.words == [f"{tmp_path}/w holds 1 stream, 1 sink"]
    assert list((tmp_path / "w" / "run" / "queries").iterdir()) == []
    assert again.notes == []


@pytest.mark.usefixtures("processes")
def test_the_catalog_is_a_script_that_makes_all_again(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(DEFINED.format(folder=tmp_path))
    # A stream that is made again comes behind what it reads now.
    first.run(
        "CREATE STREAM numbers (n INT) USING values;"
        "CREATE SINK z USING noop;"
        "CREATE OR REPLACE STREAM short AS SELECT CAST(n AS STRING) AS word, current_timestamp() AS at FROM numbers;"
    )
    opened(started=False)
    outcome = run_process("--check", str(tmp_path / "w" / "catalog.sql"))
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "w" / "catalog.sql").stat().st_mode & 0o777 == 0o600


def test_a_secret_is_never_written(opened: Open, tmp_path: Path) -> None:
    first = opened()
    made = first.run(
        "CREATE STREAM s (n INT) USING values;"
        "CREATE SINK t USING jdbc OPTIONS (url 'jdbc:sqlite:x.db', table 't', password 'hush-hush');"
    )
    assert notes_of(made[-1]) == (
        "the workspace does not save the password; it saves a reference: password '${env:NAME}'",
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"a": 1}')
    first.run(
        "SET spark.hadoop.fs.s3a.secret.key = hush-hush;"
        f"CREATE TEMPORARY VIEW v USING json OPTIONS (path '{tmp_path}/in', token 'hush-hush');"
        f"CREATE TEMPORARY VIEW w USING json OPTIONS (path '{tmp_path}/in');"
    )
    again = opened()
    written = b"".join(p.read_bytes() for p in (tmp_path / "w").rglob("*") if p.is_file())
    assert b"hush-hush" not in written
    assert again.rows("SELECT a FROM w;") == [(1,)]
    with pytest.raises(StreamsqlError) as caught:
        again.run("INSERT INTO t TRIGGER AVAILABLE NOW SELECT * FROM s;")
    said = format_error(caught.value)
    assert "the password of t was not kept in the workspace" in said
    assert "CREATE OR REPLACE SINK t" in said


def test_a_definition_that_cannot_be_read_is_kept_and_said(opened: Open, tmp_path: Path) -> None:
    opened().run("CREATE STREAM s (n INT) USING values;")
    opened(started=False).session.close()
    file = tmp_path / "w" / "catalog.sql"
    file.write_text(file.read_text() + "\nCREATE SINK k USING carrier_pigeon;\n")
    again = opened(started=False)
    (warning,) = again.warnings
    assert warning.startswith("there is no connector carrier_pigeon; kept in ")
    assert again.words == [f"{tmp_path}/w holds 1 stream"]
    again.run("CREATE STREAM t (n INT) USING values;")
    assert "CREATE SINK k USING carrier_pigeon;" in file.read_text()
    assert "CREATE STREAM t " in file.read_text()


@pytest.mark.parametrize("text", [b"\xff\xfe broken", b"CREATE STREAM s USING rate; SELECT 'begun"])
def test_a_catalog_that_is_no_script_is_not_opened(opened: Open, tmp_path: Path, text: bytes) -> None:
    opened().run(
        "CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1); CREATE LIVE TABLE t AS SELECT * FROM s;"
        "AWAIT QUERY ALL IDLE;"
    )
    opened(started=False).session.close()
    file = tmp_path / "w" / "catalog.sql"
    whole = file.read_bytes()
    file.write_bytes(text)
    before = sorted(str(p) for p in (tmp_path / "w").rglob("*"))
    for _ in range(2):
        with pytest.raises(StreamsqlError, match="cannot be read|quote is not closed"):
            opened(started=False)
    assert sorted(str(p) for p in (tmp_path / "w").rglob("*")) == before
    file.write_bytes(whole)
    assert opened().rows("SELECT * FROM t;") == [(1,)]


def test_a_full_disk_is_said_and_nothing_in_the_console_is_lost(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(started=False)
    first.run("CREATE STREAM s (n INT) USING values;")
    before = (tmp_path / "w" / "catalog.sql").read_text()

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    (made,) = first.run("CREATE STREAM t (n INT) USING values;")
    assert notes_of(made) == ("the workspace could not be written: no space left on device",)
    monkeypatch.undo()
    assert (tmp_path / "w" / "catalog.sql").read_text() == before
    assert len(first.rows("SHOW STREAMS;")) == 2


@pytest.mark.usefixtures("processes")
def test_the_prompt_says_what_is_there_again(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    try:
        terminal.until(r"^sql>")
        terminal.type("CREATE STREAM words (word STRING) USING values;\r")
        terminal.until("stream words created")
        terminal.type("CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;\r")
        terminal.until("live table counts started")
        terminal.type("INSERT INTO words VALUES ('cat'); AWAIT QUERY counts IDLE;\r")
        terminal.until("^idle")
    finally:
        terminal.kill()
    again = Terminal(tmp_path, columns=80)
    try:
        again.until(r"holds 1 stream, 1 live table, 1 stopped query")
        again.until(r"stopped with the last console: counts; START QUERY ALL; resumes")
        again.type("SHOW QUERIES;\r")
        again.until(r"counts.*stopped")
        assert '"told": true' in next(tmp_path.rglob("status.json")).read_text()
        again.type("SELECT * FROM counts;\r")
        again.until(r"cat +\| +1 \|")
        again.type("AWAIT QUERY counts;\r")
        again.until("counts is stopped: START QUERY counts; resumes it")
        again.type("START QUERY ALL;\r")
        again.until("started: counts")
    finally:
        again.kill()


@pytest.mark.slow
def test_the_rows_and_durations_of_batches_are_there_again_without_spark(opened: Open) -> None:
    first = opened()
    first.run(
        "CREATE STREAM words (word STRING) USING values;"
        "CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;"
        "INSERT INTO words VALUES ('a'), ('b'); AWAIT QUERY counts IDLE;"
    )
    before = first.rows("SHOW BATCHES OF QUERY counts;")
    assert [row[5] for row in before] == [2]
    again = opened(started=False)
    assert again.rows("SHOW BATCHES OF QUERY counts;") == before
    assert not again.session.parts.engine.starting
    third = opened()
    third.run("INSERT INTO words VALUES ('c'); START QUERY counts; AWAIT QUERY counts IDLE;")
    assert third.rows("SHOW BATCHES OF QUERY counts;")[:1] == before
    assert [row[5] for row in third.rows("SHOW BATCHES OF QUERY counts;")] == [2, 1]
    kept = third.session.parts.config.folder / "queries" / "counts" / "batches.jsonl"
    assert len(kept.read_text().splitlines()) == 2
    third.run("DROP QUERY counts;")
    assert not kept.exists()


PYTHON = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


@pytest.mark.slow
def test_python_is_imported_when_a_query_calls_it(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    code, ran = tmp_path / "code" / "calls_of_a_query.py", tmp_path / "code" / "ran"
    code.write_text(PYTHON + "def shout(text): return text.upper()\n")
    first = opened()
    first.session.variables["here"] = str(code.parent)
    first.run(
        "CREATE FUNCTION shout AS 'calls_of_a_query.shout' LANGUAGE PYTHON RETURNS STRING;"
        "CREATE OR REPLACE TEMPORARY VIEW loud AS SELECT shout('a') AS a;"
        "CREATE OR REPLACE TEMPORARY VIEW louder AS SELECT * FROM loud;"
    )
    ran.unlink()
    again = opened()
    assert (again.words, again.warnings) == ([f"{tmp_path}/w holds 2 views, 1 function"], [])
    again.session.parts.temporary.restore(again.session.spark)  # as when Spark starts
    again.run("SHOW STREAMS; DESCRIBE FUNCTION shout; SELECT 1;")
    assert not ran.exists()
    assert again.rows("SELECT * FROM louder;") == [("A",)]
    assert again.rows("SELECT shout('b') AS b;") == [("B",)]
    assert ran.exists()


def test_a_function_that_has_become_another_kind_is_planned_anew(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    code = tmp_path / "code" / "changes_its_kind.py"
    code.write_text("def f(n): return n + 1\n")
    first = opened()
    first.session.variables["here"] = str(code.parent)
    first.run("CREATE FUNCTION f AS 'changes_its_kind.f' LANGUAGE PYTHON RETURNS BIGINT;")
    code.write_text("import pandas as pd\ndef f(n: pd.Series) -> int: return int(n.sum())\n")
    again = opened()
    assert again.rows("SELECT f(id) AS total FROM range(4);") == [(6,)]


@pytest.mark.slow
def test_checkpoints_and_rows_are_for_their_owner_only(opened: Open, tmp_path: Path) -> None:
    first = opened()
    first.run(
        DEFINED.format(folder=tmp_path)
        + f"CREATE SINK nothing USING noop; INSERT INTO nothing AS QUERY elsewhere CHECKPOINT '{tmp_path}/deep/er' SELECT word FROM short;"
        + ROWS
        + "AWAIT QUERY ALL IDLE;"
    )
    run = tmp_path / "w" / "run"
    folders = [
        tmp_path / "deep" / "er",
        *run.iterdir(),
        *(f for kind in run.iterdir() for f in kind.iterdir()),
    ]
    assert {f.name for f in folders} >= {"queries", "streams", "counts", "copied", "words", "er"}
    assert [str(f) for f in folders if f.stat().st_mode & 0o077] == []
    rows = list((run / "queries" / "counts" / "current" / "rows" / "counts").iterdir())
    assert rows and [str(f) for f in rows if f.stat().st_mode & 0o077] == []


def test_a_checkpoint_is_not_begun_over_what_is_not_the_consoles(opened: Open, tmp_path: Path) -> None:
    first = opened()
    foreign = tmp_path / "w" / "run" / "queries" / "t" / "notes.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    first.run("CREATE STREAM s (n INT) USING values;")
    for statement in (
        "CREATE LIVE TABLE t AS SELECT n FROM s;",
        "CREATE OR REPLACE LIVE TABLE t AS SELECT n FROM s;",
    ):
        with pytest.raises(StreamsqlError, match="queries/t is in the way: streamsql did not create it"):
            first.run(statement)
    assert [p.name for p in foreign.parent.iterdir()] == ["notes.txt"]
    assert first.rows("SHOW LIVE TABLES;") == []


def test_what_a_later_version_has_written_is_refused_and_stays(opened: Open, tmp_path: Path) -> None:
    opened().run(
        "CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1);"
        "CREATE LIVE TABLE t AS SELECT n FROM s; AWAIT QUERY t IDLE;"
    )
    again = opened()
    for name in ("rows/t/kind.json", "checkpoint/streamsql.json"):
        file = tmp_path / "w/run/queries/t/current" / name
        written = file.read_text()
        file.write_text(re.sub(r'"version": \d+', '"version": 99', written))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Spark's checksum of what was there
        later = file.read_bytes()
        with pytest.raises(StreamsqlError, match="was written by a later version of streamsql"):
            again.run("START QUERY t;")
        assert file.read_bytes() == later
        file.write_text(written)
    again.run("INSERT INTO s VALUES (2); START QUERY t; AWAIT QUERY t IDLE;")
    assert again.rows("SELECT * FROM t;") == [(1,), (2,)]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("harm", ["cut rows", "cut kind.json", "no kind.json"])
def test_rows_that_cannot_be_read_are_not_taken_for_none(opened: Open, tmp_path: Path, harm: str) -> None:
    """Their query would go on behind them: its checkpoint says that they are written."""
    opened().run(
        "CREATE STREAM s (n INT) USING values; INSERT INTO s VALUES (1), (2);"
        "CREATE SINK t USING memory; INSERT INTO t AS QUERY q SELECT n FROM s; AWAIT QUERY q IDLE;"
        "CREATE LIVE TABLE sums AS SELECT sum(n) AS s FROM t; AWAIT QUERY sums IDLE;"
    )
    again = opened()
    folder = tmp_path / "w/run/queries/q/current/rows/t"
    file = folder / "kind.json" if "kind" in harm else next(folder.glob("*.new"))
    file.write_bytes(file.read_bytes()[:-9])
    if harm == "no kind.json":
        file.unlink()
    hint = "START QUERY q FROM BEGINNING; computes them again"
    for statement in ("START QUERY q;", "SELECT * FROM t;", "DESCRIBE LIVE TABLE t;"):
        with pytest.raises(StreamsqlError, match="^the rows of t cannot be read$") as refused:
            again.run(statement)
        assert refused.value.hint == hint
        assert "run/queries/q/1/rows/t: " in refused.value.detail
    told = {row[0]: (row[1], row[-1]) for row in again.rows("SHOW LIVE TABLES;")}
    assert told["t"] == (None, f"its rows cannot be read; {hint}")
    assert told["sums"][0] == 1
    again.run("START QUERY q FROM BEGINNING; AWAIT QUERY q IDLE;")
    assert sorted(again.rows("SELECT * FROM t;")) == [(1,), (2,)]


@pytest.mark.slow
def test_live_tables_over_live_tables_are_resumed(opened: Open) -> None:
    one = opened()
    one.run(
        """CREATE STREAM words (word STRING) USING values;
        CREATE LIVE TABLE counts AS SELECT word, count(*) AS c FROM words GROUP BY word;
        CREATE LIVE TABLE most AS SELECT max(c) AS c FROM counts;
        CREATE LIVE TABLE words_of_most AS SELECT word FROM counts JOIN most USING (c) ORDER BY word;
        INSERT INTO words VALUES ('a'), ('b'), ('a'); AWAIT QUERY ALL IDLE;"""
    )
    two = opened()
    assert two.rows("SELECT * FROM words_of_most;") == [("a",)]
    assert two.text("SHOW CREATE LIVE TABLE most;") == (
        "CREATE LIVE TABLE most\n  AS SELECT max(c) AS c FROM counts;"
    )
    two.run("START QUERY ALL; INSERT INTO words VALUES ('b'); AWAIT QUERY words_of_most IDLE;")
    assert two.rows("SELECT * FROM words_of_most;") == [("a",), ("b",)]
