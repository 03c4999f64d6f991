"""The command line of the console and of `streamsql serve`: its flags, and one value of what they say."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from streamsql import feature_registry
from streamsql.config.config_file import ConfigFile, read_config
from streamsql.config.folders import data_folder
from streamsql.config.preferences import COMMAND_LINE, DIALECTS, FORMATS, SPECS, Preferences
from streamsql.errors import StreamsqlError, UsageFault, nearest

SARIF = "sarif"
"""The format of --check that CI systems read; no format of rows."""
_ON = "store_true"
_PREFERENCES = ("format", "color", "dialect", "master", "java")
"""The flags that are preferences too: without a default, so that it is known who chose."""


@dataclass(frozen=True)
class Command:
    """A command, which is the first word of a command line. parser: makes its parser; run: runs it with what
    the parser read and new preferences, and returns the exit code; ordered: whether files and texts are run
    in the order in which they are written.
    """

    parser: Callable[[], argparse.ArgumentParser]
    run: Callable[[argparse.Namespace, Preferences], int]
    ordered: bool = False

    def read(self, words: list[str]) -> argparse.Namespace:
        """What its parser reads in the words after it. Raises SystemExit for a wrong flag."""
        parser = self.parser()
        return parser.parse_args(in_order(parser, words) if self.ordered else words)


@dataclass(frozen=True)
class CommandLine:
    """What the command line of a console or server says; read once, and the same for its whole life.

    inputs: ("text" or "file", value) of each script, in their order; findings: the format of what --check
    finds, "" for messages; timeout: in seconds; conf: settings of Spark by key, also those of --packages and
    --jars; config: the config file; server: the Spark Connect server of --remote, None without one; flags:
    all flags by the names of argparse, for features; serving, detach, status_file: of `streamsql serve`.
    """

    flags: Mapping[str, Any]
    config: ConfigFile
    variables: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    inputs: tuple[tuple[str, str], ...] = ()
    check: bool = False
    findings: str = ""
    keep_going: bool = False
    timeout: float | None = None
    workspace: str = ""
    trusted: bool = False
    read_only: bool = False
    resume: bool = False
    quiet: bool = False
    serving: bool = False
    detach: bool = False
    status_file: Path | None = None
    server: Any = None

    @classmethod
    def of(cls, options: argparse.Namespace, preferences: Preferences) -> CommandLine:
        """The value of what a parser read; flags and config file are taken over into preferences. Raises
        UsageFault for flags or a config file that cannot be used.
        """
        flags = vars(options).copy()
        if options.format == SARIF:
            if not options.check:
                raise UsageFault("--format sarif needs --check")
            options.format = None
        config = read_preferences(options, preferences)
        status_file = flags.get("status_file")
        return cls(
            MappingProxyType(flags),
            config,
            name_value_pairs(options.define, "-D"),
            spark_conf(options),
            tuple(options.inputs or ()),
            check=options.check or feature_registry.chosen_check(flags) is not None,
            findings=flags["format"] or "" if options.check else "",
            keep_going=options.on_error == "continue",
            timeout=options.timeout,
            workspace=options.workspace or "",
            trusted=options.trust_workspace,
            read_only=options.read_only,
            resume=options.resume,
            quiet=options.quiet,
            serving="status_file" in flags,
            detach=flags.get("detach", False),
            status_file=Path(status_file) if status_file else None,
        )

    @property
    def folder(self) -> Path:
        """The folder of the workspace, whether or not it is named."""
        if self.workspace:
            return Path(self.workspace)
        server = self.server
        return data_folder() / (f"remote/{server.host}_{server.port}" if server else "workspace")


def read_preferences(
    options: argparse.Namespace, preferences: Preferences, names: Iterable[str] = _PREFERENCES
) -> ConfigFile:
    """Take the config file and the flags of these names over into preferences. Returns the config file.
    Raises UsageFault when one cannot be used.
    """
    if options.config and options.no_config:
        raise UsageFault("--config and --no-config exclude each other")
    config = ConfigFile() if options.no_config else read_config(options.config, preferences)
    for name in names:
        if getattr(options, name) is not None:
            try:
                preferences.set(name, getattr(options, name), COMMAND_LINE)
            except StreamsqlError as error:
                raise UsageFault(
                    error.message, detail=error.detail, hint=error.hint, code=error.code
                ) from None
    return config


def spark_conf(options: argparse.Namespace) -> dict[str, str]:
    """The settings of Spark of --conf, --packages and --jars. Raises UsageFault."""
    conf = name_value_pairs(options.conf, "--conf")
    given = {"spark.jars.packages": options.packages, "spark.jars": options.jars}
    return conf | {key: value for key, value in given.items() if value}


def name_value_pairs(given: list[str], flag: str) -> dict[str, str]:
    """The values by name of a flag that takes NAME=VALUE. Raises UsageFault."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFault(f"{flag} takes NAME=VALUE, not {text}")
        pairs[utf8(name)] = utf8(value)
    return pairs


