"""What the README and the HELP topics show is what the console does."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Console, notes_of
from scripts import run_here, run_process
from sql_cases import results_of

from streamsql.config.config_file import read_config
from streamsql.config.preferences import SPECS, Preferences
from streamsql.errors import Source, StreamsqlError
from streamsql.features.testing.sessions import SessionFactory
from streamsql.language.parser import parse, split_script
from streamsql.language.topics import topics
from streamsql.output.printer import Printer
from streamsql.results import Text
from streamsql.runtime.engine.settings import Settings
from streamsql.shell.bare_terminal import Interrupt
from streamsql.shell.statement_runner import Desk

ROOMS = ("README.md", "streamsql/runtime/", "streamsql/plan/")

README = (ROOT / "README.md").read_text()
TOPICS = {name: topic.text for name, topic in topics().items()}


def blocks(page: str, kind: str) -> list[str]:
    """The code blocks of a kind in a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def lines_below(page: str, mark: str) -> list[str]:
    """The table below a mark."""
    return page.split(f"<!-- {mark} -->\n")[1].split("\n\n")[0].splitlines()


SESSIONS = [*blocks(README, "console"), *blocks(TOPICS["checkpoints"], "console")]


@pytest.mark.parametrize("session", SESSIONS, ids=["readme", "tutorial", "checkpoints"])
def test_a_session_shows_what_is_written(
    session: str, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    shown = StringIO()
    desk = Desk(console.session, Printer("table", shown, shown), Interrupt(), {})
    for typed in re.findall(r"^sql> (.*(?:\n\.\.\.\. .*)*)", session, re.MULTILINE):
        shown.write(f"sql> {typed}\n")
        assert desk.execute(typed.replace("\n.... ", "\n"))
    assert without_dates(shown.getvalue()) == without_dates(session)


def without_dates(text: str) -> str:
    """Without what differs in each run, and the widths of columns that depend on it."""
    text = re.sub(
        r"\d{4}-\d\d-\d\d [\d:]+( \|.*\|) +\d+ \|$", r"…\1 |", without_times(text), flags=re.MULTILINE
    )
    return re.sub(r"([ -])\1+", r"\1", text)


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d\d s\)", "… s)", text)


def test_the_picture_is_there() -> None:
    for picture in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README):
        assert "<svg" in (ROOT / picture).read_text()[:100]


def test_the_connectors_are_those_that_the_console_shows(console: Console) -> None:
    shown = [row[0] for row in console.rows("SHOW CONNECTORS;")]
    assert " ".join(lines_below(README, "connectors")).split(", ") == shown


DISTINCT = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in lines_below(TOPICS["deduplication"], "distinct")[2:]
]


@pytest.mark.first_cases(1)
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
        return "\n".join(notes_of(started))

    query = written.strip("`")
    text = console.run(f"EXPLAIN PYSPARK {query};")[0]
    plan = console.run(f"EXPLAIN {query};")[0]
    assert isinstance(text, Text)
    assert isinstance(plan, Text)
    assert (runs_as.strip("`") in text.text) if "(" in runs_as else ("StateStoreSave" in plan.text)
    assert ("unbounded" in notes(query)) == ("unbounded" in remembers)
    if "with `ts`" in remembers:
        assert "unbounded" not in notes(
            query.replace("DISTINCT id", "DISTINCT ts, id").replace("(id)", "(id, ts)")
        )
    assert console.rows(f"{query.replace('*', 'id, user')};") == [(1, "a")]


