"""The flags of the command line, the order of its scripts, and standard streams that are closed."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from streamsql import feature_registry
from streamsql.config.preferences import DIALECTS, FORMATS, SPECS

SARIF = "sarif"
"""The format of --check that CI systems read; no format of rows."""


class _Inputs(argparse.Action):
    """Collects the scripts of all flags in their order on the command line."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        kind = "text" if option_string in ("-e", "-c", "--execute", "--command") else "file"
        values = values if isinstance(values, list) else [values]
        namespace.inputs = [*(namespace.inputs or []), *((kind, v) for v in values)]


def command_parser() -> argparse.ArgumentParser:
    """The parser of the command line; --help lists the flags in the order in which they are added."""
    parser = argparse.ArgumentParser(
        prog="streamsql",
        description="A SQL-first console for Spark Structured Streaming. "
        "streamsql fmt FILE… formats scripts (streamsql fmt --help).",
        epilog="streamsql test FILE … runs tests of scripts, streamsql fmt FILE … formats scripts, streamsql "
        "serve runs the session of a workspace as a server, streamsql ps lists servers (each has --help). "
        "exit codes: 0 success, 1 a statement failed, 2 usage, 3 Spark could not start, 4 time-out, "
        "5 a query failed while running, 129 SIGHUP, 130 interrupted, 143 SIGTERM",
    )
    _add_script_flags(parser)
    _add_spark_flags(parser)
    _add_workspace_flags(parser)
    add = parser.add_argument
    for flag, arguments in feature_registry.flags().items():
        add(flag, **arguments)
    add("-q", "--quiet", action="store_true", help="print notes and errors only, no other messages")
    add("--info", action="store_true", help="versions, Java and folders, as JSON")
    add("--debug", action="store_true", help="show Python tracebacks of errors")
    add("--version", action="store_true", help="the version")
    parser.set_defaults(inputs=None)
    return parser


def _add_script_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="*", action=_Inputs, metavar="FILE", help="scripts to run; - is standard input")
    add("-f", "--file", action=_Inputs, metavar="FILE", help="a script to run")
    add("-e", "-c", "--execute", "--command", action=_Inputs, metavar="SQL", help="statements to run")
    add("-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="set the variable ${NAME}")
    add("--check", action="store_true", help="parse and plan everything, report all errors, start nothing")
    add(
        "--format",
        choices=(*FORMATS, SARIF),
        help="output format of rows (default: table); with --check, of what it finds (json, sarif, …)",
    )
    add("--dialect", choices=DIALECTS, help="SQL dialect of the statements (default: spark)")
    add("--color", choices=SPECS["color"].choices, help="colours (default: auto, on a terminal only)")
    add(
        "--on-error",
        choices=("stop", "continue"),
        default="stop",
        help="what to do after an error (default: stop)",
    )
    add("--timeout", type=_seconds, metavar="SECONDS", help="end with exit code 4 after this time")


def _add_spark_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--master", help="Spark master (default: local[*])")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    add("--packages", metavar="GROUP:NAME:VERSION,…", help="packages for Spark to fetch")
    add("--jars", metavar="FILE,…", help="jars for Spark")
    add("--warm", metavar="DURATION|off", help="how long a started Spark waits for the next console")
    add("--java", metavar="auto|bundled|system|DIR", help="which Java to use (default: auto)")


def _add_workspace_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--config",
        metavar="FILE",
        help="preferences (default: ~/.config/streamsql/config.toml)",
    )
    add("-w", "--workspace", metavar="DIR", help="the folder that keeps definitions, results and checkpoints")
    add(
        "--trust-workspace",
        action="store_true",
        help="open a workspace that others own or may write to, and apply its settings that can run code",
    )
    add(
        "--read-only",
        action="store_true",
        help="open a workspace without changing it, also while another console has it open",
    )
    add("--resume", action="store_true", help="resume the queries of the workspace")
    add("--no-config", action="store_true", help="read no config file")
    add(
        "--no-init",
        action="store_true",
        help="do not run init.sql before the first prompt",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = 0.0
    if not value > 0:  # nan neither
        raise argparse.ArgumentTypeError(f"a number of seconds, more than 0, not {text}")
    return value


def in_order(parser: argparse.ArgumentParser, argv: list[str]) -> list[str]:
    """The arguments with each script as --file=…: argparse takes positional ones in one run only, and
    here the order of files and -e counts.
    """
    with_value = {
        flag for action in parser._actions if action.nargs is None for flag in action.option_strings
    }
    flags = {flag for action in parser._actions for flag in action.option_strings}
    ordered, rest = list[str](), list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*ordered, *(f"--file={file}" for file in rest)]
        if word == "-" or not word.startswith("-"):
            ordered.append(f"--file={word}")
            continue
        ordered.append(word)
        if word.startswith("--"):
            meant = {word} & flags or {flag for flag in flags if flag.startswith(word)}
        else:  # -qe SQL: the last letter may want a value
            letters = [f"-{letter}" for letter in word[1:]]
            first = next((i for i, letter in enumerate(letters) if letter in with_value), len(letters))
            meant = {letters[first]} if first == len(letters) - 1 else set()
        if meant & with_value and rest:
            ordered.append(rest.pop(0))
    return ordered


def open_closed_streams() -> bool:
    """Replace closed standard streams by empty ones. Returns whether standard input was closed."""
    no_input = sys.stdin is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace"))
    return no_input
