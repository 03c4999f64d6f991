"""A console that can leave its terminal: it runs in a child process, while the parent waits for it.

The shell knows the parent only. When the console detaches, the parent ends, and the child goes on in a
session of its own. Both are in one process group, so that Ctrl-C and Ctrl-Z reach the child.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from typing import NoReturn

FORWARDED = signal.SIGUSR1
"""What the child gets for a SIGTERM that somebody has sent to the parent: one to the group reaches both, and
must not count twice.
"""
_DETACHED = signal.SIGUSR2
_WAITED_FOR = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, _DETACHED}


class Parent:
    """The parent of a console, seen from it. It is killed with its parent until it detaches."""

    def __init__(self, process: int, pipe: int) -> None:
        self.process = process
        self._pipe = pipe
        self._detached = False
        threading.Thread(target=self._await_end, daemon=True, name="terminal-parent").start()

    def _await_end(self) -> None:
        """End this process with its parent, which alone holds the other end of the pipe."""
        os.read(self._pipe, 1)
        if not self._detached:
            os.kill(os.getpid(), signal.SIGKILL)

    def detach(self, log: str) -> None:
        """Free the terminal: the parent ends with exit code 0. log: the file for what is written from now on.
        Raises OSError when it cannot be written.
        """
        if select.select([self._pipe], [], [], 0)[0]:  # the parent was killed, and the terminal went with it
            os.kill(os.getpid(), signal.SIGKILL)
        redirect(log)
        self._detached = True
        os.setsid()
        os.kill(self.process, _DETACHED)


def redirect(log: str) -> None:
    """Standard output and error into a file that only its owner may read, standard input from nowhere. Raises
    OSError.
    """
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a terminal that is lost: the file gets it
            stream.flush()
    for number, file in ((0, nothing), (1, out), (2, out)):
        os.dup2(file, number)
    os.close(out)
    os.close(nothing)


def fork_console() -> Parent:
    """Go on in a child process; in the parent this does not return. To be called before any thread is
    started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(reading)
        _stand_by(child)
    os.close(writing)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Parent(parent, reading)


def _stand_by(child: int) -> NoReturn:
    """Wait until the console ends or detaches, and end as it does."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # macOS keeps none that is ignored
    while True:
        number, to_forward = _next_signal()
        if number == _DETACHED:
            os._exit(0)
        if number == signal.SIGCHLD:
            process, status = os.waitpid(child, os.WNOHANG)
            if process:
                _end_as(status)
        elif to_forward:
            os.kill(child, FORWARDED if number == signal.SIGTERM else number)


def _next_signal() -> tuple[int, bool]:
    """The next signal, and whether it is to be forwarded to the child: it was sent by a process, which knows
    this one only. One of the terminal reaches both.
    """
    if hasattr(signal, "sigwaitinfo"):
        seen = signal.sigwaitinfo(_WAITED_FOR)
        return seen.si_signo, seen.si_code <= 0
    number = signal.sigwait(_WAITED_FOR)  # macOS does not say who has sent it; no terminal sends SIGTERM
    return number, number == signal.SIGTERM


def _end_as(status: int) -> NoReturn:
    """End with the exit code, or by the signal, of the child."""
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    number = signal.SIGTERM if number == FORWARDED else number
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)
