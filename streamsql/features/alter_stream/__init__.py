"""ALTER STREAM: new columns of a stream, which the queries that read it take up from their checkpoints."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
