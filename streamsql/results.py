"""What executing a statement gives. The runtime makes these; only output/ and shell/ print them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamsql.errors import Note, Span, StreamsqlError
from streamsql.query_facts import QueryFacts


def counted(number: int, what: str) -> str:
    """A number of things: 1 row, 5,000 rows, 2 batches."""
    plural = "queries" if what == "query" else what + ("es" if what.endswith(("ch", "x")) else "s")
    return f"{number:,} {what if number == 1 else plural}"


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns or fields, those that come again with a number after them: n, n_2, n_3."""
    given = tuple(names)
    if len(set(given)) == len(given):
        return given
    unique: list[str] = []
    for at, name in enumerate(given):
        number, new = given[:at].count(name) + 1, name
        while new in unique or (new != name and new in given):
            new, number = f"{name}_{max(number, 2)}", number + 1
        unique.append(new)
    return tuple(unique)


@dataclass(frozen=True)
class Result:
    """Base. notes: what is to be known beside the result, a line each (they go to stderr)."""

    notes: tuple[Note, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it is a table that has no rows, as far as is known before they are read."""
        return False


@dataclass(frozen=True)
class Done(Result):
    """Nothing but a word: what was done."""

    message: str = ""


@dataclass(frozen=True)
class Text(Result):
    """Text that is the answer, such as a program or a help page. prose: long lines are broken between words,
    and lines with four blanks before them and a tab in them are a table of two columns. outline: a plan,
    whose long lines are broken, too.
    """

    text: str = ""
    prose: bool = False
    outline: bool = False


@dataclass(frozen=True)
class Rows(Result):
    """A table. numeric: whether each column is aligned to the right; seconds: how long it took."""

    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[Any, ...]] = field(default_factory=tuple)
    numeric: tuple[bool, ...] = ()
    seconds: float | None = None

    @property
    def empty(self) -> bool:
        return not self.rows

    def whole(self) -> Rows:
        """All rows in memory."""
        return self


@dataclass(frozen=True)
class InfoRows(Rows):
    """A table about the console itself, which a window shows without what says nothing. All else is for a
    window, too. nothing: what it says instead of a table without rows; sections: the number of a first row
    and the title of it and the rows after it; matters: names of columns, the most important first; same:
    pairs of columns of which the first is left out where both are equal. Rows stand one under another where
    one of the `needed` columns that matter most has no room, or any column with in_full.
    """

    nothing: str = ""
    sections: tuple[tuple[int, str], ...] = ()
    matters: tuple[str, ...] = ()
    same: tuple[tuple[str, str], ...] = ()
    in_full: bool = False
    needed: int = 2


@dataclass(frozen=True)
class Compared(Rows):
    """The result of COMPARE. differing: how many rows differ, also of those that are not in it."""

    differing: int = 0


@dataclass(frozen=True)
class RowStream(Result):
    """A table of many rows, fetched from Spark as they are read.

    first: the rows that came first; rest: the others, a block at a time, once; it raises what the query
    raises. seconds: until the first rows came. Whoever does not read all of it closes it.
    """

    columns: tuple[str, ...] = ()
    numeric: tuple[bool, ...] = ()
    first: Sequence[tuple[Any, ...]] = ()
    rest: Iterator[list[tuple[Any, ...]]] = field(default_factory=lambda: iter(()))
    seconds: float = 0.0

    def close(self) -> None:
        """Fetch no more rows."""
        if isinstance(self.rest, Generator):
            self.rest.close()

    def whole(self) -> Rows:
        """All rows in memory."""
        rows = [*self.first, *(row for block in self.rest for row in block)]
        return Rows(self.notes, self.columns, rows, self.numeric, self.seconds)


@dataclass(frozen=True)
class ArrowRows(RowStream):
    """The same for a program: rows as record batches of Arrow in place of tuples. The first has at least one
    batch, which may be empty. types: Spark's name of the type of each column; zone: the session time zone.
    version, batch: of a live table, as in Snapshot; complete: whether the first batches are all.
    """

    first: Sequence[Any] = ()
    types: tuple[str, ...] = ()
    zone: str = "UTC"
    version: int = 0
    batch: int = -1
    complete: bool = False

    @property
    def empty(self) -> bool:
        return not any(batch.num_rows for batch in self.first)


@dataclass(frozen=True)
class Copied(Result):
    """The rows of COPY TO, which are still to be written to a file.

    header: whether a csv or tsv file begins with the names of the columns; delimiter: of csv; place: where
    the statement names the file.
    """

    rows: Rows | RowStream = field(default_factory=Rows)
    path: str = ""
    format: str = "csv"
    header: bool = True
    delimiter: str = ","
    place: Span | None = None


@dataclass(frozen=True)
class Preview(Rows):
    """The first records of a source. proposal: the statement that makes a stream of it, if there is none."""

    proposal: str = ""


@dataclass(frozen=True)
class Why(InfoRows):
    """Why there are no rows. verdict: one sentence; code: of the verdict; rows: the evidence, as property and
    value; proposal: statements that resolve it, "" when there is nothing to do.
    """

    verdict: str = ""
    code: str = ""
    proposal: str = ""


@dataclass(frozen=True)
class Started(Result):
    """Streaming queries that run now, the one that the statement is about first. durable: whether they
    write something that outlives the console.
    """

    queries: tuple[str, ...] = ()
    message: str = ""
    durable: bool = False


@dataclass(frozen=True)
class Leave(Result):
    """The console or the script is to end. detach: its queries go on in the background."""

    detach: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The rows of a live table as of one moment, or of the changes to it.

    rows: at most as many as were asked for, of `total`; first: the number of the first of them
    among all, from 0. dropped: rows that came earlier and are no longer kept. changes: whether the
    first column tells what happened to a row (+I new, -U before, +U after, -D gone). version grows
    with each micro-batch; batch: the one that the rows are of; versions, batches: of changes, those of each
    row.
    """

    columns: tuple[str, ...] = ()
    numeric: tuple[bool, ...] = ()
    rows: Sequence[tuple[Any, ...]] = ()
    total: int = 0
    first: int = 0
    dropped: int = 0
    version: int = 0
    batch: int = -1
    changes: bool = False
    batches: Sequence[int] = ()
    versions: Sequence[int] = ()


COMBINING = ("sum", "min", "max", "avg", "count")
"""The functions that make one value of those with equal x on a line of a chart, as Spark names them."""

Take = Callable[[int, int | None, tuple[str, bool] | None], Snapshot]


@dataclass(frozen=True)
class Live(Result):
    """A result that refreshes, to be shown until the reader leaves or its query ends.

    take(count, first, order): the rows as of now without any work for Spark; first None: the end of the
    table, or its beginning where that is what its order is about; order: (column, whether downwards).
    changes: the same for the rows that were there when it was asked for the first time (as new ones) and the
    changes since. freeze(True): both stand still until freeze(False). arrow(): all rows of the table for a
    program. status(): its query; fault(): why it failed. close(), then said(): to be called when the reader
    is done; what the latter returns is to be told him. keep(): makes a transient query one that stays, and
    tells so; None where it stays anyway. mode: table, changes or chart; chart: columns x, y and perhaps those
    that tell the lines apart; combine: sum, min, max, avg, count or count(*) where the statement says what
    becomes of several values with equal x on a line. every: seconds between two frames, None for the default.
    enough: the number of rows that ends it, 0 for none. why(): what to show instead of an empty table, as
    lines; () while that is not known; proposal(): what resolves that, as statements.
    """

    title: str = ""
    take: Take = field(default=lambda count, first, order: Snapshot())
    changes: Take = field(default=lambda count, first, order: Snapshot())
    freeze: Callable[[bool], None] = lambda still: None
    arrow: Callable[[], ArrowRows] = ArrowRows
    status: Callable[[], QueryFacts] = QueryFacts
    close: Callable[[], None] = lambda: None
    fault: Callable[[], StreamsqlError | None] = lambda: None
    said: Callable[[], str] = lambda: ""
    keep: Callable[[], str] | None = None
    mode: str = "table"
    chart: tuple[str, ...] = ()
    combine: str = ""
    every: float | None = None
    enough: int = 0
    why: Callable[[], tuple[str, ...]] = tuple
    proposal: Callable[[], str] = str


def discard(result: Result) -> None:
    """End what a result that is not shown still does: a live view's query, the fetching of rows."""
    rows = result.rows if isinstance(result, Copied) else result
    if isinstance(rows, RowStream):
        rows.close()
    if isinstance(result, Live):
        result.close()
        result.said()


def in_rows(result: Result) -> Result:
    """A result for a program, to which texts and verdicts are rows, too. A RowStream that is no ArrowRows is
    fetched.
    """
    if isinstance(result, Text):
        return Rows(result.notes, ("text",), [(line,) for line in result.text.splitlines()])
    if isinstance(result, Why):
        return replace(result, rows=[("verdict", result.verdict), ("code", result.code), *result.rows])
    return result.whole() if isinstance(result, RowStream) and not isinstance(result, ArrowRows) else result
