"""What happens in the background, as events: those who want to know subscribe."""

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
    """A Spark has started and nobody has got it yet. spark: its SparkSession."""

    spark: Any


@dataclass(frozen=True)
class SparkLost(Event):
    """Spark has ended without having been told to. cause: why, in a few words."""

    cause: str


@dataclass(frozen=True)
class ClusterNews(Event):
    """What happens to Spark's cluster, in a line."""

    words: str


E = TypeVar("E", bound=Event)


class Events:
    """Hands events to their subscribers, on the thread of the publisher and in the order of subscription."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[type[Event], tuple[Callable[[Any], None], ...]] = {}

    def subscribe(self, kind: type[E], act: Callable[[E], None]) -> Callable[[], None]:
        """Have `act` called with each event of a kind. Returns what ends that."""
        with self._lock:
            self._subscribers[kind] = (*self._subscribers.get(kind, ()), act)

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers[kind] = tuple(a for a in self._subscribers[kind] if a is not act)

        return unsubscribe

    def publish(self, event: Event) -> None:
        for act in self._subscribers.get(type(event), ()):
            act(event)
