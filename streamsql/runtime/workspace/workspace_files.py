"""The files of a workspace: the versions of their formats, and the definitions in catalog.sql. The prompt
waits for this module, so it imports little.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.errors import InputFault, Source, UsageFault

if TYPE_CHECKING:
    from streamsql.language.script import Written

WORKSPACE = 2
STATUS = 2
LIVE_TABLE = 4
CHANGES = 1
CONNECT_RECORD = "connect.json"
"""The name of a file, not a version: a workspace whose queries run on a Spark Connect server has it."""
CHECKPOINT = 1
BATCHES = 1
UPGRADE = "use the version of streamsql that wrote it, or a later one"


def check_version(content: Mapping[str, Any], reads: int, what: str) -> None:
    """Raise UsageFault when a file has a later version than this console reads.

    content: its content; without a version it is older than all versions. what: the file, for the message.
    """
    version = content.get("version", 0)
    if not isinstance(version, int) or version > reads:
        raise UsageFault(
            f"{what} was written by a later version of streamsql",
            detail=f"its format is {version}; this console reads formats up to {reads}",
            hint=UPGRADE,
            code="WORKSPACE_VERSION",
        )


CATALOG = "catalog.sql"


def read_statements(folder: Path) -> list[Written]:
    """The statements of a workspace's catalog.sql; none if it does not exist. Raises faults when it is not a
    script, InputFault when it cannot be read.
    """
    file = folder / CATALOG
    try:
        with open(file, encoding="utf-8", newline="") as lines:
            text = lines.read()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputFault(
            f"{file} cannot be read: {error}",
            hint="repair it, or move it away: nothing else is lost",
            code="DAMAGED_WORKSPACE",
        ) from None
    from streamsql.language.script import split_script

    return split_script(Source(str(file), text))
