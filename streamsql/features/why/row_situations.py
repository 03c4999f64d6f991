"""(c) Rows arrive and cannot be read, or their event time cannot; and rows that cannot come out, though
others do: late, malformed, without event time, or in groups that are still open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamsql.connectors.rows import keeps_malformed
from streamsql.definitions import ROW_FILES, Stream
from streamsql.features.why import proposals
from streamsql.features.why.time_situations import closing_window, late_rows
from streamsql.features.why.verdict import Fact, Verdict, last_output, silent, situation, streams, were
from streamsql.language.query import read_expression
from streamsql.language.statements.base import Column, Watermark
from streamsql.language.tokens import quote, quote_name
from streamsql.plan.statements.schema_guesses import is_iso, time_expression, time_pattern
from streamsql.results import counted as count
from streamsql.runtime.evidence.event_times import event_times
from streamsql.runtime.evidence.evidence import EventTime, Evidence


@situation("ROWS_UNREADABLE", silent, of=streams)
def unreadable(evidence: Evidence, stream: Stream) -> Verdict | None:
    """(c) Rows arrive and cannot be read."""
    checks = (_all_null, _malformed) if stream.connector == "csv" else (_malformed, _all_null)
    return next((v for check in checks if (v := check(evidence, stream))), None)


def _malformed(evidence: Evidence, stream: Stream) -> Verdict | None:
    bad = evidence.account.malformed.number
    if not stream.may_be_malformed or not bad or bad < evidence.rows_in or len(evidence.streams) > 1:
        return None
    rejected = quote_name(f"{stream.name}$malformed")
    facts, wider = list[Fact](), stream
    for column, number, example in _unfit(evidence, stream):
        facts.append((f"{column.name} is not {column.type} in", f"{number:,}, such as {example!r}"))
        wider = proposals.with_column(wider, column.name, "STRING")
    change = proposals.replaced(evidence, wider) if wider is not stream else ""
    return Verdict(
        sentence=f"none of the {count(evidence.rows_in, 'row')} of {stream.name} can be read as declared",
        facts=tuple(facts),
        proposal=change or f"SELECT * FROM {rejected} LIMIT 10;",
    )


def _unfit(evidence: Evidence, stream: Stream) -> Iterator[tuple[Column, int, str]]:
    """The columns of a stream of files whose text is no value of their type: in how many rows, and one."""
    time_column = stream.watermark.column.value.casefold() if stream.watermark else ""
    columns = [c for c in stream.columns if c.type.upper() != "STRING" and c.name.casefold() != time_column]
    if stream.connector not in ROW_FILES or not columns:
        return
    raw = replace(stream, watermark=None)
    for column in columns:
        raw = proposals.with_column(raw, column.name, "STRING")
    names = [quote_name(c.name) for c in columns]
    tests = [
        f"{n} IS NOT NULL AND try_cast({n} AS {c.type}) IS NULL" for n, c in zip(names, columns, strict=True)
    ]
    listed = (
        f"count_if({test}) AS c{at}, first(if({test}, {name}, NULL), true) AS v{at}"
        for at, (test, name) in enumerate(zip(tests, names, strict=True))
    )
    row = evidence.probes.row(f"SELECT {', '.join(listed)} FROM {quote_name(stream.name)}", True, stream=raw)
    for at, column in enumerate(columns):
        if row is not None and row[f"c{at}"]:
            yield column, row[f"c{at}"], row[f"v{at}"]


def _inferring(stream: Stream) -> str:
    """PREVIEW of the source of a stream, whose columns it infers."""
    places = ("path", "servers", "topic", "subscribe")
    shown = ((k, v) for k, v in stream.options if k.casefold() in places)
    options = ", ".join(f"{k} {quote(v)}" for k, v in shown)
    return f"PREVIEW USING {stream.connector} OPTIONS ({options});"


def _all_null(evidence: Evidence, stream: Stream) -> Verdict | None:
    """Every column is NULL in every row: other names, or another separator, than declared."""
    names = [quote_name(c.name) for c in stream.columns]
    if not names or stream.connector not in (*ROW_FILES, "kafka"):
        return None
    filled = " OR ".join(f"{n} IS NOT NULL" for n in names)
    row = evidence.probes.row(
        f"SELECT count(*) AS n, count_if({filled}) AS filled FROM {quote_name(stream.name)}", True
    )
    if row is None or not row["n"] or row["filled"]:
        return None
    rows = f"all {row['n']:,} rows" if row["n"] > 1 else "its only row"
    return Verdict(
        sentence=f"all columns of {stream.name} are NULL in {rows}: its data has other columns than declared",
        facts=(("rows examined", row["n"]), ("declared columns", ", ".join(c.name for c in stream.columns))),
        proposal=_inferring(stream),
    )


@situation("EVENT_TIME_UNREADABLE", silent, of=lambda evidence: evidence.event_times)
def null_times(evidence: Evidence, event_time: EventTime) -> Verdict | None:
    """(c) The event time is NULL in so many rows that nothing can be emitted."""
    column = quote_name(event_time.column)
    relation = quote_name(event_time.relation)
    row = evidence.probes.row(
        f"SELECT count(*) AS n, count_if({column} IS NULL) AS bad FROM {relation}", True
    )
    if row is None or not row["bad"] or row["bad"] * 2 < row["n"] or _empty(evidence, event_time):
        return None
    facts: list[Fact] = [("rows examined", row["n"]), (f"{event_time.column} is NULL in", row["bad"])]
    stream, change = event_time.stream, None
    if stream is not None and stream.watermark:
        texts = _texts(evidence, stream)
        if texts:
            facts.append(("value that cannot be read", texts[0]))
            change, how = _readable(stream, texts)
            if how:
                facts.append(("would be read by", how))
    return Verdict(
        sentence=f"the event time {event_time.column} of {event_time.relation} is NULL in {row['bad']:,} of "
        f"{count(row['n'], 'row')}: those rows are in no window",
        facts=tuple(facts),
        proposal=proposals.replaced(evidence, change) if change else proposals.previewed(stream),
    )


def _empty(evidence: Evidence, event_time: EventTime) -> bool:
    """Whether all columns are NULL, so that it is not the event time alone that cannot be read."""
    stream = event_time.stream
    return bool(stream and len(stream.columns) > 1 and _all_null(evidence, stream))


def _texts(evidence: Evidence, stream: Stream) -> list[str]:
    """Values of the event-time column, as they stand in the data, that cannot be read as times."""
    assert stream.watermark
    column, computed = _inside(stream.watermark), stream.watermark.computed
    raw = replace(stream, watermark=None)
    if not column or not (computed or stream.connector in ROW_FILES):
        return []
    if not computed:
        raw = proposals.with_column(raw, column, "STRING")
    name = quote_name(column)
    test = f"({computed.text}) IS NULL AND" if computed else ""
    text = f"SELECT CAST({name} AS STRING) AS v FROM {quote_name(stream.name)}"
    rows = evidence.probes.rows(f"{text} WHERE {test} {name} IS NOT NULL LIMIT 20", True, stream=raw)
    return [r[0] for r in rows or ()]


_FORMAT = "timestampFormat"
"""The option of a source with the pattern of its times."""


def _readable(stream: Stream, texts: list[str]) -> tuple[Stream | None, str]:
    """A stream that reads such times, and what does it; None when no pattern is known."""
    watermark = stream.watermark
    assert watermark
    if watermark.computed is None:
        pattern = time_pattern(texts)
        if pattern:
            return proposals.with_options(stream, {_FORMAT: pattern}), f"{_FORMAT} {quote(pattern)}"
        if is_iso(texts) and stream.option(_FORMAT):
            return proposals.with_options(stream, {_FORMAT: None}), f"no {_FORMAT}"
        stream = proposals.with_column(stream, watermark.column.value, "STRING")
    written = time_expression(_inside(watermark), texts)
    return (proposals.computed(stream, watermark.column.value, written), written) if written else (None, "")


def _inside(watermark: Watermark) -> str:
    """The column that holds the event time, or from which it is computed; "" for several."""
    if watermark.computed is None:
        return watermark.column.value
    names = list(read_expression(watermark.computed.text).column_names())
    return names[0] if len(names) == 1 else ""


@situation("ROWS_LATE", lambda evidence: bool(evidence.account.late))
def some_late(evidence: Evidence) -> Verdict | None:
    """(h) Rows came behind the watermark, and others came out."""
    came, facts, _ = late_rows(evidence)
    sink = evidence.plan.late.sink if evidence.plan.late is not None else None
    what = f"written into {sink.name}" if sink is not None else "dropped"
    shown = ""
    if sink is not None:
        shown = f"SELECT * FROM {quote_name(sink.name)} LIMIT 10;" if sink.is_live else ""
    elif not evidence.plan.transient and not evidence.query.together:
        shown = proposals.join(f"SELECT * FROM LATE ROWS OF QUERY {quote_name(evidence.name)}")
    return Verdict(sentence=f"{came} {what}{came_out(evidence)}", facts=facts, proposal=shown)


@situation("ROWS_UNREADABLE", lambda evidence: bool(evidence.account.malformed))
def some_malformed(evidence: Evidence) -> Verdict | None:
    """(c) Rows could not be read as declared, and others could."""
    bad = evidence.account.malformed
    checked = [s for s in evidence.streams if s.may_be_malformed]
    names = " and ".join(s.name for s in checked) or "its streams"
    into = ", ".join(sorted({s.malformed_sink for s in checked if s.malformed_sink}))
    done = f"{were(bad.number)} {f'written into {into}' if into else 'skipped'}"
    if any(map(keeps_malformed, checked)):
        done = "the values that cannot be read are NULL"
    first = f"SELECT * FROM {quote_name(f'{checked[0].name}$malformed')} LIMIT 10" if checked else ""
    return Verdict(
        sentence=f"{bad.of('row')} of {names} cannot be read as declared, and {done}{came_out(evidence)}",
        proposal=proposals.join(first),
    )


@situation("EVENT_TIME_UNREADABLE")
def some_without_time(evidence: Evidence) -> Verdict | None:
    """(c) The event time of rows is NULL: they are in no window."""
    times = event_times(evidence.reports) if any(op.window for op in evidence.plan.shape.ops) else None
    if times is None or not times.nulls:
        return None
    column = evidence.event_times[0].column if evidence.event_times else "the event time"
    return Verdict(
        sentence=f"the event time {column} is NULL in {times.nulls_text} of {times.rows:,} rows: those rows "
        f"are in no window{came_out(evidence)}",
        facts=(("event time NULL", times.nulls_text),),
        proposal=proposals.previewed(evidence.streams[0]) if evidence.streams else "",
    )


@situation("WINDOW_NOT_CLOSED")
def still_open(evidence: Evidence) -> Verdict | None:
    """(f) Groups of append mode are open, though others came out. Nothing is wrong with that."""
    verdict = closing_window(evidence)
    if verdict is None:
        return None
    return replace(verdict, sentence=f"{verdict.sentence}{came_out(evidence)}", healthy=True)


def came_out(evidence: Evidence) -> str:
    """The rows that came out, as the end of a sentence; "" if that is not known."""
    out = evidence.account.out
    if out is None:
        return ""
    return f"; {out.of('row')} came out{last_output(evidence)}" if out else "; none came out"
