"""The session of one client of a server: its own settings, variables and preferences; all else is shared."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamsql.config.preferences import Preferences
from streamsql.errors import Note, RuleFault, Source, Span, StreamsqlError
from streamsql.language.spark_definitions import Definition, changes_session, definition_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Reset, Set
from streamsql.language.statements.spark import Spark
from streamsql.results import Live, Result, Started
from streamsql.runtime.background_news import BackgroundNews
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.settings import Settings, apply_setting, rules_setting
from streamsql.runtime.engine.spark_commands import changing_commands
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.program_parts import Newest
from streamsql.runtime.session import StatementSession
from streamsql.secrets import redact_option

_DEFINING = threading.Lock()
"""Held by a statement that only defines a name: two clients do not define the same one at a time."""


class ClientSession(StatementSession):
    """The session of a client. base: of the session that it shares; interactive, read_only, preferences:
    those of the client; arrow: it takes rows as record batches.
    """

    def __init__(
        self,
        base: SessionParts,
        *,
        interactive: bool,
        read_only: bool,
        preferences: Preferences,
        arrow: bool = False,
    ) -> None:
        self._base: Settings = base.settings
        own = replace(base.settings, changed=base.settings.changed | rules_setting(preferences))
        parts = replace(
            base,
            config=replace(base.config, interactive=interactive, preferences=preferences, arrow=arrow),
            settings=own,
            variables={},
            newest=Newest(),
            open_change=[],
        )
        super().__init__(parts)
        self.read_only = read_only
        self._placed: list[str] = []
        self._reported = set[int]()

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement with the settings of this client. Raises StreamsqlError."""
        if self.read_only and not self.only_reads(statement):
            raise self.refused()
        parts = self.parts.under(cancel or CancelToken())
        with _turn(statement, parts.cancel), self._settings_for(statement, parts) as parts:
            result = self.execute_with(statement, parts)
        if isinstance(result, Started) and parts.has_own_settings:
            result = replace(result, notes=(*result.notes, *self._kept_by(result)))
        if self.read_only and isinstance(result, Live):
            return replace(result, keep=None)
        return result

    def only_reads(self, statement: Statement) -> bool:
        """Whether a statement changes nothing that others see. May wait for Spark."""
        if isinstance(statement, Spark):
            return not changing_commands(self.parts.spark, statement.text)
        return statement.read_only

    def refused(self) -> RuleFault:
        """The error for a statement that changes something."""
        return RuleFault(
            "this client only reads",
            detail="it was started with --read-only",
            hint="run the statement in a client without --read-only",
            code="READ_ONLY",
        )

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

    def _kept_by(self, started: Started) -> Iterator[Note]:
        """A note about the settings of this client that its queries have."""
        mine, catalog = self._own_settings(), self.parts.catalog
        own = [f"{key} = {redact_option(key, value)}" for key, value in mine.items() if value is not None]
        own = sorted(setting for setting in own if setting.startswith("spark.sql."))
        names = [name for name in started.queries if name.casefold() in catalog.queries]
        if own and names:
            run, them = ("runs", "it") if len(names) == 1 else ("run", "them")
            text = f"{', '.join(names)} {run} with {', '.join(own)} of this client"
            yield Note(
                "CLIENT_SETTINGS", f"{text}; a restart of the server starts {them} with its own settings"
            )

    @contextlib.contextmanager
    def _settings_for(self, statement: Statement, parts: SessionParts) -> Iterator[SessionParts]:
        """The parts of a statement, with a Spark session that has the client's settings: a copy of the shared
        one, so that no other client sees them. A query that is started in it keeps them.
        """
        own = self._own_settings()
        shared = isinstance(statement, Spark) and changes_session(statement.text)
        if (shared or not own) and not isinstance(statement, (Set, Reset)):
            yield parts
            return
        sessions = _Sessions(own)
        try:
            yield replace(parts, variant=sessions.of)
            if isinstance(statement, Spark):
                sessions.share_view(parts, definition_of(statement.text))
        finally:
            sessions.over()

    # ---- the queries of a script ----------------------------------------------------------

    def place(self, started: Started, source: Source, span: Span) -> None:
        """Record the statement that started queries."""
        super().place(started, source, span)
        self._placed += [name.casefold() for name in started.queries]

    def await_queries(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Wait for the queries that end by themselves; the others are the server's."""
        queries = self.parts.catalog.queries
        kinds = {n: queries[n].trigger for n in names if n in queries}
        ending = [n for n, trigger in kinds.items() if trigger and trigger.ends]
        super().await_queries(ending, cancel)
        stay = [queries[n].name for n in kinds if n not in ending]
        text = f"{', '.join(stay)} {'goes' if len(stay) == 1 else 'go'} on in the server"
        return (Note("GOES_ON", text),) if stay else ()

    def failures(self) -> list[StreamsqlError]:
        """The errors of the queries that this client has started, each once."""
        runs = [self.parts.queries.all.get(name) for name in dict.fromkeys(self._placed)]
        faults = [q.fault for q in runs if q and q.status() == "FAILED" and q.fault]
        new = [fault for fault in faults if id(fault) not in self._reported]
        self._reported |= {id(fault) for fault in new}
        return new

    def news(self, say: Callable[[str], None], *, restarts_only: bool) -> BackgroundNews:
        """Lines about background events, until it is closed. restarts_only: of the queries of this client."""
        if restarts_only:
            of = lambda running: running.name.casefold() in self._placed  # noqa: E731
            return BackgroundNews(self.parts, say, restarts_only=True, of=of)
        return BackgroundNews(self.parts, say, shared=True)


@contextlib.contextmanager
def _turn(statement: Statement, cancel: CancelToken) -> Iterator[None]:
    """Let statements that only define a name run one after the other."""
    if not statement.defines or statement.needs_spark:
        yield
        return
    with cancel.holding(_DEFINING):
        yield


class _Sessions:
    """The Spark sessions with settings of a client's own: one for a statement, then one for each use, as a
    refresh is to see the views as they are now.
    """

    def __init__(self, own: Mapping[str, str | None]) -> None:
        self._own = own
        self._session: Any = None
        self._over = False

    def of(self, spark: Any) -> Any:
        """The session that is derived from the shared one."""
        if self._session is not None:
            return self._session
        session = own_session(spark)
        for key, value in self._own.items():
            apply_setting(session, key, value)
        if not self._over:
            self._session = session
        return session

    def over(self) -> None:
        """The statement has ended."""
        self._over, self._session = True, None

    def share_view(self, parts: SessionParts, definition: Definition) -> None:
        """Give the shared session the temporary view that the statement has created."""
        if definition.temporary and "." not in definition.written:
            name = definition.creates
            own_views = self._session._jsparkSession.sessionState().catalog()
            shared = parts.spark._jsparkSession.sessionState().catalog()
            shared.createTempView(name, own_views.getRawTempView(name).get(), True)
