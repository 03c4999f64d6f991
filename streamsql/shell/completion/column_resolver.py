"""The columns of the relations and blocks of a text that is typed, which may be unfinished."""

from __future__ import annotations

from collections.abc import Mapping

from streamsql.errors import StreamsqlError
from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.query import read_query
from streamsql.language.query_columns import UNKNOWN, QueryColumns, type_in
from streamsql.language.struct_types import struct_fields
from streamsql.language.unfinished.blocks import Block, Relation
from streamsql.language.unfinished.query_reader import read_unfinished
from streamsql.plan.resolver import MOST_LEVELS, Columns, NameAndType, Resolver, Tables

__all__ = ["ColumnResolver", "NameAndType", "Tables"]


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
        if not block.selects and block.relations:  # FROM t |> WHERE …
            columns = self.of_relation(block.relations[0], block)
        else:
            columns = self._selected(block)
        self._level -= 1
        return columns

    def _selected(self, block: Block) -> list[NameAndType]:
        """The columns of a select list; of an unfinished one, those of the items that can be read."""
        if not block.items:
            return []
        read, aliases = dict[str, Columns](), dict[str, str]()
        for number, relation in enumerate(block.relations):
            name = f"relation_{number}"
            alias = (relation.qualifier or name).replace("`", "``")
            if aliases.setdefault(alias.casefold(), f"{name} AS `{alias}`").startswith(f"{name} "):
                read[name] = Columns(tuple(self.of_relation(relation, block)), True)
        behind = f" FROM {', '.join(aliases.values())}" if aliases else ""
        whole = _of_items(", ".join(block.items), behind, read)
        if whole is not None or len(block.items) == 1:
            return list(whole or ())
        parts = [_of_items(item, behind, read) for item in block.items]
        return [column for part in parts for column in part or ()]

    def type_of(self, name: str, block: Block) -> str:
        """The type of a column that a block reads, by its unqualified name."""
        return type_in((c for r in block.relations for c in self.of_relation(r, block)), name)

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


def _of_items(items: str, behind: str, read: Mapping[str, Columns]) -> tuple[NameAndType, ...] | None:
    """The columns of items of a select list; None if they cannot be read. behind: its FROM; read: the columns
    of the relations there.
    """
    try:
        query = read_query(f"SELECT {items}{behind}")
    except StreamsqlError:
        return None
    if query.tree is None:
        return None
    return QueryColumns(query, lambda name: read.get(name, UNKNOWN)).outputs().known
