"""A read-only console on a workspace that another console holds: it shows its state and changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamsql.errors import RuleFault
from streamsql.language.statements.base import Statement
from streamsql.runtime.live.journal import LiveTables, UnreadableRows
from streamsql.runtime.workspace.folder import holder

EVERY = 0.5
"""The seconds between two checks of a live view for new rows of the other console."""


def refuse(statement: Statement, folder: Path) -> None:
    """Raise RuleFault for a statement that is not read-only. folder: the workspace."""
    if not statement.read_only:
        who = holder(folder)
        raise RuleFault(
            f"this console only reads the workspace {folder}",
            detail=f"it is held by {who}" if who else "it was opened with --read-only",
            hint="run the statement there, or use another workspace: streamsql -w DIR"
            if who
            else "no console has it open now: exit, and open it without --read-only",
            code="READ_ONLY",
        )


class SharedTables(LiveTables):
    """The rows of another console's live tables, as it has written them so far. Thread-safe: a live view
    and a statement may refresh them at the same time.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._taking = threading.Lock()

    def get(self, name: str, default: Any = None) -> Any:
        if name in self and not self.is_live_table(name):
            return self[name]  # a SELECT of this console's own
        if not self.is_live_table(name):
            return default
        with self._taking:
            journal = self._journal(name)
            if journal is None:
                return default
            rows = self.read(name, lambda: journal.refresh(self.loaded(name), lambda: self.record(name)))
            if rows is None:
                self.pop(name, None)
                return default
            self[name] = rows
            return rows

    def forget(self, name: str) -> None:
        """Remove the rows of a SELECT; the files belong to the other console."""
        self.pop(name, None)

    def follow(self, name: str) -> Callable[[], None]:
        """Refresh the rows in the background. Returns the function that ends that and waits for its end."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(EVERY):
                with suppress(UnreadableRows):  # the next statement tells it
                    self.get(name)

        thread = threading.Thread(target=work, daemon=True, name=f"follow-{name}")
        thread.start()

        def end() -> None:
            over.set()
            thread.join()

        return end
