"""The engine of a console on a Spark Connect server: the connection in place of a JVM."""

from __future__ import annotations

import getpass
import logging
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from streamsql.errors import EngineFault, Note, StartFault
from streamsql.features.connect.connect_probe import Obstacle, obstacle
from streamsql.features.connect.server_address import ServerAddress
from streamsql.features.connect.session_record import SessionRecord
from streamsql.runtime.engine.cancel import CancelToken, JobProgress
from streamsql.runtime.engine.events import ClusterNews, Event, Events, SparkStarted
from streamsql.runtime.engine.lifecycle import Attempt, Engine
from streamsql.runtime.engine.settings import REQUIRED
from streamsql.runtime.engine.spark_errors import clean
from streamsql.runtime.session_config import Config

_CLOSED = (
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
)
_DETAILS = re.compile(r'details = "(.*)"')
"""The reason in an error of gRPC."""


@dataclass(frozen=True)
class ServerAttached(Event):
    """A session on the server is there: its queries can be listed. spark: its SparkSession."""

    spark: Any


def connection_lost(error: BaseException) -> bool:
    """Whether an exception tells that the server is gone, or has forgotten the session."""
    from pyspark.errors import PySparkException

    texts = [str(error)] if isinstance(error, PySparkException) else []
    code = getattr(error, "code", None)
    if callable(code):
        with suppress(Exception):
            texts.append(str(code()))
    if isinstance(error, PySparkException) and any(closed in texts[0] for closed in _CLOSED):
        return True
    return any("UNAVAILABLE" in text for text in texts)


