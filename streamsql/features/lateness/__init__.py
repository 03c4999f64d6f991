"""SHOW LATENESS: how late the rows of a stream arrive."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
