"""The terminal while no prompt is shown: the first lines of a console, its echo, Ctrl-C, and its loss.

Keys that are typed then are not written between what the console writes, and the next prompt gets them. A
terminal may be lost, such as by the end of ssh: reading from it ends, writing to it fails. That may be known
before the signal comes (SIGHUP), which the shell hands on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamsql.output.console_messages import Messages

PROMPT, IN_CHANGE = "sql> ", "chg> "


def _modes() -> tuple[int, Any] | None:
    """The file and the modes of the terminal on standard input; None if it is none."""
    try:
        import termios
    except ImportError:
        return None
    try:
        file = sys.stdin.fileno()
        return file, termios.tcgetattr(file)
    except (OSError, ValueError, AttributeError, termios.error):
        return None


def set_echo(on: bool) -> None:
    """Switch the terminal's own echo on or off; nothing without a terminal. Without echo an Enter stays an
    Enter for the next prompt, and ends a line of the terminal: else it would be a line feed, as of Ctrl-J.
    """
    terminal = _modes()
    if terminal is None:
        return
    import termios

    file, modes = terminal
    modes[0] = modes[0] | termios.ICRNL if on else modes[0] & ~termios.ICRNL
    modes[3] = modes[3] | termios.ECHO if on else modes[3] & ~termios.ECHO
    modes[6][termios.VEOL] = b"\0" if on else b"\r"
    with contextlib.suppress(termios.error):
        termios.tcsetattr(file, termios.TCSANOW, modes)


def _typed_before() -> str:
    """Take from the terminal what was typed since the process began, while Enters became line feeds: with
    the Enters again.
    """
    terminal = _modes()
    if terminal is None:
        return ""
    import termios

    file, modes = terminal
    at_once = [*modes[:3], modes[3] & ~termios.ICANON, *modes[4:6], list(modes[6])]
    at_once[6][termios.VMIN] = at_once[6][termios.VTIME] = 0
    typed = b""
    with contextlib.suppress(termios.error, OSError):
        termios.tcsetattr(file, termios.TCSANOW, at_once)
        try:
            while more := os.read(file, 4096):
                typed += more
        finally:
            termios.tcsetattr(file, termios.TCSANOW, modes)
    return typed.decode("utf-8", "surrogateescape").replace("\n", "\r")


@contextlib.contextmanager
def no_echo() -> Iterator[None]:
    """A context in which typed keys are not echoed."""
    set_echo(False)
    try:
        yield
    finally:
        set_echo(True)


@contextlib.contextmanager
def echo() -> Iterator[None]:
    """A context in which another program reads the keys: they are echoed, as it expects."""
    set_echo(True)
    try:
        yield
    finally:
        set_echo(False)


@contextlib.contextmanager
def greeting(messages: Messages, *, prompt: bool) -> Iterator[str]:
    """Write what the console is, and the prompt, before the editor is imported, which takes longer than all
    that comes before it; a context in which keys are not echoed, with what was typed before it. prompt:
    whether the editor of the prompt comes next: it draws over this one, and gets the keys typed in the
    meantime.
    """
    with no_echo():
        typed = _typed_before()
        messages.say("streamsql: SQL over streams. HELP; lists statements and topics, Ctrl-D leaves.")
        if prompt and messages.words.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            messages.terminal.status(PROMPT, moving=True)
        yield typed


def is_lost(file: int) -> bool:
    """Whether a file was a terminal, and this is lost."""
    import termios

    try:
        termios.tcgetattr(file)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False


def let_go() -> None:
    """Let what is written to a lost terminal go nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for file in filter(is_lost, (1, 2)):
        os.dup2(nowhere, file)
    os.close(nowhere)


class Interrupt:
    """Whether Ctrl-C was pressed outside the prompt. Set by a signal handler, which interrupts the main
    thread at any step. It has no lock: the interrupted step may hold that of a threading.Event.
    """

    def __init__(self) -> None:
        self._pressed = False

    def set(self) -> None:
        self._pressed = True

    def clear(self) -> None:
        self._pressed = False

    def is_set(self) -> bool:
        return self._pressed
