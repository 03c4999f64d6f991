"""Spark's life under a session: started on a thread, waited for, watched, started again when lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamsql.errors import Cancelled, StartFault, StreamsqlError
from streamsql.runtime.cluster import ClusterWatch, check_master, servers
from streamsql.runtime.config import Config

JOBS = "streamsql-statement"
"""The group of the jobs that statements run, so that they are cancelled without touching a query's."""


def activate(spark: Any) -> None:
    """Make a session the one of this thread: Spark looks some things up, such as Python Data Sources to
    write with, in the session of the thread that asks, and statements run on threads that it has not seen.
    """
    sessions = spark._get_j_spark_session_class(spark._jvm)
    sessions.setActiveSession(spark._jsparkSession)


@dataclass
class Progress:
    """How far the jobs of the statement that is being carried out are."""

    stages_done: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0


class Engine:
    """One Spark at a time. spark: one that runs already and belongs to somebody else (tests).

    on_start: called with each new session before anybody gets it. on_lost: called with the cause,
    on a thread of its own, when Spark ends without having been told to. on_news: what happens to its cluster.
    """

    def __init__(self, config: Config, cancelled: threading.Event, spark: Any = None) -> None:
        self.config = config
        self.cancelled = cancelled
        self.on_start: list[Callable[[Any], None]] = []
        self.on_lost: list[Callable[[str], None]] = []
        self.on_news: list[Callable[[str], None]] = []
        self.began = time.monotonic()
        self.doing = ""
        self._spark = spark
        self._own = spark is None
        self._starting: threading.Thread | None = None
        self._failure: StreamsqlError | None = None
        self._closing = False
        self._cause = ""

    def begin_start(self) -> None:
        """Start Spark on a thread of its own, so that reading and planning go on meanwhile."""
        if self._spark is None and self._starting is None:
            self._failure = None
            self.began = time.monotonic()
            self._starting = threading.Thread(target=self._start, daemon=True, name="start-spark")
            self._starting.start()

    def _start(self) -> None:
        from streamsql.runtime import jvm

        try:
            java = jvm.find_java(self.config.java)
            conf = self.config.settings.start_conf()
            conf.setdefault("spark.sql.warehouse.dir", str(self.config.folder / "warehouse"))
            master = conf["spark.master"]
            check_master(master)
            spark = jvm.start_session(conf, self.config.log, self.config.cache, java)
            process = spark.sparkContext._gateway.proc
            # It would print a traceback over the prompt when the JVM that it hears from dies.
            hears = getattr(spark.sparkContext, "_accumulatorServer", None)
            if hears is not None:
                hears.handle_error = lambda request, address: None
            threading.Thread(target=self._watch, args=(process,), daemon=True, name="watch-spark").start()
            for tell in self.on_start:
                tell(spark)
            self._spark = spark
            if servers(master):
                ClusterWatch(spark, master, self._news, lambda cause: self._give_up(process, cause))
        except StartFault as error:
            self._failure = error
        except (jvm.JavaNotFound, jvm.SparkStartError) as error:
            self._failure = StartFault(error.message, hint=error.hint)
        except Exception as error:
            self._failure = StartFault(f"Spark could not start: {error}", hint=f"see {self.config.log}")

    def _news(self, words: str) -> None:
        for tell in self.on_news:
            tell(words)

    def _give_up(self, process: Any, cause: str) -> None:
        """End a Spark that has lost its cluster: what waits for it would wait for ever."""
        self._cause = cause
        process.kill()

    def _watch(self, process: Any) -> None:
        """Wait for the JVM's end; one that nobody asked for is told."""
        code = process.wait()
        if self._closing:
            return
        from streamsql.runtime import jvm

        jvm.forget_session()
        self._spark = self._starting = None
        how = f"by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"with code {code}"
        cause, self._cause = self._cause or f"its JVM ended {how}", ""
        for tell in self.on_lost:
            tell(cause)

    @property
    def spark(self) -> Any:
        """The SparkSession; waits for it. Raises StartFault when it could not start."""
        if self._spark is None:
            self.begin_start()
            starting = self._starting
            while starting is not None and starting.is_alive():
                starting.join(0.1)
                if self.cancelled.is_set():
                    raise Cancelled("cancelled")
            if self._failure:
                self._starting = None
                raise self._failure
            if self._spark is None:
                raise StartFault("Spark ended while it started", hint=f"see {self.config.log}")
        return self._spark

    @property
    def started(self) -> bool:
        return self._spark is not None

    @property
    def starting(self) -> bool:
        return self._spark is None and self._starting is not None and self._starting.is_alive()

    @property
    def failed(self) -> bool:
        """Whether Spark could not start; the next statement that needs it tries again."""
        return self._failure is not None

    def say(self, doing: str) -> None:
        """Tell what is being done for the statement that is waiting; empty: nothing out of the common."""
        self.doing = doing

    def cancel(self) -> None:
        """Cancel the jobs of the statement that is being carried out."""
        if self._spark is not None:
            try:
                self._spark.sparkContext.cancelJobGroup(JOBS)
            except Exception:
                pass  # Spark is gone, and the jobs with it

    def progress(self) -> Progress | None:
        """How far the running jobs of a statement are; None when none runs. Asks Spark: not for a key."""
        if self._spark is None:
            return None
        made = Progress()
        try:
            tracker = self._spark.sparkContext._jsc.statusTracker()
            for job_id in tracker.getJobIdsForGroup(JOBS):
                job = tracker.getJobInfo(job_id)
                if job is None or str(job.status()) != "RUNNING":
                    continue
                for stage_id in job.stageIds():
                    made.stages += 1
                    stage = tracker.getStageInfo(stage_id)
                    if stage is not None:
                        made.tasks += stage.numTasks()
                        made.tasks_done += stage.numCompletedTasks()
                        made.stages_done += stage.numTasks() == stage.numCompletedTasks()
        except Exception:
            return None
        return made if made.stages else None

    def close(self) -> None:
        """Stop Spark if it was started here."""
        self._closing = True
        if self._own and self._spark is not None:
            try:
                self._spark.stop()
            except Exception:
                pass  # the JVM is gone already

    def kill(self) -> None:
        """End the JVM that was started here, whatever it does."""
        self._closing = True
        gateway = getattr(getattr(self._spark, "sparkContext", None), "_gateway", None)
        if self._own and gateway is not None:
            gateway.proc.kill()
