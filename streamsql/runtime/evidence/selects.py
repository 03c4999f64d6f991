"""The SELECTs that a query consists of, those of the streams that it reads among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamsql.catalog import Catalog
from streamsql.errors import Span, StreamsqlError
from streamsql.language.conditions import conditions_of
from streamsql.language.expression import Expression
from streamsql.language.query import Block, Body, read_query


@dataclass(frozen=True)
class Part:
    """One SELECT. stream: the stream whose definition it is in; "" for the query itself; text: the whole text
    that the places of block count in; head: its WITH clause.
    """

    stream: str
    text: str
    block: Block
    head: str = ""

    @property
    def source(self) -> str:
        """FROM and what it reads, with joins, as written; "" when it reads nothing."""
        if self.block.relation is None:
            return ""
        ends = [j.span.end for j in self.block.joins] + [v.span.end for v in self.block.views]
        ends += [j.relation.span.end for j in self.block.joins]
        start = self.block.relation.span.start
        return "FROM " + self.text[start : max([self.block.relation.span.end, *ends])]

    @property
    def conditions(self) -> list[Expression]:
        """What WHERE puts together by AND."""
        return conditions_of(self.block.where.expression) if self.block.where else []

    @property
    def counts(self) -> str:
        """Items of a SELECT: the number of rows as n, and of those that each condition keeps as c0, c1, …"""
        items = (f"count_if({c.text}) AS c{number}" for number, c in enumerate(self.conditions))
        return ", ".join(("count(*) AS n", *items))

    def kept_by(self, row: Any) -> list[tuple[Expression, int]]:
        """Each condition with the number of rows that it keeps. row: the result of `counts`."""
        return [(condition, row[f"c{number}"]) for number, condition in enumerate(self.conditions)]

    def select(self, items: str, where: str = "") -> str:
        """A query over what this SELECT reads."""
        return f"{self.head}SELECT {items} {self.source}" + (f" WHERE {where}" if where else "")


def parts_of(text: str, catalog: Catalog, stream: str = "") -> list[Part]:
    """The SELECTs of a query, the nearest to the sources first; [] when its parts are not known."""
    try:
        read = read_query(text)
    except StreamsqlError:
        return []
    below: list[Part] = []
    for named in {n.name.casefold(): n for n in read.relations}.values():
        entry = catalog.streams.get(named.name.casefold())
        if entry and entry.query and entry.name != stream:
            below += parts_of(entry.query, catalog, entry.name)
    if read.body is None:
        return below
    head = _with(text, read.body)
    return below + [Part(stream, text, block, head) for block in read.body.blocks()]


def changed(text: str, edits: list[tuple[Span, str]]) -> str:
    """A text with other words in some of its places."""
    for span, words in sorted(edits, key=lambda e: e[0].start, reverse=True):
        text = text[: span.start] + words + text[span.end :]
    return text


def _with(text: str, body: Body) -> str:
    return f"WITH {text[body.ctes[0].span.start : body.ctes[-1].span.end]} " if body.ctes else ""
