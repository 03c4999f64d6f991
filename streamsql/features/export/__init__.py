"""EXPORT QUERY: a folder with which spark-submit runs queries without the console."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", planners="plan", handlers="run")
