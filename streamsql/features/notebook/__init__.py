"""Notebooks: %load_ext streamsql, cells that begin with %%streamsql, results as tables and pictures."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__)
