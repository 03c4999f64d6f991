"""Runs a statement on a thread of its own, so that Ctrl-C cancels it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import ParamSpec, TypeVar

from streamsql.runtime.engine.cancel import CancelToken

STEP = 0.1
"""The seconds between two looks for Ctrl-C: the system may give the signal to a thread that it does not wake.
"""
PATIENCE = 10.0
"""The seconds that a cancelled statement has to end."""

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class StatementThread:
    """Executes a statement, and later fetches its rows: its jobs of Spark belong to one thread. cancel:
    cancels the statement.
    """

    def __init__(self) -> None:
        self.cancel = CancelToken()
        self._pool = ThreadPoolExecutor(1, "streamsql-statement")

    def run(
        self, act: Callable[Arguments, Value], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Value:
        """What a function returns. Raises what it raises, and KeyboardInterrupt once it is cancelled."""
        future = self._pool.submit(act, *arguments, **named)
        try:
            while not wait([future], STEP).done:
                pass
        except KeyboardInterrupt:
            self.cancel.cancel()
            wait([future], PATIENCE)
            raise
        return future.result()

    def close(self) -> None:
        """Let the thread end."""
        self._pool.shutdown(wait=False)
