"""SHOW GRAPH: what reads and writes what, down to columns."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__, statements="statement", handlers="run", extends={"graph": "graph:graph_of"})
