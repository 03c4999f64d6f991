"""The files of a checkpoint that is not on the local file system, through Spark's Hadoop FileSystem."""

from __future__ import annotations

from typing import Any

from streamsql.runtime.checkpoints.checkpoint_files import Entry


class HadoopFiles:
    """Files of runtime/checkpoints/checkpoint_files.py for any file system that Spark can reach."""

    def __init__(self, spark: Any) -> None:
        self._hadoop = spark._jvm.org.apache.hadoop.fs
        self._read_all = spark._jvm.org.apache.commons.io.IOUtils.toByteArray
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def entries(self, folder: str) -> list[Entry]:
        path, files = self._of(folder)
        try:
            found = files.listStatus(path)
        except Exception as error:
            raise _as_python(error, folder) from None
        if len(found) == 1 and found[0].isFile() and found[0].getPath().getName() == path.getName():
            raise NotADirectoryError(folder)
        return [
            Entry(s.getPath().getName(), s.isDirectory(), s.getLen(), s.getModificationTime() / 1000)
            for s in found
        ]

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
            found = files.getContentSummary(path)
        except Exception as error:
            raise _as_python(error, folder) from None
        return found.getLength(), found.getFileCount()

    def _of(self, path: str) -> tuple[Any, Any]:
        try:
            place = self._hadoop.Path(path)
            return place, place.getFileSystem(self._conf)
        except Exception as error:
            raise _as_python(error, path) from None


def _as_python(error: Exception, path: str) -> OSError:
    """What Java raises for a file, as Python does."""
    if isinstance(error, OSError):
        return error
    java = getattr(error, "java_exception", None)
    if java is not None and java.getClass().getSimpleName() == "FileNotFoundException":
        return FileNotFoundError(path)
    said = java.getMessage() or java.getClass().getSimpleName() if java is not None else str(error)
    return OSError(said.splitlines()[0] if said else path)
