"""argv to one of the modes, and exit codes; nothing else."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql import __version__
from streamsql.cli.arguments import SARIF, command_parser, in_order, open_closed_streams
from streamsql.cli.attach import attached, has_server
from streamsql.cli.open_workspace import working_place, workspace_folder, workspace_to_read
from streamsql.config.config_file import ConfigFile, read_config
from streamsql.config.name_values import name_value_pairs
from streamsql.config.preferences import COMMAND_LINE, Preferences
from streamsql.errors import EXIT_INTERRUPTED, Source, StreamsqlError, UsageFault
from streamsql.feature_registry import chosen_check, command, extensions
from streamsql.output.control_characters import harmless
from streamsql.output.messages import Messages
from streamsql.output.terminal import Terminal
from streamsql.output.window import window
from streamsql.secrets import redact_text

if TYPE_CHECKING:
    from streamsql.output.printer import Printer
    from streamsql.runtime.engine.settings import Settings
    from streamsql.runtime.engine.warm_parser import WarmParser
    from streamsql.runtime.session import Session

# Flags that are preferences too: without a default, so that it is known who chose.
_PREFERENCES = ("format", "color", "dialect", "master", "java", "warm")

_WORK = re.compile(r"\b(SELECT|INSERT|COPY|PREVIEW)\b", re.IGNORECASE)
"""Words of scripts that need Spark."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code; raises nothing but SystemExit of argparse."""
    no_input = open_closed_streams()
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["ps"]:
        from streamsql.cli.ps_command import list_servers

        try:
            return list_servers(argv[1:])
        except BrokenPipeError:
            return _reader_gone()
    options = _options(argv)
    options.no_input = no_input
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a character that it cannot write ends nothing
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except StreamsqlError as error:
        if options.debug:
            _say_traceback()
        _say_error(error, options.color or "auto")
        return error.exit_code
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # a fault of the console's own: said in one line all the same
        if options.debug:
            _say_traceback()
        shown = harmless(redact_text(f"{type(error).__name__}: {error}"))
        print(f"error: {shown}\nhint: --debug shows where", file=sys.stderr)
        return 1


def _options(words: list[str]) -> argparse.Namespace:
    """The options of the command line, and the function that runs it."""
    own = command(words[0]) if words else None
    if own:
        own_options: argparse.Namespace = own(words[1:])
        return own_options
    if words[:1] == ["serve"]:
        from streamsql.cli.serve_command import serve_parser

        parser = serve_parser()
        options = parser.parse_args(in_order(parser, words[1:]))
        options.run = _main
        return options
    parser = command_parser()
    options = parser.parse_args(in_order(parser, words))
    options.run = _main
    return options


def _say_traceback() -> None:
    """Print the traceback of the current error, redacted: it may quote Spark's messages."""
    print(harmless(redact_text(traceback.format_exc())), end="", file=sys.stderr)


def _say_error(error: StreamsqlError, color: str) -> None:
    Messages(Preferences(color=color), Terminal(sys.stdout, sys.stderr)).error(error)


def _preferences(options: argparse.Namespace) -> tuple[Preferences, ConfigFile]:
    """Preferences from the config file and the flags. Raises UsageFault when the file cannot be used."""
    preferences = Preferences()
    if options.config and options.no_config:
        raise UsageFault("--config and --no-config exclude each other")
    config = ConfigFile() if options.no_config else read_config(options.config, preferences)
    for name in _PREFERENCES:
        if getattr(options, name) is not None:
            try:
                preferences.set(name, getattr(options, name), COMMAND_LINE)
            except StreamsqlError as error:
                raise UsageFault(
                    error.message, detail=error.detail, hint=error.hint, code=error.code
                ) from None
    return preferences, config


