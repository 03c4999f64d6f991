"""Keeps a server going until it is told to end, and brings its queries back when Spark was lost."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path

from streamsql.cli.signals import STEP, ends_within
from streamsql.errors import Source, StartFault, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.tokens import quote_name
from streamsql.output.console_messages import Messages
from streamsql.runtime.checkpoints.checkpoint_files import batch_under_way
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import SparkLost
from streamsql.runtime.queries.run import Running
from streamsql.runtime.queries.stop import LEAVING
from streamsql.runtime.session import Session
from streamsql.server.listener import Server

STATUS_EVERY = 5.0
"""The seconds between two writes of the status file."""
CLOSING = 60.0
"""The seconds within which queries and Spark must stop; then Spark is killed."""
OVERFLOWS = 3
"""How often a query is resumed whose first micro-batch needs more memory than Spark has."""
AGAIN_AFTER = (1.0, 5.0, 30.0)
"""The seconds before each attempt to start Spark again; the last for all further ones."""


class HostingLoop:
    """Runs on the main thread. status_file: where the status is written for health checks; None for none."""

    def __init__(
        self, session: Session, server: Server, messages: Messages, status_file: Path | None = None
    ) -> None:
        self.session = session
        self.server = server
        self.messages = messages
        self.status_file = status_file
        self._signals = 0
        self._code = 0
        self._cancel = CancelToken()
        self._starting = threading.Lock()
        self._waiting = set[str]()
        """The queries that wait for the next start of Spark, as it ended while they were started."""
        self._overflows = Counter[str]()
        """How often in a row the memory was full in a query's first micro-batch after its start."""
        session.parts.events.subscribe(SparkLost, self._spark_lost)

    def run(self, begin: Callable[[CancelToken], int]) -> int:
        """Wait for a signal or STOP SERVER, then stop the queries after their micro-batches. begin: what is
        done first, on a thread of its own; if it does not return 0, the server ends. Returns the exit code.
        """
        self.obey_signals()
        threading.Thread(target=self._begin, args=(begin,), daemon=True, name="begin").start()
        waited = STATUS_EVERY
        while not self.server.ended.wait(STEP):
            if self._signals:
                self.server.stop()
                break
            waited += STEP
            if waited >= STATUS_EVERY:
                waited = 0.0
                self.write_status()
        self._cancel.cancel()
        self.messages.say("the server ends after the current micro-batches")
        self._close()
        return self._code

    def obey_signals(self) -> None:
        """End on a signal from now on, also on one that comes before `run`."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup, or after the terminal was left
                signal.signal(number, self._on_signal)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def _begin(self, begin: Callable[[CancelToken], int]) -> None:
        try:
            code = begin(self._cancel)
        except StreamsqlError as error:
            self.messages.error(error)
            code = error.exit_code
        if code and not self.server.ending:
            self._code = code
            self.server.stop()

    def _on_signal(self, number: int, frame: object) -> None:
        """Count the signal; `run` looks for it. A handler interrupts the main thread at any step, also while
        that holds the lock of an Event: setting the Event here would wait for that lock for ever.
        """
        self._signals += 1
        if self._signals > 1:
            os._exit(128 + number)  # a second signal is obeyed at once

    def _close(self) -> None:
        if not ends_within(CLOSING, lambda: self.session.close(LEAVING)):
            self.messages.warn(f"Spark did not end within {CLOSING:.0f} s and is killed")
            self.session.kill()
        self.server.close()
        self.write_status("ended")

    # ---- health ---------------------------------------------------------------------------

    def write_status(self, status: str = "") -> None:
        """Write the status file atomically. status: instead of that of the server."""
        if self.status_file is None:
            return
        shown = self.server.status() | ({"status": status, "spark": "Spark has ended"} if status else {})
        part = self.status_file.with_name(f".{self.status_file.name}.part")
        with suppress(OSError):
            part.write_text(json.dumps(shown, indent=1) + "\n", "utf-8")
            part.replace(self.status_file)

    def resume(self) -> None:
        """Start the queries that ran when the workspace was last held. Raises StartFault when Spark could not
        start; other errors are reported.
        """
        workspace = self.session.parts.workspace
        names = [q.name for q in self.session.catalog.named(None) if workspace.past(q.name).console]
        try:
            for seconds in AGAIN_AFTER:
                try:
                    return self._start(names)
                except StartFault as error:
                    if error.code != "SPARK_LOST":  # the machine had no memory left, or somebody killed it
                        raise
                    self.messages.error(error)
                    if self.server.ended.wait(seconds):
                        return
            self._start(names)
        finally:
            workspace.resuming = False

    def _start(self, names: list[str]) -> None:
        with self._starting:
            self._waiting |= set(names)
            for name in names:
                running = self.session.parts.queries.all.get(name.casefold())
                if name.casefold() not in self.session.catalog.queries or running and not running.over:
                    self._waiting.discard(name)
                    continue
                try:
                    source = Source("resume", f"START QUERY {quote_name(name)};")
                    self.session.execute(parse(split_script(source)[0]))
                    self.messages.say(f"resumed: {name}")
                except StartFault:
                    raise
                except StreamsqlError as error:
                    self.messages.error(error)
                    if error.code == "SPARK_LOST":
                        continue  # it waits for the next start of Spark
                self._waiting.discard(name)

    def _spark_lost(self, event: SparkLost) -> None:
        runs = [q for q in self.session.parts.queries.all.values() if q.ended_with_spark]
        left = {q.name for q in runs if self._overflowed(q, event)}
        for name in sorted(left):
            self.messages.warn(
                f"{name} is not resumed: Spark's memory was full {OVERFLOWS} times while it ran. "
                f"With more of it (--conf spark.driver.memory=…), START QUERY {quote_name(name)}; resumes it"
            )
        lost = ({q.name for q in runs} | self._waiting) - left
        names = [q.name for q in self.session.catalog.named(None) if q.name in lost]
        threading.Thread(target=self._recover, args=(names,), daemon=True, name="recover").start()

    def _overflowed(self, query: Running, event: SparkLost) -> bool:
        """Whether a query is not to be resumed: the server would do nothing but start Spark for it, and no
        other query would go on.
        """
        if query.reports.last:
            self._overflows[query.name] = 0
        elif event.memory and batch_under_way(query.plan.checkpoint):
            self._overflows[query.name] += 1
        return self._overflows[query.name] >= OVERFLOWS

    def _recover(self, names: list[str]) -> None:
        """Start Spark again, and the queries that it ran."""
        for seconds in chain(AGAIN_AFTER, repeat(AGAIN_AFTER[-1])):
            if self.server.ended.wait(seconds):
                return
            try:
                self.session.parts.engine.begin_start()
                return self._start(names)
            except StartFault as error:
                self.messages.error(error)
