"""DETACH, SHOW SERVER and STOP SERVER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamsql.language.statements.base import Statement


@dataclass(frozen=True, kw_only=True)
class Detach(Statement):
    topic: ClassVar[str] = "server"
    not_on_connect: ClassVar[str] = "detach"
    read_only: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class ShowServer(Statement):
    topic: ClassVar[str] = "server"
    not_on_connect: ClassVar[str] = "detach"


@dataclass(frozen=True, kw_only=True)
class StopServer(Statement):
    topic: ClassVar[str] = "server"
    not_on_connect: ClassVar[str] = "detach"
    read_only: ClassVar[bool] = False
