"""Whether a query may compare texts by a collation, of which Spark keeps no state."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamsql.definitions import Stream


def has_collations(words: Collection[str], streams: Iterable[Stream]) -> bool:
    """Whether one of the words, folded, gives a text a collation, or a column of a stream has one."""
    types = (column.type.upper() for stream in streams for column in stream.columns)
    return not {"collate", "collation"}.isdisjoint(words) or any(" COLLATE " in kind for kind in types)
