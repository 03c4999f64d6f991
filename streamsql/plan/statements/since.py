"""FROM TIMESTAMP of a live table: the moment at which its streams begin."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamsql.connectors.registry import connector
from streamsql.errors import RuleFault, SyntaxFault
from streamsql.language.statements.base import Name
from streamsql.language.statements.live_table import CreateLiveTable
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context
from streamsql.plan.plans import Refresh, Run

_ANY = datetime(2000, 1, 1, tzinfo=UTC)
"""A source takes every moment or none."""


def since_of(statement: CreateLiveTable, context: Context) -> str:
    """The moment, as in Query; "" without the clause. Raises SyntaxFault, RuleFault."""
    written = statement.since
    if written is None:
        return ""
    if statement.begins or statement.backfill:
        other = "BACKFILL" if statement.backfill else f"FROM {statement.begins.upper()}"
        raise RuleFault(
            f"FROM TIMESTAMP and {other} exclude each other",
            hint="leave one of them out",
            span=written.span,
            code="CLAUSE_CONFLICT",
        )
    return _moment(written, context.zone).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(written: Name, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(written.value.strip())
        return moment if moment.tzinfo or not zone else moment.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError):
        raise SyntaxFault(
            f"'{written}' is not a timestamp",
            hint="FROM TIMESTAMP '2024-05-01 12:00:00', in the time zone of the session, or with +02:00",
            span=written.span,
            code="BAD_TIMESTAMP",
        ) from None


def check_begins(run: Run, statement: CreateLiveTable) -> None:
    """Raise RuleFault for a query of FROM TIMESTAMP with a stream that cannot begin at a moment."""
    if statement.since is None:
        return
    runs = run.stages if isinstance(run, Refresh) else (run,)
    if not runs:
        raise RuleFault(
            "FROM TIMESTAMP needs a stream, and this query reads live tables only",
            hint="leave it out: the rows are those of the live tables",
            span=statement.since.span,
            code="CLAUSE_NOT_SUPPORTED",
        )
    for stream in dict.fromkeys(s for of in runs for s in of.reads.streams if s.connector):
        why = connector(Name(stream.connector)).beginning_at(stream, _ANY)
        if isinstance(why, str):
            raise RuleFault(
                f"the stream {stream.name} cannot begin at a moment",
                detail=why,
                hint=f"FROM NOW or FROM BEGINNING; or WHERE over a column of {quote_name(stream.name)}",
                span=statement.since.span,
                code="CLAUSE_NOT_SUPPORTED",
            )
