"""Plans for COPY TO and SUMMARIZE: the SELECT, and what happens to its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from streamsql.errors import RuleFault
from streamsql.features.copy.statement import FORMATS, Copy, CopyFrom, FileForm, Summarize
from streamsql.language.origin import Origin
from streamsql.language.statements.base import Fragment, Name
from streamsql.language.statements.select import Select
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.basic_plans import Direct, Plan
from streamsql.plan.context import Context
from streamsql.plan.statements.queries import select
from streamsql.text_files import PACKED


@dataclass(frozen=True)
class CopyRows(Plan):
    """COPY TO. rows: the plan of the SELECT; path: of the file."""

    rows: Plan = field(kw_only=True)
    path: str = ""
    form: FileForm = field(default_factory=lambda: FileForm(format="csv"))


@dataclass(frozen=True)
class Summary(Plan):
    """SUMMARIZE. rows: the plan of the SELECT."""

    rows: Plan = field(kw_only=True)


def copy_rows(statement: Copy, context: Context) -> Plan:
    _check_form(statement.form, statement.path)
    rows = _rows(statement.query, statement.name, context)
    return CopyRows(
        rows=replace(rows, notes=()), path=statement.path.value, form=statement.form, notes=rows.notes
    )


def summarize(statement: Summarize, context: Context) -> Plan:
    rows = _rows(statement.query, statement.name, context)
    return Summary(rows=replace(rows, notes=()), notes=rows.notes)


def copy_from(statement: CopyFrom, context: Context) -> Plan:
    """Raises RuleFault when the name is that of a stream, sink or live table, or the format is not known."""
    _check_form(statement.form, statement.path)
    name = statement.name
    folded = name.value.casefold()
    kind = (
        "stream" if folded in context.catalog.streams else "sink" if folded in context.catalog.sinks else ""
    )
    if kind:
        raise RuleFault(
            f"COPY FROM adds rows to tables of Spark, and {name.value} is a {kind}",
            hint="a stream reads files itself: CREATE STREAM … USING csv OPTIONS (path '…'); HELP streams;",
            span=name.span,
            code="WRONG_KIND",
        )
    return Direct(statement)


def _check_form(form: FileForm, path: Name) -> None:
    """Raise RuleFault for a format that is not known, and for parquet in a file of gzip."""
    if form.format == "parquet" and path.value.casefold().endswith(PACKED):
        own = quote(path.value[: -len(PACKED)])
        raise RuleFault(
            "a parquet file is not compressed as a whole",
            detail="its columns are compressed",
            hint=own,
            instead=own,
            span=path.span,
            code="UNKNOWN_FORMAT",
        )
    if form.format not in FORMATS:
        sheet = form.format.startswith("xls") and form.span == path.span
        own = quote(f"{path.value.rpartition('.')[0]}.csv")
        raise RuleFault(
            f"COPY does not know the format {form.format}" if form.format else "the format is not said",
            detail="the formats are " + ", ".join(FORMATS),
            hint=f"{own} is a csv file, which spreadsheet programs open" if sheet else "COPY … (FORMAT csv)",
            instead=own if sheet else "" if form.format else f"{quote(path.value)} (FORMAT csv)",
            span=form.span,
            code="UNKNOWN_FORMAT",
        )


def _rows(query: Fragment | None, name: Name | None, context: Context) -> Plan:
    """The plan of the SELECT over a query, or over all columns of a relation."""
    if query is None:
        assert name is not None
        parts = ".".join(quote_name(part) for part in name.value.split("."))
        query = Fragment(f"SELECT * FROM {parts}", name.span, Origin.of(name.span))
    return select(Select(query=query, text=query.text, span=query.span, origin=query.origin), context)


PLANNERS = {Copy: copy_rows, CopyFrom: copy_from, Summarize: summarize}
