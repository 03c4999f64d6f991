"""The versions of the files that the console writes: older ones are read, later ones are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamsql.errors import UsageFault

WORKSPACE = 2
STATUS = 2
LIVE_TABLE = 4
CHANGES = 1
CONNECT_RECORD = "connect.json"
"""The name of a file, not a version: a workspace whose queries run on a Spark Connect server has it."""
CHECKPOINT = 1
BATCHES = 1
UPGRADE = "use the version of streamsql that wrote it, or a later one"


def check_version(known: Mapping[str, Any], reads: int, what: str) -> None:
    """Raise UsageFault when a file has a later version than this console reads.

    known: its content; without a version it is older than all versions. what: the file, for the message.
    """
    version = known.get("version", 0)
    if not isinstance(version, int) or version > reads:
        raise UsageFault(
            f"{what} was written by a later version of streamsql",
            detail=f"its format is {version}; this console reads formats up to {reads}",
            hint=UPGRADE,
            code="WORKSPACE_VERSION",
        )
