"""information_schema, SHOW TABLES and the like: answered by SQLite over what the session has."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.schema import BaseInfoSchema
from sqlglot import expressions as exp

from streamsql.features.mysql.columns import Kind, kind_of
from streamsql.guard import informing
from streamsql.language.tokens import quote_name
from streamsql.runtime.engine.row_values import zone_of
from streamsql.runtime.parts import SessionParts


def _in_zone(moment: str, zone: str, other: str) -> str:
    """CONVERT_TZ."""
    local = dt.datetime.fromisoformat(moment).replace(tzinfo=zone_of(zone))
    return local.astimezone(zone_of(other)).replace(tzinfo=None).isoformat(" ")


def _difference(one: str, other: str) -> str:
    """TIMEDIFF."""
    minutes = (dt.datetime.fromisoformat(one) - dt.datetime.fromisoformat(other)).total_seconds() // 60
    return f"{'-' * (minutes < 0)}{abs(minutes) // 60:02.0f}:{abs(minutes) % 60:02.0f}:00"


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "concat": lambda *parts: None if None in parts else "".join(map(str, parts)),
    "convert_tz": _in_zone,
    "timediff": _difference,
    "now": lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "seconds"),
    "time_format": lambda time, form: time.rpartition(":")[0],
}
"""What SQLite lacks of the functions that clients ask for metadata and the time zone with."""
UTF8 = {"character_set_name": "utf8mb4", "collation_name": "utf8mb4_general_ci"}
_CHARACTERS = {
    "character_set_name": "utf8mb4",
    "default_collate_name": UTF8["collation_name"],
    "description": "UTF-8",
    "maxlen": 4,
}
Answered = tuple[Sequence[Sequence[Any]], Sequence[str]]


@dataclass(frozen=True)
class Table:
    """What FROM can read. kind: BASE TABLE or VIEW; schema: its type in Spark, None where it is not known."""

    database: str
    name: str
    kind: str
    schema: Any
    comment: str = ""


class Databases(BaseInfoSchema):
    """The databases of MySQL that hold metadata. current: the schema in which live tables are shown; run:
    calls a function on the thread of a client, as it asks Spark.
    """

    def __init__(self, parts: SessionParts, current: str, run: Callable[..., Awaitable[Any]]) -> None:
        self._parts, self._current, self._run = parts, current, run

    async def query(self, expression: exp.Expression) -> Any:
        """(rows, names) of a query of MySQL over these databases. Raises sqlite3.Error."""
        return await self._run(self._query, expression)

    def _query(self, expression: exp.Expression) -> Answered:
        with_columns = any(table.name.lower() == "columns" for table in expression.find_all(exp.Table))
        names = databases_of(self._parts.spark)
        tables = tables_of(self._parts, names, self._current, with_columns)
        return answered(expression, names, sorted(tables, key=lambda table: (table.database, table.name)))


def answered(
    expression: exp.Expression, databases: Sequence[str] = (), tables: Sequence[Table] = ()
) -> Answered:
    """(rows, names) of a query over metadata. Raises sqlite3.Error."""
    memory = sqlite3.connect(":memory:")
    try:
        _create(memory)
        _fill(memory, "schemata", map(_of_schema, [*databases, *INFO_SCHEMA]))
        _fill(memory, "tables", map(_of_table, tables))
        _fill(memory, "columns", (row for table in tables for row in _of_columns(table)))
        _fill(memory, "character_sets", [_CHARACTERS])
        _fill(memory, "collations", [UTF8 | {"id": 45, "is_default": "Yes", "is_compiled": "Yes"}])
        for name, function in FUNCTIONS.items():
            memory.create_function(name, -1, function)
        cursor = memory.execute(expression.transform(_plain).sql(dialect="sqlite"))
        return cursor.fetchall(), [name for name, *_ in cursor.description or ()]
    finally:
        memory.close()


def _create(memory: sqlite3.Connection) -> None:
    memory.execute("CREATE TABLE main.dual AS SELECT 'X' AS dummy")
    for database, tables in INFO_SCHEMA.items():
        memory.execute(f"ATTACH ':memory:' AS {database}")
        for table, columns in tables.items():
            listed = ", ".join(f"{name.upper()} COLLATE NOCASE" for name in columns)
            memory.execute(f"CREATE TABLE {database}.{table} ({listed})")


def _fill(memory: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        marks = ", ".join("?" for _ in row)
        memory.execute(
            f"INSERT INTO information_schema.{table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )


def _plain(node: exp.Expression) -> exp.Expression:
    """Without COLLATE, as names are compared without case here; HAVING without GROUP BY is WHERE."""
    if isinstance(node, exp.Select) and node.args.get("having") and not node.args.get("group"):
        named = {part.alias: part.this for part in node.expressions if part.alias}
        return node.where(
            node.args["having"]
            .pop()
            .this.transform(lambda part: named.get(part.name, part) if isinstance(part, exp.Column) else part)
        )
    if isinstance(node, exp.ConvertTimezone):
        parts = (node.args[name].transform(_plain) for name in ("timestamp", "source_tz", "target_tz"))
        return exp.Anonymous(this="convert_tz", expressions=list(parts))
    if isinstance(node, exp.Collate):
        return node.this.transform(_plain)
    return node


def _of_schema(name: str) -> dict[str, Any]:
    return {
        "catalog_name": "def",
        "schema_name": name,
        "default_character_set_name": "utf8mb4",
        "default_collation_name": UTF8["collation_name"],
    }


def _of_table(table: Table) -> dict[str, Any]:
    return {
        "table_catalog": "def",
        "table_schema": table.database,
        "table_name": table.name,
        "table_type": table.kind,
        "engine": None if table.kind == "VIEW" else "Spark",
        "table_collation": None if table.kind == "VIEW" else UTF8["collation_name"],
        "table_comment": table.comment,
    }


def _of_columns(table: Table) -> Iterator[dict[str, Any]]:
    for place, field in enumerate(table.schema.fields if table.schema is not None else (), 1):
        kind = kind_of(field.dataType)
        row = {
            "table_catalog": "def",
            "table_schema": table.database,
            "table_name": table.name,
            "column_name": field.name,
            "ordinal_position": place,
            "is_nullable": "YES" if field.nullable else "NO",
            "data_type": kind.name.partition("(")[0],
            "column_type": kind.name,
            "column_key": "",
            "extra": "",
            "privileges": "select",
            "column_comment": field.metadata.get("comment", ""),
            "generation_expression": "",
        }
        yield row | _sizes(kind, field.dataType)


def _sizes(kind: Kind, spark_type: Any) -> dict[str, Any]:
    if kind.name.startswith(("text", "json")):
        return UTF8 | {"character_maximum_length": kind.length}
    if kind.name.startswith("decimal"):
        return {"numeric_precision": spark_type.precision, "numeric_scale": spark_type.scale}
    return {"datetime_precision": kind.decimals} if kind.decimals == 6 else {}


def databases_of(spark: Any) -> list[str]:
    """The names of the schemas of Spark's current catalog."""
    return [row[0] for row in spark.sql("SHOW SCHEMAS").collect()]


