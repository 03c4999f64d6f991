"""One live table over live tables: how it is refreshed, and how far behind its inputs it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import is_of_values

if TYPE_CHECKING:
    from streamsql.runtime.embedded.changes import Changes
    from streamsql.runtime.embedded.live_rows import LiveRows, RowsAt
    from streamsql.runtime.live.journal import LiveTables

Compute = Callable[[Mapping[str, "RowsAt"], CancelToken], Any]


@dataclass(eq=False)
class Refresher:
    """The counterpart of PySpark's StreamingQuery for a query that Spark runs: isActive, stop, exception,
    awaitTermination.

    rows: takes what is computed. compute: gives the rows, an Arrow table, from those of the inputs. told:
    called with a report, in the form of Spark's progress reports, after each refresh, and with None at its
    end. roots: the groups of live tables that it depends on; waits_for: the input that keeps it from being
    refreshed; done: how often it was; skipped: snapshots that were replaced by newer ones before they could
    be taken, slow: whether the last refresh had some (not those of the first refresh, in which Spark loads
    and compiles); renewed: when one of the live tables below it has begun
    anew. reads_tables: whether its rows are also those of tables, whose changes nothing announces.
    """

    name: str
    inputs: tuple[str, ...]
    rows: LiveRows | Changes
    compute: Compute
    on_report: Callable[[dict[str, Any] | None], object]
    is_table: bool = field(default=True, kw_only=True)
    reads_tables: bool = field(default=False, kw_only=True)
    roots: frozenset[str] = frozenset()
    waits_for: str = ""
    renewed: dict[str, datetime] = field(default_factory=dict)
    done: int = 0
    skipped: int = 0
    milliseconds: int = 0
    slow: bool = False
    leave: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        # A query that computes no live table has a key that no table has.
        self.key = self.name.casefold() if self.is_table else f"query\0{self.name.casefold()}"
        self.input_keys = frozenset(i.casefold() for i in self.inputs)
        self._used: Mapping[str, RowsAt] = {}
        self._arrived = self._dispatched = self._taken = 0
        self._asked = self._answered = 0
        self._since: float | None = None
        self._taking: float | None = None
        self._cancel = CancelToken()
        self._over = threading.Event()
        self._error: Exception | None = None

    # ---- as a StreamingQuery ----------------------------------------------------------------

    @property
    def isActive(self) -> bool:
        return not self._over.is_set()

    def stop(self) -> None:
        self.leave()

    def exception(self) -> Exception | None:
        return self._error

    def awaitTermination(self, timeout: float | None = None) -> bool:
        return self._over.wait(timeout)

    # ---- refreshing -------------------------------------------------------------------------

    def end(self) -> None:
        """It is refreshed no longer; what is being computed is cancelled."""
        if not self._over.is_set():
            self._over.set()
            self._cancel.cancel()
            self.on_report(None)

    def fail(self, error: Exception) -> None:
        """It ends with an error, if it has not ended."""
        if self.isActive:
            self._error = error
            self.end()

    def rows_arrived(self) -> None:
        """There is a newer snapshot."""
        self._arrived += 1
        self._since = self._since or time.monotonic()

    def ask_again(self) -> None:
        """It is to be computed from the same rows again: something else that it reads has changed."""
        self._asked += 1
        self.rows_arrived()

    def dispatched(self) -> None:
        """A round begins with the newest snapshot."""
        self._dispatched = self._arrived
        self._taking, self._since = self._taking or self._since, None

    def up_to_date(self) -> None:
        """Its rows are those of the newest snapshot."""
        self._taken = self._dispatched = self._arrived
        self._taking = self._since = None

    def is_at(self, values: Mapping[str, RowsAt]) -> bool:
        """Whether these rows of its inputs are those that it was computed from."""
        if self._answered != self._asked:
            return False
        return self._used.keys() == values.keys() and all(self._used[k] is v for k, v in values.items())

    def has_columns_of(self, live: LiveTables) -> bool:
        """Whether it was computed from inputs with the columns that these have now."""
        now = ((key, live.loaded(key)) for key in self.input_keys)
        return all(
            rows is None or (key in self._used and self._used[key].schema == rows.schema) for key, rows in now
        )

    def refresh(self, values: Mapping[str, RowsAt], *, begun: Callable[[], bool]) -> bool:
        """Compute it from these rows of its inputs, unless it was. begun: whether all that it depends on has
        had a micro-batch: before that, an error of values does not end it. Returns whether it goes on.
        """
        began, asked, table = time.monotonic(), self._asked, None
        if self.reads_tables or not self.is_at(values):
            try:
                table = self.compute(values, self._cancel)
                if not self.isActive:
                    return False
                before = self.rows.now().table
                if before is None or not before.equals(table):
                    self.rows.take(table, self.rows.last_batch + 1)
            except Exception as error:
                if asked != self._asked:
                    return True  # what it reads has changed meanwhile: it is computed again
                if table is not None or not is_of_values(error) or begun():
                    self.fail(error)
                    return False
                self.rows.empty_fault = error
                self._used, self._answered = values, asked
                return True
            self._used, self._answered, self.rows.empty_fault = values, asked, None
            self.done += 1
            self.milliseconds = round((time.monotonic() - began) * 1000)
            self.on_report(self._report(values))
        skipped = max(0, self._dispatched - self._taken - 1) if self._taken else 0
        self.skipped += skipped
        self.slow = skipped > 0 and self.done > 2
        self._taken, self._taking = self._dispatched, None
        return True

    def _report(self, values: Mapping[str, RowsAt]) -> dict[str, Any]:
        count = sum(at.count for at in values.values())
        return {
            "batchId": self.rows.last_batch,
            "timestamp": datetime.now(UTC).isoformat("T", "milliseconds").replace("+00:00", "Z"),
            "numInputRows": count,
            "processedRowsPerSecond": count / max(self.milliseconds, 1) * 1000,
            "durationMs": {"triggerExecution": self.milliseconds},
            "sources": [
                {"description": name, "numInputRows": at.count, "endOffset": f"micro-batch {at.batch}"}
                for name, at in values.items()
            ],
        }

    # ---- how far behind it is ---------------------------------------------------------------

    @property
    def behind(self) -> int:
        """Snapshots of its inputs that are newer than its rows."""
        return self._arrived - self._taken

    @property
    def stale(self) -> float:
        """Seconds since its inputs changed without its rows."""
        since = self._taking or self._since
        return 0.0 if since is None or not self.behind else time.monotonic() - since
