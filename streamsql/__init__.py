"""A SQL-first console for Apache Spark Structured Streaming."""

__version__ = "0.2.0"
"""The version of this package: the one place where it is written; SemVer (HELP releases)."""
