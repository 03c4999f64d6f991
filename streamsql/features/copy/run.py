"""COPY TO and FROM files, and SUMMARIZE."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from streamsql.calls import run
from streamsql.errors import InputFault, NameFault, no_folder
from streamsql.features.copy.plan import CopyRows, Summary
from streamsql.features.copy.statement import Copy, CopyFrom, FileForm
from streamsql.language.statements.base import Name, Statement
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.plan import plans
from streamsql.plan.basic_plans import Plan
from streamsql.results import Copied, Done, InfoRows, Result, Rows, counted
from streamsql.runtime.engine.row_fetch import fetch
from streamsql.runtime.engine.row_values import collect, is_numeric
from streamsql.runtime.engine.spark_errors import translate
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.start_stop import rows_of_stream
from streamsql.runtime.parts import SessionParts
from streamsql.text_files import open_text

_SUMMARY = (
    "column_name", "column_type", "min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75", "count",
    "null_percentage",
)  # fmt: skip

_SUMMARY_MATTERS = (
    "column_name", "min", "max", "count", "avg", "column_type", "null_percentage", "approx_unique", "q50",
    "std", "q25", "q75",
)  # fmt: skip
"""The columns of SUMMARIZE, the most important first."""
_NEEDED = 6
"""The number of those without which the table says too little."""


def _over(parts: SessionParts, plan: Plan, use: Callable[[Any], Any]) -> Any:
    """Call a function with the DataFrame of a SELECT; that of a stream has what is there now."""
    if isinstance(plan, plans.Run):
        return rows_of_stream(parts, plan, use)
    assert isinstance(plan, plans.Collect)
    with parts.own_state_provider(plan.program):
        return use(run(plan.program, parts.env(plan.program, plan.reads)))


def _copy(parts: SessionParts, plan: CopyRows, statement: Copy) -> Result:
    path = Path(plan.path).expanduser()
    if plan.form.format == "parquet":
        return Done(message=_over(parts, plan.rows, lambda frame: _to_parquet(frame, path, statement.path)))

    def failed(error: Exception) -> Exception:
        return translate(error, statement, parts.catalog.relation_names())

    def rows(frame: Any) -> Any:
        fetched = fetch(frame, parts.cancel, failed)
        return fetched if isinstance(plan.rows, plans.Collect) else fetched.whole()

    form = plan.form
    return Copied(
        rows=_over(parts, plan.rows, rows),
        path=str(path),
        format=form.format,
        header=form.header is not False,
        delimiter=form.delimiter,
        place=statement.path.span,
    )


def _to_parquet(frame: Any, path: Path, place: Name) -> str:
    """Write one file of Parquet, in a folder of its own first."""
    from pyarrow.parquet import read_metadata

    if not path.parent.is_dir():
        raise no_folder(path, place.span)
    folder = path.with_name(f".{path.name}.part")
    try:
        frame.coalesce(1).write.mode("overwrite").parquet(str(folder.absolute()))
        (file,) = folder.glob("part-*.parquet")
        file.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return f"{counted(read_metadata(path).num_rows, 'row')} copied to {path}"


def _copy_from(parts: SessionParts, statement: CopyFrom) -> Result:
    """Add the rows of a file to a table; a row that cannot be read fails the whole."""
    spark, name, path = parts.spark, statement.name, Path(statement.path.value).expanduser()
    if not path.exists():
        raise InputFault(f"there is no file {path}", span=statement.path.span, code="MISSING_PATH")
    table = ".".join(quote_name(part) for part in name.value.split("."))
    if not spark.catalog.tableExists(table):
        view = quote_name(statement.form.format if statement.form.format != "jsonl" else "json")
        raise NameFault(
            f"there is no table {name.value}",
            hint=f"CREATE TABLE {table} AS SELECT * FROM {view}.`{path}`;",
            span=name.span,
            code="UNKNOWN_RELATION",
        )
    frame = _read(spark, spark.table(table).schema, path, statement.form)
    count = frame.count()
    frame.write.insertInto(table)
    return Done(message=f"{counted(count, 'row')} copied into {name.value}")


def _read(spark: Any, schema: Any, path: Path, form: FileForm) -> Any:
    place = str(path.absolute())
    if form.format == "parquet":
        return spark.read.parquet(place).select(*(f"`{name}`" for name in schema.names))
    reader = spark.read.schema(schema).option("mode", "FAILFAST")
    if form.format in ("json", "jsonl"):
        return reader.option("multiLine", form.format == "json").json(place)
    delimiter = "\t" if form.format == "tsv" else form.delimiter
    header = _has_header(path, delimiter, schema.names) if form.header is None else form.header
    # A NULL is a field without a character, which Spark reads as nullValue: a text that no file has.
    reader = reader.options(header=header, sep=delimiter, nullValue="\0")
    if form.format == "csv":
        return reader.options(escape='"', multiLine=True).csv(place)
    return _unescaped(reader.schema(_texts(schema)).option("quote", "").csv(place), schema)


def _texts(schema: Any) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in schema.names])


def _unescaped(frame: Any, schema: Any) -> Any:
    """The values of fields of tsv, in which `\\N` is NULL and line ends, tabs and backslashes are escaped."""
    from pyspark.sql import functions as F

    values = []
    for number, field in enumerate(schema.fields):
        written = F.col(f"c{number}")
        text = F.coalesce(written, F.lit(""))
        for escape, sign in (("\\\\", "\0"), ("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\0", "\\")):
            text = F.replace(text, F.lit(escape), F.lit(sign))
        null = F.coalesce(written == "\\N", F.lit(False))
        values.append(F.when(~null, text).cast(field.dataType).alias(field.name))
    return frame.toDF(*(f"c{number}" for number in range(len(values)))).select(*values)


def _has_header(path: Path, delimiter: str, names: list[str]) -> bool:
    """Whether the first line of a file has the names of the columns."""
    if not path.is_file():
        return False
    with open_text(path, "r", errors="replace", newline="") as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    return [name.casefold() for name in first] == [name.casefold() for name in names]


def _summarize(parts: SessionParts, plan: Summary, statement: Statement) -> Rows:
    rows: Rows = _over(parts, plan.rows, summary_of)
    return rows


def summary_of(frame: Any) -> Rows:
    """A row for each column of a DataFrame, computed in one pass."""
    from pyspark.sql import functions as F

    fields = frame.schema.fields
    columns = frame.toDF(*(f"c{at}" for at in range(len(fields))))
    wanted = [F.count(F.lit(1))]
    for at, field in enumerate(fields):
        wanted += [F.expr(text.format(c=f"c{at}")) for text in _measures(field.dataType)]
    result = columns.agg(*(w.alias(f"m{n}") for n, w in enumerate(wanted)))
    count, *values = collect(result).rows[0]
    rows = []
    for at, field in enumerate(fields):
        least, most, unique, avg, std, quartiles, non_null = values[at * 7 : at * 7 + 7]
        avg, std, q25, q50, q75 = map(_rounded, (avg, std, *(quartiles or (None, None, None))))
        nulls = round(100 * (count - non_null) / count, 2) if count else None
        kind = in_capitals(field.dataType.simpleString())
        rows.append((field.name, kind, least, most, unique, avg, std, q25, q50, q75, count, nulls))
    numeric = tuple(n > 3 for n in range(len(_SUMMARY)))
    return InfoRows((), _SUMMARY, rows, numeric, matters=_SUMMARY_MATTERS, needed=_NEEDED)


def _rounded(value: Any) -> Any:
    """A number with six digits behind the point, and one below 1 with six that are not 0."""
    if isinstance(value, Decimal):
        return value if value == 0 or abs(value) < 1 else round(value, 6)
    if not isinstance(value, float) or abs(value) >= 1:
        return round(value, 6) if isinstance(value, float) else value
    return float(f"{value:.6g}")


def _measures(kind: Any) -> tuple[str, ...]:
    """The seven aggregates of a column named {c}, as far as its type has them."""
    from pyspark.sql import types as t

    nothing = "CAST(NULL AS INT)"
    simple = (t.NumericType, t.StringType, t.BooleanType, t.DateType, t.TimestampType, t.TimestampNTZType)
    ordered = isinstance(kind, simple)
    numeric = is_numeric(kind)
    return (
        "min({c})" if ordered else nothing,
        "max({c})" if ordered else nothing,
        "approx_count_distinct({c})" if ordered else nothing,
        "avg({c})" if numeric else nothing,
        "stddev({c})" if numeric else nothing,
        "approx_percentile({c}, array(0.25, 0.5, 0.75))" if numeric else nothing,
        "count({c})",
    )


PLANS: Answers = {CopyRows: _copy, Summary: _summarize}
DIRECT: Answers = {CopyFrom: _copy_from}
