"""Shared by all tests: one Spark for the whole run, a fresh console session for each test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, Unavailable
from console import ENGINE

from streamsql.config.folders import cache_folder
from streamsql.connectors.packages import PACKAGES
from streamsql.errors import EngineFault, Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.results import Result, Rows, RowStream
from streamsql.runtime.engine import aot_cache
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.java import find_java
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config

ROOT = Path(__file__).resolve().parents[1]
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # a shell or nohup has begun the tests in the background
        signal.signal(number, usual)
# Else each process that the tests start would compile all modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# No console of a test builds a start-up cache: that would only take the processors of the others.
os.environ["CI"] = "1"
# Each JVM of the tests, also those of the consoles that they start, runs a few seconds of small queries: no time
# for optimized machine code, no pages of 64 MB to clear.
FOR_SECONDS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.buffer.pageSize=1m -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m"
os.environ["JDK_JAVA_OPTIONS"] = FOR_SECONDS
# What the one who runs the tests has chosen for their own console changes nothing here.
os.environ["XDG_CONFIG_HOME"] = str(ROOT / "tests" / "no-config")
for variable in ("NO_COLOR", "STREAMSQL_PAGER", "PAGER", "LESS"):
    os.environ.pop(variable, None)
# The master that these tests run on: tests/slow/test_cluster.py runs some of them on a cluster.
MASTER = os.environ.get("STREAMSQL_TESTS_MASTER", "local[2]")
CONF = dict(pair.split("=", 1) for pair in os.environ.get("STREAMSQL_TESTS_CONF", "").split())
# Tests that tests run by themselves; some in SQL are to fail.
collect_ignore_glob = ["features/testing/sql_tests/*", "features/dbapi/sqlalchemy_suite/*"]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before the workers of a run with slow tests, which start many JVMs: the start-up cache that a user's second
    session has.
    """
    several = session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput")
    if several and session.config.getoption("markexpr") not in ("fast", "not slow"):
        java, cache = find_java(), cache_folder()
        if aot_cache.enabled() and not aot_cache.complete(aot_cache.cache_file(java, cache)):
            print("building Spark's start-up cache", flush=True)
            del os.environ["JDK_JAVA_OPTIONS"]  # it is the cache of the user's consoles
            cache.mkdir(parents=True, exist_ok=True)
            command, quiet = aot_cache.builder(java, cache)
            subprocess.run(command, timeout=aot_cache.BUILD_TIMEOUT, **quiet)
            os.environ["JDK_JAVA_OPTIONS"] = FOR_SECONDS


