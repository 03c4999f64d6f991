"""A streaming query is started, and forgotten."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from streamsql.calls import evaluate
from streamsql.catalog import Sink, Stream
from streamsql.connectors.registry import connector
from streamsql.errors import EngineFault
from streamsql.language.statements.base import Name
from streamsql.plan import plans
from streamsql.runtime.helpers import helper
from streamsql.runtime.packages import is_there
from streamsql.runtime.paths import check_log
from streamsql.runtime.queries import Running
from streamsql.runtime.reach import check_servers
from streamsql.runtime.settings import LOCAL_CHECKPOINTS
from streamsql.runtime.store import check_secrets

if TYPE_CHECKING:
    from streamsql.runtime.session import Session


def start_query(session: Session, made: plans.Run, *, replaces: bool = False) -> Running:
    """Start a query; one that it replaces is ended only once nothing speaks against the new one."""
    entries: tuple[Stream | Sink, ...] = (*made.reads.streams, *(t.sink for t in made.targets))
    check_secrets(entries)
    check_servers(entries)
    env = session.env(made.program + made.writer("append"), made.reads)
    check_drivers(session, (t.sink for t in made.targets))
    check_logs(session, (t.sink for t in made.targets), keeps=not made.feeds_batches)
    env["LiveRows"] = helper("LiveRows")  # with pyarrow, which a prompt must not wait for
    with session.own_state_provider(made.program):
        choice = session.queries.prepare(made, env, fresh=replaces)
        if replaces:
            forget_query(session, made.query.name)
        _set_checkpoint_manager(session, made.checkpoint)
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
        running = session.queries.launch(made, env, choice, code)
    if not made.transient:
        session.kept.follow(running)
    return running


def forget_query(session: Session, name: str) -> None:
    """Stop a query, drop its definition, the console's own checkpoint and the rows it fed."""
    running = session.queries.all.pop(name.casefold(), None)
    if running:
        session.queries.stop(running)
    session.kept.forget(name)
    found = session.catalog.queries.pop(name.casefold(), None)
    if found:
        for fed in found.sinks:
            session.live.forget(fed.casefold())
        shutil.rmtree(Path(session.places.checkpoint(found.name)).parent, ignore_errors=True)


def check_logs(session: Session, sinks: Iterable[Sink], *, keeps: bool) -> None:
    """Raise RuleFault when one way of writing files would hide what another way has written."""
    for found in sinks:
        if found.connector != "table":
            check_log(session.spark, found, connector(Name(found.connector)), keeps=keeps)


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
