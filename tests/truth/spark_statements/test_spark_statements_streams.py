"""Spark's own queries over streams: each runs as a live table over streams that have the rows of its tables and views,
in two micro-batches, and gives the rows that Spark's batch gives over these. Only a query without a stream is refused.

A part of the queries is tried here; all, or those of some files, with
`STREAMSQL_STREAM_FILES='cte.*|group-by.*' python -m pytest --timeout=0 -m "" tests/truth/spark_statements -k streams`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Console
from golden_files import GoldenStatement, fetched_files

from streamsql.errors import StreamsqlError
from streamsql.language.tokens import quote_name

ROOMS = ("streamsql/language/", "streamsql/plan/", "streamsql/runtime/queries/")

FILES = os.environ.get("STREAMSQL_STREAM_FILES", "")
IN_EACH = 1 if FILES else 24
"""One query in so many is tried."""
CHOSEN = FILES or (
    "cte|cte-recursion|group-by|group-by-filter|group-analytics|grouping_set|having|join-empty-relation|join-lateral"
    "|listagg|natural-join|outer-join|percentiles|pipe-operators|pivot|thetasketch|tuplesketch|union|unpivot|window"
    "|subquery/.*"
)
QUERY = re.compile(r"[\s(]*(select|with|from|table|values)\b", re.IGNORECASE)
OF_SESSION = re.compile(r"\s*(set|reset|declare|create (or replace )?(temporary )?function)\b", re.IGNORECASE)
SETTING = re.compile(r"^\s*set\s+(spark\.[\w.]+)", re.IGNORECASE)
READ_OTHERWISE = re.compile(r"\s*set\s+spark\.sql\.(groupBy|orderBy|legacy\.(parser|setops))", re.IGNORECASE)
"""Settings with which the console takes no query apart."""
NO_ONE_ANSWER = re.compile(
    r"\b(rand|limit|offset|first|last|first_value|any_value|skewness|regr_\w+|collect_list|current_\w+|uuid)\b",
    re.IGNORECASE,
)
"""What depends on the order of rows, on chance or on the last digit of a sum."""
LEFT_OUT = {"pipe-operators 260", "mode 20", "subquery/in-subquery/in-nullability 7"}
"""Queries whose windows have rows of equal rank, and one to which Spark gives other rows for columns that may be NULL."""


class Streams:
    """The tables and views of a golden file, in a session of Spark, and in a console as streams."""

    def __init__(self, console: Console, folder: Path, settings: dict[str, str]) -> None:
        self.console, self.folder, self.changed = console, folder, set[str]()
        self.batch = console.session.spark.newSession()
        self.filled: set[str] = set()
        self.stale: set[str] = set()
        for name, value in settings.items():
            self.define(f"SET {name} = {value}")

    def close(self) -> None:
        """Set the settings of the file back: the next one runs in the same session of the console."""
        for name in self.changed:
            self.console.run(f"RESET {name};")

    def define(self, text: str) -> None:
        """Run a statement that is not a query; one that only another catalog has is left out."""
        try:
            self.batch.sql(text).collect()
        except Exception:
            return
        if OF_SESSION.match(text):
            self.changed.update(SETTING.findall(text))
            with suppress(StreamsqlError):  # a function of another file that is there
                self.console.run(f"{text};")
        else:
            self.stale |= self.filled

    def fill(self, query: str) -> bool:
        """Give the console the tables and views that a query names; whether there are any."""
        words = {word.casefold() for word in re.findall(r"\w+", query)}
        named = [table.name for table in self.batch.catalog.listTables() if table.name.casefold() in words]
        for name in named:
            if name in self.stale:
                self.console.run(f"DROP STREAM {quote_name(name)};")
            if name not in self.filled or name in self.stale:
                self.stream(name)
                self.filled.add(name)
                self.stale.discard(name)
        return bool(named)

    def stream(self, name: str) -> None:
        """A stream over two files, each with half of the rows."""
        halves = self.folder / f"halves{len(list(self.folder.iterdir()))}"
        numbered = f"SELECT *, row_number() OVER (ORDER BY (SELECT 1)) % 2 AS half FROM {quote_name(name)}"
        self.batch.sql(numbered).coalesce(1).write.partitionBy("half").parquet(str(halves))
        files = Path(f"{halves}_files")
        files.mkdir()
        for number, file in enumerate(sorted(halves.rglob("*.parquet"))):
            file.rename(files / f"{number}.parquet")
        fields = self.batch.table(name).schema.fields
        columns = ", ".join(f"{quote_name(f.name)} {f.dataType.simpleString()}" for f in fields)
        self.console.run(
            f"CREATE STREAM {quote_name(name)} ({columns}) USING parquet "
            f"OPTIONS (path '{files}', maxFilesPerTrigger 1);"
        )


def rows_of_batch(streams: Streams, query: str) -> tuple[list[str], Counter[Any]] | None:
    """The columns and the rows, as texts, that Spark's batch gives; None where it fails or has no live table."""
    try:
        frame = streams.batch.sql(query)
        names = frame.columns
        if len({name.casefold() for name in names}) < len(names) or "spark_catalog" in "".join(names):
            return None
        numbered = frame.toDF(*(f"c{n}" for n in range(len(names))))
        texts = numbered.selectExpr(*(f"CAST(c{n} AS STRING)" for n in range(len(names))))
        return names, Counter(map(tuple, texts.collect()))
    except Exception:
        return None


def outcome(streams: Streams, statement: GoldenStatement, name: str) -> str:
    """What became of a query as a live table: "" for the rows of the batch, the code of its refusal."""
    query, console = statement.text.rstrip("; \n"), streams.console
    expected = rows_of_batch(streams, query)
    if expected is None or not streams.fill(query):
        return ""
    try:
        console.run(f"CREATE LIVE TABLE {name} AS {query}\n;")
    except StreamsqlError as refusal:
        return f"refused: {refusal.code} {refusal}"
    try:
        console.run(f"AWAIT QUERY {name} IDLE;")
        texts = ", ".join(f"CAST({quote_name(c)} AS STRING) AS c{n}" for n, c in enumerate(expected[0]))
        rows = Counter(console.rows(f"SELECT {texts} FROM {name};"))
    except StreamsqlError as failure:
        return f"failed while running: {failure}"
    finally:
        console.run(f"DROP LIVE TABLE {name};")
    missing, extra = expected[1] - rows, rows - expected[1]
    return f"wrong: missing {missing}, extra {extra}" if missing or extra else ""


def is_chosen(statement: GoldenStatement) -> bool:
    return not (
        statement.error
        or statement.checksum % IN_EACH
        or NO_ONE_ANSWER.search(statement.text)
        or f"{statement.file} {statement.number}" in LEFT_OUT
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_queries_of_spark_give_the_rows_of_a_batch_over_streams(console: Console, tmp_path: Path) -> None:
    golden = fetched_files()
    wrong, tried = [], 0
    for file in filter(re.compile(CHOSEN).fullmatch, golden.names):
        console.reset()
        streams = Streams(console, tmp_path, golden.settings(file))
        for statement in golden.statements(file):
            text = re.sub(r"--[^\n]*", "", statement.text)
            if "${" in text or statement.error:
                continue
            if not QUERY.match(text):
                if not READ_OTHERWISE.match(text):
                    streams.define(statement.text)
            elif is_chosen(statement):
                tried += 1
                what = outcome(streams, statement, f"golden{tried}")
                print(f"{statement.key} {what[:300]}", flush=True)
                if what and not what.startswith("refused: NO_STREAM"):
                    wrong.append(statement.shown(what))
        streams.close()
    assert tried and not wrong, "\n\n".join(wrong)
