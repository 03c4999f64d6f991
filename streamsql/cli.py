"""argv to one of the modes, and exit codes; nothing else."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.configfile import ConfigFile, read_config
from streamsql.errors import Source, StreamsqlError, UsageFault, format_error
from streamsql.output.printer import Printer
from streamsql.output.window import window
from streamsql.preferences import COMMAND_LINE, FORMATS, SPECS, Preferences

if TYPE_CHECKING:
    from streamsql.runtime.session import Session

# Flags that are preferences too: without a default, so that it is known who chose.
_PREFERENCES = ("format", "color", "master", "java")


class _Inputs(argparse.Action):
    """Scripts in the order given, whichever flag brings each."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        kind = "text" if option_string in ("-e", "--execute") else "file"
        values = values if isinstance(values, list) else [values]
        namespace.inputs = [*(namespace.inputs or []), *((kind, v) for v in values)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamsql",
        description="A SQL-first console for Spark Structured Streaming.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage, 3 Spark could not start, 4 time-out, "
        "5 a query failed while running, 130 interrupted",
    )
    add = parser.add_argument
    add("files", nargs="*", action=_Inputs, metavar="FILE", help="scripts to run; - is standard input")
    add("-f", "--file", action=_Inputs, metavar="FILE", help="a script to run")
    add("-e", "--execute", action=_Inputs, metavar="SQL", help="statements to run")
    add("-D", "--define", action="append", default=[], metavar="NAME=VALUE", help="what ${NAME} stands for")
    add("--check", action="store_true", help="read and plan everything, start nothing")
    add("--format", choices=FORMATS, help="how rows are written (default: table)")
    add("--color", choices=SPECS["color"].choices, help="colours (default: auto, on a terminal only)")
    add("--on-error", choices=("stop", "continue"), default="stop", help="after an error (default: stop)")
    add("--timeout", type=_seconds, metavar="SECONDS", help="end with exit code 4 after so long")
    add("--master", help="Spark master (default: local[*])")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    add("--packages", metavar="GROUP:NAME:VERSION,…", help="packages for Spark to fetch")
    add("--jars", metavar="FILE,…", help="jars for Spark")
    add("--java", metavar="auto|bundled|system|DIR", help="which Java to use (default: auto)")
    add(
        "--config",
        metavar="FILE",
        help="preferences (default: ~/.config/streamsql/config.toml)",
    )
    add("-w", "--workspace", metavar="DIR", help="the folder that keeps definitions, results and checkpoints")
    add("--read-only", action="store_true", help="look into a workspace, which another console may hold")
    add("--resume", action="store_true", help="go on with the queries of the workspace")
    add("--no-config", action="store_true", help="read no config file")
    add(
        "--no-init",
        action="store_true",
        help="do not run init.sql before the first prompt",
    )
    add("-q", "--quiet", action="store_true", help="no words but notes and errors")
    add("--info", action="store_true", help="versions, Java and folders, as JSON")
    add("--debug", action="store_true", help="show Python tracebacks of errors")
    add("--version", action="store_true", help="the version")
    parser.set_defaults(inputs=None)
    return parser


