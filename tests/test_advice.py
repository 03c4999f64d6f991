"""Advice before a query starts: planned, so that `--check` and EXPLAIN give it, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import Note, Source
from streamsql.language.parser import parse_script
from streamsql.plan.context import Context
from streamsql.plan.planner import plan

STREAMS = """CREATE STREAM a (id INT, ts TIMESTAMP, day STRING) USING values WITH WATERMARK ts DELAY '5 minutes';
CREATE STREAM b (id INT, bt TIMESTAMP) USING values; CREATE SINK o USING json OPTIONS (path 'o');
"""


def advice(statement: str) -> list[Note]:
    """The notes of the last statement, without that on the output mode."""
    context = Context(Catalog(), Places("run"))
    for parsed in parse_script(Source("a.sql", STREAMS + statement)):
        made = plan(parsed, context)
        context = replace(context, catalog=made.applied(context.catalog))
    return list(made.notes)


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        (
            "INSERT INTO o SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '10 minutes')",
            "FIRST_WINDOW",
            "that of 12:00 to 12:10 when an event of 12:15 or later arrives",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT a.id, bt FROM a JOIN b ON a.id = b.id",
            "UNBOUNDED_STATE",
            "the join keeps all rows of both streams in state: the state is unbounded. WITH WATERMARK on b, and AND ",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM a GROUP BY id",
            "WATERMARK_UNUSED",
            "GROUP BY window(ts, '1 hour'), … would bound it",
        ),
        (
            "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(day, '1 hour')",
            "TIME_AS_TEXT",
            "WITH WATERMARK to_timestamp(day) AS ts DELAY OF INTERVAL 10 MINUTES uses it as event time",
        ),
    ],
)
def test_advice_has_the_fix_typed_out(statement: str, code: str, words: str) -> None:
    notes = [n for n in advice(statement) if n.code == code]
    assert len(notes) == 1
    assert words in str(notes[0])


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE LIVE TABLE t AS SELECT id FROM a WHERE id > 1",
        "CREATE LIVE TABLE t AS SELECT id, count(*) AS n FROM b GROUP BY id",
        "CREATE LIVE TABLE t AS SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '1 hour')",
        "SELECT id, count(*) AS n FROM a GROUP BY id",
    ],
)
def test_nothing_is_said_of_a_query_that_needs_no_advice(statement: str) -> None:
    assert advice(statement) == []


def test_never_more_than_three() -> None:
    joined = "CREATE LIVE TABLE t AS SELECT DISTINCT a.id, day, bt FROM a JOIN b ON a.id = b.id"
    assert len(advice(joined)) <= 3
