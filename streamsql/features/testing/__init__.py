"""TEST … END TEST, `streamsql test` and the session for pytest."""

from streamsql.feature_registry import Feature

FEATURE = Feature(
    __name__,
    statements="statement",
    planners="plan",
    handlers="run",
    commands={"test": ("command:COMMAND", "run the tests of scripts")},
)
