"""Shows text that does not fit the window with a pager: STREAMSQL_PAGER, PAGER, or less."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping

# Without -F: less would exit at once for few rows that are too wide.
LESS = "less -SRX -+F"


def pager_command(preference: str, env: Mapping[str, str]) -> str:
    """The pager's command; empty for none. preference: auto, off or a command."""
    if preference == "off":
        return ""
    if preference != "auto":
        return preference
    given = env.get("STREAMSQL_PAGER") or env.get("PAGER")
    return given or (LESS if shutil.which("less") else "")


def _exists(command: str) -> bool:
    """Whether the program of a command is there."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and shutil.which(words[0]) is not None


def page(texts: Iterable[str], command: str) -> bool:
    """Show texts with a command as they come: no more are asked for than it reads. Returns when it has ended,
    False when it could not start. Raises what the texts raise, then, too.

    While the pager runs, Ctrl-C is for the pager: this process receives it too, and ignores it.
    """
    import subprocess

    if not _exists(command):
        return False
    env = {"LESS": "SRX"} | os.environ
    with _interrupts_ignored():
        pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=env, bufsize=0)
        assert pager.stdin
        try:
            for text in texts:
                _write_all(pager.stdin.fileno(), text.encode("utf-8", "backslashreplace"))
        except BrokenPipeError:
            pass  # it was left before the end
        finally:
            with contextlib.suppress(OSError):
                pager.stdin.close()
            code = pager.wait()
    return code not in (126, 127)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignores SIGINT on the main thread, the only one that it interrupts.

    Uses a handler: the pager would inherit SIG_IGN and ignore Ctrl-C, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
