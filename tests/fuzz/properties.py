"""What must hold of every text whatever: parsed and planned as `--check` does it.

- no exception but StreamsqlError;
- the span of an error lies inside the text, and the error can be shown;
- what CREATE and INSERT define is given back by SHOW CREATE as a text that defines the same.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from typing import Any

from streamsql.catalog import Catalog
from streamsql.cli.dry_run import Checker
from streamsql.errors import Source, StreamsqlError
from streamsql.language.parser import parse, split_script
from streamsql.language.statements.session import Define
from streamsql.output.error_text import format_error
from streamsql.plan.context import Context
from streamsql.plan.planner import plan as _plan

PRELUDE = """
CREATE STREAM clicks (user STRING, n INT, xs ARRAY<INT>, ts TIMESTAMP) USING json OPTIONS (path 'in') WITH WATERMARK ts DELAY '10 minutes';
CREATE STREAM orders USING rate;
CREATE STREAM msgs (id INT, ts TIMESTAMP) USING kafka FORMAT json OPTIONS (servers 'h:1', topic 't');
CREATE STREAM v (a INT) USING values;
CREATE STREAM vip AS SELECT user, ts FROM clicks WHERE n > 1;
CREATE SINK out USING noop;
CREATE SINK files USING parquet OPTIONS (path 'o');
CREATE LIVE TABLE live AS SELECT user, count(*) AS c FROM clicks GROUP BY user;
CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON RETURNS INT;
INSERT INTO out AS QUERY q SELECT * FROM orders;
"""
KINDS = ("streams", "sinks", "functions", "queries")


class Console:
    """A checker with some things to refer to."""

    def __init__(self, prelude: str = PRELUDE) -> None:
        self.checker = Checker(Context(Catalog()))
        self.variables = {"x": "1", "here": "in", "name": "clicks"}
        faults = self.problems(prelude) if prelude else []
        assert not faults, faults

    def problems(self, text: str) -> list[str]:
        """What is wrong with how a script is checked; empty when all that must hold does."""
        try:
            return self._problems(Source("fuzz.sql", text))
        except StreamsqlError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return [
                f"{type(error).__name__}: {str(error)[:100]} ({where.filename.split('/')[-1]}:{where.name})"
            ]

    def refusals(self, text: str) -> list[StreamsqlError]:
        """The errors that `--check` shows for a script, placed in it."""
        source = Source("fuzz.sql", text)
        errors: list[StreamsqlError] = []
        try:
            pieces = split_script(source)
        except StreamsqlError as error:
            return [error.at(source)]
        for written in pieces:
            try:
                statement = parse(written, self.variables)
                if isinstance(statement, Define):
                    self.variables[statement.name.value] = statement.value
                self.checker.check(statement)
            except StreamsqlError as error:
                errors.append(error.at(written.source, written.span))
        return errors

    def outcomes(self, text: str) -> list[str]:
        """What becomes of each statement of a script: its plan, or the error, each in one line."""
        source = Source("fuzz.sql", text)
        try:
            pieces = split_script(source)
        except StreamsqlError as error:
            return [repr((error.message, error.span))]
        found = []
        for written in pieces:
            try:
                statement = parse(written, self.variables)
                found.append(f" plan {_plan(statement, self.checker.context)!r}")
            except StreamsqlError as error:
                found.append(repr((error.message, error.hint, error.span)))
        return found

    def _problems(self, source: Source) -> list[str]:
        before = self._entries()
        found: list[str] = []
        for error in self.refusals(source.text):
            found += _misplaced(error, source)
        after = self._entries()
        for (kind, name), entry in after.items():
            if before.get((kind, name)) is not entry:
                found += self._not_given_back(kind, name, entry)
        return found

    def _entries(self) -> dict[tuple[str, str], Any]:
        return {(k, n): e for k in KINDS for n, e in getattr(self.checker.catalog, k).items()}

    def _not_given_back(self, kind: str, name: str, entry: Any) -> list[str]:
        """Define an entry anew from its SHOW CREATE text, in its place."""
        catalog = self.checker.catalog
        sink = catalog.sinks.get(entry.sinks[0].casefold()) if kind == "queries" else None
        if kind == "sinks" and any(
            q.live_table and q.name.casefold() == name for q in catalog.queries.values()
        ):
            return []  # a live table: given back as its query
        if getattr(entry, "owner", ""):
            return []  # a stage: given back as the query of its live table
        text = entry.sql(sink) if kind == "queries" else entry.sql()
        without = catalog.without(kind, name)
        if kind == "queries" and entry.live_table:
            without = without.without("sinks", name)
        context = self.checker.context
        self.checker.context = replace(context, catalog=without)
        errors = self.refusals(text)
        again = getattr(self.checker.catalog, kind).get(name)
        self.checker.context = context
        if errors:
            return [f"SHOW CREATE is refused: {errors[0].message}: {text[:300]}"]
        if _settled(again) != _settled(entry):
            return [f"SHOW CREATE defines another: {text[:300]!r}\n    {again}\n    {entry}"]
        return []


def _settled(entry: Any) -> str:
    """What an entry says, wherever it was written."""
    return re.sub(r"(Span|Origin)\([^()]*(\(\([^)]*\)[^)]*\))?[^()]*\)", "", repr(entry))


def _misplaced(error: StreamsqlError, source: Source) -> list[str]:
    format_error(error)
    span = error.span
    if span is None or error.source is None:
        return [f"no place: {error.message[:100]}"]
    if not 0 <= span.start < span.end <= len(source.text):
        return [f"span {span.start}..{span.end} in a text of {len(source.text)}: {error.message[:100]}"]
    return []
