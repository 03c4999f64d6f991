"""Statements that run a program once: SELECT, writes, EXPLAIN, PREVIEW, SHOW TOPICS."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamsql.calls import Assign, evaluate, run
from streamsql.catalog import Table
from streamsql.connectors.packages import PACKAGES
from streamsql.errors import EngineFault
from streamsql.language.statements.base import Statement
from streamsql.plan import plans
from streamsql.results import Done, Result, Text
from streamsql.runtime.explain import program_text, spark_plan
from streamsql.runtime.preview import Looking
from streamsql.runtime.reach import check_servers
from streamsql.runtime.starting import check_drivers, check_logs
from streamsql.runtime.statements import Answers
from streamsql.runtime.subjects import asked_anew
from streamsql.runtime.topics import check_sink_topics, show_topics
from streamsql.runtime.values import collect

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def _collect_plan(session: Session, made: plans.Collect, statement: Statement) -> Result:
    began = time.monotonic()
    with session.own_state_provider(made.program):
        return _collected(
            session, made, run(made.program, session.env(made.program, made.reads)), statement, began
        )


def _collected(
    session: Session, made: plans.Collect, frame: Any, statement: Statement, began: float
) -> Result:
    if made.creates:
        streaming = session.spark.table(made.creates).isStreaming
        session.catalog.tables[made.creates.casefold()] = Table(made.creates, streaming)
    session.temporary.remember(statement, made.creates)
    if frame.isStreaming:
        raise EngineFault(
            "this query reads a stream that Spark knows and the console does not",
            hint="CREATE STREAM name AS SELECT … FROM STREAM table;  then SELECT from that",
        )
    rows = collect(frame)
    if not rows.columns:
        return Done(message="done")
    return replace(rows, seconds=time.monotonic() - began)


def _write(session: Session, made: plans.Write, statement: Statement) -> Result:
    check_servers(made.sinks)
    env = session.env(made.program, made.reads)
    check_drivers(session, made.sinks)
    check_logs(session, made.sinks, keeps=False)
    check_sink_topics(session.spark, made.sinks, session.queries.cancelled)
    with session.own_state_provider(made.program), asked_anew():
        run(made.program, env)
    return Done(message=made.message)


def _explain(session: Session, made: plans.Explain, statement: Statement) -> Result:
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
            return Text(text="\n".join(f"-- {n}\n{spark_plan(f, made.mode)}" for n, f in frames.items()))
        return Text(text=spark_plan(env["result"], made.mode))


def _preview(session: Session, made: plans.Preview, statement: Statement) -> Result:
    return Looking(session, session.context(), session.env).preview(made)


def _topics(session: Session, made: plans.Topics, statement: Statement) -> Result:
    session.packages.load(session.spark, PACKAGES["kafka"])
    return show_topics(session.spark, made, session.queries.cancelled)


PLANS: Answers = {
    plans.Collect: _collect_plan,
    plans.Write: _write,
    plans.Explain: _explain,
    plans.Preview: _preview,
    plans.Topics: _topics,
}
