"""What all directory formats share. Options: Spark guide, "Data Sources" and "File source"."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from streamsql.calls import Call, Function, Node, Var, expr, lit
from streamsql.connectors import debezium, messages, rows
from streamsql.connectors.base import (
    Connector,
    OptionSpec,
    Places,
    conflict,
    option_table,
    read,
    read_stream,
    schema_text,
    with_options,
)
from streamsql.connectors.event_metrics import measured
from streamsql.connectors.messages import Payload
from streamsql.definitions import ROW_FILES, Sink, Stream
from streamsql.errors import Note, RuleFault
from streamsql.language.statements.base import Column, Name, Option

Pairs = tuple[tuple[str, str], ...]
# Of Hadoop's text output: csv, json and text.
TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")
# Hadoop accepts the class name of a codec as well as its own names.
JAVA_CLASS = r"\w+(\.\w+)+"
SOURCE_OPTIONS = option_table("""
    path: required, path -- the directory, or a glob of directories
    maxFilesPerTrigger: positive integer -- maximum number of new files in a micro-batch
    maxBytesPerTrigger: positive number of bytes -- maximum size of the new files in a micro-batch
    maxCachedFiles: integer from 0 = 10000 -- maximum number of listed files cached for later micro-batches
    latestFirst: boolean = false -- newest files first
    fileNameOnly: boolean = false -- identify files by name only, not by full path
    maxFileAge: duration = 7d -- maximum age of a file, relative to the newest file
    cleanSource: archive, delete, off = off -- what happens to read files: archive, delete or off
    sourceArchiveDir: path -- where cleanSource archive moves read files
    pathGlobFilter -- only files whose name matches this glob
    recursiveFileLookup: boolean -- sub-directories too, without partition columns
    basePath: path -- the directory where partition discovery starts
    ignoreCorruptFiles: boolean -- skip files that cannot be read
    ignoreMissingFiles: boolean -- skip files that no longer exist
""")
SINK_OPTIONS = option_table("""
    path: required, path -- the directory to write to
    compression -- codec of the written files
    retention: duration -- how long an entry stays in the log of the sink
""")
# What says which files a micro-batch takes, and the path itself.
SOURCE_ONLY = (
    "path",
    *(s.name for s in SOURCE_OPTIONS if s.name.startswith(("max", "latest", "clean", "source"))),
)
# The options that also hold when the files are read as lines.
_OF_LINES = frozenset(
    """encoding linesep pathglobfilter recursivefilelookup basepath ignorecorruptfiles
    ignoremissingfiles""".split()
)
COLUMN_OPTIONS = option_table("""
    columnNameOfCorruptRecord -- column for the text of rows that cannot be parsed
    mode: PERMISSIVE, DROPMALFORMED, FAILFAST = PERMISSIVE -- PERMISSIVE, DROPMALFORMED or FAILFAST
    dateFormat = yyyy-MM-dd -- pattern of dates
    timestampFormat -- pattern of timestamps
    timestampNTZFormat -- pattern of timestamps without time zone
    timeFormat -- pattern of times of day
    timeZone -- time zone of timestamps without one
    locale = en-US -- language of day and month names
    encoding: character set of Spark = UTF-8 -- character set
    charset: character set of Spark -- same as encoding
    lineSep -- line separator
    multiLine: boolean = false -- a record may span several lines
    samplingRatio: fraction -- fraction of the rows used to infer the columns
    singleVariantColumn -- read each record into one VARIANT column with this name
