"""The clauses of definitions, written so that they are read back as the same."""

from __future__ import annotations

from streamsql.language.statements.base import Column, Restart, Trigger, Watermark
from streamsql.language.tokens import PLAIN_NAME, quote, quote_name, quote_option
from streamsql.secrets import redact_option

LINE = 80
"""Longer lists of columns are written with a line for each."""


def columns_sql(columns: tuple[Column, ...]) -> str:
    if not columns:
        return ""
    listed = [column_sql(c) for c in columns]
    flat = ", ".join(listed)
    return f" ({flat})" if len(flat) <= LINE else " (\n    " + ",\n    ".join(listed) + "\n)"


def column_sql(column: Column) -> str:
    """One column as DDL, as CREATE and Spark's schema texts take it."""
    extra = ("" if column.nullable else " NOT NULL") + (
        f" COMMENT {quote(column.comment)}" if column.comment else ""
    )
    return f"{quote_name(column.name)} {column.type}{extra}"


def options_sql(options: tuple[tuple[str, str], ...]) -> str:
    if not options:
        return ""
    shown = ((k, redact_option(k, v)) for k, v in options)
    return "OPTIONS (" + ", ".join(f"{key_sql(k)} {quote_option(v)}" for k, v in shown) + ")"


def key_sql(key: str) -> str:
    """The key of an option or setting as it must be written: bare when its parts are plain words."""
    return key if all(map(PLAIN_NAME.match, key.split("."))) else quote(key)


def setting_sql(key: str, value: str) -> str:
    """The statement that makes a setting."""
    return f"SET {key_sql(key)} = {quote(value)}"


def watermark_sql(watermark: Watermark | None) -> str:
    if watermark is None:
        return ""
    computed = f"{watermark.computed.text} AS " if watermark.computed else ""
    return f"WITH WATERMARK {computed}{quote_name(watermark.column.value)} DELAY '{watermark.delay}'"


def comment_sql(comment: str) -> str:
    return f"COMMENT {quote(redact_option('comment', comment))}" if comment else ""


def clauses_sql(mode: str, trigger: Trigger | None, restart: Restart | None, late: str) -> list[str]:
    """The clauses that all statements which start a query share."""
    clauses = [f"OUTPUT MODE {mode.upper()}"] if mode else []
    if trigger:
        clauses.append(f"TRIGGER {trigger.sql()}")
    if restart:
        clauses.append(f"RESTART {restart.sql()}")
    return [*clauses, f"ON LATE INTO {quote_name(late)}"] if late else clauses
