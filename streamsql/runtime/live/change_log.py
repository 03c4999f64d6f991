"""What a query over live tables has written into its sink, so that it writes only changes after a restart.

The rows of a version are noted here before they are written, and again once they are. A version that is not
known to be written is written again, with the same changes as before: so a sink that notes the version skips
it (exactly once).
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from streamsql.errors import RuleFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.live.kept_columns import Misfit, fitted
from streamsql.runtime.workspace.formats import CHANGES, check_version
from streamsql.runtime.workspace.owned_folders import claim, private, private_folder

KIND = "kind.json"


class ChangeLog:
    """The files of one query: kind.json; n.all, the rows that were written last, as version n; n.next, those
    that are being written. query: names the query to its sink; version: -1 before the first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.query = str(uuid.uuid4())
        self.version = -1
        self.rows: Any = None
        self.pending: tuple[int, Any] | None = None

    def forget(self) -> None:
        """Remove what is known: the next version has all rows."""
        for file in self.folder.glob("*.*"):
            file.unlink()

    def open(self, name: str, schema: Any, keys: tuple[str, ...], *, accept: bool = False) -> None:
        """Read what is known, or begin. accept: rows with other columns go on with those of now. Raises
        RuleFault when rows with other columns or keys were written, UsageFault when a later version of the
        console has written them.
        """
        kind = {"version": CHANGES, "schema": schema.jsonValue(), "keys": list(keys)}
        try:
            known = json.loads((self.folder / KIND).read_text("utf-8"))
        except FileNotFoundError:
            claim(self.folder.parent)
            private_folder(self.folder)
            self._write(KIND, json.dumps(kind | {"query": self.query}).encode())
            return
        check_version(known, CHANGES, str(self.folder / KIND))
        changed, fits = known["schema"] != kind["schema"], known["keys"] == kind["keys"]
        if changed and not (accept and fits) or not fits:
            raise _changed(name, fits)
        self.query = known["query"]
        try:
            for version, file in sorted((int(f.stem), f) for f in self.folder.glob("*.all")):
                self.version, self.rows = version, fitted(_read(file), schema, keys)
            for version, file in sorted((int(f.stem), f) for f in self.folder.glob("*.next")):
                self.pending = (version, fitted(_read(file), schema, keys))
        except Misfit:
            raise _changed(name, fits=False) from None
        if changed:
            self._write(KIND, json.dumps(known | kind).encode())

    def begin(self, version: int, rows: Any) -> None:
        """Rows are about to be written."""
        import pyarrow as pa

        part = self.folder / "part"
        with open(part, "wb", opener=private) as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        part.replace(self.folder / f"{version}.next")

    def done(self, version: int) -> None:
        """Rows are written."""
        (self.folder / f"{version}.next").replace(self.folder / f"{version}.all")
        for file in self.folder.glob("*.all"):
            if int(file.stem) < version:
                file.unlink()

    def _write(self, name: str, data: bytes) -> None:
        part = self.folder / "part"
        with open(part, "wb", opener=private) as out:
            out.write(data)
        part.replace(self.folder / name)


def _changed(name: str, fits: bool) -> RuleFault:
    """The fault of a query that has written rows with other columns. fits: whether it can go on with them."""
    ways = [
        f"START QUERY {quote_name(name)} with one of",
        "FROM BEGINNING   writes all rows again",
        "FROM NOW         writes only what changes from now on",
        *(("ACCEPT CHANGES   writes what has changed since, with the columns of now",) if fits else ()),
    ]
    return RuleFault(
        f"{name} has written rows with other columns{'' if fits else ' or another key'}",
        detail="an input, the sink or the query has changed since",
        hint="\n".join(ways),
        code="WRONG_COLUMNS",
    )


def _read(file: Path) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
