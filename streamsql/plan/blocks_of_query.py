"""The SELECTs that a query consists of, and what they read."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.language.query import Block, Body, Relation


def relations_of(block: Block) -> list[Relation]:
    """What FROM and each JOIN reads."""
    return [r for r in (block.relation, *(j.relation for j in block.joins)) if r is not None]


def blocks_of(body: Body, *, ctes: bool = False) -> Iterator[Block]:
    """The SELECTs of a query without those in expressions, each after those that it reads. ctes: those of
    WITH, too.
    """
    named = [cte.query for cte in body.ctes] if ctes else []
    for term in (*named, body.term, *(tail.term for tail in body.tails)):
        if isinstance(term, Body):
            yield from blocks_of(term, ctes=ctes)
            continue
        for relation in relations_of(term):
            if relation.query is not None:
                yield from blocks_of(relation.query, ctes=ctes)
        yield term
