"""The file that names the session on a Connect server: with it, the next console finds its queries again."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from streamsql.errors import UsageFault
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.workspace.workspace_files import CONNECT_RECORD

_VERSION = 1


@dataclass(frozen=True)
class RecordedRun:
    """What identifies a run on the server. started: in ISO form; mode: its output mode."""

    id: str
    run: str
    mode: str
    started: str


@dataclass
class SessionRecord:
    """server: sc://HOST:PORT; session: the id that the console has chosen; instance: the id that the server
    has given to it, which is another one after the server was started again. folder: None to keep nothing.
    """

    server: str
    folder: Path | None = None
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    instance: str = ""
    queries: dict[str, RecordedRun] = field(default_factory=dict)

    @classmethod
    def read(cls, server: str, folder: Path | None) -> SessionRecord:
        """The record of a workspace, or a new one. Raises UsageFault for that of another server."""
        saved = _read(folder) if folder else None
        if not saved:
            return cls(server, folder)
        assert folder is not None
        check_record(folder, server)
        names = {f.name for f in fields(RecordedRun)}
        queries = {
            name: RecordedRun(**{key: str(query[key]) for key in names})
            for name, query in saved["queries"].items()
        }
        return cls(server, folder, saved["session"], saved["instance"], queries)

    def renew(self) -> None:
        """Choose another session: the server has closed this one."""
        self.session, self.instance = str(uuid.uuid4()), ""
        self.queries.clear()
        self.save()

    def save(self) -> None:
        """Write the record. Raises OSError."""
        if self.folder is None:
            return
        record = {
            "version": _VERSION,
            "server": self.server,
            "session": self.session,
            "instance": self.instance,
            "queries": {name: asdict(query) for name, query in self.queries.items()},
        }
        text = json.dumps(record, indent=1) + "\n"
        write_file(self.folder / CONNECT_RECORD, lambda out: out.write(text.encode()))


def check_record(folder: Path, server: str) -> None:
    """Raise UsageFault when the queries of a workspace run on another server. server: "" for none."""
    saved = _read(folder)
    of = str(saved["server"]) if saved else server
    if of != server:
        raise UsageFault(
            f"the queries of the workspace {folder} run on {of}",
            hint=f"--remote {of}, or another workspace: -w DIR",
            code="NO_CONNECT",
        )


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        saved = json.loads((folder / CONNECT_RECORD).read_text("utf-8"))
        return saved if saved["version"] == _VERSION and saved["queries"] is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
