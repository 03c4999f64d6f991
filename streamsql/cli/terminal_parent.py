"""A console that can leave its terminal: it runs in a child process, while the parent waits for it.

The shell knows the parent only. When the console detaches, the parent ends, and the child goes on in a
session of its own. Both are in one process group, so that Ctrl-C and Ctrl-Z reach the child.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
from contextlib import suppress
from typing import NoReturn

FORWARDED = signal.SIGUSR1
"""What the child gets for a SIGTERM that somebody has sent to the parent: one to the group reaches both, and
must not count twice.
"""
_DETACHED = signal.SIGUSR2
_SET_SIGNAL = 10  # F_SETSIG
_WAITED_FOR = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, _DETACHED}


class Parent:
    """The parent of a console, seen from it. It is killed with its parent until it detaches."""

    def __init__(self, process: int, pipe: int) -> None:
        self.process = process
        self._pipe = pipe
        # The kernel sends SIGKILL when the other end of the pipe closes: when the parent has ended.
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, _SET_SIGNAL, signal.SIGKILL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        if select.select([pipe], [], [], 0)[0]:  # it has ended before
            os.kill(os.getpid(), signal.SIGKILL)

    def detach(self, log: str) -> None:
        """Free the terminal: the parent ends with exit code 0. log: the file for what is written from now on.
        Raises OSError when it cannot be written.
        """
        redirect(log)
        fcntl.fcntl(self._pipe, fcntl.F_SETFL, os.O_NONBLOCK)
        os.close(self._pipe)
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
    while True:
        seen = signal.sigwaitinfo(_WAITED_FOR)
        if seen.si_signo == _DETACHED and seen.si_pid == child:
            os._exit(0)
        if seen.si_signo == signal.SIGCHLD:
            process, status = os.waitpid(child, os.WNOHANG)
            if process:
                _end_as(status)
        elif seen.si_code <= 0:  # sent by a process, not by the terminal
            os.kill(child, FORWARDED if seen.si_signo == signal.SIGTERM else seen.si_signo)


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
