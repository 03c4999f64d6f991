"""A console that is told to end lets micro-batches finish; told twice, it ends at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import MagicMock, Mock

import pytest
from scripts import command
from terminal import Terminal
from test_scripts import SINK, STREAM, folder, wait_until, written  # noqa: F401  the fixture

from streamsql.cli.open_prompt import _go_on
from streamsql.runtime.workspace.folder import holder

ROOMS = ("streamsql/cli/", "streamsql/shell/", "streamsql/server/", "streamsql/runtime/")

pytestmark = pytest.mark.timeout(300)

SLOW = """
import os, time

def slow(user: str) -> str:
    open("begun", "a").close()
    while not os.path.exists("gate"):
        time.sleep(0.02)
    return user
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
FUNCTION = "CREATE FUNCTION slow AS 'slowness.slow' LANGUAGE PYTHON RETURNS STRING;\n"
INSERT = "INSERT INTO copy CHECKPOINT 'ck' SELECT slow(user) AS user FROM clicks;"


@pytest.fixture
def slow(folder: Path) -> Path:  # noqa: F811
    """A folder with a function whose micro-batch is under way until the file `gate` is there."""
    (folder / "slowness.py").write_text(SLOW)
    (folder / "run.sql").write_text(STREAM + SINK + FUNCTION + INSERT)
    return folder


def run(slow: Path) -> subprocess.Popen[str]:
    """The script in the midst of a micro-batch."""
    (slow / "begun").unlink(missing_ok=True)
    process = subprocess.Popen(
        command("run.sql"), cwd=slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until((slow / "begun").exists, process, "a micro-batch")
    return process


@pytest.mark.usefixtures("cold_start")
def test_a_script_obeys_a_second_signal_at_once_and_lets_a_micro_batch_finish_at_one(slow: Path) -> None:
    process = run(slow)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):  # the micro-batch is waited for
        process.communicate(timeout=2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=5)
    assert process.returncode == 143
    assert written(slow) == []

    process = run(slow)  # from the checkpoint: the same micro-batch
    process.send_signal(signal.SIGTERM)
    (slow / "gate").touch()
    _, words = process.communicate(timeout=60)
    assert process.returncode == 0, words
    assert [r["user"] for r in written(slow)] == ["ann", "bob"]
    assert [p.name for p in (slow / "ck" / "commits").glob("[0-9]*")] == ["0"]


@pytest.mark.usefixtures("cold_start")
def test_a_terminal_that_is_lost_stops_no_query_and_the_server_lets_micro_batches_finish(slow: Path) -> None:
    """As at the end of ssh; the console that goes on is then told to end."""
    console = Terminal(slow)
    workspace = slow / "data" / "streamsql" / "workspace"
    try:
        console.prompt()
        console.run(f"{STREAM}{SINK}{FUNCTION}{INSERT}".replace("\n", " "), "query copy started")
        while not (slow / "begun").exists():
            assert console.read()
        console.child.ptyproc.fileobj.close()  # reading ends and writing fails, before a signal comes
        assert os.waitpid(console.child.pid, 0)[1] == 0
    finally:
        with suppress(OSError, ValueError):
            os.kill(console.child.pid, signal.SIGKILL)
    server = int(json.loads((workspace / "holder.json").read_text())["pid"])
    os.kill(server, signal.SIGTERM)
    (slow / "gate").touch()
    while holder(workspace):
        time.sleep(0.05)  # how often one looks; the time limit is that of the test
    assert [r["user"] for r in written(slow)] == ["ann", "bob"]
    kept = json.loads((workspace / "status.json").read_text())
    assert kept["queries"]["copy"]["status"] == "stopped"
    assert kept["queries"]["copy"]["console"] == "left"


@pytest.mark.timeout(20)
def test_a_signal_that_comes_as_the_terminal_becomes_free_is_obeyed(tmp_path: Path) -> None:
    """Who waits for the terminal may tell the console to end before it has left the prompt's own handler."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    session, server, messages = Mock(), MagicMock(ended=threading.Event()), Mock()
    server.stop = server.ended.set
    parent = Mock(detach=lambda log: os.kill(os.getpid(), signal.SIGTERM))
    try:
        signal.signal(signal.SIGTERM, lambda number, frame: None)  # the prompt's, which has no more effect
        assert _go_on(parent, session, server, tmp_path, messages) == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    session.close.assert_called_once()


@pytest.mark.usefixtures("cold_start")
def test_a_prompt_that_is_told_to_end_asks_nothing(tmp_path: Path) -> None:
    console = Terminal(tmp_path)
    try:
        console.until(r"^sql>")
        console.type("SELECT 1 AS half")
        console.until("half")
        console.child.kill(signal.SIGTERM)
        assert console.exit_code() == 0, console.scrollback
        assert "Traceback" not in console.scrollback
    finally:
        console.kill()
