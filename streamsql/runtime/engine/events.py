"""Events of the background, and their subscribers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True)
class SparkStarted(Event):
    """Spark has started and is not in use yet. spark: its SparkSession."""

    spark: Any


@dataclass(frozen=True)
class SparkLost(Event):
    """Spark has ended unexpectedly. cause: a short message; memory: whether its memory was full."""

    cause: str
    memory: bool = False


@dataclass(frozen=True)
class ClusterNews(Event):
    """A message about Spark, its cluster or what a query reads, of one line."""

    words: str


E = TypeVar("E", bound=Event)


class Events:
    """Passes events to their subscribers, on the publisher's thread and in the order of subscription."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[type[Event], tuple[Callable[[Any], None], ...]] = {}

    def subscribe(self, kind: type[E], act: Callable[[E], None]) -> Callable[[], None]:
        """Call `act` with each event of a kind. Returns the function that ends that."""
        with self._lock:
            self._subscribers[kind] = (*self._subscribers.get(kind, ()), act)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers[kind] = tuple(a for a in self._subscribers[kind] if a is not act)

        return unsubscribe

    def publish(self, event: Event) -> None:
        for act in self._subscribers.get(type(event), ()):
            act(event)
