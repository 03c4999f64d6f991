"""The session of the command line: its settings of Spark, its scripts, and the session itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql import plug_in_loader
from streamsql.cli.command_line import CommandLine, commands
from streamsql.config.folders import cache_folder
from streamsql.config.preferences import Preferences
from streamsql.errors import Source, StreamsqlError, UsageFault, nearest
from streamsql.feature_registry import extensions
from streamsql.output.console_messages import Messages

if TYPE_CHECKING:
    from streamsql.output.printer import Printer
    from streamsql.runtime.engine.settings import Settings
    from streamsql.runtime.session import Session

_WORK = re.compile(r"\b(SELECT|INSERT|COPY|PREVIEW)\b", re.IGNORECASE)
"""Words of scripts that need Spark."""


def open_session(
    line: CommandLine,
    printer: Printer,
    folder: Path,
    workspace: Path | None,
    *,
    interactive: bool = False,
    arrow: bool = False,
    spark: Any = None,
) -> Session:
    """A session with what the flags and the config file choose, and what its workspace holds; Spark is not
    started. folder: of checkpoints and the like; workspace: the folder of definitions, None for none; arrow:
    as in Config; spark: a SparkSession that runs already, None to start one.
    """
    from streamsql.guard import log_to
    from streamsql.runtime.session import Session
    from streamsql.runtime.session_config import Config
    from streamsql.runtime.workspace.store import Store

    preferences = printer.preferences
    config = Config(
        spark_settings(line, preferences),
        folder,
        cache_folder() / "spark.log",
        cache_folder(),
        preferences["java"],
        interactive=interactive,
        show_batch=lambda result, batch_id: printer.show(result, background=True),
        preferences=preferences,
        store=Store(workspace) if workspace else None,
        read_only=line.read_only or line.check,
        trusted=line.trusted,
        arrow=arrow,
    )
    log_to(config.log)
    plug_in_loader.write_log()
    session: Session = line.server.session(config) if line.server else Session(config, spark)
    for opened in extensions("session") if not line.check else ():
        opened(line, session.parts, printer)
    session.variables.update(line.variables)
    return session


def spark_settings(line: CommandLine, preferences: Preferences) -> Settings:
    """The settings of Spark that the flags and the config file choose."""
    from streamsql.runtime.engine.settings import Settings, rules_setting

    configured = line.config.spark | rules_setting(preferences)
    if line.server:
        return Settings.of_server(line.server.shown, line.conf, configured)
    return Settings.make(preferences["master"], line.conf, configured, preferences.origin("master"))


def start_early(line: CommandLine, preferences: Preferences, sources: list[Source]) -> None:
    """Start Spark's JVM before the scripts are read, if they look like it: reading them takes as long."""
    from streamsql.runtime.engine.jvm_process import start_early

    if not any(_WORK.search(source.text) for source in sources):
        return
    conf = spark_settings(line, preferences).start_conf()
    start_early(conf, cache_folder() / "spark.log", cache_folder(), preferences["java"])


def scripts_of(line: CommandLine) -> list[Source]:
    """The scripts of the command line, else standard input. Raises faults for one that cannot be read."""
    from streamsql.output.script_files import decode

    sources = []
    for kind, value in line.inputs or [("file", "-")]:
        if kind == "text":
            sources.append(Source("-e", value))
        elif value == "-" and line.flags["no_input"]:
            raise UsageFault("standard input is closed", hint="streamsql FILE, or streamsql -e 'SELECT 1;'")
        elif value == "-":
            sources.append(decode("<stdin>", sys.stdin.buffer.read()))
        else:
            sources.append(_script(value))
    return sources


def _script(path: str) -> Source:
    """The script of a file. Raises faults; a hint where a misspelt command is meant."""
    from streamsql.output.script_files import read_file

    try:
        return read_file(path)
    except UsageFault as fault:
        if not Path(path).exists() and (near := nearest(path, commands())):
            fault.hint = fault.hint or f"did you mean streamsql {near}?"
        raise


def init_script(line: CommandLine, messages: Messages) -> Source | None:
    """init.sql; an error is reported if it cannot be read, and the prompt opens all the same."""
    from streamsql.output.script_files import read_file

    path = None if line.flags["no_init"] else line.config.init_script()
    try:
        return read_file(str(path)) if path else None
    except StreamsqlError as error:
        messages.error(error)
        return None
