"""The statements of one client: MySQL's own are answered by mysql-mimic, all others by the console's session."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.schema import show_statement_to_info_schema_query
from mysql_mimic.session import Session
from mysql_mimic.variables import SYSTEM_VARIABLES, GlobalVariables, SessionVariables
from sqlglot import errors, exp

from streamsql import __version__
from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, RuleFault, Source, StreamsqlError
from streamsql.features.mysql.columns import Column, column, columns_of, kind_of
from streamsql.features.mysql.information_schema import Databases, databases_of, tables_of
from streamsql.language.parameters import replaced_parameters
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.base import Statement
from streamsql.language.statements.server import Detach
from streamsql.language.statements.session import Clear, Define, Exit, SourceFile
from streamsql.language.statements.spark import Spark
from streamsql.language.tokens import quote, quote_name, tokenize
from streamsql.results import (
    ArrowRows,
    Copied,
    Done,
    Live,
    Result,
    Rows,
    RowStream,
    Started,
    Text,
    Why,
    discard,
)
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.row_values import column_values, zone_of
from streamsql.runtime.engine.spark_commands import changing_commands
from streamsql.runtime.parts import SessionParts
from streamsql.server.client_session import ClientSession

BLOCK = 1_000
"""The rows that are converted and sent at a time."""
ZONE = "spark.sql.session.timeZone"
VARIABLES = SYSTEM_VARIABLES | {
    "version": (str, f"8.0.29-streamsql-{__version__}", False),
    "version_comment": (str, "streamsql: HELP mysql", False),
    "version_compile_os": (str, "Spark", False),
    "lower_case_table_names": (int, 2, False),
    "sql_mode": (str, "", True),
    "default_storage_engine": (str, "Spark", True),
    "default_tmp_storage_engine": (str, "Spark", True),
    # What clients set or ask for, and what means nothing here.
    **dict.fromkeys(("query_cache_type", "query_cache_size", "net_read_timeout", "foreign_key_checks", "unique_checks",
                     "sql_safe_updates", "sql_notes", "sql_quote_show_create", "group_concat_max_len",
                     "innodb_lock_wait_timeout", "auto_increment_offset", "have_ssl"), (str, "0", True)),
    "tx_isolation": (str, "READ-COMMITTED", True),
    "tx_read_only": (bool, False, True),
    "init_file": (str, "", True),
    "session_track_schema": (str, "0", True),
    "session_track_system_variables": (str, "", True),
    "session_track_transaction_info": (str, "OFF", True),
}  # fmt: skip
_SHOWN = frozenset(("TABLES", "DATABASES", "COLUMNS", "CREATE TABLE", "VARIABLES", "STATUS", "WARNINGS", "ERRORS"))
"""The SHOW statements that mysql-mimic answers."""
_EMPTY = {
    "INDEX": ("Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name", "Collation", "Cardinality",
              "Sub_part", "Packed", "Null", "Index_type", "Comment", "Index_comment"),
    "ENGINES": ("Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"),
    "PLUGINS": ("Name", "Status", "Type", "Library", "License"),
    "TRIGGERS": ("Trigger", "Event", "Table", "Statement", "Timing", "Created", "sql_mode", "Definer"),
    "PROCEDURE STATUS": ("Db", "Name", "Type", "Definer", "Modified", "Created", "Security_type", "Comment"),
    "FUNCTION STATUS": ("Db", "Name", "Type", "Definer", "Modified", "Created", "Security_type", "Comment"),
    "EVENTS": ("Db", "Name", "Definer", "Time zone", "Type"),
}  # fmt: skip
"""What MySQL shows and there is nothing of here, with the columns."""
_OF_VIEW = {
    "COLLATION": "collation_name AS `Collation`, character_set_name AS `Charset`, id AS `Id`, is_default AS `Default`,"
    " is_compiled AS `Compiled`, 1 AS `Sortlen` FROM information_schema.collations",
    "CHARACTER SET": "character_set_name AS `Charset`, description AS `Description`, default_collate_name AS"
    " `Default collation`, maxlen AS `Maxlen` FROM information_schema.character_sets",
}
_OF_CONSOLES = (Clear, Define, Detach, Exit, SourceFile)
_OF_ALL = frozenset(("SetCatalogAndNamespace", "SetNamespaceCommand", "SetCatalogCommand"))
_ASKED = (exp.SessionParameter, exp.CurrentSchema, exp.CurrentVersion, exp.CurrentUser)
_ASKED_BY_NAME = frozenset(
    ("USER", "SYSTEM_USER", "CONNECTION_ID", "SCHEMA", "DATABASE", "VERSION", "SESSION_USER")
)
_MODES = ("READ ONLY", "READ WRITE", "WITH CONSISTENT SNAPSHOT", "ISOLATION LEVEL")


@dataclass(frozen=True)
class Answer:
    """What a statement gave. columns: () for none; blocks: the rows. warnings: their number."""

    columns: Sequence[Column] = ()
    blocks: AsyncIterator[Sequence[Sequence[Any]]] | None = None
    warnings: int = 0


class Worker:
    """A thread of a client, on which its statements run one after the other, and fetch their rows."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="mysql-client").start()

    def begin(self, act: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function there."""
        future = Future[Any]()
        self._calls.put((future, partial(act, *arguments)))
        return future

    async def run(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns there. Raises what it raises."""
        return await asyncio.wrap_future(self.begin(act, *arguments))

    def end(self) -> None:
        """End the thread when it has done what was begun."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, act = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(act())
                except BaseException as error:  # the one who waits raises it
                    future.set_exception(error)


class OwnSession(ClientSession):
    """The session of the console for one client. database: its current schema."""

    database = ""

    def only_reads(self, statement: Statement) -> bool:
        """The same; SET is of this client only. Raises RuleFault for USE in a form that all would see."""
        commands = changing_commands(self.parts.spark, statement.text) if isinstance(statement, Spark) else []
        if not _OF_ALL.isdisjoint(commands):
            raise RuleFault(
                "this statement would change the schema of all clients",
                hint="USE schema; which is for this connection only",
                code="CLAUSE_NOT_SUPPORTED",
            )
        return statement.read_only and not commands

    def refused(self) -> RuleFault:
        """The words of the door."""
        return RuleFault(
            "the MySQL door only reads",
            detail="this statement would change something",
            hint="run it in a console, streamsql -w DIR, or start the server with --mysql-write",
            code="READ_ONLY",
        )

    @contextmanager
    def _settings_for(self, statement: Statement, parts: SessionParts) -> Iterator[SessionParts]:
        with super()._settings_for(statement, parts) as own:
            variant, made = own.variant, list[Any]()

            def in_database(shared: Any) -> Any:
                spark = variant(shared)
                if spark.catalog.currentDatabase() == self.database:
                    return spark
                if not made or spark is not shared:
                    made[:] = [own_session(spark) if spark is shared else spark]
                    made[0].catalog.setCurrentDatabase(self.database)
                return made[0]

            yield replace(own, variant=in_database) if self.database else own


@dataclass
class _Now:
    """The statement that runs: its token and its rows."""

    cancel: CancelToken = field(default_factory=CancelToken)
    result: Result = field(default_factory=Result)


class DoorSession(Session):
    """What mysql-mimic asks for one connection. parts: of the session that is shared; writes: whether its
    statements may change something.
    """

    def __init__(self, parts: SessionParts, *, writes: bool) -> None:
        super().__init__(SessionVariables(GlobalVariables(VARIABLES)))
        self._base = parts
        self._writes = writes
        self._worker = Worker()
        self._now = _Now()
        self._fault: NameFault | None = None
        self.notes: list[str] = []
        self._renew()

    def _renew(self) -> None:
        self.own = OwnSession(
            self._base, interactive=False, read_only=not self._writes, preferences=Preferences(), arrow=True
        )

    # ---- the life of a connection ---------------------------------------------------------

    async def init(self, connection: Any) -> None:
        """The client has logged in."""
        await super().init(connection)
        asked = self.database
        self.database, zone = await self._worker.run(self._of_spark)
        self.variables.set("system_time_zone", zone, force=True)
        self.variables.set("time_zone", "SYSTEM")
        try:
            await self.use(asked or self.database)
        except NameFault as fault:  # the client is logged in already: its first statement says it
            self._fault = fault

    def _of_spark(self) -> tuple[str, str]:
        spark = self._base.spark
        return spark.catalog.currentDatabase(), spark.conf.get(ZONE)

    async def reset(self) -> None:
        """As after the login: the settings of the client are gone."""
        self._renew()
        self.variables = SessionVariables(self.variables.global_variables)
        await self.init(self.connection)

    async def close(self) -> None:
        """The client has gone."""
        self.leave()
        self._worker.begin(discard, self._now.result)
        self._worker.end()

    def cancel(self) -> None:
        """KILL QUERY: cancel the statement that runs."""
        self._now.cancel.cancel()

    def leave(self) -> None:
        """The client has gone: cancel what only reads. A statement that changes something ends by itself."""
        if self._now.cancel.only_reads:
            self._now.cancel.cancel()

    def timezone(self) -> Any:
        """For mysql-mimic: that of NOW() in a query of metadata."""
        zone = str(self.variables.get("time_zone"))
        return zone_of(str(self.variables.get("system_time_zone")) if zone == "SYSTEM" else zone)

    async def use(self, database: str) -> None:
        """Choose the schema of this connection. Raises NameFault."""
        if database.lower() not in INFO_SCHEMA:
            there = await self._worker.run(lambda: databases_of(self._base.spark))
            named = [name for name in there if name.casefold() == database.casefold()]
            if not named:
                raise NameFault(
                    f"there is no schema {database}", hint="SHOW SCHEMAS", code="SCHEMA_NOT_FOUND"
                )
            database = self.own.database = named[0]
        self.database, self._fault = database, None

    # ---- statements -----------------------------------------------------------------------

    async def answer(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Execute a statement. values: of ?. Raises StreamsqlError and what mysql-mimic raises."""
        if not values:
            asked = await self._of_mysql(sql)
            if asked is not None:
                rows, names = asked
                return Answer(columns_of(names, rows), _one(rows)) if names else Answer()
        if self._fault is not None:
            raise self._fault
        cancel = CancelToken()
        self._now = _Now(cancel)
        result = await self._worker.run(self._execute, sql, values, cancel)
        self._now.result = result
        self.notes = [str(note) for note in result.notes]
        if isinstance(result, Text):
            result = Rows(columns=("text",), rows=[(line,) for line in result.text.splitlines()])
        if isinstance(result, Why):
            verdict = [("verdict", result.verdict), ("code", result.code)]
            result = replace(result, rows=[*verdict, *result.rows])
        if isinstance(result, ArrowRows):
            columns, blocks = await self._worker.run(self._of_arrow, result)
            return Answer(columns, blocks, len(self.notes))
        if isinstance(result, RowStream):
            result = await self._worker.run(result.whole)
        if isinstance(result, Rows):
            return Answer(columns_of(result.columns, result.rows), _one(result.rows), len(self.notes))
        said = result.message if isinstance(result, (Done, Started)) else ""
        self.notes = [said, *self.notes] if said else self.notes
        return Answer(warnings=len(self.notes))

    def _execute(self, sql: str, values: Sequence[Any], cancel: CancelToken) -> Result:
        source = Source("sql", sql)
        try:
            if values:
                for start, end, written in reversed(replaced_parameters(tokenize(sql), values)):
                    sql = sql[:start] + written + sql[end:]
                source = Source("sql", sql)
            statements = split_script(source)
            if not statements:
                return Done()
            if len(statements) > 1:
                raise RuleFault(
                    "the MySQL door takes one statement at a time",
                    span=statements[1].span,
                    code="CLAUSE_NOT_SUPPORTED",
                )
            statement = parse(statements[0], literal=True, translation=self.own.translation)
            if isinstance(statement, _OF_CONSOLES):
                raise _for_consoles()
            cancel.only_reads = self.own.only_reads(statement)
            result = self.own.execute(statement, cancel)
        except StreamsqlError as error:
            raise error.at(source) from error.__cause__
        if isinstance(result, (Copied, Live)):
            discard(result)
            raise _for_consoles()
        if isinstance(result, Started):
            self.own.place(result, source, statements[0].span)
        return result

    def _of_arrow(self, result: ArrowRows) -> tuple[list[Column], AsyncIterator[Any]]:
        from pyspark.sql.pandas.types import from_arrow_type

        zone, kinds = zone_of(result.zone), [from_arrow_type(f.type) for f in result.first[0].schema]
        columns = [column(name, kind_of(kind)) for name, kind in zip(result.columns, kinds, strict=True)]

        def converted() -> Iterator[list[tuple[Any, ...]]]:
            for batches in chain([result.first], result.rest):
                for batch in batches:
                    for start in range(0, batch.num_rows, BLOCK):
                        taken = zip(batch.slice(start, BLOCK).columns, kinds, strict=True)
                        values = [column_values(part, kind, zone) for part, kind in taken]
                        yield list(zip(*values, strict=True))

        return columns, self._blocks(converted(), result)

    async def _blocks(self, blocks: Iterator[Any], result: ArrowRows) -> AsyncIterator[Any]:
        try:
            while (block := await self._worker.run(next, blocks, None)) is not None:
                yield block
        finally:
            self._worker.begin(discard, result)

    # ---- MySQL's own statements -----------------------------------------------------------

    async def _of_mysql(self, sql: str) -> tuple[Sequence[Sequence[Any]], Sequence[str]] | None:
        """(rows, names) of a statement of MySQL's; None for one that is the console's."""
        try:
            parsed = self._parse(sql)
        except errors.SqlglotError:
            return None
        if not parsed:
            return [], []
        expression = parsed[0]
        if len(parsed) > 1 or not self._is_mysqls(expression):
            return None
        if isinstance(expression, exp.Show) and expression.name in _EMPTY:
            return [], _EMPTY[expression.name]
        if isinstance(expression, exp.Show) and expression.name in _OF_VIEW:
            sql = f"SELECT {_OF_VIEW[expression.name]}"
        zone = self.variables.get("time_zone")
        try:
            answer: Any = await super().handle_query(sql, {})
        except (errors.SqlglotError, *_OF_SQLITE) as error:
            raise RuleFault(
                f"the MySQL door cannot answer this query of metadata: {error}", code="CLAUSE_NOT_SUPPORTED"
            ) from error
        if self.variables.get("time_zone") != zone:
            await self._worker.run(self._set_zone, str(self.variables.get("time_zone")))
        return answer or ([], [])

    def _set_zone(self, zone: str) -> None:
        own = f"SET {ZONE} = {quote(zone)}" if zone.upper() != "SYSTEM" else f"RESET {ZONE}"
        self.own.execute(parse(split_script(Source("sql", own))[0]))

    def _is_mysqls(self, expression: exp.Expression) -> bool:
        if isinstance(expression, exp.Set):
            return all(map(_is_of_mysql, expression.expressions))
        if isinstance(expression, exp.Show):
            return expression.name in _SHOWN or expression.name in _EMPTY or expression.name in _OF_VIEW
        if isinstance(expression, exp.Describe):
            others = set(expression.args) - {"this", "as_json"}
            return isinstance(expression.this, exp.Table) and not any(map(expression.args.get, others))
        if isinstance(expression, exp.Use):
            return not expression.args.get("kind")
        if isinstance(expression, exp.Transaction):
            return all(mode.startswith(_MODES) for mode in expression.args.get("modes") or ())
        if isinstance(expression, (exp.Kill, exp.Commit, exp.Rollback)):
            return True
        if isinstance(expression, exp.Query):
            tables = list(expression.find_all(exp.Table))
            return all(map(self._is_metadata, tables)) if tables else _is_asked(expression)
        return False

    def _is_metadata(self, table: exp.Table) -> bool:
        return (table.db or self.database or "").lower() in INFO_SCHEMA

    async def schema(self) -> Databases:
        """For mysql-mimic: the metadata, as it is now."""
        database = self.own.database or self.database or ""

        def ask(with_schema: bool) -> list[Any]:
            return list(tables_of(self._base, database, with_schema))

        names = await self._worker.run(lambda: databases_of(self._base.spark))
        return Databases(names, lambda with_schema: self._worker.begin(ask, with_schema).result())

    async def _show(self, expression: exp.Show) -> Any:
        """SHOW COLUMNS with whole types, SHOW CREATE TABLE, and an error for a table that does not exist."""
        target = expression.text("target")
        if expression.name not in ("COLUMNS", "CREATE TABLE"):
            return await super()._show(expression)
        asked = exp.Show(this="COLUMNS", target=exp.to_identifier(target), **_only(expression, "full", "db", "like"))
        select = show_statement_to_info_schema_query(asked, self.database).transform(_whole_type)
        rows, names = await self._query_info_schema(select)
        if not rows and not expression.args.get("like"):
            raise NameFault(f"there is no table or view {target}", hint="SHOW TABLES", code="TABLE_OR_VIEW_NOT_FOUND")
        if expression.name == "COLUMNS":
            return rows, names
        listed = ",\n".join(f"  {quote_name(row[0])} {row[1]}{' NOT NULL' * (row[2] == 'NO')}" for row in rows)
        return [(target, f"CREATE TABLE {quote_name(target)} (\n{listed}\n) ENGINE=Spark")], ("Table", "Create Table")

    def _show_warnings(self, show: exp.Show) -> Any:
        return [("Note", 1105, note) for note in self.notes], ["Level", "Code", "Message"]


_OF_SQLITE: tuple[type[Exception], ...] = ()
with suppress(ImportError):
    import sqlite3

    _OF_SQLITE = (sqlite3.Error,)


def _is_of_mysql(item: exp.Expression) -> bool:
    """Whether a part of SET is about a variable of MySQL, not a setting of Spark or the console."""
    if item.args.get("kind"):
        return True
    assigned = item.this.this if isinstance(item.this, exp.Binary) else None
    if isinstance(assigned, exp.Column):
        return not assigned.table and assigned.name.lower() in VARIABLES
    return isinstance(assigned, (exp.SessionParameter, exp.Parameter))


def _is_asked(query: exp.Query) -> bool:
    """Whether a SELECT without FROM asks only what MySQL knows of itself and of the connection."""

    def own(part: exp.Expression) -> bool:
        part = part.unalias()
        return isinstance(part, _ASKED) or (
            isinstance(part, exp.Anonymous) and part.name.upper() in _ASKED_BY_NAME
        )

    parts = [part for part in query.expressions if not isinstance(part.unalias(), exp.Literal)]
    others = set(query.args) - {"expressions", "limit", "hint", "kind"}
    return bool(parts) and all(map(own, parts)) and not any(map(query.args.get, others))


def _for_consoles() -> RuleFault:
    return RuleFault(
        "this statement is for consoles: the MySQL door has no terminal and writes no files",
        hint="SELECT gives the rows",
        code="CLAUSE_NOT_SUPPORTED",
    )


def _only(node: exp.Expression, *names: str) -> dict[str, Any]:
    return {name: node.args.get(name) for name in names}


def _whole_type(node: exp.Expression) -> exp.Expression:
    """decimal(10,2), where mysql-mimic shows decimal."""
    if isinstance(node, exp.Column) and node.name == "data_type":
        return exp.column("column_type")
    return node


async def _one(rows: Sequence[Sequence[Any]]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    yield rows
