"""VERIFY: the rows of a query against its SELECT as a batch."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
