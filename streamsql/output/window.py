"""The size of the window."""

from __future__ import annotations

import os
import shutil
import sys


def window() -> os.terminal_size:
    """The window as it is now; COLUMNS and LINES, where they are set, tell how it was at that time and
    count only where there is no window.
    """
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return shutil.get_terminal_size()
