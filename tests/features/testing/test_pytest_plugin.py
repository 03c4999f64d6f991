"""pytest runs files *.test.sql, and gives sessions to tests in Python."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import walk_packages
from typing import Any

import pytest

import streamsql

ROOMS = ("streamsql/features/testing/", "streamsql/testing/")

pytestmark = pytest.mark.usefixtures("processes")

pytest_plugins = "pytester"

# pytester forgets the modules that its run imports: those after it would have other classes of the same names.
for module in (*(m.name for m in walk_packages(streamsql.__path__, "streamsql.")), "sqlglot.optimizer.scope"):
    if not module.startswith("streamsql.__main__"):
        import_module(module)

PLUGIN = "streamsql.testing.pytest_plugin"
# Where the package was installed before it had the plugin.
ARGUMENTS = [] if any(p.value == PLUGIN for p in entry_points(group="pytest11")) else ["-p", PLUGIN]

SQL = """
CREATE STREAM words (word STRING) USING values;
CREATE LIVE TABLE counts AS SELECT word, count(*) AS n FROM words GROUP BY word;

TEST 'words are counted' BEGIN
  GIVEN words VALUES ('cat'), ('cat');
  EXPECT counts VALUES ('cat', 2);
END TEST;
TEST 'one too few' BEGIN
  GIVEN words VALUES ('cat');
  EXPECT counts VALUES ('cat', 2);
END TEST;
"""
PYTHON = """
import pytest


def test_rows(streamsql):
    streamsql.load("pipeline.sql")
    streamsql.run("GIVEN words VALUES ('owl'); EXPECT counts VALUES ('owl', 1)")
    assert streamsql.rows("SELECT * FROM counts") == [("owl", 1)]
    with pytest.raises(AssertionError, match="counts has changed"):
        streamsql.run("GIVEN words VALUES ('owl'); EXPECT NO CHANGES IN counts;")
    with pytest.raises(AssertionError, match="did you mean counts?"):
        streamsql.rows("SELECT * FROM count")


def test_nothing_is_given(streamsql):
    streamsql.load("pipeline.sql")
    streamsql.run("EXPECT counts VALUES ('owl', 1)")
"""


def test_sql_tests_are_items_with_file_and_line(pytester: pytest.Pytester, spark: Any) -> None:
    pytester.makefile(".test.sql", words=SQL)
    pytester.makefile(".sql", pipeline=SQL.partition("TEST")[0])
    pytester.makepyfile(PYTHON)
    ran = pytester.runpytest_inprocess(*ARGUMENTS, "-q", "-p", "no:cacheprovider", "-rf")
    ran.assert_outcomes(passed=2, failed=2)
    ran.stdout.fnmatch_lines(
        [
            ">       streamsql.run(*",
            "E *AssertionError: streamsql.run:1:8: error[[]NOT_AS_EXPECTED]: counts is not as expected: 1 missing",
            "E       hint: GIVEN words VALUES ('a');",
            "words.test.sql:10:10: error[[]NOT_AS_EXPECTED]: counts is not as expected: 1 missing, 1 too many",
            "| missing  | cat    |   2 |",
            "FAILED words.test.sql::one too few*",
        ]
    )
    ran.stdout.no_fnmatch_line("*python_session.py*")
    ran.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.slow
def test_failures_are_run_again_and_the_first_one_ends_a_run(pytester: pytest.Pytester, spark: Any) -> None:
    tests = "".join(f"TEST '{name}' BEGIN EXPECT t {what}; END TEST;\n" for name, what in (
        ("first", "EMPTY"), ("second", "VALUES (1)"), ("third", "EMPTY"), ("fourth", "VALUES (2)")
    ))  # fmt: skip
    head = "CREATE STREAM s (n INT) USING values;\nCREATE LIVE TABLE t AS SELECT n FROM s;\n"
    pytester.makefile(".test.sql", some=head + tests)
    run = pytester.runpytest_inprocess
    run(*ARGUMENTS, "-q", "-x").assert_outcomes(passed=1, failed=1)
    again = run(*ARGUMENTS, "-v", "--lf")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(
        [
            "some.test.sql::second FAILED*",
            "some.test.sql:4:*: error[[]NOT_AS_EXPECTED]: t is not as expected*",
        ]
    )
    one = run(*ARGUMENTS, "-q", "-k", "fourth or first", "-rA", "-p", "no:cacheprovider")
    one.assert_outcomes(passed=1, failed=1, deselected=2)
    run(*ARGUMENTS, "-q", "some.test.sql::third", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_items_are_collected_without_spark(pytester: pytest.Pytester) -> None:
    pytester.makefile(".test.sql", words=SQL, broken="TEST 'a' BEGIN EXPECT t EMTPY; END TEST;")
    listed = pytester.runpytest_inprocess(*ARGUMENTS, "--collect-only", "-q", "-k", "few", "words.test.sql")
    listed.stdout.fnmatch_lines(["words.test.sql::one too few", "1/2 tests collected (1 deselected)*"])
    broken = pytester.runpytest_inprocess(*ARGUMENTS, "broken.test.sql")
    broken.stdout.fnmatch_lines(["broken.test.sql:1:25: error[[]SYNTAX_ERROR]: expected EMPTY, found EMTPY"])
    assert broken.ret == pytest.ExitCode.INTERRUPTED
