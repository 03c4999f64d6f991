"""Which micro-batch a query is processing, read from the log of a local checkpoint without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streamsql.runtime.checkpoints.checkpoint_files import local_path


def batch_under_way(checkpoint: str) -> str:
    """What a query reads now, `the first micro-batch: 1,900 files`; "" if no micro-batch is under way, or the
    checkpoint is not local.
    """
    place = local_path(checkpoint)
    if place is None:
        return ""
    folder = Path(place)
    number = max(_numbers(folder / "offsets"), default=-1)
    committed = max(_numbers(folder / "commits"), default=-1)
    # The files of the first micro-batch are listed before it has a number.
    files = sum(_count(source / "0") for source in _sources(folder)) if number < 1 else 0
    if committed >= max(number, 0) or (number < 0 and not files):
        return ""
    batch = "the first micro-batch" if number < 1 else f"micro-batch {number}"
    return batch + (f": {files:,} file{'' if files == 1 else 's'}" if files else "")


def _sources(folder: Path) -> list[Path]:
    """The logs of file sources: a file for each micro-batch, with a line for each file that it reads."""
    try:
        return list((folder / "sources").iterdir())
    except OSError:
        return []


def _numbers(folder: Path) -> Iterator[int]:
    try:
        yield from (int(file.name) for file in folder.iterdir() if file.name.isdigit())
    except OSError:
        return


def _count(log: Path) -> int:
    """The files that a log lists, below the line with its version; other sources have other logs."""
    try:
        return log.read_bytes().count(b'\n{"path"')
    except OSError:
        return 0