MARKS = {
    "slow": "faults, clusters, TLS, a full disk, compiled sqlglot, benchmarks: the nightly run",
    "process": "a console, a server or a broker of its own",
    "spark": "the session on the shared Spark",
    "fast": "no JVM and no process",
}
"""The marks of tests, of which each has one; what takes longest first."""
SLOW_FOLDERS = {"slow", "faults"}
PROCESS_FIXTURES = {"processes", "cold_start", "kafka", "postgresql"}
EVERYWHERE = (
    "pyproject.toml",
    "tests/conftest.py",
    "streamsql/runtime/engine/spark_classes/",
    "streamsql/runtime/queries/",
    "streamsql/runtime/live/",
    "streamsql/runtime/checkpoints/",
)
"""A change below these paths is reason to run all slow tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--changed-since",
        metavar="COMMIT",
        help="of the slow tests, run only those whose ROOMS, the paths that they test, have changed since it",
    )
    parser.addoption(
        "--minutes",
        metavar="N",
        type=float,
        help="skip the tests that have not begun N minutes after the start",
    )


DEADLINE = pytest.StashKey[float]()
"""When tests no longer begin, by the monotonic clock."""
NO_TIME = "no time was left for it (--minutes)"


def pytest_configure(config: pytest.Config) -> None:
    if (minutes := config.getoption("--minutes")) is not None:
        config.stash[DEADLINE] = time.monotonic() + 60 * minutes
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    config.addinivalue_line("markers", "first_cases(n): the other cases of the test are slow tests")


def mark_of(folders: Iterable[str], fixtures: Iterable[str]) -> str:
    """The one mark of a test. folders: the parts of its path below tests/; fixtures: all that it uses."""
    if set(folders) & SLOW_FOLDERS:
        return "slow"
    if set(fixtures) & PROCESS_FIXTURES:
        return "process"
    return "spark" if "spark" in fixtures else "fast"


def folders_of(item: pytest.Item) -> tuple[str, ...]:
    """The parts of the path of a test below tests/."""
    return item.path.relative_to(ROOT / "tests").parts


def marks_of(item: pytest.Item) -> list[str]:
    """The marks of a test; a test and its case may both be marked slow."""
    return list(dict.fromkeys(mark.name for mark in item.iter_markers() if mark.name in MARKS))


def rooms_of(item: pytest.Item) -> tuple[str, ...]:
    """The paths that a slow test tests: ROOMS of its module."""
    return tuple(getattr(getattr(item, "module", None), "ROOMS", ()))


def mark_later_cases(items: Iterable[pytest.Item]) -> None:
    """Of a test with the mark first_cases(n), the cases behind the first n are slow tests."""
    cases = Counter[str]()
    for item in items:
        if (first_cases := item.get_closest_marker("first_cases")) and not marks_of(item):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > first_cases.args[0]:
                item.add_marker("slow")


def touched(rooms: Iterable[str], changed: Iterable[str]) -> bool:
    """Whether a change touches a slow test. rooms: the paths that it tests; changed: the files of a change."""
    return any(path.startswith(tuple(rooms)) for path in changed)


def changed_files(commit: str) -> list[str]:
    command = ["git", "-C", str(ROOT), "diff", "--name-only", commit, "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its mark, and begin with what takes longest: else one worker would wait for the other."""
    mark_later_cases(items)
    for item in items:
        if marks_of(item) != ["slow"]:  # else the test, or this case of it, is marked so
            item.add_marker(mark_of(folders_of(item), getattr(item, "fixturenames", ())))
    slow = [item for item in items if marks_of(item) == ["slow"]]
    if roomless := sorted({str(item.path.relative_to(ROOT)) for item in slow if not rooms_of(item)}):
        raise pytest.UsageError(
            f"modules with slow tests need ROOMS, the paths that they test: {', '.join(roomless)}"
        )
    if commit := config.getoption("--changed-since"):
        changed = changed_files(commit)
        near = [
            item for item in slow if touched((*rooms_of(item), str(item.path.relative_to(ROOT))), changed)
        ]
        far = [item for item in slow if item not in set(near)]
        others = [item for item in items if item not in set(slow)]
        if touched(EVERYWHERE, changed):
            items[:] = [*near, *far, *others]
        else:
            config.hook.pytest_deselected(items=far)
            items[:] = [*near, *others]
    order = list(MARKS)
    items.sort(key=lambda item: order.index(marks_of(item)[0]))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """With --minutes: a test that would begin too late is skipped, before its fixtures."""
    if time.monotonic() > item.config.stash.get(DEADLINE, float("inf")):
        pytest.skip(NO_TIME)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With --minutes: which files have tests that did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    late = Counter(report.nodeid.partition("::")[0] for report in skipped if NO_TIME in str(report.longrepr))
    if late:
        terminalreporter.section("tests that did not run: no time was left")
        for path, tests in sorted(late.items()):
            terminalreporter.line(f"{path}: {tests}")


STARTS_A_PROCESS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty")
running: list[pytest.Item] = []
"""The test that runs now."""
started: list[str] = []
"""The processes that it has started although it has not the mark for it, on any thread."""


