"""Explains what Spark's analysis and parser refuse: names that do not exist, types that do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamsql.errors import Span, did_you_mean
from streamsql.language.dialects.functions import reason
from streamsql.language.missing_keys import with_group_by
from streamsql.language.places import any_of_array, place_of_relation, text_as_relation, unlike_windows
from streamsql.language.reference import functions
from streamsql.language.spark_syntax import missing_end_in, unreadable
from streamsql.language.tokens import quote_name
from streamsql.results import counted

_DEFAULT = "spark_catalog.default."
_RELATIONS = "SHOW STREAMS; and SHOW TABLES; list them"
_SCHEMAS = "SHOW SCHEMAS; lists them, CREATE SCHEMA makes one"
_FIRST_SCHEMAS = {
    "public": "PostgreSQL",
    "main": "DuckDB",
    "default_database": "Flink",
    "default_catalog": "Flink",
    "dev": "RisingWave",
    "materialize": "Materialize",
}
"""The schemas and databases in which other consoles begin."""


@dataclass(frozen=True)
class Explained:
    """message: the fact, with details behind it; span: a better place than the one that Spark tells;
    relation, suggests: see EngineFault.
    """

    message: str
    hint: str = ""
    proposal: str = ""
    span: Span | None = None
    relation: str = ""
    suggests: bool = False


def explained(
    condition: str,
    message: str,
    parameters: Mapping[str, str],
    text: str,
    span: Span | None,
    relations: Iterable[str],
) -> Explained:
    """What an error of Spark says in the console's words. text: the statement; span: the place that Spark
    tells; relations: names of streams and tables.
    """

    def named(key: str) -> str:
        return parameters.get(key, "").replace("`", "")

    if condition.startswith("UNRESOLVED_COLUMN"):
        name, near = named("objectName"), named("proposal").split(", ")
        more = ", …" if len(near) >= _SUGGESTED else ""
        listed = f"columns: {', '.join(n for n in near if n)}{more}" if near[0] else ""
        hint = did_you_mean(name, near) or _COLUMNS_OF_OTHERS.get(name.casefold(), listed)
        if hint == listed and place_of_relation(text, name):
            hint = f"struct({name}.*) is a whole row of it"
        return Explained(f"there is no column {name}", hint, suggests=hint == listed)
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = named("relationName").removeprefix(_DEFAULT)
        schema, _, table = name.rpartition(".")
        names, place = list(relations), place_of_relation(text, name)
        if name.casefold() in (relation.casefold() for relation in names):
            hint = (
                f"SELECT … FROM {quote_name(name)}: a statement reads streams and live tables that it names"
            )
            return Explained(f"Spark does not see {name} here", hint, span=place, relation=name)
        hint = _first_schema(schema, table) or did_you_mean(name, names) or _RELATIONS
        return Explained(f"there is no stream, table or view {name}", hint, span=place, relation=name)
    if condition == "SCHEMA_NOT_FOUND":
        name = named("schemaName").removeprefix("spark_catalog.")
        hint = _first_schema(name.rpartition(".")[2], "") or _SCHEMAS
        return Explained(f"there is no schema {name}", hint)
    if condition == "REQUIRES_SINGLE_PART_NAMESPACE":
        schema, _, table = named("identifier").rpartition(".")
        hint = _first_schema(schema.rpartition(".")[2], table) or _SCHEMAS
        return Explained(f"there is no schema {schema}", hint)
    if condition == "CATALOG_NOT_FOUND":
        return Explained(message, "SHOW CATALOGS; lists them")
    if condition == "UNRESOLVED_ROUTINE":
        name = named("routineName")
        hint = reason(name) or did_you_mean(name, functions()) or "SHOW FUNCTIONS; lists them"
        return Explained(f"there is no function {name}", hint)
    if condition == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
        name = named("name")
        return Explained(f"there is no table function {name}", reason(name) or "SHOW FUNCTIONS; lists them")
    if condition == "UNBOUND_SQL_PARAMETER":
        name = parameters.get("name", "")
        hint = f"DEFINE {name} = '…'; sets a variable, and ${{{name}}} stands for its value"
        return Explained(f"the parameter :{name} has no value", hint)
    if condition == "UNSUPPORTED_FEATURE.TABLE_OPERATION":
        return _table_operation(named("tableName"), parameters.get("operation", "this"), text)
    if condition == "PARSE_SYNTAX_ERROR":
        return _unreadable(parameters, text, span)
    if condition in ("MISSING_GROUP_BY", "MISSING_AGGREGATION"):
        column = named("expression").strip('"')
        grouped = with_group_by(text, column) if column.isidentifier() or not column else None
        if grouped is None:
            return Explained(message, "GROUP BY names each column that SELECT does not aggregate")
        what = text[grouped[1].start : grouped[1].end]
        return Explained(
            f"{what} is neither aggregated nor in GROUP BY", proposal=grouped[0], span=grouped[1]
        )
    if condition == "ASSIGNMENT_ARITY_MISMATCH" and text.lstrip()[:6].upper() == "INSERT":
        # toDF gives the number of the rows' values as that of the targets.
        values, columns = (int(parameters.get(key, "0")) for key in ("numTarget", "numExpr"))
        fact = f"the rows have {counted(values, 'value')}, for {counted(columns, 'column')}"
        fewer = "INSERT INTO name (column, …) names the columns that have a value; the others are NULL"
        return Explained(fact, fewer if values < columns else "")
    if condition == "UNSUPPORTED_TIME_TYPE":
        return Explained("the type TIME is switched off", USE_TIME)
    if condition == "INVALID_ARRAY_INDEX":
        return Explained(message, "list[0] is the first element; element_at(list, 1) counts from 1")
    if condition == "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE":
        place, own = any_of_array(text) if "ARRAY<" in parameters.get("inputType", "") else (None, "")
        if own:
            return Explained("Spark compares with ANY (…) no list", own, span=place)
        return Explained(message, _number_for_time(parameters) or _list_first(parameters))
    if condition == "DATATYPE_MISMATCH.DATA_DIFF_TYPES" and "ARRAY<" in parameters.get("dataType", ""):
        return Explained(
            message, "array_append(list, value) adds one value, array_prepend(list, value) in front"
        )
    if condition == "INVALID_EXTRACT_BASE_FIELD_TYPE" and "STRING" in parameters.get("other", ""):
        return Explained(message, "substr(text, 1, 1) is the first letter of a text")
    if message.startswith("Multiple time/session window expressions"):
        return _several_windows(text)
    if message.startswith("Cannot mix year-month and day-time fields"):
        return Explained(
            "an interval alone has years and months, or days and times, not both",
            "write two, INTERVAL '1 month' and INTERVAL '2 days'; behind a time and a sign both stand in one",
        )
    return Explained(message)


_SUGGESTED = 5
"""The number of columns that Spark suggests at most."""
USE_TIME = "SET spark.sql.timeType.enabled = true; switches it on"
_COLUMNS_OF_OTHERS = {
    "rowpartition": "ROWPARTITION of ksqlDB is _partition of a stream USING kafka",
    "rowoffset": "ROWOFFSET of ksqlDB is _offset of a stream USING kafka",
    "rowid": "monotonically_increasing_id() numbers rows",
    "ctid": "monotonically_increasing_id() numbers rows",
}
"""A column that every table of another console has, folded, and what there is here."""


def _first_schema(name: str, table: str) -> str:
    """The hint for a schema in which another console begins; "" for any other. table: one in it."""
    database = _FIRST_SCHEMAS.get(name.casefold())
    own = f"write {table} alone" if table else "USE default;"
    return f"{name} of {database} is the schema default here: {own}" if database else ""


_REPLACED = re.compile(r"^\s*CREATE\s+OR\s+REPLACE\s+TABLE\b", re.IGNORECASE)
_ONLY_INSERT = (
    "rows of files can only be added; DELETE, UPDATE and MERGE need a catalog whose tables support them"
)


def _table_operation(table: str, operation: str, text: str) -> Explained:
    name = table.rpartition(".")[2]
    new = _REPLACED.sub("CREATE TABLE", text)
    proposal = f"DROP TABLE IF EXISTS {quote_name(name)}; {new};" if new != text else ""
    return Explained(f"the table {name} does not support {operation}\n{_ONLY_INSERT}", proposal=proposal)


def _unreadable(parameters: Mapping[str, str], text: str, span: Span | None) -> Explained:
    near, more = parameters.get("error", ""), parameters.get("hint", "")
    if span is None:
        return Explained(f"Spark cannot read the statement at {near}{more}")
    quoted = text_as_relation(text, span.start)
    if quoted:
        written = quoted.text
        why = f"{written} has no extension that tells the format of its files"
        return Explained(why, proposal=f"PREVIEW {written};", span=quoted.span)
    end = missing_end_in(text, span.start)
    if end:
        return Explained(end.message, end.hint, span=end.span)
    cause = unreadable(text, span.start, near, more)
    return Explained(cause.message, cause.hint, proposal=cause.proposal, span=cause.span)


_NUMBERS = frozenset(("INT", "BIGINT"))


def _number_for_time(parameters: Mapping[str, str]) -> str:
    """The hint for a number where Spark takes a time, as functions of ksqlDB take milliseconds."""
    kind, value = (parameters.get(key, "").strip('"') for key in ("inputType", "inputSql"))
    if kind not in _NUMBERS or "TIMESTAMP" not in parameters.get("requiredType", ""):
        return ""
    return f"timestamp_millis({value}) is a TIMESTAMP, or timestamp_seconds({value})"


def _list_first(parameters: Mapping[str, str]) -> str:
    """The hint for a function of arrays whose first argument is none, as PostgreSQL has it, and for the
    length of an array, as DuckDB has it.
    """
    name = parameters.get("sqlExpr", "").strip('"').partition("(")[0]
    if name in ("len", "length") and parameters.get("inputType", "").startswith('"ARRAY'):
        return "array_size(list) is the number of its elements"
    first = parameters.get("requiredType", "") == '"ARRAY"' and parameters.get("paramIndex") == "first"
    return f"the array comes first: {name}(list, value)" if first and name.startswith("array_") else ""


def _several_windows(text: str) -> Explained:
    unlike = unlike_windows(text)
    if unlike is None:
        return Explained(
            "a SELECT has one window", "group by the first in a sub-query, and by the second around it"
        )
    place, _, grouped = unlike
    name = grouped.partition("(")[0].casefold()
    return Explained(
        "the window in SELECT is not that of GROUP BY",
        f"{name}.start and {name}.end are those of GROUP BY {grouped}",
        span=place,
    )