""")


class FileConnector(Connector):
    """A directory of files of one format. Writing is append only (Spark guide: File sink).

    skips_rows: whether its reader leaves out rows that a filter drops. own: the format's own options;
    read_only, write_only: names of those that one side knows only. file_format: the class of Spark that
    writes it, which knows the types that it takes; not_written: a pattern of the types, as Spark's
    simpleString has them, that this class says it takes, and that fail. column_name: the pattern of the names
    of columns that it takes, beside those that the class refuses; same_names: whether several columns may
    have one name, as they are read by their place.
    """

    file_format = ""
    not_written = ""
    column_name = ".*"
    same_names = False

    modes = ("append",)
    infers_columns = True
    path_option = "path"
    keeps_log = True
    takes_key = True
    once_by_batch_id = True
    skips_rows = False
    own: tuple[OptionSpec, ...] = ()
    read_only: frozenset[str] = frozenset({"mode", "samplingRatio"})
    write_only: frozenset[str] = frozenset()
    codecs: tuple[str, ...] = TEXT_CODECS

    def metadata(self, stream: Stream) -> tuple[Column, ...]:
        """What Spark knows of the file of a row, where the rows have no column of that name."""
        own = any(column.name.casefold() == FILE.name for column in stream.columns)
        return () if own or stream.format == debezium.FORMAT or stream.rejected else (FILE,)

    def columns(self, stream: Stream) -> tuple[Column, ...]:
        """Those of NAME$malformed: the row as it stands in the file, and which file that is."""
        return rows.REJECTED_COLUMNS if stream.rejected else super().columns(stream)

    def __init__(self) -> None:
        self.reads = SOURCE_OPTIONS + tuple(s for s in self.own if s.name not in self.write_only)
        writes = tuple(
            replace(s, choices=self.codecs, others=JAVA_CLASS if self.codecs is TEXT_CODECS else "")
            if s.name == "compression"
            else s
            for s in SINK_OPTIONS
        )
        self.writes = writes + tuple(s for s in self.own if s.name not in self.read_only)

    def rate_option(self, stream: Stream) -> str:
        return "" if stream.format == debezium.FORMAT else "maxFilesPerTrigger"

    def beginning_at(self, stream: Stream, moment: datetime) -> Stream | str:
        return "Spark reads all files of a folder, or only new ones; modifiedAfter is for batches"

    def source(self, stream: Stream, places: Places) -> Node:
        if stream.format == debezium.FORMAT:
            one = (("maxFilesPerTrigger", "1"),) if not stream.option("maxFilesPerTrigger") else ()
            return self._changes(stream, read_stream("text"), (*stream.options, *one))
        if self.name in ROW_FILES and rows.separates_malformed(stream):
            return _with_file(stream, rows.read(self.name, stream))
        reader = read_stream(self.name)
        if stream.columns:
            reader = reader.call("schema", schema_text(stream.columns))
        reader = with_options(reader, rows.as_said(stream), skip=("path",))
        return _with_file(stream, reader.call("load", stream.option("path")))

    def before_watermark(self, stream: Stream, frame: Node) -> Node:
        return frame if self.skips_rows else measured(frame, stream)

    def at_rest(self, stream: Stream, places: Places) -> Node:
        if stream.format == debezium.FORMAT:
            readable, options = replace(stream, malformed="skip", counted=False), _of_lines(stream)
            return debezium.at_rest(self._changes(readable, read("text"), options))
        reader = read(self.name)
        if stream.columns:
            reader = reader.call("schema", schema_text(stream.columns))
        reader = with_options(reader, rows.as_said(stream), skip=SOURCE_ONLY)
        return _with_file(stream, reader.call("load", stream.option("path")))

    def _changes(self, stream: Stream, reader: Node, given: Pairs) -> Node:
        """The rows of changes in lines of Debezium's envelopes."""
        payload = {s.name.casefold() for s in messages.FORMAT_OPTIONS[debezium.FORMAT]}
        options = [(k, v) for k, v in given if k.casefold() not in payload]
        frame = with_options(reader, options, skip=("path",)).call("load", stream.option("path"))
        frame = frame.call("select", expr("value"), expr("_metadata.file_path AS _file"))
        place = Payload({"file": "_file"}, "_file")
        return messages.read(frame, stream, place, debezium.FORMAT)

    def notes_of(self, stream: Stream) -> tuple[Note, ...]:
        if stream.format != debezium.FORMAT:
            return ()
        return (Note("FILE_BY_FILE", "each micro-batch reads one file, so that the changes stay in order"),)

    def check_stream(self, stream: Stream, options: dict[str, Option], at: Name) -> None:
        if stream.format != debezium.FORMAT:
            return
        names = {s.name.casefold() for s in (*SOURCE_OPTIONS, *messages.FORMAT_OPTIONS[debezium.FORMAT])}
        for name, option in options.items():
            ordered = name not in ("maxfilespertrigger", "latestfirst", "maxbytespertrigger")
            if name in names | _OF_LINES and (ordered or option.value.value.casefold() in ("1", "false")):
                continue
            fact = f"FORMAT {debezium.FORMAT} does not take {option.key} '{option.value.value}'"
            why = "" if ordered else "its files are read one by one, so that the changes stay in order"
            raise conflict(option, fact, f"omit {option.key}", why)

    def infer(self, stream: Stream) -> Node | None:
        if stream.format == debezium.FORMAT:
            return None
        reader = with_options(read(self.name), self.inference(stream), skip=SOURCE_ONLY)
        frame = reader.call("load", stream.option("path"))
        # Spark makes a column of what it cannot read, if there is such a row now.
        return frame.call("drop", rows.corrupt_column(stream)) if self.name in ROW_FILES else frame

    def lines(self, stream: Stream) -> Node | None:
        """The lines of the files as static rows; None when a record may be more than a line."""
        if stream.option("multiLine").casefold() == "true":
            return None
        return with_options(read("text"), _of_lines(stream)).call("load", stream.option("path"))

    def inference(self, stream: Stream) -> tuple[tuple[str, str], ...]:
        """The options under which the columns are inferred."""
        return stream.options

    def prepared(self, sink: Sink, frame: Node) -> Node:
        return debezium.envelopes(frame) if sink.format == debezium.FORMAT else frame

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        writer = with_options(writer.call("format", self.name), _written(sink))
        if sink.partitioned_by:
            writer = writer.call("partitionBy", *sink.partitioned_by)
        return writer

    def check_sink(self, sink: Sink, options: dict[str, Option], key: tuple[Name, ...], at: Name) -> None:
        if sink.format == debezium.FORMAT and sink.partitioned_by:
            raise RuleFault(
                f"FORMAT {debezium.FORMAT} takes no PARTITIONED BY",
                detail="the columns are inside the envelope",
                hint="omit PARTITIONED BY",
                span=at.span,
                code="CLAUSE_NOT_SUPPORTED",
            )

    def batch_writer(self, sink: Sink) -> Node:
        write = self.changes_writer(sink)
        if sink.format != debezium.FORMAT:
            return write
        batch = debezium.envelopes(Var("batch"))
        return Function(("batch", "batch_id"), (), Call(write, (batch, Var("batch_id"))))

    def changes_writer(self, sink: Sink) -> Node:
        # Spark's own file sink logs its files; with several sinks there is one folder per micro-batch.
        partitions = [list(sink.partitioned_by)] if sink.partitioned_by else []
        files = Call(Var("BatchFiles"), tuple(map(lit, (self.name, sink.option("path"), *partitions))))
        return with_options(files, _written(sink), skip=("path", "retention")).attr("write")

    def write_batch(self, sink: Sink, frame: Node) -> Node:
        writer = self.prepared(sink, frame).attr("write").call("format", self.name).call("mode", "append")
        writer = with_options(writer, _written(sink), skip=("path",))
        if sink.partitioned_by:
            writer = writer.call("partitionBy", *sink.partitioned_by)
        return writer.call("save", sink.option("path"))


FILE = Column(
    "_metadata",
    "STRUCT<file_path: STRING, file_name: STRING, file_size: BIGINT, file_block_start: BIGINT, "
    "file_block_length: BIGINT, file_modification_time: TIMESTAMP>",
)
"""The hidden column of Spark's file sources (Spark guide: Data Sources). Parquet has more fields in it."""


def _with_file(stream: Stream, frame: Node) -> Node:
    """Rows with the column of their file, where a query names it: a view, or a stage, would not have it."""
    return frame.call("select", expr("*"), expr(FILE.name)) if FILE.name in stream.metadata else frame


def _of_lines(stream: Stream) -> Pairs:
    """The options of a stream that also hold when its files are read as lines."""
    return tuple((k, v) for k, v in stream.options if k.casefold() in _OF_LINES)


def _written(sink: Sink) -> Pairs:
    """The options under which the rows of a sink are written."""
    if sink.format != debezium.FORMAT:
        return sink.options
    given = {k.casefold() for k, _ in sink.options}
    return (*sink.options, *((k, v) for k, v in debezium.JSON_OPTIONS if k.casefold() not in given))
