"""Fetches the packages of connectors with Spark's own resolver, and adds them to the running Spark.

Nothing is restarted: ADD JAR adds jars to a running session and its executors. The fetched packages are
recorded in the cache folder, so that later starts need no repository.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from streamsql.calls import Program
from streamsql.connectors.packages import Package, Release, needed
from streamsql.errors import EngineFault, Note
from streamsql.runtime.embedded.durable_files import write_file
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.file_lock import Lock, Locked
from streamsql.runtime.engine.java_classes import java_class

NOTES = "packages.json"
POLL = 0.1
_TASK_THREADS = ("task-result-getter", "dispatcher-", "Executor task launch worker")
"""Spark's threads that receive the results of tasks, or start tasks."""


@dataclass(eq=False)
class Packages:
    """conf: the settings that Spark is started with (for the resolver: spark.jars.ivy and others); cache:
    the console's cache folder; offline: whether nothing may be fetched; say: called with what is being
    fetched, and with an empty text at its end.

    news: notes about fetched packages.
    """

    conf: Callable[[], Mapping[str, str]]
    cache: Path
    offline: Callable[[], bool]
    say: Callable[[str], None]
    news: list[Note] = field(default_factory=list)
    _added: set[tuple[str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def provide(self, spark: Any, program: Program, cancel: CancelToken) -> None:
        """Load the packages that a program needs. Raises EngineFault that names a missing one, Cancelled."""
        wanted = needed(program)
        use_added_jars(spark)
        for package in wanted:
            self.load(spark, package, cancel)

    def load(self, spark: Any, package: Package, cancel: CancelToken) -> None:
        """Load a package if Spark does not have it. Raises as `provide`."""
        with cancel.holding(self._lock):
            if not self._is_there(spark, package):
                self._add(spark, package, cancel)

    def _is_there(self, spark: Any, package: Package) -> bool:
        """Whether Spark has a package: its class can be loaded, or its jars were added."""
        if package.probe:
            return can_load(spark, package.probe)
        return (spark.sparkContext.applicationId, _key(package, spark.version)) in self._added

    def for_program(self, program: Program) -> dict[str, str]:
        """The settings with which a stand-alone program loads the packages that it needs."""
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
        """The jars of a package that was fetched before; empty when it was not, or a jar is missing."""
        paths = self._fetched().get(_key(package, version), [])
        return paths if all(Path(jar).is_file() for jar in paths) else []

    def _add(self, spark: Any, package: Package, cancel: CancelToken) -> None:
        version = str(spark.version)
        jars = self.jars(package, version)
        if not jars:
            with self._alone(cancel):
                jars = self.jars(package, version) or self._fetch(spark, package, version, cancel)
        for jar in jars:
            spark.sql(f"ADD JAR '{jar}'")
        use_added_jars(spark)
        use_in_threads(spark)
        # Hadoop finds file systems in them: the configurations of sessions are copies of this one.
        hadoop = spark._jsparkSession.sparkContext().hadoopConfiguration()
        hadoop.setClassLoader(_added_classes(spark))
        self._added.add((spark.sparkContext.applicationId, _key(package, version)))
        if not self._is_there(spark, package):
            raise EngineFault(
                f"the package for {package.name} does not contain {package.probe}",
                detail=", ".join(jars),
                code="PACKAGE_NOT_AVAILABLE",
            )

    @contextmanager
    def _alone(self, cancel: CancelToken) -> Iterator[None]:
        """Holds the lock of Spark's resolver, which one console at a time may use: another one would read
        incomplete files. Waits for it. Raises Cancelled.
        """
        lock: Lock | None = None
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            while lock is None:
                try:
                    lock = Lock(self.cache / "packages.lock", 0)
                except Locked:
                    self.say("waiting for another console, which fetches packages")
                    cancel.wait(POLL)
        except OSError:
            pass  # a cache that cannot be written is not shared
        try:
            yield
        finally:
            if lock is not None:
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
            notes = json.dumps(self._fetched() | {_key(package, version): jars}, indent=1).encode()
            with suppress(OSError):  # then it is resolved again next time
                write_file(self.cache / NOTES, lambda file, notes=notes: file.write(notes))
            first = releases[0].coordinates[0]
            instead = f", since {first.rpartition(':')[2]} is not available here" if reasons else ""
            text = f"{package.name}: fetched {release.coordinates[0]}{instead}"
            self.news.append(Note("PACKAGE_FETCHED", text))
            return jars
        raise _missing(package, releases[0], reasons[0])

    def _resolve(self, spark: Any, release: Release, cancel: CancelToken) -> list[str]:
        """The jars of a release. Raises _NotFetched, or Cancelled while it is being fetched."""
        conf = self.conf()
        jvm = spark._jvm
        path = conf.get("spark.jars.ivySettings")
        settings = jvm.scala.Option.apply(path)
        outcome: list[Any] = []

        def work() -> None:
            try:
                jars = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
                    release.whole,
                    ",".join(filter(None, (conf.get("spark.jars.excludes", ""), *release.without))),
                    ",".join(release.coordinates),
                    conf.get("spark.jars.repositories", ""),
                    conf.get("spark.jars.ivy"),
                    settings,
                )
                outcome.append([str(jars.apply(i)) for i in range(jars.size())])
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True, name="fetch-packages")
        thread.start()
        while thread.is_alive():
            thread.join(POLL)
            cancel.check()
        if isinstance(outcome[0], Exception):
            raise _NotFetched(_reason(outcome[0]))
        return list(outcome[0])

    def _fetched(self) -> dict[str, list[str]]:
        """The jars of all packages that were fetched, by `_key`."""
        try:
            jars: dict[str, list[str]] = json.loads((self.cache / NOTES).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return jars


def _key(package: Package, version: str) -> str:
    """What the jars of a package are recorded under: its name, or its coordinates where it has no probe."""
    name = package.name if package.probe else ",".join(package.matching.coordinates)
    return f"{name} {version}"


class _NotFetched(Exception):
    """A release could not be fetched. The message is the reason."""


def _added_classes(spark: Any) -> Any:
    """The class loader with the jars of ADD JAR."""
    return spark._jsparkSession.sharedState().jarClassLoader()


def use_added_jars(spark: Any) -> None:
    """Make the classes of ADD JAR visible to this thread; Spark itself does so only for the adding thread."""
    java_class(spark, "java.lang.Thread").currentThread().setContextClassLoader(_added_classes(spark))


def use_in_threads(spark: Any) -> None:
    """Make the classes of ADD JAR, also of later ones, visible to Spark's existing threads: they keep the
    class loader of their first use. Otherwise those that receive the exception of a task cannot read its
    class, and the query fails with UnknownReason.
    """
    classes = _added_classes(spark)
    for thread in spark._jvm.java.lang.Thread.getAllStackTraces().keySet():
        if thread.getName().startswith(_TASK_THREADS):
            thread.setContextClassLoader(classes)


def can_load(spark: Any, name: str) -> bool:
    """Whether Spark's JVM can load a class."""
    try:
        _added_classes(spark).loadClass(name)
    except Exception:
        return False
    return True


def _reason(error: Exception) -> str:
    text = str(getattr(error, "java_exception", error))
    if re.search(r"unresolved dependency|download failed|not found", text):
        return "it is not in the repositories of Spark's resolver, or they cannot be reached"
    return text.splitlines()[0][:200]


def _missing(package: Package, release: Release, reason: str) -> EngineFault:
    return EngineFault(
        f"{package.name} needs the package {', '.join(release.coordinates)}",
        detail=reason,
        hint="a mirror: --conf spark.jars.repositories=URL or spark.jars.ivySettings=FILE; "
        "files: --jars a.jar,b.jar",
        code="PACKAGE_NOT_AVAILABLE",
    )
