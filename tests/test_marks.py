"""Each test has one mark, and the slow tests of a change are those whose paths it touches."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import EVERYWHERE, MARKS, ROOT, mark_of, marks_of, touched

ROOMS = ("tests/conftest.py",)


def test_each_test_has_one_mark(request: pytest.FixtureRequest) -> None:
    marks = {item.nodeid: marks_of(item) for item in request.session.items}
    assert {name: found for name, found in marks.items() if len(found) != 1} == {}


@pytest.mark.parametrize(
    ("path", "fixtures", "mark"),
    [
        ("test_laws.py", {"tmp_path"}, "fast"),
        ("test_streams.py", {"console", "spark"}, "spark"),
        ("test_scripts.py", {"processes", "engines"}, "process"),
        ("test_kafka.py", {"kafka", "packages", "spark"}, "process"),
        ("slow/test_jvm.py", set(), "slow"),
        ("truth/slow/test_nexmark.py", {"spark"}, "slow"),
        ("faults/test_kills.py", {"processes"}, "slow"),
    ],
)
def test_folder_and_fixtures_give_the_mark(path: str, fixtures: set[str], mark: str) -> None:
    assert mark_of(path.split("/"), fixtures) == mark


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("case", ["first", "second"])
def test_the_cases_behind_the_first_ones_are_slow(request: pytest.FixtureRequest, case: str) -> None:
    assert marks_of(request.node) == ["fast" if case == "first" else "slow"]


def test_slow_tests_run_when_their_paths_are_touched() -> None:
    rooms = ("streamsql/connectors/",)
    assert touched(rooms, ["README.md", "streamsql/connectors/kafka.py"])
    assert not touched(rooms, ["README.md", "streamsql/shell/prompt.py"])
    assert all(touched(EVERYWHERE, [path + "x.py"]) for path in EVERYWHERE)
    assert not touched(rooms, [])


def test_a_test_that_begins_too_late_is_skipped_and_named(processes: None) -> None:
    """The slow case of this module, with no minute left, on a worker as in CI."""
    options = ["-n", "1", "-p", "no:cacheprovider", "--minutes", "0", "-m", "slow"]
    command = [sys.executable, "-m", "pytest", *options, "tests/test_marks.py"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "no time was left" in run.stdout
    assert "tests/test_marks.py: 1\n" in run.stdout
    assert "1 skipped" in run.stdout and "passed" not in run.stdout


def test_the_paths_of_slow_tests_exist(request: pytest.FixtureRequest) -> None:
    """A folder that was renamed would leave its slow tests out."""
    modules = {i.module for i in request.session.items if marks_of(i) == ["slow"]}  # type: ignore[attr-defined]
    missing = [
        room for module in modules for room in (*module.ROOMS, *EVERYWHERE) if not (ROOT / room).exists()
    ]
    assert missing == []


def test_marks_are_explained(request: pytest.FixtureRequest) -> None:
    listed = request.config.getini("markers")
    assert all(f"{name}: {meaning}" in listed for name, meaning in MARKS.items())
