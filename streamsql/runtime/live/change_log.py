"""What a query over live tables has written into its sink, so that it writes only changes after a restart.

The rows of a version are noted here before they are written, and again once they are. A version that is not
known to be written is written again, with the same changes as before: so a sink that notes the version skips
it (exactly once).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsql.errors import EngineFault, RuleFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.embedded.durable_files import make_folder, move, remove_file, sync_folder, write_file
from streamsql.runtime.live.kept_columns import Misfit, fitted
from streamsql.runtime.workspace.owned_folders import claim
from streamsql.runtime.workspace.workspace_files import CHANGES, check_version

KIND = "kind.json"


class UnreadableChanges(EngineFault):
    """What a query over live tables has written into its sink is not known any more."""

    def __init__(self, name: str, folder: Path, error: Exception) -> None:
        missing = isinstance(error, FileNotFoundError)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        super().__init__(
            f"what {name} has written into its sink is not known",
            detail=f"{folder}: {'the record of it is gone' if missing else reason}",
            hint=f"START QUERY {quote_name(name)} with one of\n"
            "FROM BEGINNING   writes all rows again\n"
            "FROM NOW         writes only what changes from now on",
            code="ROWS_NOT_READ",
        )


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
        """Remove the files of the rows: the next version has all rows. Raises OSError."""
        if self.folder.is_dir():
            # The file KIND goes first: without it the others are not read. `begin_new` removes the files that
            # a crash leaves.
            for file in sorted(self.folder.glob("*.*"), key=lambda file: file.name != KIND):
                file.unlink()
                sync_folder(self.folder)

    def begin_new(self, schema: Any, keys: tuple[str, ...]) -> None:
        """Begin without rows. Raises OSError."""
        self.forget()
        claim(self.folder.parent)
        make_folder(self.folder)
        self._write_kind(_kind(schema, keys) | {"query": self.query})

    def open(self, name: str, schema: Any, keys: tuple[str, ...], *, accept: bool = False) -> None:
        """Read the rows and their kind from the files. accept: rows with other columns go on with those of
        now. Raises RuleFault when rows with other columns or keys were written, UsageFault when a later
        version of the console has written them, UnreadableChanges when they are missing or damaged.
        """
        import pyarrow as pa

        kind = _kind(schema, keys)
        try:
            saved = json.loads((self.folder / KIND).read_text("utf-8"))
            check_version(saved, CHANGES, str(self.folder / KIND))
            changed, fits = saved["schema"] != kind["schema"], saved["keys"] == kind["keys"]
            if not saved.get("handed") and (changed and not (accept and fits) or not fits):
                raise _changed(name, fits)
            self.query = saved["query"]
            for version, file in sorted((int(f.stem), f) for f in self.folder.glob("*.all")):
                self.version, self.rows = version, fitted(read_rows(file), schema, keys)
            for version, file in sorted((int(f.stem), f) for f in self.folder.glob("*.next")):
                if version > self.version:
                    self.pending = (version, fitted(read_rows(file), schema, keys))
        except Misfit:
            raise _changed(name, fits=False) from None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise UnreadableChanges(name, self.folder, error) from error
        if changed or saved.pop("handed", False):
            self._write_kind(saved | kind)

    def hand_over(self, folder: Path, name: str, schema: Any, keys: Sequence[str], *, by_key: bool) -> None:
        """Give another generation of a query, in a folder, the record of what was written: its first version
        is the difference. schema, keys: of its result; by_key: whether the sink needs no more than the key of
        a row that it loses. Raises RuleFault where the rows do not fit that, or where a version is not known
        to be written, UnreadableChanges, OSError.
        """
        import pyarrow as pa

        try:
            saved = json.loads((self.folder / KIND).read_text("utf-8"))
            check_version(saved, CHANGES, str(self.folder / KIND))
            versions = [file for file in self.folder.glob("*.*") if file.stem.isdigit()]
            newest = max(versions, key=lambda file: int(file.stem), default=None)
            if newest and newest.suffix == ".next":
                raise _not_written(name)
            rows = _as_handed(read_rows(newest), schema, keys if by_key else None) if newest else None
        except Misfit as column:
            raise _not_handed(name, str(column)) from None
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise UnreadableChanges(name, self.folder, error) from error
        other = ChangeLog(folder)
        other.forget()
        make_folder(folder)
        if newest:
            write_rows(folder / newest.name, rows)
        other._write_kind(saved | _kind(schema, tuple(keys)) | {"handed": True})

    def result(self) -> tuple[Any, tuple[str, ...]]:
        """(the schema of the result that was written, its keys). Raises OSError, ValueError, KeyError."""
        from pyspark.sql.types import StructType

        saved = json.loads((self.folder / KIND).read_text("utf-8"))
        return StructType.fromJson(saved["schema"]), tuple(saved["keys"])

    def begin(self, version: int, rows: Any) -> None:
        """Rows are about to be written. Raises OSError."""
        write_rows(self.folder / f"{version}.next", rows)

    def done(self, version: int) -> None:
        """Rows are written. Raises OSError."""
        move(self.folder / f"{version}.next", self.folder / f"{version}.all")
        for file in self.folder.glob("*.all"):
            if int(file.stem) < version:
                remove_file(file)

    def _write_kind(self, kind: dict[str, Any]) -> None:
        write_file(self.folder / KIND, lambda out: out.write(json.dumps(kind).encode()))


def _kind(schema: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    return {"version": CHANGES, "schema": schema.jsonValue(), "keys": list(keys)}


def _as_handed(rows: Any, schema: Any, keys: Sequence[str] | None) -> Any:
    """Rows in the columns of another result. keys: the columns that it must have, None for all: others are
    NULL where they do not fit. Raises Misfit.
    """
    while True:
        try:
            return fitted(rows, schema)
        except Misfit as misfit:
            column = str(misfit).casefold()
            if keys is None or column in {key.casefold() for key in keys}:
                raise
            rows = rows.select([name for name in rows.column_names if name.casefold() != column])


def _not_written(name: str) -> RuleFault:
    return RuleFault(
        f"{name} has begun to write changes, and it is not known whether its sink has them",
        detail="the difference begins with what was written",
        hint=f"START QUERY {quote_name(name)}; writes them",
        code="QUERY_NOT_RUNNING",
    )


def _not_handed(name: str, column: str) -> RuleFault:
    return RuleFault(
        f"the values that {name} has written as {column} do not fit the column {column} of the other query",
        detail="the sink gets each row that changes as it was, too",
        hint=f"another name for the column; or DROP QUERY {quote_name(name)}; and INSERT INTO another sink",
        code="WRONG_TYPE",
    )


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


def write_rows(file: Path, rows: Any) -> None:
    """Write an Arrow table into a file. Raises OSError."""
    import pyarrow as pa

    def write(sink: Any) -> None:
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)

    write_file(file, write)


def read_rows(file: Path) -> Any:
    """The Arrow table in a file. Raises OSError, exceptions of Arrow."""
    import pyarrow as pa

    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
