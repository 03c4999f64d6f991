"""(a) Files that came so long after others that maxFileAge lets them out."""

from __future__ import annotations

import os

from streamsql.runtime.why import proposals
from streamsql.runtime.why.evidence import Evidence
from streamsql.runtime.why.moments import length
from streamsql.runtime.why.verdict import Verdict, count

_HOUR = 3_600


def too_old(evidence: Evidence) -> Verdict | None:
    """(a) Files were not read, because they are older than the newest one by more than maxFileAge."""
    if not evidence.goes_on:
        return None
    for stream in evidence.streams:
        files = evidence.files(stream)
        old = {p: t for p, t in files.old.items() if p not in evidence.read} if files is not None else {}
        if files is None or not old:
            continue
        age = stream.option("maxFileAge", "7d")
        behind = max(files.matching.values()) - min(old.values())
        wider = proposals.with_options(stream, {"maxFileAge": f"{int(behind // _HOUR) + 1}h"})
        return Verdict(
            situation="FILES_TOO_OLD",
            sentence=f"{count(len(old), 'file')} of {stream.name} {'is' if len(old) == 1 else 'are'} never "
            "read: "
            f"older than the newest file by more than maxFileAge, {age}",
            facts=(
                ("rows in", evidence.rows_in),
                ("rows out", evidence.rows_out),
                ("files not read: older than maxFileAge allows", f"{len(old)}, such as {_name(old)}"),
                ("older than the newest file by", length(behind)),
            ),
            proposal=proposals.replaced(evidence, wider),
        )
    return None


def _name(files: dict[str, float]) -> str:
    return os.path.basename(min(files))
