"""The folder of a file stream as Spark's file source sees it (Spark guide: "File source")."""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
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


HIDDEN = "hidden, or still being written (names with _ or . in front)"
UNMATCHED = "not matched by pathGlobFilter"
OLD = "older than maxFileAge allows"
NESTED = "in sub-folders"
OTHER = "not matched by the path"


@dataclass
class Listing:
    """The files in the folder of a stream. matching: those that Spark reads; passed_over: the others, by the
    reason. Each maps a path to the time of its last change.
    """

    folder: str
    exists: bool = True
    matching: dict[str, float] = field(default_factory=dict)
    passed_over: dict[str, dict[str, float]] = field(
        default_factory=lambda: {why: {} for why in (HIDDEN, UNMATCHED, OLD, NESTED, OTHER)}
    )


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
        parts = os.path.relpath(place, root).split(os.sep)
        why = _passed_over(parts, wanted, deep=deep)
        (files.passed_over[why] if why else files.matching)[place] = changed
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
            why = _passed_over([entry.name], "", deep=False) or OTHER
            files.passed_over[why][entry.path] = entry.stat().st_mtime
    return files


def _files(roots: Iterable[str]) -> Iterator[tuple[str, str]]:
    for root in roots:
        if os.path.isfile(root):
            yield os.path.dirname(root), root
        for folder, _, names in os.walk(root):
            yield from ((root, os.path.join(folder, name)) for name in names)


def _passed_over(parts: list[str], wanted: str, *, deep: bool) -> str:
    """Why Spark does not read a file, "" if it does. parts: of its path below the folder of the stream."""
    hidden = any(p.startswith(".") or (p.startswith("_") and "=" not in p) for p in parts)
    if hidden or parts[-1].endswith("._COPYING_"):
        return HIDDEN
    if not (deep or all("=" in p for p in parts[:-1])):
        return NESTED
    return UNMATCHED if wanted and not fnmatch.fnmatchcase(parts[-1], wanted) else ""


def _set_old_aside(listed: Listing, stream: Stream) -> None:
    """Files older than maxFileAge are not read; the age counts from the newest file. latestFirst with a
    limit of files reads them all.
    """
    written = _AGE.match(stream.option("maxFileAge", "7d").casefold())
    if not written or not listed.matching or written[2] not in _SECONDS or stream.connector == "values":
        return
    oldest = max(listed.matching.values()) - int(written[1]) * _SECONDS[written[2]]
    old = listed.passed_over[OLD] = {p: t for p, t in listed.matching.items() if t < oldest}
    listed.matching = {p: t for p, t in listed.matching.items() if p not in old}


def changed_since(files: Mapping[str, float], read: Mapping[str, int]) -> list[str]:
    """The files that were changed after they had been read. files: the time of their last change, in seconds;
    read: the same in milliseconds, as it was when they were read; whole seconds are compared where it has no
    more.
    """
    changed = []
    for place, at in files.items():
        unit = 1 if read.get(place, 0) % 1_000 else 1_000
        if place in read and int(at * 1_000) // unit > read[place] // unit:
            changed.append(place)
    return changed


def listed_by_sink(folder: str) -> tuple[set[str], float] | None:
    """The log of the file sink that has written a folder: (the local paths that it lists, those of compacted
    logs among them; when it was written last, in seconds since 1970). None without one.
    """
    place = os.path.join(folder, "_spark_metadata")
    try:
        names = [n for n in os.listdir(place) if n.removesuffix(".compact").isdigit()]
        texts = [open(os.path.join(place, n), encoding="utf-8").read() for n in names]  # noqa: SIM115
        changed = max(os.stat(os.path.join(place, n)).st_mtime for n in names)
    except (OSError, ValueError):
        return None
    return {path for text in texts for path, _ in _entries(text)}, changed


def files_read(checkpoint: Checkpoint) -> dict[str, int]:
    """The local paths of all files that a query has read, as its checkpoint's logs have them, and the times
    of their last change as it was then, in milliseconds.
    """
    read: dict[str, int] = {}
    with suppress(OSError, ValueError):  # what cannot be read is not known
        for source in checkpoint.names("sources"):
            for path, changed in files_of_source(checkpoint, source).items():
                read[path] = max(changed, read.get(path, 0))
    return read


def files_of_source(checkpoint: Checkpoint, source: str) -> dict[str, int]:
    """As `files_read`, of one source. source: its number. Raises OSError, ValueError."""
    read: dict[str, int] = {}
    for log in checkpoint.names(f"sources/{source}"):
        if log.removesuffix(".compact").isdigit():
            for path, changed in _entries(checkpoint.read(f"sources/{source}/{log}")):
                read[path] = max(changed, read.get(path, 0))
    return read


def _entries(text: str) -> Iterator[tuple[str, int]]:
    """The files of a log of Spark's, below the line with its version: local path, time of the last change."""
    for line in text.split("\n")[1:]:
        try:
            entry: Any = json.loads(line)
            changed = entry.get("timestamp", entry.get("modificationTime", 0))
            yield unquote(urlsplit(entry["path"]).path), int(changed)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
