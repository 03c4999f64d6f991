"""Unexpected exceptions, which are logged: what only informs shows nothing, a statement fails by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from streamsql.errors import Cancelled, EngineFault
from streamsql.secrets import redact_text

Value = TypeVar("Value")
Nothing = TypeVar("Nothing")

INTERNAL = "INTERNAL"
"""The code of an exception that the console does not expect."""


def informing(of: Callable[[], Value], nothing: Nothing) -> Value | Nothing:
    """The value of a function that only informs: advice, a note, a candidate of completion, the toolbar. If
    the function raises, the fault is logged with its code and `nothing` is returned. Raises Cancelled.
    """
    try:
        return of()
    except Cancelled:
        raise
    except Exception as error:
        log(error, "what informs is omitted")
        return nothing


def internal(error: BaseException) -> EngineFault:
    """The fault that an unexpected exception of a statement is shown as. The traceback is logged."""
    log(error, "a statement or a query fails")
    said = str(error).splitlines()
    return EngineFault(f"{type(error).__name__}: {said[0] if said else ''}".rstrip(": "), code=INTERNAL)


def log(error: BaseException, effect: str) -> None:
    """Write an exception with its code and traceback into the log. effect: what follows of it."""
    logger = logging.getLogger("streamsql")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # without a handler Python would write to the terminal
    code = getattr(error, "code", INTERNAL)
    logger.error("[%s] %s: %s", code, effect, error, exc_info=error)


def log_to(file: Path) -> None:
    """Write the log, and that of Python libraries, into a file (that of the JVM), unless logging is
    configured: the terminal is for the console only. The file is opened with the first line.
    """
    root = logging.getLogger()
    if not root.handlers:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # the console does without a log
        handler = logging.FileHandler(file, encoding="utf-8", delay=True)
        handler.setFormatter(_Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        root.addHandler(handler)


class _Formatter(logging.Formatter):
    """Hides secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_text(super().format(record))
