"""The dialect streamsql:// of SQLAlchemy: streamsql:////DIR, also with ?read_only=true, ?master=local[2] and
settings of Spark. Without a folder the workspace is a temporary one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sqlalchemy import exc, pool, text, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.url import URL
from sqlalchemy.sql import compiler, sqltypes, type_api

from streamsql.errors import RuleFault
from streamsql.features.dbapi import pep249, type_objects
from streamsql.language.python_values import literal
from streamsql.language.reference import keywords

STREAM, LIVE_TABLE = "stream", "live table"


class SparkType(types.UserDefinedType[Any]):
    """A type of Spark that SQLAlchemy has none for: its values are those of the cursor."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **arguments: Any) -> str:
        """The type as SQL."""
        return self.name


class SparkInterval(type_api.NativeForEmulated, sqltypes._AbstractInterval):
    """INTERVAL DAY TO SECOND, whose values are those of timedelta."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **arguments: Any) -> SparkInterval:
        """The type for sqlalchemy.Interval."""
        return cls()

    @property
    def _type_affinity(self) -> type[types.Interval]:
        return types.Interval

    def bind_processor(self, dialect: Any) -> None:
        """None: the cursor takes a timedelta."""


_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "BOOLEAN": types.Boolean,
    "TINYINT": types.SmallInteger,
    "SMALLINT": types.SmallInteger,
    "INT": types.Integer,
    "BIGINT": types.BigInteger,
    "FLOAT": types.Float,
    "DOUBLE": types.Double,
    "STRING": types.String,
    "BINARY": types.LargeBinary,
    "DATE": types.Date,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMP_NTZ": types.DateTime,
    "TIME": types.Time,
}


def type_of(name: str) -> types.TypeEngine[Any]:
    """The type of SQLAlchemy for one of Spark, as DESCRIBE writes it."""
    if name.startswith("INTERVAL "):
        return SparkType(name) if name == type_objects.STRING else types.Interval()
    array = re.fullmatch(r"((?:ARRAY<)+)(.*?)(>+)", name)
    if array:
        dimensions = array[1].count("<")
        return types.ARRAY(type_of(array[2] + array[3][dimensions:]), dimensions=dimensions)
    decimal = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", name)
    if decimal:
        return types.Numeric(int(decimal[1]), int(decimal[2]))
    chars = re.fullmatch(r"(VARCHAR|CHAR)\((\d+)\)", name)
    if chars:
        return (types.CHAR if chars[1] == "CHAR" else types.VARCHAR)(int(chars[2]))
    kind = _TYPES.get(re.sub(r"\(\d+\)", "", name))
    return kind() if kind else SparkType(name)


class StreamsqlPreparer(compiler.IdentifierPreparer):
    """Names in backticks, where one is needed."""

    reserved_words = {word.casefold() for word in keywords() if len(word) > 1}

    def __init__(self, dialect: default.DefaultDialect) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`")

    def schema_for_object(self, table: Any) -> str | None:  # type: ignore[override]
        """The schema that is written: not the default one, as streams and live tables have none."""
        schema: str | None = table.schema
        return None if schema == self.dialect.default_schema_name else schema


class StreamsqlCompiler(compiler.SQLCompiler):
    """SELECT as Spark takes it."""

    def limit_clause(self, select: Any, **arguments: Any) -> str:
        """LIMIT and OFFSET, each alone or both."""
        parts = (("LIMIT", select._limit_clause), ("OFFSET", select._offset_clause))
        return "".join(f"\n {word} {self.process(n, **arguments)}" for word, n in parts if n is not None)

    def visit_empty_set_expr(self, element_types: Any, **arguments: Any) -> str:
        """A query without rows."""
        return f"SELECT {', '.join('NULL' for _ in element_types or [None])} WHERE 1 != 1"

    def visit_empty_set_op_expr(self, type_: Any, expand_op: Any, **arguments: Any) -> str:
        """What is behind IN for no values; of tuples a query, whose NULLs take the types of the others."""
        if len(type_) > 1:
            return self.visit_empty_set_expr(type_)
        return super().visit_empty_set_op_expr(type_, expand_op, **arguments)

    def visit_delete(self, delete_stmt: Any, *options: Any, **arguments: Any) -> str:
        """DELETE; TRUNCATE for all rows, as tables of files have no DELETE."""
        written = super().visit_delete(delete_stmt, *options, **arguments)
        return written if delete_stmt._where_criteria else written.replace("DELETE FROM", "TRUNCATE TABLE", 1)

    def visit_mod_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        """The sign % is none of a parameter."""
        return f"{self.process(binary.left, **arguments)} % {self.process(binary.right, **arguments)}"

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """A value as the literal that it is as a parameter."""
        if type(value) is int:
            return super().render_literal_value(value, type_)
        convert = type_.dialect_impl(self.dialect).bind_processor(self.dialect)
        return literal(convert(value) if convert is not None else value)

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        """A text that matches a regular expression."""
        flags = binary.modifiers["flags"]
        pattern = self.process(binary.right, **arguments)
        pattern = f"concat({literal(f'(?{flags})')}, {pattern})" if flags else pattern
        return f"{self.process(binary.left, **arguments)} RLIKE {pattern}"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        """A text that does not match it."""
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **arguments)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **arguments: Any) -> str:
        """A text with what matches a regular expression replaced."""
        flags = binary.modifiers["flags"]
        pattern, replacement = (self.process(part, **arguments) for part in binary.right.clauses)
        pattern = f"concat({literal(f'(?{flags})')}, {pattern})" if flags else pattern
        return f"regexp_replace({self.process(binary.left, **arguments)}, {pattern}, {replacement})"


class StreamsqlTypes(compiler.GenericTypeCompiler):
    """Types as Spark writes them."""

    def _string(self, type_: Any, **arguments: Any) -> str:
        return "STRING"

    def visit_VARCHAR(self, type_: Any, **arguments: Any) -> str:
        """A text, of at most so many characters where a length is given."""
        return f"VARCHAR({type_.length})" if type_.length else "STRING"

    visit_NVARCHAR = visit_NCHAR = visit_VARCHAR

    def visit_CHAR(self, type_: Any, **arguments: Any) -> str:
        """A text of exactly so many characters where a length is given."""
        return f"CHAR({type_.length})" if type_.length else "STRING"

    def visit_ARRAY(self, type_: Any, **arguments: Any) -> str:
        """An array of as many dimensions as are given, or one."""
        inner = self.process(type_.item_type, **arguments)
        for _ in range(type_.dimensions or 1):
            inner = f"ARRAY<{inner}>"
        return inner

    def visit_INTERVAL(self, type_: Any, **arguments: Any) -> str:
        """A length of time."""
        return "INTERVAL DAY TO SECOND"

    visit_TEXT = visit_CLOB = visit_JSON = visit_UUID = visit_uuid = visit_enum = _string

    def _binary(self, type_: Any, **arguments: Any) -> str:
        return "BINARY"

    visit_BLOB = visit_BINARY = visit_VARBINARY = visit_large_binary = _binary

    def _double(self, type_: Any, **arguments: Any) -> str:
        return "DOUBLE"

    visit_FLOAT = visit_DOUBLE = visit_DOUBLE_PRECISION = _double

    def visit_REAL(self, type_: Any, **arguments: Any) -> str:
        """A number of 32 bits."""
        return "FLOAT"

    def visit_INTEGER(self, type_: Any, **arguments: Any) -> str:
        """A number of 32 bits."""
        return "INT"

    def visit_DATETIME(self, type_: Any, **arguments: Any) -> str:
        """A moment."""
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_NUMERIC(self, type_: Any, **arguments: Any) -> str:
        """DECIMAL has no fraction in Spark where no scale is given."""
        return f"DECIMAL({type_.precision or 38}, {18 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC


class StreamsqlDDL(compiler.DDLCompiler):
    """CREATE TABLE of Spark: its tables have no keys and no other constraints."""

    def get_column_specification(self, column: Any, **arguments: Any) -> str:
        """A column with its comment."""
        comment = f" COMMENT {literal(column.comment)}" if column.comment is not None else ""
        return super().get_column_specification(column, **arguments) + comment

    def post_create_table(self, table: Any) -> str:
        """The comment of the table."""
        return f" COMMENT {literal(table.comment)}" if table.comment is not None else ""

    def visit_set_column_comment(self, create: Any, **arguments: Any) -> str:
        """Change the comment of a column."""
        column = create.element
        table, name = self.preparer.format_table(column.table), self.preparer.format_column(column)
        return f"ALTER TABLE {table} ALTER COLUMN {name} COMMENT {literal(column.comment)}"

    def visit_drop_column_comment(self, drop: Any, **arguments: Any) -> str:
        """Remove the comment of a column."""
        column = drop.element
        table, name = self.preparer.format_table(column.table), self.preparer.format_column(column)
        return f"ALTER TABLE {table} ALTER COLUMN {name} COMMENT ''"

    def create_table_constraints(self, table: Any, *options: Any, **arguments: Any) -> str:
        """None."""
        return ""

    def visit_create_index(self, create: Any, *options: Any, **arguments: Any) -> str:
        """Nothing: one would only make reading faster. Raises CompileError for a unique one."""
        if create.element.unique:
            raise exc.CompileError("Spark has no unique indexes")
        return ""

    def visit_drop_index(self, drop: Any, **arguments: Any) -> str:
        """Nothing."""
        return ""


class StreamsqlDialect(default.DefaultDialect):
    """Live tables and Spark's tables are tables; streams and Spark's views are views: to read one computes
    its rows from the input that is there. One connection is used for all, as a process has one Spark.
    """

    name = driver = "streamsql"
    preparer: type[compiler.IdentifierPreparer] = StreamsqlPreparer
    statement_compiler = StreamsqlCompiler
    type_compiler_cls = StreamsqlTypes
    ddl_compiler = StreamsqlDDL
    default_paramstyle = "qmark"
    max_identifier_length = 255
    supports_statement_cache = True
    supports_alter = False
    supports_comments = inline_comments = True
    supports_default_values = False
    supports_empty_insert = False
    supports_multivalues_insert = True
    supports_native_boolean = True
    supports_native_decimal = True
    div_is_floordiv = False
    colspecs = {types.Interval: SparkInterval}
    supports_sane_rowcount = supports_sane_multi_rowcount = False
    supports_sequences = False
    postfetch_lastrowid = False
    preexecute_autoincrement_sequences = False
    insert_returning = update_returning = delete_returning = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module of the DB-API."""
        return pep249

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """One connection, which threads share."""
        return pool.StaticPool

    def create_connect_args(self, url: URL) -> Any:
        """The arguments of streamsql.connect."""
        query = dict(url.query)
        options: dict[str, Any] = {
            "conf": {key: query.pop(key) for key in list(query) if key.startswith("spark.")},
            "read_only": str(query.pop("read_only", "false")).casefold() in ("true", "1", "yes"),
            "master": query.pop("master", None),
        }
        if query or url.host:
            other = url.host or next(iter(query))
            raise exc.ArgumentError(
                f"streamsql:////DIR?read_only=true&master=…&spark.…=… names a workspace; it has no {other}"
            )
        return [url.database or None], options

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Execute a statement. Raises NotSupportedError for RETURNING, which the console would leave out."""
        if getattr(getattr(context, "compiled", None), "effective_returning", None):
            raise pep249.NotSupportedError(RuleFault("Spark has no RETURNING", code="CLAUSE_NOT_SUPPORTED"))
        cursor.execute(statement, parameters)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing: there are no transactions."""

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        version = connection.exec_driver_sql("SELECT version()").scalar() or ""
        return tuple(int(part) for part in re.findall(r"\d+", version.split()[0]))

    def _get_default_schema_name(self, connection: Any) -> str:
        return str(connection.exec_driver_sql("SELECT current_schema()").scalar())

    def is_disconnect(self, error: Any, connection: Any, cursor: Any) -> bool:
        """Whether the server was lost."""
        return getattr(error, "code", "") in ("SERVER_LOST", "CONNECTION_CLOSED")

    # ---- what there is --------------------------------------------------------------------

    @reflection.cache
    def _relations(self, connection: Any, schema: str | None, **arguments: Any) -> dict[str, str]:
        """The kind of each relation by its name: stream, live table, table, view, temporary view."""
        if schema in (None, self.default_schema_name):
            rows = connection.exec_driver_sql("SHOW TABLES").all()
            return {row[0]: row[1] for row in rows}
        name = self.identifier_preparer.quote_identifier(schema or "")
        views = {row[1] for row in connection.exec_driver_sql(f"SHOW VIEWS IN {name}") if not row[2]}
        tables = [row[1] for row in connection.exec_driver_sql(f"SHOW TABLES IN {name}") if not row[2]]
        return {table: "view" if table in views else "table" for table in tables}

    def _named(
        self, connection: Any, schema: str | None, kinds: tuple[str, ...], **arguments: Any
    ) -> list[str]:
        relations = self._relations(connection, schema, **arguments)
        return [name for name, kind in relations.items() if kind in kinds]

    @reflection.cache
    def get_schema_names(self, connection: Any, **arguments: Any) -> list[str]:
        """The schemas of Spark."""
        return list(connection.exec_driver_sql("SHOW SCHEMAS").scalars())

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **arguments: Any) -> list[str]:
        """Live tables, and tables of Spark."""
        return self._named(connection, schema, (LIVE_TABLE, "table"), **arguments)

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **arguments: Any) -> list[str]:
        """Streams, and views of Spark."""
        return self._named(connection, schema, (STREAM, "view"), **arguments)

    @reflection.cache
    def get_temp_view_names(self, connection: Any, schema: str | None = None, **arguments: Any) -> list[str]:
        """Temporary views of Spark."""
        return self._named(connection, schema, ("temporary view",), **arguments)

    @reflection.cache
    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **arguments: Any
    ) -> bool:
        """Whether there is a table, view or stream of a name."""
        if schema is not None and not self.has_schema(connection, schema, **arguments):
            return False
        folded = {name.casefold() for name in self._relations(connection, schema, **arguments)}
        return table_name.casefold() in folded

    def has_schema(self, connection: Any, schema_name: str, **arguments: Any) -> bool:
        """Whether Spark has a schema of a name."""
        return schema_name in self.get_schema_names(connection, **arguments)

    @reflection.cache
    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **arguments: Any
    ) -> list[Any]:
        """The columns of a table, view or stream. Raises NoSuchTableError."""
        self._check_table(connection, table_name, schema, **arguments)
        of_spark: dict[str, Any] = {}
        if self._relations(connection, schema, **arguments).get(table_name) == "table":
            described = self._described(connection, table_name, schema)
            of_spark = {column["name"]: column for column in described["columns"]}
        own = schema in (None, self.default_schema_name)
        columns = []
        name = self._quoted(table_name, None if own else schema)
        for column, kind, comment in connection.exec_driver_sql(f"DESCRIBE {name}"):
            if not column or column.startswith("#"):  # partitions follow
                break
            columns.append(
                {
                    "name": column,
                    "type": type_of(kind),
                    "nullable": of_spark.get(column, {}).get("nullable", True),
                    "default": of_spark.get(column, {}).get("default"),
                    "comment": comment or None,
                }
            )
        return columns

    @reflection.cache
    def get_view_definition(
        self, connection: Any, view_name: str, schema: str | None = None, **arguments: Any
    ) -> str:
        """The statement that makes a view or stream. Raises NoSuchTableError."""
        kind = self._relations(connection, schema, **arguments).get(view_name, "")
        if kind not in (STREAM, "view", "temporary view"):
            raise exc.NoSuchTableError(view_name)
        name = self._quoted(view_name, schema)
        what = "STREAM" if kind == STREAM else "TABLE"
        return "\n".join(connection.execute(text(f"SHOW CREATE {what} {name}")).scalars())

    @reflection.cache
    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **arguments: Any
    ) -> Any:
        """The comment of a table of Spark. Raises NoSuchTableError."""
        self._check_table(connection, table_name, schema, **arguments)
        kind = self._relations(connection, schema, **arguments).get(table_name, "")
        if kind not in ("table", "view"):
            return {"text": None}
        return {"text": self._described(connection, table_name, schema).get("comment") or None}

    def _described(self, connection: Any, name: str, schema: str | None) -> Any:
        """What Spark knows of a table."""
        written = f"DESCRIBE TABLE EXTENDED {self._quoted(name, schema)} AS JSON"
        return json.loads(connection.exec_driver_sql(written).scalar())

    def _quoted(self, name: str, schema: str | None) -> str:
        quote = self.identifier_preparer.quote_identifier
        return f"{quote(schema)}.{quote(name)}" if schema else quote(name)

    def _check_table(self, connection: Any, name: str, schema: str | None, **arguments: Any) -> None:
        if not self.has_table(connection, name, schema, **arguments):
            raise exc.NoSuchTableError(f"{schema}.{name}" if schema else name)

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **arguments: Any
    ) -> Any:
        """No key. Raises NoSuchTableError."""
        self._check_table(connection, table_name, schema, **arguments)
        return {"constrained_columns": [], "name": None}

    def _none(
        self, connection: Any, table_name: str, schema: str | None = None, **arguments: Any
    ) -> list[Any]:
        """None of them. Raises NoSuchTableError."""
        self._check_table(connection, table_name, schema, **arguments)
        return []

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _none
