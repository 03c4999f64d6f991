"""The session: Session.execute(statement) → Result.

The shell, a script, -e and standard input all execute their statements here. Nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from streamsql.catalog import Catalog
from streamsql.errors import Cancelled, EngineFault, StreamsqlError
from streamsql.feature_registry import extensions, handlers
from streamsql.guard import informing
from streamsql.language.dialects.proposals_after_failure import Judge, offered
from streamsql.language.dialects.translation import Translation, is_readable
from streamsql.language.statements.base import Statement
from streamsql.language.statements.session import Clear, Exit
from streamsql.plan import planner, plans
from streamsql.plan.chosen_dialect import event_time, translation_of
from streamsql.plan.resolver import list_columns
from streamsql.plan.sink_relations import read_of_sink
from streamsql.query_facts import QueryFacts
from streamsql.results import Leave, Result, Text
from streamsql.runtime import session_summary
from streamsql.runtime.background_news import BackgroundNews
from streamsql.runtime.checkpoints.hadoop_files import open_checkpoint
from streamsql.runtime.checkpoints.state_checks import check_states
from streamsql.runtime.console_session import Activity, Summary
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.spark_errors import may_be_lost, spark_lost, translate
from streamsql.runtime.handlers import (
    Answers,
    checkpoints,
    create_drop,
    flush,
    help,
    programs,
    server_statements,
    set_reset,
    show,
    show_live_tables,
    show_queries,
    start_stop,
)
from streamsql.runtime.handlers.info_table import session_zone
from streamsql.runtime.parts import SessionParts, StatementBegins, local_engine, session_parts
from streamsql.runtime.queries.program_parts import FunctionChanged
from streamsql.runtime.queries.restart_supervisor import RestartSupervisor
from streamsql.runtime.queries.stop import PATIENCE
from streamsql.runtime.script_queries import ScriptQueries
from streamsql.runtime.session_config import Config
from streamsql.runtime.workspace import read_only
from streamsql.runtime.workspace.reopen import reopen
from streamsql.runtime.workspace.store import LEFT

PLANS: Answers = {
    **create_drop.PLANS,
    **programs.PLANS,
    **start_stop.PLANS,
    **flush.PLANS,
}
DIRECT: Answers = {
    **create_drop.DIRECT,
    **start_stop.DIRECT,
    **server_statements.DIRECT,
    **set_reset.DIRECT,
    **show.DIRECT,
    **show_live_tables.DIRECT,
    **show_queries.DIRECT,
    **help.DIRECT,
    **checkpoints.DIRECT,
    Exit: lambda parts, statement: Leave(),
    Clear: lambda parts, statement: Text(text=""),
}


class StatementSession(ScriptQueries):
    """Passes each statement to its handler, with the parts of a session."""

    of_plans: Answers = PLANS
    of_statements: Answers = DIRECT
    """The handlers."""

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts

    @property
    def catalog(self) -> Catalog:
        """The newest snapshot."""
        return self.parts.catalog

    @property
    def variables(self) -> dict[str, str]:
        return self.parts.variables

    @property
    def translation(self) -> Translation | None:
        """From the dialect of SET streamsql.dialect into Spark's words; None if that is Spark's."""
        dialect = self.parts.config.preferences["dialect"]
        if dialect == "spark":
            return None
        return translation_of(dialect, self.catalog, functions_of(self.parts))

    def set_folder(self, folder: str) -> None:
        """The folder of the script whose statements follow: `${here}`."""
        self.variables["here"] = folder

    def execute(self, statement: Statement, cancel: CancelToken | None = None) -> Result:
        """Execute one statement. cancel: cancels it from another thread; queries keep running. Raises
        StreamsqlError, with its span in the statement's source; other queries are not affected.
        """
        parts = self.parts.under(cancel or CancelToken())
        return self.execute_with(statement, parts)

    def execute_with(self, statement: Statement, parts: SessionParts) -> Result:
        """The same with the parts of one statement."""
        parts.cancel.running = True
        try:
            return self._execute(statement, parts)
        except FunctionChanged:
            return self._execute(statement, parts)  # planned again, with the function's new kind
        except Cancelled:
            raise
        except StreamsqlError as error:
            raise with_proposal(error, statement.text, parts) from error.__cause__
        finally:
            parts.cancel.running = False

    def _execute(self, statement: Statement, parts: SessionParts) -> Result:
        parts.cancel.check()
        parts.events.publish(StatementBegins())
        if parts.config.read_only and parts.store:
            read_only.refuse(statement, parts.store.folder)
        losses = parts.engine.losses
        if parts.open_change:
            for within in extensions("statement"):
                statement, defined = within(statement, parts.context())
                parts.define(*defined)
        try:
            plan = planner.plan(statement, parts.context())
            parts.cancel.check()
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
            if may_be_lost(error) and parts.engine.has_ended(losses):
                raise spark_lost(memory=parts.engine.memory_was_full) from error
            fault = translate(error, statement, parts.catalog.relation_names())
            informing(lambda: list_columns(fault, statement, parts.catalog), None)
            unread = fault.relation if isinstance(fault, EngineFault) else ""
            raise read_of_sink(parts.catalog, unread, fault.span) or fault from error

    def _dispatch(self, plan: plans.Plan, statement: Statement, parts: SessionParts) -> Result:
        if isinstance(plan, plans.Direct):
            kind: type = type(plan.statement)
            answer = self.of_statements.get(kind) or handlers(kind, "DIRECT")[kind]
            return answer(parts, plan.statement)
        parts.temporary.check(statement, lambda: parts.engine.wait(parts.cancel))
        if not isinstance(plan, plans.Explain) or plan.mode != "pyspark":
            with statement.origin.errors():
                check_states(statement.text, partial(open_checkpoint, parts))
        kind = type(plan)
        return (self.of_plans.get(kind) or handlers(kind, "PLANS")[kind])(parts, plan, statement)

    def query_facts(self) -> Sequence[QueryFacts]:
        """What each query is and does now, in the order of their definitions."""
        parts, zone = self.parts, session_zone(self.parts)
        for catch_up in {run.catch_up for run in parts.queries.all.values()}:
            catch_up()
        return [parts.facts(query.name, zone) for query in parts.catalog.named(None)]

    # ---- what is shown beside

    def activity(self, cancel: CancelToken) -> Activity:
        """What a statement is waiting for. May wait for Spark."""
        engine = self.parts.engine
        jobs = None if engine.doing or not engine.started else engine.progress(cancel)
        return Activity(engine.started, engine.doing, jobs)

    def summary(self) -> Summary:
        """The toolbar's facts."""
        return session_summary.summary(self.parts)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of the columns of a live table that is loaded."""
        rows = self.parts.live.loaded(table.casefold())
        fields = rows.schema.fields if rows is not None and rows.schema is not None else ()
        return [(f.name, f.dataType.simpleString()) for f in fields]

    def query_state(self, name: str) -> str:
        """What completion shows beside the name of a query."""
        running = self.parts.queries.all.get(name.strip("`").casefold())
        going = running is not None and not running.over
        return "running query" if going else "FAILED query" if running and running.fault else "stopped query"

    def query_fault(self, name: str) -> StreamsqlError | None:
        """The error that a query has failed with."""
        running = self.parts.queries.all.get(name.strip("`").casefold())
        return running.fault if running is not None else None

    def open(self) -> tuple[str, ...]:
        """Load the workspace and start Spark in the background. Returns what is to be told, a line each."""
        opened = reopen(self.parts)
        self.parts.engine.begin_start()
        self.parts.workspace.note_reported()
        return tuple(opened.lines())

    def on_news(self, say: Callable[[str], None], *, restarts_only: bool = False) -> None:
        """Call a function with a line about each event of the background."""
        BackgroundNews(self.parts, say, restarts_only=restarts_only)

    def close(self, limit: float = PATIENCE, cancel: CancelToken | None = None) -> None:
        """Nothing: the session that owns the parts closes them."""

    def kill(self) -> None:
        """Kill the JVM: what `close` could not end."""
        self.parts.engine.kill()


class Session(StatementSession):
    """The session of a prompt, a script or a server: it owns its parts."""

    def __init__(self, config: Config, spark: Any = None, parts: SessionParts | None = None) -> None:
        super().__init__(parts or session_parts(config, local_engine(config, spark)))
        self._supervisor = RestartSupervisor(self.parts, self.parts.workspace.save_status)
        self._companions = [begin(self.parts) for begin in extensions("session parts")]

    @property
    def spark(self) -> Any:
        """The SparkSession; waits until it has started. Raises StartFault when it could not."""
        return self.parts.spark

    def left_running(self) -> str:
        """What goes on after `close`, as a line; empty if nothing does."""
        return ""

    def close(self, limit: float = PATIENCE, cancel: CancelToken | None = None) -> None:
        """Stop all queries, then Spark if this session started it. limit: the seconds that their
        micro-batches have to complete; cancel: aborts them.
        """
        parts = self.parts
        self._supervisor.close()
        for companion in filter(None, self._companions):
            companion.close()
        parts.workspace.save(LEFT)
        if parts.engine.started:
            parts.queries.stop_all(limit, cancel)
            for running in parts.queries.all.values():
                running.catch_up()
        parts.queries.close()
        parts.histories.flush()
        parts.engine.close()


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
    names = {*parts.catalog.functions, *parts.catalog.sql_functions}
    if parts.engine.started:
        rows = parts.spark.sql("SHOW USER FUNCTIONS").collect()
        names |= {row[0].rpartition(".")[2].casefold() for row in rows}
    return frozenset(names)
