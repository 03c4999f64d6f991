"""A million rows: the first screen at a prompt beside that of LIMIT 1000, the memory of a file's writing, and csv into a
pipe beside pandas: of 3,000,000 rows, less what 1,000 take, for the start of Spark is not part of it.

Run: python tests/benchmarks/million_rows.py [--pipe | --short]. `--short`: one screen of each, and 20,000 rows into a
csv file.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

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


CODE = """
import resource, sys
{run}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""
CONSOLE = "from streamsql.cli.main import main\nif code := main(): sys.exit(code)"
PANDAS = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.sql.execution.arrow.pyspark.enabled", "true").getOrCreate()
spark.range(int(sys.argv[1])).selectExpr("id", "id * 2 AS d").toPandas().to_csv(sys.stdout, index=False)
"""


def of_console(rows: int, format: str) -> list[str]:
    select = f"SELECT id, id * 2 AS d FROM range({rows});"
    return [sys.executable, "-c", CODE.format(run=CONSOLE), "--format", format, "-e", select]


def of_pandas(rows: int) -> list[str]:
    return [sys.executable, "-c", CODE.format(run=PANDAS), str(rows)]


def into(out: IO[str], command: list[str]) -> tuple[float, int]:
    """(seconds, largest resident size of Python in MB) of a command that writes rows."""
    began = time.monotonic()
    told = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=True).stderr
    return time.monotonic() - began, int(told.split()[-1])


def pipes() -> None:
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert reader.stdin is not None
    for name, command in {"console": lambda rows: of_console(rows, "csv"), "pandas": of_pandas}.items():
        few, many = into(reader.stdin, command(1_000)), into(reader.stdin, command(3_000_000))
        print(
            f"csv into a pipe, {name}: {many[0] - few[0]:.1f} s, {many[1]} MB in Python "
            f"({few[1]} MB with 1,000 rows)"
        )
    reader.stdin.close()
    reader.wait()


def main() -> None:
    if "--pipe" in sys.argv:
        pipes()
        return
    short = "--short" in sys.argv
    formats, sizes = (["csv"], [20_000]) if short else (["csv", "table"], [1_000, 1_000_000, 3_000_000])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        console = Terminal(folder)
        console.prompt()
        for statement in (f"{SELECT} LIMIT 1000;", f"{SELECT};"):
            first_screen(console, statement)
            took = statistics.median(first_screen(console, statement) for _ in range(1 if short else RUNS))
            print(f"first screen: {took:.2f} s  {statement}")
        console.kill()
        for format in formats:
            for rows in sizes:
                with (folder / "out").open("w") as out:
                    took, size = into(out, of_console(rows, format))
                print(f"{rows:9} rows into a {format} file: {took:.1f} s, {size} MB in Python")
        if not short:
            pipes()


if __name__ == "__main__":
    main()
