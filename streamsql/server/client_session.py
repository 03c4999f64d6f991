"""The session of one client of a server: its own settings, variables and preferences; all else is shared."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamsql.config.preferences import Preferences
from streamsql.errors import Note, RuleFault, Source, Span, StreamsqlError
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Reset, Set
from streamsql.results import Live, Result, Started
from streamsql.runtime import script_queries
from streamsql.runtime.background_news import BackgroundNews
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.session import Session, StatementSession

ENDS_BY_ITSELF = ("available_now", "once")
_DEFINING = threading.Lock()
"""Held by a statement that only defines a name: two clients do not define the same one at a time."""
_SETTING = threading.RLock()
"""Held while Spark has the settings of one client."""


class ClientSession(StatementSession):
    """The session of a client. interactive, read_only, preferences: those of the client."""

    def __init__(
        self, session: Session, *, interactive: bool, read_only: bool, preferences: Preferences
    ) -> None:
        base = session.parts
        self._base: Settings = base.settings
        own = replace(base.settings, changed=dict(base.settings.changed))
        parts = replace(
            base,
            config=replace(base.config, interactive=interactive, preferences=preferences),
            settings=own,
            variables={},
            stages=lambda: preferences["stages"] == "on",
            times=lambda: preferences["event_times"] == "on",
        )
        super().__init__(parts)
        self.read_only = read_only
        self._placed: list[str] = []
        self._told = set[int]()

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement with the settings of this client. Raises StreamsqlError."""
        if self.read_only and not statement.read_only:
            raise RuleFault(
                "this client only reads",
                detail="it was started with --read-only",
                hint="run the statement in a client without --read-only",
                code="READ_ONLY",
            )
        parts = self.parts.under(cancel or CancelToken())
        with _turn(statement, parts.cancel), self._settings_for(statement, parts) as parts:
            result = self.execute_with(statement, parts)
        if self.read_only and isinstance(result, Live):
            return replace(result, keep=None)
        return result

    def ending(self) -> bool:
        """Whether the server takes no more statements."""
        host = self.parts.hosting.host
        return host is not None and host.ending

    # ---- settings -------------------------------------------------------------------------

    def _own_settings(self) -> dict[str, str | None]:
        """The settings in which this client differs from the server; None for one that it has reset."""
        mine, base = self.parts.settings.changed, self._base.changed
        before = self._base.start_conf()
        own: dict[str, str | None] = {k: v for k, v in mine.items() if base.get(k) != v}
        later = {k: v for k, v in before.items() if k not in base}
        return own | {k: later.get(k) for k in base if k not in mine}

    @contextlib.contextmanager
    def _settings_for(self, statement: Statement, parts: SessionParts) -> Iterator[SessionParts]:
        """The parts of a statement, so that Spark has the client's settings: for one that reads in a session
        of its own, for one that defines or starts something in the shared one, until it has started.
        """
        own = self._own_settings()
        if isinstance(statement, (Set, Reset)):
            yield replace(parts, variant=_variant(own))
        elif not own:
            yield parts
        elif statement.changes_workspace or not statement.read_only:
            spark = parts.spark if statement.needs_spark or parts.engine.started else None
            with _SETTING if spark is not None else contextlib.nullcontext(), _set_in(spark, own):
                yield parts
        else:
            yield replace(parts, variant=_variant(own))

    # ---- the queries of a script ----------------------------------------------------------

    def place(self, started: Started, source: Source, span: Span) -> None:
        """Record the statement that started queries."""
        super().place(started, source, span)
        self._placed += [name.casefold() for name in started.queries]

    def await_queries(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Wait for the queries that end by themselves; the others are the server's."""
        queries = self.parts.catalog.queries
        kinds = {n: queries[n].trigger for n in names if n in queries}
        ending = [n for n, trigger in kinds.items() if trigger and trigger.kind in ENDS_BY_ITSELF]
        script_queries.await_queries(self.parts.under(cancel), ending)
        stay = [queries[n].name for n in kinds if n not in ending]
        text = f"{', '.join(stay)} {'goes' if len(stay) == 1 else 'go'} on in the server"
        return (Note("GOES_ON", text),) if stay else ()

    def failures(self) -> list[StreamsqlError]:
        """The errors of the queries that this client has started, each once."""
        runs = [self.parts.queries.all.get(name) for name in dict.fromkeys(self._placed)]
        faults = [q.fault for q in runs if q and q.status() == "FAILED" and q.fault]
        new = [fault for fault in faults if id(fault) not in self._told]
        self._told |= {id(fault) for fault in new}
        return new

    def news(self, say: Callable[[str], None]) -> BackgroundNews:
        """Lines about background events, until it is closed."""
        return BackgroundNews(self.parts, say, shared=True)


@contextlib.contextmanager
def _turn(statement: Statement, cancel: CancelToken) -> Iterator[None]:
    """Let statements that only define a name run one after the other."""
    if not statement.defines or statement.needs_spark:
        yield
        return
    while not _DEFINING.acquire(timeout=0.1):
        cancel.check()
    try:
        yield
    finally:
        _DEFINING.release()


def _variant(own: Mapping[str, str | None]) -> Callable[[Any], Any]:
    """A function that gives the SparkSession with settings, one for a statement."""
    sessions: list[Any] = []

    def variant(spark: Any) -> Any:
        if not sessions:
            sessions.append(own_session(spark))
            _apply(sessions[0], own)
        return sessions[0]

    return variant


@contextlib.contextmanager
def _set_in(spark: Any, own: Mapping[str, str | None]) -> Iterator[None]:
    """Settings in the shared session for a while. spark: None when it has not started."""
    if spark is None:
        yield
        return
    before = {key: spark.conf.get(key, None) for key in own}
    _apply(spark, own)
    try:
        yield
    finally:
        _apply(spark, before)


def _apply(spark: Any, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