def _seconds(text: str) -> float:
    value = float(text.removesuffix("s"))
    if value <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _pairs(given: list[str], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFault(f"{flag} takes NAME=VALUE, not {text}")
        pairs[name] = value
    return pairs


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code; raises nothing but SystemExit of argparse."""
    options = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a character that it cannot write ends nothing
    try:
        code = _main(options)
        sys.stdout.flush()
        return code
    except StreamsqlError as error:
        if options.debug:
            raise
        _say_error(error, options.color or "auto")
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except Exception as error:  # a fault of the console's own: said in one line all the same
        if options.debug:
            raise
        print(f"error: {type(error).__name__}: {error}\nhint: --debug shows where", file=sys.stderr)
        return 1


def _say_error(error: StreamsqlError, color: str) -> None:
    Printer(Preferences(color=color), sys.stdout, sys.stderr).error(error)


def _preferences(options: argparse.Namespace) -> tuple[Preferences, ConfigFile]:
    """What the config file and the flags choose. Raises UsageFault when the file cannot be used."""
    preferences = Preferences()
    if options.config and options.no_config:
        raise UsageFault("--config and --no-config exclude each other")
    config = ConfigFile() if options.no_config else read_config(options.config, preferences)
    for name in _PREFERENCES:
        if getattr(options, name) is not None:
            preferences.set(name, getattr(options, name), COMMAND_LINE)
    return preferences, config


def _reader_gone() -> int:
    """`| head -1`: the reader has what it wanted."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _main(options: argparse.Namespace) -> int:
    if options.version:
        print(f"streamsql {_version()}")
        return 0
    if options.info:
        from streamsql.info import info_text

        try:
            preferences, config = _preferences(options)
            print(info_text(preferences, config))
        except UsageFault as error:  # a bug report may well be about the config file
            print(info_text(Preferences(), ConfigFile(), format_error(error)))
        return 0
    preferences, config = _preferences(options)
    options.color = preferences["color"]
    printer = Printer(preferences, sys.stdout, sys.stderr, quiet=options.quiet)
    for warning in config.warnings:
        printer.warn(warning)
    variables = _pairs(options.define, "-D")
    if not options.inputs and sys.stdin.isatty() and sys.stdout.isatty() and not options.check:
        return _prompt(options, variables, printer, config)
    sources = _sources(options)
    if options.check:
        return _check(options, sources, variables, printer, config)
    return _scripts(options, sources, variables, printer, config)


def _check(
    options: argparse.Namespace,
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
    config_file: ConfigFile,
) -> int:
    """Check scripts against what a workspace holds, if one is named; nothing in it is changed."""
    from streamsql.catalog import Catalog
    from streamsql.plan.context import Context
    from streamsql.script import check

    context = Context(Catalog())
    if options.workspace or options.read_only:
        from streamsql.runtime.reopen import reopen

        folder = _workspace_folder(options)
        if not folder.is_dir():
            raise UsageFault(f"there is no workspace {folder}", hint="-w DIR names another one")
        session = _session(options, {}, printer, config_file, folder / "run", folder, interactive=False)
        for warning in reopen(session)[1]:
            printer.warn(warning)
        context = session.context()
    return check(sources, variables, printer, context, keep_going=options.on_error == "continue")


def _version() -> str:
    from importlib.metadata import version

    return version("streamsql")


def _sources(options: argparse.Namespace) -> list[Source]:
    from streamsql.script import decode, read_file

    made = []
    for kind, value in options.inputs or [("file", "-")]:
        if kind == "text":
            made.append(Source("-e", value))
        elif value == "-":
            made.append(decode("<stdin>", sys.stdin.buffer.read()))
        else:
            made.append(read_file(value))
    return made


_LOOK_INTO = "; --read-only looks into this one"


def _workspace_folder(options: argparse.Namespace) -> Path:
    from streamsql.folders import data_folder

    return Path(options.workspace) if options.workspace else data_folder() / "workspace"


@contextlib.contextmanager
def _workspace(options: argparse.Namespace, printer: Printer) -> Iterator[tuple[Path, Path | None]]:
    """(the folder of checkpoints and the like, the workspace that keeps the definitions), held against
    other consoles. Without a workspace the folder is gone at the end.
    """
    from streamsql.workspace import Held, Workspace

    folder = _workspace_folder(options)
    if options.read_only:
        if options.resume:
            raise UsageFault("--resume and --read-only exclude each other")
        if not folder.is_dir():
            raise UsageFault(f"there is no workspace {folder}", hint="-w DIR names another one")
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as made:
            yield Path(made), folder
        return
    try:
        workspace = Workspace(folder)
    except (Held, OSError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"the workspace {folder} cannot be opened: {(error.strerror or why).lower()}"
        if options.workspace:
            raise UsageFault(why, hint=f"another folder: -w DIR{_LOOK_INTO}") from None
        printer.warn(f"{why}; this one works in a folder of its own (-w DIR names one{_LOOK_INTO})")
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as made:
            yield Path(made), None
        return
    try:
        yield workspace.run, workspace.folder
    finally:
        workspace.close()


@contextlib.contextmanager
def _place(options: argparse.Namespace, printer: Printer) -> Iterator[tuple[Path, Path | None]]:
    """Where scripts run: as `_workspace` gives it."""
    if options.workspace or options.read_only:
        with _workspace(options, printer) as place:
            yield place
        return
    with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as made:
        yield Path(made), None


def _read_init(path: Path, printer: Printer) -> Source | None:
    """init.sql; one that cannot be read is said, and keeps nobody from the prompt."""
    from streamsql.script import read_file

    try:
        return read_file(str(path))
    except StreamsqlError as error:
        printer.error(error)
        return None


def _session(
    options: argparse.Namespace,
    variables: dict[str, str],
    printer: Printer,
    config_file: ConfigFile,
    folder: Path,
    workspace: Path | None,
    *,
    interactive: bool,
) -> Session:
    """A session in a folder, with what the flags and the config file choose, and what its workspace
    holds; Spark is not started.
    """
    from streamsql.folders import cache_folder
    from streamsql.runtime.config import Config
    from streamsql.runtime.session import Session
    from streamsql.runtime.settings import Settings
    from streamsql.runtime.store import Store

    given = _pairs(options.conf, "--conf")
    for flag, key in (("packages", "spark.jars.packages"), ("jars", "spark.jars")):
        if getattr(options, flag):
            given[key] = getattr(options, flag)
    preferences = printer.preferences
    config = Config(
        Settings.make(preferences["master"], given, config_file.spark, preferences.origin("master")),
        folder,
        cache_folder() / "spark.log",
        cache_folder(),
        preferences["java"],
        interactive=interactive,
        show_batch=lambda result, batch_id: printer.show(result, background=True),
        preferences=preferences,
        store=Store(workspace) if workspace else None,
        read_only=options.read_only or options.check,
    )
    session = Session(config)
    session.variables.update(variables)
    return session


def _prompt(
    options: argparse.Namespace, variables: dict[str, str], printer: Printer, config_file: ConfigFile
) -> int:
    """Open the prompt; the session is opened behind it."""
    from streamsql.shell.prompt import Prompt

    _pairs(options.conf, "--conf")  # a fault in the flags is said before the prompt
    printer.width = lambda: window().columns
    printer.height = lambda: window().lines
    init = None if options.no_init else config_file.init_script()
    with _workspace(options, printer) as (folder, workspace):
        shell = Prompt(
            lambda: _session(options, variables, printer, config_file, folder, workspace, interactive=True),
            printer,
            resume=options.resume,
        )
        try:
            return shell.run(_read_init(init, printer) if init else None)
        finally:
            shell.close()


def _scripts(
    options: argparse.Namespace,
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
    config_file: ConfigFile,
) -> int:
    """Run scripts in the workspace that is named, else in a folder that is gone when they end."""
    from streamsql.runtime.reopen import reopen
    from streamsql.script import ScriptRunner
    from streamsql.supervisor import Supervisor, needs_spark

    with _place(options, printer) as (folder, workspace):
        session = _session(options, variables, printer, config_file, folder, workspace, interactive=False)
        for warning in reopen(session)[1]:
            printer.warn(warning)
        if options.resume:
            sources = [Source("--resume", "START QUERY ALL;"), *sources]
        session.engine.on_news.append(printer.warn)
        if any(needs_spark(source) for source in sources):
            session.engine.begin_start()
        runner = ScriptRunner(session, printer, keep_going=options.on_error == "continue")
        return Supervisor(runner, sources, options.timeout).run()


if __name__ == "__main__":
    sys.exit(main())
