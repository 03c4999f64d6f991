"""STOP QUERY: a query ends after the micro-batch that runs, and not in the middle of it.

Spark's own stop interrupts the running micro-batch, which the next start then retries. Spark's loop
begins a micro-batch only while the query's state is not TERMINATED, and looks at that nowhere within
one (MicroBatchExecution.executeOneBatch; AVAILABLE NOW ends itself in this way). So it is that state
which is set here. Continuous processing and real-time mode have no such micro-batches.
"""

from __future__ import annotations

from typing import Any

PATIENCE = 60.0
"""Seconds that a micro-batch has to end in, unless TIMEOUT says otherwise."""
LEAVING = 20.0
"""The same when the console is told to end by a signal, or its script is over."""


class Ending:
    """A query that is told to begin no other micro-batch. handle: PySpark's StreamingQuery."""

    def __init__(self, handle: Any) -> None:
        execution = handle._jsq.streamingQuery()
        self._state = execution.state()
        self._thread = execution.queryExecutionThread()
        kind = self._state.get().getClass()
        words = kind.getClassLoader().loadClass(f"{kind.getPackageName()}.TERMINATED$")
        self._terminated = words.getField("MODULE$").get(None)

    def begin(self) -> None:
        self._state.set(self._terminated)

    def under_way(self) -> bool:
        return bool(self._thread.isAlive())

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        self._thread.join(max(1, int(seconds * 1000)))
        return not self.under_way()

    def waits_for_its_trigger(self) -> bool:
        """Whether it does nothing but wait for the moment of its next micro-batch. Once `begin` was
        called none follows, so that it can be interrupted.
        """
        return any(frame.getMethodName() == "waitTillTime" for frame in self._thread.getStackTrace())