def _reader_gone() -> int:
    """The reader of the output has closed it, as `head -1` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _main(options: argparse.Namespace) -> int:
    if options.version:
        print(f"streamsql {__version__}")
        return 0
    if options.info:
        from streamsql.cli.info import info_text
        from streamsql.output.error_text import format_error

        try:
            preferences, config = _preferences(options)
            print(info_text(preferences, config))
        except UsageFault as error:  # a bug report may well be about the config file
            print(info_text(Preferences(), ConfigFile(), format_error(error)))
        return 0
    try:
        os.getcwd()
    except OSError:
        raise UsageFault("the current folder no longer exists", hint="cd to another one") from None
    options.findings = options.format if options.check else ""
    if options.format == SARIF:
        if not options.check:
            raise UsageFault("--format sarif needs --check")
        options.format = None
    own_check = chosen_check(options)
    options.check |= own_check is not None
    options.server = None
    for prepare in extensions("options"):
        prepare(options)
    preferences, config = _preferences(options)
    options.color = preferences["color"]
    messages = Messages(preferences, Terminal(sys.stdout, sys.stderr), quiet=options.quiet)
    for warning in config.warnings:
        messages.warn(warning)
    variables = name_value_pairs(options.define, "-D")
    serving = hasattr(options, "status_file")
    if (
        not serving
        and not options.inputs
        and sys.stdin.isatty()
        and sys.stdout.isatty()
        and not options.check
    ):
        return _prompt(options, variables, messages, config)
    from streamsql.output.printer import Printer

    printer = Printer.beside(messages)
    if serving:
        return _serve(options, variables, printer, config)
    sources = _sources(options) if options.inputs or not own_check else []
    if options.check:
        return _check(options, sources, variables, printer, config, own_check)
    return _scripts(options, sources, variables, printer, config)


def _check(
    options: argparse.Namespace,
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
    config_file: ConfigFile,
    own_check: Callable[..., int] | None,
) -> int:
    """Check scripts against what a workspace holds, if one is named; nothing in it is changed. own_check: of
    a feature, which runs instead.
    """
    from streamsql.catalog import Catalog
    from streamsql.cli.dry_run import check
    from streamsql.cli.unknown_tables import brings_tables
    from streamsql.plan.context import Context
    from streamsql.runtime.engine.java_command import spark_defaults

    server = options.server.planned() if options.server else None
    context, session, closed = Context(Catalog(), server=server), None, False
    if options.workspace or options.read_only:
        from streamsql.runtime.workspace.reopen import reopen, tables_in

        folder = workspace_to_read(options)
        session = _session(options, {}, printer, config_file, folder / "run", folder, interactive=False)
        for warning in reopen(session.parts).warnings:
            printer.warn(warning)
        context = session.parts.context()
        store = session.parts.store
        if store and not (options.read_only or context.server):
            context = replace(context, catalog=context.catalog.having(*tables_in(store)))
            closed = not brings_tables(_all_settings(session))
    if own_check:
        place = workspace_folder(options)
        session = session or _session(options, {}, printer, config_file, place, None, interactive=False)
        return own_check(session.parts, context, sources, variables, printer)
    settings = spark_defaults() | (config_file.spark | name_value_pairs(options.conf, "--conf"))
    parser = _warm_parser(options, printer.preferences, config_file)
    try:
        return check(
            sources,
            variables,
            printer,
            context,
            closed=closed,
            settings=settings,
            parser=parser.fault if parser else None,
            format=options.findings or "",
        )
    finally:
        if parser:
            parser.close()


def _warm_parser(
    options: argparse.Namespace, preferences: Preferences, config_file: ConfigFile
) -> WarmParser | None:
    """The parser of the Spark that waits for a console with these settings; None if none waits."""
    from streamsql.config.folders import cache_folder
    from streamsql.runtime.engine.java import JavaNotFound, find_java
    from streamsql.runtime.engine.java_command import spark_defaults
    from streamsql.runtime.engine.warm_engine import socket_path, wanted_engine

    cache = cache_folder()
    if options.server or not socket_path(cache).exists():
        return None
    from streamsql.runtime.engine.warm_parser import WarmParser

    try:
        java = find_java(preferences["java"])
    except JavaNotFound:
        return None
    conf = spark_defaults() | _settings(options, preferences, config_file).start_conf()
    return WarmParser(wanted_engine(conf, cache / "spark.log", cache, java))


def _all_settings(session: Session) -> dict[str, str]:
    """The settings that Spark would be started with."""
    from streamsql.runtime.engine.java_command import spark_defaults

    return spark_defaults() | session.parts.settings.start_conf()


def _sources(options: argparse.Namespace) -> list[Source]:
    from streamsql.output.script_files import decode, read_file

    sources = []
    for kind, value in options.inputs or [("file", "-")]:
        if kind == "text":
            sources.append(Source("-e", value))
        elif value == "-" and options.no_input:
            raise UsageFault("standard input is closed", hint="streamsql FILE, or streamsql -e 'SELECT 1;'")
        elif value == "-":
            sources.append(decode("<stdin>", sys.stdin.buffer.read()))
        else:
            sources.append(read_file(value))
    return sources


def _read_init(path: Path, messages: Messages) -> Source | None:
    """init.sql; an error is reported if it cannot be read, and the prompt opens all the same."""
    from streamsql.output.script_files import read_file

    try:
        return read_file(str(path))
    except StreamsqlError as error:
        messages.error(error)
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
    from streamsql.config.folders import cache_folder
    from streamsql.guard import log_to
    from streamsql.runtime.session import Session
    from streamsql.runtime.session_config import Config
    from streamsql.runtime.workspace.store import Store

    preferences = printer.preferences
    settings = _settings(options, preferences, config_file)
    config = Config(
        settings,
        folder,
        cache_folder() / "spark.log",
        cache_folder(),
        preferences["java"],
        interactive=interactive,
        show_batch=lambda result, batch_id: printer.show(result, background=True),
        preferences=preferences,
        store=Store(workspace) if workspace else None,
        read_only=options.read_only or options.check,
        trusted=options.trust_workspace,
    )
    log_to(config.log)
    session = options.server.session(config) if options.server else Session(config)
    if not options.check:
        for opened in extensions("session"):
            opened(options, session.parts, printer)
    session.variables.update(variables)
    return session


def _settings(options: argparse.Namespace, preferences: Preferences, config_file: ConfigFile) -> Settings:
    """The settings of Spark that the flags and the config file choose."""
    from streamsql.runtime.engine.settings import Settings, rules_setting

    given = name_value_pairs(options.conf, "--conf")
    for flag, key in (("packages", "spark.jars.packages"), ("jars", "spark.jars")):
        if getattr(options, flag):
            given[key] = getattr(options, flag)
    configured = config_file.spark | rules_setting(preferences)
    if options.server:
        return Settings.of_server(options.server.shown, given, configured)
    return Settings.make(preferences["master"], given, configured, preferences.origin("master"))


def _start_early(settings: Settings, preferences: Preferences, sources: list[Source]) -> None:
    """Start Spark's JVM before the scripts are read, if they look like it: reading them takes as long."""
    from streamsql.config.folders import cache_folder
    from streamsql.runtime.engine.jvm_process import start_early
    from streamsql.runtime.engine.warm_seconds import warm_seconds

    if warm_seconds(preferences) or not any(_WORK.search(source.text) for source in sources):
        return
    start_early(settings.start_conf(), cache_folder() / "spark.log", cache_folder(), preferences["java"])


