"""argv to one of the commands and modes, and exit codes; nothing else."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import sys
import traceback
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from streamsql import __version__
from streamsql.cli.command_line import (
    Command,
    CommandLine,
    command_parser,
    commands,
    read_preferences,
    serve_parser,
)
from streamsql.cli.open_session import init_script, open_session, scripts_of, start_early
from streamsql.cli.open_workspace import attached, has_server, working_place
from streamsql.config.config_file import ConfigFile
from streamsql.config.preferences import COMMAND_LINE, Preferences
from streamsql.errors import EXIT_INTERRUPTED, Source, StreamsqlError, UsageFault
from streamsql.feature_registry import extensions
from streamsql.output.console_messages import Messages
from streamsql.output.control_characters import harmless
from streamsql.output.terminal import Terminal, window
from streamsql.secrets import redact_text

if TYPE_CHECKING:
    from streamsql.output.printer import Printer


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code; raises nothing but SystemExit of argparse."""
    no_input = _open_closed_streams()
    words = sys.argv[1:] if argv is None else argv
    own = _command(words[0]) if words else None
    run, options = (own.run, own.read(words[1:])) if own else (CONSOLE.run, CONSOLE.read(words))
    options.no_input = no_input
    debug, preferences = getattr(options, "debug", False), Preferences()
    if color := getattr(options, "color", None):
        preferences.set("color", color, COMMAND_LINE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("json escapes", _json_escapes)
        sys.stdout.reconfigure(errors="json escapes")  # a character that it cannot write ends nothing
    try:
        code = run(options, preferences)
        sys.stdout.flush()
        return code
    except StreamsqlError as error:
        if debug:
            _say_traceback()
        Messages(preferences, Terminal(sys.stdout, sys.stderr)).error(error)
        return error.exit_code
    except BrokenPipeError:  # the reader of the output has closed it, as `head -1` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # a fault of the console's own: said in one line all the same
        if debug:
            _say_traceback()
        shown = harmless(redact_text(f"{type(error).__name__}: {error}"))
        print(f"error: {shown}\nhint: --debug shows where", file=sys.stderr)
        return 1


def _command(word: str) -> Command | None:
    """The command that a command line begins with; None for a word that is none."""
    place, _ = commands().get(word, ("", ""))
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if place else None


def _open_closed_streams() -> bool:
    """Replace closed standard streams by empty ones. Returns whether standard input was closed."""
    no_input = sys.stdin is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace"))
    return no_input


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    """Escapes of JSON for characters that an encoding does not have, so that JSON stays JSON in any."""
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    escapes = (f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return "".join(escapes), error.end


def _say_traceback() -> None:
    """Print the traceback of the current error, redacted: it may quote Spark's messages."""
    print(harmless(redact_text(traceback.format_exc())), end="", file=sys.stderr)


# ---- modes --------------------------------------------------------------------------------


def run_console(options: argparse.Namespace, preferences: Preferences) -> int:
    """Run the prompt, a server, scripts or a check of them, as the flags say. Returns the exit code."""
    if options.version:
        print(f"streamsql {__version__}")
        return 0
    if options.info:
        return _info(options, preferences)
    try:
        os.getcwd()
    except OSError:
        raise UsageFault("the current folder no longer exists", hint="cd to another one") from None
    line = CommandLine.of(options, preferences)
    for server_of in extensions("connect server"):
        line = replace(line, server=server_of(line))
    messages = Messages(preferences, Terminal(sys.stdout, sys.stderr), quiet=line.quiet)
    for warning in line.config.warnings:
        messages.warn(warning)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal and not (line.serving or line.inputs or line.check):
        return _prompt(line, messages)
    from streamsql.connectors.registry import plug_in_warnings
    from streamsql.output.printer import Printer

    for warning in plug_in_warnings():
        messages.warn(warning)
    printer = Printer.beside(messages)
    if line.serving:
        from streamsql.cli.serve_command import serve

        return serve(line, printer)
    if line.check:
        from streamsql.cli.check_command import check_scripts

        return check_scripts(line, printer)
    return _run_scripts(line, printer)


CONSOLE = Command(command_parser, run_console, ordered=True)
SERVE = Command(serve_parser, run_console, ordered=True)


def _info(options: argparse.Namespace, preferences: Preferences) -> int:
    """Print what --info tells; also of a config file that cannot be used: the report may be about it."""
    from streamsql.cli.info import info_text
    from streamsql.output.error_text import format_error

    try:
        print(info_text(preferences, read_preferences(options, preferences)))
    except UsageFault as error:
        print(info_text(Preferences(), ConfigFile(), format_error(error)))
    return 0


def _prompt(line: CommandLine, messages: Messages) -> int:
    """Open the prompt; the session and the printer of its results come after it."""
    from streamsql.cli.open_prompt import attached_prompt, open_prompt

    messages.width = lambda: window().columns
    init = init_script(line, messages)
    return (attached_prompt if has_server(line) else open_prompt)(line, messages, init)


def _run_scripts(line: CommandLine, printer: Printer) -> int:
    """Run scripts in the workspace that is named, else in a folder that is gone when they end."""
    sources = scripts_of(line)
    client = attached(line, printer, interactive=False)
    if client is None and not line.server:
        start_early(line, printer.preferences, sources)
    from streamsql.cli.signals import Supervisor, needs_spark
    from streamsql.output.script_runner import ScriptRunner
    from streamsql.runtime.engine.cancel import CancelToken

    if line.resume:
        sources = [Source("--resume", "START QUERY ALL;"), *sources]
    if client is not None:
        client.on_news(printer.warn, restarts_only=True)
        remote = ScriptRunner(client, printer, CancelToken(), keep_going=line.keep_going)
        return Supervisor(remote, sources, line.timeout).run()
    from streamsql.runtime.engine.jvm_process import discard_starting
    from streamsql.runtime.workspace.reopen import reopen

    with working_place(line, printer) as (folder, workspace):
        session = open_session(line, printer, folder, workspace)
        opened = reopen(session.parts)
        for note in opened.notes:
            printer.say(f"note: {note}")
        for warning in opened.warnings:
            printer.warn(warning)
        session.on_news(printer.warn, restarts_only=True)
        if any(needs_spark(source) for source in sources):
            session.parts.engine.begin_start()
        else:
            discard_starting()
        runner = ScriptRunner(session, printer, CancelToken(), keep_going=line.keep_going)
        try:
            return Supervisor(runner, sources, line.timeout).run()
        finally:
            if going_on := session.left_running():
                printer.say(going_on)


if __name__ == "__main__":
    sys.exit(main())
