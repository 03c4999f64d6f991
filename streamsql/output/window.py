"""The size of the window."""

from __future__ import annotations

import os
import shutil
import sys


def window() -> os.terminal_size:
    """The current size of the window. COLUMNS and LINES may be outdated, and are used only if there is no
    window.
    """
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return shutil.get_terminal_size()
