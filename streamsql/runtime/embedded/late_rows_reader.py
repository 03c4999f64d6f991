"""Reads again the rows that the watermark of a query has dropped. EXPLAIN PYSPARK prints this code, so it is
self-contained.
"""

import functools
import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit


class LateRows:
    """The late rows of a query, micro-batch by micro-batch, from the logs in its checkpoint.

    folder: the checkpoint; result: the streaming DataFrame of the query; streams: for each stream its
    streaming DataFrame, the function that reads a part of it again, and its kind (files, kafka, offsets,
    rate, rate-micro-batch); inputs: for each first stateful operation of the query the function that gives
    its input from those of the streams, the numbers of the streams in it, and its keys (none: every column).

    A row is late if its event time, or the end of its window, is not after the watermark of the micro-batch
    before (IncrementalExecution, "watermark for late events").
    """

    SKIPPED = "streamsql.from_now"
    ADDED = (
        "*",
        "CAST(NULL AS BIGINT) AS _batch",
        "CAST(NULL AS TIMESTAMP) AS _watermark",
        "CAST(NULL AS DOUBLE) AS _late_by_seconds",
    )

    def __init__(self, spark: Any, folder: str, result: Any, streams: list, inputs: list) -> None:
        self.spark = spark
        self.folder = folder
        self.streams = streams
        self.inputs = inputs
        self.files: dict = {}
        self.log = LogFiles(spark, folder)
        numbers = self._sources(result)
        self.numbers = [numbers.index(self._leaf(frame)) for frame, _, _ in streams]

    def frame(self, batch: int | None = None) -> Any:
        """A DataFrame of the late rows, of one micro-batch if it is given."""
        done = self.log.numbers("commits")
        return self.of_batches([n for n in done if batch in (None, n)], self.log.numbers("offsets"))

    def empty(self) -> Any:
        """A DataFrame with the columns of the late rows, and no row."""
        return self.of_batches([], [])

    def of_batches(self, numbers: list, logged: list) -> Any:
        """A DataFrame of the late rows of micro-batches. logged: the micro-batches that are in
        the log. A micro-batch whose predecessor is not in the log has no late rows.
        """
        empty = [self.spark.createDataFrame([], frame.schema) for frame, _, _ in self.streams]
        # Spark removes what is empty by its condition: it writes no file for it.
        parts_late = [
            self._late(stateful_input, empty, -1, 0).where("false") for stateful_input in self.inputs
        ]
        for number in sorted(n for n in numbers if n in logged and n - 1 in logged):
            before, after = self._planned(number - 1), self._planned(number)
            watermark = json.loads(before[1] or "{}").get("batchWatermarkMs", 0)
            parts = [self._part(at, before, after) for at in range(len(self.streams))] if watermark else []
            if any(part is not None for part in parts):
                frames = [e if p is None else p for p, e in zip(parts, empty, strict=True)]
                parts_late += [
                    self._late(stateful_input, frames, number, watermark)
                    for stateful_input in self.inputs
                    if any(parts[at] is not None for at in stateful_input[1])
                ]
        return functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts_late)

    def _late(self, stateful_input: list, frames: list, number: int, watermark: int) -> Any:
        """The late rows of an input. frames: those of the streams in one micro-batch."""
        from pyspark.sql import functions as F

        rows, _, keys = stateful_input
        event, ends = self._event(stateful_input)
        if event is None:
            return rows(*frames).where("false").selectExpr(*self.ADDED)
        names = [f"__late_{n}" for n in range(len(keys))]
        named = [key.alias(name) for key, name in zip(keys, names, strict=True)]
        frame = rows(*frames).select("*", *named)
        moment = F.col(f"`{event}`.`end`" if ends else f"`{event}`").cast("timestamp")
        micros = F.unix_micros(moment)
        late = frame.where(micros <= F.lit(watermark * 1000))
        seconds = (F.lit(watermark * 1000) - micros) / 1_000_000
        return late.select(
            "*",
            F.lit(number).cast("bigint").alias("_batch"),
            F.timestamp_millis(F.lit(watermark)).alias("_watermark"),
            seconds.alias("_late_by_seconds"),
        ).drop(*names)

    def in_time(self, at: int, closed: bool) -> Any:
        """The rows of an input in all committed micro-batches that were not late; closed: without the groups
        whose event time the watermark has not reached. None if logs of micro-batches were removed.
        """
        stateful_input = self.inputs[at]
        logged, done = self.log.numbers("offsets"), self.log.numbers("commits")
        first = 1 if self.log.exists(self.SKIPPED) else 0
        numbers = list(range(first, max(done) + 1))
        if any(n not in logged or n not in done for n in (*numbers, *([0] if first else []))):
            return None
        empty = [self.spark.createDataFrame([], frame.schema) for frame, _, _ in self.streams]
        last = json.loads(self._planned(max(done))[1] or "{}").get("batchWatermarkMs", 0)
        frames = [self._timely(stateful_input, empty, 0, None)]
        for number in numbers:
            before = self._planned(number - 1) if number else None
            watermark = json.loads(before[1] or "{}").get("batchWatermarkMs", 0) if before else 0
            now = self._planned(number)
            parts = [self._part(n, before, now, whole=not number) for n in range(len(self.streams))]
            if any(parts[n] is not None for n in stateful_input[1]):
                filled = [e if p is None else p for p, e in zip(parts, empty, strict=True)]
                frames.append(
                    self._timely(
                        stateful_input, filled, watermark, last if closed and stateful_input[2] else None
                    )
                )
        return functools.reduce(lambda a, b: a.unionByName(b), frames)

    def _timely(self, stateful_input: list, frames: list, watermark: int, last: int | None) -> Any:
        """The rows of an input that are not late. last: groups that end after this event time (in
        milliseconds) are left out; None leaves none out."""
        from pyspark.sql import functions as F

        rows, _, keys = stateful_input
        event, ends = self._event(stateful_input)
        names = [f"__late_{n}" for n in range(len(keys))]
        named = [key.alias(name) for key, name in zip(keys, names, strict=True)]
        frame = rows(*frames).select("*", *named)
        if event is not None:
            micros = F.unix_micros(F.col(f"`{event}`.`end`" if ends else f"`{event}`").cast("timestamp"))
            if watermark:
                frame = frame.where(micros.isNull() | (micros > F.lit(watermark * 1000)))
            if last is not None:
                frame = frame.where(micros.isNull() | (micros <= F.lit(last * 1000)))
        return frame.drop(*names)

    def _event(self, stateful_input: list) -> tuple:
        """The column of an input that has its event time, and whether it is a window; None if it has none.
        Spark marks event time in the metadata of columns.
        """
        rows, _, keys = stateful_input
        frame = rows(*(frame for frame, _, _ in self.streams))
        if keys:
            frame = frame.select(*(key.alias(f"__late_{n}") for n, key in enumerate(keys)))
        for field in frame.schema.fields:
            if "spark.watermarkDelayMs" in (field.metadata or {}):
                return field.name, field.dataType.typeName() == "struct"
        return None, False

    def batches(self, at: int) -> list:
        """(number, DataFrame of its rows) of the committed micro-batches with rows of a stream."""
        logged, done = self.log.numbers("offsets"), self.log.numbers("commits")
        log = {n: self._planned(n) for n in logged}
        readable = [n for n in done if n in log and (n == 0 or n - 1 in log)]
        parts = [(n, self._part(at, log.get(n - 1), log[n])) for n in readable]
        return [(n, part) for n, part in parts if part is not None]

    def all_rows(self, at: int) -> Any:
        """All rows of a stream that committed micro-batches have read."""
        last = max(self.log.numbers("commits"))
        skipped = self._planned(0) if self.log.exists(self.SKIPPED) else None
        part = self._part(at, skipped, self._planned(last), whole=True)
        return self.spark.createDataFrame([], self.streams[at][0].schema) if part is None else part

    def _part(self, at: int, before: list | None, after: list, whole: bool = False) -> Any:
        """The rows of a stream in a micro-batch; None if there are none. before, after: the lines of the
        micro-batch before, None for the first one, and of this one, in the log. whole: where there is none
        before, from where the query has begun.
        """
        _, read, kind = self.streams[at]
        number = self.numbers[at]
        begin, end = self._offset(before, number) if before else None, self._offset(after, number)
        if end is None or begin == end:
            return None
        if kind == "rate":
            created = int(self.log.read(f"sources/{number}/0").rpartition("\n")[2])
            return read(created, begin or 0, end)
        if kind == "rate-micro-batch":
            return read(begin["offset"] if begin else 0, end["offset"])
        if kind == "kafka":
            if whole and begin is None and self.log.exists(f"sources/{number}/0"):
                begin = json.loads(self.log.read(f"sources/{number}/0").rpartition("\n")[2])
            start = {t: {p: (begin or {}).get(t, {}).get(p, -2) for p in parts} for t, parts in end.items()}
            return read(json.dumps(start), json.dumps(end))
        if kind == "offsets":
            return read(json.dumps(begin) if begin else "", json.dumps(end))
        first = -1 if begin is None else begin["logOffset"]
        files = self._files(at, first + 1, end["logOffset"])
        return read(files) if files else None

    def _files(self, at: int, first: int, last: int) -> list:
        """The files that a source has read between two numbers of its log."""
        files = self.files.get(at, [])
        if not files or files[-1][0] < last:
            few = [self._entries(at, n) for n in range(first, last + 1)] if last - first < 3 else [None]
            if all(entries is not None for entries in few):
                return sorted({path for entries in few for n, path in entries or () if first <= n <= last})
            names = self.log.names(f"sources/{self.numbers[at]}")
            entries = [self._entries_in(at, name) for name in names if name.partition(".")[0].isdigit()]
            files = self.files[at] = sorted({pair for pairs in entries for pair in pairs})
        return [path for n, path in files if first <= n <= last]

    def _entries(self, at: int, number: int) -> list | None:
        """(number, path) of the files of one number, or of all up to it; None when they are elsewhere."""
        folder = f"sources/{self.numbers[at]}"
        name = next((n for n in (f"{number}", f"{number}.compact") if self.log.exists(f"{folder}/{n}")), "")
        return self._entries_in(at, name) if name else None

    def _entries_in(self, at: int, name: str) -> list:
        lines = self.log.read(f"sources/{self.numbers[at]}/{name}").split("\n")
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return [(e["batchId"], self._place(e["path"])) for e in entries]

    @staticmethod
    def _place(url: str) -> str:
        """A path as Spark reads it, from the URL in a log: `/folder/a b`, `s3a://bucket/a b`."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        return path if parts.scheme in ("", "file") else f"{parts.scheme}://{parts.netloc}{path}"

    def _planned(self, number: int) -> list:
        """The lines of a micro-batch in the log."""
        return self.log.read(f"offsets/{number}").split("\n")

    def _sources(self, result: Any) -> list:
        """The sources of the query in the order in which Spark numbers them."""
        leaves = result._jdf.queryExecution().analyzed().collectLeaves()
        texts = (leaves.apply(n) for n in range(leaves.size()))
        # A leaf as text, without the numbers that Spark gives to columns.
        plain = (re.sub(r"#\d+L?", "", leaf.toString()) for leaf in texts if leaf.isStreaming())
        return list(dict.fromkeys(plain))

    def _leaf(self, frame: Any) -> str:
        return self._sources(frame)[0]

    @staticmethod
    def _offset(lines: list, number: int) -> Any:
        """The offset of a source in the lines of the log; None if it has none yet."""
        offsets = [line for line in lines[2:] if line.strip()]
        if lines[0].strip() == "v2":
            text = dict(line.split(":", 1) for line in offsets).get(str(number), "-")
        else:
            text = offsets[number] if number < len(offsets) else "-"
        return None if text == "-" else json.loads(text)


class LogFiles:
    """The files of a checkpoint, on any file system that Spark supports."""

    def __init__(self, spark: Any, folder: str) -> None:
        self.folder = folder
        self._jvm = spark.sparkContext._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._path("").getFileSystem(conf)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.folder}/{name}" if name else self.folder)

    def names(self, folder: str) -> list:
        """The names of the files in a folder; none if it does not exist."""
        path = self._path(folder)
        if not self._files.exists(path):
            return []
        statuses = self._files.listStatus(path)
        if not len(statuses):
            return []
        # One text for all: each call of Java takes 0.1 ms, and there may be 100,000 files.
        above = str(statuses[0].getPath().getParent().toString()).rstrip("/") + "/"
        text = self._jvm.org.apache.commons.lang3.ArrayUtils.toString(statuses)
        return [status.partition("; ")[0] for status in text.split(f"{{path={above}")[1:]]

    def numbers(self, folder: str) -> list:
        """The numbers of the micro-batches in a log, in their order."""
        return sorted(int(name) for name in self.names(folder) if name.isdigit())

    def exists(self, name: str) -> bool:
        return bool(self._files.exists(self._path(name)))

    def read(self, name: str) -> str:
        """The text of a file."""
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def put(self, name: str) -> None:
        """Create an empty file."""
        self._files.create(self._path(name), True).close()

    def remove(self, name: str) -> None:
        self._files.delete(self._path(name), False)
