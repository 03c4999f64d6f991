"""Opens the checkpoint that a statement names. A local folder is read without Spark, another one with
Hadoop's FileSystem.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamsql.errors import InputFault
from streamsql.language.statements.checkpoint import Owner
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.state_tables import checkpoint_of
from streamsql.runtime.checkpoints.checkpoint_files import Entry, local_path
from streamsql.runtime.checkpoints.checkpoint_log import Checkpoint
from streamsql.runtime.engine.java_classes import java_class

if TYPE_CHECKING:
    from streamsql.runtime.queries.program_parts import QueryParts


def names_in(jvm: Any, files: Any, folder: Any) -> list[str]:
    """The names of what is in a folder (a Path of Hadoop). One text for all: each call of Java takes 0.1 ms,
    and a checkpoint may have 100,000 micro-batches.
    """
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
        self._path = java_class(spark, "org.apache.hadoop.fs.Path")
        self._read_all = java_class(spark, "org.apache.commons.io.IOUtils").toByteArray
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def local(self, folder: str) -> str:
        """The path of a folder on the local file system; "" for another folder."""
        with self._at(folder) as (path, files):
            is_local = files.getUri().getScheme() == "file"
            return str(files.makeQualified(path).toUri().getPath()) if is_local else ""

    def entries(self, folder: str) -> list[Entry]:
        with self._at(folder) as (path, files):
            statuses = files.listStatus(path)
            alone = statuses[0] if len(statuses) == 1 else None
            if alone is not None and alone.isFile() and alone.getPath().getName() == path.getName():
                raise NotADirectoryError(folder)
            return [Entry(s.getPath().getName(), s.isDirectory(), s.getLen()) for s in statuses]

    def names(self, folder: str) -> list[str]:
        with self._at(folder) as (path, files):
            found = names_in(self._jvm, files, path)
            if found == [path.getName()] and files.getFileStatus(path).isFile():
                raise NotADirectoryError(folder)
            return found

    def written(self, path: str) -> float:
        with self._at(path) as (place, files):
            return float(files.getFileStatus(place).getModificationTime() / 1000)

    def read(self, path: str) -> bytes:
        with self._at(path) as (place, files):
            stream = files.open(place)
            try:
                return bytes(self._read_all(stream))
            finally:
                stream.close()

    def size(self, folder: str) -> tuple[int, int]:
        with self._at(folder) as (path, files):
            summary = files.getContentSummary(path)
            return summary.getLength(), summary.getFileCount()

    def write(self, path: str, content: bytes) -> None:
        with self._at(path) as (file, files):
            part = self._path(f"{path}.part")
            stream = files.create(part, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
            if files.rename(part, file):
                return
            files.delete(file, False)  # not every file system replaces a file
            if not files.rename(part, file):
                raise OSError(f"{path} cannot be written")

    def rename(self, path: str, other: str) -> None:
        with self._at(path) as (place, files):
            if not files.rename(place, self._path(other)):
                raise OSError(f"{path} cannot be renamed")

    def delete(self, path: str) -> None:
        with self._at(path) as (place, files):
            files.delete(place, True)

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[Any, Any]]:
        """A context with (the Path of Hadoop, its FileSystem), in which an exception of Java for a file is an
        OSError, which has it as its cause.
        """
        try:
            place = self._path(path)
            yield place, place.getFileSystem(self._conf)
        except OSError:
            raise
        except Exception as error:
            java = getattr(error, "java_exception", None)
            if java is not None and java.getClass().getSimpleName() == "FileNotFoundException":
                raise FileNotFoundError(path) from error
            said = java.getMessage() or java.getClass().getSimpleName() if java is not None else str(error)
            raise OSError(said.splitlines()[0] if said else path) from error


def open_checkpoint(parts: QueryParts, owner: Owner) -> Checkpoint:
    """The checkpoint of a query or folder. Waits for Spark only where it is needed. Raises NameFault or
    InputFault, with the span of the owner.
    """
    folder = checkpoint_of(owner, parts.catalog, parts.places)
    home = parts.settings.start_conf().get("spark.hadoop.fs.defaultFS", "file:")
    local = local_path(folder) is not None and (folder.startswith("file:") or home.startswith("file:"))
    try:
        return Checkpoint(folder, None if local else HadoopFiles(parts.spark))
    except InputFault as fault:
        if owner.query:
            fault = InputFault(
                f"the query {owner.query} has no checkpoint to inspect: {fault.message}",
                detail=fault.detail,
                hint=f"START QUERY {quote_name(owner.query.value)}; creates one",
                code="NOT_A_CHECKPOINT",
            )
        fault.span = owner.span
        raise fault from None
