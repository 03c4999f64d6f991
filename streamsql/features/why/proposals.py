"""Statements that resolve a situation, complete enough to be typed as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamsql.connectors.registry import connector
from streamsql.definitions import Sink, Stream
from streamsql.language.statements.base import Column, Fragment, Name, Watermark
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.streaming import rules
from streamsql.runtime.evidence.evidence import Evidence
from streamsql.runtime.queries.run import GOING_ON
from streamsql.secrets import HIDDEN

MOST = 20
"""Rows of a values stream that a proposal inserts again."""


def join(*statements: str) -> str:
    """Statements as one text, each with its `;`."""
    return "\n".join(s if s.endswith(";") else f"{s};" for s in statements if s)


def restart(evidence: Evidence, begins: str = "") -> str:
    """Start the query again. begins: FROM BEGINNING, FROM NOW or ACCEPT CHANGES."""
    if evidence.plan.transient:
        return join(evidence.query.text)
    name = quote_name(evidence.name)
    if begins == "FROM BEGINNING" and _logging_sinks(evidence):
        return join(f"DROP QUERY {name}", _into_a_new_folder(evidence, evidence.query.text))
    stop = f"STOP QUERY {name}" if evidence.goes_on else ""
    return join(stop, f"START QUERY {name} {begins}".rstrip())


def started(evidence: Evidence) -> str:
    """Start a query that does not run: with a new checkpoint if it has changed since it had the old one."""
    if evidence.changed:
        return restart(evidence, "FROM BEGINNING")
    return join(f"START QUERY {quote_name(evidence.name)}")


def replaced(evidence: Evidence, stream: Stream) -> str:
    """Give a stream another definition, and have the query read it from the beginning."""
    sql = redefined(evidence, stream)
    if not sql:
        return ""
    if evidence.plan.transient:
        return join(sql, evidence.query.text)
    stop, _, start = restart(evidence, "FROM BEGINNING").partition("\n") if evidence.goes_on else ("", "", "")
    return join(stop, sql, start or restart(evidence, "FROM BEGINNING"))


def redefined(evidence: Evidence, stream: Stream) -> str:
    """CREATE OR REPLACE STREAM, with the rows of a values stream; "" where it would lose secrets or rows, and
    in a test, where the script defines the stream.
    """
    if evidence.parts.config.stand_ins:
        return ""
    sql = stream.sql().replace("CREATE STREAM", "CREATE OR REPLACE STREAM", 1)
    if HIDDEN in sql:
        return ""  # it has secrets, which are not shown
    if stream.connector != "values":
        return sql
    rows = _rows_again(evidence, stream)  # a replaced values stream begins without rows
    return join(sql, rows) if rows else ""


def _rows_again(evidence: Evidence, stream: Stream) -> str:
    """The INSERT that gives a values stream its rows again; "" when they are many."""
    defined = evidence.parts.catalog.streams.get(stream.name.casefold(), stream)
    listed = ", ".join(f"CAST({quote_name(c.name)} AS STRING)" for c in defined.columns)
    raw = replace(defined, watermark=None)
    rows = evidence.probes.rows(
        f"SELECT {listed} FROM {quote_name(stream.name)} LIMIT {MOST + 1}", stream=raw
    )
    if not rows or len(rows) > MOST:
        return ""
    lines = (", ".join(map(_literal, row, defined.columns)) for row in rows)
    return f"INSERT INTO {quote_name(stream.name)} VALUES {', '.join(f'({line})' for line in lines)}"


def requeried(evidence: Evidence, text: str, mode: str = "") -> str:
    """Run the query with another SELECT, and from the beginning. mode: another output mode."""
    query = replace(evidence.query, text=text, mode=mode or evidence.query.mode)
    if evidence.plan.transient:
        return join(text)
    if query.live_table:
        sql = query.sql(evidence.plan.sink)
        return join(sql.replace("CREATE LIVE TABLE", "CREATE OR REPLACE LIVE TABLE", 1))
    if query.together:
        return ""
    drop = f"DROP QUERY {quote_name(evidence.name)}"
    return join(drop, _into_a_new_folder(evidence, text) if _logging_sinks(evidence) else query.sql())


def shown_now(evidence: Evidence) -> str:
    """See the groups that append mode holds back, as they are now: in the state, if others came out; where
    output mode update is not supported, have them emitted.
    """
    if evidence.rows_out:
        return state_shown(evidence)
    text = evidence.query.text
    if evidence.query.together or rules.verdict(evidence.plan.shape, "update"):
        return flushed(evidence)
    if evidence.query.live_table:
        return requeried(evidence, text, "update")
    name = f"{evidence.name}_open" if not evidence.plan.transient else "open_groups"
    return join(f"CREATE LIVE TABLE {quote_name(name)} OUTPUT MODE UPDATE AS {text}")


def previewed(stream: Stream | None) -> str:
    """Show what the source of a stream gives; "" for none, and for one over other streams."""
    return join(f"PREVIEW {quote_name(stream.name)}") if stream is not None and stream.connector else ""


def state_shown(evidence: Evidence) -> str:
    """Show what a query keeps in its state; "" for a SELECT, whose query has no name."""
    name = quote_name(evidence.name)
    return "" if evidence.plan.transient else join(f"SELECT * FROM STATE OF QUERY {name} LIMIT 10")


_SAMPLES = {"STRING": "'a'", "TIMESTAMP": "now()", "DATE": "current_date()", "BOOLEAN": "true"}


def inserted(evidence: Evidence, stream: Stream) -> str:
    """INSERT one row of some values into a values stream, in a test GIVEN."""
    kinds = [column.type for column in stream.columns]
    numbers = [f"CAST({'NULL' if any(s in kind for s in '<(') else '1'} AS {kind})" for kind in kinds]
    listed = [_SAMPLES.get(kind.upper(), other) for kind, other in zip(kinds, numbers, strict=True)]
    head = "GIVEN" if evidence.parts.config.stand_ins else "INSERT INTO"
    return join(f"{head} {quote_name(stream.name)} VALUES ({', '.join(listed)})")


def advanced(evidence: Evidence, moments: Mapping[Stream, str]) -> str:
    """Move the event time of values streams on. moments: as shown, by stream."""
    statements = [
        f"ADVANCE STREAM {quote_name(stream.name)} TO TIMESTAMP {quote(moment)}"
        for stream, moment in moments.items()
    ]
    going_on = evidence.goes_on and evidence.status in GOING_ON
    return join(*statements, "" if going_on else restart(evidence))


def flushed(evidence: Evidence) -> str:
    """Have the query emit what its state holds back; "" where that is not possible."""
    query = evidence.query
    if any(s.connector == "socket" for s in evidence.streams):
        return ""
    if not evidence.plan.transient:
        return join(f"FLUSH QUERY {quote_name(query.name)}")
    table = f"CREATE LIVE TABLE all_rows TRIGGER AVAILABLE NOW AS {query.text}"
    return join(table, "AWAIT QUERY all_rows", "FLUSH QUERY all_rows", "SELECT * FROM all_rows")


def _literal(text: str | None, column: Column) -> str:
    """A value of a column, given as text, as SQL."""
    if text is None:
        return "NULL"
    kind = column.type.upper()
    plain = kind in ("INT", "BIGINT", "SMALLINT", "TINYINT")
    return text if plain else quote(text) if kind == "STRING" else f"CAST({quote(text)} AS {column.type})"


def with_options(stream: Stream, options: Mapping[str, str | None]) -> Stream:
    """A stream with other values of some options; None takes one out."""
    given = {k.casefold(): v for k, v in options.items()}
    unchanged = [(k, v) for k, v in stream.options if k.casefold() not in given]
    return replace(stream, options=(*unchanged, *((k, v) for k, v in options.items() if v is not None)))


def with_column(stream: Stream, name: str, kind: str) -> Stream:
    """A stream with another type of a column."""
    columns = (replace(c, type=kind) if c.name.casefold() == name.casefold() else c for c in stream.columns)
    return replace(stream, columns=tuple(columns))


def with_delay(stream: Stream, delay: str) -> Stream:
    """A stream with another delay of its watermark."""
    assert stream.watermark
    return replace(stream, watermark=replace(stream.watermark, delay=delay))


def computed(stream: Stream, name: str, expression: str) -> Stream:
    """A stream whose event time is computed from a column, under that column's name."""
    watermark = stream.watermark
    delay = watermark.delay if watermark else "10 minutes"
    return replace(stream, watermark=Watermark(Name(name), delay, Fragment(expression)))


