"""A streaming query is started, and forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamsql.calls import evaluate, run
from streamsql.catalog import Sink, Stream
from streamsql.connectors.option_values import check_secrets
from streamsql.connectors.registry import connector
from streamsql.errors import Cancelled, EngineFault, RuleFault
from streamsql.language.statements.base import Name
from streamsql.plan import plans
from streamsql.plan.streaming.rules import Choice
from streamsql.runtime.checkpoints.query_marker import Folder, check_unchanged, facts_now
from streamsql.runtime.engine.package_loader import is_there
from streamsql.runtime.engine.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.engine.spark_errors import query_fault
from streamsql.runtime.preflight.connectivity import check_servers
from streamsql.runtime.preflight.kafka_topics import check_sink_topics
from streamsql.runtime.preflight.local_paths import check_log
from streamsql.runtime.preflight.registry_subjects import register_schemas
from streamsql.runtime.program_helpers import helper
from streamsql.runtime.queries.parts import QueryParts
from streamsql.runtime.queries.query_runs import POLL
from streamsql.runtime.queries.run import Running
from streamsql.runtime.workspace.owned_folders import claim, private_folder, remove


def start_query(session: QueryParts, made: plans.Run, *, replaces: bool = False) -> Running:
    """Start a query; one that it replaces is ended only once nothing speaks against the new one."""
    with session.queries.starting:
        return _start(session, made, replaces)


def _start(session: QueryParts, made: plans.Run, replaces: bool) -> Running:
    entries: tuple[Stream | Sink, ...] = (*made.reads.streams, *(t.sink for t in made.targets))
    check_secrets(entries, made.query.text)
    check_servers(entries)
    env = session.env(made.program + made.writer("append"), made.reads)
    check_drivers(session, (t.sink for t in made.targets))
    check_sink_topics(session.spark, (t.sink for t in made.targets), session.cancel)
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
        session.cancel.check()  # from here on the old query, or its checkpoint, makes way
        if replaces:
            forget_query(session, made.query.name)
        if not made.query.checkpoint:
            claim(Path(made.checkpoint).parent)
        _set_checkpoint_manager(session, made.checkpoint)
        if made.begins in ("now", "beginning"):
            notes = _begin_anew(session, made, choice, env, folder)
        else:
            _make_private(made)
        _keep_rows(session, made, choice, env)
        code = session.modules.digests(made.reads.functions)
        running = session.queries.launch(made, env, choice, facts, code)
        running.notes = (*notes, *running.notes)
    if not made.transient:
        running.reports.tell(session.kept.follow(running.name))
    return running


def _keep_rows(session: QueryParts, made: plans.Run, choice: Choice, env: dict[str, Any]) -> None:
    """Give the program the rows of the live tables that the query feeds: those that are there, or new."""
    for table, step in zip(made.live, made.keeping(choice.mode), strict=True):
        name = table.name.casefold()
        known = session.live.get(name)
        rows = evaluate(step.node, env) if known is None else known
        env[step.name] = rows
        if made.transient:
            session.live[name] = rows
        elif known is None:
            session.live.begin(name, rows)


def _make_private(made: plans.Run) -> None:
    """Make the checkpoint's folder, which only its owner may read; Spark would let others."""
    if not _is_url(made.checkpoint):
        private_folder(Path(made.checkpoint))


def _begin_anew(
    session: QueryParts, made: plans.Run, choice: Choice, env: dict[str, Any], folder: Folder
) -> tuple[str, ...]:
    """Put an old checkpoint aside and forget the rows that it fed; FROM NOW: skip the input that is
    there. Returns notes.
    """
    aside = folder.set_aside()
    _make_private(made)
    for table in made.live:
        session.live.forget(table.name.casefold())
    if made.begins == "now":
        _pass_over(session, made, choice, env)
    return (f"the old checkpoint is kept as {aside}",) if aside else ()


def _pass_over(session: QueryParts, made: plans.Run, choice: Choice, env: dict[str, Any]) -> None:
    """Bring a new checkpoint to where the input ends now: see Run.passing_over."""
    *steps, last = made.passing_over(choice.mode)
    run(tuple(steps), env)
    if _reads_more(env["result"]._jdf.queryExecution().analyzed()):
        raise RuleFault(
            "FROM NOW takes queries over streams of the console only",
            detail="this one reads a stream that only Spark knows",
            hint="CREATE STREAM … USING … for it, or leave FROM NOW out",
            span=made.body_span,
        )
    run((last,), env)
    handle = env["query"]
    try:
        while not handle.awaitTermination(POLL):
            session.cancel.check()
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


def forget_query(session: QueryParts, name: str) -> None:
    """Stop a query, drop its definition, the console's own checkpoint and the rows it fed."""
    running = session.queries.all.get(name.casefold())
    if running:
        session.queries.stop(running, session.cancel)
        session.queries.forget(name)
    session.queries.failures.pop(name.casefold(), None)
    session.kept.forget(name)
    found = session.catalog.queries.get(name.casefold())
    if found:
        session.undefine("queries", name)
        for fed in found.sinks:
            session.live.forget(fed.casefold())
        remove(Path(session.places.checkpoint(found.name)).parent)


def check_logs(session: QueryParts, sinks: Iterable[Sink], *, keeps: bool, begun: int = -1) -> None:
    """Raise RuleFault when one way of writing files would hide what another way has written, or what was
    written before hide what is to come. begun: the newest micro-batch of the query's checkpoint.
    """
    for found in sinks:
        if found.connector != "table":
            check_log(session.spark, found, connector(Name(found.connector)), keeps=keeps, begun=begun)


def check_drivers(session: QueryParts, sinks: Iterable[Sink]) -> None:
    """Raise EngineFault when Spark's JVM has not the driver that a sink names."""
    for found in sinks:
        wanted = connector(Name(found.connector)).driver(found) if found.connector != "table" else ""
        if wanted and not is_there(session.spark, wanted):
            raise EngineFault(
                f"the sink {found.name} needs the driver {wanted}",
                hint="streamsql --packages group:name:version …, or --jars FILE",
            )


def _set_checkpoint_manager(session: QueryParts, checkpoint: str) -> None:
    """The fast manager promises enough on a local file system only."""
    key = "spark.sql.streaming.checkpointFileManagerClass"
    if session.settings.start_conf().get(key) != LOCAL_CHECKPOINTS:
        return
    if _is_url(checkpoint) and not checkpoint.startswith("file:"):
        session.spark.conf.unset(key)
    else:
        session.spark.conf.set(key, LOCAL_CHECKPOINTS)


def _is_url(path: str) -> bool:
    return "://" in path or path.startswith("file:")
