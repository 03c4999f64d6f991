"""The files of a live table's rows. Exported programs contain this code, so it is self-contained."""

import json
from pathlib import Path

from streamsql.runtime.embedded.durable_files import make_folder, remove_file, sync_folder, write_file


class LiveFiles:
    """The files of one live table. For each micro-batch n there is n.all (all rows after it) or n.new (only
    its own rows), both Arrow IPC files, or n.none for one without rows.

    Each file says to which query (the id in its checkpoint) it belongs, and which file with rows came before
    it. So a file that is missing, or is of another checkpoint, is noticed. Versions before did not write
    that; their files are read as they are. newest: the micro-batch of the newest file with rows, -1 without.
    """

    COMPACT = 50  # after so many micro-batches, all rows are written into one file
    QUERY, BEFORE = b"streamsql.query", b"streamsql.before"

    def __init__(self, folder):
        self.folder = Path(folder)
        self.newest = -1

    def follow(self, rows):
        """Write each later micro-batch of rows, a LiveRows, before Spark commits it."""
        whole = rows.mode == "complete"

        def keep(batch, after, new):
            if whole or batch % self.COMPACT == self.COMPACT - 1:
                self.write_all(batch, after, rows)
            elif new.num_rows:
                self._write(f"{batch}.new", new, rows)
                self.newest = batch
            else:
                self._note_empty(batch, rows)

        rows.keep = keep

    def restore(self, rows, upto=None):
        """Apply what was written to rows, a LiveRows: all that is newer than its last micro-batch. upto: the
        last micro-batch that is applied. Raises ValueError when a file is missing, damaged or of another
        query, OSError.
        """
        for batch, file in self.files(upto):
            # -1: the answer over no rows, which a live table has before its first micro-batch.
            if batch > rows.last_batch or (batch < 0 and rows.table is None):
                self._apply(rows, batch, file)
        empty = [(int(f.stem), f) for f in self.folder.glob("*.none")]
        for batch, file in sorted(pair for pair in empty if upto is None or pair[0] <= upto)[-1:]:
            text = file.read_text("utf-8") if batch > rows.last_batch else ""
            if text:  # versions before wrote an empty file
                noted = json.loads(text)
                self._check(file, rows, noted["query"], noted["before"])
            rows.last_batch = max(rows.last_batch, batch)

    def _apply(self, rows, batch, file):
        whole = file.suffix == ".all"
        table, query, before = self.read(file)
        if before is not None:
            self._check(file, rows, query, None if whole else before)
        elif rows.query is not None:
            raise ValueError(f"{file.name} does not say to which query it belongs")
        rows.take(table, batch, whole=whole)
        self.newest = batch

    def _check(self, file, rows, query, before):
        """Raise ValueError for a file of another query than rows, or where the file before it is missing."""
        if before is not None and before != self.newest:
            missing = "all files before it" if before < 0 else f"the file of micro-batch {before}"
            raise ValueError(f"{missing}, which {file.name} continues, is missing")
        if query and rows.query not in (None, query):
            raise ValueError(f"{file.name} is of another checkpoint than the files before it")
        rows.query = query or rows.query

    def files(self, upto=None):
        """(micro-batch, file) pairs of the files with rows, beginning with the newest that holds all rows."""
        named = [(int(f.stem), f) for f in self.folder.glob("*.*") if f.suffix in (".all", ".new")]
        files = sorted(pair for pair in named if upto is None or pair[0] <= upto)
        whole = max((n for n, f in files if f.suffix == ".all"), default=-1)
        return [(n, f) for n, f in files if n > whole or (n == whole and f.suffix == ".all")]

    def read(self, file):
        """(the Arrow table, the id of the query, the number of the file before) of a file; the latter two are
        None in a file of an earlier version.
        """
        import pyarrow as pa

        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
        noted = table.schema.metadata or {}
        if self.BEFORE not in noted:
            return table, None, None
        others = {key: value for key, value in noted.items() if key not in (self.QUERY, self.BEFORE)}
        return table.replace_schema_metadata(others), noted[self.QUERY].decode(), int(noted[self.BEFORE])

    def write_all(self, batch, table, rows):
        """Write all rows after a micro-batch. The files since the last time remain: where a loss of power
        takes the newest micro-batches from Spark's checkpoint, the rows go back to those before.
        """
        self._write(f"{batch}.all", table, rows)
        self.newest = batch
        wholes = [int(f.stem) for f in self.folder.glob("*.all")]
        self._drop_before(max((n for n in wholes if n < batch), default=-1))

    def cut(self, last):
        """Remove the files of the micro-batches after `last`: they are computed again."""
        gone = [f for f in self._numbered() if int(f.stem) > last]
        for file in gone:
            remove_file(file)
        if gone:
            sync_folder(self.folder)

    def _write(self, name, table, rows):
        import pyarrow as pa

        noted = {self.QUERY: (rows.query or "").encode(), self.BEFORE: str(self.newest).encode()}
        table = table.replace_schema_metadata((table.schema.metadata or {}) | noted)

        def write(sink):
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)

        write_file(self.folder / name, write)

    def _note_empty(self, batch, rows):
        """Note a micro-batch without rows: a checkpoint that is ahead of its rows is noticed."""
        noted = {"query": rows.query or "", "before": self.newest}
        write_file(self.folder / f"{batch}.none", lambda sink: sink.write(json.dumps(noted).encode()))
        for file in self.folder.glob("*.none"):
            if int(file.stem) < batch - self.COMPACT:
                remove_file(file)

    def _numbered(self):
        return [f for f in self.folder.iterdir() if f.suffix in (".all", ".new", ".none")]

    def _drop_before(self, batch):
        for file in self._numbered():
            if int(file.stem) < batch:
                remove_file(file)


def persist_rows(rows, folder):
    """Continue rows, a LiveRows, from the files of a folder, and write its micro-batches there. Without a
    folder the rows are in memory only.
    """
    if folder is not None:
        make_folder(folder)
        files = LiveFiles(folder)
        files.restore(rows)
        files.follow(rows)
