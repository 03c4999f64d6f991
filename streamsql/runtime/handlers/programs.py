"""Statements that run a program once: SELECT, writes, EXPLAIN, PREVIEW, SHOW TOPICS."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

from streamsql.calls import Assign, evaluate, run
from streamsql.catalog import Table
from streamsql.connectors.packages import PACKAGES
from streamsql.errors import EngineFault
from streamsql.language.redaction import redact_any
from streamsql.language.statements.base import Statement
from streamsql.plan import plans
from streamsql.results import Done, Result, Text
from streamsql.runtime.engine.row_values import collect
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import without_secrets
from streamsql.runtime.handlers.preview import Looking
from streamsql.runtime.parts import SessionParts
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.preflight.kafka_topics import check_sink_topics, show_topics
from streamsql.runtime.preflight.registry_subjects import asked_anew
from streamsql.runtime.program_source import program_text, spark_plan
from streamsql.runtime.queries.start import check_drivers, check_logs

_TELLS = re.compile(r"\s*(SHOW|DESCRIBE|DESC|EXPLAIN|SET)\b", re.IGNORECASE)
"""Statements of Spark's whose rows tell of settings and definitions, not of data."""


def _collect_plan(session: SessionParts, made: plans.Collect, statement: Statement) -> Result:
    began = time.monotonic()
    with session.own_state_provider(made.program):
        return _collected(
            session, made, run(made.program, session.env(made.program, made.reads)), statement, began
        )


def _collected(
    session: SessionParts, made: plans.Collect, frame: Any, statement: Statement, began: float
) -> Result:
    if made.creates:
        streaming = session.spark.table(made.creates).isStreaming
        session.define(Table(made.creates, streaming))
    session.temporary.remember(statement, made.creates)
    if frame.isStreaming:
        raise EngineFault(
            "this query reads a stream that Spark knows and the console does not",
            hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
        )
    rows = collect(frame)
    if not rows.columns:
        return Done(message="done")
    if _TELLS.match(statement.text):
        rows = without_secrets(rows)
    return replace(rows, seconds=time.monotonic() - began)


def _write(session: SessionParts, made: plans.Write, statement: Statement) -> Result:
    check_servers(made.sinks)
    env = session.env(made.program, made.reads)
    check_drivers(session, made.sinks)
    check_logs(session, made.sinks, keeps=False)
    check_sink_topics(session.spark, made.sinks, session.cancel)
    with session.own_state_provider(made.program), asked_anew():
        run(made.program, env)
    return Done(message=made.message)


def _explain(session: SessionParts, made: plans.Explain, statement: Statement) -> Result:
    if made.mode == "pyspark":
        return Text(
            text=program_text(made.plan, session.context(), session.settings, session.packages.for_program)
        )
    assert isinstance(made.plan, (plans.Collect, plans.Write, plans.Run))
    program = made.plan.program
    if isinstance(made.plan, plans.Write):
        program = tuple(step for step in program if step.name)
    env = session.env(program, made.plan.reads)
    with session.own_state_provider(program):
        run((*program, Assign("", program[-1].node)), env)
        if isinstance(made.plan, plans.Run) and any(t.select for t in made.plan.targets):
            frames = {t.sink.name: evaluate(t.rows, env) for t in made.plan.targets}
            plans_of = (f"-- {n}\n{spark_plan(f, made.mode)}" for n, f in frames.items())
            return Text(text=redact_any("\n".join(plans_of)))
        return Text(text=redact_any(spark_plan(env["result"], made.mode)))


def _preview(session: SessionParts, made: plans.Preview, statement: Statement) -> Result:
    return Looking(session, session.context()).preview(made)


def _topics(session: SessionParts, made: plans.Topics, statement: Statement) -> Result:
    session.packages.load(session.spark, PACKAGES["kafka"], session.cancel)
    return show_topics(session.spark, made, session.cancel)


PLANS: Answers = {
    plans.Collect: _collect_plan,
    plans.Write: _write,
    plans.Explain: _explain,
    plans.Preview: _preview,
    plans.Topics: _topics,
}
