"""Opens the checkpoint that a statement names. A local folder is read without Spark, another one with
Hadoop's FileSystem.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import InputFault
from streamsql.language.statements.checkpoint import Owner
from streamsql.plan.lowering.state_tables import checkpoint_of
from streamsql.runtime.checkpoints.checkpoint_files import Entry, local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.engine.settings import Settings


def names_in(jvm: Any, files: Any, folder: Any) -> list[str]:
    """The names of what is in a folder (a Path of Hadoop). One text for all: each call of Java takes 0.1 ms,
    and a checkpoint may have 100,000 micro-batches.
    """
    if files.getUri().getScheme() == "file":
        names = os.listdir(files.makeQualified(folder).toUri().getPath())
        return [n for n in names if not (n[0] == "." and n.endswith(".crc"))]  # Hadoop hides its checksums
    statuses = files.listStatus(folder)
    if not len(statuses):
        return []
    above = str(statuses[0].getPath().getParent().toString()).rstrip("/") + "/"
    text = jvm.org.apache.commons.lang3.ArrayUtils.toString(statuses)
    return [status.partition("; ")[0] for status in text.split(f"{{path={above}")[1:]]


class HadoopFiles:
    """The interface Files of checkpoint_files, for any file system that Spark supports."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._hadoop = spark._jvm.org.apache.hadoop.fs
        self._read_all = spark._jvm.org.apache.commons.io.IOUtils.toByteArray
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def entries(self, folder: str) -> list[Entry]:
        path, files = self._of(folder)
        try:
            statuses = files.listStatus(path)
        except Exception as error:
            raise _as_python(error, folder) from None
        if len(statuses) == 1 and statuses[0].isFile() and statuses[0].getPath().getName() == path.getName():
            raise NotADirectoryError(folder)
        return [
            Entry(s.getPath().getName(), s.isDirectory(), s.getLen(), s.getModificationTime() / 1000)
            for s in statuses
        ]

    def names(self, folder: str) -> list[str]:
        path, files = self._of(folder)
        try:
            found = names_in(self._jvm, files, path)
        except Exception as error:
            raise _as_python(error, folder) from None
        if found == [path.getName()] and files.getFileStatus(path).isFile():
            raise NotADirectoryError(folder)
        return found

    def written(self, path: str) -> float:
        try:
            place, files = self._of(path)
            return float(files.getFileStatus(place).getModificationTime() / 1000)
        except Exception as error:
            raise _as_python(error, path) from None

    def read(self, path: str) -> bytes:
        try:
            place, files = self._of(path)
            stream = files.open(place)
            try:
                return bytes(self._read_all(stream))
            finally:
                stream.close()
        except Exception as error:
            raise _as_python(error, path) from None

    def size(self, folder: str) -> tuple[int, int]:
        path, files = self._of(folder)
        try:
            summary = files.getContentSummary(path)
        except Exception as error:
            raise _as_python(error, folder) from None
        return summary.getLength(), summary.getFileCount()

    def _of(self, path: str) -> tuple[Any, Any]:
        try:
            place = self._hadoop.Path(path)
            return place, place.getFileSystem(self._conf)
        except Exception as error:
            raise _as_python(error, path) from None


def _as_python(error: Exception, path: str) -> OSError:
    """An exception of Java for a file as the OSError of Python."""
    if isinstance(error, OSError):
        return error
    java = getattr(error, "java_exception", None)
    if java is not None and java.getClass().getSimpleName() == "FileNotFoundException":
        return FileNotFoundError(path)
    said = java.getMessage() or java.getClass().getSimpleName() if java is not None else str(error)
    return OSError(said.splitlines()[0] if said else path)


def open_checkpoint(
    owner: Owner, catalog: Catalog, places: Places, settings: Settings, spark: Callable[[], Any]
) -> Checkpoint:
    """The checkpoint of a query or folder. spark: returns the Spark session; called only if it is needed.
    Raises NameFault or InputFault, with the span of the owner.
    """
    folder = checkpoint_of(owner, catalog, places)
    home = settings.start_conf().get("spark.hadoop.fs.defaultFS", "file:")
    local = local_path(folder) is not None and (folder.startswith("file:") or home.startswith("file:"))
    try:
        return Checkpoint.open(folder, None if local else HadoopFiles(spark()))
    except InputFault as fault:
        if owner.query:
            fault = InputFault(
                f"the query {owner.query} has no checkpoint to inspect: {fault.message}",
                detail=fault.detail,
                hint=f"START QUERY {owner.query}; creates one",
                code="NOT_A_CHECKPOINT",
            )
        fault.span = owner.span
        raise fault from None
