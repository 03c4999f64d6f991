"""Plays a case of shared/cases (its README has the format) through the language, step by step.

Streams are made with CREATE STREAM, their rows come by INSERT INTO … VALUES or as files, the query
is an INSERT into a sink or a live table, and each step waits with AWAIT QUERY … IDLE. The sink of
this file, `collector`, keeps what each micro-batch hands over.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conftest import Console

from streamsql.calls import Node
from streamsql.connectors.base import Connector
from streamsql.connectors.registry import connectors
from streamsql.definitions import Sink
from streamsql.errors import StreamsqlError
from streamsql.language.tokens import quote

Row = tuple[Any, ...]
PHASES = ("define", "start", "run")

# Keys that ask for nothing of their own: words about the case, align (each step is, see held) and
# supported (a query that is expected to give nothing only has to start).
_WORDS = frozenset(
    """name words origin provenance notes version_drift semantic_difference ksql_expected cells figure
    guide_expected guide_missing guide_elided guide_error guide_result_tables align supported""".split()
)
_READ = frozenset(
    """streams statics watermark dedup query_sql output_mode conf restart_before expected ordered
    expected_total expected_last_value_per_key expected_watermark expected_error expected_schema
    expected_batches file_source existing after_define steps""".split()
)


@dataclass(frozen=True)
class Case:
    """One case as written."""

    data: dict[str, Any]

    @property
    def name(self) -> str:
        return self.data["name"]

    @property
    def complete(self) -> bool:
        return self.data["output_mode"] == "complete"

    @property
    def steps(self) -> int:
        if "file_source" in self.data:
            return len(self.data["steps"])
        return max((len(s["batches"]) for s in self.data["streams"].values()), default=0)


def load(path: Path) -> list[Case]:
    """The cases of a file. Raises ValueError for a key that nothing here reads, so that none is
    passed over in silence.
    """
    cases = [Case(data) for data in json.loads(path.read_text("utf-8"))["cases"]]
    for case in cases:
        unread = case.data.keys() - _WORDS - _READ
        files = any("batch_files" in s for s in case.data.get("streams", {}).values())
        if unread or files:
            raise ValueError(f"{case.name}: the harness does not read {sorted(unread) or 'batch_files'}")
    return cases


@dataclass
class Step:
    """What came out in one step: the rows of each micro-batch that had any (complete mode: of the
    last table), and the watermark that the last micro-batch reports.
    """

    batches: list[list[Row]]
    watermark: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]


@dataclass
class Outcome:
    """What a case did. error: what the user sees if something was refused, and in which phase."""

    steps: list[Step] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    schema: str = ""
    error: StreamsqlError | None = None
    phase: str = ""

    @property
    def message(self) -> str:
        """All words of the error, without the line of the statement that it is shown with."""
        assert self.error
        return "\n".join((self.error.condition, self.error.message, self.error.detail, self.error.hint))


class Collector(Connector):
    """A sink that keeps the rows of each micro-batch, for the harness to read."""

    name = "collector"
    help = "keeps the rows of each micro-batch; for the tests"
    writes = ()

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []
        self.columns: list[str] = []

    def write_stream(self, sink: Sink, writer: Node) -> Node:
        return writer.call("foreachBatch", self.feed)

    def feed(self, batch: Any, batch_id: int) -> None:
        # Arrow hands timestamps out with their zone, PySpark's own rows do not.
        table = batch.toArrow()
        self.columns = table.column_names
        # Column by column: a result may have two columns of one name.
        columns = [column.to_pylist() for column in table.columns]
        self.batches.append([plain(row) for row in zip(*columns, strict=True)])


def plain(row: Any) -> Row:
    """A row with its timestamps as the cases write them: yyyy-MM-dd HH:mm:ss[.fff], in UTC."""
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    if not isinstance(value, datetime):
        return list(map(_plain, value)) if isinstance(value, list) else value
    # PySpark's rows hold naive datetimes in the zone of this process; astimezone takes them so.
    utc = value.astimezone(UTC)
    fraction = f".{utc.microsecond // 1000:03d}" if utc.microsecond else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction}"


def literal(value: Any) -> str:
    """A value of a case as Spark SQL; INSERT casts it to the column's type."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"array({', '.join(map(literal, value))})"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def values(rows: list[list[Any]]) -> str:
    return "VALUES " + ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


