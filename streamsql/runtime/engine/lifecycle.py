"""The lifecycle of Spark in a session: starts it in the background, monitors and restarts it."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from streamsql.errors import StartFault
from streamsql.runtime.engine.cancel import CancelToken, JobProgress
from streamsql.runtime.engine.cluster import ClusterWatch, check_master, servers
from streamsql.runtime.engine.cluster_cores import await_workers, fit_partitions, tune_executors
from streamsql.runtime.engine.events import ClusterNews, Events, SparkLost, SparkStarted
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.java_classes import java_class
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.spark_classes import RULES

POLL = 0.1
CANCEL_AGAIN = (0.2, 0.5, 1, 2, 5, 10, 20)
"""The seconds after which the jobs of a cancelled statement are cancelled again; the last for all further
ones while the statement runs. Spark runs no further job of a cancelled group, but it does run stages before
a shuffle, which adaptive execution submits one by one: DAGScheduler.handleMapStageSubmitted of Spark 4.3 does
not look the group up, as handleJobSubmitted does.
"""
OUT_OF_MEMORY = (3, 52)
"""The exit codes of Java (-XX:+ExitOnOutOfMemoryError) and of Spark for that."""
ENDING = 0.3
"""The seconds within which the end of a JVM is known, once its connections are closed."""


def activate(spark: Any) -> None:
    """Make a session the active one of this thread. Statements run on new threads, and Spark looks up some
    things, such as Python Data Sources to write with, in the thread's active session.
    """
    sessions = spark._get_j_spark_session_class(spark._jvm)
    sessions.setActiveSession(spark._jsparkSession)


def own_session(spark: Any) -> Any:
    """A session with the temporary views, functions and settings of another as they are now; what is
    changed in one is not seen in the other.
    """
    return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())


def _rules_warning(spark: Any) -> str:
    """Why the console's rules are not active in a Spark; empty where they are, or that is not known."""
    try:
        return str(java_class(spark, RULES).warning())
    except Exception:
        return ""


@dataclass(eq=False)
class Attempt:
    """One start of Spark and its outcome. Changed only under the engine's lock. lost: why its JVM has ended,
    once it has ended.
    """

    began: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)
    spark: Any = None
    process: Any = None
    failure: StartFault | None = None
    lost: str = ""


