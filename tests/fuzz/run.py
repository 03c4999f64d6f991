"""Try many generated and changed statements: python tests/fuzz/run.py --count 100000 --seed 1

Prints each kind of failure once, with the text that shows it, and ends with 1 when there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from properties import Console
from statements import texts

CHUNK = 1000
FRESH = 50  # statements that share a catalog


def failures(count: int, seed: int) -> list[tuple[str, str]]:
    """(problem, text) of the texts of a seed that fail; alone, or behind those before it."""
    found: list[tuple[str, str]] = []
    before: list[str] = []
    console = Console()
    for text in texts(count, seed):
        if len(before) == FRESH:
            before, console = [], Console()
        problems = console.problems(text)
        if problems:
            alone = Console().problems(text)
            shown = text if alone else ";\n".join([*before, text])
            found += [(p, shown) for p in alone or problems]
            before, console = [], Console()
        before.append(text)
    return found


def kind_of(problem: str) -> str:
    """The kind of a problem: its text without names and numbers."""
    return re.sub(r"\d+|'[^']*'|:.*\n.*", "#", problem)[:90]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sizes = [min(CHUNK, options.count - n) for n in range(0, options.count, CHUNK)]
    seeds = [options.seed * 1_000_000 + n for n in range(len(sizes))]
    kinds: Counter[str] = Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(failures, sizes, seeds):
            for problem, text in found:
                kind = kind_of(problem)
                kinds[kind] += 1
                if kinds[kind] == 1:
                    print(f"--- {problem}\n{ascii(text[:1500])}\n", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    print(f"{options.count} statements, {sum(kinds.values())} failures")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
