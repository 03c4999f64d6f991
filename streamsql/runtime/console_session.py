"""What prompt, scripts and printers use of a session. The local one has it, and the client of a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamsql.catalog import Catalog
from streamsql.errors import Note, Source, Span, StreamsqlError
from streamsql.language.dialects.translation import Translation
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name
from streamsql.query_facts import NONE, Amount, QueryFacts
from streamsql.results import Result, Started
from streamsql.runtime.engine.cancel import CancelToken, JobProgress


@dataclass(frozen=True)
class Activity:
    """What a statement waits for. started: whether Spark has started; doing: the current work of the console
    itself; jobs: None while no job runs.
    """

    started: bool = True
    doing: str = ""
    jobs: JobProgress | None = None


@dataclass(frozen=True)
class Summary:
    """What the toolbar shows. spark: the state of Spark; rate: the rows per second read by all queries;
    silent: a query that has had input and no output, and for how many seconds; stale: a live table that is
    behind its inputs, and for how many seconds; late, malformed: the rows that all queries have dropped;
    server: the server that runs the queries, "" if this process does; staged: a staged change that has not
    read all rows yet, and how many of them in percent; change: the set of changes that is open, "" for none.
    """

    spark: str = "starting…"
    running: int = 0
    failed: int = 0
    rate: float = 0.0
    silent: tuple[str, float] | None = None
    stale: tuple[str, float] | None = None
    server: str = ""
    late: Amount = NONE
    malformed: Amount = NONE
    staged: tuple[str, int] | None = None
    change: str = ""


def left_open(summary: Summary) -> tuple[Note, ...]:
    """A note about a set of changes that is open when a script or a prompt ends."""
    if not summary.change:
        return ()
    name = quote_name(summary.change)
    ways = f"BEGIN CHANGE {name}; goes on with it, DROP CHANGE {name}; removes it"
    return (
        Note("CHANGE_LEFT_OPEN", f"change {summary.change} has no END CHANGE: what is staged stays; {ways}"),
    )


class ConsoleSession(Protocol):
    """A session as a console uses it. All methods may be called on any thread; summary, catalog, columns and
    query_state return at once.
    """

    @property
    def variables(self) -> dict[str, str]:
        """The values of `${name}`."""

    @property
    def catalog(self) -> Catalog:
        """The newest definitions."""

    @property
    def translation(self) -> Translation | None:
        """From the dialect of SET streamsql.dialect into Spark's words; None if that is Spark's."""

    def open(self) -> Sequence[str]:
        """Begin the session of a prompt. Returns what is to be told, a line each."""

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement. Raises StreamsqlError with its span in the statement's source."""

    def set_folder(self, folder: str) -> None:
        """The folder of the script whose statements follow: `${here}`."""

    def query_facts(self) -> Sequence[QueryFacts]:
        """What each query is and does now, in the order of their definitions."""

    # ---- the queries of a script

    def place(self, started: Started, source: Source, span: Span) -> None:
        """Record the statement that started queries, for the errors that they may end with."""

    def without_end(self, names: Sequence[str]) -> tuple[Note, ...]:
        """A note on queries of a script that will be awaited and do not end with their input."""

    def await_queries(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Wait until the queries of a script with a durable sink have ended, or one has failed. Returns notes
        on those that go on.
        """

    def why_silent(self, names: Sequence[str], cancel: CancelToken) -> tuple[Note, ...]:
        """Why queries that have read rows have written none."""

    def failures(self) -> list[StreamsqlError]:
        """The errors of failed queries that were not reported before."""

    def reported(self, error: StreamsqlError) -> None:
        """An error was shown: the query that failed with it is not reported again."""

    # ---- what is shown beside

    def activity(self, cancel: CancelToken) -> Activity:
        """What a statement is waiting for. May wait for Spark."""

    def summary(self) -> Summary:
        """The toolbar's facts."""

    def columns(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of the columns of a live table, as far as they are known."""

    def query_state(self, name: str) -> str:
        """What completion shows beside the name of a query."""

    def query_fault(self, name: str) -> StreamsqlError | None:
        """The error that a query has failed with, as far as this process knows it."""

    def on_news(self, say: Callable[[str], None], *, restarts_only: bool = False) -> None:
        """Call a function, on a thread of its own, with a line about each event of the background.
        restarts_only: not about failures, which a script reports at its end.
        """

    # ---- the end

    def close(self, limit: float = 0.0, cancel: CancelToken | None = None) -> None:
        """End the session. limit: the seconds that micro-batches have to complete; cancel: aborts them."""

    def kill(self) -> None:
        """End at once what `close` could not end."""
