"""A connector, countdown, and a statement, SHOW COUNTDOWNS."""

from streamsql.plugin import Feature

FEATURE = Feature(__name__, statements="statement", handlers="run")
