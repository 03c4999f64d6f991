"""What is offered at the cursor, before it is held against what is typed there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from streamsql.catalog import Catalog
from streamsql.language.tokens import quote_name
from streamsql.language.unfinished.query_cursor import QueryCursor
from streamsql.language.unfinished.statement import UnfinishedStatement
from streamsql.shell.completion.column_resolver import ColumnResolver, Columns, NameAndType

NAME, FUNCTION, KEYWORD = range(3)


class Offer(NamedTuple):
    """A candidate before it is held against what is typed.

    keys: what is compared with it, the text itself when empty; typed: what it replaces, where that is
    not the word at the cursor; closes: whether a quote that is open ends after it.
    """

    text: str
    kind: str
    rank: int = NAME
    keys: tuple[str, ...] = ()
    typed: str | None = None
    closes: bool = False


@dataclass(frozen=True)
class Context:
    """What candidates are made of: the statement with the cursor in it, and what is known by name.

    columns: those of a live table or table of Spark, by its name.
    """

    statement: UnfinishedStatement
    catalog: Catalog
    columns: Columns | None

    @cached_property
    def resolver(self) -> ColumnResolver:
        return ColumnResolver(self.catalog, self.columns)

    @property
    def typed(self) -> str:
        return self.statement.typed

    @property
    def query(self) -> QueryCursor:
        """The cursor in the query; asked only where the statement's query expects something."""
        assert self.statement.query is not None
        return self.statement.query

    @property
    def lower(self) -> bool:
        """Whether keywords are written in small letters here."""
        shown = self.typed if self.typed.strip("`") else self.statement.first_written
        return shown.islower()


Source = Callable[[Context], Iterable[Offer]]
"""The candidates for a terminal of the grammar."""


def keyword_offer(expected: str) -> Iterator[Offer]:
    """A keyword that is expected, in quotes; nothing for a sign or a terminal."""
    word = expected.strip("'")
    if expected.startswith("'") and word.replace(" ", "").isalpha():
        yield Offer(word, "keyword", KEYWORD)


def column_offers(columns: Iterable[NameAndType]) -> Iterator[Offer]:
    """Columns with their type."""
    return (Offer(quote_name(name), kind or "column") for name, kind in columns)


def qualified_offer(qualifier: str, column: NameAndType) -> Offer:
    """A column with the name of its relation before it; it is found by either name."""
    name, kind = column
    text = f"{quote_name(qualifier)}.{quote_name(name)}"
    return Offer(text, kind or "column", keys=(name.casefold(), text.casefold()))


def event_times_first(columns: Iterable[NameAndType]) -> list[NameAndType]:
    """Columns that can carry a watermark first."""
    return sorted(columns, key=lambda column: not column[1].upper().startswith("TIMESTAMP"))