class _Inputs(argparse.Action):
    """Collects the scripts of all flags in their order on the command line."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        kind = "text" if option_string in ("-e", "-c", "--execute", "--command") else "file"
        values = values if isinstance(values, list) else [values]
        if kind == "text":
            values = map(utf8, values)
        namespace.inputs = [*(namespace.inputs or []), *((kind, v) for v in values)]


def utf8(word: str) -> str:
    """A word of the command line as UTF-8, also where the locale has another encoding; as Python read it if
    its bytes are no UTF-8.
    """
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeError:
        return word


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = 0.0
    if not value > 0:  # nan neither
        raise argparse.ArgumentTypeError(f"a number of seconds, more than 0, not {text}")
    return value


FLAGS: dict[str, Mapping[str, Any]] = {
    "files": {
        "nargs": "*", "action": _Inputs, "metavar": "FILE", "help": "scripts to run; - is standard input",
    },
    "-f --file": {"action": _Inputs, "metavar": "FILE", "help": "a script to run"},
    "-e -c --execute --command": {"action": _Inputs, "metavar": "SQL", "help": "statements to run"},
    "-D --define": {
        "action": "append", "default": [], "metavar": "NAME=VALUE", "help": "set the variable ${NAME}",
    },
    "--check": {"action": _ON, "help": "parse and plan everything, report all errors, start nothing"},
    "--format": {
        "choices": (*FORMATS, SARIF),
        "help": "output format of rows (default: table); with --check, of what it finds (json, sarif, …)",
    },
    "--dialect": {"choices": DIALECTS, "help": "SQL dialect of the statements (default: spark)"},
    "--color": {"choices": SPECS["color"].choices, "help": "colours (default: auto, on a terminal only)"},
    "--on-error": {
        "choices": ("stop", "continue"), "default": "stop",
        "help": "what to do after an error (default: stop)",
    },
    "--timeout": {"type": _seconds, "metavar": "SECONDS", "help": "end with exit code 4 after this time"},
    "--master": {"help": "Spark master (default: local[*])"},
    "--conf": {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "a setting of Spark"},
    "--packages": {"metavar": "GROUP:NAME:VERSION,…", "help": "packages for Spark to fetch"},
    "--jars": {"metavar": "FILE,…", "help": "jars for Spark"},
    "--java": {"metavar": "auto|bundled|system|DIR", "help": "which Java to use (default: auto)"},
    "--config": {"metavar": "FILE", "help": "preferences (default: ~/.config/streamsql/config.toml)"},
    "-w --workspace": {
        "metavar": "DIR", "help": "the folder that keeps definitions, results and checkpoints",
    },
    "--trust-workspace": {
        "action": _ON,
        "help": "open a workspace that others own or may write to, and apply its settings that can run code",
    },
    "--read-only": {
        "action": _ON, "help": "open a workspace without changing it, also while another console has it open",
    },
    "--resume": {"action": _ON, "help": "resume the queries of the workspace"},
    "--no-config": {"action": _ON, "help": "read no config file"},
    "--no-init": {"action": _ON, "help": "do not run init.sql before the first prompt"},
    **feature_registry.flags(),
    "-q --quiet": {"action": _ON, "help": "print notes and errors only, no other messages"},
    "--info": {"action": _ON, "help": "versions, Java and folders, as JSON"},
    "--debug": {"action": _ON, "help": "show Python tracebacks of errors"},
    "--version": {"action": _ON, "help": "the version"},
}  # fmt: skip
"""The flags of the console, with the arguments of argparse, in the order of --help."""


COMMANDS = {
    "serve": ("streamsql.cli.main:SERVE", "run the session of a workspace as a server"),
    "ps": ("streamsql.cli.ps_command:COMMAND", "list the servers of this user"),
}
"""The commands of the console itself: `module:name`, and what they do. Features bring further ones."""


def commands() -> dict[str, tuple[str, str]]:
    """All commands by their words: `module:name` of a Command, and what it does."""
    return COMMANDS | feature_registry.commands()


GROUPS = {
    "scripts": "-f --file/-e -c --execute --command/-D --define/--check/--on-error/--timeout",
    "output": "--format/--color/-q --quiet/--debug",
    "workspace": "-w --workspace/--resume/--read-only/--trust-workspace",
    "Spark": "--master/--conf/--packages/--jars/--java",
    "console": "--dialect/--config/--no-config/--no-init/--info/--version",
}
"""The groups of --help, and their flags. Those of features are a group of their own."""


class Parser(argparse.ArgumentParser):
    """The parser of a command: an error is one line, and a hint what to type."""

    def error(self, message: str) -> NoReturn:
        """Print an error of the command line, and end with exit code 2."""
        flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        wrong = re.fullmatch(r"unrecognized arguments: (--[^\s=]+).*", message)
        near = nearest(wrong[1], flags) if wrong else None
        hint = f"did you mean {near}?" if near else f"{self.prog} --help lists the flags"
        self.exit(2, f"{self.prog}: error: {message}\nhint: {hint}\n")


def add_flags(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add flags of the console to a parser or a group of one. names: as in FLAGS."""
    for name in names:
        parser.add_argument(*name.split(), **FLAGS[name])


