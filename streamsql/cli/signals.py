"""Runs scripts so that signals and the time limit are obeyed at any moment."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from streamsql.errors import Source, StreamsqlError, TimeFault
from streamsql.language.parser import parse, split_script
from streamsql.output.script_runner import ScriptRunner
from streamsql.runtime.queries.stop import LEAVING

CLOSING = 30
"""The seconds within which the queries and Spark must stop when the script ends."""
STEP = 0.2
"""The seconds between two looks for a signal: another thread may have got it from the system."""
LAST_STATEMENT = 2.0
"""The seconds within which the current statement must be cancelled, once the queries have stopped."""


def needs_spark(source: Source) -> bool:
    """Whether a script needs Spark, which then starts while the script is parsed."""
    try:
        return any(parse(written, _AnyVariable()).needs_spark for written in split_script(source))
    except StreamsqlError:  # reported when the script is run
        return False


class _AnyVariable(dict[str, str]):
    """Variables before their DEFINEs have run: every name has a value."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "x"


class Supervisor:
    """Runs a script on a worker thread, so that signals and the time limit are obeyed at any moment:
    the main thread never waits for Spark.
    """

    def __init__(self, runner: ScriptRunner, sources: list[Source], timeout: float | None) -> None:
        self.runner = runner
        self.sources = sources
        self.timeout = timeout
        self.code = 0
        self.failure: BaseException | None = None
        self.signal = 0
        self.killed = False
        self._woken = SimpleQueue[None]()
        """Gets an item at a signal and at the end of the script. Not an Event: a handler interrupts the main
        thread at any step, also while that holds the lock of the Event that it waits for, and `Event.set`
        would wait for that lock for ever. The `put` of a SimpleQueue may interrupt its `get`.
        """

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        worker = threading.Thread(target=self._work, daemon=True, name="script")
        worker.start()
        in_time = self._wait()
        if not in_time or self.signal:
            self.runner.cancel.cancel()
            self._end_queries()
            worker.join(LAST_STATEMENT)
            if not in_time:
                raise TimeFault(f"the script was not done after {self.timeout:g} s", hint="--timeout SECONDS")
            # The statement may hold the terminal for ever: nobody reads what it prints.
            ends_within(LAST_STATEMENT, self._report)
            return self._code_of_signal()
        self._end_queries()
        if self.failure:
            raise self.failure
        return self.code

    def _code_of_signal(self) -> int:
        """The exit code after a signal: 0 only if nothing but queries was still running, and they stopped as
        told; the failure of an earlier statement takes precedence.
        """
        if self.runner.failure_code:
            return self.runner.failure_code
        return 0 if self._ended_by_request() else 128 + self.signal

    def _ended_by_request(self) -> bool:
        return self.signal != signal.SIGINT and self.runner.only_queries_left and not self.killed

    def _report(self) -> None:
        """Print, after a signal, which queries have failed, and that the script was not done."""
        with contextlib.suppress(OSError):  # a terminal that hung up
            self.runner.report_failures()
            if not self.runner.failure_code and self.signal != signal.SIGINT and not self._ended_by_request():
                self.runner.printer.warn(
                    f"{signal.Signals(self.signal).name} was received before the script was done"
                )

    def _wait(self) -> bool:
        """Wait for the script's end or a signal; False when the time is up first.

        In short steps: Python runs a signal's handler on the main thread only, and a signal that the
        system gave to another thread does not wake it.
        """
        deadline = math.inf if self.timeout is None else time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            with contextlib.suppress(Empty):
                self._woken.get(timeout=min(STEP, max(0.0, deadline - time.monotonic())))
                return True
        return False

    def _on_signal(self, number: int, frame: object) -> None:
        if self.signal:
            os._exit(128 + number)  # a second signal is obeyed at once
        self.signal = number
        self._woken.put(None)

    def _work(self) -> None:
        try:
            self.code = self.runner.run(self.sources)
        except BaseException as error:
            self.failure = error
        finally:
            self._woken.put(None)

    def _end_queries(self) -> None:
        """Let each query finish its micro-batch; on a thread, since Spark may no longer answer."""
        session = self.runner.session
        if not ends_within(CLOSING, lambda: session.close(LEAVING)):
            self.runner.printer.warn(
                f"Spark did not end within {CLOSING} s and is killed; "
                "committed micro-batches are in the checkpoints"
            )
            self.killed = True
            session.kill()


def ends_within(seconds: float, act: Callable[[], None]) -> bool:
    """Call a function on a thread. Returns whether it has ended within some seconds; it goes on if not."""
    work = threading.Thread(target=act, daemon=True, name="end of the script")
    work.start()
    deadline = time.monotonic() + seconds
    while work.is_alive() and time.monotonic() < deadline:
        work.join(STEP)  # short, as above: a second signal must be heard
    return not work.is_alive()
