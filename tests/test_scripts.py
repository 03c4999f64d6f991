"""Scripts as processes of their own, on a Spark of their own: streams, signals, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Console
from scripts import command, run_process

ROOMS = ("streamsql/cli/", "streamsql/runtime/")

DATA = '{"user": "ann", "n": 1}\n{"user": "bob", "n": 2}\n'
STREAM = "CREATE STREAM clicks (user STRING, n INT) USING json OPTIONS (path 'in');\n"
SINK = "CREATE SINK copy USING json OPTIONS (path 'out');\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text(DATA)
    return tmp_path


def written(folder: Path) -> list[dict[str, object]]:
    """All rows that a json sink wrote, by its own log of finished files."""
    rows = []
    for part in sorted((folder / "out").glob("*.json")):
        rows += [json.loads(line) for line in part.read_text().splitlines()]
    return sorted(rows, key=lambda r: str(r))


def wait_until(
    seen: Callable[[], bool], process: subprocess.Popen[str], what: str, seconds: float = 90
) -> None:
    """Poll for something that a process does; a process that ends before is an error."""
    deadline = time.monotonic() + seconds
    while not seen():
        assert process.poll() is None, f"ended before {what}: {process.stderr and process.stderr.read()}"
        assert time.monotonic() < deadline, f"no {what} after {seconds} s"
        time.sleep(0.05)  # how often one looks, not how long one waits


@pytest.mark.usefixtures("processes")
def test_data_on_stdout_words_on_stderr_and_nothing_of_the_jvm(folder: Path) -> None:
    script = (
        STREAM
        + "SELECT user, sum(n) AS n FROM clicks GROUP BY user ORDER BY user;\nSELECT usr FROM clicks;\n"
    )
    outcome = run_process(
        "--format", "csv", "--on-error", "continue", stdin=script + "SELECT 7 AS x;", cwd=folder
    )
    assert outcome.out == "user,n\nann,1\nbob,2\nx\n7\n"
    assert outcome.err == (
        "stream clicks created\n"
        "(2 rows)\n"
        "<stdin>:3:8: error[UNRESOLVED_COLUMN.WITH_SUGGESTION]: there is no column usr\n"
        "3 | SELECT usr FROM clicks;\n"
        "  |        ^^^\n"
        "hint: did you mean user?\n"
        "(1 row)\n"
    )
    assert outcome.code == 1


@pytest.mark.usefixtures("processes")
def test_the_first_error_stops_a_script(folder: Path) -> None:
    outcome = run_process("-q", "-e", "HELP STOP QUERY; SELEC 2; HELP AWAIT QUERY;", cwd=folder)
    assert outcome.code == 1
    assert "STOP QUERY" in outcome.out
    assert "AWAIT QUERY waits" not in outcome.out


@pytest.mark.usefixtures("processes")
def test_ctrl_c_ends_a_script_with_130(folder: Path) -> None:
    script = STREAM + SINK + "INSERT INTO copy CHECKPOINT 'ck' SELECT * FROM clicks;"
    process = subprocess.Popen(
        command("-e", script), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until((folder / "ck" / "commits" / "0").exists, process, "commit")
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=120)
    assert process.returncode == 130, words
    assert "Traceback" not in words
    assert len(written(folder)) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_available_now_ends_by_itself_and_leaves_nothing_behind(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")  # its own: another worker's files are in the common one
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = (
        STREAM
        + SINK
        + "INSERT INTO copy TRIGGER AVAILABLE NOW SELECT * FROM clicks WHERE n > 1;\n"
        # A table of Spark takes a streaming INSERT, too.
        + "CREATE TABLE copies (user STRING, n INT) USING parquet;\n"
        + "INSERT INTO copies TRIGGER AVAILABLE NOW SELECT * FROM clicks;\nAWAIT QUERY copies;\n"
        + "INSERT INTO copies VALUES ('cid', 3);\nSELECT user, n FROM copies ORDER BY n;"
    )
    outcome = run_process("-q", "--format", "tsv", "-e", script, cwd=folder)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("user\tn\nann\t1\nbob\t2\n")
    assert written(folder) == [{"user": "bob", "n": 2}]
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out"]
    assert not list(temporary.glob("streamsql-*"))


@pytest.mark.usefixtures("processes")
def test_a_query_that_fails_while_running_gives_5(folder: Path) -> None:
    script = STREAM + "CREATE SINK n USING noop;\nINSERT INTO n SELECT CAST(user AS INT) FROM clicks;"
    outcome = run_process("-e", script, cwd=folder)
    assert outcome.code == 5
    assert "-e:3:1: error[CAST_INVALID_INPUT]: query n failed: the value 'ann'" in outcome.err
    assert "Traceback" not in outcome.err
    assert "at org." not in outcome.err


@pytest.mark.usefixtures("processes")
def test_a_time_limit_gives_4(folder: Path) -> None:
    script = "CREATE STREAM r USING rate; CREATE SINK n USING noop; INSERT INTO n SELECT * FROM r;"
    outcome = run_process("--timeout", "3", "-e", script, cwd=folder)
    assert outcome.code == 4
    assert "the script was not done after 3 s" in outcome.err


def test_a_script_says_which_queries_do_not_end(console: Console) -> None:
    console.run("CREATE STREAM r USING rate; CREATE SINK n USING noop; CREATE SINK once USING noop;")
    console.run("INSERT INTO n SELECT * FROM r; INSERT INTO once TRIGGER ONCE SELECT * FROM r;")
    (note,) = console.session.without_end(["n", "once"])
    assert note.text == "n runs until it is stopped; TRIGGER AVAILABLE NOW ends a query with its input"
    console.run("STOP QUERY n;")
    assert console.session.without_end(["n", "once"]) == ()


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_spark_that_cannot_start_gives_3(folder: Path) -> None:
    outcome = run_process("--java", str(folder), "-e", "SELECT 1;", cwd=folder)
    assert outcome.code == 3
    assert "Traceback" not in outcome.err
    outcome = run_process("--conf", "spark.driver.memory=x", "-e", "SELECT 1;", cwd=folder)
    assert outcome.code == 3
    assert "Traceback" not in outcome.err


@pytest.mark.usefixtures("processes")
def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        command("-q", "-e", "SELECT id FROM range(100000);"), stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    _, words = process.communicate(timeout=90)
    assert (process.returncode, words) == (0, "")