def command_parser() -> argparse.ArgumentParser:
    """The parser of the command line, with its flags in groups."""
    parser = Parser(
        prog="streamsql",
        usage="streamsql [flags] [FILE ...]\n       streamsql COMMAND --help",
        description="A SQL-first console for Spark Structured Streaming. Without scripts, the prompt opens.",
        epilog="commands:\n"
        + "".join(f"  {name:<12}{about}\n" for name, (_, about) in commands().items())
        + "\nexit codes: 0 success, 1 a statement failed, 2 usage, 3 Spark could not start, 4 time-out,\n"
        "5 a query failed while running, 129 SIGHUP, 130 interrupted, 143 SIGTERM",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_flags(parser, "files")
    for title, names in GROUPS.items():
        add_flags(parser.add_argument_group(title), *names.split("/"))
    add_flags(parser.add_argument_group("more"), *feature_registry.flags())
    parser.set_defaults(inputs=None)
    return parser


def serve_parser() -> argparse.ArgumentParser:
    """The parser of `streamsql serve`: that of the console, with flags of its own."""
    parser = command_parser()
    parser.prog = "streamsql serve"
    parser.usage = "streamsql serve [flags] [FILE ...]"
    parser.description = (
        "Runs the session of a workspace as a server: resumes its queries, runs the scripts, and lives until "
        "it is told to end (SIGTERM, STOP SERVER). streamsql on the same workspace attaches to it."
    )
    parser.epilog = (
        "exit codes: 0 it was told to end, 1 a script failed, 2 usage, 3 Spark could not start. A script "
        "that fails ends the server, unless --on-error continue is given"
    )
    add = parser.add_argument_group("server").add_argument
    add("--detach", action="store_true", help="go on in the background once the scripts have run")
    add("--status-file", metavar="FILE", help="write the status, as JSON, every 5 seconds")
    return parser


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
