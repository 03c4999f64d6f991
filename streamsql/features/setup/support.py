"""`streamsql support`: one file for the report of a fault, with secrets masked. Starts nothing."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from streamsql.cli.command_line import Command, Parser, add_flags, read_preferences
from streamsql.cli.info import info_text
from streamsql.config.config_file import ConfigFile
from streamsql.config.folders import cache_folder, data_folder
from streamsql.config.preferences import Preferences
from streamsql.errors import StreamsqlError, UsageFault, reason_of
from streamsql.output.error_text import format_error
from streamsql.secrets import redact_text
from streamsql.server.running_servers import queries_by_state, servers

LOG_LINES = 300
"""The lines of a log that are of use: those of the newest fault stand at its end."""
_LOG_BYTES = 200_000


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="streamsql support",
        description="Writes one file for the report of a fault: versions, settings, the definitions of the "
        "workspace, the status of its queries, servers, and the ends of the logs. Secrets are masked.",
        epilog="exit codes: 0 success, 2 the file cannot be written",
    )
    add_flags(parser, "-w --workspace", "--config", "--no-config")
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a new file (default: streamsql-support-DATE.txt)"
    )
    return parser


def _write(options: argparse.Namespace, preferences: Preferences) -> int:
    """Run `streamsql support`. Returns the exit code; raises UsageFault."""
    path = Path(options.file or f"streamsql-support-{datetime.now():%Y%m%d-%H%M%S}.txt")
    workspace = Path(options.workspace) if options.workspace else data_folder() / "workspace"
    text = redact_text("".join(_text(options, preferences, workspace)))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageFault(
            f"cannot write {path}: {reason_of(error)}", hint="streamsql support FILE names a new file"
        ) from None
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)
    print(
        f"{path}: {len(text.encode()) // 1024 + 1} KB, secrets masked; logs can hold rows, so read it first"
    )
    return 0


def _text(options: argparse.Namespace, preferences: Preferences, workspace: Path) -> Iterator[str]:
    """The sections. One that cannot be read says why; the others stay."""
    sections: dict[str, Callable[[], str]] = {
        "streamsql --info": lambda: _info(options, preferences),
        f"definitions of {workspace}": lambda: (workspace / "catalog.sql").read_text("utf-8", "replace"),
        "status of its queries": lambda: (workspace / "status.json").read_text("utf-8", "replace"),
        "servers": _servers,
        "end of its log": lambda: _end_of(workspace / "server.log"),
        "end of Spark's log": lambda: _end_of(cache_folder() / "spark.log"),
    }
    for title, content in sections.items():
        try:
            text = content().strip()
        except FileNotFoundError:
            text = "(there is none)"
        except OSError as error:
            text = f"(cannot be read: {reason_of(error)})"
        yield f"==== {title}\n{text}\n\n"


def _info(options: argparse.Namespace, preferences: Preferences) -> str:
    try:
        return info_text(preferences, read_preferences(options, preferences, ()))
    except StreamsqlError as error:  # the report may be about the config file
        return info_text(Preferences(), ConfigFile(), format_error(error))


def _servers() -> str:
    lines = (f"{s.process} {s.workspace}: {queries_by_state(s.status or {})}" for s in servers())
    return "\n".join(lines) or "(none)"


def _end_of(log: Path) -> str:
    """The last lines of a log."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _LOG_BYTES))
        return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-LOG_LINES:])


COMMAND = Command(_parser, _write)
