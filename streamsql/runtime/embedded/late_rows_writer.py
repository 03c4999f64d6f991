"""Writes the late rows of a query into a sink, micro-batch by micro-batch. EXPLAIN PYSPARK prints this code,
so it is self-contained.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any


class LateRowsWriter:
    """Writes the rows that the watermark of a query has dropped, each once, also after a failure.

    folder: the checkpoint; rows: the reader of late rows; write: a function (rows, batch_id), for which a
    batch_id that is repeated changes nothing (else a row may be there more than once, after a failure);
    select: gives rows the columns of the sink.

    Empty files in the folder late_rows of the checkpoint record what is done: begun-N before the late rows of
    all micro-batches up to N are written, under the batch_id N, and done-N after that. After a failure
    begun-N is written again, with the same rows.
    """

    NOTES = "late_rows"
    OFTEN = 20

    def __init__(
        self, spark: Any, folder: str, rows: Any, write: Callable, select: Callable | None = None
    ) -> None:
        self.spark = spark
        self.rows = rows
        self.log = rows.log
        self.write = write
        self.select = select
        self.written = -1
        self.noted = -1
        self.pending = -1
        self.left = -1

    def begin(self) -> None:
        """Before the query starts: go on where it ended, or after the newest micro-batch at first."""
        done, begun = self._noted("done"), self._noted("begun")
        self.left = max(self.log.numbers("commits"), default=-1)
        self.pending = max(begun, default=-1)
        self.written = max(done, default=-2)
        if self.written == -2:
            self.written = self.left
            self._done(self.written)
        self.noted = self.written
        self._selected(self.rows.empty())  # refuses a sink with other columns

    def write_left(self) -> None:
        """Write what earlier runs have left: the query may be some micro-batches further already."""
        self.write_new(upto=self.left)

    def write_new(
        self, without: frozenset = frozenset(), upto: int | None = None, last: bool = False
    ) -> None:
        """Write the late rows of the micro-batches that are committed. without: those that are known to have
        none, so that no log is listed for them; upto: the last one to be read; last: the query has ended.
        """
        new = range(self.written + 1, 0 if upto is None else upto + 1)
        if new and self.pending <= self.written and without.issuperset(new):
            self._passed(new[-1], last)
            return
        committed = [n for n in self.log.numbers("commits") if upto is None or n <= upto]
        newest = max(committed, default=-1)
        if self.pending > self.written:
            self._write(self.pending, [n for n in committed if self.written < n <= self.pending])
        numbers = [n for n in committed if n > self.written and n not in without]
        if numbers:
            self.log.put(f"{self.NOTES}/begun-{newest}")
            self.pending = newest
            self._write(newest, numbers)
        self._passed(newest, last)

    def follow(self, query: Any) -> None:
        """Write late rows until a query has ended."""
        while not query.awaitTermination(1):
            self.write_new()
        self.write_new(last=True)

    def _passed(self, newest: int, last: bool) -> None:
        """All late rows up to a micro-batch are written; that is recorded now and then."""
        self.written = max(newest, self.written)
        if self.written > self.noted and (last or self.written - self.noted >= self.OFTEN):
            self._done(self.written)

    def _write(self, last: int, numbers: list) -> None:
        """Write the late rows of micro-batches under the batch_id `last`."""
        logged = self.log.numbers("offsets")
        gone = [n for n in numbers if n > 0 and not (n in logged and n - 1 in logged)]
        if gone:
            raise LookupError(
                f"micro-batch {gone[0]} is not in the log of the checkpoint any more: its late rows are lost"
            )
        context = self.spark.sparkContext
        context.setLocalProperty("sql.streaming.queryId", self._id())
        try:
            self.write(self._selected(self.rows.of_batches(numbers, logged)), last)
        finally:
            context.setLocalProperty("sql.streaming.queryId", None)
        self.written = last
        self._done(last)

    def _selected(self, frame: Any) -> Any:
        return self.select(frame) if self.select else frame

    def _id(self) -> str:
        """Names the writer to sinks that record batch_ids: another name than that of the query itself."""
        query = json.loads(self.log.read("metadata"))["id"]
        return str(uuid.uuid5(uuid.UUID(query), self.NOTES))

    def _noted(self, what: str) -> list:
        names = (name.partition("-") for name in self.log.names(self.NOTES))
        return [int(number) for word, _, number in names if word == what]

    def _done(self, last: int) -> None:
        self.log.put(f"{self.NOTES}/done-{last}")
        self.noted = last
        for word in ("begun", "done"):
            for number in self._noted(word):
                if number < last or (word == "begun" and number == last):
                    self.log.remove(f"{self.NOTES}/{word}-{number}")