@dataclass(eq=False)
class Engine:
    """Runs one Spark at a time. spark: a running SparkSession that it does not own (tests).

    folder: contains the warehouse; log, cache, java: as for jvm.start_session. Publishes SparkStarted
    before a new session is used, SparkLost (on its own thread) and ClusterNews. doing: what the waiting
    statement shows as its current work, empty for nothing special; losses: the JVMs that have ended
    unexpectedly; failed: whether Spark could not start (the next statement that needs it retries); session:
    the SparkSession, None while Spark does not run.
    """

    settings: Settings
    folder: Path
    log: Path
    cache: Path
    java: str
    events: Events
    spark: InitVar[Any]
    doing: str = ""
    losses: int = 0
    failed: bool = False

    def __post_init__(self, spark: Any) -> None:
        self._lock = threading.Lock()
        self.session = spark
        self._own = spark is None
        self._attempt: Attempt | None = None
        self._process: Any = None
        self._closing = False

    def begin_start(self) -> Attempt | None:
        """Start Spark on its own thread, so that reading and planning continue meanwhile. Returns the start
        that is in progress, or a new one; None when Spark has started.
        """
        with self._lock:
            if self.session is not None:
                return None
            if self._attempt is None:
                self.failed = False
                self._attempt = Attempt()
                work = threading.Thread(
                    target=self._start, args=(self._attempt,), daemon=True, name="start-spark"
                )
                work.start()
            return self._attempt

    def _start(self, attempt: Attempt) -> None:
        try:
            self._start_session(attempt)
        except StartFault as error:
            attempt.failure = error
        except Exception as error:
            attempt.failure = StartFault(f"Spark could not start: {error}", hint=f"see {self.log}")
        with self._lock:
            if attempt.failure is None and attempt.lost:
                attempt.failure = StartFault(
                    f"Spark ended while it started: {attempt.lost}",
                    hint=f"see {self.log}",
                    code="SPARK_LOST",
                )
            if attempt.failure is None:
                self.session = attempt.spark
            self.failed = attempt.failure is not None
            attempt.done.set()

    def _start_session(self, attempt: Attempt) -> None:
        from streamsql.runtime.engine import jvm

        java = find_java(self.java)
        tune_executors(self.settings)
        conf = self.settings.start_conf()
        conf.setdefault("spark.sql.warehouse.dir", str(self.folder / "warehouse"))
        master = conf["spark.master"]
        check_master(master, authenticated=conf.get("spark.authenticate") == "true")
        spark = attempt.spark = jvm.start_session(conf, self.log, self.cache, java)
        attempt.process = self._process = spark.sparkContext._gateway.proc
        # It would print a traceback over the prompt when the JVM ends.
        hears = getattr(spark.sparkContext, "_accumulatorServer", None)
        if hears is not None:
            hears.handle_error = lambda request, address: None
        threading.Thread(target=self._watch, args=(attempt,), daemon=True, name="watch-spark").start()
        if not master.startswith("local"):
            await_workers(spark)
            fit_partitions(spark, self.settings)
        self.events.publish(SparkStarted(spark))
        if warning := _rules_warning(spark):
            self.events.publish(ClusterNews(warning))
        if servers(master):
            news = lambda words: self.events.publish(ClusterNews(words))  # noqa: E731
            ClusterWatch(spark, master, news, lambda cause: self._give_up(attempt, cause))

    def _give_up(self, attempt: Attempt, cause: str) -> None:
        """End a Spark that has lost its cluster: whatever waits for it would wait forever."""
        with self._lock:
            attempt.lost = cause
        attempt.process.kill()

    def _watch(self, attempt: Attempt) -> None:
        """Wait for the end of the JVM, and report an unexpected one."""
        code = attempt.process.wait()
        how = f"by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"with code {code}"
        if code in OUT_OF_MEMORY:
            how = "because its memory was full: --conf spark.driver.memory=… gives it more"
        from streamsql.runtime.engine import jvm

        with self._lock:
            if self._closing:
                return
            attempt.lost = attempt.lost or f"its JVM ended {how}"
            self.losses += 1
            # Before another one can start: PySpark supports one Spark in a process.
            jvm.forget_session()
            if self.session is attempt.spark:
                self.session = None
            started = attempt.done.is_set()
            if self._attempt is attempt and started:
                self._attempt = None
        if started:
            self.events.publish(SparkLost(attempt.lost, memory=code in OUT_OF_MEMORY))

    def wait(self, cancel: CancelToken) -> Any:
        """The SparkSession; waits until it has started. Raises StartFault when it could not, Cancelled."""
        attempt = self.begin_start()
        if attempt is None:
            spark = self.session
            return spark if spark is not None else self.wait(cancel)
        while not attempt.done.wait(POLL):
            cancel.check()
        if attempt.failure is None:
            return attempt.spark
        with self._lock:
            if self._attempt is attempt:
                self._attempt = None  # the next statement retries
        raise attempt.failure

    def has_ended(self, losses: int) -> bool:
        """Whether a JVM has ended since there were so many losses: asked after an error, which may come a
        moment before the end of the process is known.
        """
        process = self._process
        if process is not None and self.losses == losses:
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                return False
        return process is not None

    @property
    def memory_was_full(self) -> bool:
        """Whether the newest JVM has ended, and because of that."""
        return self._process is not None and self._process.poll() in OUT_OF_MEMORY

    @property
    def started(self) -> bool:
        return self.session is not None

    @property
    def starting(self) -> bool:
        attempt = self._attempt
        return self.session is None and attempt is not None and not attempt.done.is_set()

    @property
    def began(self) -> float:
        """When the start that is in progress began (time.monotonic)."""
        attempt = self._attempt
        return attempt.began if attempt is not None else time.monotonic()

    def say(self, doing: str) -> None:
        """Set what the waiting statement shows as its current work; empty for nothing special."""
        self.doing = doing

    def run_jobs_of(self, cancel: CancelToken, spark: Any) -> None:
        """Cancel the jobs that this thread starts from now on, and no others, when the token is set. The
        session becomes the active one of the thread.
        """
        activate(spark)
        spark.sparkContext.setJobGroup(cancel.jobs, "a statement")

        def end_jobs(pauses: Sequence[float] = CANCEL_AGAIN) -> None:
            try:
                # Future jobs, too; for its further stages see CANCEL_AGAIN.
                spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(cancel.jobs)
            except Exception:
                pass  # Spark has ended, and the jobs with it
            if pauses and self.session is not None:
                further = pauses[1:] or (pauses if cancel.running else ())
                again = threading.Timer(pauses[0], end_jobs, [further])
                again.daemon = True
                again.start()

        cancel.on_cancel(end_jobs, of=self)

    def functions(self) -> Any:
        """The module with Spark's functions, for programs."""
        from pyspark.sql import functions

        return functions

    def progress(self, cancel: CancelToken) -> JobProgress | None:
        """The progress of the running jobs of a statement; None when none runs. Calls Spark, so it is not
        for key presses. cancel: the statement's token.
        """
        spark = self.session
        if spark is None:
            return None
        stages = []
        try:
            tracker = spark.sparkContext._jsc.statusTracker()
            for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(cancel.jobs)):
                if job is not None and str(job.status()) == "RUNNING":
                    stages += [tracker.getStageInfo(stage) for stage in job.stageIds()]
            begun = [(stage.numCompletedTasks(), stage.numTasks()) for stage in stages if stage is not None]
        except Exception:
            return None
        done, tasks = sum(done for done, _ in begun), sum(tasks for _, tasks in begun)
        ended = sum(done == tasks for done, tasks in begun)
        return JobProgress(ended, len(stages), done, tasks) if stages else None

    def close(self) -> None:
        """Stop Spark if it was started here."""
        self._closing = True
        if self._own and self.session is not None:
            try:
                self.session.stop()
            except Exception:
                pass  # the JVM has ended already

    def kill(self) -> None:
        """Kill the JVM that was started here."""
        self._closing = True
        if self._own and self.session is not None:
            self._process.kill()
