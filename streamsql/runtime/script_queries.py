"""The queries that a script has started: their places in it, their ends, and why they write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from streamsql.errors import Note, Source, Span, StreamsqlError
from streamsql.guard import informing
from streamsql.results import Started
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.explanations import explanations
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import GOING_ON


class ScriptQueries:
    """The part of a session that scripts use, which a client of a server has, too."""

    parts: SessionParts

    def place(self, started: Started, source: Source, span: Span) -> None:
        """Record the statement that started queries, for the errors that they may end with."""
        for name in started.queries:
            running = self.parts.queries.all.get(name.casefold())
            if running:
                running.source, running.span = source, span

    def await_queries(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Wait until queries have ended, one has failed, or the wait is cancelled. Those over live tables
        never end: the wait ends with the queries that feed these.
        """
        queries, done = self.parts.queries, set[str]()
        while not cancel.cancelled:
            pending = [n for n in names if n in queries.all and n not in done]
            active = [n for n in pending if queries.all[n].status() in GOING_ON]
            if not active or any(q.status() == "FAILED" for q in queries.all.values()):
                break
            try:
                queries.wait(active[:1], cancel, idle=False, timeout=0.5)
                done.update(active[:1])
            except StreamsqlError:
                pass  # still running, or failed: the next round and the caller see it
        return ()

    def without_end(self, names: Sequence[str]) -> tuple[Note, ...]:
        """A note on the queries of a script that it waits for and that do not end with their input."""
        return informing(lambda: self._endless(names), ())

    def _endless(self, names: Sequence[str]) -> tuple[Note, ...]:
        parts = self.parts
        queries = parts.catalog.queries
        names = [n for n in dict.fromkeys(names) if n in parts.queries.all and n in queries]
        endless = [
            query.name
            for n, query in ((n, queries[n]) for n in names)
            if parts.queries.all[n].status() in GOING_ON
            and not query.inputs
            and not (query.trigger and query.trigger.ends)
        ]
        if not endless:
            return ()
        runs = "runs until it is" if len(endless) == 1 else "run until they are"
        text = f"{', '.join(endless)} {runs} stopped; TRIGGER AVAILABLE NOW ends a query with its input"
        return (Note("RUNS_ON", text),)

    def why_silent(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Of each query that has lost rows, its account; of one with a durable sink that has written nothing,
        though it read rows, why that is so.
        """
        return informing(lambda: self._explained(names, cancel), ())

    def _explained(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        parts, notes = self.parts.under(cancel), list[Note]()
        for name in dict.fromkeys(names):
            running = parts.queries.all.get(name)
            if running is None or cancel.cancelled or not parts.engine.started:
                continue
            with suppress(StreamsqlError):
                notes += explanations().at_end_of_script(parts, running)
        return tuple(notes)

    def failures(self) -> list[StreamsqlError]:
        """The errors of failed queries that were not reported before."""
        runs = self.parts.queries.all.values()
        failed = [q for q in runs if q.status() == "FAILED" and q.fault and not q.reported]
        for running in failed:
            running.reported = True
        return [running.fault for running in failed if running.fault]

    def reported(self, error: StreamsqlError) -> None:
        """An error was shown: the query that failed with it is not reported again."""
        for running in self.parts.queries.all.values():
            running.reported = running.reported or running.fault is error
