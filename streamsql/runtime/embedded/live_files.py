"""The files of a live table's rows. Exported programs contain this code, so it is self-contained."""

import os
from pathlib import Path


class LiveFiles:
    """The files of one live table. For each micro-batch n there is n.all (all rows after it) or n.new (only
    its own rows), both Arrow IPC files, or n.none for the newest one without rows.
    """

    COMPACT = 50  # after so many micro-batches, all rows are written into one file

    def __init__(self, folder):
        self.folder = Path(folder)

    def follow(self, rows):
        """Write each later micro-batch of rows, a LiveRows, before Spark commits it."""
        whole = rows.mode == "complete"

        def keep(batch, after, new):
            if whole or batch % self.COMPACT == self.COMPACT - 1:
                self.write(f"{batch}.all", after)
                self._drop_before(batch)
            elif new.num_rows:
                self.write(f"{batch}.new", new)
            else:
                self._note_empty(batch)

        rows.keep = keep

    def restore(self, rows):
        """Apply what was written to rows, a LiveRows without rows."""
        for batch, file in self.files():
            rows.take(self.read(file), batch, whole=file.suffix == ".all")
        rows.last_batch = max([rows.last_batch, *(int(f.stem) for f in self.folder.glob("*.none"))])

    def files(self):
        """(micro-batch, file) pairs, beginning with the newest file that holds all rows."""
        files = sorted((int(f.stem), f) for f in self.folder.glob("*.*") if f.suffix in (".all", ".new"))
        whole = max((n for n, (_, f) in enumerate(files) if f.suffix == ".all"), default=0)
        return files[whole:]

    def read(self, file):
        """The Arrow table of a file."""
        import pyarrow as pa

        with pa.memory_map(str(file)) as source:
            return pa.ipc.open_file(source).read_all()

    def write(self, name, table):
        """Write a file atomically."""
        import pyarrow as pa

        part = self.folder / "part"
        with open(part, "wb", opener=self._private) as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        part.replace(self.folder / name)

    def _private(self, path, flags):
        """An opener for files that only their owner may read."""
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)

    def _note_empty(self, batch):
        """Note a micro-batch without rows: the tables of one query are compared by their last ones."""
        with open(self.folder / f"{batch}.none", "w", encoding="utf-8", opener=self._private):
            pass
        for file in self.folder.glob("*.none"):
            if int(file.stem) < batch:
                file.unlink()

    def _drop_before(self, batch):
        for file in self.folder.iterdir():
            if file.suffix in (".all", ".new", ".none") and int(file.stem) < batch:
                file.unlink()


def kept_in(rows, folder):
    """Continue rows, a LiveRows, from the files of a folder, and write its micro-batches there. Without a
    folder the rows are in memory only.
    """
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        files = LiveFiles(folder)
        files.restore(rows)
        files.follow(rows)