def column_list(columns: list[list[str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


class Player:
    """Plays one case on a console. folder: an empty one, where the files of file cases go."""

    def __init__(self, case: Case, console: Console, folder: Path) -> None:
        self.data = case.data
        self.case = case
        self.console = console
        self.root = folder / "input"
        self.collector = Collector()
        self.outcome = Outcome()
        self.inputs: dict[str, str] = {}
        self.written = 0

    def play(self) -> Outcome:
        known = connectors()
        known["collector"] = self.collector
        try:
            for phase, carry_out in zip(PHASES, (self.define, self.start, self.run), strict=True):
                self.outcome.phase = phase
                carry_out()
        except StreamsqlError as error:
            self.outcome.error = error
        finally:
            del known["collector"]
        self.outcome.columns = self.collector.columns
        return self.outcome

    # ---- define ---------------------------------------------------------------------------

    def define(self) -> None:
        for key, value in self.data.get("conf", {}).items():
            self.console.run(f"SET {key} = {value}")
        for name, table in self.data.get("statics", {}).items():
            casts = ", ".join(f"CAST(`{c}` AS {t}) AS `{c}`" for c, t in table["columns"])
            names = ", ".join(f"`{c}`" for c, _ in table["columns"])
            rows = f"{values(table['rows'])} AS t({names})"
            self.console.run(f"CREATE TEMPORARY VIEW {name} AS SELECT {casts} FROM {rows}")
        if "file_source" in self.data:
            self.define_files()
        for name, stream in self.data.get("streams", {}).items():
            self.define_stream(name, stream)

    def define_stream(self, name: str, stream: dict[str, Any]) -> None:
        """A stream of values; with dedup, the named queries over it of which the last has its name."""
        dedup = self.data.get("dedup", {}).get(name, [])
        below = [f"{name}_{i}" for i in range(len(dedup))]
        chain = [*below, name]
        self.inputs[name] = chain[0]
        columns = column_list(stream["columns"])
        self.console.run(f"CREATE STREAM {chain[0]} ({columns}) USING values {self.watermark(name)}")
        for step, source, target in zip(dedup, chain, chain[1:], strict=False):
            keys = step.get("columns") or [c for c, _ in stream["columns"]]
            listed = ", ".join(f"`{k}`" for k in keys)
            within = "WITHIN WATERMARK" if step.get("within_watermark") else ""
            query = f"SELECT DISTINCT ON ({listed}) {within} * FROM {source}"
            self.console.run(f"CREATE STREAM {target} AS {query}")

    def watermark(self, name: str) -> str:
        mark = self.data.get("watermark", {}).get(name)
        return f"WITH WATERMARK {mark['column']} DELAY {quote(mark['delay'])}" if mark else ""

    def define_files(self) -> None:
        source = self.data["file_source"]
        self.root.mkdir()
        self.write(self.data.get("existing", {}))
        path = str(self.root / source["glob"] if "glob" in source else self.root)
        options = {"path": path, **source.get("options", {})}
        listed = ", ".join(f"{key} {quote(value)}" for key, value in options.items())
        columns = f"({column_list(source['schema'])})" if "schema" in source else ""
        self.console.run(f"CREATE STREAM input {columns} USING {source['format']} OPTIONS ({listed})")
        rows = self.console.rows("DESCRIBE STREAM input")
        found = [(p.removeprefix("column "), kind) for p, kind in rows if p.startswith("column ")]
        self.outcome.schema = f"struct<{','.join(f'{c}:{kind.lower()}' for c, kind in found)}>"
        self.write(self.data.get("after_define", {}))

    def write(self, files: dict[str, str]) -> None:
        """Write files, each a second younger than the one before: the source goes by their age."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            self.written += 1
            age = time.time() - 1000 + self.written
            os.utime(path, (age, age))

    # ---- start and run --------------------------------------------------------------------

    def start(self) -> None:
        """In complete mode the query is a live table, which holds the last table by itself."""
        if self.case.complete:
            self.console.run(f"CREATE LIVE TABLE q OUTPUT MODE COMPLETE AS {self.data['query_sql']}")
            return
        self.console.run("CREATE SINK out USING collector")
        mode = self.data["output_mode"].upper()
        self.console.run(f"INSERT INTO out AS QUERY q OUTPUT MODE {mode} {self.data['query_sql']}")

    def run(self) -> None:
        if not self.case.steps:
            self.console.run("AWAIT QUERY q IDLE")
        seen = 0
        for number in range(self.case.steps):
            if number in self.data.get("restart_before", []):
                self.console.run("STOP QUERY q; START QUERY q")
            with self.held():
                self.add(number)
            self.console.run("AWAIT QUERY q IDLE")
            batches = [b for b in self.collector.batches[seen:] if b]
            seen = len(self.collector.batches)
            if self.case.complete:
                batches = [[plain(row) for row in self.console.rows("SELECT * FROM q")]]
            step = Step(batches)
            if self.data.get("expected_watermark"):
                last = self.console.session.queries.all["q"].progress()[-1]
                step.watermark = last["eventTime"]["watermark"]
            self.outcome.steps.append(step)

    def add(self, number: int) -> None:
        """Give every stream its rows of a step, each by one INSERT and so in one file."""
        if "file_source" in self.data:
            self.write(self.data["steps"][number])
        for name, stream in self.data.get("streams", {}).items():
            rows = stream["batches"][number] if number < len(stream["batches"]) else []
            if rows:
                self.console.run(f"INSERT INTO {self.inputs[name]} {values(rows)}")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the query from looking for new input meanwhile.

        Each stream, and each side of a self join, is a source of its own, so rows that arrive while
        the query looks would land in two micro-batches. Spark's own suites take the same lock for
        that (StreamProgressLockedActions); it belongs to the JVM thread of this Python thread.
        """
        lock = self.console.session.queries.all["q"].handle._jsq.streamingQuery().awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()


# ---- comparing --------------------------------------------------------------------------------


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: json.dumps(row, ensure_ascii=False))


def _as_is(rows: list[Row]) -> list[Row]:
    return rows


def _wanted(rows: list[list[Any]]) -> list[Row]:
    return [tuple(row) for row in rows]


def _same(got: Any, wanted: Any, what: str) -> None:
    """Both sides in full: pytest explains the asserts of test files only."""
    if got != wanted:
        raise AssertionError(f"{what}\n     got: {got}\nexpected: {wanted}")


def check(case: Case, outcome: Outcome) -> None:
    """Assert that a case did what it says."""
    expected = case.data.get("expected_error")
    if expected:
        check_error(expected, outcome)
        return
    if outcome.error:
        raise AssertionError(f"refused in phase {outcome.phase}: {outcome.message}") from outcome.error
    _same(len(outcome.steps), case.steps, "steps")
    check_rows(case, outcome)
    for number, mark in enumerate(case.data.get("expected_watermark", [])):
        if mark is not None:
            _same(outcome.steps[number].watermark, mark, f"watermark of step {number}")
    if "expected_schema" in case.data:
        _same(outcome.schema, case.data["expected_schema"], "schema")


def check_error(expected: dict[str, Any], outcome: Outcome) -> None:
    """The words must all be in what the user sees. Refusing earlier than Spark is as good."""
    if outcome.error is None:
        raise AssertionError("nothing was refused")
    if PHASES.index(outcome.phase) > PHASES.index(expected["phase"]):
        raise AssertionError(f"refused as late as in phase {outcome.phase}: {outcome.message}")
    seen = outcome.message.casefold()
    missing = [word for word in expected["message_contains"] if word.casefold() not in seen]
    if missing:
        raise AssertionError(f"{missing} not in:\n{outcome.message}")
    if "error_class" in expected:
        _same(outcome.error.condition, expected["error_class"], "condition")


def check_rows(case: Case, outcome: Outcome) -> None:
    data = case.data
    arranged = _as_is if data.get("ordered") else _sorted
    for number, rows in enumerate(data.get("expected", [])):
        if rows is not None:
            _same(arranged(outcome.steps[number].rows), arranged(_wanted(rows)), f"step {number}")
    for number, batches in enumerate(data.get("expected_batches", [])):
        got = [_sorted(batch) for batch in outcome.steps[number].batches]
        _same(got, [_sorted(_wanted(batch)) for batch in batches], f"micro-batches of step {number}")
    every = outcome.steps[-1:] if case.complete else outcome.steps
    total = [row for step in every for row in step.rows]
    if "expected_total" in data:
        _same(_sorted(total), _sorted(_wanted(data["expected_total"])), "all steps")
    if "expected_last_value_per_key" in data:  # {"key": [column, …], "rows": [row, …]}
        last = data["expected_last_value_per_key"]
        keys = [outcome.columns.index(k) for k in last["key"]]
        newest = {tuple(row[k] for k in keys): row for row in total}
        _same(_sorted(list(newest.values())), _sorted(_wanted(last["rows"])), "last row of each key")
