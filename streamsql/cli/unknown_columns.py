"""What `--check` says of columns: a name that no relation of its SELECT has cannot be resolved."""

from __future__ import annotations

from streamsql.catalog import Catalog
from streamsql.errors import NameFault
from streamsql.language.query import read_query
from streamsql.language.spark_syntax import queries_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.explain import Explain
from streamsql.language.statements.spark import Spark
from streamsql.plan.resolver import Resolver, hint_of_columns


class UnknownColumns:
    """Checks the columns of queries, statement by statement."""

    def __init__(self) -> None:
        self._variables = False

    def check(self, statement: Statement, catalog: Catalog) -> list[NameFault]:
        """The errors, with their positions in the source, for the columns that do not exist."""
        if isinstance(statement, Explain) and statement.body is not None:
            statement = statement.body
        if isinstance(statement, Spark):
            self._variables = self._variables or statement.declares_variables
        if self._variables:
            return []  # a name can be a variable, too
        faults = []
        for query in queries_of(statement):
            for span, known in Resolver(catalog).missing(read_query(query.text)):
                name = query.text[span.start : span.end]
                faults.append(
                    NameFault(
                        f"there is no column {name}",
                        hint=hint_of_columns(name, known),
                        span=query.origin.span(span),
                        code="UNKNOWN_COLUMN",
                    )
                )
        return faults
