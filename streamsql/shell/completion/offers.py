"""Offers: candidates before they are filtered by the typed text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from streamsql.catalog import Catalog
from streamsql.language.query_columns import Surroundings
from streamsql.language.tokens import quote_name
from streamsql.language.unfinished.query_cursor import QueryCursor
from streamsql.language.unfinished.statement import UnfinishedStatement
from streamsql.shell.completion.column_resolver import ColumnResolver, NameAndType, Tables

States = Callable[[str], str]
"""What is shown beside a query, such as `running query`, by its name."""
NAME, FUNCTION, KEYWORD = range(3)


class Offer(NamedTuple):
    """A candidate before it is filtered by the typed text.

    keys: compared with the typed text, if empty the text itself; typed: the text that it replaces, if that
    is not the word at the cursor; closes: whether it closes an open quote.
    """

    text: str
    kind: str
    rank: int = NAME
    keys: tuple[str, ...] = ()
    typed: str | None = None
    closes: bool = False


@dataclass(frozen=True)
class Context:
    """The input of all sources: the statement at the cursor, and the catalog.

    columns: returns those of a live table or table of Spark, by its name.
    """

    statement: UnfinishedStatement
    catalog: Catalog
    columns: Tables | None
    states: States | None

    @cached_property
    def resolver(self) -> ColumnResolver:
        return ColumnResolver(self.catalog, self.columns)

    @property
    def typed(self) -> str:
        return self.statement.typed

    @property
    def query(self) -> QueryCursor:
        """The cursor in the query; used only if the statement's query expects something."""
        assert self.statement.query is not None
        return self.statement.query

    @cached_property
    def around(self) -> Surroundings:
        """What a name at the cursor can mean."""
        return self.resolver.around(self.query.text)

    @property
    def lower(self) -> bool:
        """Whether keywords are written in lower case here."""
        shown = self.typed if self.typed.strip("`") else self.statement.first_written
        return shown.islower()


Source = Callable[[Context], Iterable[Offer]]
"""The candidates for a terminal of the grammar."""


def keyword_offer(expected: str) -> Iterator[Offer]:
    """The offer of an expected keyword (in quotes); nothing for a symbol or a terminal."""
    word = expected.strip("'")
    if expected.startswith("'") and word.replace(" ", "").isalpha():
        yield Offer(word, "keyword", KEYWORD)


def column_offers(columns: Iterable[NameAndType]) -> Iterator[Offer]:
    """Columns with their type."""
    return (Offer(quote_name(name), kind or "column") for name, kind in columns)


def qualified_offer(qualifier: str, column: NameAndType) -> Offer:
    """A column qualified with the name of its relation; either name matches."""
    name, kind = column
    text = f"{quote_name(qualifier)}.{quote_name(name)}"
    return Offer(text, kind or "column", keys=(name.casefold(), text.casefold()))


def event_times_first(columns: Iterable[NameAndType]) -> list[NameAndType]:
    """The columns, with those that can have a watermark first."""
    return sorted(columns, key=lambda column: not column[1].upper().startswith("TIMESTAMP"))
