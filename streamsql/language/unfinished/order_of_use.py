"""The order in which keywords are offered where many are possible: what is used most stands first."""

from __future__ import annotations

from collections.abc import Iterable

from streamsql.language.tokens import Token

_USED_MOST = {
    "": "SELECT CREATE SHOW INSERT DESCRIBE WATCH WHY STOP START DROP PREVIEW EXPLAIN SET HELP COPY",
    "SHOW": "QUERIES TABLES STREAMS LIVE SINKS PROGRESS CONNECTORS CREATE VIEWS FUNCTIONS BATCHES LATENESS",
    "SHOW CREATE": "STREAM LIVE SINK TABLE FUNCTION TABLES",
    "DESCRIBE": "QUERY STREAM LIVE SINK CONNECTOR",
    "DESC": "QUERY STREAM LIVE SINK CONNECTOR",
    "CREATE": "STREAM LIVE SINK TABLE TEMPORARY FUNCTION VIEW OR",
    "CREATE OR REPLACE": "STREAM LIVE SINK TEMPORARY FUNCTION",
    "DROP": "QUERY STREAM LIVE SINK TABLE VIEW FUNCTION",
}
"""By the words before the cursor; the others follow in the order of the grammar."""


def in_order_of_use(expected: Iterable[str], before: list[Token]) -> list[str]:
    """Expected items, keywords in quotes and terminals, with the keywords that are used most first."""
    first = _USED_MOST.get(" ".join(t.upper for t in before[:4]), "").split()
    place = {word: number for number, word in enumerate(first)}
    return sorted(expected, key=lambda item: place.get(item.strip("'").partition(" ")[0], len(place)))
