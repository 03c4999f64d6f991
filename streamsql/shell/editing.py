"""When Enter runs a statement, and what history keeps: pure functions, and the history file."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from prompt_toolkit.history import FileHistory

from streamsql.errors import SECRET_WORDS, InputFault, StreamsqlError
from streamsql.language.tokens import tokenize
from streamsql.output.printer import Printer

_AT_ONCE = re.compile(r"\s*(help|exit|quit|clear)\s*\Z", re.IGNORECASE)
_SECRET = re.compile("|".join(map(re.escape, SECRET_WORDS)), re.IGNORECASE)


def is_complete(text: str) -> bool:
    """Whether Enter runs a text: it ends with `;` outside quotes and comments, is empty, a short form,
    or one of the words that need none.
    """
    if not text.strip() or _AT_ONCE.match(text) or text.lstrip().startswith("\\"):
        return True
    try:
        tokens = tokenize(text)
    except StreamsqlError:
        return False  # a quote or comment is open
    return bool(tokens) and tokens[-1].text == ";"


def edit(text: str, printer: Printer) -> str:
    """A text as it comes back from the editor of VISUAL or EDITOR; as it was when that fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="streamsql-") as folder:
        path = Path(folder) / "statement.sql"
        path.write_text(text + "\n", "utf-8")
        try:
            code = subprocess.call([*shlex.split(command), str(path)])
        except (OSError, ValueError) as error:
            printer.error(
                InputFault(f"the editor {command} did not start: {error}", hint="export EDITOR=nano")
            )
            return ""
        return path.read_text("utf-8", "replace").strip() if code == 0 else ""


class History(FileHistory):
    """Whole statements, in a file that only its owner can read; secrets and lines that begin with a
    blank are left out.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
        super().__init__(str(path))

    def offer(self, statement: str) -> None:
        """Have a statement come up first that nobody has typed: in this prompt, not in the file."""
        self._loaded_strings.insert(0, statement)

    def append_string(self, string: str) -> None:
        if not string.startswith(" ") and not _SECRET.search(string):
            super().append_string(string)
