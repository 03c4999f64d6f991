"""The servers of this user: a small file for each, by which `streamsql ps` finds them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamsql import __version__
from streamsql.config.folders import state_folder
from streamsql.runtime.workspace.owned_folders import private, private_folder
from streamsql.server.encoding import PROTOCOL
from streamsql.server.socket_frames import BadFrame, Disconnected, FrameSocket, connect

PATIENCE = 2.0
"""The seconds within which a server must tell its status."""


@dataclass(frozen=True)
class Registered:
    """A server. status: what it tells of itself; None when it does not respond."""

    process: int
    workspace: Path
    since: str
    status: dict[str, Any] | None


def queries_by_state(status: Mapping[str, Any]) -> str:
    """How many queries a status has in each state: 2 running, 1 FAILED; or none."""
    states = list(status.get("queries", {}).values())
    return ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states)) or "none"


def _folder() -> Path:
    return state_folder() / "servers"


def register(workspace: Path, since: str) -> Path:
    """Write the file of the server of this process; it is to be removed at its end. Raises OSError."""
    private_folder(_folder())
    file = _folder() / f"{os.getpid()}.json"
    file.unlink(missing_ok=True)
    with open(file, "w", encoding="utf-8", opener=private) as out:
        out.write(json.dumps({"version": 1, "workspace": str(workspace.resolve()), "since": since}))
    return file


def servers() -> Iterator[Registered]:
    """The servers that run. The files of those that have ended are removed."""
    for file in sorted(_folder().glob("*.json")):
        try:
            entry = json.loads(file.read_text("utf-8"))
            process, workspace = int(file.stem), Path(entry["workspace"])
            os.kill(process, 0)
            status = status_of(workspace)
        except (OSError, ValueError, KeyError, TypeError):  # it has ended
            with suppress(OSError):
                file.unlink()
            continue
        if status is None or status.get("process") == process:
            yield Registered(process, workspace, str(entry.get("since", "")), status)
        else:
            with suppress(OSError):
                file.unlink()


def status_of(workspace: Path) -> dict[str, Any] | None:
    """What the server of a workspace tells of itself; None when it does not respond. Raises OSError when
    there is none.
    """
    frames = FrameSocket(connect(workspace, PATIENCE))
    try:
        frames.send({"hello": "streamsql", "protocol": PROTOCOL, "version": __version__, "status": True})
        answer, _ = frames.receive(PATIENCE)
    except (BadFrame, Disconnected):
        return None
    finally:
        frames.close()
    return answer
