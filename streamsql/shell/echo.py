"""Keys that are typed while no prompt is shown: the terminal does not write them between what the console
writes, and the next prompt gets them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


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
    """Switch the terminal's own echo on or off; nothing without a terminal."""
    known = _modes()
    if known is None:
        return
    import termios

    file, modes = known
    modes[3] = modes[3] | termios.ECHO if on else modes[3] & ~termios.ECHO
    with contextlib.suppress(termios.error):
        termios.tcsetattr(file, termios.TCSANOW, modes)


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
