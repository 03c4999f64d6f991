"""DETACH, SHOW SERVER and STOP SERVER."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.language.statements.base import Statement


@dataclass(frozen=True, kw_only=True)
class Detach(Statement, topic="server", not_on_connect="detach", read_only=True):
    pass


@dataclass(frozen=True, kw_only=True)
class ShowServer(Statement, topic="server", not_on_connect="detach"):
    pass


@dataclass(frozen=True, kw_only=True)
class StopServer(Statement, topic="server", not_on_connect="detach", read_only=False):
    pass
