"""How long a started Spark waits for the next console (warm_engine.py)."""

from __future__ import annotations

import os
import sys

from streamsql.config.preferences import COMMAND_LINE, SET, Preferences


def warm_seconds(preferences: Preferences) -> float:
    """How long a started Spark waits for the next console; 0 for none. The config file is for consoles at a
    terminal: a job of CI or cron, whose machine has other work when it ends, asks for it by --warm or SET.
    """
    asked = preferences.origin("warm") in (COMMAND_LINE, SET)
    at_terminal = not os.environ.get("CI") and sys.__stderr__ is not None and sys.__stderr__.isatty()
    return preferences.period("warm") if asked or at_terminal else 0.0
