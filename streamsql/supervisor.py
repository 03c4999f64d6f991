"""A script under watch: signals and the time limit are obeyed at any moment."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

from streamsql.errors import EXIT_INTERRUPTED, Source, StreamsqlError, TimeFault
from streamsql.language.parser import split_script
from streamsql.runtime.stopping import LEAVING
from streamsql.script import ScriptRunner

_WITHOUT_SPARK = frozenset("""HELP SHOW DESCRIBE DESC EXPLAIN SET RESET DEFINE EXIT QUIT CLEAR""".split())

CLOSING = 30
"""Seconds that the queries and Spark have to end in when the script ends."""
STEP = 0.2


def needs_spark(source: Source) -> bool:
    """Whether a script will want Spark, so that it starts while the script is being read."""
    try:
        for written in split_script(source):
            words = written.text.upper().replace("OR REPLACE", "").split(None, 2)
            if words[0] not in _WITHOUT_SPARK and words[:2] not in (["CREATE", "STREAM"], ["CREATE", "SINK"]):
                return True
    except StreamsqlError:
        pass  # said when the script is run
    return False


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
        self.wake = threading.Event()

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        worker = threading.Thread(target=self._work, daemon=True, name="script")
        worker.start()
        in_time = self._wait()
        if not in_time or self.signal:
            self.runner.leaving.set()
            self._end_queries()
            if not in_time:
                raise TimeFault(f"the script was not done after {self.timeout:g} s", hint="--timeout SECONDS")
            return EXIT_INTERRUPTED if self.signal == signal.SIGINT else 0
        self._end_queries()
        if self.failure:
            raise self.failure
        return self.code

    def _wait(self) -> bool:
        """Wait for the script's end or a signal; False when the time is up first.

        In short steps: Python runs a signal's handler on the main thread only, and a signal that the
        system gave to another thread does not wake it.
        """
        deadline = math.inf if self.timeout is None else time.monotonic() + self.timeout
        while not self.wake.wait(min(STEP, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
        return True

    def _on_signal(self, number: int, frame: object) -> None:
        if self.signal:
            os._exit(EXIT_INTERRUPTED)  # a second signal is obeyed at once
        self.signal = number
        self.wake.set()

    def _work(self) -> None:
        try:
            self.code = self.runner.run(self.sources)
        except BaseException as error:
            self.failure = error
        finally:
            self.wake.set()

    def _end_queries(self) -> None:
        """Let each query finish its micro-batch; on a thread, since Spark may not answer any more."""
        session = self.runner.session
        closing = threading.Thread(target=session.close, args=(LEAVING,), daemon=True)
        closing.start()
        deadline = time.monotonic() + CLOSING
        while closing.is_alive() and time.monotonic() < deadline:
            closing.join(STEP)  # short, as above: a second signal must be heard
        if closing.is_alive():
            self.runner.printer.warn(
                f"Spark did not end within {CLOSING} s and is killed; the checkpoints hold what was done"
            )
            self.runner.session.engine.kill()
