"""A million rows: the first screen at a prompt beside that of LIMIT 1000, and the memory of a file's writing.

Run: python tests/benchmarks/million_rows.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from terminal import Terminal

RUNS = 5
SELECT = "SELECT id, id * 2 AS d FROM range(1000000)"


def first_screen(console: Terminal, statement: str) -> float:
    """Seconds from Enter to the first screen of the pager."""
    console.clear()
    console.type(statement)
    began = time.monotonic()
    console.type("\r")
    console.until(r"\| +19 \| +38 \|.*^:\s*$")
    took = time.monotonic() - began
    console.type("q")
    console.prompt()
    return took


def file_of(rows: int, format: str, folder: Path) -> tuple[float, int]:
    """(seconds, largest resident size of the console's Python in MB) of a SELECT into a file."""
    began = time.monotonic()
    code = (
        "import resource, sys; from streamsql.cli.main import main; code = main(); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr); sys.exit(code)"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "--format",
        format,
        "-e",
        f"SELECT id, id * 2 AS d FROM range({rows});",
    ]
    with (folder / "out").open("w") as out:
        told = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=True).stderr
    return time.monotonic() - began, int(told.split()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        console = Terminal(folder)
        console.prompt()
        for statement in (f"{SELECT} LIMIT 1000;", f"{SELECT};"):
            first_screen(console, statement)
            took = statistics.median(first_screen(console, statement) for _ in range(RUNS))
            print(f"first screen: {took:.2f} s  {statement}")
        console.kill()
        for format in ("csv", "table"):
            for rows in (1_000, 1_000_000, 3_000_000):
                took, size = file_of(rows, format, folder)
                print(f"{rows:9} rows into a {format} file: {took:.1f} s, {size} MB in Python")


if __name__ == "__main__":
    main()
