"""What the window cannot hold goes through a pager: STREAMSQL_PAGER, PAGER, or less."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping

# Without -F: less would leave at once when the rows are few and only too wide.
LESS = "less -SRX -+F"


def pager_command(preference: str, env: Mapping[str, str]) -> str:
    """The command to show text with, empty for none. preference: auto, off or a command."""
    if preference == "off":
        return ""
    if preference != "auto":
        return preference
    given = env.get("STREAMSQL_PAGER") or env.get("PAGER")
    return given or (LESS if shutil.which("less") else "")


def page(text: str, command: str) -> bool:
    """Show text with a command, and wait until the reader is done. False when it could not start.

    Ctrl-C is the pager's as long as it runs: it reaches this process too, and is skipped here.
    """
    import subprocess
    import tempfile

    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words or not shutil.which(words[0]):
        return False
    env = {"LESS": "SRX"} | os.environ
    try:
        # A file, not a pipe: leaving early breaks nothing, and nothing waits for the reader.
        with tempfile.TemporaryFile() as file, _interrupts_passed_over():
            file.write(text.encode("utf-8", "backslashreplace"))
            file.seek(0)
            return subprocess.run(command, shell=True, stdin=file, env=env).returncode not in (126, 127)
    except OSError:
        return False


@contextlib.contextmanager
def _interrupts_passed_over() -> Iterator[None]:
    """On the main thread, SIGINT does nothing here; no other thread is ever interrupted by it.

    A handler, since a child would inherit SIG_IGN and its Ctrl-C be dead too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
