"""A session with a workspace, line by line: statements, crashes and restarts, and what its rows must be.

A story is a list of lines. A line is a statement, or one of these:

    -- file s ('a', 1), ('b', 2)   a file with these rows lands in the folder of the stream s
    -- crash                       the console ends as if it was killed; another one opens its workspace
    -- kill 0.3 STATEMENT          the same while it runs a statement, so many seconds after its begin
    -- restart                     the console is left; another one opens its workspace
    -- check                       all input is processed; each live table and query has the rows that Spark's batch
                                   query over the same input gives, and VERIFY says so

All relations have the columns k STRING and v BIGINT.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from streamsql.errors import StreamsqlError

REFUSED = {
    "create live table": {"NOT_ON_STREAMS", "OUTPUT_MODE_NOT_SUPPORTED", "CIRCULAR_DEFINITION", "NO_STREAM"},
    "drop": {"IN_USE"},
    "verify": {"WRONG_KIND", "CLAUSE_NOT_SUPPORTED", "NO_RECORDS", "CONNECTOR_NOT_SUPPORTED"},
}
"""The codes with which a statement may be refused."""
PATIENCE = 120
ROW = re.compile(r"\((?:'(\w*)'|NULL), (-?\d+)\)")
NO_ROWS = "SELECT CAST('' AS STRING) AS k, CAST(1 AS BIGINT) AS v WHERE false"

Rows = Counter[tuple[Any, ...]]


class OpenConsole(Protocol):
    """A console on the workspace of a story. Errors of statements are raised as StreamsqlError."""

    def run(self, script: str) -> object: ...

    def rows(self, script: str) -> list[tuple[Any, ...]]: ...

    def text(self, script: str) -> str: ...

    def leave(self) -> None: ...

    def crash(self) -> None: ...

    def kill_within(self, statement: str, seconds: float) -> None: ...


class Story:
    """folder: for the workspace and the files; opened: opens a console on a workspace; spark: gives the answers
    of batch queries.

    given: the rows that each stream or table was given, as SQL; texts: the SELECT of each derived stream and
    live table; queries: that of each query into a sink of files or of changes, by its name; running: the live
    tables and queries that run.
    """

    def __init__(self, folder: Path, opened: Callable[[Path], OpenConsole], spark: Any) -> None:
        self.folder, self.opened, self.spark = folder, opened, spark
        self.lines = list[str]()
        self.given = dict[str, list[str]]()
        self.texts = dict[str, str]()
        self.live = set[str]()
        self.queries = dict[str, str]()
        self.running = set[str]()
        self.files = 0
        self.console = opened(folder / "w")

    # ---- one line --------------------------------------------------------------------------------

    def tell(self, line: str) -> str:
        """Do what a line says. Returns the code with which its statement was refused, or ""."""
        self.lines.append(line)
        try:
            return self._tell(line)
        except Exception as error:
            error.add_note("\n".join(("the story:", *self.lines)))
            if isinstance(error, StreamsqlError):
                error.add_note(f"{error.code}: {error.message}\n{error.detail}\n{error.hint}")
            raise

    def _tell(self, line: str) -> str:
        word, _, rest = line.removeprefix("-- ").partition(" ")
        if line == "-- crash":
            self.console.crash()
            self._open()
        elif line.startswith("-- kill "):
            seconds, _, statement = rest.partition(" ")
            self.console.kill_within(statement, float(seconds))
            self._open()
            if self._was_done(statement):
                self._note(statement)
            self.running.clear()
        elif line == "-- restart":
            self.console.leave()
            self._open()
        elif line == "-- check":
            self.check()
        elif line.startswith("-- file "):
            name, _, rows = rest.partition(" ")
            self._land(name, rows)
        else:
            return self._run(line)
        return ""

    def _open(self) -> None:
        self.running.clear()
        self.console = self.opened(self.folder / "w")

    def _was_done(self, statement: str) -> bool:
        """Whether a statement within which the console was killed has changed the workspace."""
        if statement.startswith("INSERT INTO "):
            name, rows = statement.split()[2], statement.partition(" VALUES ")[2]
            before = sum(len(ROW.findall(given)) for given in self.given[name])
            ((now,),) = self.console.rows(f"SELECT count(*) FROM {name};")
            assert now in (before, before + len(ROW.findall(rows))), f"{name} has {now} rows"
            return bool(now > before)
        if statement.startswith("DROP LIVE TABLE "):
            return statement.split()[3].rstrip(";") not in {
                row[0] for row in self.console.rows("SHOW LIVE TABLES;")
            }
        if statement.startswith("CREATE OR REPLACE LIVE TABLE "):
            shown = self.console.text(f"SHOW CREATE LIVE TABLE {statement.split()[5]};")
            return statement.partition(" AS ")[2].rstrip(";") in shown
        return False

    def _land(self, name: str, rows: str) -> None:
        self.files += 1
        part = self.folder / f"{self.files}.part"
        found = [(key or None, int(value)) for key, value in ROW.findall(rows)]
        part.write_text("".join(json.dumps({"k": key, "v": value}) + "\n" for key, value in found))
        part.rename(self.folder / name / f"{self.files}.json")
        self.given[name].append(rows)

    def _run(self, statement: str) -> str:
        kind = next((k for k in REFUSED if re.sub(" or replace", "", statement.lower()).startswith(k)), "")
        for folder in re.findall(r"path '[^']*/(\w+)'", statement):
            (self.folder / folder).mkdir(exist_ok=True)
        try:
            self.console.run(statement)
        except StreamsqlError as refused:
            if refused.code in REFUSED.get(kind, ()):
                return refused.code
            if refused.code != "WRONG_COLUMNS" or not statement.startswith("START QUERY "):
                raise
            for name in filter(lambda name: name.startswith("c"), self.queries):
                self._again(name)  # its live table was replaced
        self._note(statement)
        return ""

    def _note(self, statement: str) -> None:
        """Take notice of a statement that was executed."""
        for part in filter(None, map(str.strip, statement.split(";"))):
            if made := re.fullmatch(r"CREATE (?:STREAM|TABLE) (\w+) \(.*\) USING .*", part):
                self.given[made[1]] = []
            elif made := re.fullmatch(r"CREATE STREAM (\w+) AS (.*)", part):
                self.texts[made[1]] = made[2]
            elif made := re.fullmatch(r"CREATE (OR REPLACE )?LIVE TABLE (\w+) AS (.*)", part):
                self.texts[made[2]] = made[3]
                self.live.add(made[2])
                self.running.add(made[2])
                if made[1]:
                    self._readers_again(made[2])
            elif made := re.fullmatch(r"INSERT INTO (\w+) VALUES (.*)", part):
                self.given[made[1]].append(made[2])
            elif made := re.fullmatch(r"INSERT INTO \w+ AS QUERY (\w+) (.*)", part):
                self.queries[made[1]] = made[2]
                self.running.add(made[1])
            elif made := re.fullmatch(r"START QUERY (\w+)( FROM BEGINNING)?", part):
                self.running |= {*self.live, *self.queries} if made[1] == "ALL" else {made[1]}
            elif made := re.fullmatch(r"STOP QUERY (\w+)", part):
                self.running -= {*self.running} if made[1] == "ALL" else {made[1]}
            elif made := re.fullmatch(r"DROP LIVE TABLE (\w+)", part):
                self.live.remove(made[1])
                self.running.discard(made[1])
                del self.texts[made[1]]

    def _readers_again(self, name: str) -> None:
        """Start the queries of changes that read a live table which was replaced, where its columns end them."""
        for reader in self.queries:
            if reader in self.running and name in self.below(reader) - {reader}:
                try:
                    self.console.run(f"AWAIT QUERY {reader} IDLE TIMEOUT INTERVAL {PATIENCE} SECONDS;")
                except StreamsqlError as ended:
                    if ended.code != "WRONG_COLUMNS":
                        raise
                    self._again(reader)

    def _again(self, name: str) -> None:
        """Start a query of changes whose input has other columns now: from the beginning, as is proposed."""
        try:
            self.console.run(f"START QUERY {name};")
        except StreamsqlError as refused:
            if refused.code != "WRONG_COLUMNS":
                raise
            self.console.run(f"START QUERY {name} FROM BEGINNING;")

    # ---- what must be true -------------------------------------------------------------------------

    def below(self, name: str) -> set[str]:
        """All that a live table or query reads, and itself."""
        found, ahead = set[str](), [name]
        while ahead:
            relation = ahead.pop()
            if relation not in found:
                found.add(relation)
                words = set(re.findall(r"\w+", self.texts.get(relation, self.queries.get(relation, ""))))
                ahead += words & {*self.texts, *self.given}
        return found

    def fresh(self, name: str) -> bool:
        """Whether a live table or query, and all that it reads, are kept up to date."""
        return name in self.running and self.below(name) & self.live <= self.running

    def check(self) -> None:
        """Let all input be processed, and compare all rows."""
        for name in self.given.keys() - self.streams:
            if any(name in self.below(live) for live in self.running):
                self._announce()
                break
        if self.running:
            self.console.run(f"AWAIT QUERY ALL IDLE TIMEOUT INTERVAL {PATIENCE} SECONDS;")
        for name in sorted(self.live):
            rows = Counter(self.console.rows(f"SELECT k, v FROM {name};"))
            if self.fresh(name):
                self._compare(name, rows, self.texts[name])
        for name, text in self.queries.items():
            if self.fresh(name):
                self._compare(name, self._written(name), text)

    @property
    def streams(self) -> set[str]:
        return {name for name in self.given if name.startswith(("s", "f"))}

    def _announce(self) -> None:
        """Give each stream a row: a table announces no change, the next micro-batch brings it."""
        for name in sorted(self.streams):
            self.tell(
                f"-- file {name} ('z', 7)" if name.startswith("f") else f"INSERT INTO {name} VALUES ('z', 7);"
            )

    def _compare(self, name: str, rows: Rows, text: str) -> None:
        right = self.answer(name, text)
        assert rows == right, f"{name}: missing {right - rows}, too many {rows - right}\nits SELECT: {text}"
        try:
            self.console.run(f"VERIFY QUERY {name};")
        except StreamsqlError as refused:
            if refused.code not in REFUSED["verify"]:
                raise

    def answer(self, name: str, text: str) -> Rows:
        """What Spark's batch query gives over all that was given."""
        ctes = list[str]()
        below = self.below(name)
        for relation, rows in self.given.items():
            if relation in below:
                values = f"SELECT CAST(k AS STRING) AS k, CAST(v AS BIGINT) AS v FROM VALUES {', '.join(rows)} t(k, v)"
                ctes.append(f"{relation} AS ({values if rows else NO_ROWS})")
        ordered = list[str]()

        def put(relation: str) -> None:
            for other in sorted(self.below(relation) - {relation}):
                if other in self.texts and other not in ordered:
                    put(other)
            if relation not in ordered:
                ordered.append(relation)

        for relation in sorted(below & self.texts.keys() - {name}):
            put(relation)
        ctes += [f"{relation} AS ({self.texts[relation]})" for relation in ordered]
        return Counter(
            map(tuple, self.spark.sql(f"WITH {', '.join(ctes)} SELECT k, v FROM ({text})").collect())
        )

    def _written(self, name: str) -> Rows:
        """The rows that a query has written: those of its files, or all its changes together."""
        if not name.startswith("c"):
            folder = self.folder / f"out_{name}"
            if not any(folder.glob("*.json")):
                return Counter()
            read = self.spark.read.schema("k STRING, v BIGINT").json(str(folder))
            return Counter(map(tuple, read.collect()))
        rows = Rows()
        for op, *row in self.console.rows(f"SELECT _op, k, v FROM out_{name};"):
            rows[tuple(row)] += 1 if op in ("+I", "+U") else -1
        assert not -rows, f"{name} has taken away rows that it has not written: {-rows}"
        return rows


def told(story: Story, lines: Iterable[str]) -> None:
    """Tell all lines of a story."""
    for line in lines:
        story.tell(line)
