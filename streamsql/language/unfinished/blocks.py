"""The parts of a query that scope is made of: its blocks, what they read, and what they give.

Plain data, filled by query_reader from text that need not be finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

WINDOW_TYPE = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"


@dataclass
class Relation:
    """What stands behind FROM or JOIN: a name or a sub-query, its alias, and columns named with it."""

    name: str = ""
    alias: str = ""
    block: Block | None = None
    column_names: tuple[str, ...] = ()

    @property
    def qualifier(self) -> str:
        """What its columns are qualified with."""
        return self.alias or self.name.rpartition(".")[2]


@dataclass(frozen=True)
class SelectItem:
    """An item of a select list whose columns are plain.

    name: what the column is called; path: the column that it is, one name or two (`a`, `t.a`), () for an
    expression; type: as far as the text tells. star: it is `*`, the columns of all relations, or `t.*`,
    those of the one named by qualifier; left_out: the columns, folded, of its EXCEPT.
    """

    name: str = ""
    path: tuple[str, ...] = ()
    type: str = ""
    star: bool = False
    qualifier: str = ""
    left_out: frozenset[str] = frozenset()


@dataclass
class Block:
    """One SELECT, the parts of a set operation each for itself.

    ctes: the queries of its WITH by folded name; selects: whether a SELECT has been read (a query may
    begin with FROM); names_window: whether its select list holds the word WINDOW.
    """

    parent: Block | None = field(default=None, repr=False, compare=False)
    ctes: dict[str, Block] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    items: list[SelectItem] = field(default_factory=list)
    selects: bool = False
    names_window: bool = False

    def outward(self) -> Iterator[Block]:
        """This block and those around it."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def cte(self, name: str) -> Block | None:
        """The query that a WITH around this block gives a name; inside its own query the name means what
        it means outside.
        """
        around = list(self.outward())
        for outer in around:
            named = outer.ctes.get(name.casefold())
            if named is not None and not any(named is block for block in around):
                return named
        return None


@dataclass(frozen=True)
class Place:
    """Where the cursor stands in a query.

    clause: the first word of the clause; expects_relation: whether a relation is due; call: the word before
    the innermost open parenthesis, upper case; relation_count: how many relations of the block were read
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
