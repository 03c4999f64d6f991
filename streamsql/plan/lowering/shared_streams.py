"""What the SELECTs of a statement set share: the stream that its query reads, once for all of them."""

from __future__ import annotations

from streamsql.definitions import Query, Stream
from streamsql.errors import Source
from streamsql.language.parser import parse_text
from streamsql.language.statements.insert import InsertSet
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.sources import Sources


def shared_text(query: Query, sources: Sources) -> str:
    """The SELECT of a query; of a statement set, that of all columns of the stream that its SELECTs share."""
    if not query.together:
        return query.text
    statement = parse_text(Source("", f"EXECUTE STATEMENT SET BEGIN {query.text} END"))
    assert isinstance(statement, InsertSet)
    read: list[dict[str, Stream]] = []
    for part in statement.inserts:
        own = Sources(sources.catalog, sources.places, sources.lower, counts=False)
        own.lower(part.query.text, own)
        read.append(own.streams)
    # A stream over other streams comes after them.
    name = next(name for name in reversed(read[0]) if all(name in others for others in read))
    return f"SELECT * FROM {quote_name(read[0][name].name)}"
