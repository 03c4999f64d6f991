"""The account of a query, and the record of facts from which every view of a query is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Amount:
    """A number of rows. at_least: there may be more, since Spark has not counted each of them."""

    number: int = 0
    at_least: bool = False

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.number + other.number, self.at_least or other.at_least)

    def __bool__(self) -> bool:
        return bool(self.number)

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.number:,}"

    def of(self, what: str) -> str:
        """With the name of what is counted, in the singular: `1 late row`, `at least 5 late rows`."""
        return f"{self} {what}{'' if self.number == 1 else 's'}"

    @property
    def cell(self) -> int | str:
        """As a value of a table: a number if it is exact."""
        return str(self) if self.at_least else self.number

    @property
    def value(self) -> int | str | None:
        """The same, but None for none."""
        return self.cell if self.number else None


NONE = Amount()


def lost_rows(late: Amount, malformed: Amount) -> list[str]:
    """The rows that were dropped, in words: a text for each kind of which there are any."""
    kinds = ((late, late.of("late row")), (malformed, f"{malformed} malformed"))
    return [text for amount, text in kinds if amount]


@dataclass(frozen=True)
class Account:
    """What became of the rows that a query has read.

    read: the rows read; out: those given to the sinks, None where these do not report it; late: those dropped
    as late; malformed: those that could not be read; streams: the rows read of each source, by Spark's
    description of it. Of the newest micro-batch: state: the rows in the state of each operator, by Spark's
    name of it; watermark: as Spark reports it.
    """

    read: Amount = NONE
    out: Amount | None = None
    late: Amount = NONE
    malformed: Amount = NONE
    streams: tuple[tuple[str, int], ...] = ()
    state: tuple[tuple[str, int], ...] = ()
    watermark: str = ""

    @property
    def held(self) -> int:
        """The rows of the state."""
        return sum(rows for _, rows in self.state)

    @property
    def closes(self) -> bool:
        """Whether no row was dropped as late or as malformed."""
        return not self.late and not self.malformed

    def then(self, later: Account) -> Account:
        """This account and a later one of the same query as one."""
        streams = dict(self.streams)
        for name, rows in later.streams:
            streams[name] = streams.get(name, 0) + rows
        out = later.out if self.out is None else self.out if later.out is None else self.out + later.out
        return Account(
            self.read + later.read,
            out,
            self.late + later.late,
            self.malformed + later.malformed,
            tuple(streams.items()),
            later.state if later.streams else self.state,
            later.watermark or self.watermark,
        )

    def line(self) -> str:
        """The account in one line, what was lost first: `1 malformed, 8 rows in, 3 rows out`."""
        texts = [*lost_rows(self.late, self.malformed), f"{self.read.of('row')} in"]
        texts += [] if self.out is None else [f"{self.out.of('row')} out"]
        return ", ".join([*texts, *([Amount(self.held).of("state row")] if self.held else [])])

    def uncertain(self) -> Account:
        """The same where reports were lost: a console that was killed had not saved them."""
        some = {name: replace(getattr(self, name), at_least=True) for name in ("read", "late", "malformed")}
        return replace(self, **some, out=self.out and replace(self.out, at_least=True))

    # ---- as JSON --------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """The account as a JSON value."""
        amounts = {name: getattr(self, name) for name in _AMOUNTS}
        numbers = {n: [a.number, a.at_least] for n, a in amounts.items() if a is not None}
        more = {"streams": self.streams, "state": self.state, "watermark": self.watermark}
        return numbers | more

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> Account:
        """The account that `saved` gave. Raises KeyError, TypeError or ValueError for another value."""
        amounts: dict[str, Any] = {
            n: Amount(int(saved[n][0]), bool(saved[n][1])) for n in _AMOUNTS if n in saved
        }
        pairs: dict[str, Any] = {
            n: tuple((str(k), int(v)) for k, v in saved[n]) for n in ("streams", "state")
        }
        return replace(cls(), **amounts, **pairs, watermark=str(saved["watermark"]))


_AMOUNTS = ("read", "out", "late", "malformed")


@dataclass(frozen=True)
class Failure:
    """One failure of a query. at: when; batch: its micro-batch then, -1 when that is not known."""

    at: str
    batch: int
    message: str


@dataclass(frozen=True)
class QueryFacts:
    """What a query is and does now. status: running, stopping, restarting, finished, stopped, FAILED;
    account: since its checkpoint began; run: since this start; batch: the newest micro-batch, -1 before the
    first; watermark: in the session time zone; reading: the micro-batch under way before the first one has
    ended, "" if none is; error, hint: its failure; staged: of a staged change of its live table, the
    percent of the rows that it has read, None without one and where that is not known.
    """

    query: str = ""
    status: str = "running"
    account: Account = Account()
    run: Account = Account()
    batch: int = -1
    rows_per_second: float = 0.0
    watermark: str = ""
    reading: str = ""
    error: str = ""
    hint: str = ""
    staged: int | None = None

    @property
    def over(self) -> bool:
        """Whether the result stays as it is."""
        return self.status not in ("running", "stopping", "restarting")
