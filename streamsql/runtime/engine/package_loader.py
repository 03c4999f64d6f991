"""The packages of connectors, fetched by Spark's own resolver and added to the Spark that runs.

Nothing is restarted: ADD JAR gives a running session its jars, and its executors too. What was fetched
once is remembered in the cache folder, so that later starts ask no registry.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from streamsql.calls import Program
from streamsql.connectors.packages import Package, Release, needed
from streamsql.errors import EngineFault, Note
from streamsql.runtime.engine.cancel import CancelToken

NOTES = "packages.json"
POLL = 0.1
_TASK_THREADS = ("task-result-getter", "dispatcher-", "Executor task launch worker")
"""Threads of Spark's that take in the results of tasks, and those that start them."""


class Packages:
    """conf: what Spark is started with (its resolver's settings: Spark configuration, "spark.jars.ivy"
    and its neighbours); cache: the console's cache folder; offline: whether nothing may be fetched; say:
    told what is being fetched, and empty when it is there.

    news: what there is to tell of it.
    """

    def __init__(
        self,
        conf: Callable[[], Mapping[str, str]],
        cache: Path,
        offline: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self.conf = conf
        self.cache = cache
        self.offline = offline
        self.say = say
        self.news: list[Note] = []
        self._lock = threading.Lock()

    def provide(self, spark: Any, program: Program, cancel: CancelToken) -> None:
        """See that Spark has what a program needs.

        Raises EngineFault with what is to be fetched, or Cancelled.
        """
        wanted = needed(program)
        use_added_jars(spark)
        for package in wanted:
            self.load(spark, package, cancel)

    def load(self, spark: Any, package: Package, cancel: CancelToken) -> None:
        """Give Spark a package, if it has not got it. Raises as `provide`."""
        with self._lock:
            if not is_there(spark, package.probe):
                self._add(spark, package, cancel)

    def for_program(self, program: Program) -> dict[str, str]:
        """The settings that a program of its own begins with, so that Spark has what it needs."""
        version = metadata.version("pyspark")
        jars: list[str] = []
        coordinates: list[str] = []
        for package in needed(program):
            fetched = self.jars(package, version)
            jars += fetched
            first = next((r.coordinates for r in package.releases(version)), ())
            coordinates += () if fetched else first
        settings = {"spark.jars": ",".join(jars), "spark.jars.packages": ",".join(coordinates)}
        return {key: value for key, value in settings.items() if value}

    def jars(self, package: Package, version: str) -> list[str]:
        """The jars of a package as they were fetched; empty when they were not, or are gone."""
        try:
            known = json.loads((self.cache / NOTES).read_text("utf-8")).get(f"{package.name} {version}", [])
        except (OSError, ValueError):
            return []
        return known if all(Path(jar).is_file() for jar in known) else []

    def _add(self, spark: Any, package: Package, cancel: CancelToken) -> None:
        version = str(spark.version)
        jars = self.jars(package, version)
        if not jars:
            with self._alone(cancel):
                jars = self.jars(package, version) or self._fetch(spark, package, version, cancel)
        for jar in jars:
            spark.sql(f"ADD JAR '{jar}'")
        use_added_jars(spark)
        _use_in_threads(spark)
        if not is_there(spark, package.probe):
            raise EngineFault(
                f"the package for {package.name} does not contain {package.probe}",
                detail=", ".join(jars),
                code="PACKAGE_NOT_AVAILABLE",
            )

    @contextmanager
    def _alone(self, cancel: CancelToken) -> Iterator[None]:
        """Spark's resolver is used by one console of this cache at a time: what it has half fetched, another
        would take for whole. Raises Cancelled while that is waited for.
        """
        lock = FileLock(self.cache / "packages.lock", timeout=0, mode=0o600, thread_local=False)
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            while not _locked(lock):
                self.say("waiting for another console, which fetches packages")
                cancel.wait(POLL)
        except OSError:
            pass  # a cache that cannot be written is shared with nobody
        try:
            yield
        finally:
            lock.release()

    def _fetch(self, spark: Any, package: Package, version: str, cancel: CancelToken) -> list[str]:
        releases = package.releases(version)
        if package.unreleased:
            raise EngineFault(
                f"{package.name} has no release for Spark {version}",
                detail=package.unreleased,
                hint="for a newer release: streamsql --packages group:name:version",
                code="PACKAGE_NOT_AVAILABLE",
            )
        if self.offline():
            raise _missing(package, releases[0], "streamsql.offline is on")
        reasons: list[str] = []
        for release in releases:
            self.say(f"fetching {release.coordinates[0]}")
            try:
                jars = self._resolve(spark, release, cancel)
            except _NotFetched as error:
                reasons.append(str(error))
                continue
            finally:
                self.say("")
            self._remember(package, version, jars)
            first = releases[0].coordinates[0]
            instead = f", since {first.rpartition(':')[2]} is not available here" if reasons else ""
            text = f"{package.name}: fetched {release.coordinates[0]}{instead}"
            self.news.append(Note("PACKAGE_FETCHED", text))
            return jars
        raise _missing(package, releases[0], reasons[0])

    def _resolve(self, spark: Any, release: Release, cancel: CancelToken) -> list[str]:
        """The files of a release. Raises _NotFetched, or Cancelled while it is still being looked for."""
        conf = self.conf()
        jvm = spark._jvm
        path = conf.get("spark.jars.ivySettings")
        settings = jvm.scala.Option.apply(path)
        found: list[Any] = []

        def work() -> None:
            try:
                jars = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
                    release.whole,
                    conf.get("spark.jars.excludes", ""),
                    ",".join(release.coordinates),
                    conf.get("spark.jars.repositories", ""),
                    conf.get("spark.jars.ivy"),
                    settings,
                )
                found.append([str(jars.apply(i)) for i in range(jars.size())])
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work, daemon=True, name="fetch-packages")
        thread.start()
        while thread.is_alive():
            thread.join(POLL)
            cancel.check()
        if isinstance(found[0], Exception):
            raise _NotFetched(_reason(found[0]))
        return list(found[0])

    def _remember(self, package: Package, version: str, jars: list[str]) -> None:
        file = self.cache / NOTES
        try:
            known = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            known = {}
        known[f"{package.name} {version}"] = jars
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(".new")
            new.write_text(json.dumps(known, indent=1), "utf-8")
            new.replace(file)
        except OSError:
            pass  # then it is looked up again next time


