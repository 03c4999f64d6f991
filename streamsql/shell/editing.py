"""Decides when Enter runs a statement, calls the editor, and keeps the history file."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from prompt_toolkit.history import FileHistory

from streamsql.errors import InputFault, Source, StreamsqlError, reason_of
from streamsql.output.console_messages import Messages
from streamsql.shell.bare_terminal import echo

_AT_ONCE = re.compile(r"\s*(help|exit|quit|clear)\s*\Z", re.IGNORECASE)


def is_complete(text: str) -> bool:
    """Whether Enter runs a text: it ends with `;` outside quotes and comments or with a backslash command,
    is empty, is a short form, or is a word that needs no `;`.
    """
    if not text.strip() or _AT_ONCE.match(text):
        return True
    # Imported with the first Enter: the first prompt is on the screen by then.
    from streamsql.language.lexical import cut_at_commands, is_ended, trailing_command
    from streamsql.language.short_forms import SIGNS

    last = cut_at_commands(text, SIGNS)[-1]
    if last.lstrip().startswith(SIGNS):
        return True
    return is_ended(last) or ("\\" in last and trailing_command(last) is not None)


def open_sign(lines: list[str]) -> str:
    """The quote, or `*` of a comment, that is open at the end of the lines of a statement; "" for none."""
    sign = ""
    for line in lines:
        sign = _open_after(line, sign)
    return sign.replace("/*", "*")


@lru_cache(maxsize=10_000)
def _open_after(line: str, sign: str) -> str:
    """The sign that is open after a line. sign: the one before it. Each frame asks for each line."""
    from streamsql.language.lexical import opened

    return opened(f"{sign}{line}")


def drops_all_queries(text: str) -> bool:
    """Whether DROP QUERY ALL is one of the statements of a text."""
    if "drop" not in text.casefold():
        return False
    from streamsql.language.parser import parse, split_script
    from streamsql.language.statements.query import DropQuery

    try:
        statements = [parse(written, {}, literal=True) for written in split_script(Source("sql", text))]
    except StreamsqlError:
        return False  # its error is shown when it runs
    return any(isinstance(statement, DropQuery) and not statement.name for statement in statements)


def edit(text: str, messages: Messages, file: str = "") -> str:
    """A text, or that of a file, edited with the editor of VISUAL or EDITOR; empty when the editor fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="streamsql-") as folder:
        path = Path(file).expanduser() if file else Path(folder) / "statement.sql"
        if not file:
            path.write_text(text + "\n", "utf-8")
        try:
            with echo():
                code = subprocess.call([*shlex.split(command), str(path)])
        except (OSError, ValueError) as error:
            messages.error(
                InputFault(
                    f"the editor {command} did not start: {reason_of(error)}",
                    hint="export EDITOR=vi" if "nano" in command else "export EDITOR=nano",
                    code="EDITOR_NOT_STARTED",
                )
            )
            return ""
        return path.read_text("utf-8", "replace").strip() if code == 0 and path.exists() else ""


class History(FileHistory):
    """The history of statements, in a file that only its owner can read. Statements that contain a secret,
    or begin with a blank, are not stored. Where the file cannot be made (a read-only home), statements are
    remembered for this prompt only.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
            path.chmod(0o600)
        except OSError:
            path = Path(os.devnull)
        super().__init__(str(path))

    def offer(self, statement: str) -> None:
        """Add a proposed statement as the newest entry, for this prompt and not in the file."""
        self._loaded_strings.insert(0, statement)

    def append_string(self, string: str) -> None:
        from streamsql.language.redaction import holds_secret

        if not string.startswith(" ") and not holds_secret(string):
            super().append_string(string)
