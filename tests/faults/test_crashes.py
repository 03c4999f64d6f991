"""A crash, or a disk that fails, at each step that writes: the rows are right afterwards, or the start is
refused with what to type, and that works.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import drop_tables
from failing_disk import Crash, Disk, broken
from test_reopened import Opened

from streamsql.errors import StreamsqlError
from streamsql.runtime.embedded import durable_files

ROOMS = ("streamsql/runtime/",)

DEFINED = """
CREATE STREAM s (k STRING, n INT) USING values;
CREATE LIVE TABLE t AS SELECT k, sum(n) AS n FROM s GROUP BY k;
INSERT INTO s VALUES ('a', 1), ('b', 2); AWAIT QUERY t IDLE;
INSERT INTO s VALUES ('a', 3); AWAIT QUERY t IDLE; STOP QUERY t;
"""
FEED = "INSERT INTO s VALUES ('c', 4); AWAIT QUERY t IDLE;"
CREATE = "CREATE OR REPLACE LIVE TABLE t AS SELECT k, max(n) AS n FROM s GROUP BY k;"
STATEMENTS = {
    "start": f"START QUERY t; {FEED} STOP QUERY t;",
    "from beginning": f"START QUERY t FROM BEGINNING; {FEED} STOP QUERY t;",
    "from now": f"START QUERY t FROM NOW; {FEED} STOP QUERY t;",
    "replace": f"{CREATE} {FEED} STOP QUERY t;",
    "drop": "DROP LIVE TABLE t;",
}
KINDS = ("crash", "failing disk", "loss of power")
SOME = 5
"""The number of steps at which a test fails by default; STREAMSQL_CRASHES=all takes every step."""


class Base:
    """A workspace with a live table that is stopped. Each test begins with it as it was, in the same folder: a
    checkpoint has the absolute paths of the files that were read.
    """

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self.spark = folder / "w", spark
        self._whole = folder / "whole"
        console = Opened(self.folder, spark)
        console.run(DEFINED)
        console.session.close()
        shutil.copytree(self.folder, self._whole, symlinks=True)

    def opened(self) -> Opened:
        """A console on the workspace as it was."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._whole, self.folder, symlinks=True)
        return Opened(self.folder, self.spark)


@pytest.fixture(scope="module")
def base(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(tmp_path_factory.mktemp("base"), spark)


@pytest.fixture(autouse=True)
def clean(spark: Any) -> Iterator[None]:
    yield
    drop_tables(spark)


def leave(console: Opened, spark: Any) -> None:
    """What the end of a process does: its queries run no longer, and nothing is written."""
    for query in spark.streams.active:
        query.stop()
    console.session.parts.queries.close()


def again(refused: StreamsqlError) -> str:
    """What the hint of a refused start says that can be typed."""
    assert refused.code in ("ROWS_NOT_OF_CHECKPOINT", "ROWS_NOT_READ", "CHECKPOINT_CHANGED"), refused
    assert refused.hint.startswith("START QUERY t "), refused.hint
    assert "FROM BEGINNING" in refused.hint
    return "START QUERY t FROM BEGINNING;"


def check_rows(console: Opened) -> str:
    """Start the query, in the way that is proposed if it is refused, and compare its rows with a batch. Returns
    how it went on.
    """
    if not console.rows("SHOW LIVE TABLES;"):
        console.run(CREATE)
        how = "created again"
    else:
        try:
            console.run("START QUERY t;")
            how = "started"
        except StreamsqlError as refused:
            console.run(again(refused))
            how = refused.code
    console.run("INSERT INTO s VALUES ('d', 5); AWAIT QUERY t IDLE;")
    verified = console.run("VERIFY QUERY t;")
    assert verified
    rows = dict(console.rows("SELECT * FROM t;"))
    assert rows["d"] == 5
    return how


def steps(count: int, kind: str) -> list[int]:
    """The steps at which to fail: all with STREAMSQL_CRASHES=all, else some, other ones for each kind."""
    if os.environ.get("STREAMSQL_CRASHES") == "all":
        return list(range(1, count + 1))
    stride = max(1, count // SOME)
    return list(range(1 + KINDS.index(kind) * stride // len(KINDS), count + 1, stride))


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_right_whichever_step_is_the_last(
    spark: Any, base: Base, monkeypatch: pytest.MonkeyPatch, statement: str, kind: str
) -> None:
    def outcome(at: int | None) -> tuple[str, Disk]:
        """What happens when step `at` fails: how the query goes on afterwards."""
        console, disk = base.opened(), Disk(at, broken if kind == "failing disk" else Crash)
        monkeypatch.setattr(durable_files, "os", disk)
        message = ""
        try:
            for result in console.run(STATEMENTS[statement]):
                message += " ".join(note.code for note in getattr(result, "notes", ()))
        except (Crash, StreamsqlError, OSError) as stopped:
            assert disk.failed, stopped
            message = str(stopped)
        monkeypatch.setattr(durable_files, "os", os)
        leave(console, spark)
        if kind == "loss of power":
            disk.lose()
        assert message or at is None or kind != "failing disk", f"step {at} failed in silence"
        reopened = Opened(base.folder, spark)
        try:
            return check_rows(reopened), disk
        except (AssertionError, StreamsqlError) as wrong:
            wrong.add_note(f"after a failure at step {at}: {message}")
            raise
        finally:
            reopened.session.close()

    how, whole = outcome(None)
    assert how == ("created again" if statement == "drop" else "started")
    outcomes = {at: outcome(at)[0] for at in steps(whole.count, kind)}
    print(f"{statement}, {kind}: {whole.count} steps; {outcomes}")
    assert len(outcomes) >= min(SOME, whole.count)
