"""The DB-API 2.0 of Python (PEP 249), and a dialect of SQLAlchemy."""

from streamsql.feature_registry import Feature

FEATURE = Feature(__name__)
