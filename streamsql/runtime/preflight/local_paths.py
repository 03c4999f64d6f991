"""Checks local folders before Spark reads or writes them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

from streamsql.connectors.base import Connector
from streamsql.definitions import Sink
from streamsql.errors import InputFault, RuleFault, did_you_mean
from streamsql.language.statements.base import Name
from streamsql.language.tokens import quote_name
from streamsql.runtime.checkpoints.checkpoint_files import local_path
from streamsql.runtime.checkpoints.query_marker import Folder


def check_path(path: Name) -> None:
    """Raise InputFault when a local folder does not exist; Spark would report it much later."""
    text = path.value.removeprefix("file://").removeprefix("file:")
    if "://" in text:
        return
    if os.path.isdir(text) and any(c in os.path.abspath(text) for c in "*?[]{}\\"):
        raise InputFault(
            f"the folder {os.path.abspath(text)} cannot be read as a stream",
            detail="Spark takes one of []{}?*\\ in the path of a folder for a part of a pattern, which does"
            " not match this folder",
            hint="rename the folder",
            span=path.span,
            code="PATTERN_IN_NAME",
        )
    if any(c in text for c in "*?[{"):
        return
    if os.path.isfile(text):
        folder, name = os.path.split(text)
        raise InputFault(
            f"{path} is a file; a stream reads a directory",
            hint=f"path '{folder or '.'}' with pathGlobFilter '{name}'",
            span=path.span,
            code="MISSING_PATH",
        )
    if not os.path.isdir(text):
        parent = os.path.dirname(text.rstrip("/")) or "."
        near = did_you_mean(
            os.path.basename(text.rstrip("/")), map(os.path.basename, glob.glob(f"{parent}/*"))
        )
        raise InputFault(
            f"there is no directory {path}",
            hint=near or f"\\! mkdir -p '{text}'",
            span=path.span,
            code="MISSING_PATH",
        )


LOG = "_spark_metadata"


def check_log(spark: Any, sink: Sink, connector: Connector, *, keeps: bool, begun: int) -> None:
    """Raise RuleFault when readers would not see the rows that are written into the folder of a file sink,
    or when Spark would not write them.

    keeps: whether Spark's own file sink writes, which keeps a log of its files. If there is a log, Spark
    reads only its files, and skips micro-batches whose number is in it. begun: the newest micro-batch of
    the checkpoint, -1 for a new one.
    """
    if not connector.keeps_log:
        return
    try:
        folder, written, has_batches = _written(spark, sink.option(connector.path_option))
    except Exception:
        return  # the folder does not exist or cannot be read, which the start itself reports
    elsewhere = (
        f"another path: CREATE SINK {quote_name(sink.name + '_2')} USING {sink.connector} OPTIONS (path '…')"
    )
    if written >= 0 and not keeps:
        raise RuleFault(
            f"a streaming query of the sink {sink.name} alone has written to {folder}",
            detail=f"its log ({LOG}) names every file that readers of this folder see, so rows written in"
            " another way (by a query with several sinks, or a static SELECT) would never be read",
            hint=elsewhere,
            code="FOLDER_IN_USE",
        )
    if written > begun:
        raise RuleFault(
            f"another checkpoint has written to {folder}",
            detail=f"its log ({LOG}) goes up to micro-batch {written}, so Spark would skip those of"
            f" {'a new checkpoint' if begun < 0 else 'this checkpoint, which is at ' + str(begun)},"
            " as already written: their rows would be lost",
            hint=f"the CHECKPOINT that wrote there, or {elsewhere}",
            code="FOLDER_IN_USE",
        )
    if has_batches and keeps:
        raise RuleFault(
            f"a query with several sinks has written to {folder}",
            detail=f"a query of the sink {sink.name} alone would write a log there ({LOG}), and the files in"
            " the sub-folders batch=… would no longer be read",
            hint=elsewhere,
            code="FOLDER_IN_USE",
        )


def check_alone(sink: Sink, connector: Connector, writing: Iterable[tuple[str, Sink]]) -> None:
    """Raise RuleFault when a running query writes to the folder of a file sink, even if its log is empty yet.
    writing: (query, sink) of those that Spark's own file sinks write to.
    """
    if not connector.keeps_log:
        return
    folder = _place(sink.option(connector.path_option))
    for query, other in writing:
        if other.option(connector.path_option) and _place(other.option(connector.path_option)) == folder:
            raise RuleFault(
                f"the query {query} writes to {folder}",
                detail=f"a file sink has one query: its log ({LOG}) counts the micro-batches of one"
                " checkpoint, so Spark would skip those of a second one, and their rows would be lost",
                hint=f"one query: INSERT INTO {quote_name(sink.name)} SELECT … UNION ALL SELECT …; or "
                f"another path: CREATE SINK {quote_name(sink.name + '_2')} USING {sink.connector} "
                "OPTIONS (path '…')",
                code="FOLDER_IN_USE",
            )


def _place(path: str) -> str:
    """The same text for each way to write the path of a local folder; others as they are."""
    local = local_path(path)
    return path if local is None else os.path.realpath(local)


def _written(spark: Any, path: str) -> tuple[str, int, bool]:
    """(the folder, the newest micro-batch in its log or -1, whether it has sub-folders batch=…). Raises
    exceptions of Spark.
    """
    folder = Folder(spark, path)
    written = folder.newest(LOG)
    has_batches = written < 0 and any(name.startswith("batch=") for name in folder.names(""))
    return path.rstrip("/"), written, has_batches
