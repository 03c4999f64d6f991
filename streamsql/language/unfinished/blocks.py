"""The scope of a query: its blocks, the relations that they read, and their output columns.

Plain data, filled by query_reader from text, also if it is unfinished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Relation:
    """A relation after FROM or JOIN: a name or a sub-query, its alias and its column aliases."""

    name: str = ""
    alias: str = ""
    block: Block | None = None
    column_names: tuple[str, ...] = ()

    @property
    def qualifier(self) -> str:
        """The qualifier of its columns."""
        return self.alias or self.name.rpartition(".")[2]


@dataclass
class Block:
    """One SELECT; each part of a set operation is a block.

    ctes: the queries of its WITH by case-folded name; items: the texts of its select list; selects: whether a
    SELECT has been read (a query can start with FROM); names_window: whether its select list contains the
    word WINDOW.
    """

    parent: Block | None = field(default=None, repr=False, compare=False)
    ctes: dict[str, Block] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    selects: bool = False
    names_window: bool = False

    def outward(self) -> Iterator[Block]:
        """This block and the blocks around it, from the inside out."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def cte(self, name: str) -> Block | None:
        """The query with that name in a WITH around this block. Inside the query itself, the name refers to
        the outer definition.
        """
        around = list(self.outward())
        for outer in around:
            named = outer.ctes.get(name.casefold())
            if named is not None and not any(named is block for block in around):
                return named
        return None


@dataclass(frozen=True)
class Place:
    """The cursor's position in a query.

    clause: the first word of the clause; expects_relation: whether a relation is expected; call: the word
    before the innermost open parenthesis, upper case; relation_count: the number of the block's relations
    before the cursor.
    """

    block: Block
    clause: str
    expects_relation: bool
    call: str
    relation_count: int

    @property
    def relations(self) -> list[Relation]:
        """The block's relations before the cursor."""
        return self.block.relations[: self.relation_count]
