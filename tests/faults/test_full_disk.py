"""Disks that are full while queries run and while the catalog is written: true ones, small, in memory.

`STREAMSQL_KILLS=50 python -m pytest tests/faults -s` fills them in more rounds, each to another point.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline import DEFINITIONS, QUERIES, Pipeline, sorted_totals, written
from scripts import run_process
from terminal import Terminal
from test_kills import KILLS, LONG

from streamsql.runtime.workspace.folder import Workspace
from streamsql.runtime.workspace.store import Store

ROOMS = ("streamsql/runtime/",)

ROUNDS = max(1, KILLS // 5)
PAGE = 4096


class Disk:
    """A small file system. Skips the test where none may be mounted."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.sudo = [] if os.getuid() == 0 else ["sudo", "-n"]
        options = f"size={size},mode=0777"
        mount = [*self.sudo, "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(mount, capture_output=True, text=True)
        except FileNotFoundError as error:
            pytest.skip(f"no small disk can be made here: {error}")
        if done.returncode:
            pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")

    def fill(self, leave: int = 0) -> None:
        """Take all of its space but so many pages."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(PAGE)) == PAGE:
                    pass
            except OSError as error:
                assert error.errno == 28
            filler.truncate(max(0, filler.tell() - leave * PAGE))

    def make_space(self) -> None:
        (self.folder / "filler").unlink()

    def remove(self) -> None:
        subprocess.run([*self.sudo, "umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "w", "32m")
    yield disk
    disk.remove()


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "copies", "4m")
    yield disk
    disk.remove()


def test_a_catalog_that_has_no_room_is_said_and_the_old_one_stays(workspace: Disk, tmp_path: Path) -> None:
    def run(script: str) -> tuple[str, str]:
        done = run_process("-w", "w", "--format", "csv", "-e", script, cwd=tmp_path)
        assert done.code == 0, done.err
        return done.out, done.err

    catalog = workspace.folder / "catalog.sql"
    run("CREATE STREAM first (n INT) USING values;")
    before = catalog.read_bytes()
    workspace.fill()
    _, words = run("CREATE STREAM second (n INT) USING values; SHOW STREAMS;")
    assert "note: the workspace could not be written: no space left on device" in words
    assert catalog.read_bytes() == before
    shown, words = run("SHOW STREAMS;")  # a full disk keeps nobody from opening it
    assert [line.split(",")[0] for line in shown.splitlines()[1:]] == ["first"]
    workspace.make_space()
    _, words = run("CREATE STREAM third (n INT) USING values;")
    assert "could not" not in words
    assert [w.text.split()[2] for w in Store(workspace.folder).statements()] == ["first", "third"]
    Workspace(workspace.folder).close()


def test_queries_go_on_once_there_is_space_again(workspace: Disk, copies: Disk, tmp_path: Path) -> None:
    """The disk of the workspace is full, then, in the long form, the one of a sink."""
    pipeline = Pipeline(tmp_path, seed=11)
    pipeline.feed()
    (tmp_path / "all.sql").write_text(DEFINITIONS)
    prompt = Terminal(tmp_path, "-w", "w", columns=120, lines=44)
    try:
        prompt.prompt()
        prompt.run("SOURCE 'all.sql';", "query joined started")
        prompt.run("AWAIT QUERY ALL IDLE;", "^idle")
        for number in range(ROUNDS):
            prompt.clear()
            catalog = (workspace.folder / "catalog.sql").read_bytes()
            workspace.fill(0 if not number else pipeline.random.randrange(100))
            until_failed(prompt, pipeline, set(QUERIES))
            workspace.fill()
            prompt.run(
                f"CREATE STREAM s{number} (n INT) USING values;", "could not be written: no space left"
            )
            assert (workspace.folder / "catalog.sql").read_bytes() == catalog
            prompt.clear()
            prompt.run("SELECT count(*) AS users FROM counts;", r"\| +4 \|")
            prompt.run(
                "DESCRIBE QUERY counts;", "is full.*free disk space; START QUERY counts; resumes from its"
            )
            assert f"thediskof{workspace.folder}/" in without_breaks(prompt.shown)
            workspace.make_space()
            go_on(prompt, "ALL")
            compare(prompt, pipeline)
        if LONG:
            prompt.clear()
            copies.fill()
            until_failed(prompt, pipeline, {"copies"})
            prompt.run(
                "DESCRIBE QUERY copies;", "is full.*free disk space; START QUERY copies; resumes from its"
            )
            assert f"the disk of {copies.folder} is full".replace(" ", "") in without_breaks(prompt.shown)
            prompt.clear()
            prompt.run("SHOW QUERIES;", r"totals +\| running.*joined +\| running")
            copies.make_space()
            go_on(prompt, "copies")
            compare(prompt, pipeline)
        assert not re.search(r"Traceback|java\.|\bat org\.|py4j", prompt.scrollback), prompt.scrollback
    finally:
        prompt.kill()
    if LONG:
        words = f"{ROUNDS} rounds on a full disk, {pipeline.batches()} micro-batches"
        print(f"\n{words}", file=sys.stderr)


def without_breaks(screen: str) -> str:
    """What stands in a table's cells, in one piece."""
    return re.sub(r"[\s|]", "", screen)


def until_failed(prompt: Terminal, pipeline: Pipeline, names: set[str]) -> None:
    """Feed until the prompt has said of all of them that they failed, and why."""
    for _ in range(100):
        pipeline.feed(files=1)
        for _ in range(20):
            prompt.read()
            if names <= set(re.findall(r"query (\w+) failed: no space left on device;", prompt.shown)):
                return
    raise AssertionError(prompt.scrollback)


def go_on(prompt: Terminal, which: str) -> None:
    prompt.clear()
    prompt.run(f"START QUERY {which};", "^started: .*copies")
    prompt.run("AWAIT QUERY ALL IDLE;", "^idle")


def compare(prompt: Terminal, pipeline: Pipeline) -> None:
    """All results are those of the whole input, row for row."""
    expected = pipeline.expected()
    prompt.clear()
    prompt.type("SELECT user, n, total FROM counts ORDER BY user;\r")
    shown = prompt.until(r"\(\d+ rows?, ")
    rows = re.findall(r"^\| (\w+) +\| +(\d+) \| +(\d+) \|$", shown, re.MULTILINE)
    assert [(u, int(n), int(t)) for u, n, t in rows] == expected["counts"]
    assert sorted_totals(pipeline.folder) == expected["totals"]
    assert written(pipeline.folder / "copies", "id", "user") == expected["copies"]
    assert written(pipeline.folder / "joined", "click", "buy") == expected["joined"]
