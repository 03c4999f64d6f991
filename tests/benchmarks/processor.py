"""The processor time of this process and its JVM: on a busy machine it means more than wall time."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def seconds() -> float:
    """The processor seconds so far of this process and all its descendants."""
    return sum(_seconds(pid) for pid in _family(os.getpid()))


def megabytes() -> tuple[int, int]:
    """The resident memory of this process, and of its descendants."""
    own, *others = [_megabytes(pid, "VmRSS") for pid in _family(os.getpid())]
    return own, sum(others)


def begin_peak() -> None:
    """Forget how much memory this process has had, for `peak`."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The largest resident memory of this process since `begin_peak`, in megabytes."""
    return _megabytes(os.getpid(), "VmHWM")


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def _megabytes(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(field)), 0)


def each() -> tuple[float, float]:
    """The processor seconds so far of this process, and of its descendants."""
    own, *others = [_seconds(pid) for pid in _family(os.getpid())]
    return own, sum(others)


def threads() -> Counter[str]:
    """The processor seconds so far of the threads of all descendants, by name without numbers."""
    used: Counter[str] = Counter()
    for pid in list(_family(os.getpid()))[1:]:
        for task in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                name, _, rest = task.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            used[re.sub(r"\d+", "N", name)] += sum(map(int, rest.split()[11:13])) / TICK
    return used
