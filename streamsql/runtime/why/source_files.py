"""The folder of a file stream as Spark's file source sees it (Spark guide: "File source")."""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from streamsql.definitions import Stream
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint

MOST = 100_000
"""Files that are listed; a larger folder is not examined."""
_AGE = re.compile(r"\s*(\d+)\s*([a-z]*)\s*\Z")
_SECONDS = {"": 1e-3, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}


@dataclass
class Listing:
    """The files in the folder of a stream. matching: those that Spark reads; hidden: names that begin with _
    or a dot, and files that are being written; unmatched: not of pathGlobFilter; old: older than maxFileAge;
    nested: in sub-folders that are not read; other: of other names than the glob in the path. Each maps a
    path to the time of its last change.
    """

    folder: str
    exists: bool = True
    matching: dict[str, float] = field(default_factory=dict)
    hidden: dict[str, float] = field(default_factory=dict)
    unmatched: dict[str, float] = field(default_factory=dict)
    old: dict[str, float] = field(default_factory=dict)
    nested: dict[str, float] = field(default_factory=dict)
    other: dict[str, float] = field(default_factory=dict)

    @property
    def passed_over(self) -> list[tuple[str, dict[str, float]]]:
        """(why Spark does not read them, files) of each kind that there is."""
        kinds = [
            ("hidden, or still being written (names with _ or . in front)", self.hidden),
            ("not matched by pathGlobFilter", self.unmatched),
            ("older than maxFileAge allows", self.old),
            ("in sub-folders", self.nested),
            ("not matched by the path", self.other),
        ]
        return [(why, files) for why, files in kinds if files]


def listing(stream: Stream, folder: str = "") -> Listing | None:
    """The files of a stream; None when its folder is not local, or holds too many. folder: where it is, if
    not where the option path says.
    """
    path = folder or stream.option("path")
    local = local_path(path)
    if not path or local is None:
        return None
    roots = sorted(glob.glob(local)) if any(c in local for c in "*?[{") else [local]
    roots = [os.path.abspath(r) for r in roots]  # as the logs of checkpoints have them
    files = Listing(local, any(os.path.exists(r) for r in roots))
    if not roots:
        return _beside_glob(local) or files
    deep = stream.option("recursiveFileLookup").casefold() == "true"
    wanted = stream.option("pathGlobFilter")
    for number, (root, place) in enumerate(_files(roots)):
        if number >= MOST:
            return None
        try:
            changed = os.stat(place).st_mtime
        except OSError:
            continue
        kind = _kind(files, root, place, wanted, deep)
        kind[place] = changed
    _set_old_aside(files, stream)
    return files


def _beside_glob(path: str) -> Listing | None:
    """The files beside those that a glob at the end of a path would match; None where it is elsewhere."""
    folder, _ = os.path.split(path)
    if any(c in folder for c in "*?[{") or not os.path.isdir(folder):
        return None
    files = Listing(folder)
    for entry in os.scandir(folder):
        if entry.is_file():
            hidden = entry.name.startswith(("_", ".")) or entry.name.endswith("._COPYING_")
            (files.hidden if hidden else files.other)[entry.path] = entry.stat().st_mtime
    return files


def _files(roots: Iterable[str]) -> Iterator[tuple[str, str]]:
    for root in roots:
        if os.path.isfile(root):
            yield os.path.dirname(root), root
        for folder, _, names in os.walk(root):
            yield from ((root, os.path.join(folder, name)) for name in names)


def _kind(listed: Listing, root: str, place: str, wanted: str, deep: bool) -> dict[str, float]:
    """The part of a listing that a file belongs to."""
    parts = os.path.relpath(place, root).split(os.sep)
    partitions = all("=" in p for p in parts[:-1])
    if any(p.startswith(".") or (p.startswith("_") and "=" not in p) for p in parts):
        return listed.hidden
    if parts[-1].endswith("._COPYING_"):
        return listed.hidden
    if not (partitions or deep):
        return listed.nested
    if wanted and not fnmatch.fnmatchcase(parts[-1], wanted):
        return listed.unmatched
    return listed.matching


def _set_old_aside(listed: Listing, stream: Stream) -> None:
    """Files older than maxFileAge are not read; the age counts from the newest file. latestFirst with a
    limit of files reads them all.
    """
    written = _AGE.match(stream.option("maxFileAge", "7d").casefold())
    if not written or not listed.matching or written[2] not in _SECONDS or stream.connector == "values":
        return
    oldest = max(listed.matching.values()) - int(written[1]) * _SECONDS[written[2]]
    listed.old = {p: t for p, t in listed.matching.items() if t < oldest}
    for place in listed.old:
        del listed.matching[place]


def files_read(checkpoint: Checkpoint) -> set[str]:
    """The local paths of all files that a query has read, as its checkpoint's logs have them."""
    read: set[str] = set()
    root = f"{checkpoint.root}/sources"
    for source in _names(checkpoint, root):
        for log in _names(checkpoint, f"{root}/{source}"):
            number = log.removesuffix(".compact")
            if number.isdigit():
                read.update(_paths(checkpoint, f"{root}/{source}/{log}"))
    return read


def _names(checkpoint: Checkpoint, folder: str) -> list[str]:
    try:
        return [e.name for e in checkpoint.files.entries(folder)]
    except OSError:
        return []


def _paths(checkpoint: Checkpoint, log: str) -> Iterator[str]:
    try:
        lines = checkpoint.files.read(log).decode("utf-8").split("\n")[1:]
    except (OSError, ValueError):
        return
    for line in lines:
        try:
            entry: Any = json.loads(line)
            yield unquote(urlsplit(entry["path"]).path)
        except (ValueError, KeyError, TypeError):
            continue
