"""Statements of Spark that name a stream, sink or live table, which Spark does not have as a table."""

from __future__ import annotations

from streamsql.definitions import Stream
from streamsql.errors import RuleFault, Span
from streamsql.language.spark_definitions import Target, target_of
from streamsql.language.statements.base import Statement
from streamsql.language.tokens import quote_name
from streamsql.plan.context import Context


def check_target(statement: Statement, context: Context) -> None:
    """Raise RuleFault for a statement of Spark that drops or changes a stream, sink or live table, with the
    console's own statement where there is one.
    """
    target = target_of(statement.text)
    entry = context.catalog.target(target.name) if target else None
    table = context.catalog.tables.get(target.name.casefold()) if target and target.verb == "SHOW" else None
    if target and table:
        raise _described(f"TABLE {quote_name(table.name)}", target.name, statement.origin.span(target.span))
    if target is None or entry is None:
        return
    kind = "stream" if isinstance(entry, Stream) else "live table" if entry.is_live else "sink"
    fault = _refusal(target, kind, quote_name(entry.name))
    fault.span = statement.origin.span(target.span)
    raise fault


def _described(what: str, name: str, span: Span | None = None) -> RuleFault:
    """The error for SHOW with the name of one thing."""
    return RuleFault(
        f"SHOW lists things, and {name} is one", proposal=f"DESCRIBE {what};", span=span, code="WRONG_KIND"
    )


def _refusal(target: Target, kind: str, name: str) -> RuleFault:
    own = f"{kind.upper()} {name};"
    said = f"{target.name} is a {kind}"
    if target.verb == "SHOW":
        return _described(own.rstrip(";"), target.name)
    if target.verb.startswith("DROP"):
        what = target.verb.removeprefix("DROP ").lower()
        return RuleFault(f"{said}, not a {what} of Spark", proposal=f"DROP {own}", code="WRONG_KIND")
    if target.verb.startswith("SHOW CREATE"):
        return RuleFault(f"{said}, not a table of Spark", proposal=f"SHOW CREATE {own}", code="WRONG_KIND")
    why = {
        "stream": "a stream is read and has no rows of its own",
        "sink": "the rows of a sink are written by queries",
        "live table": "the rows of a live table are those of its query",
    }[kind]
    hint = f"CREATE OR REPLACE {kind.upper()} {name} … changes its definition"
    return RuleFault(f"{said}: {target.verb} cannot change it", detail=why, hint=hint, code="WRONG_KIND")
