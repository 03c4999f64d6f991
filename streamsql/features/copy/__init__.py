"""COPY TO and FROM files, and SUMMARIZE: the rows of a query as a whole."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
