"""The first lines of a console: shown before the editor of the prompt is imported, which takes longer than
all that comes before it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from streamsql.output.console_messages import Messages
from streamsql.shell.bare_terminal import no_echo

PROMPT = "sql> "


@contextlib.contextmanager
def greeting(messages: Messages, *, prompt: bool) -> Iterator[None]:
    """Write what the console is, and the prompt; a context in which keys are not echoed. prompt: whether the
    editor of the prompt comes next: it draws over this one, and gets the keys typed in the meantime.
    """
    with no_echo():
        messages.say("streamsql: SQL over streams. HELP; lists statements and topics, Ctrl-D leaves.")
        if prompt and messages.words.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            messages.terminal.status(PROMPT, moving=True)
        yield