def note_process(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python: a test that is marked `fast` or `spark` starts no process."""
    if event in STARTS_A_PROCESS and running and not set(marks_of(running[0])) & {"process", "slow"}:
        started.append(f"{event} {arguments[:2]}"[:300])


sys.addaudithook(note_process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What fixtures start (Spark, for all tests) is theirs; what a test starts is checked."""
    running[:] = [item]
    try:
        outcome = yield
    finally:
        running.clear()
        found, started[:] = list(started), []
    assert not found, f"let the test use the fixture `processes`: it starts {found}"
    return outcome


@pytest.fixture(scope="session")
def engines() -> Iterator[None]:
    """The JVMs that the consoles of the tests take over, one console after the other: engines.py."""
    from engines import Engines

    engines = Engines()
    yield
    engines.close()


@pytest.fixture
def processes(engines: None) -> None:
    """For a test that starts consoles or other processes of its own."""


@pytest.fixture(autouse=True)
def own_jvms(request: pytest.FixtureRequest) -> None:
    """The consoles of tests in slow folders start their own JVM, as those of users do: most of them are killed."""
    if SLOW_FOLDERS & set(folders_of(request.node)):
        request.getfixturevalue("cold_start")


@pytest.fixture
def cold_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test whose consoles start their own JVM, as those of users do."""
    monkeypatch.delenv(ENGINE, raising=False)


def in_main_run(name: str, of: int) -> bool:
    """Whether a case is one of the fixed share, one of so many, that the main run takes. The name of a case decides,
    so that a new case moves no other.
    """
    return zlib.crc32(name.encode()) % of == 0


def cases_of(cases: Mapping[str, object], of: int) -> list[Any]:
    """Many cases as parameters of a test, with their names as ids: one of so many is in the main run, the others
    are slow tests.
    """
    return [
        pytest.param(case, id=name, marks=() if in_main_run(name, of) else pytest.mark.slow)
        for name, case in cases.items()
    ]


def notes_of(result: Any) -> tuple[str, ...]:
    """What the notes of a result, or of a plan, say."""
    return tuple(note.text for note in result.notes)


@pytest.fixture(scope="session")
def packages(spark: Any) -> Callable[[str], None]:
    """Gives the shared Spark a package by its name, as a connector's first use does; skips the test when
    it cannot be fetched.
    """
    fetching = Packages(dict, cache_folder(), lambda: False, lambda doing: None)

    def load(name: str) -> None:
        try:
            fetching.load(spark, PACKAGES[name], CancelToken())
        except EngineFault as error:
            pytest.skip(f"{error.message}: {error.detail}")

    return load


@pytest.fixture(scope="session")
def kafka(packages: Callable[[str], None]) -> Iterator[Broker]:
    """The one Kafka of the test run; a test makes topics of its own."""
    packages("kafka")  # else skipped
    try:
        broker = Broker()
    except Unavailable as why:
        pytest.skip(str(why))
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits for something that a query of this process does; its own end is an error."""

    def wait(seen: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not seen():
            assert time.monotonic() < deadline, f"not seen within {seconds} s"
            time.sleep(0.05)  # how often one looks, not how long one waits

    return wait


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark of the test run, started as the console starts it; session time zone UTC."""
    from streamsql.runtime.engine import jvm

    with tempfile.TemporaryDirectory(prefix="streamsql-tests-", ignore_cleanup_errors=True) as folder:
        settings = Settings.make(MASTER, {"spark.sql.session.timeZone": "UTC"} | CONF)
        conf = settings.start_conf() | {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
        if MASTER.startswith("local"):
            conf |= {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
        log = Path(folder) / "spark.log"
        session = jvm.start_session(conf, log, cache_folder(), find_java())
        yield session
        session.stop()


class Console:
    """A console session that a test types into."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def reset(self) -> None:
        """Begin again with an empty console, in a folder of its own."""
        self.session.close()
        spark, old = self.session.spark, self.session.parts.config
        drop_tables(spark)
        again = replace(old, folder=old.folder.with_name(old.folder.name + "_"))
        self.session = Session(again, spark)

    def run(self, script: str, cancel: CancelToken | None = None) -> list[Result]:
        """Run a script; errors are raised, placed in it. cancel: gives it up."""
        results = []
        for written in split_script(Source("test.sql", script)):
            try:
                results.append(
                    self.session.execute(
                        parse(written, self.session.variables, translation=self.session.translation), cancel
                    )
                )
            except StreamsqlError as error:
                raise error.at(written.source, written.span) from None
        return results

    def rows(self, script: str) -> list[tuple[Any, ...]]:
        """The rows of a script's last statement."""
        result = self.run(script)[-1]
        result = result.whole() if isinstance(result, RowStream) else result
        assert isinstance(result, Rows), result
        return [tuple(r) for r in result.rows]


@pytest.fixture
def console(spark: Any, tmp_path: Path) -> Iterator[Console]:
    """A fresh session on the shared Spark; its queries are stopped and its views dropped behind it."""
    with fresh_console(spark, tmp_path) as console:
        yield console


@contextmanager
def fresh_console(spark: Any, folder: Path) -> Iterator[Console]:
    settings = Settings.make(MASTER, {})
    made = Console(Session(Config(settings, folder / "console", folder / "log", cache_folder()), spark))
    before = {k: spark.conf.get(k) for k in ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")}
    yield made
    made.session.close()
    # What follows is no part of the last statement, whose jobs may have been cancelled.
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    for query in spark.streams.active:
        query.stop()
    for key in made.session.parts.settings.changed:
        spark.conf.unset(key)
    for key, value in before.items():
        spark.conf.set(key, value)
    drop_tables(spark)


def drop_tables(spark: Any) -> None:
    """Drop all tables, temporary views and functions in SQL."""
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # that of a statement, perhaps cancelled
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
        else:
            spark.sql(f"DROP TABLE IF EXISTS `{table.name}`")
    for (name,) in spark.sql("SHOW USER FUNCTIONS").collect():
        name = name.rpartition(".")[2]
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{name}`")
        spark.sql(f"DROP FUNCTION IF EXISTS `{name}`")
