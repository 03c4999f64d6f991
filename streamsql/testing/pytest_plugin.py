"""pytest collects files *.test.sql: each TEST is an item. The fixture `streamsql` is a session for Python.

Modules of the console are imported when there is such a file, or the fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamsql.features.testing.cases import Case
    from streamsql.features.testing.python_session import PythonSession
    from streamsql.features.testing.sessions import SessionFactory
    from streamsql.runtime.session import Session

ENDING = ".test.sql"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streamsql", "tests of streaming SQL (*.test.sql)")
    group.addoption(
        "--streamsql-pipeline",
        action="append",
        default=[],
        metavar="FILE",
        help="the script under test (default: x.sql for x.test.sql)",
    )
    group.addoption(
        "--streamsql-conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )
    group.addoption(
        "--streamsql-define",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set the variable ${NAME}",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A file of tests by its name, and a file of SQL that is named itself."""
    named = file_path.suffix == ".sql" and parent.session.isinitpath(file_path)
    return SqlFile.from_parent(parent, path=file_path) if named or file_path.name.endswith(ENDING) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    factory = config.getoption("streamsql_sessions", None)
    if factory is not None:
        factory.close()


def _factory(config: pytest.Config) -> SessionFactory:
    """The sessions of this run: those of `streamsql test`, else on a Spark that runs already in this process,
    or on one of their own.
    """
    from streamsql.cli.command_line import name_value_pairs
    from streamsql.features.testing.sessions import SessionFactory
    from streamsql.runtime.engine.pyspark_import import running_spark
    from streamsql.runtime.engine.settings import Settings

    factory: SessionFactory | None = config.getoption("streamsql_sessions", None)
    if factory is None:
        given = name_value_pairs(config.getoption("--streamsql-conf"), "--streamsql-conf")
        variables = name_value_pairs(config.getoption("--streamsql-define"), "--streamsql-define")
        settings = Settings.make(given.pop("spark.master", "local[*]"), given)
        factory = SessionFactory(settings, variables=variables, spark=running_spark())
        config.option.streamsql_sessions = factory
    return factory


class SqlFile(pytest.File):
    """A file of TESTs. is_broken: whether its pipeline could not be loaded."""

    is_broken = False

    def collect(self) -> Iterator[pytest.Item]:
        from streamsql.errors import StreamsqlError
        from streamsql.features.testing.cases import collect, script_of
        from streamsql.output.error_text import format_error

        try:
            collection = collect([_shown(self.path)], self.config.getoption("--streamsql-pipeline"))
        except StreamsqlError as error:
            raise self.CollectError(format_error(error)) from None
        if collection.errors:
            raise self.CollectError("\n".join(map(format_error, collection.errors)))
        script = script_of(_shown(self.path))
        if script and not any(case.pipelines or case.before for case in collection.cases):
            words = f"there is no script {script} for the tests to run first; -f FILE names another"
            self.warn(pytest.PytestWarning(words))
        for case in collection.cases:
            yield SqlTest.from_parent(self, name=case.name, case=case)


def _shown(path: Path) -> str:
    """A path as messages name it: from the current folder, if it is in it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


class SqlTest(pytest.Item):
    """One TEST. Its pipeline is loaded as the item is set up: where that fails, the test is in error."""

    def __init__(self, *, case: Case, **parts: Any) -> None:
        super().__init__(**parts)
        self.case = case
        self._open = ExitStack()

    def setup(self) -> None:
        from streamsql.features.testing.test_run import load_pipeline

        assert isinstance(self.parent, SqlFile)
        if self.parent.is_broken:
            pytest.skip("the pipeline cannot be loaded, as above")
        self.session_of_test = self._open.enter_context(_session(self.config))
        with _explained():
            self.parent.is_broken = True
            load_pipeline(self.case, self.session_of_test)
            self.parent.is_broken = False

    def runtest(self) -> None:
        from streamsql.features.testing.test_run import run_case

        with _explained():
            run_case(self.case, self.session_of_test)

    def teardown(self) -> None:
        self._open.close()

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name


@contextmanager
def _explained() -> Iterator[None]:
    """A context whose errors fail the test with what a person reads."""
    from streamsql.errors import StreamsqlError
    from streamsql.features.testing.test_run import explained

    try:
        yield
    except StreamsqlError as error:
        raise pytest.fail.Exception(explained(error), pytrace=False) from None


@contextmanager
def _session(config: pytest.Config) -> Iterator[Session]:
    """A session of its own. Ends the whole run when Spark cannot start."""
    from streamsql.errors import StartFault
    from streamsql.output.error_text import format_error

    try:
        with _factory(config).session() as session:
            yield session
    except StartFault as fault:
        pytest.exit(format_error(fault), returncode=fault.exit_code)


@pytest.fixture
def streamsql(request: pytest.FixtureRequest) -> Iterator[PythonSession]:
    """A session for a Python test: `load` a pipeline, `run` statements of a TEST, and read `rows`."""
    from streamsql.features.testing.python_session import PythonSession

    with _session(request.config) as session:
        yield PythonSession(session)
