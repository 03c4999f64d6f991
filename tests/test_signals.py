"""Signals are obeyed whenever they come."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from scripts import command

from streamsql.output.printer import Printer
from streamsql.shell.prompt import Prompt

ROOMS = ("streamsql/cli/", "streamsql/runtime/", "streamsql/output/")

PROMPT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

AT_EACH_LINE = """
import os, signal, sys, threading, time
from unittest.mock import MagicMock, Mock

from streamsql.cli import hosting_loop, signals
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.shell.bare_terminal import Interrupt

LINES, CHILDREN, SECONDS = 96, 16, 20


def script():
    cancel = CancelToken()

    def run(sources):
        while not cancel.cancelled:
            time.sleep(0.005)
        return 0

    runner = Mock(cancel=cancel, run=run, failure_code=0, only_queries_left=False)
    return signals.Supervisor(runner, [], None).run()


def server():
    ended = threading.Event()
    host = MagicMock(ended=ended, stop=ended.set)
    return hosting_loop.HostingLoop(Mock(), host, Mock()).run(lambda cancel: 0)


def prompt():
    pressed = Interrupt()
    signal.signal(signal.SIGHUP, lambda number, frame: pressed.set())
    while not sent:
        pressed.clear()
    return 0


sent = []


def run_and_signal(act, line):
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line" and (lines > 0 or signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL)
        if lines == line and not sent:
            sys.settrace(None)
            sent.append(line)
            signal.raise_signal(signal.SIGHUP)
        return trace

    sys.settrace(trace)
    os._exit(0 if act() in (0, 129) and sent else 1)


signals.STEP = hosting_loop.STEP = 0.01
hung = []
for act in (script, server, prompt):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for first in range(1, LINES, CHILDREN):
        children = {}
        for line in range(first, first + CHILDREN):
            child = os.fork()
            if not child:
                run_and_signal(act, line)
            children[child] = line
        deadline = time.monotonic() + SECONDS
        while children and time.monotonic() < deadline:
            for child in list(children):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended and status:
                    hung.append((act.__name__, children[child], status))
                if ended:
                    del children[child]
            time.sleep(0.002)
        for child, line in children.items():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            hung.append((act.__name__, line, "hangs"))
        if hung:
            break
print(hung)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_signal_at_each_line_of_the_main_thread_is_obeyed() -> None:
    """A handler interrupts the main thread wherever it is, also while it holds the lock of what it waits for."""
    done = subprocess.run([sys.executable, "-c", AT_EACH_LINE], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_script_ends_though_nobody_reads_what_it_prints(number: signal.Signals, tmp_path: Path) -> None:
    """The statement is blocked while it holds the terminal, which the last warning needs."""
    (tmp_path / "a.sql").write_text("HELP;\n" * 500)
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        command("--no-config", "--java", "/nowhere", "a.sql"),
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        deadline = time.monotonic() + 60
        while _unread(reading) < size and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    finally:
        process.kill()
        os.close(reading)


def _unread(pipe: int) -> int:
    """The bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.timeout(30)
def test_a_signal_just_before_the_prompt_is_shown_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no prompt yet that the handler could end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    before = {number: signal.getsignal(number) for number in PROMPT_SIGNALS}
    thread_failed = threading.excepthook
    shown = StringIO()
    with create_pipe_input() as keys:
        printer = Printer("table", shown, shown)
        shell = Prompt(lambda: (Mock(open=list), printer), printer, input=keys, output=DummyOutput())
        show = shell.prompt.prompt

        def signal_first(*arguments: Any, **options: Any) -> str:
            signal.raise_signal(signal.SIGTERM)
            return show(*arguments, **options)

        monkeypatch.setattr(shell.prompt, "prompt", signal_first)
        try:
            assert shell.run() == 0
        finally:
            threading.excepthook = thread_failed
            for number, handler in before.items():
                signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_second_signal_at_the_prompt_ends_it_at_once_with_143(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGUSR1 is how the process that waits for the console passes SIGTERM on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ended = list[int]()
    monkeypatch.setattr(os, "_exit", ended.append)
    with create_pipe_input() as keys:
        printer = Printer("table", StringIO(), StringIO())
        shell = Prompt(lambda: (Mock(), printer), printer, input=keys, output=DummyOutput())
        shell._on_signal(number, None)
        assert ended == []
        shell._on_signal(number, None)
        assert ended == [143]
