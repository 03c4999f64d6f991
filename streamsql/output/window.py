"""The size of the window."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO


def window(stream: TextIO | None = None) -> os.terminal_size:
    """The current size of the window that a stream, else standard output, writes to. COLUMNS and LINES may be
    outdated, and are used only if there is no window.
    """
    stream = stream or sys.__stdout__
    try:
        return os.get_terminal_size(stream.fileno() if stream else 1)
    except (OSError, ValueError):
        return shutil.get_terminal_size()
