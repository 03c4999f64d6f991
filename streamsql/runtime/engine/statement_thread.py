"""The thread on which the statements of a client run, so that they can be cancelled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from streamsql.runtime.engine.cancel import CancelToken

STEP = 0.1
"""The seconds between two looks for Ctrl-C: the system may give the signal to a thread that it does not wake.
"""
PATIENCE = 10.0
"""The seconds that a cancelled statement has to end."""

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
_Calls = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]


class StatementThread:
    """Executes statements one after the other, and fetches their rows: the jobs of Spark of a statement
    belong to one thread. It ends with this object. cancel: cancels the statement that runs.
    """

    def __init__(self) -> None:
        self.cancel = CancelToken()
        calls = self._calls = _Calls()
        threading.Thread(target=_work, args=(calls,), daemon=True, name="statements").start()
        self._ended = weakref.finalize(self, calls.put, None)

    def begin(
        self, act: Callable[Arguments, Value], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Future[Value]:
        """Call a function there, when what was begun before has ended."""
        future = Future[Value]()
        self._calls.put((future, partial(act, *arguments, **named)))
        return future

    def run(
        self, act: Callable[Arguments, Value], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Value:
        """What a function returns there. Raises what it raises, KeyboardInterrupt once the statement is
        cancelled, and RuntimeError when the thread has ended.
        """
        if not self._ended.alive:
            raise RuntimeError("the thread of the statement has ended")
        future = self.begin(act, *arguments, **named)
        try:
            while not wait([future], STEP).done:
                pass
        except KeyboardInterrupt:
            self.cancel.cancel()
            wait([future], PATIENCE)
            raise
        return future.result()

    def close(self) -> None:
        """Let the thread end when it has done what was begun. May be called again."""
        self._ended()


def _work(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        future, act = call
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(act())
            except BaseException as error:  # the one who waits raises it
                future.set_exception(error)
        del call, future, act  # they may hold what holds this thread
