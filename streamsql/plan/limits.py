"""The statements that raise the limit of the rows that a live table keeps."""

from __future__ import annotations

from dataclasses import replace

from streamsql.catalog import Catalog
from streamsql.language.redaction import redact
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run

MORE = 10
"""How many times as many rows are proposed."""


def raised_limit(plan: Run, limit: int, catalog: Catalog) -> str:
    """The statements with which a query whose rows are kept runs with a higher limit. One of the catalog
    goes on where it has failed.
    """
    query, retain = plan.query, MORE * limit
    if plan.transient:
        rows = quote_name(f"{query.name}_rows")
        keeping = f"CREATE LIVE TABLE {rows} RETAIN {retain} ROWS AS {redact(query.text).strip()};"
        return f"{keeping} SELECT * FROM {rows};"
    if query.live_table and query.name.casefold() not in catalog.queries:
        statement = query.sql(replace(plan.sink, retain=retain))
        return statement.replace("CREATE LIVE TABLE", "CREATE OR REPLACE LIVE TABLE", 1) + ";"
    return f"START QUERY {quote_name(query.name)} RETAIN {retain} ROWS;"
