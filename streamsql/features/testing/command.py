"""`streamsql test`: runs files of TESTs."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path

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
from streamsql.errors import EXIT_INTERRUPTED, Cancelled, UsageFault, reason_of
from streamsql.features.testing.cases import Case, chosen, collect, files_of_tests, script_of
from streamsql.features.testing.reports import TapReport, TextReport, junit
from streamsql.features.testing.runner import Outcome, run_cases
from streamsql.features.testing.sessions import SessionFactory
from streamsql.output.colors import is_terminal, wants_color
from streamsql.output.printer import Printer
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.settings import Settings, rules_setting

FAILED, NOT_RUN = 1, 2
"""Exit codes: a test has failed; tests could not be run."""


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
    """Run what the command line asks for. Returns the exit code. Raises UsageFault, InputFault and
    StartFault.
    """
    config = read_preferences(options, preferences, ("color", "master", "java"))
    printer = Printer(preferences, sys.stdout, sys.stderr)
    for warning in config.warnings:
        printer.warn(warning)
    if not options.files:
        raise UsageFault("no file of tests is named", hint="streamsql test FILE.test.sql, or a folder")
    sessions = None if options.list else _sessions(options, preferences, config)
    try:
        collection = collect(files_of_tests(options.files), options.file)
        for error in collection.errors:
            printer.error(error)
        cases = chosen(collection.cases, options.k) if options.k else collection.cases
        if collection.errors:
            return NOT_RUN
        if not cases:
            raise UsageFault(f"no test matches {options.k}", hint="--list lists the tests")
        for script in _missing_scripts(cases):
            printer.warn(f"there is no script {script} for the tests to run first; -f FILE names another")
        if sessions is None:
            _list(cases)
            return 0
        return _run(cases, sessions, options, preferences)
    finally:
        if sessions is not None:
            sessions.close()


def _missing_scripts(cases: list[Case]) -> list[str]:
    """The scripts that do not exist, of files of tests that define nothing themselves."""
    files = dict.fromkeys(case.source.name for case in cases if not case.pipelines and not case.before)
    return [str(script) for script in map(script_of, files) if script]


COMMAND = Command(test_parser, run_tests)


def _sessions(options: argparse.Namespace, preferences: Preferences, config: ConfigFile) -> SessionFactory:
    configured = config.spark | rules_setting(preferences)
    settings = Settings.make(
        preferences["master"], spark_conf(options), configured, preferences.origin("master")
    )
    return SessionFactory(settings, preferences["java"], name_value_pairs(options.define, "-D"))


def _list(cases: list[Case]) -> None:
    for case in cases:
        print(f"{case.source.name}:{case.line}: {case.name}")


def _run(
    cases: list[Case], sessions: SessionFactory, options: argparse.Namespace, preferences: Preferences
) -> int:
    """Run tests on a thread of their own, so that Ctrl-C is obeyed at any moment."""
    color = wants_color(preferences["color"], is_terminal(sys.stdout), os.environ)
    progress = sys.stderr if is_terminal(sys.stderr) and options.format == "text" else None
    text = TextReport(sys.stdout, color=color, progress=progress)
    report = TapReport(sys.stdout) if options.format == "tap" else text
    cancel, outcomes, failures = CancelToken(), list[Outcome](), list[BaseException]()

    def work() -> None:
        try:
            run_cases(cases, sessions, report, cancel, outcomes, stop_at_failure=options.exitfirst)
        except BaseException as error:
            failures.append(error)

    sessions.begin_start()
    worker = threading.Thread(target=work, daemon=True, name="tests")
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.2)
    except KeyboardInterrupt:
        cancel.cancel()
        worker.join(10)
    report.summary(outcomes)
    if options.junit:
        _write(options.junit, junit(outcomes))
    if cancel.cancelled:
        return EXIT_INTERRUPTED
    if failures and not isinstance(failures[0], Cancelled):
        raise failures[0]
    if any(not outcome.in_test and not outcome.passed for outcome in outcomes):
        return NOT_RUN
    return FAILED if any(not outcome.passed for outcome in outcomes) else 0


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"cannot write {path}: {reason_of(error)}") from None
