"""A query that reads no stream and no live table goes to Spark as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamsql.calls import Var
from streamsql.catalog import Catalog
from streamsql.errors import NameFault
from streamsql.language.query import Query, check_balanced, read_query
from streamsql.language.tokens import quote_name
from streamsql.plan.lowering.lower import Lowered
from streamsql.plan.lowering.python_functions import called
from streamsql.plan.lowering.shape import Shape
from streamsql.plan.lowering.sources import Sources

_OF_OWN_CLAUSES = frozenset("stream watermark state late tumble hop cumulate session pivot".split())
"""One of these words is in each clause of the console, except DISTINCT ON."""
_WHY = "it reads no stream and no live table"
_WORD = re.compile(r"\w+")


def as_written(text: str, sources: Sources) -> Lowered | None:
    """spark.sql of a query that reads no stream and no live table; None for another query, and for one with a
    clause of the console. The functions written in Python that it calls are registered. Raises SyntaxFault
    for a parenthesis that is not closed.
    """
    if not _may_be_own(text, sources.catalog):
        check_balanced(text)
        return Lowered(Var("spark").call("sql", text), Shape(), _WHY)
    query = read_query(text)
    if QUOTED_NAMES in sources.changed_language:
        _check_quoted_names(query, sources.catalog)
    if query.has_own_clauses or reads_own_relation(query, sources.catalog):
        return None
    sources.register_functions(query.calls)
    return Lowered(Var("spark").call("sql", text), Shape(), _WHY)


def reads_own_relation(query: Query, catalog: Catalog) -> bool:
    """Whether a query reads a stream, a live table, a view over these, a function in SQL that reads
    live tables, or a call of a Python class that keeps state.
    """
    for relation in query.relations:
        view = catalog.tables.get(relation.name.casefold())
        if catalog.relation(relation.name) is not None or (view is not None and view.follows):
            return True
    in_sql = (catalog.sql_functions.get(call.name) for call in query.calls)
    if any(function is not None and function.follows for function in in_sql):
        return True
    return any(function.kind in ("processor", "") for function, _ in called(query.calls, catalog))


def _check_quoted_names(query: Query, catalog: Catalog) -> None:
    """Raise NameFault for a stream or live table in double quotes, which the setting makes a name."""
    for token in query.tokens:
        name = token.text[1:-1]
        if token.text.startswith('"') and catalog.relation(name) is not None:
            raise NameFault(
                f"{token.text} is not planned as the name of a relation",
                detail=f"{QUOTED_NAMES} is on; a query over streams and live tables names them in backticks",
                hint=quote_name(name) if quote_name(name) != name else f"`{name}`",
                span=token.span,
                code="CLAUSE_NOT_SUPPORTED",
            )


def _may_be_own(text: str, catalog: Catalog) -> bool:
    """Whether a text holds a word of the console's clauses, or the name of one of its relations or functions.
    Most texts that are left to Spark hold none, and need not be parsed.
    """
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    if words & _OF_OWN_CLAUSES or {"distinct", "on"} <= words:
        return True
    following = {name for name, table in catalog.tables.items() if table.follows}
    following |= {name for name, function in catalog.sql_functions.items() if function.follows}
    own = (catalog.streams, catalog.sinks, catalog.functions, following)
    if any(word in names for names in own for word in words):
        return True
    # Other names hold a dot, or are written in backticks.
    return any(not n.isidentifier() and n.replace("`", "``") in folded for names in own for n in names)


QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"

PLANNED_WITH = {
    QUOTED_NAMES: "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""The values with which a query is taken apart into calls, in lower case: Spark's defaults."""


def changed_language(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The settings with which a text does not mean what planning assumes; none for Spark's defaults."""
    return tuple(
        name for name, value in PLANNED_WITH.items() if settings.get(name, value).strip().casefold() != value
    )
