"""What a statement reads by name: the relations of its queries, from the trees that planning reads, too."""

from __future__ import annotations

from collections.abc import Iterator

from streamsql.errors import Span
from streamsql.language.query import read_query
from streamsql.language.query_tree import Named
from streamsql.language.statements.base import Fragment, Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.insert import InsertSet
from streamsql.language.statements.spark import Spark


def relations_of(statement: Statement) -> Iterator[Named]:
    """The relations that a statement reads, each with its place in the source; of a statement that is left to
    Spark every name, since any may be a relation.
    """
    if isinstance(statement, Explain):
        yield from relations_of(statement.body) if statement.body else ()
    elif isinstance(statement, InsertSet):
        for insert in statement.inserts:
            yield from relations_of(insert)
    elif isinstance(statement, Spark):
        for named in read_query(statement.text).names:
            yield Named(named.name, statement.origin.span(named.span))
    elif isinstance(query := getattr(statement, "query", None), Fragment):
        for named in read_query(query.text).relations:
            yield Named(named.name, query.origin.span(named.span))


def calls_of(statement: Statement) -> Iterator[tuple[str, Span]]:
    """The functions, folded, that a statement calls, each with its place in the source."""
    if isinstance(statement, Explain):
        yield from calls_of(statement.body) if statement.body else ()
    elif isinstance(statement, InsertSet):
        for insert in statement.inserts:
            yield from calls_of(insert)
    else:
        query = getattr(statement, "query", None)
        if isinstance(query, Fragment) or isinstance(statement, Spark):
            text, origin = (query.text, query.origin) if query else (statement.text, statement.origin)
            for call in read_query(text).calls:
                yield call.name, origin.span(call.span)


def names_in_query(text: str) -> frozenset[str]:
    """The relations and functions, folded, that a query names."""
    query = read_query(text)
    return frozenset((*(r.name.casefold() for r in query.relations), *(c.name for c in query.calls)))
