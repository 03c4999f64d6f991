"""Every claim of the README that can be run is run."""

from __future__ import annotations

import re
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Console
from scripts import run_here, run_process

from streamsql.configfile import read_config
from streamsql.errors import Source
from streamsql.language.parser import parse, split_script
from streamsql.output.formats import FORMATS
from streamsql.output.printer import Printer
from streamsql.preferences import SPECS, Preferences
from streamsql.results import Rows, Text
from streamsql.shell.desk import Desk

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_session_at_the_top(console: Console) -> None:
    """What is typed there shows what stands there, but for the time that it takes."""
    session = next(text for kind, text in BLOCKS if kind == "console")
    shown = StringIO()
    desk = Desk(console.session, Printer("table", shown, shown), threading.Event(), {})
    for typed in re.findall(r"^sql> (.*(?:\n\.\.\.\. .*)*)", session, re.MULTILINE):
        shown.write(f"sql> {typed}\n")
        assert desk.execute(typed.replace("\n.... ", "\n"))
    assert without_times(shown.getvalue()) == without_times(session)


def test_the_books_read_as_shown(console: Console) -> None:
    _, session = (text for kind, text in BLOCKS if kind == "console")
    shown = StringIO()
    desk = Desk(console.session, Printer("table", shown, shown), threading.Event(), {})
    for typed in re.findall(r"^sql> (.*)", session, re.MULTILINE):
        shown.write(f"sql> {typed}\n")
        assert desk.execute(typed)
    assert without_dates(shown.getvalue()) == without_dates(session)


def without_dates(text: str) -> str:
    """Without what is another in each run, and the widths of columns that go by it."""
    text = re.sub(
        r"\d{4}-\d\d-\d\dT[\d:.]+Z(.*\|) +\d+ \|$", r"…\1 |", without_times(text), flags=re.MULTILINE
    )
    return re.sub(r"([ -])\1+", r"\1", text)


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d\d s\)", "… s)", text)


def test_the_picture_is_there() -> None:
    for picture in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README):
        assert "<svg" in (ROOT / picture).read_text()[:100]


def test_the_table_of_connectors_is_what_the_console_shows(console: Console) -> None:
    shown = console.run("SHOW CONNECTORS;")[0]
    assert isinstance(shown, Rows)
    written = README.split("<!-- connectors -->\n")[1].split("\n\n")[0].splitlines()
    assert written == list(FORMATS["markdown"](shown))


DISTINCT = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in README.split("<!-- distinct -->\n")[1].split("\n\n")[0].splitlines()[2:]
]


@pytest.mark.parametrize(("written", "runs_as", "remembers"), DISTINCT)
def test_each_row_once(console: Console, written: str, runs_as: str, remembers: str) -> None:
    """What is run, and whether a note warns, is as the table says."""
    console.run(
        "CREATE STREAM events (id INT, user STRING, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '1 hour';"
        "CREATE SINK nothing USING noop; INSERT INTO events VALUES (1, 'a', '2024-01-01'), (1, 'a', '2024-01-01');"
    )

    def notes(query: str) -> str:
        started = console.run(f"INSERT INTO nothing TRIGGER AVAILABLE NOW {query};")[0]
        console.run("AWAIT QUERY nothing; DROP QUERY nothing;")
        return "\n".join(started.notes)

    query = written.strip("`")
    text = console.run(f"EXPLAIN PYSPARK {query};")[0]
    plan = console.run(f"EXPLAIN {query};")[0]
    assert isinstance(text, Text)
    assert isinstance(plan, Text)
    assert (runs_as.strip("`") in text.text) if "(" in runs_as else ("StateStoreSave" in plan.text)
    assert ("without bound" in notes(query)) == ("for ever" in remembers)
    if "with `ts`" in remembers:
        assert "without bound" not in notes(
            query.replace("DISTINCT id", "DISTINCT ts, id").replace("(id)", "(id, ts)")
        )
    assert console.rows(f"{query.replace('*', 'id, user')};") == [(1, "a")]


def test_the_preferences_are_those_that_there_are(tmp_path: Path) -> None:
    written = README.split("<!-- preferences -->\n")[1].split("\n\n")[0].splitlines()[2:]
    assert written == [f"| {s.name} | `{s.default}` | {s.help} |" for s in SPECS.values()]
    config = tmp_path / "config.toml"
    config.write_text(next(text for kind, text in BLOCKS if kind == "toml"))
    chosen = Preferences()
    read = read_config(str(config), chosen)
    assert (read.warnings, read.spark) == ([], {"spark.sql.shuffle.partitions": "4"})
    assert (chosen["format"], chosen["timing"], chosen["pager"]) == ("markdown", "off", "less -S")


def test_the_error_is_what_the_console_shows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    first = f"CREATE STREAM clicks (user STRING) USING json OPTIONS (path '{tmp_path}/in');\n"
    outcome = run_here(spark, tmp_path, Source("clicks.sql", first + "SELECT usr FROM clicks;"))
    written = next(text for _, text in BLOCKS if text.startswith("clicks.sql:2:8"))
    assert outcome.err.endswith(written)


def test_the_flags_are_there() -> None:
    help_text = run_process("--help").out
    block = next(text for _, text in BLOCKS if text.startswith("streamsql FILE.sql"))
    for flag in re.findall(r" (--?[a-zA-Z][\w-]*)", block):
        assert re.search(rf"{re.escape(flag)}\b", help_text), flag


STATEMENTS = [
    s
    for cell in re.findall(r"^\| [^|]+ \| (.*) \|$", README, re.MULTILINE)
    for s in re.findall(r"`([A-Z][^`]*;)`", cell)
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_of_the_table_is_one(statement: str) -> None:
    text = (
        statement.replace("SELECT …;", "SELECT 1;")
        .replace("…", "x")
        .replace("SELECT x FROM clicks x;", "SELECT * FROM clicks;")
    )
    for written in split_script(Source("README", text)):
        parse(written)


def test_every_example_is_named_and_every_name_is_there() -> None:
    named = set(re.findall(r"examples/(\w+\.sql)", README))
    assert named == {p.name for p in (ROOT / "examples").glob("*.sql")}
