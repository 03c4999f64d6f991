"""PREVIEW and SHOW TOPICS: what a source holds, before a stream is created."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
