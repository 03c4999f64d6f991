"""A staged change reads staged views and functions under the names that Spark has for these, in its text."""

from __future__ import annotations

from collections.abc import Container, Iterable

from streamsql.catalog import Catalog
from streamsql.definitions import Function, SqlFunction, Table
from streamsql.errors import RuleFault
from streamsql.language.origin import Origin
from streamsql.language.query import read_query
from streamsql.language.query_tree import Query
from streamsql.language.renamed_relations import unnamed_calls, with_aliases
from streamsql.language.spark_definitions import definition_of, query_of_view
from streamsql.language.tokens import quote_name


def read_instead(text: str, catalog: Catalog) -> tuple[str, Origin]:
    """(the text of a query that reads views and calls functions by the names of `Catalog.instead`, its origin
    in the text before). Raises RuleFault where it is not clear what a name means, or the name of a column
    would be another one after PROMOTE.
    """
    views, functions = catalog.instead_of(Table), catalog.instead_of(Function, SqlFunction)
    if not views and not functions:
        return text, Origin()
    if functions:
        _check_columns_are_named(read_query(text), functions)
    own, points = with_aliases(text, views, functions)
    return own, Origin(tuple(points))


def relations_instead(text: str, names: Iterable[str], catalog: Catalog) -> str:
    """The text of a query for Spark, in which streams and live tables have the names under which their staged
    definitions are registered. names: those that it reads. Raises RuleFault.
    """
    relations = {n.casefold(): new for n in names if (new := catalog.instead.get(n.casefold()))}
    return with_aliases(text, relations, {})[0] if relations else text


def view_instead(text: str, catalog: Catalog) -> str:
    """The same for the statement of a view or of a function in SQL, and for all that it names. Raises
    RuleFault.
    """
    place = query_of_view(text) if catalog.instead else None
    of_catalog = [name for name in catalog.instead if catalog.relation(name)]
    if catalog.instead and definition_of(text).kind == "function":
        views, functions = catalog.instead_of(Table), catalog.instead_of(Function, SqlFunction)
        return relations_instead(with_aliases(text, views, functions)[0], of_catalog, catalog)
    if place is None:
        return text
    query = text[place.start : place.end]
    query = relations_instead(read_instead(query, catalog)[0], of_catalog, catalog)
    return text[: place.start] + query


def _check_columns_are_named(query: Query, functions: Container[str]) -> None:
    """Raise RuleFault for a column without a name that a call of such a function computes."""
    for span in unnamed_calls(query, functions):
        item = query.text[span.start : span.end]
        raise RuleFault(
            f"the column {item} has no name, and calls a function that is staged",
            detail="Spark names it after the call, which has another name until PROMOTE",
            hint=f"{item} AS {quote_name(item)} keeps the name; or AS with another one",
            span=span,
            code="NOT_STAGEABLE",
        )
