"""The parts of a session, which the handlers of statements work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamsql.calls import run
from streamsql.catalog import Catalog, CurrentCatalog
from streamsql.connectors.base import Places
from streamsql.language.statements.base import Statement
from streamsql.plan import planner, plans
from streamsql.plan.context import Server
from streamsql.query_facts import QueryFacts
from streamsql.runtime.checkpoints.batch_history import BatchHistories
from streamsql.runtime.checkpoints.checkpoint_files import local_folder
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.events import Event, Events, SparkLost, SparkStarted
from streamsql.runtime.engine.kept_tables import create_again, is_table
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.package_loader import Packages
from streamsql.runtime.engine.temporary_views import Deferred, RegisteredRelations, TemporaryViews
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.live.recorded_progress import Recorded, of_changes, of_checkpoint, of_late_rows
from streamsql.runtime.live.refresh_scheduler import Refreshes
from streamsql.runtime.preflight.function_kinds import Modules
from streamsql.runtime.queries.facts import facts_of, shown_watermark
from streamsql.runtime.queries.program_parts import QueryParts
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace.read_only import SharedTables
from streamsql.runtime.workspace.session_workspace import SessionWorkspace
from streamsql.runtime.workspace.store import Store

if TYPE_CHECKING:
    from streamsql.server import listener


@dataclass(frozen=True)
class StatementBegins(Event):
    """A statement is about to be planned."""


@dataclass
class Hosting:
    """host: the server of a session; None in a console."""

    host: listener.Server | None = None


@dataclass(frozen=True)
class SessionParts(QueryParts):
    """All parts of a session. store: what the workspace persists; None without a workspace. hosting: the
    server that shares the session with clients, if there is one. companions: what features keep beside the
    session, by their names.
    """

    store: Store | None
    temporary: TemporaryViews
    workspace: SessionWorkspace
    hosting: Hosting = field(default_factory=Hosting, kw_only=True)
    companions: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def facts(self, query: str, zone: str = "") -> QueryFacts:
        """The facts of a query: of its newest run here, or as they were when it ran last. zone: the session
        time zone, for the watermark.
        """
        running = self.queries.all.get(query.casefold())
        if running is not None:
            return facts_of(running, zone)
        past, account = self.workspace.past(query), self.histories.of(query).account()
        watermark = shown_watermark(account, zone)
        return QueryFacts(
            query, past.status, account, batch=past.batch, watermark=watermark, error=past.error
        )


def _places(config: Config) -> Places:
    if config.read_only and config.store:
        return Places(str(config.store.folder / "run"), str(config.folder))
    return Places(str(config.folder))


def _live_tables(
    config: Config, places: Places, current: CurrentCatalog, server: Callable[[], Server | None]
) -> LiveTables:
    def feeding(name: str) -> str:
        writers = current.snapshot.writers_of(name)
        return writers[0].owner or writers[0].name if writers else name

    tables = SharedTables if config.read_only else LiveTables

    def home(name: str) -> str:
        writers = current.snapshot.writers_of(name)
        return places.rows(name, writers[0].name) if len(writers) == 1 else ""

    return tables(
        home if config.store else None,
        lambda name: name in current.snapshot.sinks,
        feeding,
        lambda name: _recorded(name, current.snapshot, places) if server() is None else None,
    )


def _recorded(table: str, catalog: Catalog, places: Places) -> Recorded | None:
    """What the query of a live table has recorded about its micro-batches; None where that needs Spark, or
    where the rows are computed anew at each start. Raises OSError, ValueError.
    """
    writers = catalog.writers_of(table)
    if len(writers) != 1:
        return None
    query = writers[0]
    if query.inputs:
        return None if query.live_table else of_changes(Path(places.written(query.name)))
    folder = local_folder(query.checkpoint or places.checkpoint(query.name))
    of = of_late_rows if query.late.casefold() == table.casefold() else of_checkpoint
    return of(folder) if folder else None


def local_engine(config: Config, spark: Any) -> Engine:
    """Spark in a JVM of this machine. spark: a running SparkSession that the session does not own (tests)."""
    return Engine(config.settings, config.folder, config.log, config.cache, config.java, Events(), spark)


def session_parts(
    config: Config,
    engine: Engine,
    packages: type[Packages] = Packages,
    server: Callable[[], Server | None] = lambda: None,
) -> SessionParts:
    """The parts of a new session. server: the Spark Connect server behind the engine, if there is one."""
    events, current, settings, places = engine.events, CurrentCatalog(), config.settings, _places(config)
    live = _live_tables(config, places, current, server)
    queries = Queries(events, Refreshes(live, current))

    temporary = TemporaryViews(
        current, lambda statement, session, imports: _define_again(parts, statement, session, imports)
    )
    parts = SessionParts(
        cancel=CancelToken(),
        events=events,
        engine=engine,
        current=current,
        settings=settings,
        places=places,
        variables={},
        packages=packages(
            settings.start_conf, config.cache, lambda: config.preferences["offline"] == "on", engine.say
        ),
        modules=Modules(),
        live=live,
        histories=BatchHistories(places, lasting=config.store is not None),
        queries=queries,
        server=server,
        create_views=temporary.create_for,
        config=config,
        store=config.store,
        temporary=temporary,
        workspace=SessionWorkspace(
            config.store, current, settings, places, temporary, queries, read_only=config.read_only
        ),
    )
    current.subscribe(RegisteredRelations(engine).follow)
    events.subscribe(SparkStarted, lambda event: temporary.restore(event.spark))
    events.subscribe(SparkLost, lambda event: queries.lost(event.cause))
    return parts


def _define_again(parts: SessionParts, statement: Statement, session: Any, imports: bool) -> None:
    """Define a temporary view or table again, in a new Spark. imports: whether Python modules may be loaded;
    else Deferred is raised when it needs one.
    """
    plan = planner.plan(statement, parts.context())
    assert isinstance(plan, plans.Collect)
    if not imports and not parts.modules.loaded(plan.reads.functions):
        raise Deferred
    env = parts.under(CancelToken()).env(plan.program, plan.reads, session)
    if is_table(statement):
        create_again(session, plan.defines.creates, lambda: run(plan.program, env))
    else:
        run(plan.program, env)
