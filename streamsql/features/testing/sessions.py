"""One Spark for all tests of a run, and a new session for each of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.config.folders import cache_folder
from streamsql.config.preferences import Preferences
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

SMALL = {
    # The rows of a test are few: a task for each shuffle is enough.
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    # All queries of a pipeline look for new rows all the time.
    "spark.sql.streaming.pollingDelay": "10ms",
}


class SessionFactory:
    """settings: of Spark; java: as for Config; variables: those of the command line. spark: a running
    SparkSession that is not ended with the tests.
    """

    def __init__(
        self,
        settings: Settings,
        java: str = "auto",
        variables: dict[str, str] | None = None,
        spark: Any = None,
    ) -> None:
        self.settings = replace(settings, defaults=settings.defaults | SMALL)
        self.variables = variables or {}
        self._folder = Path(tempfile.mkdtemp(prefix="streamsql-test-"))
        self._java = java
        self._count = 0
        self._host = Session(self._config(self._folder / "host", stand_ins=False), spark)

    def _config(self, folder: Path, *, stand_ins: bool = True) -> Config:
        return Config(
            replace(self.settings, changed={}),
            folder,
            cache_folder() / "spark.log",
            cache_folder(),
            self._java,
            preferences=Preferences(),
            stand_ins=stand_ins,
        )

    def begin_start(self) -> None:
        """Start Spark while the tests are read."""
        self._host.parts.engine.begin_start()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session without definitions, rows and checkpoints; its settings, temporary views and functions
        are its own. Raises StartFault.
        """
        self._count += 1
        folder = self._folder / str(self._count)
        spark = self._host.spark.newSession()
        session = Session(self._config(folder), spark)
        session.variables.update(self.variables)
        try:
            yield session
        finally:
            session.close(0)
            if session.catalog.tables:
                _drop_tables(spark)
            for function in session.catalog.sql_functions.values():
                spark.sql(f"DROP FUNCTION IF EXISTS {quote_name(function.name)}")
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End Spark, if it was started here."""
        self._host.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _drop_tables(spark: Any) -> None:
    for table in spark.catalog.listTables():
        if not table.isTemporary:
            spark.sql(f"DROP TABLE IF EXISTS `{table.name}`")
