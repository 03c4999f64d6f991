"""The columns of relations and queries, as far as they are known from the catalog and a query's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamsql.catalog import Catalog
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink, Stream
from streamsql.language.query_scope import block_of
from streamsql.language.struct_types import struct_fields
from streamsql.language.unfinished.blocks import WINDOW_TYPE, Block, Relation, SelectItem

# A column: its name and its type, "" when that is not known.
NameAndType = tuple[str, str]
# Returns the columns of a live table or a table of Spark by its name; () when they are not known.
Columns = Callable[[str], Sequence[NameAndType]]

# After changes a stream can read itself.
_MOST_LEVELS = 20


class ColumnResolver:
    """The columns of relations and blocks, from the catalog and the function `columns`."""

    def __init__(self, catalog: Catalog, columns: Columns | None) -> None:
        self.catalog = catalog
        self.columns = columns
        self.depth = 0

    def of_relation(self, relation: Relation, block: Block) -> list[NameAndType]:
        """The columns of a relation that a block reads."""
        columns: list[NameAndType] = []
        if relation.block is not None:
            columns = self.of_block(relation.block)
        elif relation.name:
            cte = block.cte(relation.name)
            columns = self.of_block(cte) if cte is not None else self.of_name(relation.name)
        names = relation.column_names
        if names:
            types = [t for _, t in columns] if len(columns) == len(names) else [""] * len(names)
            columns = list(zip(names, types, strict=True))
        return columns

    def of_name(self, name: str) -> list[NameAndType]:
        """The columns of a stream, live table or table of that name."""
        entry = self.catalog.relation(name)
        if isinstance(entry, Stream):
            return self.of_stream(entry)
        if isinstance(entry, Sink) and entry.columns:
            return [(c.name, c.type) for c in entry.columns]
        known = self.columns(name) if self.columns else ()
        columns = [(n, t if "<" in t else t.upper()) for n, t in known]
        if not columns and entry is not None:
            feeding = self.catalog.queries_into(name)
            columns = self.of_query(feeding[0].text) if feeding else []
        return columns

    def of_stream(self, stream: Stream) -> list[NameAndType]:
        """The columns of a stream; of CREATE STREAM … AS, those of its query."""
        declared = stream.columns
        connector = connectors().get(stream.connector)
        if not declared and connector is not None:
            declared = connector.columns(stream)
        columns = [(c.name, c.type) for c in declared] if declared else self.of_query(stream.query)
        if stream.watermark and stream.watermark.computed:
            columns = [*columns, (stream.watermark.column.value, "TIMESTAMP")]
        return columns

    def of_query(self, text: str) -> list[NameAndType]:
        """The columns of a query's result."""
        if not text or self.depth > _MOST_LEVELS:
            return []
        self.depth += 1
        columns = self.of_block(block_of(text))
        self.depth -= 1
        return columns

    def of_block(self, block: Block) -> list[NameAndType]:
        """The columns of a block's result, as far as they are known."""
        if self.depth > _MOST_LEVELS:
            return []
        self.depth += 1
        columns = [column for item in block.items for column in self._of_item(item, block)]
        if not block.selects and block.relations:  # FROM t |> WHERE …
            columns = self.of_relation(block.relations[0], block)
        self.depth -= 1
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
            return self.of_name(name)
        return struct_fields(self.type_of(name, block))


def type_in(columns: Sequence[NameAndType], name: str) -> str:
    """The type of the column of that name, "" when there is none."""
    return {n.casefold(): t for n, t in columns}.get(name.casefold(), "")