def test_the_rows_that_reach_the_maximum_of_their_window_are_those_of_the_join(console: Console) -> None:
    """The statement of HELP windows, in append mode over two micro-batches, against the join over all rows in Spark."""
    *_, statement = blocks(TOPICS["windows"], "sql")
    minutes = (
        (0, "ann"),
        (1, "bob"),
        (2, "ann"),
        (3, "bob"),
        (11, "eve"),
        (12, "ann"),
        (13, "eve"),
        (40, None),
    )
    rows = [
        f"({user and repr(user) or 'NULL'}, TIMESTAMP '2024-05-01 12:{minute:02}:00')"
        for minute, user in minutes
    ]
    console.run(
        "CREATE STREAM clicks (user STRING, ts TIMESTAMP) USING values WITH WATERMARK ts DELAY '0 seconds';"
        f"CREATE LIVE TABLE best OUTPUT MODE APPEND AS {statement}"
        f"INSERT INTO clicks VALUES {', '.join(rows[:3])}; AWAIT QUERY best IDLE;"
        f"INSERT INTO clicks VALUES {', '.join(rows[3:])}; AWAIT QUERY best IDLE;"
        f"CREATE TEMPORARY VIEW all_clicks AS SELECT * FROM VALUES {', '.join(rows)} AS c (user, ts);"
    )
    counts = (
        "(SELECT window AS w, user, count(*) AS n FROM all_clicks GROUP BY window(ts, '10 minutes'), user)"
    )
    closed = console.rows(
        f"SELECT c.w.start, c.user, c.n FROM {counts} c JOIN (SELECT w, max(n) AS most FROM {counts} GROUP BY w) m"
        " ON c.w = m.w AND c.n >= m.most WHERE c.w.end <= TIMESTAMP '2024-05-01 12:40:00';"
    )
    assert len(closed) == 3
    assert sorted(console.rows("SELECT * FROM best;")) == sorted(closed)


def test_the_preferences_are_those_that_there_are(tmp_path: Path) -> None:
    written = lines_below(TOPICS["preferences"], "preferences")[2:]
    assert written == [f"| {s.name} | `{s.default}` | {s.help} |" for s in SPECS.values()]
    config = tmp_path / "config.toml"
    config.write_text(blocks(TOPICS["preferences"], "toml")[0])
    chosen = Preferences()
    read = read_config(str(config), chosen)
    assert (read.warnings, read.spark) == ([], {"spark.sql.shuffle.partitions": "4"})
    assert (chosen["format"], chosen["timing"], chosen["pager"]) == ("markdown", "off", "less -S")


def test_the_error_is_what_the_console_shows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    first = f"CREATE STREAM clicks (user STRING) USING json OPTIONS (path '{tmp_path}/in');\n"
    outcome = run_here(spark, tmp_path, Source("clicks.sql", first + "SELECT usr FROM clicks;"))
    written = blocks(TOPICS["errors"], "text")[0]
    assert outcome.err.endswith(written)


@pytest.mark.usefixtures("processes")
def test_the_flags_are_there() -> None:
    help_text = run_process("--help").out
    block = blocks(TOPICS["scripts"], "text")[0] + blocks(README, "bash")[-1]
    for flag in re.findall(r" (--?[a-zA-Z][\w-]*)", block):
        assert re.search(rf"{re.escape(flag)}\b", help_text), flag


STATEMENTS = re.findall(
    r"`([A-Z][^`]*;)`", re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
)


def test_every_statement_in_the_text_is_read_or_answered_as_it_says() -> None:
    answered = set()
    for statement in STATEMENTS:
        try:
            for written in split_script(
                Source("README", statement.replace("TO …", "TO '1999-12-31'").replace("…", "*"))
            ):
                parse(written)
        except StreamsqlError as error:
            assert error.hint, statement
            answered.add(statement)
    assert len(STATEMENTS) > 20
    assert answered == {"PRINT 'topic';"}


@pytest.mark.slow
def test_the_test_is_one_that_passes(spark: Any, tmp_path: Path) -> None:
    written = blocks(README, "sql")
    assert [text.split()[0] for text in written] == ["TEST"]
    file = tmp_path / "readme.test.sql"
    file.write_text(written[0])
    pipeline = str(ROOT / "examples" / "windowed_word_count.sql")
    factory = SessionFactory(Settings.make("local[2]", {}), spark=spark)
    try:
        results = results_of([str(file)], factory, [pipeline])
    finally:
        factory.close()
    assert list(results.values()) == [""]


def test_every_topic_that_is_named_is_there() -> None:
    named = re.findall(r"`HELP ([a-z ]+);`", README)
    assert named and not [name for name in named if name not in TOPICS]


def test_every_example_is_named_and_every_name_is_there() -> None:
    named = set(re.findall(r"examples/(\w+\.sql)", README))
    scripts = (ROOT / "examples").glob("*.sql")
    assert named == {p.name for p in scripts if not p.name.endswith(".test.sql")}
