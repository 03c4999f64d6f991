"""The statements of one client: MySQL's own are answered by mysql-mimic, others by the console's session."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.session import Session
from mysql_mimic.variables import GlobalVariables, SessionVariables
from sqlglot import errors, exp

from streamsql.config.preferences import Preferences
from streamsql.errors import NameFault, RuleFault, Source, StreamsqlError
from streamsql.features.mysql.columns import Column, column, columns_of, kind_of
from streamsql.features.mysql.information_schema import Answered, Databases, answered, databases_of
from streamsql.features.mysql.mysql_statements import EMPTY, VARIABLES, own_statement, query_of_show, shown
from streamsql.guard import internal
from streamsql.language.parser import parse, split_script
from streamsql.language.query import read_query
from streamsql.language.spark_definitions import changes_session, definition_of
from streamsql.language.statements.base import Statement
from streamsql.language.statements.server import Detach
from streamsql.language.statements.session import Clear, Define, Exit, SourceFile
from streamsql.language.statements.spark import Spark
from streamsql.language.tokens import quote, quote_name
from streamsql.results import (
    ArrowRows,
    Copied,
    Done,
    Live,
    Result,
    Rows,
    Started,
    discard,
    in_rows,
)
from streamsql.runtime.engine.arrow_rows import tuples_of
from streamsql.runtime.engine.cancel import CancelToken
from streamsql.runtime.engine.lifecycle import own_session
from streamsql.runtime.engine.row_values import zone_of
from streamsql.runtime.engine.spark_commands import changing_commands
from streamsql.runtime.engine.statement_thread import StatementThread
from streamsql.runtime.parts import SessionParts
from streamsql.server.client_session import ClientSession

BLOCK = 1_000
"""The rows that are converted and sent at a time."""
ZONE = "spark.sql.session.timeZone"
_OF_CONSOLES = (Clear, Define, Detach, Exit, SourceFile)
_OF_ALL = frozenset(("SetCatalogAndNamespace", "SetNamespaceCommand", "SetCatalogCommand"))
Block = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Answer:
    """What a statement gave. columns: () for none; blocks: the rows. warnings: their number."""

    columns: Sequence[Column] = ()
    blocks: AsyncGenerator[Block] | None = None
    warnings: int = 0


class OwnSession(ClientSession):
    """The session of the console for one client. database: its current schema, "" for that of all."""

    database = ""

    def only_reads(self, statement: Statement) -> bool:
        """The same. Raises RuleFault for USE in a form that changes the schema of all clients."""
        if isinstance(statement, Spark) and not _OF_ALL.isdisjoint(
            changing_commands(self.parts.spark, statement.text)
        ):
            raise RuleFault(
                "this statement would change the schema of all clients",
                hint="USE schema, which is for this connection only",
                code="CLAUSE_NOT_SUPPORTED",
            )
        return super().only_reads(statement)

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
            of_session = isinstance(statement, Spark) and (
                changes_session(statement.text) or definition_of(statement.text).temporary
            )
            in_database = cache(partial(self._in_database, of_session=of_session))
            yield replace(own, variant=lambda shared: in_database(own.variant(shared)))

    def _in_database(self, spark: Any, of_session: bool) -> Any:
        """A Spark session in the schema of the client. of_session: for a statement that changes the session.
        Raises RuleFault where that would be lost.
        """
        current = spark.catalog.currentDatabase()
        if self.database in ("", current):
            return spark
        if of_session:
            raise RuleFault(
                f"this statement is possible in the schema {current} only",
                hint=f"USE {quote_name(current)}",
                code="CLAUSE_NOT_SUPPORTED",
            )
        own = own_session(spark)
        own.catalog.setCurrentDatabase(self.database)
        return own


class DoorSession(Session):
    """What mysql-mimic asks for one connection. base: of the session that is shared; writes: whether its
    statements may change something.
    """

    def __init__(self, base: SessionParts, *, writes: bool) -> None:
        super().__init__()
        self.database: str | None = None
        self._base = base
        self._writes = writes
        self._thread = StatementThread()
        self._result = Result()
        self._fault: StreamsqlError | None = None
        self.notes: list[str] = []
        self._renew()

    def _renew(self) -> None:
        self.variables: Any = SessionVariables(GlobalVariables(VARIABLES))
        self.own = OwnSession(
            self._base, interactive=False, read_only=not self._writes, preferences=Preferences(), arrow=True
        )

    # ---- the life of a connection ---------------------------------------------------------

    async def init(self, connection: Any) -> None:
        """The client has logged in."""
        await super().init(connection)
        self.variables.set("time_zone", "SYSTEM")
        try:
            current, zone = await self._called(self._of_spark)
            self.variables.set("system_time_zone", zone, force=True)
            await self.use(self.database or current)
        except StreamsqlError as fault:  # the client is logged in already: its first statement says it
            self._fault = fault

    def _of_spark(self) -> tuple[str, str]:
        spark = self._base.spark
        return spark.catalog.currentDatabase(), spark.conf.get(ZONE)

    async def reset(self) -> None:
        """As after the login: the settings of the client are gone."""
        user = self.variables.get("external_user")
        self._renew()
        self.variables.set("external_user", user, force=True)
        await self.init(self.connection)

    async def close(self) -> None:
        """The client has gone."""
        self.leave()
        self._thread.begin(discard, self._result)
        self._thread.close()

    def cancel(self) -> None:
        """KILL QUERY: cancel the statement that runs."""
        self._thread.cancel.cancel()

    def leave(self) -> None:
        """The client has gone: cancel what only reads. A statement that changes something ends by itself."""
        if self._thread.cancel.only_reads:
            self._thread.cancel.cancel()

    async def use(self, database: str) -> None:
        """Choose the schema of this connection. Raises NameFault."""
        if database.lower() not in INFO_SCHEMA:
            schemas = await self._called(lambda: databases_of(self._base.spark))
            named = [name for name in schemas if name.casefold() == database.casefold()]
            if not named:
                raise NameFault(
                    f"there is no schema {database}", hint="SHOW SCHEMAS", condition="SCHEMA_NOT_FOUND"
                )
            database = self.own.database = named[0]
        self.database, self._fault = database, None

    async def _called(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns on the thread of the client. Raises what it raises."""
        return await asyncio.wrap_future(self._thread.begin(act, *arguments))

    # ---- statements of the console --------------------------------------------------------

    async def answer(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Execute a statement. values: of ?. Raises StreamsqlError and what mysql-mimic raises."""
        own = None if values else own_statement(sql, self.database)
        if own is not None:
            rows, names = await self._of_mysql(own, sql)
            return Answer(columns_of(names, rows), _one(rows)) if names else Answer()
        if self._fault is not None:
            raise self._fault
        self._thread.cancel = CancelToken()
        self._result = result = await self._called(self._execute, sql, values, self._thread.cancel)
        self.notes = [str(note) for note in result.notes]
        if isinstance(result, ArrowRows):
            columns, blocks = await self._called(self._of_arrow, result)
            return Answer(columns, self._blocks(blocks, result), len(self.notes))
        if isinstance(result, Rows):
            return Answer(columns_of(result.columns, result.rows), _one(result.rows), len(self.notes))
        said = result.message if isinstance(result, (Done, Started)) else ""
        self.notes = [said, *self.notes] if said else self.notes
        return Answer(warnings=len(self.notes))

    def _without_schema(self, sql: str) -> str:
        """A query in which live tables, streams and views have no schema. Dashboards write the one in which
        information_schema shows them, and Spark has none for them. Places in the text stay as they are.
        """
        schema = self.database or ""
        for relation in sorted(read_query(sql).relations, key=lambda r: r.span.start, reverse=True):
            first, _, name = relation.name.partition(".")
            if not name or first.casefold() != schema.casefold() or not self.own.catalog.reads(name):
                continue
            if not self._base.spark.catalog.tableExists(f"{quote_name(schema)}.{quote_name(name)}"):
                before, after = sql[: relation.span.start], sql[relation.span.end :]
                sql = before + quote_name(name).rjust(relation.span.end - relation.span.start) + after
        return sql

    def _execute(self, sql: str, values: Sequence[Any], cancel: CancelToken) -> Result:
        sql = self._without_schema(sql)
        source = Source("sql", sql)
        try:
            written_ones = split_script(source)
            if len(written_ones) != 1:
                raise RuleFault("the MySQL door takes one statement at a time", code="CLAUSE_NOT_SUPPORTED")
            statement = parse(written_ones[0], translation=self.own.translation, parameters=values)
            if isinstance(statement, _OF_CONSOLES):
                raise _for_consoles()
            cancel.only_reads = self.own.only_reads(statement)
            result = self.own.execute(statement, cancel)
            if isinstance(result, (Copied, Live)):
                discard(result)
                raise _for_consoles()
        except StreamsqlError as error:
            raise error.at(source) from error.__cause__
        except Exception as error:
            raise internal(error) from error
        if isinstance(result, Started):
            self.own.place(result, source, written_ones[0].span)
        return in_rows(result)

    def _of_arrow(self, result: ArrowRows) -> tuple[list[Column], Iterator[Block]]:
        from pyspark.sql.pandas.types import from_arrow_type

        kinds = [from_arrow_type(field.type) for field in result.first[0].schema]
        columns = [column(name, kind_of(kind)) for name, kind in zip(result.columns, kinds, strict=True)]

        def converted() -> Iterator[Block]:
            for batch in chain(result.first, chain.from_iterable(result.rest)):
                for start in range(0, batch.num_rows, BLOCK):
                    yield list(tuples_of(batch.slice(start, BLOCK), result.zone))

        return columns, converted()

    async def _blocks(self, blocks: Iterator[Block], result: ArrowRows) -> AsyncGenerator[Block]:
        try:
            while (block := await self._called(next, blocks, None)) is not None:
                yield block
        finally:
            self._thread.begin(discard, result)

    # ---- MySQL's own statements -----------------------------------------------------------

    async def _of_mysql(self, tree: exp.Expression, sql: str) -> Answered:
        """(rows, names) of a statement of MySQL's own."""
        if isinstance(tree, exp.Commit):
            return [], []
        zone = self.variables.get("time_zone")
        try:
            answer: Any = await self.handle_query(sql, {})
        except (errors.SqlglotError, sqlite3.Error) as error:
            raise RuleFault(
                f"the MySQL door cannot answer this query of metadata: {error}", code="CLAUSE_NOT_SUPPORTED"
            ) from error
        wanted = self.variables.get("time_zone")
        if wanted != zone:
            self.variables.set("time_zone", zone)
            await self._called(self._set_zone, str(wanted))
            self.variables.set("time_zone", wanted)
        return answer or ([], [])

    def _set_zone(self, zone: str) -> None:
        own = f"SET {ZONE} = {quote(zone)}" if zone.upper() != "SYSTEM" else f"RESET {ZONE}"
        self.own.execute(parse(split_script(Source("", own))[0]))

    def timezone(self) -> Any:
        """For mysql-mimic: that of NOW() in a query of metadata."""
        zone = str(self.variables.get("time_zone"))
        return zone_of(str(self.variables.get("system_time_zone")) if zone == "SYSTEM" else zone)

    async def query(self, expression: Any, sql: str, attrs: dict[str, str]) -> Any:
        """For mysql-mimic: a query of metadata."""
        return await self._query_info_schema(expression)

    async def _static_query_middleware(self, query: Any) -> Any:
        """Nothing: mysql-mimic's own answer to what has no FROM knows few functions."""
        return await query.next()

    async def _show(self, expression: exp.Show) -> Any:
        if expression.name in ("VARIABLES", "STATUS", "WARNINGS", "ERRORS"):
            return await super()._show(expression)
        if expression.name in EMPTY:
            return [], EMPTY[expression.name].split("|")
        rows, names = await self._query_info_schema(query_of_show(expression, self.database))
        return shown(expression, rows, names)

    def _show_warnings(self, show: exp.Show) -> Any:
        return [("Note", 1105, note) for note in self.notes], ["Level", "Code", "Message"]

    def _set_variable(self, setitem: exp.SetItem) -> None:
        """The same with expressions: SET sql_mode = CONCAT(@@sql_mode, …)."""
        value = setitem.this.expression
        if isinstance(value, exp.Func):
            rows, _ = answered(exp.select(value))
            setitem.this.set("expression", exp.convert(rows[0][0]))
        super()._set_variable(setitem)

    async def schema(self) -> Databases:
        """For mysql-mimic: the metadata, as it is now."""
        return Databases(self._base, self.own.database, self._called)


def _for_consoles() -> RuleFault:
    return RuleFault(
        "this statement is for consoles: the MySQL door has no terminal and writes no files",
        hint="SELECT gives the rows",
        code="CLAUSE_NOT_SUPPORTED",
    )


async def _one(rows: Block) -> AsyncGenerator[Block]:
    yield rows
