"""Checks that columns which are read by their names have different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamsql.errors import RuleFault, Span
from streamsql.language.tokens import quote_name


def check_names(spark: Any, names: Sequence[str], span: Span | None = None) -> None:
    """Raise RuleFault for two columns of one name, as Spark compares names: a sink could not tell them apart.
    span: of the query.
    """
    cased, seen = spark.conf.get("spark.sql.caseSensitive") == "true", set[str]()
    for name in names:
        key = name if cased else name.casefold()
        if key in seen:
            raise RuleFault(
                f"the query has two columns {name}, which the sink does not tell apart",
                hint=f"{quote_name(name)} AS {quote_name(name + '_2')}",
                span=span,
                code="DUPLICATE_NAME",
            )
        seen.add(key)
