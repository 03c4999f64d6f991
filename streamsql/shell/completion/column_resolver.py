"""The columns that a name in a text that is typed can mean; the text may be unfinished."""

from __future__ import annotations

from streamsql.errors import StreamsqlError
from streamsql.language.expression import WINDOW_TYPE
from streamsql.language.query import Query, read_query
from streamsql.language.query_columns import QueryColumns, Surroundings, type_in
from streamsql.language.struct_types import struct_fields
from streamsql.language.unfinished.repair import CURSOR, read_completed, read_unfinished
from streamsql.plan.resolver import NameAndType, Resolver, Tables

__all__ = ["ColumnResolver", "NameAndType", "Tables"]


class ColumnResolver(Resolver):
    """The resolver of planning, also for queries that are not finished."""

    def around(self, text: str) -> Surroundings:
        """What the name at the cursor can mean; see unfinished/repair.py for the text."""
        return self.query_columns(read_completed(text), QueryColumns).around(CURSOR)

    def _read(self, text: str) -> Query:
        try:
            query = read_query(text)
        except StreamsqlError:
            return read_unfinished(text)
        return query if query.tree is not None else read_unfinished(text)

    def qualified(self, name: str, around: Surroundings) -> list[NameAndType]:
        """The candidates after `name.`: columns of a relation, or fields of a STRUCT column."""
        folded = name.casefold()
        for relations in around.relations:
            for relation in relations:
                if folded in (relation.qualifier.casefold(), relation.name.casefold()):
                    return list(relation.columns)
        if folded in ("window", "session_window"):
            return struct_fields(WINDOW_TYPE)
        if not any(around.relations):  # FROM is still to be written
            return list(self.of_name(name).named)
        columns = (column for relation in around.relations[0] for column in relation.columns)
        return struct_fields(type_in(columns, name))
