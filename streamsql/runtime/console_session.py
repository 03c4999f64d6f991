"""The session of a console: its own or one in a server; and the records that both give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streamsql.errors import Note
from streamsql.language.tokens import quote_name
from streamsql.query_facts import NONE, Amount
from streamsql.runtime.engine.cancel import JobProgress

if TYPE_CHECKING:
    from streamsql.runtime.session import StatementSession
    from streamsql.server.client import RemoteSession

ConsoleSession: TypeAlias = "StatementSession | RemoteSession"
"""What prompt, scripts and printers use. Both have the same methods, which may be called on any thread;
summary, catalog, columns and query_state return at once.
"""


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
