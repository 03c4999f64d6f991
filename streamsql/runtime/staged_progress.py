"""How far a staged change is: the rows that it has read, of those that the live table has read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from streamsql.definitions import is_before, is_staged, promoted_name, staged_name
from streamsql.query_facts import NONE, Amount
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.queries.run import Running


@dataclass(frozen=True)
class Progress:
    """read: the rows that the change has read; of: those that the live table has read, None where the change
    does not read the same streams, or may not have begun with their first rows: FROM NOW, FROM TIMESTAMP, and
    after a restart, when that is not known any more; seconds: for how long it has run, None if it does not.
    """

    read: Amount
    of: Amount | None
    seconds: float | None

    @property
    def percent(self) -> int | None:
        """None where it is not known."""
        if not self.of or self.read.at_least:
            return None
        return min(100, self.read.number * 100 // self.of.number)

    @property
    def left(self) -> float | None:
        """The seconds until it has read as much, at its pace so far; None where it is not known."""
        if self.percent is None or self.of is None or not self.read or self.seconds is None:
            return None
        return self.seconds * max(0, self.of.number - self.read.number) / self.read.number


def staged_progress(parts: SessionParts, name: str) -> Progress:
    """The progress of a staged change, from the reports of its queries. Does not call Spark."""
    change, table = reading(parts, name), reading(parts, promoted_name(name))
    run = parts.queries.all.get(name.casefold())
    all_rows = run is not None and run.plan.begins == "beginning" and not run.plan.query.since
    same = all_rows and bool(_streams(change)) and _streams(change) == _streams(table)
    seconds = (datetime.now() - run.started).total_seconds() if run and not run.ended else None
    return Progress(_read(change), _read(table) if same else None, seconds)


def percent_staged(parts: SessionParts, table: str) -> int | None:
    """The percent of the rows that the staged change of a live table has read. table: its name, or that of
    the change. None without a change, and where that is not known.
    """
    name = table if is_staged(table) else staged_name(table)
    return staged_progress(parts, name).percent if name.casefold() in parts.queries.all else None


def newest_progress(parts: SessionParts) -> tuple[str, int] | None:
    """(live table, percent) of a running staged change that has not read all rows yet; None without one."""
    for key in parts.catalog.queries:
        run = parts.queries.all.get(key)
        if (
            is_staged(key)
            and not is_before(key)
            and run is not None
            and not run.over
            and not run.plan.query.owner
        ):
            percent = staged_progress(parts, run.name).percent
            if percent is not None and percent < 100:
                return promoted_name(run.name), percent
    return None


def reading(parts: SessionParts, name: str) -> list[Running]:
    """The runs that read the streams of a query: those of its stages, or its own."""
    names = [stage.name for stage in parts.catalog.stages_of(name)] or [name]
    return [run for n in names if (run := parts.queries.all.get(n.casefold())) is not None]


def _read(runs: list[Running]) -> Amount:
    return sum((run.reports.account.read for run in runs), NONE)


def _streams(runs: list[Running]) -> list[str]:
    """The streams that the runs read; one that is read twice is there twice."""
    return sorted(stream.name for run in runs for stream in run.plan.reads.streams)
