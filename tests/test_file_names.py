"""Names of files and folders that a stream of Spark takes for patterns: each file is read once, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console

from streamsql.errors import InputFault, QueryFault

NAMES = ("[ab]", "c{x,y}", "q?", "s*", "back\\slash")


def _files(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / f"{name}.json").write_text(f'{{"n": {2**number}}}\n')


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_the_name_of_a_pattern_is_refused(console: Console, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    _files(folder, "a", "b", name)
    with pytest.raises(InputFault) as raised:
        console.run(f"CREATE STREAM d (n INT) USING json OPTIONS (path '{folder}');")
    assert f"{name}.json cannot be read as a stream" in raised.value.message
    assert raised.value.span is not None
    assert "recursiveFileLookup 'true'" in raised.value.hint


def test_with_recursive_lookup_each_file_is_read_once(console: Console, tmp_path: Path) -> None:
    _files(tmp_path / "in", "a", "b", *NAMES)
    stream = f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in', recursiveFileLookup 'true');"
    assert console.rows(stream + "SELECT count(*), sum(n) FROM d;") == [(7, 127)]


def test_names_that_are_no_patterns_are_read(console: Console, tmp_path: Path) -> None:
    _files(tmp_path / "in", "a b", "c%20d", "e#f", "g'h", "(i)", "j,k")
    stream = f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in');"
    assert console.rows(stream + "SELECT count(*), sum(n) FROM d;") == [(6, 63)]


def test_a_file_that_is_filtered_out_is_no_matter(console: Console, tmp_path: Path) -> None:
    _files(tmp_path / "in", "a", "b", "[ab]")
    stream = f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in', pathGlobFilter '?.json');"
    assert console.rows(stream + "SELECT count(*), sum(n) FROM d;") == [(2, 3)]


def test_a_file_that_lands_before_the_start_is_refused(console: Console, tmp_path: Path) -> None:
    _files(tmp_path / "in", "a", "b")
    console.run(f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in');")
    _files(tmp_path / "in", "a", "b", "[ab]")
    with pytest.raises(InputFault, match="cannot be read as a stream"):
        console.run("SELECT count(*), sum(n) FROM d;")


def test_a_query_that_reads_such_a_file_later_fails(
    console: Console, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    _files(tmp_path / "in", "a", "b")
    console.run(
        f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in');"
        "CREATE LIVE TABLE t AS SELECT sum(n) AS total FROM d; AWAIT QUERY t IDLE;"
    )
    running = console.session.parts.queries.all["t"]
    _files(tmp_path / "in", "a", "b", "[ab]")
    eventually(lambda: running.status() == "FAILED")
    with pytest.raises(
        QueryFault, match=r"query t failed: micro-batch \d+ has read the file .*\[ab\]\.json"
    ) as raised:
        console.run("AWAIT QUERY t;")
    assert "FROM BEGINNING" in raised.value.hint


@pytest.mark.parametrize("name", ["in[1]", "a{b}"])
def test_a_folder_with_the_name_of_a_pattern_is_refused(console: Console, tmp_path: Path, name: str) -> None:
    _files(tmp_path / name, "a")
    for path in (tmp_path / name, tmp_path / name / "sub"):
        path.mkdir(exist_ok=True)
        with pytest.raises(InputFault, match="cannot be read as a stream") as raised:
            console.run(f"CREATE STREAM d (n INT) USING json OPTIONS (path '{path}');")
        assert raised.value.hint == "rename the folder"


def test_patterns_of_folders_are_read(console: Console, tmp_path: Path) -> None:
    for folder in ("in1", "in2"):
        _files(tmp_path / folder, "a")
    stream = f"CREATE STREAM d (n INT) USING json OPTIONS (path '{tmp_path}/in[12]');"
    assert console.rows(stream + "SELECT count(*), sum(n) FROM d;") == [(2, 2)]
