"""Helpers for tests that run scripts: in this process on the shared Spark, or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from conftest import MASTER
from console import command

from streamsql.cli.main import main
from streamsql.config.preferences import Preferences
from streamsql.errors import Source
from streamsql.output.printer import Printer
from streamsql.output.script_runner import ScriptRunner
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.session import Session
from streamsql.runtime.session_config import Config


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def steady(text: str) -> str:
    """Words without what changes from run to run: seconds."""
    return re.sub(r"(\d+ rows?), \d+\.\d\d s\)", r"\1)", text)


def run_here(
    spark: Any,
    folder: Path,
    source: Source,
    *,
    format: str = "table",
    keep_going: bool = False,
    **variables: str,
) -> Outcome:
    """Run a script as `streamsql` does, on a Spark that is there."""
    out, err = io.StringIO(), io.StringIO()
    preferences = Preferences(format=format)
    printer = Printer(preferences, out, err)
    config = Config(
        Settings.make(MASTER, {}),
        folder / "workspace",
        folder / "spark.log",
        folder,
        show_batch=lambda result, batch_id: printer.show(result, background=True),
        preferences=preferences,
    )
    session = Session(config, spark)
    session.variables.update(variables)
    session.on_news(printer.warn, restarts_only=True)
    code = ScriptRunner(session, printer, CancelToken(), keep_going=keep_going).run([source])
    session.close()
    return Outcome(code, out.getvalue(), steady(err.getvalue()))


def run_main(*arguments: str, stdin: str | bytes = "", cwd: Path | None = None) -> Outcome:
    """Run the command line in this process: for what starts no Spark and no signal handlers."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    given, out, err = (io.TextIOWrapper(io.BytesIO(b), "utf-8") for b in (data, b"", b""))
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = given, out, err
    try:
        with contextlib.chdir(cwd or Path.cwd()):
            code = main(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    for stream in (out, err):
        stream.flush()
    written = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    shown = list(written)
    return Outcome(code, shown[0], steady(shown[1]))


def run_process(
    *arguments: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    seconds: float = 120,
    cold: bool = False,
) -> Outcome:
    """Run `streamsql` as a process of its own. cold: it starts its own JVM in any case."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        command(*arguments, cold=cold), input=data, capture_output=True, cwd=cwd, timeout=seconds
    )
    return Outcome(done.returncode, done.stdout.decode(), steady(done.stderr.decode()))
