"""`streamsql ps`: the servers of this user."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import datetime

from streamsql.cli.command_line import Command, Parser
from streamsql.config.preferences import FORMATS, Preferences
from streamsql.output.printer import Printer
from streamsql.results import Rows
from streamsql.server.running_servers import Registered, queries_by_state, servers


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="streamsql ps", description="Lists the servers of this user.")
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default: table)")
    return parser


def _list_servers(options: argparse.Namespace, preferences: Preferences) -> int:
    def row(server: Registered) -> tuple[str, ...]:
        status = server.status or {}
        word = status.get("status", "does not respond")
        return (
            str(server.process), str(server.workspace), word, queries_by_state(status) if status else "",
            str(status.get("clients", "")), _age(server.since),
        )  # fmt: skip

    columns = ("process", "workspace", "status", "queries", "clients", "age")
    rows = [row(server) for server in servers()]
    numeric = (True, False, False, False, True, False)
    Printer(options.format, sys.stdout, sys.stderr).show(Rows((), columns, rows, numeric))
    return 0


COMMAND = Command(_parser, _list_servers)


def _age(since: str) -> str:
    """The time since a moment, in two units."""
    with suppress(ValueError):
        seconds = int((datetime.now() - datetime.fromisoformat(since)).total_seconds())
        days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
        if days:
            return f"{days} d {hours} h"
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"
    return ""
