"""ALTER … RENAME TO: another name for a stream, a sink, a live table or a query, with all its state."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    statements="statement",
    planners="plan",
    handlers="run",
    extends={"reopened": "run:complete"},
)
