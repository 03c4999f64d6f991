"""Probes: bounded batch queries over the data that a query's sources hold now.

A probe runs beside the query and never touches it. It ends after a few seconds, or with Ctrl-C; then the
evidence is missing, and the verdict says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from streamsql.calls import Assign, run
from streamsql.definitions import Stream
from streamsql.language.statements.base import Fragment
from streamsql.plan.context import lower_fragment, reads_of
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import activate
from streamsql.runtime.parts import SessionParts

Value = TypeVar("Value")
PATIENCE = 5.0
"""Seconds that one probe may take."""
SAMPLE = 100_000
"""Rows of each source that a probe reads, where it need not read all."""


class Probes:
    """late: a probe has not answered in time; unreadable: the connectors whose rows cannot be read again."""

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self.late = False
        self.unreadable: set[str] = set()

    def rows(self, text: str, sample: bool = False, **streams: Stream) -> list[Any] | None:
        """The rows of a query over the data of its streams as of now; None when that cannot be had.

        sample: of at most SAMPLE rows of each source. streams: read in place of those of the catalog.
        Raises Cancelled.
        """
        return self.collected(lambda: self._frame(text, sample, streams))

    def row(self, text: str, sample: bool = False, **streams: Stream) -> Any:
        """The one row of a query; None when that cannot be had."""
        rows = self.rows(text, sample, **streams)
        return rows[0] if rows else None

    def collected(self, frame_of: Callable[[], Any]) -> list[Any] | None:
        """The rows of the static DataFrame that a function gives; None where it gives none, or fails. Raises
        Cancelled.
        """
        frame = self.tried(frame_of)
        return None if frame is None else self.collect(frame)

    def tried(self, of: Callable[[], Value]) -> Value | None:
        """The value of a function; None where it fails: what is wrong, the query itself tells. Raises
        Cancelled.
        """
        try:
            return of()
        except Exception:
            self.parts.cancel.check()
            return None

    def collect(self, frame: Any) -> list[Any] | None:
        """The rows of a static DataFrame, in time. Raises Cancelled."""
        parts, token = self.parts, CancelToken()
        parts.engine.run_jobs_of(token, parts.spark)
        timer = threading.Timer(PATIENCE, token.cancel)
        timer.daemon = True
        timer.start()
        try:
            with parts.cancel.calling(token.cancel):
                return list(frame.collect())
        except Exception:
            parts.cancel.check()
            self.late = self.late or token.cancelled
            return None
        finally:
            timer.cancel()
            parts.engine.run_jobs_of(parts.cancel, parts.spark)

    def _frame(self, text: str, sample: bool, streams: dict[str, Stream]) -> Any:
        """A query over its streams at rest; None where one of them is only read as rows come."""
        parts = self.parts
        context = parts.context()
        context = replace(context, catalog=context.catalog.having(*streams.values()))
        sources = context.sources(counts=False)
        lowered = lower_fragment(Fragment(text), sources)
        if lowered.as_text:
            return None
        at_rest = sources.program_at_rest(SAMPLE if sample else None)
        if isinstance(at_rest, Stream):
            self.unreadable.add(at_rest.connector)
            return None
        program = (*at_rest, Assign("result", lowered.node))
        activate(parts.spark)
        return run(program, parts.env(program, reads_of(sources)))
