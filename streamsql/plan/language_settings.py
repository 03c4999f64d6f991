"""Settings of Spark that change what the text of a query means."""

from __future__ import annotations

from collections.abc import Mapping

QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"

_PLANNED_WITH = {
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
        name for name, value in _PLANNED_WITH.items() if settings.get(name, value).strip().casefold() != value
    )
