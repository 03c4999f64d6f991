"""Persists the rows of live tables, so that a workspace restores them when it is opened.

A micro-batch is written here before Spark commits it. A micro-batch that is retried after a failure has
a number that already exists, and is skipped. The files carry the id of the checkpoint and the number of the
file before; rows that do not fit the checkpoint are refused.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.errors import EngineFault
from streamsql.language.tokens import quote_name
from streamsql.runtime.embedded.durable_files import make_folder, write_file
from streamsql.runtime.embedded.live_files import LiveFiles
from streamsql.runtime.engine.pyspark_import import import_pyspark
from streamsql.runtime.live.kept_columns import Misfit, fitted
from streamsql.runtime.live.recorded_progress import Recorded, misfit
from streamsql.runtime.workspace.owned_folders import claim, remove
from streamsql.runtime.workspace.workspace_files import LIVE_TABLE, check_version

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows


class UnreadableRows(EngineFault):
    """The persisted rows of a live table cannot be read. Its query must not go on without them: its
    checkpoint says that they have been written.
    """


class UnfitRows(UnreadableRows):
    """The persisted rows of a live table do not fit the checkpoint of its query."""


Record = Callable[[], "Recorded | None"]
"""Reads what a query has recorded about its micro-batches; None where that cannot be read without Spark, or
where the rows do not depend on it.
"""


_KIND = ("mode", "keys", "retain", "one", "hidden", "kept", "strict")
"""The arguments of LiveRows that kind.json has, beside the schema; the newer ones may be missing."""


class Journal(LiveFiles):
    """The files of one live table: kind.json, and those of LiveFiles."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._seen = (-1, -1)
        self._own: tuple[str | None, ...] = ()
        self._schema: Any = None

    def begin(self, rows: LiveRows) -> None:
        """Persist the current rows and all later ones. Replaces what was persisted before. Raises OSError."""
        remove(self.folder)
        make_folder(self.folder)
        claim(self.folder)
        with rows.held():
            self.newest = -1
            self.note_kind(rows)
            self.follow(rows)
            if rows.table is not None:
                self.write_all(rows.last_batch, rows.table, rows)

    def renew(self, rows: LiveRows) -> None:
        """Persist the rows that an earlier version of the console has written in the form of this one."""
        with rows.held():
            if rows.table is not None:
                self.write_all(rows.last_batch, rows.table, rows)
            self.note_kind(rows)

    def note_kind(self, rows: LiveRows) -> None:
        """Write what the rows are. Files with other columns are fitted when they are read."""
        kind = {"version": LIVE_TABLE, "schema": rows.schema.jsonValue()}
        kind |= {name: getattr(rows, name) for name in _KIND}
        self._own, self._schema = (rows.KEY, rows.kept), rows.schema
        write_file(self.folder / "kind.json", lambda out: out.write(json.dumps(kind).encode()))

    def read(self, file: Path) -> Any:
        table, query, before = super().read(file)
        return fitted(table, self._schema, own=self._own), query, before

    def load(self, record: Record = lambda: None) -> LiveRows | None:
        """The persisted rows; None when there are none. They go back to the newest micro-batch that is
        recorded: Spark computes those after it again. Raises UnreadableRows, UnfitRows, and UsageFault when a
        later version has written them.
        """
        before = self._recorded(record)
        rows = self._restored()
        now = self._recorded(record)
        if before is None or now is None:
            return rows
        if rows is not None and rows.query == now.query and rows.last_batch > now.planned:
            rows = self._restored(now.planned)
        # Another console may write at this moment: a micro-batch is planned, then written, then committed.
        reason = misfit(rows, replace(now, written=before.written, begun=before.begun))
        if reason:
            raise UnfitRows(reason)
        return rows

    def _recorded(self, record: Record) -> Recorded | None:
        try:
            return record()
        except (OSError, ValueError) as error:
            raise UnreadableRows(f"the checkpoint of its query cannot be read: {error}") from error

    def _restored(self, upto: int | None = None) -> LiveRows | None:
        import pyarrow as pa

        import_pyspark()  # Spark may be starting on another thread
        from pyspark.sql.types import StructType

        from streamsql.runtime.embedded.live_rows import LiveRows

        if not (self.folder / "kind.json").exists() and not self.files():
            return None
        try:
            kind = json.loads((self.folder / "kind.json").read_text("utf-8"))
            check_version(kind, LIVE_TABLE, str(self.folder / "kind.json"))
            schema = StructType.fromJson(kind["schema"])
            rows = LiveRows(schema, **{name: kind[name] for name in _KIND if name in kind})
            rows.retain = sys.maxsize if rows.strict else rows.retain  # the limit is for rows to come
            self._own, self._schema, self.newest = (rows.KEY, rows.kept), rows.schema, -1
            self.restore(rows, upto)
            rows.retain = kind["retain"]
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException, Misfit) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise UnreadableRows(f"{self.folder}: {reason}") from error
        return rows

    def refresh(self, loaded: LiveRows | None, record: Record = lambda: None) -> LiveRows | None:
        """The rows that another console has written so far; None and errors as in `load`.

        loaded: the rows that were loaded before; new micro-batches are added to them.
        """
        import pyarrow as pa

        identity = self._identity()
        if loaded is None or self._seen != identity:
            self._seen = identity
            return self._load_while_written(record)
        try:
            self.restore(loaded)
        except (OSError, ValueError, Misfit, pa.ArrowException):  # a file is just being written or removed
            return self._load_while_written(record)
        return loaded

    def _load_while_written(self, record: Record) -> LiveRows | None:
        for _ in range(4):
            try:
                return self.load(record)
            except UnreadableRows:
                continue
        return self.load(record)

    def _identity(self) -> tuple[int, int]:
        """Identifies this live table: it differs after the table was dropped and created again."""
        try:
            kind = (self.folder / "kind.json").stat()
        except OSError:
            return 0, 0
        return kind.st_ino, kind.st_mtime_ns