def _prompt(
    options: argparse.Namespace, variables: dict[str, str], messages: Messages, config_file: ConfigFile
) -> int:
    """Open the prompt; the session and the printer of its results come after it."""
    from streamsql.cli.open_prompt import attached_prompt, open_prompt

    name_value_pairs(options.conf, "--conf")  # a fault in the flags is said before the prompt
    messages.width = lambda: window().columns
    path = None if options.no_init else config_file.init_script()
    init = _read_init(path, messages) if path else None
    if has_server(options):
        attach = lambda: attached(options, messages, variables, interactive=True)  # noqa: E731
        return attached_prompt(attach, messages, init, resume=options.resume)

    def open_session(printer: Printer, run: Path, folder: Path | None) -> Session:
        return _session(options, variables, printer, config_file, run, folder, interactive=True)

    return open_prompt(options, messages, init, open_session)


def _serve(
    options: argparse.Namespace, variables: dict[str, str], printer: Printer, config_file: ConfigFile
) -> int:
    """Run the server of a workspace."""
    from streamsql.cli.serve_command import serve

    if options.read_only or options.check:
        raise UsageFault("a server cannot be started with --read-only or --check")
    sources = _sources(options) if options.inputs else []

    def open_session(run: Path, folder: Path) -> Session:
        return _session(options, variables, printer, config_file, run, folder, interactive=False)

    return serve(options, printer, sources, open_session)


def _scripts(
    options: argparse.Namespace,
    sources: list[Source],
    variables: dict[str, str],
    printer: Printer,
    config_file: ConfigFile,
) -> int:
    """Run scripts in the workspace that is named, else in a folder that is gone when they end."""
    client = attached(options, printer, variables, interactive=False)
    if client is None and not options.server:
        _start_early(_settings(options, printer.preferences, config_file), printer.preferences, sources)
    from streamsql.cli.signals import Supervisor, needs_spark
    from streamsql.output.script_runner import ScriptRunner
    from streamsql.runtime.engine.cancel import CancelToken

    if client is not None:
        if options.resume:
            sources = [Source("--resume", "START QUERY ALL;"), *sources]
        client.on_news(printer.warn, restarts_only=True)
        remote = ScriptRunner(client, printer, CancelToken(), keep_going=options.on_error == "continue")
        return Supervisor(remote, sources, options.timeout).run()
    from streamsql.runtime.engine.jvm_process import discard_starting
    from streamsql.runtime.workspace.reopen import reopen

    with working_place(options, printer) as (folder, workspace):
        session = _session(options, variables, printer, config_file, folder, workspace, interactive=False)
        opened = reopen(session.parts)
        for note in opened.notes:
            printer.say(f"note: {note}")
        for warning in opened.warnings:
            printer.warn(warning)
        if options.resume:
            sources = [Source("--resume", "START QUERY ALL;"), *sources]
        session.on_news(printer.warn, restarts_only=True)
        if any(needs_spark(source) for source in sources):
            session.engine.begin_start()
        else:
            discard_starting()
        runner = ScriptRunner(session, printer, CancelToken(), keep_going=options.on_error == "continue")
        try:
            return Supervisor(runner, sources, options.timeout).run()
        finally:
            if going_on := session.left_running():
                printer.say(going_on)


if __name__ == "__main__":
    sys.exit(main())
