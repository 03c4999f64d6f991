"""`--check` where a Spark can be asked: the texts that Spark's parser does not take are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from checked_session import CheckedSession
from golden_files import fetched_files

from streamsql.errors import StreamsqlError
from streamsql.runtime.engine.spark_errors import parse_fault
from streamsql.runtime.engine.warm_parser import what_is_wrong

ROOMS = (
    "streamsql/language/",
    "streamsql/cli/",
    "streamsql/runtime/engine/warm_parser.py",
    "tests/truth/spark_statements/",
)
REPORTED = 435
"""Of the 457 texts, those that are reported when a Spark can be asked: 144 of the 151 with a syntax error. The
others depend on the value of an expression, on a catalog, or on a statement before.
"""


def parser_of(spark: Any, settings: Mapping[str, str]) -> Callable[..., StreamsqlError | None]:
    """What a session with the settings of a file says of a text, as the keeper of a warm engine answers."""
    session = spark.newSession()

    def fault(text: str, of_script: Mapping[str, str]) -> StreamsqlError | None:
        said = what_is_wrong(session, text, {**settings, **of_script})
        return parse_fault(said, text) if said else None

    return fault


def test_texts_that_spark_does_not_parse_are_reported(spark: Any) -> None:
    golden = fetched_files()
    statements = [s for file in golden.names for s in golden.statements(file) if not s.parses]
    reported = 0
    for statement in statements:
        settings = golden.settings(statement.file)
        session = CheckedSession(statement.file, settings, parser_of(spark, settings))
        assert not list(session.failures(statement))
        reported += session.fault is not None
    assert reported >= REPORTED
