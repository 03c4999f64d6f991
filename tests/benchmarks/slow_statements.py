"""Check long and deep statements without a JVM. Prints processor seconds of each; wanted: under 2.

python tests/benchmarks/slow_statements.py [word of a case…]
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from properties import Console
from slow_statements import CASES

GIVEN_UP = 40


def check(name: str) -> None:
    size, script = CASES[name]
    text = script(size)
    console = Console("")
    began = time.process_time()
    errors = console.refusals(text)
    shown = errors[0].message[:60] if errors else ""
    print(f"{time.process_time() - began:7.2f} s  {size:7} {name:28} {shown}", flush=True)


def main() -> None:
    for name in CASES:
        if all(word in name for word in sys.argv[1:]):
            process = multiprocessing.Process(target=check, args=(name,))
            process.start()
            process.join(GIVEN_UP)
            if process.is_alive():
                process.kill()
                print(f"over {GIVEN_UP} s  {CASES[name][0]:7} {name}", flush=True)


if __name__ == "__main__":
    main()
