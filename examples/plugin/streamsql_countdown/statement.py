"""SHOW COUNTDOWNS, whose words are in countdown.gram and whose page is countdown.md."""

from dataclasses import dataclass

from streamsql.plugin import Statement


@dataclass(frozen=True, kw_only=True)
class ShowCountdowns(Statement, topic="countdown"):
    pass
