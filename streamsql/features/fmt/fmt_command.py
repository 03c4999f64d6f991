"""`streamsql fmt`: formats script files in place."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from streamsql.cli.command_line import Command, Parser
from streamsql.config.preferences import Preferences
from streamsql.errors import InputFault, Source, StreamsqlError, reason_of
from streamsql.output.console_messages import Messages
from streamsql.output.script_files import bad_encoding
from streamsql.output.terminal import Terminal

WOULD_CHANGE, NOT_PARSED = 1, 2
_BOM = "\ufeff"


def format_parser() -> argparse.ArgumentParser:
    """The flags of `streamsql fmt`."""
    parser = Parser(
        prog="streamsql fmt",
        description="Format SQL scripts: clauses on lines, keywords in upper case. Names, texts and comments "
        "are kept; short statements stay on one line.",
        epilog="exit codes: 0 success, 1 with --check: a file would change, 2 a file cannot be read or "
        "parsed (it is left as it is)",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="scripts to format in place; - formats standard input")
    add("--check", action="store_true", help="write nothing; print the names of files that would change")
    add("--diff", action="store_true", help="write nothing; print what would change")
    return parser


def format_files(options: argparse.Namespace, preferences: Preferences) -> int:
    """Run `streamsql fmt`. Returns the exit code."""
    messages = Messages(preferences, Terminal(sys.stdout, sys.stderr))
    code = 0
    for name in options.files:
        try:
            changed = _format(name, check=options.check, diff=options.diff)
        except StreamsqlError as error:
            messages.error(error)
            code = NOT_PARSED
        else:
            code = code or (WOULD_CHANGE if changed and options.check else 0)
    return code


COMMAND = Command(format_parser, format_files)


def _format(name: str, *, check: bool, diff: bool) -> bool:
    """Format one file; whether it differs from its format. Raises StreamsqlError."""
    shown = "<stdin>" if name == "-" else name
    text = _read(name, shown)
    formatted = formatted_text(shown, text)
    if diff:
        sys.stdout.writelines(_difference(shown, text, formatted))
    elif check and formatted != text:
        print(shown)
    elif name == "-" and not check:
        sys.stdout.write(formatted)
    elif formatted != text and not check:
        write_in_place(Path(name), formatted)
        print(f"formatted {name}", file=sys.stderr)
    return formatted != text


def _difference(name: str, text: str, formatted: str) -> list[str]:
    lines = (text.splitlines(keepends=True), formatted.splitlines(keepends=True))
    return list(difflib.unified_diff(*lines, fromfile=name, tofile=f"{name} (formatted)"))


def formatted_text(name: str, text: str) -> str:
    """The format of a script; its byte order mark and its line ends are kept. Raises StreamsqlError."""
    from streamsql.features.fmt.format_script import format_script

    byte_order_mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    windows = "\r\n" in body and body.count("\r\n") == body.count("\n")
    formatted = format_script(Source(name, body.replace("\r\n", "\n") if windows else body))
    return byte_order_mark + (formatted.replace("\n", "\r\n") if windows else formatted)


def _read(name: str, shown: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputFault(f"cannot read {name}: {reason_of(error)}", code="FILE_NOT_READ") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise bad_encoding(shown, data, error) from None


def write_in_place(path: Path, text: str) -> None:
    """Replace the content of a file at once, with its mode; a symbolic link stays one. Raises InputFault."""
    real = Path(os.path.realpath(path))
    temporary = ""
    try:
        number, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        with os.fdopen(number, "wb") as file:
            file.write(text.encode())
            os.fchmod(file.fileno(), real.stat().st_mode & 0o7777)
        os.replace(temporary, real)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise InputFault(f"cannot write {path}: {reason_of(error)}", code="FILE_NOT_WRITTEN") from None
