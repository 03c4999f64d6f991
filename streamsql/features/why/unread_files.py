"""(a) Files that a query will never read: too old for maxFileAge, changed after they were read, or not in the
log of the file sink that has written their folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import datetime

from streamsql.definitions import Stream
from streamsql.features.why import proposals
from streamsql.features.why.verdict import Fact, Verdict, are, situation
from streamsql.results import counted as count
from streamsql.runtime.engine.moments import length
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.evidence.source_files import OLD, Listing, changed_since, listed_by_sink

_DAY = 86_400
_Folder = tuple[Stream, Listing]


def _folders(evidence: Evidence) -> Iterable[_Folder]:
    """The streams of files that a query reads, with their folders."""
    for stream in evidence.streams:
        files = evidence.files(stream) if stream.connector != "values" else None
        if files is not None:
            yield stream, files


@situation("FILES_TOO_OLD", of=_folders)
def too_old(evidence: Evidence, folder: _Folder) -> Verdict | None:
    """Files were not read, because they are older than the newest one by more than maxFileAge."""
    stream, files = folder
    old = {p: t for p, t in files.passed_over[OLD].items() if p not in evidence.read}
    if not old:
        return None
    age = stream.option("maxFileAge", "7d")
    newest = max(files.matching, key=lambda place: files.matching[place])
    behind = files.matching[newest] - min(old.values())
    dated = datetime.fromtimestamp(files.matching[newest]).isoformat(" ", "seconds")
    why = f"older than the newest file by more than maxFileAge, {age}"
    facts: list[Fact] = [
        ("newest file", f"{os.path.basename(newest)}, dated {dated}"),
        ("files not read: older than maxFileAge allows", f"{len(old)}, such as {_name(old)}"),
        ("older than the newest file by", length(behind)),
    ]
    if files.matching[newest] > time.time() + _DAY:
        name = os.path.basename(newest)
        why = f"the newest file, {name}, is dated {dated}, and maxFileAge, {age}, is counted from that date"
        facts.append(("to resolve it", "the right date for that file, or a longer maxFileAge"))
    wider = proposals.with_options(stream, {"maxFileAge": f"{int(behind // _DAY) + 1}d"})
    return Verdict(
        sentence=f"{count(len(old), 'file')} of {stream.name} {are(len(old))} never read: {why}",
        facts=tuple(facts),
        proposal=proposals.replaced(evidence, wider),
    )


@situation("FILES_CHANGED", of=_folders)
def changed_files(evidence: Evidence, folder: _Folder) -> Verdict | None:
    """Files were changed after they had been read: Spark reads a file once."""
    stream, files = folder
    changed = changed_since(files.matching, evidence.read)
    if not changed:
        return None
    them = "it" if len(changed) == 1 else "them"
    rest = ", such as" if len(changed) > 1 else ":"
    return Verdict(
        sentence=f"{count(len(changed), 'file')} of {stream.name} changed after {evidence.title} had read "
        f"{them}{rest} {_name(changed)}; a file is read once, so its new content is not read",
        facts=(
            ("files changed since they were read", f"{len(changed)}, such as {_name(changed)}"),
            ("to resolve it", "new rows in new files; FROM BEGINNING reads all files as they are now"),
        ),
        proposal=proposals.restart(evidence, "FROM BEGINNING"),
    )


@situation("FILES_HIDDEN", of=_folders)
def hidden_by_log(evidence: Evidence, folder: _Folder) -> Verdict | None:
    """A folder has the log of the file sink that has written it: Spark reads only the files that the log
    lists, under the paths that they had then.
    """
    stream, files = folder
    log = listed_by_sink(files.folder)
    if log is None:
        return None
    listed, changed = log
    gone = [p for p in listed if not os.path.exists(p)]
    present = {*files.matching, *files.passed_over[OLD]} - listed
    hidden = sorted(p for p in present if gone or os.stat(p).st_mtime <= changed)
    if not hidden:
        return None
    moved = f"; {count(len(gone), 'file')} of the log {are(len(gone))} not there: the folder was moved"
    ending = os.path.splitext(hidden[0])[1]
    change = proposals.with_options(stream, {"path": os.path.join(files.folder, f"*{ending}")})
    return Verdict(
        sentence=f"{count(len(hidden), 'file')} of {stream.name} {are(len(hidden))} not read: a file sink "
        f"has written {files.folder}, and Spark reads only what its log, _spark_metadata, lists"
        + (moved if gone else ""),
        facts=(
            ("files not in the log", f"{len(hidden)}, such as {_name(hidden)}"),
            ("files of the log that are not there", len(gone) or ""),
        ),
        proposal=proposals.replaced(evidence, change),
    )


def _name(files: Iterable[str]) -> str:
    return os.path.basename(min(files))