def _logging_sinks(evidence: Evidence) -> list[Sink]:
    """The sinks that keep a log of what was written, so that a new checkpoint cannot write there."""
    sinks = [t.sink for t in evidence.plan.targets if t.sink.connector != "table"]
    return [sink for sink in sinks if connector(Name(sink.connector)).keeps_log]


def _into_a_new_folder(evidence: Evidence, text: str) -> str:
    """The query with sinks of its own: see `_logging_sinks`."""
    own = {sink.name: _beside(sink, evidence) for sink in _logging_sinks(evidence)}
    names = tuple(own.get(target.sink.name, target.sink).name for target in evidence.plan.targets)
    query = replace(evidence.query, sinks=names, text=text, checkpoint="")
    return join(*(sink.sql() for sink in own.values()), query.sql())


def _beside(sink: Sink, evidence: Evidence) -> Sink:
    """The same sink under another name, in another folder."""
    taken = evidence.parts.catalog.sinks
    numbers = range(2, len(taken) + 3)
    number = next(n for n in numbers if f"{sink.name}_{n}".casefold() not in taken)
    path = sink.option("path").rstrip("/")
    options = tuple((k, f"{path}_{number}" if k.casefold() == "path" else v) for k, v in sink.options)
    return replace(sink, name=f"{sink.name}_{number}", options=options)
