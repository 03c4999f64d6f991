"""The client of a server: a session whose statements run in another process. It imports nothing of Spark."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamsql.catalog import Catalog
from streamsql.config.preferences import Preferences, is_preference
from streamsql.errors import Note, Source, Span, StreamsqlError
from streamsql.language.dialects.translation import Translation
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Define, Exit, Reset, Set
from streamsql.plan.chosen_dialect import translation_of
from streamsql.query_facts import QueryFacts
from streamsql.results import ArrowRows, Copied, Leave, Live, Result, RowStream, Snapshot, Started
from streamsql.runtime.console_session import Activity, Summary
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.server.client_calls import Calls

FACTS_EVERY = 1.0
"""The seconds between two questions for the facts of the toolbar."""


class RemoteSession:
    """A session in the server of a workspace. calls: the connection; preferences: of this console."""

    def __init__(self, calls: Calls, preferences: Preferences) -> None:
        self.calls = calls
        self.preferences = preferences
        self._variables: dict[str, str] = {}
        self._folder = os.getcwd()
        self._catalog = Catalog()
        self._summary = Summary(server=calls.server.name)
        self._columns: dict[str, list[tuple[str, str]]] = {}
        self._states: dict[str, str] = {}
        self._attached = False
        self._numbers: dict[CancelToken, int] = {}
        self._closed = threading.Event()
        self._restarts_to: Callable[[str], None] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The values of `${name}`; they are this client's."""
        return self._variables

    @property
    def catalog(self) -> Catalog:
        """The definitions of the server, as they were a moment ago."""
        return self._catalog

    @property
    def translation(self) -> Translation | None:
        """From the dialect of this client into Spark's words; None if that is Spark's."""
        return translation_of(self.preferences["dialect"], self.catalog)

    @property
    def attached(self) -> bool:
        """Whether the server was there when it was last asked."""
        return self._attached

    def open(self) -> Sequence[str]:
        """Begin the session of a prompt. Returns what is to be told."""
        self._ask_for_facts()
        threading.Thread(target=self._follow_facts, daemon=True, name="facts").start()
        return self.calls.server.greeting()

    def set_folder(self, folder: str) -> None:
        """The folder of the script whose statements follow: the server has another current folder."""
        self._folder = os.path.abspath(folder)
        self._variables["here"] = self._folder

    # ---- statements -----------------------------------------------------------------------

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement in the server. Raises StreamsqlError, with its span in the statement's
        source.
        """
        cancel = cancel or CancelToken()
        cancel.check()
        if isinstance(statement, Exit):
            return Leave()  # also when the server has ended
        arguments = [statement.text, statement.origin, self._folder, self._variables]
        reads = statement.read_only and not statement.changes_workspace
        answer, number = self._call("execute", arguments, cancel, reads=reads)
        result, keeps = answer
        self._apply(statement)
        if statement.read_as:
            note = Note("READ_AS", f"read as {statement.read_as};")
            result = replace(result, notes=(note, *result.notes))
        if isinstance(result, Live):
            return remote_live(self.calls, number, result, keeps=keeps)
        if isinstance(result, ArrowRows) and result.complete:
            return result
        if isinstance(result, RowStream):
            return replace(result, rest=self._rest(number, cancel))
        if isinstance(result, Copied):
            return self._copied(result, number, cancel)
        return result

    def _copied(self, result: Copied, number: int, cancel: CancelToken) -> Copied:
        rows = result.rows
        if isinstance(rows, RowStream):
            rows = replace(rows, rest=self._rest(number, cancel))
        return replace(result, rows=rows)

    def _call(
        self, name: str, arguments: Sequence[Any], cancel: CancelToken, *, reads: bool = True
    ) -> tuple[Any, int]:
        """(the answer, the number of the call). Raises Cancelled when the server says so."""
        number = self.calls.begin(name, arguments, reads=reads)
        self._numbers[cancel] = number
        cancel.on_cancel(lambda: self.calls.tell("cancel", number), of=self)
        try:
            return self.calls.answer(number), number
        finally:
            self._numbers.pop(cancel, None)

    def _rest(self, number: int, cancel: CancelToken) -> Iterator[list[tuple[Any, ...]]]:
        """The further rows of a result, a block ahead of the reader. It has begun, so that its end ends the
        result in the server, too.
        """
        blocks = self._blocks(number, cancel)
        next(blocks)
        return blocks

    def _blocks(self, number: int, cancel: CancelToken) -> Iterator[list[tuple[Any, ...]]]:
        over = False
        try:
            yield []
            wanted = self.calls.begin("next", [number])
            while True:
                block = self.calls.answer(wanted)
                if block is None:
                    over = True
                    return
                wanted = self.calls.begin("next", [number])
                cancel.check()
                yield block.first
        finally:
            if not over:
                self.calls.tell("cancel", number)
                self.calls.tell("close", number)

    def _apply(self, statement: Statement) -> None:
        """What a statement changes in this client: its variables, and the preferences of its printer."""
        if isinstance(statement, Define) and not (
            statement.if_not_exists and statement.name.value in self._variables
        ):
            self._variables[statement.name.value] = statement.value
        if isinstance(statement, Set) and statement.key and statement.value is not None:
            self._prefer(statement.key.value, statement.value)
        if statement.changes_prompt:
            self._ask_for_facts()
        if isinstance(statement, Reset):
            keys = [statement.key.value] if statement.key else self.preferences.changed()
            for key in filter(is_preference, keys):
                self.preferences.reset(key)

    def _prefer(self, key: str, value: str) -> None:
        if is_preference(key):
            self.preferences.set(key, value)

    def query_facts(self) -> Sequence[QueryFacts]:
        """What each query is and does now, in the order of their definitions."""
        facts: list[QueryFacts] = self.calls.call("query_facts", [])
        return facts

    # ---- the queries of a script ----------------------------------------------------------

    def place(self, started: Started, source: Source, span: Span) -> None:
        """Record the statement that started queries."""
        self.calls.call("place", [started, source, span])
        if self._restarts_to is not None:
            self._follow_news(self._restarts_to, True)
            self._restarts_to = None

    def without_end(self, names: Sequence[str]) -> tuple[Note, ...]:
        """None: those that do not end by themselves are the server's, and are not awaited."""
        return ()

    def await_queries(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Wait for the queries that end by themselves. Returns a note on the others."""
        if not names:
            return ()
        notes: tuple[Note, ...] = self._call("await", [list(names)], cancel)[0]
        return notes

    def why_silent(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Why queries that have read rows have written none."""
        notes: tuple[Note, ...] = self.calls.call("silent", [list(names)]) if names else ()
        return notes

    def failures(self) -> list[StreamsqlError]:
        """The errors of failed queries that this client has started."""
        try:
            faults: list[StreamsqlError] = self.calls.call("failures", [])
        except StreamsqlError:
            return []  # the server has ended, which a statement has said, or is about to say
        return faults

    def reported(self, error: StreamsqlError) -> None:
        """The server remembers which errors it has sent."""

    # ---- what is shown beside -------------------------------------------------------------

    def activity(self, cancel: CancelToken) -> Activity:
        """What a statement is waiting for."""
        number = self._numbers.get(cancel)
        try:
            activity: Activity = self.calls.call("activity", [number]) if number is not None else Activity()
        except StreamsqlError:
            return Activity()
        return activity

    def summary(self) -> Summary:
        """The toolbar's facts, as they were a moment ago."""
        return self._summary

    def columns(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of the columns of a live table."""
        return self._columns.get(table.casefold(), [])

    def query_state(self, name: str) -> str:
        """What completion shows beside the name of a query."""
        return self._states.get(name.strip("`").casefold(), "stopped query")

    def query_fault(self, name: str) -> StreamsqlError | None:
        """None: the server knows it."""
        return None

    def _follow_facts(self) -> None:
        while not self._closed.wait(FACTS_EVERY):
            self._ask_for_facts()

    def _ask_for_facts(self) -> None:
        try:
            summary, catalog, columns, states = self.calls.call("facts", [self._attached])
        except StreamsqlError:
            self._attached = False
            self._summary = Summary(server="the server has ended")
            return
        server = f"{self.calls.server.name}, {summary.spark}"
        self._summary = replace(summary, server=server)
        self._attached = True
        if catalog is not None:
            self._catalog, self._columns, self._states = catalog, columns, states

    def on_news(self, say: Callable[[str], None], *, restarts_only: bool = False) -> None:
        """Call a function with a line about each event of the background. restarts_only: about the restarts
        of the queries that this client starts.
        """
        if restarts_only:
            self._restarts_to = say
        else:
            self._follow_news(say, False)

    def _follow_news(self, say: Callable[[str], None], restarts_only: bool) -> None:
        threading.Thread(target=self._news, args=(say, restarts_only), daemon=True, name="announcer").start()

    def _news(self, say: Callable[[str], None], restarts_only: bool) -> None:
        attached = True
        while not self._closed.is_set():
            try:
                lines = self.calls.call("news", [restarts_only])
                attached = True
            except StreamsqlError as error:
                lines = [f"{error.message}; {error.hint}"] if attached and not restarts_only else []
                attached = False
                self._closed.wait(FACTS_EVERY)
            for line in lines if not self._closed.is_set() else ():
                say(line)

    # ---- the end --------------------------------------------------------------------------

    def close(self, limit: float = 0.0, cancel: CancelToken | None = None) -> None:
        """Leave; the queries go on in the server."""
        self._closed.set()
        for token, number in list(self._numbers.items()):
            if token.cancelled:
                self.calls.tell("cancel", number)
        self.calls.close()

    def kill(self) -> None:
        self.close()


def remote_live(calls: Calls, number: int, live: Live, *, keeps: bool) -> Live:
    """A live result of a statement. keeps: whether its query can be kept."""
    view = _RemoteView(calls, number)
    return replace(
        live,
        take=lambda count, first, order: view.snapshot("take", count, first, order),
        changes=lambda count, first, order: view.snapshot("changes", count, first, order),
        freeze=lambda still: view.call("freeze", None, still),
        arrow=lambda: calls.call("live", [number, "arrow", []]),
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
        facts: QueryFacts = self.call("status", QueryFacts(status="FAILED"))
        if self._lost is not None:
            return replace(facts, status="FAILED", error=self._lost.message, hint=self._lost.hint)
        return facts

    def fault(self) -> StreamsqlError | None:
        fault: StreamsqlError | None = self.call("fault", None)
        return fault or self._lost
