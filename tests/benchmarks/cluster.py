"""Examples on a standalone cluster on this machine, one worker with two cores, beside the same on local[*].

Usage: cluster.py [rounds [--conf k=v …]]. Prints, of each example, seconds from the start of the process to its end
and seconds of processor time: of the console with its JVM, and of the worker with its executors.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from spark_cluster import Cluster  # noqa: E402

EXAMPLES = ("windowed_word_count.sql", "sessions.sql")


SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: the JVM of a console that has ended becomes a child of this process."""


def cpu_of_children() -> float:
    """The processor time of the children that have ended, once the JVM has."""
    for _ in range(100):
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)
        except ChildProcessError:
            break
    times = os.times()
    return times.children_user + times.children_system


def cpu_of(pid: int) -> float:
    """The processor time of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def run(example: str, flags: list[str], cluster: Cluster | None) -> tuple[float, float, float]:
    """(seconds, processor seconds of the console, of the worker) of one run."""
    worker = cluster.processes["Worker1"].pid if cluster else 0
    before, of_worker = cpu_of_children(), cpu_of(worker) if worker else 0.0
    began = time.perf_counter()
    command = [sys.executable, "-m", "streamsql", "-q", *flags, str(TESTS.parent / "examples" / example)]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    return seconds, cpu_of_children() - before, (cpu_of(worker) - of_worker) if worker else 0.0


def main() -> None:
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        cluster.start()
        try:
            for example in EXAMPLES:
                results = dict[str, list[tuple[float, float, float]]]()
                for _ in range(rounds):
                    for name, flags in (("local", []), ("cluster", [*cluster.flags, *sys.argv[2:]])):
                        measured = run(example, flags, cluster if name == "cluster" else None)
                        results.setdefault(name, []).append(measured)
                medians = {
                    name: [statistics.median(c) for c in zip(*r, strict=True)] for name, r in results.items()
                }
                for name, (wall, console, worker) in medians.items():
                    print(
                        f"{example:25} {name:8} {wall:6.1f} s, processor {console:6.1f} + {worker:.1f} s",
                        flush=True,
                    )
                here, there = medians["local"], medians["cluster"]
                cpu = sum(there[1:]) / sum(here[1:])
                print(f"{example:25} ratio    {there[0] / here[0]:6.2f}, processor {cpu:.2f}", flush=True)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