def _locked(lock: FileLock) -> bool:
    """Take a lock; False when another process has it. Raises OSError."""
    try:
        lock.acquire()
    except Timeout:
        return False
    return True


class _NotFetched(Exception):
    """Why a release could not be fetched, in a few words."""


def use_added_jars(spark: Any) -> None:
    """Let this thread find the classes of ADD JAR: Spark sets that for the thread that added them only."""
    thread = spark._jvm.java.lang.Thread.currentThread()
    thread.setContextClassLoader(spark._jsparkSession.sharedState().jarClassLoader())


def _use_in_threads(spark: Any) -> None:
    """Let the threads that are there find the classes of ADD JAR. Else those that receive what a task
    raised cannot read an exception of such a class, and the query fails for an UnknownReason.
    """
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    for thread in spark._jvm.java.lang.Thread.getAllStackTraces().keySet():
        if thread.getName().startswith(_TASK_THREADS):
            thread.setContextClassLoader(loader)


def is_there(spark: Any, name: str) -> bool:
    """Whether Spark's JVM can load a class."""
    try:
        spark._jsparkSession.sharedState().jarClassLoader().loadClass(name)
    except Exception:
        return False
    return True


def _reason(error: Exception) -> str:
    text = str(getattr(error, "java_exception", error))
    if re.search(r"unresolved dependency|download failed|not found", text):
        return "it is not in the repositories that Spark's resolver reaches, or they cannot be reached"
    return text.splitlines()[0][:200]


def _missing(package: Package, release: Release, reason: str) -> EngineFault:
    return EngineFault(
        f"{package.name} needs the package {', '.join(release.coordinates)}",
        detail=reason,
        hint="a mirror: --conf spark.jars.repositories=URL or spark.jars.ivySettings=FILE; "
        "files: --jars a.jar,b.jar",
        code="PACKAGE_NOT_AVAILABLE",
    )
