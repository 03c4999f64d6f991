"""From the start of the process to the first prompt on the screen, and to the first key on it, typed as soon as
the prompt is there: medians of 10, through a pseudo-terminal.

    python tests/benchmarks/first_paint.py [rounds]
    python tests/benchmarks/first_paint.py 0    one round, without the one before it

Beside it litecli, when it is installed: another SQL prompt on the same library.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

import pexpect

REST = 4.0
"""Seconds until the JVM that a console was starting has ended with it."""


def first_paint(command: list[str], prompt: str, folder: str) -> tuple[float, float]:
    """Milliseconds until the prompt is seen, and until a key is."""
    # An installed console is compiled already: this one must be allowed to keep what it compiles.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {f"XDG_{kind}_HOME": folder for kind in ("STATE", "CONFIG", "DATA")}
    began = time.perf_counter()
    child = pexpect.spawn(
        command[0],
        command[1:],
        env={**own, "TERM": "xterm", **places},
        dimensions=(30, 100),
        cwd=folder,
    )
    moments = []
    for shown in (prompt, "z"):
        while child.expect_exact([shown, "\x1b[6n"], timeout=30):
            child.send("\x1b[1;1R")  # where the cursor is: a terminal answers at once
        moments.append((time.perf_counter() - began) * 1000)
        child.send("z")
    child.kill(signal.SIGKILL)
    child.close(force=True)
    time.sleep(REST)
    return moments[0], moments[1]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    console = os.path.join(os.path.dirname(sys.executable), "streamsql")
    with tempfile.TemporaryDirectory() as folder:
        candidates = {"streamsql": ([console], "sql>")}
        if shutil.which("litecli"):
            candidates["litecli"] = (["litecli", os.path.join(folder, "x.db")], "x.db>")
        for name, (command, prompt) in candidates.items():
            if rounds:
                first_paint(command, prompt, folder)  # once, to have the files in memory
            taken = [first_paint(command, prompt, folder) for _ in range(rounds or 1)]
            for what, times in zip(("prompt", "first key"), zip(*taken, strict=True), strict=True):
                print(
                    f"{name:10} {what:9} median {statistics.median(times):.0f} ms, "
                    f"{min(times):.0f} to {max(times):.0f} ms, {len(times)} rounds"
                )


if __name__ == "__main__":
    main()
