"""`streamsql test`: pytest runs the TESTs of files, by the console's plug-in."""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import fnmatchcase
from typing import Any, TextIO

from streamsql.cli.command_line import (
    Command,
    Parser,
    add_flags,
    name_value_pairs,
    read_preferences,
    spark_conf,
)
from streamsql.config.config_file import ConfigFile
from streamsql.config.preferences import Preferences
from streamsql.errors import EXIT_INTERRUPTED, StartFault, UsageFault
from streamsql.features.testing.sessions import SessionFactory
from streamsql.output.printer import Printer
from streamsql.runtime.engine.settings import Settings, rules_setting

FAILED, NOT_RUN = 1, 2
"""Exit codes: a test has failed; tests could not be run."""
_COLORS = {"auto": "auto", "always": "yes", "never": "no"}
"""The values of the preference `color`, and those of pytest."""


def test_parser() -> argparse.ArgumentParser:
    """The parser of the command line behind `streamsql test`."""
    parser = Parser(
        prog="streamsql test",
        description="Run the TESTs of files, each in a session of its own. x.test.sql tests x.sql.",
        epilog="exit codes: 0 all tests passed, 1 a test failed, 2 tests could not be run, "
        "3 Spark could not start, 130 interrupted",
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="files of tests, or folders with files *.test.sql")
    add("-f", "--file", action="append", default=[], metavar="FILE", help="the script under test")
    add("-k", metavar="PATTERN", default="", help="only tests whose file or name contains this text")
    add("--list", action="store_true", help="list the tests, run none")
    add("-x", "--exitfirst", action="store_true", help="stop at the first failure")
    add("--junit", metavar="FILE", help="write a report for CI servers (XML of JUnit)")
    add("--format", choices=("text", "tap"), default="text", help="format of the output (default: text)")
    add_flags(parser, "-D --define", "--color", "--master", "--conf", "--packages", "--jars", "--java")
    add_flags(parser, "--config", "--no-config", "--debug")
    return parser


def run_tests(options: argparse.Namespace, preferences: Preferences) -> int:
    """Run what the command line asks for. Returns the exit code. Raises UsageFault."""
    import pytest

    config = read_preferences(options, preferences, ("color", "master", "java"))
    printer = Printer(preferences, sys.stdout, sys.stderr)
    for warning in config.warnings:
        printer.warn(warning)
    if not options.files:
        raise UsageFault("no file of tests is named", hint="streamsql test FILE.test.sql, or a folder")
    sessions = _sessions(options, preferences, config)
    if not options.list:
        sessions.begin_start()
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):  # those are for the user's own tests
        os.environ.pop(name, None)
    run = Run(sessions, options.k, sys.stdout if options.format == "tap" else None)
    code = int(pytest.main(arguments(options, preferences["color"]), plugins=[run]))
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        listed = ", ".join(options.files)
        raise UsageFault(
            f"no test matches {options.k}" if options.k else f"there is no file *.test.sql in {listed}",
            hint="--list lists the tests" if options.k else "streamsql test FILE",
        )
    if run.interrupted:
        return EXIT_INTERRUPTED
    if code == StartFault.exit_code:
        return code
    return NOT_RUN if run.not_loaded or code > FAILED else code


COMMAND = Command(test_parser, run_tests)


def arguments(options: argparse.Namespace, color: str) -> list[str]:
    """The arguments of pytest, which reads no configuration, no plug-in and no Python test of the user."""
    root = os.path.commonpath([os.getcwd(), *map(os.path.abspath, options.files)])
    given = ["-c", os.devnull, f"--rootdir={root}", "--noconftest", "--disable-plugin-autoload"]
    given += ["-p", "streamsql.testing.pytest_plugin", "-p", "no:cacheprovider", "-o", "python_files="]
    given += [f"--streamsql-pipeline={file}" for file in options.file]
    if options.exitfirst:
        given.append("--exitfirst")
    if options.junit:
        given += [f"--junit-xml={options.junit}", "-o", "junit_family=xunit1"]  # which has files and lines
    if options.list:
        given += ["--collect-only", "-q"]
    elif options.format == "tap":
        given += ["-p", "no:terminal"]
    else:
        given += ["-v", "--no-header", "-rN", "-o", "console_output_style=times"]
    if options.list or options.format != "tap":
        given.append(f"--color={_COLORS[color]}")
    return [*given, "--", *options.files]


def _sessions(options: argparse.Namespace, preferences: Preferences, config: ConfigFile) -> SessionFactory:
    configured = config.spark | rules_setting(preferences)
    settings = Settings.make(
        preferences["master"], spark_conf(options), configured, preferences.origin("master")
    )
    return SessionFactory(settings, preferences["java"], name_value_pairs(options.define, "-D"))


class Run:
    """A plug-in of pytest for one run. sessions: those of its tests; pattern: of the tests that are chosen,
    "" for all; tap: where the results are written as TAP (Test Anything Protocol), version 13.

    interrupted: whether Ctrl-C has ended the run; not_loaded: whether the pipeline of a test has failed.
    """

    def __init__(self, sessions: SessionFactory, pattern: str = "", tap: TextIO | None = None) -> None:
        self.sessions = sessions
        self.pattern = pattern.casefold()
        self.tap = tap
        self.interrupted = False
        self.not_loaded = False
        self._planned = self._ended = self._failed = 0

    def pytest_configure(self, config: Any) -> None:
        config.option.streamsql_sessions = self.sessions

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Choose the tests whose file or name contains a text, or matches a pattern with * or ?."""
        wild = self.pattern if any(sign in self.pattern for sign in "*?[") else f"*{self.pattern}*"
        chosen = [item for item in items if self._is_chosen(item.nodeid.casefold(), wild)]
        if left_out := [item for item in items if item not in chosen]:
            config.hook.pytest_deselected(items=left_out)
            items[:] = chosen

    def _is_chosen(self, title: str, wild: str) -> bool:
        return self.pattern in title or fnmatchcase(title, wild)

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self.interrupted = excinfo.type is KeyboardInterrupt  # and no error of a collection

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.not_loaded = self.not_loaded or (report.when == "setup" and report.failed)
        if self.tap and (report.when == "call" or (report.when == "setup" and not report.passed)):
            self._write_result(report)

    # ---- TAP

    def pytest_collectreport(self, report: Any) -> None:
        if self.tap and report.failed:
            print(report.longreprtext, file=sys.stderr)

    def pytest_collection_finish(self, session: Any) -> None:
        self._planned = len(session.items)
        if self.tap:
            self.tap.write(f"TAP version 13\n1..{self._planned}\n")

    def _write_result(self, report: Any) -> None:
        assert self.tap
        self._ended += 1
        self._failed += report.failed
        name = report.nodeid.replace("#", "\\#").replace("\n", " ")
        milliseconds = f"time={report.duration * 1000:.0f}ms"
        word = "ok" if report.passed or report.skipped else "not ok"
        skipped = "SKIP " if report.skipped else ""
        self.tap.write(f"{word} {self._ended} - {name} # {skipped}{milliseconds}\n")
        if report.failed:
            self.tap.writelines(f"# {line}\n" for line in report.longreprtext.splitlines())
        self.tap.flush()

    def pytest_sessionfinish(self) -> None:
        if not self.tap:
            return
        self.tap.write(f"# {self._ended} tests, {self._failed} failed\n")
        if self._ended < self._planned:
            self.tap.write(f"Bail out! {self._planned - self._ended} tests were not run\n")
