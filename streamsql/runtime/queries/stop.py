"""STOP QUERY: a query ends after the current micro-batch.

Spark's own stop aborts the current micro-batch, which is retried on restart. Spark's loop starts a
micro-batch only while the query's state is not TERMINATED, and does not check the state within one
(MicroBatchExecution.executeOneBatch; the trigger AVAILABLE NOW ends itself in this way). So this module
sets that state. Continuous processing and real-time mode have no such micro-batches.
"""

from __future__ import annotations

from typing import Any

PATIENCE = 60.0
"""The seconds that a micro-batch has to complete, unless TIMEOUT sets others."""
LEAVING = 20.0
"""The same when a signal ends the console, or its script has ended."""


class Ending:
    """The stop of a query after its current micro-batch. handle: PySpark's StreamingQuery."""

    def __init__(self, handle: Any) -> None:
        execution = handle._jsq.streamingQuery()
        self._state = execution.state()
        self._thread = execution.queryExecutionThread()
        self._terminated = _terminated(self._state.get().getClass())

    def begin(self) -> None:
        self._state.set(self._terminated)

    def under_way(self) -> bool:
        return bool(self._thread.isAlive())

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        self._thread.join(max(1, int(seconds * 1000)))
        return not self.under_way()

    def waits_for_its_trigger(self) -> bool:
        """Whether it only waits for its trigger. After `begin` no micro-batch follows, so that the wait can
        be interrupted.
        """
        return any(frame.getMethodName() == "waitTillTime" for frame in self._thread.getStackTrace())


def _terminated(kind: Any) -> Any:
    """Spark's state TERMINATED. kind: the class of another state."""
    from py4j.java_gateway import JavaClass

    return getattr(JavaClass(f"{kind.getPackageName()}.TERMINATED$", kind._gateway_client), "MODULE$")
