"""Proposals after a failure, and the dialect that the analyst has chosen, with what the session knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streamsql.errors import StreamsqlError
from streamsql.guard import informing
from streamsql.language.dialects.proposals_after_failure import Judge, offered
from streamsql.language.dialects.translation import Translation, is_readable
from streamsql.plan.chosen_dialect import event_time, translation_of
from streamsql.runtime.parts import SessionParts


def with_proposal(error: StreamsqlError, text: str, parts: SessionParts) -> StreamsqlError:
    """The error of a statement, with a proposal where the statement is one of another dialect."""
    judge = partial(_judge, parts)
    return informing(lambda: offered(error, text, judge()), error)


def _judge(parts: SessionParts) -> Judge:
    parses: Callable[[str], bool] = is_readable
    if parts.engine.started and hasattr(parts.spark, "_jsparkSession"):
        parses = _by_spark(parts)
    return Judge(parses, partial(functions_of, parts), partial(event_time, parts.catalog))


def _by_spark(parts: SessionParts) -> Callable[[str], bool]:
    """Whether Spark's parser takes a query."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    parser = parts.spark._jsparkSession.sessionState().sqlParser()

    def parses(query: str) -> bool:
        try:
            parser.parsePlan(query)
        except (PySparkException, Py4JJavaError):
            return False
        return True

    return parses


def functions_of(parts: SessionParts) -> frozenset[str]:
    """The names, folded, of the user's functions: those of the console, and Spark's own."""
    names = set(parts.catalog.functions)
    if parts.engine.started:
        rows = parts.spark.sql("SHOW USER FUNCTIONS").collect()
        names |= {row[0].rpartition(".")[2].casefold() for row in rows}
    return frozenset(names)


def chosen_translation(parts: SessionParts) -> Translation | None:
    """The translation of the dialect that is chosen; None for Spark's."""
    preferences = parts.config.preferences
    if preferences["dialect"] == "spark":
        return None
    return translation_of(preferences["dialect"], parts.catalog, functions_of(parts))
