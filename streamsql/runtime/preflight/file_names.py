"""File names that Spark's streams read wrongly.

A stream of files takes a name with one of []{}?*\\ for a pattern, and reads the other files of the
micro-batch again (a batch read does not). With recursiveFileLookup it reads each file once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from streamsql.definitions import Stream
from streamsql.errors import InputFault, QueryFault, Span
from streamsql.language.tokens import quote_name
from streamsql.runtime.checkpoints.checkpoint_files import local_path

_OF_PATTERNS = frozenset("[]{}?*\\")
_REASON = (
    "a stream of files takes a name with one of []{}?*\\ for a pattern, and reads the other files of the"
    " micro-batch again"
)
_HINT = "rename the file; or OPTIONS (recursiveFileLookup 'true'), which reads the files of sub-folders, too"


def _at_risk(stream: Stream) -> bool:
    """Whether a stream would read files with such names wrongly."""
    return bool(stream.option("path")) and stream.option("recursiveFileLookup").casefold() != "true"


def _is_pattern(name: str) -> bool:
    return not _OF_PATTERNS.isdisjoint(name)


def check_file_names(stream: Stream, span: Span | None = None) -> None:
    """Raise InputFault when the local folder of a stream has a file that would be read wrongly. span: of the
    path in the statement.
    """
    folder = local_path(stream.option("path"))
    if not _at_risk(stream) or folder is None:
        return
    chosen = stream.option("pathGlobFilter") or "*"
    for name in _names(Path(folder)):
        if _is_pattern(name) and fnmatchcase(name, chosen):
            raise InputFault(
                f"the file {Path(folder) / name} cannot be read as a stream",
                detail=_REASON,
                hint=_HINT,
                span=span,
                code="PATTERN_IN_NAME",
            )


def _names(folder: Path) -> Iterator[str]:
    """The names of files that Spark would read."""
    try:
        yield from (f.name for f in sorted(folder.iterdir()) if f.name[0] not in "_." and f.is_file())
    except OSError:
        return  # the start itself reports it


def follow_file_names(
    name: str, streams: Iterable[Stream], checkpoint: str, fail: Callable[[QueryFault], object]
) -> Callable[[dict[str, Any]], None] | None:
    """A function that takes the progress reports of a query, and fails it once it has read a file that landed
    later and has such a name. None where no stream is at risk.
    """
    folder = local_path(checkpoint)
    if folder is None or not any(map(_at_risk, streams)):
        return None

    def reported(report: dict[str, Any]) -> None:
        for number, source in enumerate(report.get("sources", [])):
            log = Path(folder) / "sources" / str(number)
            file = next((f for f in _read(log, source) if _is_pattern(f.rpartition("/")[2])), None)
            if file is not None:
                fault = QueryFault(
                    f"micro-batch {report.get('batchId')} has read the file {file}",
                    subject=f"query {name} failed",
                    detail=f"{_REASON}: the rows of that micro-batch are wrong",
                    hint=f"rename the file, then START QUERY {quote_name(name)} FROM BEGINNING; or define the"
                    " stream with OPTIONS (recursiveFileLookup 'true')",
                    code="PATTERN_IN_NAME",
                )
                # Not on this thread, on which Spark tells of the end, too.
                threading.Thread(target=fail, args=(fault,), daemon=True, name=f"fail-{name}").start()
                return

    return reported


def _read(log: Path, source: dict[str, Any]) -> Iterator[str]:
    """The files that a source has read in the micro-batch of a report. log: of its files."""
    ends = [source.get(side) for side in ("startOffset", "endOffset")]
    first, last = (end.get("logOffset", -1) if isinstance(end, dict) else -1 for end in ends)
    for number in range(first + 1, last + 1):
        for path in (log / str(number), log / f"{number}.compact"):
            try:
                lines = path.read_text("utf-8").splitlines()[1:]
            except OSError:
                continue
            for line in lines:
                entry = json.loads(line)
                if entry.get("batchId") == number:
                    yield unquote(entry.get("path", ""))
