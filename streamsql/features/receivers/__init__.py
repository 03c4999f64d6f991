"""Streams whose messages the console receives itself: http, sse and websocket."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    connectors="connectors",
    extends={
        "session parts": "receivers:begin",
        "received stream": "receivers:prepare",
        "source state": "receivers:state",
    },
)
