"""The statements that raise the limit of the rows that a live table keeps."""

from __future__ import annotations

from dataclasses import replace

from streamsql.language.redaction import redact
from streamsql.language.tokens import quote_name
from streamsql.plan.plans import Run

MORE = 10
"""How many times as many rows are proposed."""


def raised_limit(plan: Run, limit: int) -> str:
    """The statements with which a query whose rows are kept runs with a higher limit: that of a live table,
    a SELECT, an INSERT over live tables or in stages.
    """
    query, retain = plan.query, MORE * limit
    if query.live_table:
        statement = query.sql(replace(plan.sink, retain=retain))
        return statement.replace("CREATE LIVE TABLE", "CREATE OR REPLACE LIVE TABLE", 1) + ";"
    rows = quote_name(f"{query.name}_rows")
    keeping = f"CREATE LIVE TABLE {rows} RETAIN {retain} ROWS AS {redact(query.text).strip()};"
    if plan.transient:
        return f"{keeping} SELECT * FROM {rows};"
    drop = f"DROP QUERY {quote_name(query.name)};"
    again = replace(query, text=f"SELECT * FROM {rows}", trigger=None).sql()
    return f"{drop} {keeping} {' '.join(again.split())};"