class LiveTables(dict[str, "LiveRows"]):
    """The rows of all live tables, by folded name.

    home: gives the folder in which the rows of a live table are; None when rows need not outlive the
    console. With it, `get` also returns the rows that an earlier console persisted. is_live_table: whether
    the catalog has a live table of a name; feeding: the query that writes a live table; record: what that
    query has recorded about its micro-batches. on_begin: called when a live table begins without rows, or has
    other columns.
    """

    def __init__(
        self,
        home: Callable[[str], str] | None,
        is_live_table: Callable[[str], bool],
        feeding: Callable[[str], str] = lambda name: name,
        record: Callable[[str], Recorded | None] = lambda name: None,
    ) -> None:
        super().__init__()
        self.home = home
        self.is_live_table = is_live_table
        self.feeding = feeding
        self.record = record
        self.on_begin: Callable[[], object] = lambda: None
        self._journals: dict[str, Journal] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """The rows of a live table; default if it has none. Raises UnreadableRows, UsageFault."""
        rows = super().get(name)
        journal = self._journal(name) if rows is None and self.is_live_table(name) else None
        if journal is not None:
            rows = self.read(name, lambda: journal.load(lambda: self.record(name)))
            if rows is not None:
                journal.cut(rows.last_batch)
                journal.follow(rows)
                self[name] = rows
        return default if rows is None else rows

    def read(self, name: str, load: Callable[[], LiveRows | None]) -> LiveRows | None:
        """What load returns. Raises its UnreadableRows with the name and what gets the rows back."""
        try:
            return load()
        except UnreadableRows as error:
            raise self.unusable(name, error) from error

    def unusable(self, name: str, why: UnreadableRows) -> UnreadableRows:
        """The error of a statement that needs rows which cannot be used, with what gets the rows back."""
        unfit = isinstance(why, UnfitRows)
        return type(why)(
            f"the rows of {name} {'do not fit the checkpoint of its query' if unfit else 'cannot be read'}",
            detail=why.message,
            hint=f"START QUERY {quote_name(self.feeding(name))} FROM BEGINNING; computes them again",
            code="ROWS_NOT_OF_CHECKPOINT" if unfit else "ROWS_NOT_READ",
        )

    def loaded(self, name: str) -> LiveRows | None:
        """The rows of a live table if they are in memory. Reads no file."""
        return super().get(name)

    def begin(self, name: str, rows: LiveRows, folder: Path) -> None:
        """Add a new live table. folder: where its rows are kept, if rows outlive the console."""
        self[name] = rows
        if self.home is not None:
            self._journals[name] = Journal(folder)
            self._journals[name].begin(rows)
        self.on_begin()

    def fit(self, name: str, schema: Any, retain: int) -> None:
        """Give the rows of a live table the columns and the limit of a changed query. Raises Misfit."""
        rows = self[name]
        names = {field.name.casefold() for field in rows.schema.fields}
        schema = deepcopy(schema)
        for field in schema.fields:
            field.nullable = field.nullable or field.name.casefold() not in names
        with rows.held():
            if rows.table is not None:
                rows.table = fitted(rows.table, schema, rows.keys or (), (rows.KEY, rows.kept))
            rows.schema, rows.retain = schema, retain
            rows.version += 1
            if name in self._journals:
                self._journals[name].note_kind(rows)
        self.on_begin()

    def forget(self, name: str) -> None:
        """Forget the rows of a live table. Its files are removed with the generation of its query."""
        self.pop(name, None)
        self._journals.pop(name, None)

    def follow(self, name: str) -> Callable[[], None]:
        """Follow what another console writes; here nothing is. Returns the function that ends it."""
        return lambda: None

    def renew(self, name: str) -> None:
        """Persist the rows of an earlier version of the console in the form of this one."""
        if name in self._journals:
            self._journals[name].renew(self[name])

    def _journal(self, name: str) -> Journal | None:
        """The files of a live table in the generation that is in use now; None when it has none."""
        home = self.home(name) if self.home else ""
        if not home:
            return None
        folder = Path(os.path.realpath(home))
        journal = self._journals.get(name)
        if journal is None or journal.folder != folder:
            journal = self._journals[name] = Journal(folder)
        return journal
