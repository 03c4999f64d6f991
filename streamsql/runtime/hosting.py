"""The server that shares a session with clients, as the handlers of statements see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Host(Protocol):
    """A server. ending: it takes no more statements."""

    ending: bool

    def rows(self) -> list[tuple[str, str]]:
        """(property, value) of what is known of the server."""

    def stop(self) -> None:
        """Begin to end the server: its queries complete their micro-batches."""


@dataclass
class Hosting:
    """host: the server of a session; None in a console."""

    host: Host | None = None
