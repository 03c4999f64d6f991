"""A streaming query is started, and forgotten."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import evaluate, run
from streamsql.catalog import Sink, Stream
from streamsql.connectors.registry import connector
from streamsql.errors import Cancelled, EngineFault, RuleFault
from streamsql.language.statements.base import Name
from streamsql.plan import plans
from streamsql.plan.rules import Choice
from streamsql.runtime.changed import Folder, check_unchanged, facts_now
from streamsql.runtime.faults import query_fault
from streamsql.runtime.helpers import helper
from streamsql.runtime.packages import is_there
from streamsql.runtime.paths import check_log
from streamsql.runtime.queries import POLL
from streamsql.runtime.reach import check_servers
from streamsql.runtime.running import Running
from streamsql.runtime.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.store import check_secrets
from streamsql.runtime.subjects import register_schemas
from streamsql.runtime.topics import check_sink_topics

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def start_query(session: Session, made: plans.Run, *, replaces: bool = False) -> Running:
    """Start a query; one that it replaces is ended only once nothing speaks against the new one."""
    with session.queries.starting:
        return _start(session, made, replaces)


def _start(session: Session, made: plans.Run, replaces: bool) -> Running:
    entries: tuple[Stream | Sink, ...] = (*made.reads.streams, *(t.sink for t in made.targets))
    check_secrets(entries)
    check_servers(entries)
    env = session.env(made.program + made.writer("append"), made.reads)
    check_drivers(session, (t.sink for t in made.targets))
    check_sink_topics(session.spark, (t.sink for t in made.targets), session.queries.cancelled)
    folder = Folder(session.spark, made.checkpoint)
    anew = replaces or made.begins in ("now", "beginning")
    begun = -1 if anew else folder.newest("offsets")
    check_logs(session, (t.sink for t in made.targets), keeps=not made.feeds_batches, begun=begun)
    env["LiveRows"] = helper("LiveRows")  # with pyarrow, which a prompt must not wait for
    with session.own_state_provider(made.program):
        choice = session.queries.prepare(made, env, fresh=replaces)
        facts, notes = None, tuple[str, ...]()
        if not made.transient:
            facts = facts_now(made, choice.mode, env["result"])
        if facts and not anew:
            known = made.query.name.casefold() in session.catalog.queries
            notes = check_unchanged(made, folder, facts, session.spark.conf, known=known)
        register_schemas(((t.sink, t.rows) for t in made.targets), env)
        if replaces:
            forget_query(session, made.query.name)
        _set_checkpoint_manager(session, made.checkpoint)
        if made.begins in ("now", "beginning"):
            notes = _begin_anew(session, made, choice, env, folder)
        for table, step in zip(made.live, made.keeping(choice.mode), strict=True):
            # A query that goes on feeds the rows that are there.
            known = session.live.get(table.name.casefold())
            rows = evaluate(step.node, env) if known is None else known
            env[step.name] = rows
            if made.transient:
                session.live[table.name.casefold()] = rows
            elif known is None:
                session.live.begin(table.name.casefold(), rows)
        code = session.modules.digests(made.reads.functions)
        running = session.queries.launch(made, env, choice, facts, code)
        running.notes = (*notes, *running.notes)
    if not made.transient:
        session.kept.follow(running)
    return running


def _begin_anew(
    session: Session, made: plans.Run, choice: Choice, env: dict[str, Any], folder: Folder
) -> tuple[str, ...]:
    """Put an old checkpoint aside and forget the rows that it fed; FROM NOW: pass over the input that is
    there. Returns what is to be told.
    """
    aside = folder.set_aside()
    for table in made.live:
        session.live.forget(table.name.casefold())
    if made.begins == "now":
        _pass_over(session, made, choice, env)
    return (f"the checkpoint before is kept as {aside}",) if aside else ()


def _pass_over(session: Session, made: plans.Run, choice: Choice, env: dict[str, Any]) -> None:
    """Bring a new checkpoint to where the input ends now: see Run.passing_over."""
    *steps, last = made.passing_over(choice.mode)
    run(tuple(steps), env)
    if _reads_more(env["result"]._jdf.queryExecution().analyzed()):
        raise RuleFault(
            "FROM NOW takes queries over streams of the console only",
            detail="this one reads a stream that Spark knows by itself",
            hint="CREATE STREAM … USING … for it, or leave FROM NOW out",
            span=made.body_span if made.body_span.end else None,
        )
    run((last,), env)
    handle = env["query"]
    try:
        while not handle.awaitTermination(POLL):
            if session.queries.cancelled.is_set():
                raise Cancelled("cancelled")
    except Cancelled:
        handle.stop()
        Folder(session.spark, made.checkpoint).set_aside()
        raise
    except Exception as error:
        raise query_fault(error, made.query.name) from error
    run(made.program, env)


def _reads_more(plan: Any) -> bool:
    """Whether a plan has a streaming source whose rows are not left out."""
    if not plan.isStreaming() or (
        plan.getClass().getSimpleName() == "Filter" and plan.condition().sql() == "false"
    ):
        return False
    children = plan.children()
    if not children.size():
        return True
    return any(_reads_more(children.apply(i)) for i in range(children.size()))


def forget_query(session: Session, name: str) -> None:
    """Stop a query, drop its definition, the console's own checkpoint and the rows it fed."""
    running = session.queries.all.get(name.casefold())
    if running:
        session.queries.stop(running)
        session.queries.all.pop(name.casefold(), None)
    session.queries.failures.pop(name.casefold(), None)
    session.kept.forget(name)
    found = session.catalog.queries.pop(name.casefold(), None)
    if found:
        for fed in found.sinks:
            session.live.forget(fed.casefold())
        shutil.rmtree(Path(session.places.checkpoint(found.name)).parent, ignore_errors=True)


def check_logs(session: Session, sinks: Iterable[Sink], *, keeps: bool, begun: int = -1) -> None:
    """Raise RuleFault when one way of writing files would hide what another way has written, or what was
    written before hide what is to come. begun: the newest micro-batch of the query's checkpoint.
    """
    for found in sinks:
        if found.connector != "table":
            check_log(session.spark, found, connector(Name(found.connector)), keeps=keeps, begun=begun)


def check_drivers(session: Session, sinks: Iterable[Sink]) -> None:
    """Raise EngineFault when Spark's JVM has not the driver that a sink names."""
    for found in sinks:
        wanted = connector(Name(found.connector)).driver(found) if found.connector != "table" else ""
        if wanted and not is_there(session.spark, wanted):
            raise EngineFault(
                f"the sink {found.name} needs the driver {wanted}",
                hint="streamsql --packages group:name:version …, or --jars FILE",
            )


def _set_checkpoint_manager(session: Session, checkpoint: str) -> None:
    """The fast manager promises enough on a local file system only."""
    key = "spark.sql.streaming.checkpointFileManagerClass"
    if session.settings.start_conf().get(key) != LOCAL_CHECKPOINTS:
        return
    remote = "://" in checkpoint and not checkpoint.startswith("file:")
    if remote:
        session.spark.conf.unset(key)
    else:
        session.spark.conf.set(key, LOCAL_CHECKPOINTS)
