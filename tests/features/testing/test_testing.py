"""streamsql test: what each form of EXPECT accepts, and what a person reads where one does not hold."""

from __future__ import annotations

import os
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import run_process
from sql_cases import results_of

from streamsql.features.testing.sessions import SessionFactory
from streamsql.runtime.engine.row_differences import differences
from streamsql.runtime.engine.settings import Settings

ROOMS = ("streamsql/features/testing/", "streamsql/runtime/")

TESTS = Path(__file__).parent / "sql_tests"
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def factory(spark: Any) -> Iterator[SessionFactory]:
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    yield factory
    factory.close()


@pytest.fixture
def results(factory: SessionFactory, monkeypatch: Any) -> Callable[[str], dict[str, str]]:
    """The results of a file of tests; its name in messages is without its folder."""
    monkeypatch.chdir(TESTS)
    return lambda name: results_of([name], factory)


def check_golden(name: str, text: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("words", "messages")),
        "binary_messages",
        "files_and_sinks",
        "change_sets",
    ],
)
def test_what_holds_passes(
    name: str, results: Callable[[str], dict[str, str]], packages: Callable[[str], None]
) -> None:
    if name == "binary_messages":
        packages("avro")
    assert not "\n".join(filter(None, results(f"{name}.test.sql").values()))


@pytest.mark.slow
def test_what_does_not_hold_is_shown_with_its_rows(results: Callable[[str], dict[str, str]]) -> None:
    failed = results("failing.test.sql")
    assert all(failed.values())
    check_golden("failing.txt", "".join(f"FAIL  {name}\n{text}\n" for name, text in failed.items()))


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("none.test.sql", None, "ERROR: file or directory not found: none.test.sql\n"),
        ("empty.test.sql", "", "empty.test.sql:1:1: error[MISSING_TEST]: empty.test.sql has no TEST\n"),
        (
            "open.test.sql",
            "TEST 'a' BEGIN EXPECT t EMPTY;",
            "open.test.sql:1:6: error[UNCLOSED_TEST]: the TEST is not closed\n",
        ),
        (
            "next.test.sql",
            "TEST 'a' BEGIN EXPECT t EMPTY;\nTEST 'b' BEGIN EXPECT t EMPTY; END TEST;",
            "next.test.sql:1:6: error[UNCLOSED_TEST]: the TEST is not closed\n",
        ),
        (
            "twice.test.sql",
            "TEST 'a' BEGIN KILL; END TEST; TEST 'a' BEGIN KILL; END TEST;",
            "error[DUPLICATE_NAME]: there is already a test 'a', in line 1\n",
        ),
        ("word.test.sql", "TEST 'a' BEGIN EXPECT t EMTPY; END TEST;", "hint: did you mean EMPTY?\n"),
        ("bare.test.sql", "TEST 'a' BEGIN END TEST;", "error[SYNTAX_ERROR]: the TEST has no statements\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place(
    file: str, text: str | None, said: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    from streamsql.cli.main import main

    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / file).write_text(text)
    assert main(["test", "--list", "--no-config", file]) == 2
    assert said in "".join(capsys.readouterr())


def test_tests_are_listed_and_chosen(capsys: Any, monkeypatch: Any) -> None:
    from streamsql.cli.main import main

    monkeypatch.chdir(TESTS)
    assert main(["test", "--list", "--no-config", "-k", "late", "words.test.sql"]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("words.test.sql::a late word is dropped\n\n")
    assert "1/4 tests collected (3 deselected)" in listed
    assert main(["test", "--list", "--no-config", "-k", "none of them", "."]) == 2
    assert main(["test", "--no-config"]) == 2
    assert "no file of tests is named" in capsys.readouterr().err


def test_tests_of_packages_in_a_folder_are_not_its_own(tmp_path: Path, capsys: Any) -> None:
    from streamsql.cli.main import main

    for folder in ("sub", ".hidden", "env/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.test.sql").write_text("TEST 'a' BEGIN KILL; END TEST;")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert main(["test", "--list", "--no-config", str(tmp_path)]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if "::" in line]
    assert [line.partition("sub/")[2] for line in listed] == ["a.test.sql::a"]


def test_tests_of_another_folder_have_its_name(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from streamsql.cli.main import main

    (tmp_path / "here").mkdir()
    (tmp_path / "a.test.sql").write_text("TEST 'a' BEGIN KILL; END TEST;")
    monkeypatch.chdir(tmp_path / "here")
    assert main(["test", "--list", "--no-config", "../a.test.sql"]) == 0
    assert "a.test.sql::a\n" in capsys.readouterr().out


def test_a_script_that_is_missing_is_said(tmp_path: Path, capsys: Any) -> None:
    from streamsql.cli.main import main

    (tmp_path / "a.test.sql").write_text("TEST 'a' BEGIN KILL; END TEST;")
    assert main(["test", "--list", "--no-config", str(tmp_path / "a.test.sql")]) == 0
    said = f"there is no script {tmp_path / 'a.sql'} for the tests to run first; -f FILE names another"
    assert said in capsys.readouterr().out
    (tmp_path / "a.sql").write_text("CREATE STREAM s (n INT) USING values;")
    assert main(["test", "--list", "--no-config", str(tmp_path / "a.test.sql")]) == 0
    assert "there is no script" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_command_ends_with_the_code_of_its_tests(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    done = run_process(
        "test",
        "--no-config",
        "--format",
        "tap",
        "-x",
        "--junit",
        str(report),
        "-k",
        "failing.test.sql",
        str(TESTS),
    )
    assert done.code == 1, done.err
    count = (TESTS / "failing.test.sql").read_text().count("END TEST;")
    assert done.out.startswith(f"TAP version 13\n1..{count}\nnot ok 1 - ")
    assert done.out.endswith(f"# 1 tests, 1 failed\nBail out! {count - 1} tests were not run\n")
    assert "# | missing  | dog    |   2 |\n" in done.out
    [suite] = xml.parse(report).getroot()
    [case] = suite
    assert (suite.get("failures"), case.get("line")) == ("1", "5")
    assert Path(case.get("file", "")).name == "failing.test.sql"


def test_rows_are_compared_as_often_as_they_are_there() -> None:
    assert differences([(1, "a"), (1, "a")], [(1, "a")]) == ([(1, "a")], [])
    assert differences([(0.1 + 0.2,)], [(0.3,)]) == ([], [])
    assert differences([(1.0, "a"), (2.0, "a")], [(2.04, "a"), (1.04, "a")], 0.05) == ([], [])
    assert differences([(1.0,)], [(1.06,)], 0.05) == ([(1.0,)], [(1.06,)])
    assert differences([({"a": [1.0, None]},)], [({"a": [1.0, None]},)]) == ([], [])
    assert differences([(float("nan"), None)], [(float("nan"), None)]) == ([], [])
    assert differences([(True,)], [(1,)]) == ([(True,)], [(1,)])
