"""Explains why Spark did not start, from the exception and the JVM's log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from streamsql.errors import StartFault


class Crash(StartFault):
    """The JVM was ended by a signal. own: of its own, not by somebody or for lack of memory."""

    code = "SPARK_LOST"

    def __init__(self, status: int, hint: str) -> None:
        self.own = status not in (signal.SIGKILL, signal.SIGTERM)
        fact = f"Java was ended by signal {status} while it started"
        super().__init__(f"Java crashed (signal {status})" if self.own else fact, hint=hint)


def start_failure(
    process: subprocess.Popen[bytes], log: Path, start: int, error: Exception | None = None
) -> StartFault:
    """The exception to raise when the JVM, or a call to it, failed."""
    hint = f"the JVM's output is in {log}"
    try:
        status = process.wait(0.5)  # a JVM that exits needs a moment to end
    except subprocess.TimeoutExpired:
        message = _cause(error) if error else "the JVM does not answer"
        if "stopped SparkContext" in message:  # Spark has stopped meanwhile; the log has the cause
            message = _log_cause(log, start)
        if "could not determine effective user" in message:  # by a module of Java for Unix, which Hadoop uses
            user = os.geteuid()
            return StartFault(
                f"Spark needs the name of the user, and the system has none for user {user}",
                hint=f"echo 'streamsql:x:{user}:{os.getegid()}::/tmp:/bin/sh' >> /etc/passwd",
            )
        return StartFault(message, hint=hint)
    if status < 0:
        return Crash(-status, hint)
    return StartFault(_log_cause(log, start), hint=hint)


def _cause(error: Exception) -> str:
    """The message of a failed py4j call and, if it differs, its innermost cause, in one line."""
    thrown: Any = getattr(error, "java_exception", None)
    try:
        if thrown is None:
            return _one_line(str(error) or type(error).__name__)
        outer = _one_line(thrown.toString())
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        inner = _one_line(thrown.toString())
    except Exception:  # the JVM has ended meanwhile
        return _one_line(str(error))
    return outer if inner in outer else f"{outer}: {inner}"


def _one_line(text: str) -> str:
    """The first line, without a leading class name, or only without its package if no sentence follows."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "unknown cause")
    line = re.sub(r"^(?:[a-z]\w*\.)+(?=[A-Z])", "", line)
    name, _, message = line.partition(": ")
    return message if " " in message and re.fullmatch(r"\w+(Exception|Error)", name) else line


def size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _log_cause(log: Path, start: int) -> str:
    """The line of the JVM's output, from byte `start` on, that best explains its end."""
    try:
        with log.open("rb") as stream:
            stream.seek(start)
            lines = stream.read(1_000_000).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    patterns = (
        r'Exception in thread "main" (?P<cause>.*)',
        r"Error: (?!A fatal exception|Could not create)(?P<cause>.*)",
        r"(?P<cause>(?:Unrecognized|Invalid|Conflicting|Too small|Initial heap size).*)",
        r"[-\d]+ [:.\d]+ ERROR \S+: (?P<cause>.*)",
    )
    for pattern in patterns:
        for line in lines:
            if match := re.fullmatch(pattern, line.strip()):
                return _one_line(match["cause"])
    return _one_line(next((line for line in reversed(lines) if line.strip()), "the JVM ended"))
