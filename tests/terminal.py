"""A console in a true terminal: pexpect holds the process, pyte is the screen that a person sees."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pexpect
import pyte
from console import command

PATIENCE = 90.0
"""Seconds that a screen may take until it shows what is waited for."""


INHERITED = ("NO_COLOR", "PAGER", "STREAMSQL_PAGER", "COLUMNS", "LINES")
"""What the terminal that the tests run in (pytest-xdist sets the last two) says of itself."""


def jvm_of(console: int) -> int:
    """The process id of the JVM of a console with that process id, or whose parent has it."""
    consoles = {console}
    with suppress(OSError):
        consoles |= set(map(int, Path(f"/proc/{console}/task/{console}/children").read_text().split()))
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) in consoles and b"PythonGatewayServer" in command:
            return int(stat.parent.name)
    raise AssertionError("the console has no JVM")


class Terminal:
    """Runs `streamsql` with state and configuration in `folder`. cold: it starts its own JVM in any case."""

    def __init__(
        self,
        folder: Path,
        *args: str,
        columns: int = 100,
        lines: int = 30,
        env: dict[str, str] | None = None,
        cold: bool = False,
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=5000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        places = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
        given = {k: v for k, v in os.environ.items() if k not in INHERITED}
        self.child = pexpect.spawn(
            sys.executable,
            command(*args, cold=cold)[1:],
            env={**given, "TERM": "xterm-256color", **places, **(env or {})},
            dimensions=(lines, columns),
            cwd=str(folder),
        )
        # What a terminal answers when it is asked where its cursor is.
        self.screen.write_process_input = lambda data: self.child.send(data)

    def read(self, seconds: float = 0.05) -> bool:
        """Take in what the console has written; False when it has ended."""
        try:
            data = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except (pexpect.EOF, OSError):
            return False
        self.raw += data
        self.stream.feed(data)
        return True

    @property
    def shown(self) -> str:
        """The screen as of now, line by line."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def scrollback(self) -> str:
        """What has scrolled out on top, and the screen."""
        above = [
            "".join(line[x].data for x in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join([*above, self.shown])

    def until(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Wait until the screen shows a pattern; returns the screen."""
        return self._until(pattern, lambda: self.shown, seconds)

    def until_above(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Wait until screen or scrollback show a pattern."""
        return self._until(pattern, lambda: self.scrollback, seconds)

    def _until(self, pattern: str, text, seconds: float) -> str:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + seconds
        while not re.search(pattern, text(), re.DOTALL | re.MULTILINE):
            assert self.read() or re.search(pattern, text(), re.DOTALL | re.MULTILINE), (
                f"ended without {pattern!r}:\n{self.scrollback}"
            )
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{self.scrollback}"
        return text()

    def prompt(self) -> None:
        """Wait until an empty prompt stands on the screen, Spark being ready."""
        self.until(r"^sql>\s*$.*Spark ready")

    def type(self, text: str) -> None:
        self.child.send(text)

    def run(self, statement: str, pattern: str) -> str:
        """Type a statement at an empty prompt and wait for what it shows."""
        self.type(statement + "\r")
        return self.until(pattern)

    def clear(self) -> None:
        """Ctrl-L: an empty screen with the prompt on top."""
        self.type("\x0c")
        self.until(r"\Asql>\s*$")

    def resize(self, columns: int, lines: int) -> None:
        self.child.setwinsize(lines, columns)
        self.screen.resize(lines, columns)

    def jvm(self) -> int:
        """The process id of the console's JVM."""
        return jvm_of(self.child.pid)

    def exit_code(self) -> int | None:
        """Wait for the end; the exit code, or minus the signal."""
        deadline = time.monotonic() + PATIENCE
        while self.read() and time.monotonic() < deadline:
            pass
        self.child.close()
        return self.child.exitstatus if self.child.signalstatus is None else -self.child.signalstatus

    def kill(self) -> None:
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
        self.child.close(force=True)
