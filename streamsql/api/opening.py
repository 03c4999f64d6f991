"""Opens the session of a connection: in the server of its workspace, or in this process."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamsql.cli.command_line import CommandLine, command_parser
from streamsql.cli.open_session import open_session
from streamsql.cli.open_workspace import attached, held_workspace
from streamsql.config.preferences import Preferences
from streamsql.errors import StartFault, UsageFault
from streamsql.output.printer import Printer
from streamsql.runtime.console_session import ConsoleSession
from streamsql.runtime.engine.pyspark_import import running_spark
from streamsql.runtime.workspace.reopen import reopen

MOST_NOTES = 100


class Words(Printer):
    """Keeps what the console would say; a warning is one of Python. The rows of a sink USING console go to
    standard output.
    """

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(preferences, sys.stdout, sys.stderr)
        self.said = deque[str](maxlen=MOST_NOTES)

    def _word(self, text: str, *, sql: bool = False) -> None:
        self.said.append(text)

    def warn(self, message: str) -> None:
        super().warn(message)
        warnings.warn(message, stacklevel=2)


def read_arguments(
    workspace: str | os.PathLike[str] | None,
    preferences: Preferences,
    *,
    read_only: bool,
    master: str | None,
    conf: Mapping[str, str],
    variables: Mapping[str, str],
    config: bool,
) -> CommandLine:
    """The arguments of `connect` as those of the command line. Raises UsageFault."""
    if workspace is None and read_only:
        raise UsageFault(
            "read_only needs a workspace",
            hint="streamsql.connect('DIR', read_only=True)",
            code="NOT_A_WORKSPACE",
        )
    words = ["--workspace", os.fspath(workspace)] if workspace is not None else []
    words += ["--master", master] if master else []
    words += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    words += [word for key, value in variables.items() for word in ("--define", f"{key}={value}")]
    words += ["--read-only"] * read_only + ["--no-config"] * (not config)
    return CommandLine.of(command_parser().parse_args(words), preferences)


@contextmanager
def opened(line: CommandLine, words: Words, spark: Any) -> Iterator[ConsoleSession]:
    """The session of a connection; its end leaves the server, or ends the session. spark: a SparkSession that
    runs already, None to start one. Raises StreamsqlError when it cannot be opened.
    """
    client = attached(line, words, interactive=False, arrow=True)
    if client is not None:
        try:
            yield client
        finally:
            client.close()
        return
    if spark is None and running_spark() is not None:
        raise StartFault(
            "Spark runs in this process already",
            detail="a process has one Spark, and one connection that started it",
            hint="streamsql.connect(…, spark=spark) uses a SparkSession that runs; a server "
            "(streamsql serve -w DIR) has several connections",
            code="WORKSPACE_IN_USE",
        )
    with _place(line, words) as (folder, workspace):
        session, closes = open_session(line, words, folder, workspace, arrow=True, spark=spark), True
        try:
            for text in reopen(session.parts).lines():
                words.say(text)
            session.on_news(words.warn)
            if spark is None:
                session.parts.engine.begin_start()
            yield session
        except GeneratorExit:  # the program ends without close, and the session was killed
            closes = False
            raise
        finally:
            if closes:
                session.close()


@contextmanager
def _place(line: CommandLine, words: Words) -> Iterator[tuple[Path, Path | None]]:
    """(the folder of checkpoints and the like, the workspace): a temporary folder without a workspace."""
    if not line.workspace:
        with tempfile.TemporaryDirectory(prefix="streamsql-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary), None
        return
    try:
        with held_workspace(replace(line, workspace=str(line.folder.absolute())), words) as folders:
            yield folders
    except UsageFault as error:
        if error.code == "WORKSPACE_IN_USE":
            error.hint = (
                f"streamsql.connect({line.workspace!r}, read_only=True) shows it; a server "
                f"(streamsql serve -w {line.workspace}) has several clients"
            )
        raise