class ConnectEngine(Engine):
    """One session on a Connect server at a time. record: names the session; keeps: the session goes on after
    `close`. session_lifetime: how long it then goes on, as shown; "" for ever.
    """

    def __init__(self, config: Config, address: ServerAddress, record: SessionRecord, *, keeps: bool) -> None:
        settings, java = config.settings, config.java
        super().__init__(settings, config.folder, config.log, config.cache, java, Events(), None)
        self.address = address
        self.record = record
        self.keeps = keeps
        self.session_lifetime = ""

    def _start_session(self, attempt: Attempt) -> None:
        self.say(f"connecting to {self.address.shown}")
        left = sorted(self.record.queries) if self.record.instance else []
        try:
            hindrance = obstacle(self.address)
            if hindrance is not None and hindrance.sure:
                raise self._refused(hindrance)
            attempt.spark = self._connected(hindrance)
        finally:
            self.say("")
        try:
            self._begin_session(attempt.spark, left)
        except Exception as error:
            raise self._not_connected(error, hindrance) from error

    def _begin_session(self, spark: Any, left: list[str]) -> None:
        """left: the queries that were left running in the session before."""
        self._apply_settings(spark)
        self.session_lifetime = _session_timeout(spark)
        if self._is_new(spark):
            self.record.queries.clear()
            self.events.publish(SparkStarted(spark))
            if left:
                words = _ENDED.format(self.address.shown, ", ".join(left))
                self.events.publish(SessionRemark(Note("SESSION_ENDED", words)))
        self.events.publish(ServerAttached(spark))
        with suppress(OSError):
            self.record.save()

    def _connected(self, hindrance: Obstacle | None) -> Any:
        try:
            return self._open()
        except Exception as error:
            if not any(closed in str(error) for closed in _CLOSED):
                raise self._not_connected(error, hindrance) from error
        self.record.renew()
        try:
            return self._open()
        except Exception as error:
            raise self._not_connected(error, hindrance) from error

    def _open(self) -> Any:
        try:
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
        except ImportError as error:
            raise StartFault(
                f"the client of Spark Connect is not installed: {error.name or error}",
                hint="pip install 'streamsql-console[connect]'",
                code="PACKAGE_NOT_AVAILABLE",
            ) from None
        for name in (
            "pyspark.sql.connect.client.core",
            "pyspark.sql.connect.logging",
            "SQLQueryContextLogger",
        ):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        # Retries that were in vain, listeners that were not removed: the console says it in its own words.
        warnings.filterwarnings("ignore", module=r"pyspark\.sql\.connect")
        spark = SparkSession(self.address.with_session(self.record.session, _user()))
        spark.release_session_on_close = not self.keeps
        spark.client.set_retry_policies([DefaultPolicy(max_retries=3, initial_backoff=100, max_backoff=1000)])
        self._check_version(str(spark.version))
        return spark

    def _check_version(self, served: str) -> None:
        """Raise StartFault for another major version of Spark; remark on another minor one."""
        own, shown = version("pyspark"), self.address.shown
        if served.partition(".")[0] != own.partition(".")[0]:
            raise StartFault(
                f"{shown} runs Spark {served}, and this console needs Spark {own.partition('.')[0]}",
                hint=f"a Connect server of Spark {own}",
                code="NO_CONNECT",
            )
        if served.split(".")[:2] != own.split(".")[:2]:
            words = f"{shown} runs Spark {served}, this console {own}: what only one of them knows is refused"
            self.events.publish(SessionRemark(Note("OTHER_SPARK", words)))

    def _not_connected(self, error: Exception, hindrance: Obstacle | None) -> StartFault:
        if isinstance(error, StartFault):
            return error
        text = str(error)
        detail = _DETAILS.search(text)
        fault = detail[1] if detail else next(iter(clean(text)[1].splitlines()), "")
        hint = "is that port the one of a Spark Connect server?"
        if "UNAUTHENTICATED" in text or "PERMISSION_DENIED" in text:
            fault = "it does not take the token" if "token" in self.address.parameters else "it wants a token"
            hint = f"--remote '{self.address.shown}/;token=${{env:TOKEN}}'"
        elif "UNIMPLEMENTED" in text:
            hint = f"a Connect server of Spark {version('pyspark')}"
        return self._refused(hindrance or Obstacle(fault, hint))

    def _refused(self, hindrance: Obstacle) -> StartFault:
        return StartFault(
            f"{self.address.shown} is no Spark Connect server that takes this console",
            detail=hindrance.detail,
            hint=hindrance.hint,
            code="NO_CONNECT",
        )

    def _apply_settings(self, spark: Any) -> None:
        given = self.settings.given | self.settings.changed
        for key, value in (REQUIRED | self.settings.configured | given).items():
            try:
                spark.conf.set(key, value)
            except Exception as error:
                if connection_lost(error):
                    raise
                if key not in given:
                    continue  # the config file is for any Spark
                raise StartFault(
                    f"{key} cannot be set for a session of {self.address.shown}",
                    detail=clean(str(error))[1],
                    hint="set it where the server is started",
                    code="BAD_SETTING",
                ) from None

    def _is_new(self, spark: Any) -> bool:
        """Whether the server has begun the session now; notes its id for it."""
        now = str(getattr(spark.client, "_server_session_id", "") or "")
        before, self.record.instance = self.record.instance, now
        return not before or before != now

    def lost(self, spark: Any, cause: str) -> None:
        """Take notice that the server does not answer; the next statement connects again."""
        with self._lock:
            if self._closing or self.session is not spark:
                return
            self.session = self._attempt = None
        spark.release_session_on_close = False
        self.events.publish(ConnectionLost(cause))
        self.events.publish(
            ClusterNews(
                f"{self.address.shown} does not answer ({cause}); its queries may go on there; the next "
                "statement connects again"
            )
        )

    def fault(self) -> EngineFault:
        """The error of a statement during which the connection was lost."""
        return EngineFault(
            f"the connection to {self.address.shown} is lost",
            detail="the server has ended, does not answer, or has closed the session",
            hint="the next statement connects again, SHOW QUERIES; lists what runs there",
            code="SPARK_LOST",
        )

    def run_jobs_of(self, cancel: CancelToken, spark: Any) -> None:
        spark.clearTags()
        spark.addTag(cancel.jobs)

        def interrupt() -> None:
            with suppress(Exception):
                spark.interruptTag(cancel.jobs)

        cancel.on_cancel(interrupt, of=self)

    def functions(self) -> Any:
        from pyspark.sql.connect import functions

        return functions

    def progress(self, cancel: CancelToken) -> JobProgress | None:
        return None

    def close(self) -> None:
        """Leave the session, which goes on if it is kept."""
        self._closing = True
        if self.session is not None:
            with suppress(Exception):
                self.session.stop()

    def kill(self) -> None:
        self._closing = True


_ENDED = (
    "the session at {} has ended, since the server was started again or nobody had used the session for too "
    "long; it ran {}; START QUERY ALL; resumes from the checkpoints"
)


@dataclass(frozen=True)
class SessionRemark(Event):
    """What the next result has to say about the session, such as that the one before has ended."""

    note: Note


@dataclass(frozen=True)
class ConnectionLost(Event):
    """The server does not answer any more. cause: a short message."""

    cause: str


SESSION_TIMEOUT = "spark.connect.session.manager.defaultSessionTimeout"


def _session_timeout(spark: Any) -> str:
    """How long the server keeps a session without requests, and its queries: they are no requests."""
    try:
        asked = str(spark.conf.get(SESSION_TIMEOUT))
    except Exception as error:
        if connection_lost(error):
            raise
        return "60m"  # Spark's default, which the server does not tell
    return "" if asked.startswith("-1") else asked


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "streamsql"