def tables_of(
    parts: SessionParts, databases: Sequence[str], current: str, with_schema: bool
) -> Iterator[Table]:
    """What FROM can read: live tables, which are shown in the current schema, as are temporary views; the
    tables and views of the schemas of Spark's current catalog. with_schema: whether with their columns.
    """
    spark, own = parts.spark, set[str]()
    for entry in parts.catalog.live_tables():
        rows = informing(partial(parts.live.get, entry.name.casefold()), None)
        own.add(entry.name.casefold())
        yield Table(
            current, entry.name, "BASE TABLE", rows.schema if rows is not None else None, entry.comment
        )
    for database in databases:
        for table in spark.catalog.listTables(database):
            if table.isTemporary and (
                database != current or table.name.casefold() in own or "$" in table.name
            ):
                continue  # each schema lists them; the console's own have $ in their names
            name = quote_name(table.name)
            full = name if table.isTemporary else f"{quote_name(database)}.{name}"
            schema = informing(partial(_schema_of, spark, full), None) if with_schema else None
            kind = "VIEW" if table.tableType in ("VIEW", "TEMPORARY") else "BASE TABLE"
            yield Table(database, table.name, kind, schema, table.description or "")
    yield from (
        Table(name, table, "SYSTEM VIEW", None) for name in INFO_SCHEMA for table in INFO_SCHEMA[name]
    )


def _schema_of(spark: Any, name: str) -> Any:
    return spark.table(name).schema
