"""pytest collects files *.test.sql: each TEST is an item. The fixture `streamsql` is a session for Python.

Modules of the console are imported when there is such a file, or the fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamsql.features.testing.cases import Case
    from streamsql.features.testing.python_session import PythonSession
    from streamsql.features.testing.sessions import SessionFactory

ENDING = ".test.sql"
_FACTORY = pytest.StashKey[Any]()


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
    return SqlFile.from_parent(parent, path=file_path) if file_path.name.endswith(ENDING) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    factory = config.stash.get(_FACTORY, None)
    if factory is not None:
        factory.close()


def _factory(config: pytest.Config) -> SessionFactory:
    """The sessions of this run, on a Spark that runs already in this process, or on one of their own."""
    from streamsql.cli.command_line import name_value_pairs
    from streamsql.features.testing.sessions import SessionFactory
    from streamsql.runtime.engine.pyspark_import import running_spark
    from streamsql.runtime.engine.settings import Settings

    factory = config.stash.get(_FACTORY, None)
    if factory is None:
        given = name_value_pairs(config.getoption("--streamsql-conf"), "--streamsql-conf")
        variables = name_value_pairs(config.getoption("--streamsql-define"), "--streamsql-define")
        settings = Settings.make(given.pop("spark.master", "local[*]"), given)
        factory = SessionFactory(settings, variables=variables, spark=running_spark())
        config.stash[_FACTORY] = factory
    return factory


class SqlFile(pytest.File):
    """A file of TESTs."""

    def collect(self) -> Iterator[pytest.Item]:
        from streamsql.errors import StreamsqlError
        from streamsql.features.testing.cases import collect
        from streamsql.output.error_text import format_error

        try:
            collection = collect([_shown(self.path)], self.config.getoption("--streamsql-pipeline"))
        except StreamsqlError as error:
            raise self.CollectError(format_error(error)) from None
        if collection.errors:
            raise self.CollectError("\n".join(map(format_error, collection.errors)))
        for case in collection.cases:
            yield SqlTest.from_parent(self, name=case.name, case=case)


def _shown(path: Path) -> str:
    """A path as messages name it: from the current folder, if it is in it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


class SqlTest(pytest.Item):
    """One TEST."""

    def __init__(self, *, case: Case, **parts: Any) -> None:
        super().__init__(**parts)
        self.case = case

    def runtest(self) -> None:
        from streamsql.features.testing.reports import explained
        from streamsql.features.testing.runner import run_case
        from streamsql.runtime.engine.cancel import CancelToken

        outcome = run_case(self.case, _factory(self.config), CancelToken())
        if outcome.error:
            raise SqlFailure(explained(outcome.error)) from outcome.error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, SqlFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name


class SqlFailure(AssertionError):
    """An EXPECT that does not hold, or another error of a TEST, as a person reads it."""


@pytest.fixture
def streamsql(request: pytest.FixtureRequest) -> Iterator[PythonSession]:
    """A session for a Python test: `load` a pipeline, `run` statements of a TEST, and read `rows`."""
    from streamsql.features.testing.python_session import PythonSession

    factory = _factory(request.config)
    with factory.session() as session:
        yield PythonSession(session)
