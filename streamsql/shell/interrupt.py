"""Ctrl-C outside the prompt."""

from __future__ import annotations


class Interrupt:
    """Whether Ctrl-C was pressed. Set by a signal handler, which interrupts the main thread at any step. It
    has no lock: the interrupted step may hold that of a threading.Event.
    """

    def __init__(self) -> None:
        self._pressed = False

    def set(self) -> None:
        self._pressed = True

    def clear(self) -> None:
        self._pressed = False

    def is_set(self) -> bool:
        return self._pressed
