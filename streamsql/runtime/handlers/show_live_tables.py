"""SHOW and DESCRIBE of live tables, and how far those over live tables are behind their inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamsql.definitions import Sink, is_aside
from streamsql.language.redaction import redact
from streamsql.language.statements import live_table, session
from streamsql.language.struct_types import in_capitals
from streamsql.language.tokens import quote_name
from streamsql.results import Result, Text
from streamsql.runtime.engine.kept_tables import COLLATION
from streamsql.runtime.engine.moments import brief
from streamsql.runtime.handlers import Answers
from streamsql.runtime.handlers.info_table import named_like, pairs_of, table
from streamsql.runtime.handlers.refresh_remarks import remark_line
from streamsql.runtime.handlers.show import column_names
from streamsql.runtime.live.journal import UnreadableRows
from streamsql.runtime.parts import SessionParts

if TYPE_CHECKING:
    from streamsql.runtime.embedded.live_rows import LiveRows


def _listed(name: str, parts: SessionParts) -> tuple[LiveRows | None, str]:
    """The rows of a live table for a list, which shows what it can; why they cannot be read, or ""."""
    try:
        return parts.live.get(name.casefold()), ""
    except UnreadableRows as fault:
        return None, f"its rows cannot be read; {fault.hint}"


def _live_numbers(rows: LiveRows | None) -> tuple[int, int, str, str]:
    """(rows kept, rows dropped, mode, columns) of a live table."""
    if rows is None:
        return 0, 0, "", ""
    table, _ = rows.rows()
    listed = ", ".join(f.name for f in rows.schema.fields)
    return (table.num_rows if table is not None else 0), rows.dropped, rows.mode, listed


_REFRESH = ("inputs", "behind", "stale", "refresh ms", "skipped", "remark")


def _refresh_numbers(entry: Sink, parts: SessionParts) -> tuple[Any, ...]:
    """The columns of _REFRESH: nothing for a live table that a streaming query feeds."""
    query = parts.catalog.queries.get(entry.name.casefold())
    if query is None or not query.inputs:
        return ("", None, "", None, None, "")
    listed, remark = ", ".join(query.inputs), remark_line(query.name, parts)
    running = parts.queries.all.get(query.name.casefold())
    if running is None:
        return (listed, None, "", None, None, remark)
    refresher = running.handle
    stale = brief(refresher.stale) if refresher.behind else ""
    return (listed, refresher.behind, stale, refresher.milliseconds, refresher.skipped, remark)


def _key(live: Any) -> str:
    """What tells the rows of a live table apart, if it keeps one of each."""
    if live is None or not live.keys:
        return ""
    return "the keys of GROUP BY" if live.hidden else ", ".join(live.keys)


def _show_live(parts: SessionParts, statement: live_table.ShowLiveTables) -> Result:
    rows = []
    for entry in parts.catalog.live_tables():
        live, unreadable = _listed(entry.name, parts)
        row_count, dropped, mode, listed = _live_numbers(live)
        fed = ", ".join(q.name for q in parts.catalog.writers_of(entry.name))
        *refresh, remark = _refresh_numbers(entry, parts)
        shown_count = None if unreadable else row_count
        remark = unreadable or remark
        rows.append((entry.name, shown_count, dropped, mode, _key(live), listed, fed, *refresh, remark))
    columns = ("name", "rows", "dropped", "mode", "key", "columns", "query", *_REFRESH)
    shown = table(columns, rows, (1, 2, 8, 10, 11), "no live tables", _MATTERS, (("query", "name"),))
    return named_like(shown, statement.pattern)


_MATTERS = ("name", "rows", "mode", "behind", "stale", "key", "remark", "columns", "inputs", "query")
"""The columns of SHOW LIVE TABLES, the most important first."""
_Row = tuple[str, str, str, int | str, str]
_SPARKS_KINDS = {"MANAGED": "table", "EXTERNAL": "table", "VIEW": "view", "TEMPORARY": "temporary view"}


def _show_tables(parts: SessionParts, statement: session.ShowTables) -> Result:
    """All that FROM can read."""
    return _listing(_readable(parts), statement.pattern, "nothing to read FROM")


def _show_views(parts: SessionParts, statement: session.ShowViews) -> Result:
    """The views of Spark."""
    views = [row for row in _readable(parts) if row[1].endswith("view")]
    return _listing(views, statement.pattern, "no views")


def _readable(parts: SessionParts) -> list[_Row]:
    """(name, kind, columns, rows, comment) of all that FROM can read."""
    rows: list[_Row] = [
        (s.name, "stream", column_names(parts, s), "", s.comment) for s in parts.catalog.streams.values()
    ]
    for entry in parts.catalog.live_tables():
        row_count, _, _, listed = _live_numbers(_listed(entry.name, parts)[0])
        rows.append((entry.name, "live table", listed, row_count, entry.comment))
    names = {name.casefold() for name, *_ in rows}
    for entry_of_spark in parts.spark.catalog.listTables():
        name = entry_of_spark.name
        if name.casefold() not in names and not _is_stage(name, parts):
            kind = _SPARKS_KINDS.get(entry_of_spark.tableType, entry_of_spark.tableType.casefold())
            columns = ", ".join(column.name for column in parts.spark.catalog.listColumns(quote_name(name)))
            rows.append((name, kind, columns, "", entry_of_spark.description or ""))
    return rows


def _create_tables(parts: SessionParts, statement: session.ShowCreateTables) -> Result:
    """The definitions of all that FROM can read."""
    views = (view.text for name, view in parts.temporary.statements() if not is_aside(name))
    texts = [text.strip().replace(COLLATION.upper(), "") for text in views]
    texts += [entry.sql() for entry in parts.catalog.streams.values()]
    texts += [parts.catalog.definition(entry) for entry in parts.catalog.live_tables()]
    return Text(text="\n".join(f"{redact(text)};" for text in texts) or "nothing to read FROM")


def _listing(rows: list[_Row], like: str, nothing: str) -> Result:
    listed = table(("name", "kind", "columns", "rows", "comment"), rows, (3,), nothing)
    return named_like(listed, like)


def _is_stage(name: str, parts: SessionParts) -> bool:
    entry = parts.catalog.sinks.get(name.casefold())
    return "$" in name or bool(entry and entry.owner)


def _describe_live(parts: SessionParts, statement: live_table.DescribeLiveTable) -> Result:
    entry = parts.catalog.live_table(statement.name)
    live = parts.live.get(entry.name.casefold())
    pairs: list[tuple[str, Any]] = []
    if live:
        pairs += [(f"column {f.name}", in_capitals(f.dataType.simpleString())) for f in live.schema.fields]
    row_count, dropped, mode, _ = _live_numbers(live)
    pairs += [("rows", row_count), ("dropped", dropped or ""), ("output mode", mode)]
    if key := _key(live):
        pairs.append(("key", key))
    limit = f"{entry.retain} rows" if mode == "append" else ""
    fed = ", ".join(q.name for q in parts.catalog.writers_of(entry.name))
    readers = ", ".join(q.name for q in parts.catalog.readers_of(entry.name))
    pairs += [("keeps", limit), ("query", fed), ("read by", readers)]
    pairs += [
        (f"stage {stage.name}", " ".join(stage.text.split())) for stage in parts.catalog.stages_of(entry.name)
    ]
    names = ("inputs", "micro-batches behind", "stale", "refresh ms", "skipped snapshots", "remark")
    pairs += zip(names, _refresh_numbers(entry, parts), strict=True)
    pairs.append(("comment", entry.comment))
    return pairs_of(pairs)


def _create_live(parts: SessionParts, statement: live_table.ShowCreateLiveTable) -> Result:
    return Text(text=parts.catalog.definition(parts.catalog.live_table(statement.name)) + ";")


def _show_stages(parts: SessionParts, statement: live_table.ShowStages) -> Result:
    rows = []
    for stage in parts.catalog.stages_of(statement.name.value):
        sink = parts.catalog.sinks[stage.name.casefold()]
        live, _ = _listed(stage.name, parts)
        row_count, _, mode, _ = _live_numbers(live)
        running = parts.queries.all.get(stage.name.casefold())
        status = running.status() if running else parts.workspace.past(stage.name).status
        limit = sink.retain if mode == "append" else None
        key = _key(live)
        rows.append((stage.name, status, row_count, limit, mode, key, " ".join(stage.text.split())))
    return table(("name", "status", "rows", "limit", "mode", "key", "query"), rows, (2, 3))


DIRECT: Answers = {
    live_table.ShowStages: _show_stages,
    live_table.ShowLiveTables: _show_live,
    session.ShowTables: _show_tables,
    session.ShowViews: _show_views,
    session.ShowCreateTables: _create_tables,
    live_table.DescribeLiveTable: _describe_live,
    live_table.ShowCreateLiveTable: _create_live,
}
