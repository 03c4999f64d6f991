"""Live results of a server: each frame is asked for, at the pace of the reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.errors import StreamsqlError
from streamsql.query_facts import QueryFacts
from streamsql.results import Live, Snapshot
from streamsql.server.calls import Calls
from streamsql.server.encoding import decode_error


def remote_live(calls: Calls, number: int, live: Live, *, keeps: bool) -> Live:
    """A live result of a statement. keeps: whether its query can be kept."""
    view = _RemoteView(calls, number)
    return replace(
        live,
        take=lambda count, first, order: view.snapshot("take", count, first, order),
        changes=lambda count, first, order: view.snapshot("changes", count, first, order),
        freeze=lambda still: view.call("freeze", None, still),
        status=view.status,
        close=lambda: view.call("close", None),
        fault=view.fault,
        said=lambda: view.call("said", ""),
        keep=(lambda: view.call("keep", "")) if keeps else None,
        why=lambda: view.call("why", ()),
        proposal=lambda: view.call("proposal", ""),
    )


class _RemoteView:
    """Calls the functions of a live result. Once the server has ended, the last rows stay as they are."""

    def __init__(self, calls: Calls, number: int) -> None:
        self.calls = calls
        self.number = number
        self._lost: StreamsqlError | None = None
        self._last: dict[str, Snapshot] = {}

    def call(self, name: str, otherwise: Any, *arguments: Any) -> Any:
        if self._lost is not None:
            return otherwise
        try:
            return self.calls.call("live", [self.number, name, list(arguments)])
        except StreamsqlError as error:
            if name not in ("close", "said"):
                self._lost = error
            return otherwise

    def snapshot(self, name: str, count: int, first: int | None, order: tuple[str, bool] | None) -> Snapshot:
        last = self._last.get(name, Snapshot())
        self._last[name] = self.call(name, last, count, first, order)
        return self._last[name]

    def status(self) -> QueryFacts:
        known: QueryFacts = self.call("status", QueryFacts(status="FAILED"))
        if self._lost is not None:
            return replace(known, status="FAILED", error=self._lost.message, hint=self._lost.hint)
        return known

    def fault(self) -> StreamsqlError | None:
        known = self.call("fault", None)
        return decode_error(known) if known is not None else self._lost
