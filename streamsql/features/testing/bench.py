"""The session of one test: its steps, and what its queries have changed since the last EXPECT."""

from __future__ import annotations

from typing import Any

from streamsql.errors import QueryFault, StreamsqlError, TimeFault
from streamsql.language.statements.base import Statement
from streamsql.results import Result
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.live.result_views import RETAINED_CHANGES, ChangesView, values
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running
from streamsql.runtime.session import Session

STEP_SECONDS = 120.0
"""The time that all queries have to process the rows of one step."""


class Bench:
    """session: of this test alone, with the pipeline in it. cancel: cancels the test.

    failures: the queries that have failed, and that no EXPECT … FAILS WITH has named yet.
    """

    def __init__(self, session: Session, cancel: CancelToken) -> None:
        self.session = session
        self.cancel = cancel
        self.failures: list[Running] = []
        self._counted_failures: set[int] = set()
        self._views: dict[str, tuple[Any, ChangesView]] = {}
        self._counted: dict[str, int] = {}

    @property
    def parts(self) -> SessionParts:
        return self.session.parts.under(self.cancel)

    @property
    def zone(self) -> str:
        """The session time zone."""
        return str(self.session.spark.conf.get("spark.sql.session.timeZone"))

    def execute(self, statement: Statement) -> Result:
        return self.session.execute(statement, self.cancel)

    def settle(self) -> None:
        """Wait until all queries have processed all rows. Raises TimeFault, Cancelled."""
        for name in list(self.session.parts.queries.all):
            try:
                self.session.parts.queries.wait([name], self.cancel, idle=True, timeout=STEP_SECONDS)
            except (QueryFault, StreamsqlError) as error:
                if isinstance(error, TimeFault) or self.cancel.cancelled:
                    raise
        for running in self.session.parts.queries.all.values():
            if id(running) not in self._counted_failures and running.status() == "FAILED":
                self._counted_failures.add(id(running))
                self.failures.append(running)
        self.watch()

    def raise_failure(self) -> None:
        """Raise the fault of a query that has failed, and was not expected to."""
        if self.failures and self.failures[0].fault:
            raise self.failures[0].fault

    # ---- changes --------------------------------------------------------------------------

    def watch(self) -> None:
        """Note the changes of each live table and sink."""
        for name, rows in list(self.session.parts.live.items()):
            if name.endswith("$$"):  # rows of an INSERT by itself, of which there is no view
                self._counted.setdefault(name, 0)
            elif name not in self._views or self._views[name][0] is not rows:
                if name in self._views:
                    self._views[name][1].close()
                self._views[name] = (rows, ChangesView(rows, self.zone))
                self._counted.setdefault(name, 0)

    def begin_step(self) -> None:
        """Changes are counted from here on."""
        self._counted = {name: self._count(name) for name in self._counted}

    def changes(self, name: str) -> list[tuple[Any, ...]]:
        """The changes of a live table or sink since begin_step: the operation, then its columns."""
        names = [n for n in self._counted if n == name or n.startswith(f"{name}$$")]
        return [change for part in names for change in self._changes(part)]

    def _changes(self, name: str) -> list[tuple[Any, ...]]:
        new = self._count(name) - self._counted[name]
        if new <= 0:
            return []
        if name.endswith("$$"):
            rows = self.session.parts.live[name]
            inserted = values(rows.rows()[0], rows.schema, self.zone)
            return [("+I", *row) for row in inserted[-new:]]
        snapshot = self._views[name][1].take(RETAINED_CHANGES, 0, None)
        return list(snapshot.rows)[len(snapshot.rows) - new :]

    def _count(self, name: str) -> int:
        if name.endswith("$$"):
            rows = self.session.parts.live[name].rows()[0]
            return 0 if rows is None else int(rows.num_rows)
        snapshot = self._views[name][1].take(1, 0, None)
        return snapshot.total + snapshot.dropped
