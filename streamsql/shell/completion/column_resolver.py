"""The columns of the relations and blocks of a text that is typed, which may be unfinished."""

from __future__ import annotations

from collections.abc import Sequence

from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.struct_types import struct_fields
from streamsql.language.unfinished.blocks import Block, Relation, SelectItem
from streamsql.language.unfinished.query_reader import read_unfinished
from streamsql.plan.resolver import MOST_LEVELS, Columns, NameAndType, Resolver, Tables

__all__ = ["ColumnResolver", "NameAndType", "Tables", "type_in"]


class ColumnResolver(Resolver):
    """The resolver, and with it the columns of the relations and blocks of a text that is typed."""

    def of_text(self, text: str) -> Columns:
        """The columns of the result of a query, also of one that sqlglot cannot read."""
        columns = super().of_text(text)
        return columns if columns.known else Columns(tuple(self.of_block(read_unfinished(text))))

    def of_relation(self, relation: Relation, block: Block) -> list[NameAndType]:
        """The columns of a relation that a block reads."""
        columns: list[NameAndType] = []
        if relation.block is not None:
            columns = self.of_block(relation.block)
        elif relation.name:
            cte = block.cte(relation.name)
            columns = self.of_block(cte) if cte is not None else list(self.of_name(relation.name).known)
        names = relation.column_names
        if names:
            types = [t for _, t in columns] if len(columns) == len(names) else [""] * len(names)
            columns = list(zip(names, types, strict=True))
        return columns

    def of_block(self, block: Block) -> list[NameAndType]:
        """The columns of a block's result, as far as they are known."""
        if self._level > MOST_LEVELS:
            return []
        self._level += 1
        columns = [column for item in block.items for column in self._of_item(item, block)]
        if not block.selects and block.relations:  # FROM t |> WHERE …
            columns = self.of_relation(block.relations[0], block)
        self._level -= 1
        return columns

    def _of_item(self, item: SelectItem, block: Block) -> list[NameAndType]:
        if not item.star:
            return [(item.name, self._type(item, block))]
        if item.qualifier:
            every = self.qualified(item.qualifier, block)
        else:
            every = [column for r in block.relations for column in self.of_relation(r, block)]
        return [column for column in every if column[0].casefold() not in item.left_out]

    def _type(self, item: SelectItem, block: Block) -> str:
        if len(item.path) == 1:
            return self.type_of(item.path[0], block) or item.type
        if item.path:
            return type_in(self.qualified(item.path[0], block), item.path[1])
        return item.type

    def type_of(self, name: str, block: Block) -> str:
        """The type of a column that a block reads, by its unqualified name."""
        for relation in block.relations:
            for column, kind in self.of_relation(relation, block):
                if column.casefold() == name.casefold():
                    return kind
        return ""

    def qualified(self, name: str, block: Block) -> list[NameAndType]:
        """The candidates after `name.`: columns of a relation, or fields of a STRUCT column."""
        folded = name.casefold()
        for around in block.outward():
            for relation in around.relations:
                if folded in (relation.qualifier.casefold(), relation.name.casefold()):
                    return self.of_relation(relation, around)
        if folded in ("window", "session_window"):
            return struct_fields(WINDOW_TYPE)
        if not any(around.relations for around in block.outward()):  # FROM is still to be written
            return list(self.of_name(name).known)
        return struct_fields(self.type_of(name, block))


def type_in(columns: Sequence[NameAndType], name: str) -> str:
    """The type of the column of that name, "" when there is none."""
    return {n.casefold(): t for n, t in columns}.get(name.casefold(), "")
