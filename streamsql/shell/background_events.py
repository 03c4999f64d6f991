"""Holds back the lines about background events while a live view is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable

from streamsql.runtime.console_session import ConsoleSession


class Announcer:
    """Passes lines about background events on. say: prints a line above the prompt."""

    def __init__(self, session: ConsoleSession, say: Callable[[str], None]) -> None:
        self.say = say
        self._free = threading.Event()
        self._free.set()
        session.on_news(self._announce)

    def hold(self) -> None:
        """Delay all lines while a live view is shown."""
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def _announce(self, line: str) -> None:
        self._free.wait()
        self.say(line)
