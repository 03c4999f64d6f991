"""How receiving goes, for streams whose messages the console receives itself."""

from __future__ import annotations

from dataclasses import dataclass

from streamsql.definitions import Stream
from streamsql.feature_registry import extensions
from streamsql.runtime.parts import SessionParts


@dataclass(frozen=True)
class SourceState:
    """facts: what DESCRIBE STREAM shows; fault: why nothing comes in, "" if there is no reason; url: where
    messages come from, or are sent to; empty: whether there is no message at all.
    """

    facts: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    url: str = ""
    empty: bool = False


def source_state(parts: SessionParts, stream: Stream) -> SourceState | None:
    """The state of a stream; None for one that does not receive, or not in this session."""
    states = (state(parts, stream) for state in extensions("source state"))
    return next(filter(None, states), None)
