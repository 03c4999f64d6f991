"""Reads the definitions of a workspace. It is done before the first prompt, so it imports little."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.errors import InputFault, Source

if TYPE_CHECKING:
    from streamsql.language.script import Written

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
