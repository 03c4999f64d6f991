"""A terminal that is lost, such as by the end of ssh: reading from it ends, writing to it fails. That may be
known before the signal comes (SIGHUP), which the shell hands on.
"""

from __future__ import annotations

import errno
import os


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
