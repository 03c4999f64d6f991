"""The session: Session.execute(statement) → Result.

The shell, a script, -e and standard input all execute their statements here. Nothing is printed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamsql.catalog import Catalog
from streamsql.connectors.base import Places
from streamsql.errors import Cancelled, StreamsqlError
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Clear, Exit
from streamsql.plan import planner, plans
from streamsql.results import Leave, Result, Text
from streamsql.runtime.checkpoints.opening import open_checkpoint
from streamsql.runtime.checkpoints.state_checks import check_states
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import Engine
from streamsql.runtime.engine.settings import Settings
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import (
    Answers,
    checkpoints,
    copies,
    definitions,
    exports,
    flush,
    help,
    lateness,
    programs,
    queries,
    settings,
    show,
    show_live_tables,
    show_queries,
    test_statements,
    verify,
    why,
)
from streamsql.runtime.live.journal import LiveTables
from streamsql.runtime.parts import SessionParts, StatementBegins, session_parts
from streamsql.runtime.queries.parts import FunctionChanged
from streamsql.runtime.queries.query_runs import Queries
from streamsql.runtime.queries.restart_supervisor import RestartSupervisor
from streamsql.runtime.queries.stop import PATIENCE
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace import read_only
from streamsql.runtime.workspace.store import LEFT

PLANS: Answers = {
    **definitions.PLANS,
    **programs.PLANS,
    **queries.PLANS,
    **flush.PLANS,
    **lateness.PLANS,
    **verify.PLANS,
    **copies.PLANS,
    **exports.PLANS,
}
DIRECT: Answers = {
    **definitions.DIRECT,
    **queries.DIRECT,
    **settings.DIRECT,
    **show.DIRECT,
    **show_live_tables.DIRECT,
    **show_queries.DIRECT,
    **why.DIRECT,
    **help.DIRECT,
    **checkpoints.DIRECT,
    **copies.DIRECT,
    **test_statements.DIRECT,
    Exit: lambda parts, statement: Leave(),
    Clear: lambda parts, statement: Text(text=""),
}


class Session:
    """The session of a prompt or a script: passes each statement to its handler, with its parts."""

    def __init__(self, config: Config, spark: Any = None) -> None:
        self.parts: SessionParts = session_parts(config, spark)
        self._supervisor = RestartSupervisor(self.parts, self.parts.workspace.save_status)

    @property
    def config(self) -> Config:
        return self.parts.config

    @property
    def catalog(self) -> Catalog:
        """The newest snapshot."""
        return self.parts.catalog

    @property
    def queries(self) -> Queries:
        return self.parts.queries

    @property
    def engine(self) -> Engine:
        return self.parts.engine

    @property
    def settings(self) -> Settings:
        return self.parts.settings

    @property
    def variables(self) -> dict[str, str]:
        return self.parts.variables

    @property
    def places(self) -> Places:
        return self.parts.places

    @property
    def live(self) -> LiveTables:
        return self.parts.live

    @property
    def spark(self) -> Any:
        """The SparkSession; waits until it has started. Raises StartFault when it could not."""
        return self.parts.spark

    def close(self, limit: float = PATIENCE, cancel: CancelToken | None = None) -> None:
        """Stop all queries, then Spark if this session started it. limit: the seconds that their
        micro-batches have to complete; cancel: aborts them.
        """
        parts = self.parts
        self._supervisor.close()
        parts.workspace.save(LEFT)
        if parts.engine.started:
            parts.queries.stop_all(limit, cancel)
            for running in parts.queries.all.values():
                running.catch_up()
        parts.queries.close()
        parts.kept.close()
        parts.engine.close()

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement. cancel: cancels it from another thread; queries keep running. Raises
        StreamsqlError, with its span in the statement's source; other queries are not affected.
        """
        parts = self.parts.under(cancel or CancelToken())
        try:
            return self._execute(statement, parts)
        except FunctionChanged:
            return self._execute(statement, parts)  # planned again, with the function's new kind

    def _execute(self, statement: Statement, parts: SessionParts) -> Result:
        parts.cancel.check()
        parts.events.publish(StatementBegins())
        if parts.config.read_only and parts.store:
            read_only.refuse(statement, parts.store.folder)
        plan = planner.plan(statement, parts.context())
        parts.cancel.check()
        try:
            result = self._dispatch(plan, statement, parts)
            news, parts.packages.news = parts.packages.news, []
            saved = parts.workspace.save() if statement.changes_workspace and plan.changes_definitions else ()
            notes = (*parts.temporary.news(), *plan.notes, *news, *saved, *result.notes)
            return replace(result, notes=notes) if notes != result.notes else result
        except StreamsqlError:
            raise
        except Exception as error:
            if parts.cancel.cancelled:
                raise Cancelled("cancelled") from None
            raise translate(error, statement, parts.catalog.relation_names()) from error

    def _dispatch(self, plan: plans.Plan, statement: Statement, parts: SessionParts) -> Result:
        if isinstance(plan, plans.Direct):
            return DIRECT[type(plan.statement)](parts, plan.statement)
        parts.temporary.check(statement, lambda: parts.spark)
        if not isinstance(plan, plans.Explain) or plan.mode != "pyspark":
            with statement.origin.errors():
                check_states(
                    statement.text,
                    lambda owner: open_checkpoint(
                        owner, parts.catalog, parts.places, parts.settings, lambda: parts.spark
                    ),
                )
        return PLANS[type(plan)](parts, plan, statement)
