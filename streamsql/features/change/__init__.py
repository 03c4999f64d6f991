"""Staged changes of live tables: compared, promoted and rolled back."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    statements="statement",
    planners="plan",
    handlers="run",
    extends={"reopened": "swap:complete"},
)
